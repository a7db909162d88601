"""What `tunefree train --live` adds: the report on the loopback address while the model learns."""

from __future__ import annotations

import typer

from tunefree.core.errors import ModelError
from tunefree.report.live import LiveReport
from tunefree.training.watching import Watcher, Watchers


class LiveDisplay(Watchers):
    """What another watcher does, and a page that is served until training ends."""

    def __init__(self, other: Watcher, port: int) -> None:
        try:
            from tunefree.report.live_server import LiveServer
        except ModuleNotFoundError as missing:
            raise ModelError(f"{missing.name} is not installed; pip install 'tunefree[live]'") from None
        report = LiveReport()
        super().__init__([other, report])
        self.server = LiveServer(report, port)
        typer.echo(f"live report: {self.server.address}", err=True)

    def close(self) -> None:
        super().close()
        self.server.close()

"""What `tunefree train --live` adds: the report on the loopback address while the model learns."""

from __future__ import annotations

from typing import Any

import typer

from tunefree.core.errors import ModelError
from tunefree.report.live import LiveReport
from tunefree.training.watching import Watcher


class LiveDisplay(LiveReport):
    """What another watcher shows, and a page that is served until training ends."""

    def __init__(self, other: Watcher, port: int) -> None:
        try:
            from tunefree.report.live_server import LiveServer
        except ModuleNotFoundError as missing:
            raise ModelError(f"{missing.name} is not installed; pip install 'tunefree[live]'") from None
        super().__init__()
        self.other, self.server = other, LiveServer(self, port)
        typer.echo(f"live report: {self.server.address}", err=True)

    def begin(self, trained: Any, source: Any) -> None:
        self.other.begin(trained, source)

    def step(self, trained: Any, step: Any) -> None:
        self.other.step(trained, step)

    def saved(self, path: Any, rows: int) -> None:
        self.other.saved(path, rows)

    def end(self, trained: Any) -> None:
        self.other.end(trained)

    def tell(self, message: str) -> None:
        self.other.tell(message)

    def close(self) -> None:
        self.other.close()
        self.server.close()

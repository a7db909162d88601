"""The output of commands: progress on standard error, results on standard output."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from tunefree.core.console import ProgressLine, plain_console
from tunefree.core.parameters import as_options
from tunefree.report import rendering
from tunefree.report.document import Block
from tunefree.report.findings import notes_of
from tunefree.report.formats import describe
from tunefree.training.callbacks import Callback, Step
from tunefree.workflows.findings import oddity_findings

if TYPE_CHECKING:
    from tunefree.model_files.trained import Trained
    from tunefree.stream.source import Source


def show(blocks: Iterable[Block], as_json: bool = False) -> None:
    """Print blocks of a report on standard output.

    ``as_json``: print all values as JSON.
    """
    if as_json:
        typer.echo(json.dumps(rendering.record(blocks)))
        return
    rendering.show(plain_console(), blocks)


class TrainingDisplay(Callback):
    """A progress bar with the number of rows, rows per second and the progressive loss."""

    may_end = False

    def __init__(self) -> None:
        self.console = plain_console(stderr=True)
        self.began, self.rows = time.monotonic(), 0
        self.progress = ProgressLine(self.console)

    def begin(self, trained: Trained, source: Source) -> None:
        self.console.print(describe(trained))
        column_oddities = [oddity for oddity in trained.progress.tally.oddities if not oddity.rows]
        rendering.show(self.console, notes_of(oddity_findings(column_oddities)))
        self.share = source.progress()
        self.progress.bar.start()

    def step(self, trained: Trained, step: Step) -> None:
        self.rows += len(step.row_losses)
        progress = trained.progress
        done = f"pass {progress.number + 1}, " if trained.plan.passes > 1 else ""
        seconds = max(time.monotonic() - self.began, 1e-3)
        line = f"{done}{progress.rows:,} rows, {self.rows / seconds:,.0f} rows/s, "
        line += f"progressive loss {progress.progressive[-1].mean_loss():.4g}"
        share = self.share(progress.position) if self.console.is_terminal else None
        self.progress.show(line, None if share is None else progress.number + share, trained.plan.passes)

    def tell(self, message: str) -> None:
        self.console.print(as_options(message))

"""What `tunefree train` prints while it learns row by row."""

from __future__ import annotations

import time

from tunefree.core.console import ProgressLine, plain_console
from tunefree.core.parameters import as_options
from tunefree.model_files.trained import Trained
from tunefree.report import terminal
from tunefree.report.suspicions import notes_of
from tunefree.report.words import describe
from tunefree.stream.source import Source
from tunefree.training.callbacks import Callback, Step
from tunefree.workflows.findings import of_reasons


class TrainingDisplay(Callback):
    """A progress bar with rows, rows a second and progressive loss."""

    may_end = False

    def __init__(self) -> None:
        self.console = plain_console(stderr=True)
        self.began, self.rows = time.monotonic(), 0
        self.progress = ProgressLine(self.console)

    def begin(self, trained: Trained, source: Source) -> None:
        self.console.print(describe(trained))
        of_columns = [oddity for oddity in trained.progress.oddities if not oddity.rows]
        terminal.show(self.console, notes_of(of_reasons(of_columns)))
        self.share = source.progress()
        self.progress.bar.start()

    def step(self, trained: Trained, step: Step) -> None:
        self.rows += len(step.row_losses)
        progress = trained.progress
        done = f"pass {progress.number + 1}, " if trained.plan.passes > 1 else ""
        seconds = max(time.monotonic() - self.began, 1e-3)
        line = f"{done}{progress.rows:,} rows, {self.rows / seconds:,.0f} rows/s, "
        line += f"progressive loss {progress.progressive[-1].mean_loss():.4g}{_rises(trained)}"
        share = self.share(progress.position) if self.console.is_terminal else None
        self.progress.show(line, None if share is None else progress.number + share, trained.plan.passes)

    def end(self, trained: Trained) -> None:
        self.close()

    def tell(self, message: str) -> None:
        self.console.print(as_options(message))

    def close(self) -> None:
        self.progress.close()


def _rises(trained: Trained) -> str:
    """How often the loss rose so far, and where last."""
    if trained.rises is None or not trained.rises.count:
        return ""
    times = "once" if trained.rises.count == 1 else f"{trained.rises.count:,} times"
    return f", which rose {times}, last from row {trained.rises.rises[-1].row:,} on"

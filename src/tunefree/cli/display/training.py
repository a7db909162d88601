"""What `tunefree train` prints while it learns row by row."""

from __future__ import annotations

import math
import time

import numpy as np
import typer

from tunefree.core.console import ProgressLine, plain_console
from tunefree.core.parameters import as_options
from tunefree.core.rows import entries_of, part
from tunefree.losses.objectives import chosen
from tunefree.model.model import Model
from tunefree.model.targets import RunningMetrics
from tunefree.model_files.trained import Trained
from tunefree.report import terminal
from tunefree.report.rows import notes_of, oddity_lines
from tunefree.report.words import describe
from tunefree.stream.source import Source
from tunefree.training.callbacks import Callback, Step


class TrainingDisplay(Callback):
    """A progress bar with rows, rows a second and progressive loss.

    ``verbose``: whether to print a table as Vowpal Wabbit does instead.
    """

    def __init__(self, verbose: bool = False) -> None:
        self.console = plain_console(stderr=True)
        self.powers = PowersOfTwo() if verbose else None
        self.began, self.rows = time.monotonic(), 0
        self.progress = ProgressLine(self.console)

    def begin(self, trained: Trained, source: Source) -> None:
        self.console.print(describe(trained))
        of_columns = [oddity for oddity in trained.progress.oddities if not oddity.rows]
        terminal.show(self.console, notes_of(oddity_lines(of_columns)))
        self.share = source.progress()
        if self.powers:
            self.powers.header()
        else:
            self.progress.bar.start()

    def step(self, trained: Trained, step: Step) -> None:
        self.rows += len(step.row_losses)
        progress = trained.progress
        if self.powers:
            self.powers.step(trained.model, step)
            return
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


class PowersOfTwo:
    """A table as Vowpal Wabbit prints it: a line at each power of two rows, with the loss so far and since the last."""

    def __init__(self) -> None:
        self.next, self.weight = 1, 0.0
        self.metrics, self.recent = RunningMetrics(), RunningMetrics()

    def header(self) -> None:
        for names in (
            ("average", "since", "example", "example", "current", "current", "current"),
            ("loss", "last", "counter", "weight", "label", "predict", "features"),
        ):
            self._print("{:<9}{:<9}{:>12}{:>15}{:>17}{:>17}{:>9}".format(*names))

    def step(self, model: Model, step: Step) -> None:
        start = 0
        n = len(step.row_losses)
        while start < n:
            stop = min(n, start + self.next - self.metrics.rows)
            self._add(step, start, stop)
            if self.metrics.rows == self.next:
                self._line(model, step, stop - 1)
                self.next *= 2
            start = stop

    def _add(self, step: Step, start: int, stop: int) -> None:
        learned, losses = step.learned, step.row_losses[start:stop]
        weight = (learned.weight if learned.counts is None else learned.counts)[start:stop]
        self.weight += float(weight.sum())
        for metrics in (self.metrics, self.recent):
            metrics.add(weight, losses, losses)

    def _line(self, model: Model, step: Step, i: int) -> None:
        average, since = (of.mean_loss() if of.weight > 0.0 else math.nan for of in (self.metrics, self.recent))
        self.recent, y = RunningMetrics(), step.learned.target
        if model.task == "regression":
            label, predicted = f"{y[i]:.6g}", f"{step.predictions[i, 0]:.6g}"
        else:
            label = str(y.values[y.codes[i]])
            predicted = str(model.classes[int(chosen(step.predictions[i : i + 1])[0])])
        features = np.count_nonzero(entries_of(part(step.learned.rows, i, i + 1)).values)
        counter = f"{self.next:>12}{self.weight:>15.1f}{label[:15]:>17}{predicted[:15]:>17}{features:>9}"
        self._print(f"{_of_loss(average)} {_of_loss(since)} {counter}")

    def _print(self, line: str) -> None:
        typer.echo(line, err=True)


def _of_loss(value: float) -> str:
    """A loss in eight characters, or a few more if it is huge; none as long as nothing was predicted."""
    if math.isnan(value):
        return f"{'-':<8}"
    return f"{value:<8.6f}" if value < 10.0 else f"{value:<8.6g}"

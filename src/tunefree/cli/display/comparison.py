"""What `tunefree compare` prints while it learns, and at the end."""

from __future__ import annotations

import json
import time
from typing import Any

import typer
from rich.progress import BarColumn, Progress, SpinnerColumn, TimeElapsedColumn

from tunefree.cli.display.common import table_of
from tunefree.core.console import description_column, plain_console
from tunefree.core.parameters import as_options
from tunefree.model_files.plan import POOL
from tunefree.report.told_comparison import memory, remarks, table_of_losses
from tunefree.stream.batch import Batch
from tunefree.stream.source import Source
from tunefree.workflows.comparison import Comparison, ComparisonWatcher, Contestant, in_figures

LINE_SECONDS = 10.0  # between lines of progress where there is no terminal to draw a bar on
MUCH_MEMORY = 2**30  # bytes of all models from which on a hint is printed


class ComparisonDisplay(ComparisonWatcher):
    """A progress bar with rows, the best learner so far and the memory of all models."""

    def __init__(self) -> None:
        self.console = plain_console(stderr=True)
        self.told = time.monotonic()
        self.bar = Progress(
            SpinnerColumn(),
            description_column(),
            BarColumn(),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self.task = self.bar.add_task("reading", total=None)

    def begin(self, comparison: Comparison, source: Source) -> None:
        goal = f"'{comparison.plan.target}'" if comparison.plan.target else "the label"
        count = len(comparison.contestants)
        self.console.print(f"{comparison.task} of {goal}; loss {comparison.loss}; {count} learners on one pass")
        if comparison.bytes > MUCH_MEMORY:
            self.console.print(
                f"their models take {memory(comparison)} at first; --learner names fewer of them, "
                "--hash-bits makes them smaller"
            )
        self.share = source.progress()
        self.bar.start()

    def prepare(self, contestant: Contestant) -> None:
        self._tell(f"preparing {contestant.name} (compiled the first time)")

    def step(self, comparison: Comparison, batch: Batch) -> None:
        best = comparison.ranked[0]
        line = f"{comparison.rows:,} rows, {best.name} leads with {in_figures(best.metrics.mean_loss())}"
        self._tell(f"{line}, models take {memory(comparison)}", self.share(batch.position))

    def _tell(self, line: str, share: float | None = None) -> None:
        now = time.monotonic()
        self.bar.update(self.task, description=line, total=None if share is None else 1.0, completed=share or 0.0)
        if not self.console.is_terminal and now - self.told > LINE_SECONDS:
            self.told = now
            self.console.print(line)

    def end(self, comparison: Comparison) -> None:
        self.bar.stop()


def show_comparison(comparison: Comparison, as_json: bool) -> None:
    """Print the learners by progressive loss, the pool's leaders, and what a sweep would have cost.

    Parameters
    ----------
    comparison : Comparison
    as_json : bool
    """
    if as_json:
        typer.echo(json.dumps(_comparison_figures(comparison)))
        return
    console = plain_console()
    console.print(table_of(table_of_losses(comparison), POOL))
    for line in remarks(comparison):
        console.print(line)


def _comparison_figures(comparison: Comparison) -> dict[str, Any]:
    classes = comparison.task == "classification"
    loss = "log_loss" if comparison.loss == "logistic" else "loss"
    learners = [
        {
            "learner": contestant.name,
            loss: contestant.metrics.mean_loss(),
            "error" if classes else "mean_absolute_error": contestant.metrics.mean_error(),
            "seconds": contestant.seconds,
            "bytes": contestant.bytes,
            "curve": [point._asdict() for point in contestant.curve],
        }
        for contestant in comparison.ranked
    ]
    return {
        "task": comparison.task,
        "loss": comparison.loss,
        "rows": comparison.rows,
        "rows_skipped": comparison.skipped,
        "notes": [as_options(str(oddity)) for oddity in comparison.oddities],
        "learners": learners,
        "left_out": comparison.left_out,
        "pool": comparison.leaders(),
        "sweep": {name: sweep._asdict() for name, sweep in comparison.sweeps().items()},
        "seconds_of_reading": comparison.reading,
    }

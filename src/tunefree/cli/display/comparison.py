"""What `tunefree compare` prints while it learns."""

from __future__ import annotations

import time

from rich.progress import BarColumn, Progress, SpinnerColumn, TimeElapsedColumn

from tunefree.core.console import description_column, plain_console
from tunefree.report.compared import memory
from tunefree.stream.batch import Batch
from tunefree.stream.source import Source
from tunefree.workflows.comparison import Comparison, ComparisonWatcher, Contestant, in_figures

LINE_SECONDS = 10.0  # between lines of progress where there is no terminal to draw a bar on
MUCH_MEMORY = 2**30  # bytes of all models from which on a hint is printed


class ComparisonDisplay(ComparisonWatcher):
    """A progress bar with rows, the best learner so far and the memory of all models."""

    def __init__(self) -> None:
        self.console = plain_console(stderr=True)
        self.last_line = time.monotonic()
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
                f"their models take {memory(comparison.bytes)} at first; --learner names fewer of them, "
                "--hash-bits makes them smaller"
            )
        self.share = source.progress()
        self.bar.start()

    def prepare(self, contestant: Contestant) -> None:
        self._report(f"preparing {contestant.name} (compiled the first time)")

    def step(self, comparison: Comparison, batch: Batch) -> None:
        best = comparison.ranked[0]
        line = f"{comparison.rows:,} rows, {best.name} leads with {in_figures(best.metrics.mean_loss())}"
        self._report(f"{line}, models take {memory(comparison.bytes)}", self.share(batch.position))

    def _report(self, line: str, share: float | None = None) -> None:
        now = time.monotonic()
        self.bar.update(self.task, description=line, total=None if share is None else 1.0, completed=share or 0.0)
        if not self.console.is_terminal and now - self.last_line > LINE_SECONDS:
            self.last_line = now
            self.console.print(line)

    def end(self, comparison: Comparison) -> None:
        self.bar.stop()

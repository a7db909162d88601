"""What `tunefree compare` prints while it learns."""

from __future__ import annotations

from tunefree.core.console import ProgressLine, plain_console
from tunefree.report.compared import memory
from tunefree.stream.batch import Batch
from tunefree.stream.source import Source
from tunefree.workflows.comparison import Comparison, ComparisonWatcher, Contestant, in_figures

MUCH_MEMORY = 2**30  # bytes of all models from which on a hint is printed


class ComparisonDisplay(ComparisonWatcher):
    """A progress bar with rows, the best learner so far and the memory of all models."""

    def __init__(self) -> None:
        self.console = plain_console(stderr=True)
        self.progress = ProgressLine(self.console)

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
        self.progress.bar.start()

    def prepare(self, contestant: Contestant) -> None:
        self.progress.show(f"preparing {contestant.name} (compiled the first time)")

    def step(self, comparison: Comparison, batch: Batch) -> None:
        best = comparison.ranked[0]
        line = f"{comparison.rows:,} rows, {best.name} leads with {in_figures(best.metrics.mean_loss())}"
        self.progress.show(f"{line}, models take {memory(comparison.bytes)}", self.share(batch.position))

    def end(self, comparison: Comparison) -> None:
        self.progress.close()

"""What `tunefree compare` prints while it learns."""

from __future__ import annotations

from typing import Any

from tunefree.core.console import ProgressLine, plain_console
from tunefree.report.compared import memory
from tunefree.stream.source import Source
from tunefree.training.callbacks import Callback
from tunefree.workflows.comparison import Comparison, in_figures

MUCH_MEMORY = 2**30  # bytes of all models from which on a hint is printed


class ComparisonDisplay(Callback):
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
        self.progress.show("preparing the learners (compiled the first time)")

    def step(self, comparison: Comparison, batch: Any) -> None:
        best = comparison.ranked[0]
        line = f"{comparison.rows:,} rows, {best.name} leads with {in_figures(best.metrics.mean_loss())}"
        self.progress.show(f"{line}, models take {memory(comparison.bytes)}", self.share(batch.position))

    def end(self, comparison: Comparison) -> None:
        self.progress.close()

"""Kempka, Kotlowski, Warmuth 2019, Figure 4: test accuracy after each epoch, from the runs of Figure 2."""

from __future__ import annotations

from dataclasses import replace

from tunefree.papers.experiments import data, epochs, methods, scinol_fig2
from tunefree.papers.experiments.epochs import Curve, Settings
from tunefree.papers.experiments.experiment import Report, Results


def report(settings: Settings, results: Results) -> Report:
    """Six panels of accuracy against epochs."""
    sets = {name: epochs.curves(settings, results, name) for name in data.ALL}
    return Report(
        draw=lambda figure: scinol_fig2.draw(figure, sets, "accuracy"),
        inches=(13.5, 6.8),
        numbers=scinol_fig2.numbers_of(sets, "accuracy"),
        reported="Accuracy leads to essentially the same conclusions as cross-entropy: ScInOL2 is better than ScInOL1, "
        "the learners with a rate vary more between runs, and the best is most often ScInOL2 or CoCoB.",
        results=_results(sets),
        differences=f"Rates are those with the least cross-entropy, as in Figure 2. "
        f"{scinol_fig2.differences(settings, sets)}",
    )


def _results(sets: dict[str, list[Curve]]) -> str:
    ends = []
    means = scinol_fig2.final_means(sets, "accuracy")
    for name, learners in means.items():
        percent = {title: 100 * mean for title, mean in learners.items()}
        leader = max(scinol_fig2.TITLES, key=percent.__getitem__)
        shown = f"{percent['ScInOL2']:.2f}, {percent['ScInOL1']:.2f}, best {leader} {percent[leader]:.2f}"
        ends.append(f"{name} {shown}, pool {percent[methods.POOL.title]:.2f}")
    better = sum(learners["ScInOL2"] > learners["ScInOL1"] for learners in means.values())
    return (
        "Mean test accuracy in per cent at the end (ScInOL2, ScInOL1, the best of the paper's learners, and of ours "
        f"the pool after one pass): {'; '.join(ends)}. ScInOL2 is better than ScInOL1 on {better} of {len(means)} sets."
    )


EXPERIMENT = replace(
    scinol_fig2.EXPERIMENT,
    name="scinol-fig4",
    title="Kempka, Kotlowski, Warmuth 2019, Figure 4: accuracy on six data sets, epoch after epoch",
    report=report,
    parts_from="scinol-fig2",
)

"""Kempka, Kotlowski, Warmuth 2019, Figure 2: test cross-entropy after each of 20 epochs on six data sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.papers.experiments import data, drawing, epochs, methods
from tunefree.papers.experiments.epochs import Curve, Settings
from tunefree.papers.experiments.experiment import Experiment, Report, Results, moments

FAINT_BAND = 0.09  # opacity of bands, many of which overlap
MARGIN = 0.06  # above and below the lines, as a fraction of the height of the axes
TITLES = [method.title for method in epochs.PAPER]
LEADERS = 6  # number of best learners that determine the range of a panel


def report(settings: Settings, results: Results) -> Report:
    """Six panels of cross-entropy against epochs."""
    sets = {name: epochs.curves(settings, results, name) for name in data.ALL}
    return Report(
        draw=lambda figure: draw(figure, sets, "cross_entropy"),
        inches=(13.5, 6.8),
        numbers=numbers_of(sets, "cross_entropy"),
        reported="ScInOL2 is better than ScInOL1 on every set, and both vary little between runs. SGD, AdaGrad, Adam "
        "and NAG vary much more although each has its best rate; the best is most often ScInOL2 or CoCoB. Alg1-K17 "
        "converges slowly, most of all on MNIST.",
        results=_results(sets),
        differences=differences(settings, sets),
    )


def numbers_of(sets: dict[str, list[Curve]], kind: str) -> list[dict[str, Any]]:
    """Mean and standard deviation over the runs, a row for each learner and epoch."""
    rows = []
    for name, lines in sets.items():
        for curve in lines:
            values = getattr(curve, kind)
            for epoch, ended in enumerate(values.T, 1):
                row = {"set": name, "learner": curve.method.title, "rate": _rate(curve), "epoch": epoch}
                rows.append(row | moments(kind, ended) | {"runs": len(values)})
    return rows


def _rate(curve: Curve) -> str:
    return "" if np.isnan(curve.rate) else f"{curve.rate:g}"


def final_values(sets: dict[str, list[Curve]], kind: str) -> dict[str, dict[str, np.ndarray]]:
    """Values of each run after the last epoch, by data set and learner."""
    return {name: {curve.method.title: getattr(curve, kind)[:, -1] for curve in lines} for name, lines in sets.items()}


def final_means(sets: dict[str, list[Curve]], kind: str) -> dict[str, dict[str, float]]:
    """Their means over the runs."""
    ends = final_values(sets, kind).items()
    return {name: {title: float(values.mean()) for title, values in learners.items()} for name, learners in ends}


def _results(sets: dict[str, list[Curve]]) -> str:
    """The ends of the paper's learners and of ours, and how much they vary between runs."""
    means = final_means(sets, "cross_entropy")
    leaders = {name: min(TITLES, key=learners.__getitem__) for name, learners in means.items()}
    ends = []
    for name, learners in means.items():
        leader = leaders[name]
        curve = next(curve for curve in sets[name] if curve.method.title == leader)
        best = f"best {methods.with_rate(curve.method, curve.rate)} {learners[leader]:.4g}"
        ends.append(f"{name} {learners['ScInOL2']:.4g}, {learners['ScInOL1']:.4g}, {best}")
    relative = [
        {title: values.std() / values.mean() for title, values in learners.items()}
        for learners in final_values(sets, "cross_entropy").values()
    ]
    deviations = ", ".join(f"{title} {100 * max(learners[title] for learners in relative):.2g} %" for title in TITLES)
    pool, steady = methods.POOL.title, methods.STEADY.title
    ours = "; ".join(f"{name} {learners[pool]:.4g}, {learners[steady]:.4g}" for name, learners in means.items())
    better = sum(learners["ScInOL2"] < learners["ScInOL1"] for learners in means.values())
    ahead = sum(learners[pool] < learners[leaders[name]] for name, learners in means.items())
    helped = sum(learners[steady] < learners["ScInOL2"] for learners in means.values())
    return (
        "Mean test cross-entropy at the end (ScInOL2, ScInOL1, the best of the paper's learners): "
        f"{'; '.join(ends)}. ScInOL2 is better than ScInOL1 on {better} of {len(means)} sets. Standard deviation "
        f"between runs at the end, relative to the mean, on the set where it is largest: {deviations}. Ours (the pool "
        f"after one pass, ScInOL2 on the steady view at the end): {ours}. One pass of the pool is below all of the "
        f"paper's learners at their end on {ahead} of {len(means)} sets; the steady view improves ScInOL2 on {helped}."
    )


def differences(settings: Settings, sets: dict[str, list[Curve]]) -> str:
    """Differences from the paper."""
    means = final_means(sets, "cross_entropy")
    sentences = [f"{name}: {data.ALL[name].stand_in}." for name in sets if data.ALL[name].stand_in]
    sentences.append(
        "Where the file has no split into training and test rows, all runs use the same random split; runs differ in "
        f"the order of the rows (seeds 0 to {settings.runs - 1}). All rates are run {settings.runs_of_all_rates} "
        f"times, the best of them {settings.runs} times. The sums of AdaGrad start at 0; those of TensorFlow's, which "
        "the paper may have used, start at 0.1. As in the authors' published code, pixels are divided by 255, and the "
        "categories of Bank have no feature for their first level. Other numbers are not rescaled. The paper's values "
        f"cannot be read from its figure, so only orderings are compared. {methods.NAG_OF_THE_AUTHORS}"
    )
    if settings.training_rows:
        sentences.append(f"At most {settings.training_rows:,} training rows: this is not the paper's size.")
    ahead = {name: sum(learners[one] < learners["CoCoB"] for one in TITLES) for name, learners in means.items()}
    if behind := [name for name, count in ahead.items() if 2 * count >= len(TITLES)]:
        sentences.append(f"CoCoB, one of the two best in the paper, is in the worse half on {', '.join(behind)}.")
    if worse := [name for name, learners in means.items() if learners["ScInOL2"] >= learners["ScInOL1"]]:
        sentences.append(f"ScInOL2 is not better than ScInOL1 on {', '.join(worse)}.")
    return " ".join(sentences)


def draw(figure: Any, sets: dict[str, list[Curve]], kind: str) -> None:
    """A panel for each data set, with labels of learner and rate at the ends of the lines."""
    panels = figure.subplots(2, 3, gridspec_kw={"wspace": 1.0, "hspace": 0.34})
    unit = "test cross-entropy (nats)" if kind == "cross_entropy" else "test accuracy (%)"
    for number, (axes, (name, lines)) in enumerate(zip(panels.ravel(), sets.items(), strict=True)):
        drawing.frame(axes, name, "epochs" if number >= 3 else "", unit if number % 3 == 0 else "")
        _panel(axes, lines, kind)


def _panel(axes: Any, lines: list[Curve], kind: str) -> None:
    values = [(curve, getattr(curve, kind) * (100.0 if kind == "accuracy" else 1.0)) for curve in lines]
    last = max(shown.shape[1] for _, shown in values)
    low, high = _range([shown.mean(axis=0) for _, shown in values], kind)
    axes.set_xlim(1, last)
    axes.set_ylim(low, high)
    axes.xaxis.get_major_locator().set_params(integer=True)
    ends = []
    for curve, shown in values:
        style, title = curve.method.style, methods.with_rate(curve.method, curve.rate)
        mean, deviation = shown.mean(axis=0), shown.std(axis=0)
        if len(mean) == 1:  # one epoch: a horizontal line
            mean, deviation = mean.repeat(last), deviation.repeat(last)
            title = title.replace(" (", ", 1 epoch (")
        within = low <= mean[-1] <= high
        # Bands around lines that leave the panel would hide the others.
        drawing.band(axes, np.arange(1, last + 1), mean, deviation if within else np.zeros(last), style, FAINT_BAND)
        ends.append(
            drawing.EndLabel(
                float(mean[-1]), title if within else f"{title} ({mean[-1]:.3g})", style.color, curve.method.is_ours
            )
        )
    drawing.label_ends(axes, ends, 0.095)


def _range(means: list[np.ndarray], kind: str) -> tuple[float, float]:
    """Range of the best learners after the last epoch, over all epochs; other lines may leave the panel."""
    worst_first = -1.0 if kind == "cross_entropy" else 1.0
    leaders = sorted(means, key=lambda mean: -worst_first * mean[-1])[:LEADERS]
    low, high = min(mean.min() for mean in leaders), max(mean.max() for mean in leaders)
    return low - MARGIN * (high - low), high + MARGIN * (high - low)


EXPERIMENT = Experiment(
    name="scinol-fig2",
    title="Kempka, Kotlowski, Warmuth 2019, Figure 2: cross-entropy on six data sets, epoch after epoch",
    full=epochs.FULL,
    quick=epochs.QUICK,
    parts=epochs.parts,
    work=epochs.work,
    report=report,
    sets=tuple(data.ALL),
    lacks=data.LACKS,
)

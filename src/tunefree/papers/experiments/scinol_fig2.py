"""Kempka, Kotlowski, Warmuth 2019, Figure 2: test cross-entropy after each of 20 epochs on six data sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.papers.experiments import data, drawing, epochs, methods
from tunefree.papers.experiments.epochs import Curve, Settings
from tunefree.papers.experiments.experiment import Experiment, Report, Results, moments

FAINT_BAND = 0.09  # opacity of bands, many of which overlap
MARGIN = 0.06  # above and below the lines, as a fraction of the height of the axes
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
        results=f"{_best_learners(sets)} {_deviations(sets)} {_ours(sets)}",
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


def _best_learners(sets: dict[str, list[Curve]]) -> str:
    """The best of the paper's learners on each data set, and ScInOL2 compared with ScInOL1."""
    ends, sentences, better = final_values(sets, "cross_entropy"), [], []
    names = [method.title for method in epochs.PAPER]
    for name, learners in ends.items():
        leader = min(names, key=lambda title: learners[title].mean())
        curve = next(curve for curve in sets[name] if curve.method.title == leader)
        led = methods.with_rate(curve.method, curve.rate)
        one, two = learners["ScInOL1"].mean(), learners["ScInOL2"].mean()
        sentences.append(f"{name} {two:.4g}, {one:.4g}, best {led} {learners[leader].mean():.4g}")
        better += [name] if two < one else []
    return (
        "Mean test cross-entropy at the end (ScInOL2, ScInOL1, the best of the paper's learners): "
        f"{'; '.join(sentences)}. ScInOL2 is better than ScInOL1 on {len(better)} of {len(ends)} sets."
    )


def _deviations(sets: dict[str, list[Curve]]) -> str:
    """Standard deviations after the last epoch, relative to the mean."""
    ends, sentences = final_values(sets, "cross_entropy"), []
    for method in epochs.PAPER:
        relative = [learners[method.title].std() / learners[method.title].mean() for learners in ends.values()]
        sentences.append(f"{method.title} {100 * max(relative):.2g} %")
    shown = ", ".join(sentences)
    return f"Standard deviation between runs at the end, relative to the mean, on the set where it is largest: {shown}."


def _ours(sets: dict[str, list[Curve]]) -> str:
    """One pass of the pool, and ScInOL2 on the steady view, compared with all epochs of the paper's learners."""
    ends, names = final_values(sets, "cross_entropy"), [method.title for method in epochs.PAPER]
    pool, steady = methods.POOL.title, methods.STEADY.title
    ahead = [
        name for name, ends_here in ends.items() if ends_here[pool].mean() < min(ends_here[t].mean() for t in names)
    ]
    helped = [name for name, ends_here in ends.items() if ends_here[steady].mean() < ends_here["ScInOL2"].mean()]
    sentences = "; ".join(
        f"{name} {ends_here[pool].mean():.4g}, {ends_here[steady].mean():.4g}" for name, ends_here in ends.items()
    )
    return (
        f"Ours (the pool after one pass, ScInOL2 on the steady view at the end): {sentences}. One pass of the pool "
        f"is below all of the paper's learners at their end on {len(ahead)} of {len(ends)} sets; the steady view "
        f"improves ScInOL2 on {len(helped)}."
    )


def differences(settings: Settings, sets: dict[str, list[Curve]]) -> str:
    """Differences from the paper."""
    worse = [n for n, e in final_values(sets, "cross_entropy").items() if e["ScInOL2"].mean() >= e["ScInOL1"].mean()]
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
    if behind := _sets_where_cocob_is_behind(sets):
        sentences.append(f"CoCoB, one of the two best in the paper, is in the worse half on {behind}.")
    if worse:
        sentences.append(f"ScInOL2 is not better than ScInOL1 on {', '.join(worse)}.")
    return " ".join(sentences)


def _sets_where_cocob_is_behind(sets: dict[str, list[Curve]]) -> str:
    """The data sets on which CoCoB is in the worse half after the last epoch."""
    names = [method.title for method in epochs.PAPER]
    ends = final_values(sets, "cross_entropy")
    behind = [
        name
        for name, learners in ends.items()
        if 2 * sum(learners[title].mean() < learners["CoCoB"].mean() for title in names) >= len(names)
    ]
    return ", ".join(behind)


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

"""Kempka, Kotlowski, Warmuth 2019, Figure 2: test cross-entropy after each of 20 epochs on six data sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.reproduce import contestants, data, drawing, epochs
from tunefree.reproduce.epochs import Curve, Settings
from tunefree.reproduce.experiment import Experiment, Report, Results

FAINT = 0.09  # strength of bands, of which many overlap
ROOM = 0.06  # above and below the lines, of the height of the axes
LEADERS = 6  # learners whose ends are always within a panel


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
        found=f"{_leads(sets)} {_spreads(sets)} {_ours(sets)}",
        differences=differences(settings, sets),
    )


def numbers_of(sets: dict[str, list[Curve]], kind: str) -> list[dict[str, Any]]:
    """Mean and standard deviation over the runs, a row for each learner and epoch."""
    rows = []
    for name, lines in sets.items():
        for curve in lines:
            values = getattr(curve, kind)
            for epoch, (mean, deviation) in enumerate(zip(values.mean(axis=0), values.std(axis=0), strict=True), 1):
                row = {"set": name, "learner": curve.contestant.title, "rate": _rate(curve), "epoch": epoch}
                rows.append(row | {f"{kind}_mean": float(mean), f"{kind}_sd": float(deviation), "runs": len(values)})
    return rows


def _rate(curve: Curve) -> str:
    return "" if np.isnan(curve.rate) else f"{curve.rate:g}"


def ends_of(sets: dict[str, list[Curve]], kind: str) -> dict[str, dict[str, np.ndarray]]:
    """What each run ended with, by data set and learner."""
    return {
        name: {curve.contestant.title: getattr(curve, kind)[:, -1] for curve in lines} for name, lines in sets.items()
    }


def _leads(sets: dict[str, list[Curve]]) -> str:
    """Who ends best on each set among the paper's learners, and ScInOL2 beside ScInOL1."""
    ends, told, better = ends_of(sets, "cross_entropy"), [], []
    names = [contestant.title for contestant in epochs.PAPER]
    for name, learners in ends.items():
        leader = min(names, key=lambda title: learners[title].mean())
        curve = next(curve for curve in sets[name] if curve.contestant.title == leader)
        led = contestants.with_rate(curve.contestant, curve.rate)
        one, two = learners["ScInOL1"].mean(), learners["ScInOL2"].mean()
        told.append(f"{name} {two:.4g}, {one:.4g}, best {led} {learners[leader].mean():.4g}")
        better += [name] if two < one else []
    return (
        f"Mean test cross-entropy at the end (ScInOL2, ScInOL1, the best of the paper's learners): {'; '.join(told)}. "
        f"ScInOL2 is better than ScInOL1 on {len(better)} of {len(ends)} sets."
    )


def _spreads(sets: dict[str, list[Curve]]) -> str:
    """Standard deviations at the end, relative to the mean."""
    ends, told = ends_of(sets, "cross_entropy"), []
    for contestant in epochs.PAPER:
        relative = [learners[contestant.title].std() / learners[contestant.title].mean() for learners in ends.values()]
        told.append(f"{contestant.title} {100 * max(relative):.2g} %")
    shown = ", ".join(told)
    return f"Standard deviation between runs at the end, relative to the mean, on the set where it is largest: {shown}."


def _ours(sets: dict[str, list[Curve]]) -> str:
    """One pass of the pool, and the steady view, beside all epochs of the paper's learners."""
    ends, names = ends_of(sets, "cross_entropy"), [contestant.title for contestant in epochs.PAPER]
    pool, steady = contestants.POOL.title, contestants.STEADY.title
    ahead = [
        name for name, ends_here in ends.items() if ends_here[pool].mean() < min(ends_here[t].mean() for t in names)
    ]
    helped = [name for name, ends_here in ends.items() if ends_here[steady].mean() < ends_here["ScInOL2"].mean()]
    told = "; ".join(
        f"{name} {ends_here[pool].mean():.4g}, {ends_here[steady].mean():.4g}" for name, ends_here in ends.items()
    )
    return (
        f"Ours (the pool after one pass, ScInOL2 on the steady view at the end): {told}. One pass of the pool is below "
        f"all of the paper's learners at their end on {len(ahead)} of {len(ends)} sets; the steady view improves "
        f"ScInOL2 on {len(helped)}."
    )


def differences(settings: Settings, sets: dict[str, list[Curve]]) -> str:
    """What is not as in the paper."""
    worse = [n for n, e in ends_of(sets, "cross_entropy").items() if e["ScInOL2"].mean() >= e["ScInOL1"].mean()]
    told = [f"{name}: {data.ALL[name].stand_in}." for name in sets if data.ALL[name].stand_in]
    told.append(
        "The split into training and test rows, where the file has none, is one for all runs; runs differ in the order "
        f"of the rows (seeds 0 to {settings.runs - 1}). All rates are run {settings.runs_of_all_rates} times, the best "
        f"of them {settings.runs} times. AdaGrad begins with sums of 0; TensorFlow's, which the paper may have used, "
        "begins with 0.1. Numbers are as the files have them, pixels from 0 to 255; should the paper have divided "
        "them, learners that feel the scale would do better on MNIST. The paper's digits cannot be read off its "
        "picture, so only orderings are compared."
    )
    if settings.training_rows:
        told.append(f"At most {settings.training_rows:,} training rows: this is not the paper's size.")
    if behind := _behind(sets):
        told.append(f"CoCoB, one of the two best in the paper, is in the worse half on {behind}.")
    if worse:
        told.append(f"ScInOL2 is not better than ScInOL1 on {', '.join(worse)}.")
    return " ".join(told)


def _behind(sets: dict[str, list[Curve]]) -> str:
    """The sets on which CoCoB ends in the worse half."""
    names = [contestant.title for contestant in epochs.PAPER]
    ends = ends_of(sets, "cross_entropy")
    behind = [
        name
        for name, learners in ends.items()
        if 2 * sum(learners[title].mean() < learners["CoCoB"].mean() for title in names) >= len(names)
    ]
    return ", ".join(behind)


def draw(figure: Any, sets: dict[str, list[Curve]], kind: str) -> None:
    """A panel for each data set; names and rates at the ends of the lines."""
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
        style, title = curve.contestant.style, contestants.with_rate(curve.contestant, curve.rate)
        mean, deviation = shown.mean(axis=0), shown.std(axis=0)
        if len(mean) == 1:  # one epoch: a level to be seen beside all
            mean, deviation = mean.repeat(last), deviation.repeat(last)
            title = title.replace(" (", ", 1 epoch (")
        within = low <= mean[-1] <= high
        # Bands around lines that have left the panel would only hide the others.
        drawing.band(axes, np.arange(1, last + 1), mean, deviation if within else np.zeros(last), style, FAINT)
        ends.append(
            drawing.End(
                float(mean[-1]), title if within else f"{title} ({mean[-1]:.3g})", style.color, curve.contestant.is_ours
            )
        )
    drawing.name_ends(axes, ends, 0.095)


def _range(means: list[np.ndarray], kind: str) -> tuple[float, float]:
    """All epochs of the learners that lead at the end; what is far from them is outside."""
    worst_first = -1.0 if kind == "cross_entropy" else 1.0
    leaders = sorted(means, key=lambda mean: -worst_first * mean[-1])[:LEADERS]
    low, high = min(mean.min() for mean in leaders), max(mean.max() for mean in leaders)
    return low - ROOM * (high - low), high + ROOM * (high - low)


EXPERIMENT = Experiment(
    name="scinol-fig2",
    title="Kempka, Kotlowski, Warmuth 2019, Figure 2: cross-entropy on six data sets, epoch after epoch",
    full=epochs.FULL,
    quick=epochs.QUICK,
    parts=epochs.parts,
    work=epochs.work,
    report=report,
    sets=tuple(data.ALL),
)

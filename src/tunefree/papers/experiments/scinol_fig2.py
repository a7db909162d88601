"""Kempka, Kotlowski, Warmuth 2019, Figure 2: test cross-entropy after each of 20 epochs on six data sets.

Every learner makes several passes (epochs) over the shuffled training rows. Cross-entropy and accuracy on the test rows
are evaluated after each epoch. All learners of a run see the rows in the same order. Learners with a learning rate are
run with all rates in the first runs. The rate with the least mean cross-entropy on the test rows after the last epoch
is used in the remaining runs. (As in the paper, the rate is thus chosen on the test rows.)
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.rows import n_rows, rows_at
from tunefree.losses.objectives import chosen
from tunefree.papers.experiments import data, drawing, methods
from tunefree.papers.experiments.experiment import Arrays, Claim, Experiment, Point, Report, Results, moments
from tunefree.papers.experiments.methods import Method, Sample

PAPER = (
    methods.SGD,
    methods.ADAGRAD,
    methods.ADAM,
    methods.NAG,
    methods.COCOB,
    methods.KOTLOWSKI,
    methods.SCINOL1,
    methods.SCINOL2,
)
LEARNERS = (*PAPER, *methods.OURS)


class Settings(NamedTuple):
    """Sizes of the experiment; the seed of run r is r."""

    rates: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    runs: int = 10
    runs_of_all_rates: int = 2
    epochs: int = 20
    training_rows: int = 0  # 0: all
    test_rows: int = 0


QUICK = Settings((1e-5, 1e-4, 1e-3, 1e-2, 1e-1), 3, runs_of_all_rates=1, epochs=3, training_rows=2000, test_rows=1500)


class Curve(NamedTuple):
    """Results of a learner on a data set."""

    method: Method
    rate: float | None  # None for learners without one
    cross_entropy: np.ndarray  # (runs, epochs)
    accuracy: np.ndarray  # (runs, epochs)


def parts(settings: Settings, results: Results) -> list[Point]:
    """The parts of the first runs, and then those of the remaining runs with the best rates."""
    parts: list[Point] = []
    first = min(settings.runs_of_all_rates, settings.runs)
    for name, method in product(data.ALL, LEARNERS):
        rates = methods.rates_of(method, settings.rates)
        begun = [(name, method.title, rate, run) for rate in rates for run in range(first)]
        parts += begun
        if all(point in results for point in begun):
            rate = best_rate(settings, results, name, method)
            parts += [(name, method.title, rate, run) for run in range(first, settings.runs)]
    return parts


def best_rate(settings: Settings, results: Results, name: str, method: Method) -> float | None:
    """The rate with the least mean cross-entropy at the end of the first runs; None for learners without a rate."""
    first = range(min(settings.runs_of_all_rates, settings.runs))

    def end(rate: float | None) -> float:
        return float(np.mean([results[name, method.title, rate, run]["cross_entropy"][-1] for run in first]))

    return min(methods.rates_of(method, settings.rates), key=end)


def curves(settings: Settings, results: Results, name: str) -> list[Curve]:
    """The results of all learners on a data set, each at its best rate."""
    curves = []
    for method in LEARNERS:
        rate = best_rate(settings, results, name, method)
        runs = [results[name, method.title, rate, run] for run in range(settings.runs)]
        curves.append(
            Curve(method, rate, *(np.array([run[kind] for run in runs]) for kind in ("cross_entropy", "accuracy")))
        )
    return curves


def work(files: dict[str, Path], settings: Settings, name: str, title: str, rate: float | None, run: int) -> Arrays:
    """One run of one learner: test cross-entropy and accuracy after each epoch."""
    prepared = data.prepare(name, files[name], settings.training_rows, settings.test_rows)
    random, method = np.random.default_rng(run), methods.ALL[title]
    orders = [random.permutation(n_rows(prepared.train)) for _ in range(settings.epochs)]
    passes = orders[:1] if method is methods.POOL else orders  # the pool makes one pass, its default
    train, classes = prepared.train, prepared.train_classes.astype(np.int64)
    stream = (Sample(rows_at(train, order), classes[order], i > 0, True) for i, order in enumerate(passes))
    losses, hits = [], []
    for margins in methods.margins_along(method, rate, stream, prepared.test, prepared.labels, prepared.n_features):
        losses.append(methods.cross_entropy(margins, prepared.test_classes))
        hits.append(np.mean(chosen(margins) == prepared.test_classes))
    return {"cross_entropy": np.array(losses), "accuracy": np.array(hits)}


FAINT_BAND = 0.09  # opacity of bands, many of which overlap
MARGIN = 0.06  # above and below the lines, as a fraction of the height of the axes
TITLES = [method.title for method in PAPER]
LEADERS = 6  # number of best learners that determine the range of a panel


def report(settings: Settings, results: Results, kind: str = "cross_entropy") -> Report:
    """Six panels of cross-entropy, or accuracy, against epochs."""
    sets = {name: curves(settings, results, name) for name in data.ALL}
    size = f"At most {settings.training_rows:,} training rows: this is not the paper's size. "
    return Report(
        draw=lambda figure: draw(figure, sets, kind),
        inches=(13.5, 6.8),
        numbers=numbers_of(sets, kind),
        claims=_claims(sets, kind),
        differences=f"{' '.join(f'{name}: {data.ALL[name].stand_in}.' for name in sets if data.ALL[name].stand_in)} "
        "Where the file has no split into training and test rows, all runs use the same random split; runs differ in "
        f"the order of the rows (seeds 0 to {settings.runs - 1}). All rates are run {settings.runs_of_all_rates} "
        f"times, those with the least cross-entropy {settings.runs} times. The sums of AdaGrad start at 0; those of "
        "TensorFlow's, which the paper may have used, start at 0.1. As in the authors' published code, pixels are "
        "divided by 255, and the categories of Bank have no feature for their first level. Other numbers are not "
        f"rescaled. {size if settings.training_rows else ''}The paper's values cannot be read from its figure, so only "
        f"orderings are compared. {methods.NAG_OF_THE_AUTHORS}",
    )


def numbers_of(sets: dict[str, list[Curve]], kind: str) -> list[dict[str, Any]]:
    """Mean and standard deviation over the runs, a row for each learner and epoch."""
    rows = []
    for name, lines in sets.items():
        for curve in lines:
            values, rate = getattr(curve, kind), "" if curve.rate is None else f"{curve.rate:g}"
            for epoch, ended in enumerate(values.T, 1):
                row = {"set": name, "learner": curve.method.title, "rate": rate, "epoch": epoch}
                rows.append(row | moments(kind, ended) | {"runs": len(values)})
    return rows


def final_values(sets: dict[str, list[Curve]], kind: str) -> dict[str, dict[str, np.ndarray]]:
    """Values of each run after the last epoch, by data set and learner."""
    return {name: {curve.method.title: getattr(curve, kind)[:, -1] for curve in lines} for name, lines in sets.items()}


def _claims(sets: dict[str, list[Curve]], kind: str) -> list[Claim]:
    """The paper's claims on the ends of its learners, and how much they vary between runs."""
    ends = final_values(sets, kind)
    sign = -1.0 if kind == "accuracy" else 1.0
    better = sum(sign * one["ScInOL2"].mean() < sign * one["ScInOL1"].mean() for one in ends.values())
    leaders = {name: min(TITLES, key=lambda title: sign * one[title].mean()) for name, one in ends.items()}
    shown = "; ".join(f"{name}: {title} {ends[name][title].mean():.4g}" for name, title in leaders.items())
    spread = {title: max(one[title].std() / one[title].mean() for one in ends.values()) for title in TITLES}
    with_rates = [spread[method.title] for method in PAPER if method.has_rate]
    return [
        Claim("ScInOL2 is better than ScInOL1 on every set", better == len(sets), f"on {better} of {len(sets)} sets"),
        Claim(
            "The best is most often ScInOL2 or CoCoB",
            2 * sum(title in ("ScInOL2", "CoCoB") for title in leaders.values()) > len(sets),
            shown,
        ),
        Claim(
            "ScInOL1 and ScInOL2 vary less between runs than learners with a rate",
            max(spread["ScInOL1"], spread["ScInOL2"]) < min(with_rates),
            "standard deviations relative to the mean, on the set where they are largest, "
            + ", ".join(f"{title} {100 * share:.2g} %" for title, share in spread.items()),
        ),
    ]


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
    quick=QUICK,
    parts=parts,
    work=work,
    report=report,
    sets=tuple(data.ALL),
    lacks=data.LACKS,
)

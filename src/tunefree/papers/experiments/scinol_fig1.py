"""Kempka, Kotlowski, Warmuth 2019, Figure 1: learners on features of very different scales.

21 features, the i-th normal with standard deviation 2^(i - 11); P(y = 1 | x) = 1 / (1 + exp(-x u)), where u_i is +-1
over the standard deviation, with random signs. One margin, no constant feature. The paper's learners are played as they
are printed.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tunefree import papers
from tunefree.core.rows import part, table
from tunefree.losses import Logistic
from tunefree.papers.experiments import drawing, methods
from tunefree.papers.experiments.experiment import Arrays, Claim, Experiment, Point, Report, Results, moments
from tunefree.papers.experiments.methods import Method, Sample
from tunefree.papers.losses import OneMargin
from tunefree.papers.playing import play_rounds

FEATURES = 21
PAPER = (methods.SGD, methods.ADAGRAD, methods.ADAM, methods.NAG, methods.SFMD, methods.SCINOL1, methods.SCINOL2)
LEARNERS = (*PAPER, *methods.OURS)
PRINTED = {method.title: getattr(papers, method.title, papers.OGD) for method in PAPER}  # SGD is OGD there
LABELS = ["0", "1"]
OURS_INTERVAL = 5  # factor of the rounds between evaluations of our methods, which take longer
NOT_INVARIANT = ("SGD", "AdaGrad", "Adam")


class Settings(NamedTuple):
    """Sizes; the seeds are 0 for u, (1) for the test rows, (2, r) for training set r.

    A seed (s, 0) draws the same numbers as s, so test rows and training sets have no first number in common.
    """

    rates: tuple[float, ...] = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
    training_sets: int = 10
    training_rows: int = 5000
    test_rows: int = 100_000
    rounds_between_tests: int = 50


class Line(NamedTuple):
    """Results of a learner at one learning rate."""

    method: Method
    rate: float | None  # None for learners without one
    rounds: np.ndarray  # (evaluations,) rows learned before each
    losses: np.ndarray  # (training sets, evaluations) test cross-entropy

    @property
    def end(self) -> float:
        """Mean test cross-entropy after the last round."""
        return float(self.losses[:, -1].mean())


def parts(settings: Settings, results: Results) -> list[Point]:
    """One part for each learner, rate and training set."""
    return [(*learner, run) for learner in _learners(settings) for run in range(settings.training_sets)]


def _learners(settings: Settings) -> list[tuple[str, float | None]]:
    """All learners and rates."""
    return [(method.title, rate) for method in LEARNERS for rate in methods.rates_of(method, settings.rates)]


@cache
def true_weights() -> np.ndarray:
    """The true weights u."""
    signs = np.random.default_rng(0).choice([-1.0, 1.0], FEATURES)
    return signs / 2.0 ** np.arange(-10, FEATURES - 10)


@cache
def draw_rows(n: int, run: int | None) -> Sample:
    """Sample the rows of a training set, or of the test set (``run`` is None)."""
    random = np.random.default_rng([1] if run is None else [2, run])
    x = random.normal(size=(n, FEATURES)) * 2.0 ** np.arange(-10, FEATURES - 10)
    classes = (random.random(n) < 1.0 / (1.0 + np.exp(-x @ true_weights()))).astype(np.int64)
    rows = table(x, np.arange(1, FEATURES + 1), np.empty((n, 0)))._replace(constant=0.0)
    return Sample(rows, classes)


def work(files: dict[str, Path], settings: Settings, title: str, rate: float | None, run: int) -> Arrays:
    """Test cross-entropy at regular intervals."""
    train, test = draw_rows(settings.training_rows, run), draw_rows(settings.test_rows, None)
    method = methods.ALL[title]
    interval = settings.rounds_between_tests * (OURS_INTERVAL if method.is_ours else 1)
    stops = np.arange(interval, settings.training_rows + 1, interval)
    if method.is_ours:
        stream = (
            Sample(part(train.rows, stop - interval, stop), train.codes[stop - interval : stop])
            for stop in stops.tolist()
        )
        margins = methods.margins_along(method, rate, stream, test.rows, LABELS, FEATURES + 1)
    else:
        algorithm, y = PRINTED[title](*([] if rate is None else [rate])), 2.0 * train.codes - 1.0
        played = play_rounds(algorithm, train.rows.numbers, y, OneMargin(Logistic(), "logistic"), set(stops.tolist()))
        margins = (test.rows.numbers @ weights for weights, _ in played.functions)
    return {"rounds": stops, "losses": np.array([methods.cross_entropy(one, test.codes) for one in margins])}


def reference_losses(settings: Settings) -> tuple[float, float]:
    """Test cross-entropy of u and of the zero vector."""
    test = draw_rows(settings.test_rows, None)
    margins = test.rows.numbers @ true_weights()[:, None]
    return methods.cross_entropy(margins, test.codes), methods.cross_entropy(0.0 * margins, test.codes)


def lines_of(settings: Settings, results: Results) -> list[Line]:
    """The results of all learners at all rates."""
    lines = []
    for title, rate in _learners(settings):
        sets = [results[title, rate, run] for run in range(settings.training_sets)]
        losses = np.array([one["losses"] for one in sets])
        lines.append(Line(methods.ALL[title], rate, sets[0]["rounds"], losses))
    return lines


def best_of(lines: list[Line], title: str) -> Line:
    """A learner's results at the rate with the least loss at the end."""
    return min((line for line in lines if line.method.title == title), key=lambda line: line.end)


def report(settings: Settings, results: Results) -> Report:
    """Loss against rounds, in full and enlarged between the losses of u and of the zero vector."""
    lines, (least, zero) = lines_of(settings, results), reference_losses(settings)
    above = [line for line in lines if line.method.title in NOT_INVARIANT]
    worse = [line for line in above if line.end > zero]
    ranked = sorted((best_of(lines, method.title) for method in LEARNERS), key=lambda line: line.end)
    order = ", ".join(f"{methods.with_rate(line.method, line.rate)} {line.end:.4g}" for line in ranked)
    ends = {line.method.title: line.end for line in ranked}
    return Report(
        draw=lambda figure: _draw(figure, lines, least, zero),
        inches=(12.0, 4.9),
        numbers=_numbers(lines),
        claims=[
            Claim(
                "SGD, AdaGrad and Adam are mostly worse than the zero vector",
                2 * len(worse) > len(above),
                f"in {len(worse)} of {len(above)} settings, {zero:.4g} nats being the zero vector's cross-entropy",
            ),
            Claim(
                "NAG and SFMD do best at their best rates",
                max(ends["NAG"], ends["SFMD"]) < min(ends["ScInOL1"], ends["ScInOL2"]),
                f"{order}; the true u {least:.4g}",
            ),
            Claim(
                "ScInOL1 leaves zero only slowly, ScInOL2 comes close without any tuning",
                ends["ScInOL2"] < ends["ScInOL1"] < zero,
                f"{ends['ScInOL1']:.4g} and {ends['ScInOL2']:.4g}",
            ),
        ],
        differences="The paper's values cannot be read from its figure, so only orderings are compared. u and the test "
        "rows are the same for all training sets; the paper does not state whether they are. Our methods are evaluated "
        f"every {OURS_INTERVAL * settings.rounds_between_tests} rounds. Seeds: 0 for u, (1) for the test rows, (2, r) "
        f"for training set r. {methods.NAG_OF_THE_AUTHORS}",
    )


def _numbers(lines: list[Line]) -> list[dict[str, Any]]:
    rows = []
    for line in lines:
        rate = "" if line.rate is None else f"{line.rate:g}"
        for rounds, losses in zip(line.rounds.tolist(), line.losses.T, strict=True):
            row = {"learner": line.method.title, "rate": rate, "rounds": rounds}
            rows.append(row | moments("cross_entropy", losses))
    return rows


def _draw(figure: Any, lines: list[Line], least: float, zero: float) -> None:
    whole, zoomed = figure.subplots(1, 2, gridspec_kw={"wspace": 0.62})
    best = [best_of(lines, method.title) for method in LEARNERS]
    for axes, title in ((whole, "(a) all rates"), (zoomed, "(b) between the dashed lines")):
        drawing.frame(axes, title, "rounds", "test cross-entropy (nats)")
        for loss in (least, zero):
            axes.axhline(loss, color="black", dashes=(4, 3), linewidth=0.9)
        axes.set_xlim(0, int(lines[0].rounds[-1]))
        for line in lines:
            style = line.method.style._replace(width=0.8) if line.method.has_rate else line.method.style
            axes.plot(line.rounds, line.losses.mean(axis=0), **style.options)
    for line in best:  # one band for each learner whose line is in the panel: more would hide the lines
        if line.end <= zero:
            drawing.band(zoomed, line.rounds, line.losses.mean(axis=0), line.losses.std(axis=0), line.method.style)
    highest = max(float(line.losses.mean(axis=0).max()) for line in lines)
    whole.set_yscale("log")
    whole.set_ylim(0.9 * least, 2.0 * highest)
    drawing.plain_numbers(whole.yaxis)
    zoomed.set_ylim(least - 0.1 * (zero - least), zero + 0.08 * (zero - least))
    _name_ends(whole, zoomed, lines, best)
    for loss, text, above in ((least, "the true u", False), (zero, "zero vector", True)):
        apart, side = (4, "bottom") if above else (-4, "top")
        zoomed.annotate(text, (0.02 * zoomed.get_xlim()[1], loss), (0, apart), textcoords="offset points", va=side)


def _name_ends(whole: Any, zoomed: Any, lines: list[Line], best: list[Line]) -> None:
    """Label each learner at its median rate in (a), and at its best rate, if within the panel, in (b)."""
    middle = []
    for line in best:
        losses = sorted(other.end for other in lines if other.method == line.method)
        method = line.method
        middle.append(drawing.EndLabel(losses[len(losses) // 2], method.title, method.style.color, method.is_ours))
    drawing.label_ends(whole, middle)
    ends = []
    for line in best:
        if line.end <= zoomed.get_ylim()[1]:
            title = f"{methods.with_rate(line.method, line.rate)}  {line.end:.3f}"
            ends.append(drawing.EndLabel(line.end, title, line.method.style.color, line.method.is_ours))
    drawing.label_ends(zoomed, ends)


EXPERIMENT = Experiment(
    name="scinol-fig1",
    title="Kempka, Kotlowski, Warmuth 2019, Figure 1: 21 features of very different scales",
    quick=Settings(training_sets=3, test_rows=5000, rounds_between_tests=250),
    parts=parts,
    work=work,
    report=report,
)

"""Runs of several epochs over six data sets, for Figures 2 and 4 of Kempka, Kotlowski, Warmuth 2019.

Every learner makes several passes (epochs) over the shuffled training rows. Cross-entropy and accuracy on the test rows
are evaluated after each epoch. All learners of a run see the rows in the same order. Learners with a learning rate are
run with all rates in the first runs. The rate with the least mean cross-entropy on the test rows after the last epoch
is used in the remaining runs. (As in the paper, the rate is thus chosen on the test rows.)
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tunefree.core.rows import n_rows, rows_at
from tunefree.losses.objectives import chosen
from tunefree.papers.experiments import data, methods
from tunefree.papers.experiments.experiment import Arrays, Point, Results
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

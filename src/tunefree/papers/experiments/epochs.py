"""Runs of several epochs over six data sets, for Figures 2 and 4 of Kempka, Kotlowski, Warmuth 2019.

Every learner makes several passes (epochs) over the shuffled training rows. Cross-entropy and accuracy on the test rows
are evaluated after each epoch. All learners of a run see the rows in the same order. Learners with a learning rate are
run with all rates in the first runs. The rate with the least mean cross-entropy on the test rows after the last epoch
is used in the remaining runs. (As in the paper, the rate is thus chosen on the test rows.)
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from tunefree.core.rows import n_rows, rows_at
from tunefree.losses.objectives import chosen
from tunefree.model.targets import Labels
from tunefree.papers.experiments import data, methods
from tunefree.papers.experiments.experiment import Arrays, Part, Results
from tunefree.papers.experiments.methods import Method

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
OURS = (methods.STEADY, methods.POOL)


class Settings(NamedTuple):
    """Sizes of the experiment; the seed of run r is r."""

    rates: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    runs: int = 10
    runs_of_all_rates: int = 2
    epochs: int = 20
    training_rows: int = 0  # 0: all
    test_rows: int = 0


FULL = Settings()
QUICK = Settings((1e-5, 1e-4, 1e-3, 1e-2, 1e-1), 3, runs_of_all_rates=1, epochs=3, training_rows=2000, test_rows=1500)


class Curve(NamedTuple):
    """Results of a learner on a data set."""

    method: Method
    rate: float  # NaN for learners without one
    cross_entropy: np.ndarray  # (runs, epochs)
    accuracy: np.ndarray  # (runs, epochs)


def parts(settings: Settings, results: Results) -> list[Part]:
    """The parts of the first runs, and then those of the remaining runs with the best rates."""
    parts = []
    for name in data.ALL:
        for method in (*PAPER, *OURS):
            first = min(settings.runs_of_all_rates, settings.runs)
            rates = settings.rates if method.has_rate else (float("nan"),)
            begun = [_part(settings, name, method, rate, run) for rate in rates for run in range(first)]
            parts += begun
            if all(part.name in results for part in begun):
                rate = best_rate(settings, results, name, method)
                parts += [_part(settings, name, method, rate, run) for run in range(first, settings.runs)]
    return parts


def _part(settings: Settings, name: str, method: Method, rate: float, run: int) -> Part:
    arguments = {
        "name": name,
        "learner": method.learner,
        "view": method.view,
        "rate": None if np.isnan(rate) else rate,
        "run": run,
        "epochs": settings.epochs,
        "training_rows": settings.training_rows,
        "test_rows": settings.test_rows,
    }
    return Part(_name(name, method, rate, run), arguments)


def _name(name: str, method: Method, rate: float, run: int) -> str:
    suffix = "" if np.isnan(rate) else f"-{rate:g}"
    return f"{name}-{method.learner}-{method.view}{suffix}-run{run}"


def best_rate(settings: Settings, results: Results, name: str, method: Method) -> float:
    """The rate with the least mean cross-entropy at the end of the first runs; NaN for learners without a rate."""
    if not method.has_rate:
        return float("nan")
    first = range(min(settings.runs_of_all_rates, settings.runs))
    ends = [
        np.mean([results[_name(name, method, rate, run)]["cross_entropy"][-1] for run in first])
        for rate in settings.rates
    ]
    return settings.rates[int(np.argmin(ends))]


def curves(settings: Settings, results: Results, name: str) -> list[Curve]:
    """The results of all learners on a data set, each at its best rate."""
    curves = []
    for method in (*PAPER, *OURS):
        rate = best_rate(settings, results, name, method)
        runs = [results[_name(name, method, rate, run)] for run in range(settings.runs)]
        curves.append(
            Curve(method, rate, *(np.array([run[kind] for run in runs]) for kind in ("cross_entropy", "accuracy")))
        )
    return curves


def work(
    files: dict[str, Path],
    name: str,
    learner: str,
    view: str,
    rate: float | None,
    run: int,
    epochs: int,
    training_rows: int,
    test_rows: int,
) -> Arrays:
    """One run of one learner: test cross-entropy and accuracy after each epoch."""
    prepared = data.prepare(name, files[name], training_rows, test_rows)
    random = np.random.default_rng(run)
    orders = [random.permutation(n_rows(prepared.train)) for _ in range(epochs)]
    paper = learner != "pool" and view == "raw"
    ends = (
        _margins_of_paper_learner(prepared, orders, learner, rate)
        if paper
        else _margins_of_ours(prepared, orders, learner, view)
    )
    targets = prepared.targets(prepared.test_classes)
    losses, hits = [], []
    for margins in ends:
        losses.append(np.mean(methods.cross_entropies(margins, targets)))
        hits.append(np.mean(chosen(margins) == prepared.test_classes))
    return {"cross_entropy": np.array(losses), "accuracy": np.array(hits)}


def _margins_of_paper_learner(prepared, orders, learner, rate):
    """Margins of the test rows after each epoch, for a learner of the paper."""
    member = methods.member_of(learner, rate, prepared.n_features, prepared.n_outputs)
    targets, weight = prepared.targets(prepared.train_classes), np.ones(len(prepared.train_classes))
    predictions = np.empty((len(targets), prepared.n_outputs))
    for order in orders:
        member.learn(rows_at(prepared.train, order), targets[order], weight, predictions)
        weights = member.weights(prepared.n_features, prepared.n_outputs)
        yield member.predict(prepared.test, weights, None, member.objective)


def _margins_of_ours(prepared, orders, learner, view):
    """Margins of the test rows after each epoch, for one of our models; the pool makes one pass, its default."""
    model = methods.model_of(learner, view, prepared.n_features, prepared.labels)
    weight = np.ones(len(prepared.train_classes))
    for epoch, order in enumerate(orders[:1] if learner == "pool" else orders):
        labels = Labels(prepared.labels, prepared.train_classes[order].astype(np.int64))
        evaluation_weight = weight if epoch == 0 else np.zeros(len(weight))
        model.learn(rows_at(prepared.train, order), labels, weight, evaluation_weight, again=epoch > 0)
        if learner == "pool":  # the pass ends as that of `fit` and `train`: last trees are grown
            model.freeze()
        yield model.predict(prepared.test)

"""What Figures 2 and 4 of Kempka, Kotlowski, Warmuth 2019 are made of: many epochs over six data sets.

Every learner runs through the shuffled training rows epoch after epoch; after each, cross-entropy and accuracy on the
test rows are taken. All learners of a run see the rows in the same order. Learners with a rate are run with all rates
in the first runs; the rate with the least mean cross-entropy on the test rows after the last epoch goes on to the other
runs. (The paper reports the best on the test rows as well.)
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from tunefree.core.rows import n_rows
from tunefree.losses.objectives import chosen
from tunefree.model.targets import Labels
from tunefree.reproduce import contestants, data
from tunefree.reproduce.contestants import Contestant
from tunefree.reproduce.experiment import Arrays, Part, Results

PAPER = (
    contestants.SGD,
    contestants.ADAGRAD,
    contestants.ADAM,
    contestants.NAG,
    contestants.COCOB,
    contestants.KOTLOWSKI,
    contestants.SCINOL1,
    contestants.SCINOL2,
)
OURS = (contestants.STEADY, contestants.POOL)


class Settings(NamedTuple):
    """Sizes of the experiment; the seed of run r is r."""

    rates: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    runs: int = 10
    runs_of_all_rates: int = 2
    epochs: int = 20
    training_rows: int = 0  # 0: all there are
    test_rows: int = 0


FULL = Settings()
QUICK = Settings((1e-5, 1e-4, 1e-3, 1e-2, 1e-1), 3, runs_of_all_rates=1, epochs=3, training_rows=2000, test_rows=1500)


class Curve(NamedTuple):
    """What a learner did on a data set."""

    contestant: Contestant
    rate: float  # NaN for learners without one
    cross_entropy: np.ndarray  # (runs, epochs)
    accuracy: np.ndarray  # (runs, epochs)


def parts(settings: Settings, results: Results) -> list[Part]:
    """Those of the first runs, and then those of the rates that came off best."""
    found = []
    for name in data.ALL:
        for contestant in (*PAPER, *OURS):
            first = min(settings.runs_of_all_rates, settings.runs)
            rates = settings.rates if contestant.has_rate else (float("nan"),)
            begun = [_part(settings, name, contestant, rate, run) for rate in rates for run in range(first)]
            found += begun
            if all(part.name in results for part in begun):
                rate = best_rate(settings, results, name, contestant)
                found += [_part(settings, name, contestant, rate, run) for run in range(first, settings.runs)]
    return found


def _part(settings: Settings, name: str, contestant: Contestant, rate: float, run: int) -> Part:
    arguments = {
        "name": name,
        "learner": contestant.learner,
        "view": contestant.view,
        "rate": None if np.isnan(rate) else rate,
        "run": run,
        "epochs": settings.epochs,
        "training_rows": settings.training_rows,
        "test_rows": settings.test_rows,
    }
    return Part(_name(name, contestant, rate, run), arguments)


def _name(name: str, contestant: Contestant, rate: float, run: int) -> str:
    tried = "" if np.isnan(rate) else f"-{rate:g}"
    return f"{name}-{contestant.learner}-{contestant.view}{tried}-run{run}"


def best_rate(settings: Settings, results: Results, name: str, contestant: Contestant) -> float:
    """The rate with the least mean cross-entropy at the end of the first runs; NaN for learners without one."""
    if not contestant.has_rate:
        return float("nan")
    first = range(min(settings.runs_of_all_rates, settings.runs))
    ends = [
        np.mean([results[_name(name, contestant, rate, run)]["cross_entropy"][-1] for run in first])
        for rate in settings.rates
    ]
    return settings.rates[int(np.argmin(ends))]


def curves(settings: Settings, results: Results, name: str) -> list[Curve]:
    """The learners on a data set, each at its best rate."""
    found = []
    for contestant in (*PAPER, *OURS):
        rate = best_rate(settings, results, name, contestant)
        runs = [results[_name(name, contestant, rate, run)] for run in range(settings.runs)]
        found.append(
            Curve(contestant, rate, *(np.array([run[kind] for run in runs]) for kind in ("cross_entropy", "accuracy")))
        )
    return found


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
    ends = _as_in_the_paper(prepared, orders, learner, rate) if paper else _ours(prepared, orders, learner, view)
    targets = prepared.targets(prepared.test_classes)
    losses, hits = [], []
    for margins in ends:
        losses.append(np.mean(contestants.cross_entropies(margins, targets)))
        hits.append(np.mean(chosen(margins) == prepared.test_classes))
    return {"cross_entropy": np.array(losses), "accuracy": np.array(hits)}


def _as_in_the_paper(prepared, orders, learner, rate):
    """Margins of the test rows after each epoch."""
    member = contestants.member_of(learner, rate, prepared.n_features, prepared.n_outputs)
    targets, weight = prepared.targets(prepared.train_classes), np.ones(len(prepared.train_classes))
    predictions = np.empty((len(targets), prepared.n_outputs))
    for order in orders:
        member.learn(data.take(prepared.train, order), targets[order], weight, predictions)
        yield member.predict(prepared.test, member.weights(prepared.n_features, prepared.n_outputs))


def _ours(prepared, orders, learner, view):
    """The same of a model; the pool makes one pass, as it does by default."""
    model = contestants.model_of(learner, view, prepared.n_features, prepared.labels)
    weight = np.ones(len(prepared.train_classes))
    for epoch, order in enumerate(orders[:1] if learner == "pool" else orders):
        labels = Labels(prepared.labels, prepared.train_classes[order].astype(np.int64))
        evaluation_weight = weight if epoch == 0 else np.zeros(len(weight))
        model.learn(data.take(prepared.train, order), labels, weight, evaluation_weight, again=epoch > 0)
        yield model.predict(prepared.test)

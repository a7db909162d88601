"""One pass and ``fit`` with their defaults against boosting with its defaults, on the tables among the data sets.

LightGBM, scikit-learn's HistGradientBoosting and InterpretML's EBM get numbers and categories as they are; ``fit`` and
logistic (or ridge) regression get numbers, standardised for the latter, and one-hot columns. Each model is learned in a
process of its own, one after the other, which reports the time of learning and the peak memory. ``train`` is the
command with its defaults, one pass the same with ``--refit 0``; both read a Parquet file in that time, and the others
have their rows in memory. Code is compiled, on other rows, before. LightGBM is
learned a second time with as many trees as it needs for the test loss of one pass.

On ``elec2``, whose rows are in temporal order, losses are progressive ones: of one pass on all training rows, of the
others on each tenth of them after they were fitted to all rows before it. Results are stored in
benchmarks/data/boosting.json; ``--sets a,b`` and ``--models a,b`` select some, ``--show`` prints the stored ones.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import numpy as np
from common import WARM, keep, kept
from pyarrow import parquet

from tunefree import TuneFreeClassifier, TuneFreeRegressor
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source
from tunefree.workflows.evaluation import Reliability
from tunefree.workflows.plan import REFIT, Plan
from tunefree.workflows.prediction import predict
from tunefree.workflows.training import train

SETS = ("adult", "shuttle", "covtype", "letter_recognition", "bank_additional_full", "spambase")
SETS += ("census_income_kdd_test", "satellite", "elec2", "diamonds", "california_housing")
REFITS = {"one pass": 0, "train": REFIT}  # rows that are kept and gone through again
MODELS = (*REFITS, "fit", "lightgbm", "histogram", "ebm", "linear")
MOST_OF_EBM = 70_000  # training rows from which on it is left out; so it is with more than two classes
TENTHS = 10


class Problem(NamedTuple):
    """Training and test rows of one of the kinds that models take."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    classes: list[str]


def framed(split: datasets.Split) -> Problem:
    """Data frames in which everything but numbers is a category."""
    import pandas as pd

    tables = [
        datasets.with_calendar(table.drop_columns(split.data.target)).to_pandas() for table in (split.train, split.test)
    ]
    for name in tables[0].columns:
        if not pd.api.types.is_numeric_dtype(tables[0][name]):
            kind = pd.CategoricalDtype(sorted({str(value) for table in tables for value in table[name].unique()}))
            for table in tables:
                table[name] = table[name].astype(str).astype(kind)
    return Problem(tables[0], split.targets(split.train), tables[1], split.targets(split.test), split.classes)


def encoded(split: datasets.Split) -> Problem:
    """Matrices of numbers and one-hot columns."""
    made = datasets.matrices(split)
    return Problem(made.X, made.y, made.X_test, made.y_test, made.classes)


def lightgbm(classifies: bool, trees: int = 100) -> Any:
    """LightGBM with its defaults, or fewer trees."""
    import lightgbm as library

    made = library.LGBMClassifier if classifies else library.LGBMRegressor
    return made(n_estimators=trees, verbose=-1)


def histogram(classifies: bool) -> Any:
    """scikit-learn's boosting with its defaults, which takes categories from the data frame."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    made = HistGradientBoostingClassifier if classifies else HistGradientBoostingRegressor
    return made(categorical_features="from_dtype")


def ebm(classifies: bool) -> Any:
    """The explainable boosting machine of InterpretML with its defaults."""
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    return (ExplainableBoostingClassifier if classifies else ExplainableBoostingRegressor)()


def linear(classifies: bool) -> Any:
    """Logistic or ridge regression of standardised columns."""
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000) if classifies else RidgeCV())


def fit(classifies: bool) -> Any:
    """``fit`` of the pool."""
    return TuneFreeClassifier() if classifies else TuneFreeRegressor()


OTHERS: dict[str, tuple[Callable[[bool], Any], Callable[[datasets.Split], Problem]]] = {
    "fit": (fit, encoded),
    "lightgbm": (lightgbm, framed),
    "histogram": (histogram, framed),
    "ebm": (ebm, framed),
    "linear": (linear, encoded),
}


def figures_of(predicted: np.ndarray, classes: np.ndarray, y: np.ndarray, classifies: bool) -> dict[str, float]:
    """Test losses: of probabilities (n, K) of some classes, or of numbers (n,)."""
    if not classifies:
        misses = predicted - y
        return {"loss": float(np.sqrt((misses**2).mean())), "error": float(np.abs(misses).mean())}
    places = np.searchsorted(classes, y)
    known = classes[np.minimum(places, len(classes) - 1)] == y
    right = np.where(known, predicted[np.arange(len(y)), np.minimum(places, len(classes) - 1)], 0.0)
    chosen, reliability = classes[predicted.argmax(axis=1)], Reliability()
    reliability.add(np.minimum(predicted.max(axis=1), 1.0), chosen == y, np.ones(len(y)))
    return {
        "loss": float(-np.log(np.maximum(right, np.finfo(np.float64).tiny)).mean()),
        "error": float((chosen != y).mean()),
        "calibration_error": reliability.error(),
    }


def trained_on_a_file(split: datasets.Split, refit: int) -> dict[str, float]:
    """Figures of ``tunefree train`` of a Parquet file, in the order given."""
    task = "classification" if split.classes else "regression"
    plan = Plan(target=split.data.target, task=task, refit=refit)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("warm.parquet", "train.parquet")]
        for path, table in zip(paths, (split.train.slice(0, WARM), split.train), strict=True):
            parquet.write_table(table, path)
        train(open_source(paths[0]), plan)
        start = time.perf_counter()
        trained = train(open_source(paths[1]), plan)
        seconds = time.perf_counter() - start
    batches = predict(trained, open_source(split.test), BadRows())
    margins = np.concatenate([batch.predictions for batch in batches])
    y = split.targets(split.test)
    if not split.classes:
        return figures_of(margins[:, 0], np.zeros(0), y, classifies=False) | {"seconds": seconds}
    labels = np.searchsorted(split.classes, trained.model.classes)
    order = np.argsort(labels)
    odds = trained.model.probabilities(margins)[:, order]
    figures = figures_of(odds, labels[order], y, classifies=True) | {"seconds": seconds}
    return figures | {"progressive": trained.progress.progressive[0].mean_loss()}


def predicted_by(model: Any, X: Any, classifies: bool) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities and their classes, or numbers."""
    return (model.predict_proba(X), model.classes_) if classifies else (model.predict(X), np.zeros(0))


def other(split: datasets.Split, name: str) -> dict[str, float]:
    """Figures of a model with ``fit``."""
    make, prepare = OTHERS[name]
    problem, classifies = prepare(split), bool(split.classes)
    make(classifies).fit(problem.X[:WARM], problem.y[:WARM])
    start = time.perf_counter()
    model = make(classifies).fit(problem.X, problem.y)
    seconds = time.perf_counter() - start
    figures = figures_of(*predicted_by(model, problem.X_test, classifies), problem.y_test, classifies)
    if split.data.kind == "drift":
        figures["progressive"] = progressive(make, problem)
    return figures | {"seconds": seconds}


def progressive(make: Callable[[bool], Any], problem: Problem) -> float:
    """Mean loss of each tenth of the training rows after fitting all before it; the first tenth is left out."""
    edges, total = np.linspace(0, len(problem.y), TENTHS + 1).astype(int), 0.0
    for start, stop in pairwise(edges[1:]):
        model = make(True).fit(problem.X[:start], problem.y[:start])
        odds, classes = predicted_by(model, problem.X[start:stop], True)
        total += figures_of(odds, classes, problem.y[start:stop], True)["loss"] * (stop - start)
    return total / (edges[-1] - edges[1])


def trees_needed(split: datasets.Split, loss: float) -> dict[str, float]:
    """Trees that LightGBM needs for a test loss, and the seconds in which it learns them; infinite if it never does."""
    problem, classifies = framed(split), bool(split.classes)
    model = lightgbm(classifies).fit(problem.X, problem.y)
    for trees in range(1, 101):
        if classifies:
            predicted = model.predict_proba(problem.X_test, num_iteration=trees), model.classes_
        else:
            predicted = model.predict(problem.X_test, num_iteration=trees), np.zeros(0)
        if figures_of(*predicted, problem.y_test, classifies)["loss"] <= loss:
            start = time.perf_counter()
            lightgbm(classifies, trees).fit(problem.X, problem.y)
            return {"trees": trees, "seconds": time.perf_counter() - start}
    return {"trees": math.inf, "seconds": math.inf}


def measured_apart(data: str, model: str) -> dict[str, float]:
    """Figures of one model, learned in a process of its own."""
    command = [sys.executable, __file__, "--one", data, model]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def one(name: str, model: str) -> None:
    """Print the figures of one model as JSON; ``model`` may be ``trees:loss``."""
    split = datasets.load(next(datasets.available([name])))
    if model.startswith("trees:"):
        figures = trees_needed(split, float(model.removeprefix("trees:")))
    else:
        figures = trained_on_a_file(split, REFITS[model]) if model in REFITS else other(split, model)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(figures | {"mebibytes": peak}))


def measure(data: datasets.DataSet, models: Sequence[str]) -> dict[str, Any]:
    """Figures of all models on a data set."""
    stored = kept("boosting").get(data.name, {})
    split = datasets.load(data)
    for model in models:
        if model == "ebm" and (len(split.train) > MOST_OF_EBM or len(split.classes) > 2):
            continue
        stored[model] = measured_apart(data.name, model)
        print(f"{data.name}, {model}: {stored[model]}", flush=True)
    if "lightgbm" in models and "one pass" in stored and data.kind != "drift":
        stored["trees"] = measured_apart(data.name, f"trees:{stored['one pass']['loss']!r}")
    return stored


def ratio(stored: dict[str, Any], name: str, model: str, to: str) -> float:
    """The loss of a model over that of another one."""
    key = "progressive" if name == "elec2" else "loss"
    return stored[name][model][key] / stored[name][to][key]


def cell(figures: dict[str, float] | None, name: str) -> str:
    """Loss, error (or mean absolute error) and seconds."""
    if figures is None:
        return ""
    loss = figures["progressive" if name == "elec2" else "loss"]
    shown = f"{loss:.4f}" if "calibration_error" in figures else f"{loss:.4g}"
    return f"{shown}, {figures['seconds']:.3g} s"


def table(stored: dict[str, Any]) -> str:
    """The tables in Markdown, and geometric means."""
    names = [name for name in SETS if name in stored]
    lines = [f"| log-loss or RMSE, time | {' | '.join(MODELS)} | LightGBM to the loss of one pass |"]
    lines.append("|---" * (len(MODELS) + 2) + "|")
    for name in names:
        trees = stored[name].get("trees", {})
        reach = trees.get("trees", math.inf)
        needed = f"{reach:.0f} trees, {trees['seconds']:.3g} s" if reach < math.inf else "not reached"
        cells = [cell(stored[name].get(model), name) for model in MODELS]
        lines.append(f"| {name} | {' | '.join(cells)} | {needed if trees else ''} |")
    lines.append("")
    for model in (*REFITS, "fit"):
        for to in ("lightgbm", "histogram", "ebm", "linear"):
            both = [name for name in names if model in stored[name] and to in stored[name]]
            ratios = {name: ratio(stored, name, model, to) for name in both}
            tame = [value for name, value in ratios.items() if name != "shuttle"]
            if ratios:
                every, others = (math.exp(np.log(list(part)).mean()) for part in (ratios.values(), tame))
                lines.append(
                    f"{model} over {to}: geometric mean {every:.3f} of {len(both)} sets, without shuttle {others:.3f}"
                )
    return "\n".join(lines)


def main() -> None:
    """Measure the data sets that are available, and print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--one", nargs=2)
    options = parser.parse_args()
    if options.one:
        one(*options.one)
        return
    if not options.show:
        for data in datasets.available(options.sets.split(",")):
            keep("boosting", data.name, measure(data, options.models.split(",")))
    print(table(kept("boosting")))


if __name__ == "__main__":
    main()

"""What the pool is compared with: CatBoost, LightGBM, PerpetualBooster, Vowpal Wabbit, river, linear models, constants.

All but Vowpal Wabbit and the linear model have their defaults. Of Vowpal Wabbit's twelve settings the best is chosen on
the test rows (see ``vowpal.py``), and the penalty of the linear model by cross-validation. Each returns its test loss:
the mean log-loss, or the root of the mean squared error of numbers.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import generation_sets as sets
import numpy as np
import pyarrow as pa
from datasets import Split

Figures = dict[str, Any]
LEAST = 1e-15  # probability


class Search(NamedTuple):
    """The cross-validation of a linear model."""

    strengths: np.ndarray  # C; alpha is 1 / C
    folds: int


LARGE, SMALL = Search(np.logspace(-2, 2, 5), 3), Search(np.logspace(-4, 2, 10), 5)


def log_loss(probabilities: np.ndarray, y: np.ndarray) -> float:
    """Mean log-loss of class indices."""
    return float(-np.log(np.maximum(probabilities[np.arange(len(y)), y], LEAST)).mean())


def loss_of(predicted: np.ndarray, y: np.ndarray, classifies: bool) -> float:
    """Log-loss of probabilities of all classes, or the root of the mean squared error."""
    return log_loss(predicted, y) if classifies else float(np.sqrt(((predicted - y) ** 2).mean()))


def constant(split: Split) -> Figures:
    """The classes' frequencies, or the mean."""
    y, truth = split.targets(split.train), split.targets(split.test)
    if not split.classes:
        return {"loss": loss_of(np.full(len(truth), y.mean()), truth, False)}
    shares = np.bincount(y, minlength=len(split.classes)) / len(y)
    return {"loss": log_loss(np.tile(shares, (len(truth), 1)), truth)}


def linear(split: Split, search: Search = LARGE) -> Figures:
    """Logistic or ridge regression of standardised numbers and one-hot columns."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegressionCV, RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    problem = datasets.matrices(split)
    if split.classes:
        options = {"scoring": "neg_log_loss", "l1_ratios": (0.0,), "use_legacy_attributes": False}
        regression = LogisticRegressionCV(Cs=search.strengths, cv=search.folds, max_iter=1000, **options)
    else:
        regression = RidgeCV(alphas=1 / search.strengths, cv=search.folds)
    numbers = StandardScaler(), slice(0, problem.n_numbers)
    model = make_pipeline(make_column_transformer(numbers, remainder="passthrough"), regression)
    model.fit(problem.X, problem.y)
    predicted = model.predict_proba(problem.X_test) if split.classes else model.predict(problem.X_test)
    return {"loss": loss_of(predicted, problem.y_test, bool(split.classes))}


def boosting(peer: str, split: Split) -> Figures:
    """CatBoost or LightGBM, which get categories as they are; seconds of the processor, of one thread."""
    kind = "Classifier" if split.classes else "Regressor"
    train, test, names = sets.frames(split)
    if peer == "catboost":
        import catboost

        options = {"verbose": 0, "thread_count": 1, "random_seed": 0, "allow_writing_files": False}
        model = getattr(catboost, f"CatBoost{kind}")(cat_features=names, **options)
        train, test = (frame.astype(dict.fromkeys(names, str)) for frame in (train, test))
    else:
        import lightgbm

        model = getattr(lightgbm, f"LGBM{kind}")(n_jobs=1, verbose=-1)
        model.fit(train[:200], split.targets(split.train)[:200])  # the first call takes longer
    start = time.process_time()
    model.fit(train, split.targets(split.train))
    seconds = time.process_time() - start
    predicted = model.predict_proba(test) if split.classes else model.predict(test)
    return {"loss": loss_of(predicted, split.targets(split.test), bool(split.classes)), "seconds": seconds}


def perpetual(split: Split) -> Figures:
    """PerpetualBooster, which has a budget in place of hyperparameters, with its default; of one thread."""
    from perpetual import PerpetualBooster

    train, test, _ = sets.frames(split)
    model = PerpetualBooster(objective="LogLoss" if split.classes else "SquaredLoss", num_threads=1)
    start = time.process_time()
    model.fit(train, split.targets(split.train))
    seconds = time.process_time() - start
    predicted = np.asarray(model.predict_proba(test) if split.classes else model.predict(test))
    return {"loss": loss_of(predicted, split.targets(split.test), bool(split.classes)), "seconds": seconds}


def vowpal_wabbit(split: Split) -> Figures:
    """The best of twelve settings, which one that is, and the default."""
    import vowpal

    y = split.targets(split.test)
    with tempfile.TemporaryDirectory() as folder:
        train, test = (datasets.lines(split, table) for table in (split.train, split.test))
        problem = vowpal.Problem.write(Path(folder), train, test, len(split.classes))
        losses = {setting: vowpal.loss_of(y, vowpal.run(problem, setting)) for setting in vowpal.SETTINGS}
    best = min(losses, key=losses.__getitem__)
    return {"loss": losses[best], "setting": best, "default": losses[vowpal.DEFAULT]}


def river_model(n_classes: int) -> Any:
    """Logistic, softmax or linear regression of standardised numbers and one-hot categories."""
    from river import compose, linear_model, preprocessing

    numbers = compose.SelectType(float) | preprocessing.StandardScaler()
    categories = compose.SelectType(str) | preprocessing.OneHotEncoder()
    by_classes = linear_model.LogisticRegression() if n_classes == 2 else linear_model.SoftmaxRegression()
    return (numbers + categories) | (by_classes if n_classes else linear_model.LinearRegression())


def scaled(odds: list[dict[Any, float]], n_classes: int) -> np.ndarray:
    """Probabilities of all classes, (n, K), where river names some."""
    table = np.array([[row.get(k, 0.0) for k in range(n_classes)] for row in odds], float)
    table = np.maximum(table, 1e-9)
    return table / table.sum(axis=1, keepdims=True)


def river(split: Split) -> Figures:
    """One pass of a linear model of river."""
    model = river_model(len(split.classes))
    train, test, _ = sets.frames(split)
    for row, target in zip(dicts_of(train), split.targets(split.train).tolist(), strict=True):
        model.learn_one(row, target)
    if not split.classes:
        predicted = np.array([model.predict_one(row) for row in dicts_of(test)])
        return {"loss": loss_of(predicted, split.targets(split.test), False)}
    odds = scaled([model.predict_proba_one(row) for row in dicts_of(test)], len(split.classes))
    return {"loss": log_loss(odds, split.targets(split.test))}


def progressive(peer: str, data: datasets.DataSet, table: pa.Table) -> Figures:
    """Progressive log-loss of a linear model, or of an adaptive random forest of ten trees, of river."""
    from river import forest

    classes, y = np.unique(table[data.target].to_pylist(), return_inverse=True)
    model = river_model(len(classes)) if peer == "river" else forest.ARFClassifier(seed=0)
    odds, start = [], time.process_time()
    for row, target in zip(dicts_of(table.drop_columns(data.target).to_pandas()), y.tolist(), strict=True):
        odds.append(model.predict_proba_one(row))
        model.learn_one(row, target)
    return {"loss": log_loss(scaled(odds, len(classes)), y), "seconds": time.process_time() - start}


def dicts_of(frame: Any) -> list[dict[str, Any]]:
    """Rows as river takes them: numbers as floats, categories as texts, and no missing values."""
    rows = []
    for row in frame.to_dict("records"):
        known = {name: value for name, value in row.items() if value is not None and value == value}
        rows.append({k: float(v) if isinstance(v, (int, float, np.number)) else str(v) for k, v in known.items()})
    return rows


TABLES: dict[str, Callable[[Split], Figures]] = {
    "catboost": lambda split: boosting("catboost", split),
    "lightgbm": lambda split: boosting("lightgbm", split),
    "perpetual": perpetual,
    "vowpal": vowpal_wabbit,
    "linear": linear,
    "river": river,
}
STREAMS: dict[str, Callable[[datasets.DataSet, pa.Table], Figures]] = {
    "river": lambda data, table: progressive("river", data, table),
    "forest": lambda data, table: progressive("forest", data, table),
}
SMALLS: dict[str, Callable[[Split], Figures]] = {
    "constant": constant,
    "linear": lambda split: linear(split, SMALL),
    "lightgbm": lambda split: boosting("lightgbm", split),
}

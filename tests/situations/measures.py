"""Losses of tunefree in a situation, and of what a careful user would have used instead."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, RidgeCV
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

from tests.situations.catalogue import Case, Rows, Situation
from tunefree import TuneFreeClassifier, TuneFreeRegressor

LEAST = 1e-15  # probability
FOLDS = 5
STRENGTHS = np.logspace(-4, 4, 17)  # of ridge regression

Predict = Callable[[Case], np.ndarray]  # probabilities (n, classes of the training rows), or numbers, of the test rows


class Comparison(NamedTuple):
    """Mean losses over the seeds of a situation."""

    loss: float
    references: dict[str, float]
    bar: float

    @property
    def best(self) -> str:
        """The reference of the least loss."""
        return min(self.references, key=self.references.__getitem__)

    @property
    def ratio(self) -> float:
        """The loss over that of the best reference."""
        return self.loss / self.references[self.best]

    @property
    def holds(self) -> bool:
        """Whether the bar is kept."""
        return self.ratio <= self.bar


def loss_of(case: Case, predictions: np.ndarray) -> float:
    """The weighted mean loss of the test rows."""
    y, weight = case.test.y, case.test.weight
    if case.loss == "log":
        probabilities = predictions[np.arange(len(y)), np.searchsorted(np.unique(case.train.y), y)]
        return float(np.average(-np.log(np.maximum(probabilities, LEAST)), weights=weight))
    if case.loss == "absolute":
        return float(np.average(np.abs(predictions - y), weights=weight))
    return float(np.sqrt(np.average((predictions - y) ** 2, weights=weight)))


def tunefree(case: Case) -> np.ndarray:
    """Predictions of the package with nothing set but what has to be told."""
    rows = case.train
    said = {"sample_weight": rows.weight, "groups": rows.groups}
    if case.loss == "log":
        model = TuneFreeClassifier(class_weight=case.class_weight)
        return model.fit(rows.X, rows.y, **said).predict_proba(case.test.X)
    return TuneFreeRegressor(loss=case.loss).fit(rows.X, rows.y, **said).predict(case.test.X)


def weight_of(case: Case) -> np.ndarray | None:
    """Weights of the training rows, as peers take them."""
    if case.class_weight is None:
        return case.train.weight
    return compute_sample_weight(case.class_weight, case.train.y)


def fitted(model: Any, case: Case, **weights: Any) -> np.ndarray:
    """Predictions of a model of scikit-learn's kind."""
    weights = {name: weight for name, weight in weights.items() if weight is not None}
    model.fit(case.train.X, case.train.y, **weights)
    return model.predict_proba(case.test.X) if case.loss == "log" else model.predict(case.test.X)


def constant(case: Case) -> np.ndarray:
    """The shares of the classes, the mean, or the median."""
    models = {"log": DummyClassifier(), "square": DummyRegressor(), "absolute": DummyRegressor(strategy="median")}
    return fitted(models[case.loss], case, sample_weight=weight_of(case))


def folds(rows: Rows) -> Any:
    """Folds of cross-validation: groups stay together; None where a class has a single row."""
    if rows.groups is not None:
        return list(GroupKFold(FOLDS).split(rows.X, rows.y, rows.groups))
    fewest = int(np.unique(rows.y, return_counts=True)[1].min())
    return StratifiedKFold(min(FOLDS, fewest), shuffle=True, random_state=0) if fewest > 1 else None


def linear(case: Case) -> np.ndarray:
    """Ridge or logistic regression on scaled columns, its strength by cross-validation."""
    splits = folds(case.train) if case.loss == "log" or case.train.groups is not None else FOLDS
    if case.loss != "log":
        model: Any = RidgeCV(STRENGTHS, cv=splits)
    elif splits is None:
        model = LogisticRegression(max_iter=1000)
    else:
        model = LogisticRegressionCV(cv=splits, scoring="neg_log_loss", max_iter=1000)
    scaled = [("gaps", SimpleImputer(add_indicator=True)), ("scale", StandardScaler())]
    steps = [] if sparse.issparse(case.train.X) else scaled
    return fitted(Pipeline([*steps, ("linear", model)]), case, linear__sample_weight=weight_of(case))


def boosting(case: Case) -> np.ndarray:
    """Scikit-learn's boosted trees."""
    losses = {"square": "squared_error", "absolute": "absolute_error"}
    kinds = HistGradientBoostingClassifier, HistGradientBoostingRegressor
    model = kinds[0](random_state=0) if case.loss == "log" else kinds[1](loss=losses[case.loss], random_state=0)
    return fitted(model, case, sample_weight=weight_of(case))


def lightgbm(case: Case) -> np.ndarray:
    """LightGBM's boosted trees, where it is installed."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    objectives = {"square": "regression", "absolute": "regression_l1"}
    of_numbers = LGBMRegressor(objective=objectives.get(case.loss), n_jobs=1, verbose=-1)
    model = LGBMClassifier(n_jobs=1, verbose=-1) if case.loss == "log" else of_numbers
    return fitted(model, case, sample_weight=weight_of(case))


def plain(case: Case) -> np.ndarray:
    """Tunefree, from the same said in the plainest way."""
    assert case.plain is not None
    return tunefree(case._replace(train=case.plain, class_weight=None))


REFERENCES: dict[str, Predict] = {"constant": constant, "linear": linear, "boosting": boosting, "lightgbm": lightgbm}


def references_of(case: Case) -> dict[str, Predict]:
    """What tunefree is compared with."""
    if case.plain is not None:
        return {"plain": plain}
    is_sparse = sparse.issparse(case.train.X)
    return {name: predict for name, predict in REFERENCES.items() if name != "boosting" or not is_sparse}


def compare(situation: Situation) -> Comparison:
    """Mean losses over the seeds; a peer that is not installed or cannot fit is left out."""
    losses: dict[str, list[float]] = {"tunefree": []}
    for seed in range(situation.seeds):
        case = situation.draw(seed)
        losses["tunefree"].append(loss_of(case, tunefree(case)))
        for name, predict in references_of(case).items():
            with warnings.catch_warnings(action="ignore"):
                try:
                    losses.setdefault(name, []).append(loss_of(case, predict(case)))
                except ImportError:
                    continue
    means = {name: float(np.mean(several)) for name, several in losses.items()}
    return Comparison(means.pop("tunefree"), means, case.bar)

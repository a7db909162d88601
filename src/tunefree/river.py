"""Online learners for river (`pip install 'tunefree[river]'`), which learn one row, a dict, at a time.

The pool collects rows, and learns them together before a prediction or when there are many. A single linear learner is
updated directly, without the mixture, metrics and evidence that :class:`tunefree.pool.model.Model` keeps for each
block, because river has its own metrics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from river import base

from tunefree.core.errors import DataError, ModelError
from tunefree.core.rows import Block, sparse, table
from tunefree.core.signals import deferred
from tunefree.intervals.conformal import checked_parts
from tunefree.pool.model import Model
from tunefree.pool.quantiles import class_sets, target_intervals
from tunefree.pool.targets import Labels, check_room, is_missing, label_of_row, target_of_row

__all__ = ["ScInOLClassifier", "ScInOLRegressor", "TuneFreeClassifier", "TuneFreeRegressor"]

INITIAL_FEATURES = 64  # initial capacity of models
BATCH_ROWS = 256  # rows learned together


def _cells(x: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return the validated values of a row: finite numbers, strings, and None for missing values."""
    if not hasattr(x, "items"):
        raise DataError(f"a row of type {type(x).__name__} does not name its columns", remedy="pass a dict")
    return {
        name: value if value.__class__ is float and value - value == 0.0 else _cell(name, value)
        for name, value in x.items()
    }


def _cell(name: Any, value: Any) -> float | str | None:
    if isinstance(value, str) or is_missing(value):
        return value if isinstance(value, str) else None
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    except (TypeError, ValueError):
        problem = f"the value of {name!r} is of type {type(value).__name__}"
        raise DataError(problem, remedy="pass a number, a string or None") from None
    if not math.isfinite(number):
        raise DataError(f"the value of {name!r} is infinite", remedy="leave it out, or correct it")
    return number


def _rows(X: Any) -> list[dict[Any, Any]]:
    """Return the rows of a DataFrame as dicts."""
    if not hasattr(X, "to_dict"):
        raise DataError(f"rows of type {type(X).__name__} do not name their columns", remedy="pass a pandas.DataFrame")
    return list(map(_cells, X.to_dict(orient="records")))


class _Columns:
    """The columns seen so far, and their features: one for each number, one for each value of a category.

    As in tables (:mod:`tunefree.stream.schema`), numbers of the first row are dense, and later ones are sparse.
    """

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self.categories: dict[Any, dict[Any, int]] = {}
        self.n_features = 1  # includes the constant
        self.n_dense: int | None = None  # number of dense columns; None before the first row

    def add(self, row: dict[Any, Any]) -> None:
        """Add the columns and values of a row, in any order."""
        are_numbers = {name for name, value in row.items() if isinstance(value, float)}
        features = [(self.numbers, name) for name in sorted(are_numbers - self.numbers.keys(), key=str)]
        for name in sorted(row.keys() - are_numbers, key=str):
            column_codes, value = self.categories.setdefault(name, {}), row[name]
            features += [] if value in column_codes else [(column_codes, value)]
        for column_codes, key in features:
            column_codes[key] = self.n_features
            self.n_features += 1
        if self.n_dense is None:
            self.n_dense = len(self.numbers)

    def block(self, rows: Sequence[dict[Any, Any]]) -> Block:
        """Return rows as a block: an absent number is 0, an absent category has an unknown value."""
        names = list(self.numbers)
        dense, late = names[: self.n_dense or 0], names[self.n_dense or 0 :]
        numbers = [[x if isinstance(x := row.get(name), float) else 0.0 for name in dense] for row in rows]
        codes = np.zeros((len(rows), len(self.categories)), np.int32)
        pointers, features, values = [0], list[int](), list[float]()
        for i, row in enumerate(rows):
            codes[i] = [column_codes.get(row.get(name, ...), 0) for name, column_codes in self.categories.items()]
            present = sorted((name for name in late if isinstance(row.get(name), float)), key=str)
            features += [self.numbers[name] for name in present]
            values += [row[name] for name in present]
            pointers.append(len(values))
        late_features = [*self.numbers.values()][len(dense) :]  # ascending
        words = sparse(pointers, features, values)
        return table(numbers, np.arange(1, len(dense) + 1), codes, words, late=late_features)


class _Learner:
    """Base class with river's methods for learning; they inherit river's docstrings."""

    _target: Callable[[Any], Any]
    _task: str
    _learn: Any  # learns rows, dicts of cells, and their targets
    _predict: Any  # returns margins (n, K) of rows, or predicted targets (n, 1)

    def learn_one(self, x: Mapping[Any, Any], y: Any) -> None:
        self._learn([_cells(x)], [self._target(y)])

    def learn_many(self, X: Any, y: Any) -> None:
        rows, targets = _rows(X), list(map(self._target, y))
        if len(rows) != len(targets):
            raise DataError(f"there are {len(rows)} rows, and {len(targets)} targets", remedy="give one for each row")
        if rows:
            self._learn(rows, targets)


class _Pooled(_Learner):
    """Base class of the pool as a classifier and as a regressor."""

    def _unit_test_skips(self) -> set[str]:
        return {"check_bounded_memory_growth"}  # rows are kept for trees; the test has too few to reach the bound

    def __init__(self) -> None:
        self._pool = Model(self._task, n_features=INITIAL_FEATURES)
        self._columns = _Columns()
        self._waiting: list[tuple[dict[Any, Any], Any]] = []
        self._labels: set[Any] = set()  # includes labels of waiting rows

    def _learn(self, rows: list[dict[Any, Any]], targets: Sequence[Any]) -> None:
        for row, target in zip(rows, targets, strict=True):
            if self._task == "classification" and target not in self._labels:
                check_room(len(self._labels))
                self._labels.add(target)
            self._columns.add(row)
            self._waiting.append((row, target))
            if len(self._waiting) == BATCH_ROWS:
                self._learn_waiting()

    def _learn_waiting(self) -> None:
        if self._waiting:
            rows, targets = zip(*self._waiting, strict=True)
            self._waiting = []
            with deferred():
                self._pool.learn(self._columns.block(rows), self._targets(targets), np.ones(len(rows)))

    def _targets(self, targets: Sequence[Any]) -> Any:
        """Return targets in the form that the pool takes; labels keep their values and types."""
        if self._task == "regression":
            return np.array(targets, np.float64)
        codes = {label: code for code, label in enumerate(dict.fromkeys(targets))}
        return Labels(list(codes), np.array([codes[label] for label in targets]))

    @property
    def _model(self) -> Model:
        self._learn_waiting()
        return self._pool

    def _predict(self, rows: list[dict[Any, Any]]) -> np.ndarray:
        model = self._model
        if self._columns.n_dense is None:  # the model would take the columns of these rows for all columns
            return np.zeros((len(rows), model.n_outputs))
        return model.predict(self._columns.block(rows))

    def _conformal(self, compute: Callable[..., np.ndarray], x: Mapping[Any, Any], coverage: float) -> list[Any]:
        """Compute the interval or the mask of the set of a row for one coverage."""
        coverages = checked_parts("coverage", coverage)
        if np.ndim(coverage):
            raise ModelError(f"coverage must be one number, not {coverage!r}")
        model = self._model
        if self._columns.n_dense is None:
            raise ModelError(f"coverage {coverage:g} takes evidence, and no row was learned; learn rows first")
        block = self._columns.block([_cells(x)])
        return compute(model, block, model.predict(block), coverages)[0, 0].tolist()


class _Linear(_Learner):
    """Base class of ScInOL2 as a classifier and as a regressor."""

    epsilon: float

    def __init__(self, epsilon: float = 1.0) -> None:
        self.epsilon = epsilon
        self._model = Model(self._task, "scinol2", settings={"epsilon": epsilon}, n_features=INITIAL_FEATURES)
        self._features: dict[Any, int] = {}  # name, or (name, string) -> feature from 1, in order of first appearance

    def _block(self, rows: list[dict[Any, Any]], learning: bool) -> Block:
        """Return rows as a sparse block: each value of a string column is a feature; missing values are left out."""
        known, pointers, features, values = self._features, [0], list[int](), list[float]()
        for row in rows:
            for name, value in row.items():
                if value is None:
                    continue
                name, value = (name, value) if isinstance(value, float) else ((name, value), 1.0)
                feature = known.setdefault(name, len(known) + 1) if learning else known.get(name)
                if feature is not None:
                    features.append(feature)
                    values.append(value)
            pointers.append(len(values))
        return sparse(pointers, features, values)

    def _learn(self, rows: list[dict[Any, Any]], targets: Sequence[Any]) -> None:
        block, n = self._block(rows, True), len(rows)
        if len(self._features) >= self._model.n_features:
            self._model.reserve(2 * len(self._features))
        self._member.learn(block, np.array(targets, np.float64), np.ones(n), np.empty((n, self._model.n_outputs)))

    def _predict(self, rows: list[dict[Any, Any]]) -> np.ndarray:
        # Learning rows of weight 0 predicts them and changes nothing.
        predictions, nothing = np.empty((len(rows), self._model.n_outputs)), np.zeros(len(rows))
        self._member.learn(self._block(rows, False), nothing, nothing, predictions)
        return predictions

    @property
    def _member(self) -> Any:
        return self._model.linear.members[0]  # not stored, since a copied model has a copied member


class _Classifier(_Learner, base.MiniBatchClassifier):
    """River's interface of a classifier; there are no classes before the first row."""

    _task, _target = "classification", staticmethod(label_of_row)
    _model: Any

    @property
    def _multiclass(self) -> bool:
        return True

    def _probabilities(self, rows: list[dict[Any, Any]]) -> list[dict[Any, float]]:
        """Return the probabilities of the known classes for each row."""
        classes = self._model.classes
        if len(classes) < 2:
            return [dict.fromkeys(classes, 1.0) for _ in rows]
        shares = []
        for margins in self._predict(rows).tolist() if rows else []:
            margins = [0.0, *margins] if len(classes) == 2 else margins
            largest = max(margins)
            parts = [math.exp(margin - largest) for margin in margins]
            total = math.fsum(parts)  # the result of `sum` depends on the version of Python
            shares.append({label: part / total for label, part in zip(classes, parts, strict=True)})
        return shares

    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[Any, float]:
        return self._probabilities([_cells(x)])[0]

    def predict_proba_many(self, X: Any) -> Any:
        import pandas as pd

        shares = [list(row_shares.values()) for row_shares in self._probabilities(_rows(X))]
        return pd.DataFrame(shares, index=X.index, columns=pd.Index(self._model.classes, tupleize_cols=False))


class _Regressor(_Learner, base.MiniBatchRegressor):
    """River's interface of a regressor."""

    _task, _target = "regression", staticmethod(target_of_row)

    def predict_one(self, x: Mapping[Any, Any]) -> float:
        return float(self._predict([_cells(x)])[0, 0])

    def predict_many(self, X: Any) -> Any:
        import pandas as pd

        rows = _rows(X)
        return pd.Series(self._predict(rows)[:, 0] if rows else [], index=X.index, dtype=np.float64)


class ScInOLClassifier(_Linear, _Classifier):
    """Linear classifier without a learning rate: the scale-invariant online learner ScInOL2.

    Features need not be scaled. A number is a feature, and each value of a string is a feature. Missing values (None,
    NaN) are left out. Features and classes may appear at any time. The loss is logistic, or multinomial with more than
    two classes.

    Parameters
    ----------
    epsilon : float, default=1.0
        Initial wealth of each weight; it has little effect on results.

    References
    ----------
    M. Kempka, W. Kotlowski, M. K. Warmuth. Adaptive scale-invariant online algorithms for learning linear models.
    ICML 2019.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from tunefree.river import ScInOLClassifier
    >>> metric = evaluate.progressive_val_score(datasets.Phishing(), ScInOLClassifier(), metrics.ROCAUC())
    >>> bool(metric.get() > 0.9)
    True
    """

    def _learn(self, rows: list[dict[Any, Any]], targets: Sequence[Any]) -> None:
        start, classes = 0, self._model.classes
        while start < len(rows):  # rows are split before each new class, which is known only from its first row on
            known = [*classes, targets[start]]
            stop = next((k for k in range(start + 1, len(rows)) if targets[k] not in known), len(rows))
            super()._learn(rows[start:stop], self._codes(targets[start:stop]))
            start = stop

    def _codes(self, labels: Sequence[Any]) -> list[float]:
        """Return the codes of classes that the objective takes; new classes are added."""
        classes = self._model.classes
        for label in labels:
            if label not in classes:
                self._model.add_class(label)
        codes = [classes.index(label) for label in labels]
        return [float(2 * code - 1) for code in codes] if self._model.n_outputs == 1 else [float(c) for c in codes]


class ScInOLRegressor(_Linear, _Regressor):
    """Linear regressor without a learning rate: the scale-invariant online learner ScInOL2 with the square loss.

    Features and targets need not be scaled. The format of rows is as in :class:`ScInOLClassifier`.

    Parameters
    ----------
    epsilon : float, default=1.0
        Initial wealth of each weight, in units of the mean absolute deviation of the targets.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from tunefree.river import ScInOLRegressor
    >>> metric = evaluate.progressive_val_score(datasets.TrumpApproval(), ScInOLRegressor(), metrics.MAE())
    >>> bool(metric.get() < 1.5)
    True
    """


class TuneFreeClassifier(_Pooled, _Classifier):
    """Classifier without hyperparameters to tune: :class:`tunefree.TuneFreeClassifier` with river's interface.

    The model is a mixture of trees that learn online and linear online learners. Strings are values of categories, and
    None or NaN is a missing value. Columns, values and classes may appear at any time. A number that is absent from a
    row is 0. Rows are collected, and learned together before the next prediction or when there are some hundred.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from tunefree.river import TuneFreeClassifier
    >>> metric = evaluate.progressive_val_score(datasets.Phishing(), TuneFreeClassifier(), metrics.ROCAUC())
    >>> bool(metric.get() > 0.95)
    True
    """

    def predict_set_one(self, x: Mapping[Any, Any], coverage: float = 0.9) -> set[Any]:
        """Predict a set of labels. Along any stream, the proportion of covered labels tends to ``coverage``."""
        in_set = self._conformal(class_sets, x, coverage)
        return {label for label, is_in in zip(self._model.classes, in_set, strict=True) if is_in}


class TuneFreeRegressor(_Pooled, _Regressor):
    """Regressor without hyperparameters to tune: :class:`tunefree.TuneFreeRegressor` with river's interface.

    The format of rows is as in :class:`TuneFreeClassifier`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from tunefree.river import TuneFreeRegressor
    >>> metric = evaluate.progressive_val_score(datasets.TrumpApproval(), TuneFreeRegressor(), metrics.MAE())
    >>> bool(metric.get() < 1.0)
    True
    """

    def predict_interval_one(self, x: Mapping[Any, Any], coverage: float = 0.9) -> tuple[float, float]:
        """Predict an interval. Along any stream, the proportion of covered targets tends to ``coverage``.

        Parameters
        ----------
        x : dict
        coverage : float, default=0.9

        Returns
        -------
        tuple of float
            Lower and upper end, which may be infinite after too many targets were not covered.
        """
        low, high = self._conformal(target_intervals, x, coverage)
        return low, high

"""Online learners for river (`pip install 'tunefree[river]'`): one row, a dict, at a time.

The pool learns rows together as soon as it is asked for a prediction, or there are many. A model of one linear learner
is updated through its member, without the mixture, the metrics and the evidence that
:class:`tunefree.pool.model.Model` keeps for each block, because river's metrics judge predictions themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from river import base

from tunefree.core.errors import DataError, ModelError
from tunefree.core.rows import Block, sparse
from tunefree.core.signals import deferred
from tunefree.intervals.conformal import checked_parts
from tunefree.pool.model import Model
from tunefree.pool.quantiles import class_sets, target_intervals
from tunefree.pool.targets import Labels, check_room, is_missing, label_of_row, target_of_row

__all__ = ["ScInOLClassifier", "ScInOLRegressor", "TuneFreeClassifier", "TuneFreeRegressor"]

FEATURES = 64  # for which there is room at first
MOST_WAITING = 256  # rows that are learned together


def _cells(x: Mapping[Any, Any]) -> dict[Any, Any]:
    """The values of a row: finite numbers, strings of categories, and None where a value is missing."""
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
    """The rows of a DataFrame."""
    if not hasattr(X, "to_dict"):
        raise DataError(f"rows of type {type(X).__name__} do not name their columns", remedy="pass a pandas.DataFrame")
    return list(map(_cells, X.to_dict(orient="records")))


class _Columns:
    """The columns of rows so far, and their features: one for a number, one for each value of a category.

    As in tables (:mod:`tunefree.stream.schema`), the dense numbers are those of the first row; later ones are sparse.
    """

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self.categories: dict[Any, dict[Any, int]] = {}
        self.n_features = 1  # with the constant
        self.n_dense: int | None = None  # of the numbers; None before the first row

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
        """Rows as a block: a number that a row lacks is 0, and of a category that it lacks nothing is known."""
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
        as_array, late_features = np.array(numbers, np.float64).reshape(len(rows), -1), [*self.numbers.values()]
        columns, code_columns = np.arange(1, len(dense) + 1, dtype=np.int32), np.arange(codes.shape[1], dtype=np.int32)
        words = np.array(pointers), np.array(features, np.int32), np.array(values)
        as_late = np.array(late_features[len(dense) :], np.int32)  # ascending
        return Block(as_array, columns, codes, code_columns, *words, 1.0, True, as_late)


class _Learner:
    """River's methods to learn rows; those without a docstring of their own have river's."""

    _target: Callable[[Any], Any]
    _task: str

    def _learn(self, rows: list[dict[Any, Any]], targets: Sequence[Any]) -> None:
        raise NotImplementedError

    def _predict(self, rows: list[dict[Any, Any]]) -> np.ndarray:
        """Margins (n, K), or predicted targets (n, 1)."""
        raise NotImplementedError

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
        return {"check_bounded_memory_growth"}  # rows are kept for trees, up to a bound that few rows do not reach

    def __init__(self) -> None:
        self._pool = Model(self._task, n_features=FEATURES)
        self._columns = _Columns()
        self._waiting: list[tuple[dict[Any, Any], Any]] = []
        self._labels: set[Any] = set()  # those that wait included

    def _learn(self, rows: list[dict[Any, Any]], targets: Sequence[Any]) -> None:
        for row, target in zip(rows, targets, strict=True):
            if self._task == "classification" and target not in self._labels:
                check_room(len(self._labels))
                self._labels.add(target)
            self._columns.add(row)
            self._waiting.append((row, target))
            if len(self._waiting) == MOST_WAITING:
                self._learn_waiting()

    def _learn_waiting(self) -> None:
        if self._waiting:
            rows, targets = zip(*self._waiting, strict=True)
            self._waiting = []
            with deferred():
                self._pool.learn(self._columns.block(rows), self._targets(targets), np.ones(len(rows)))

    def _targets(self, targets: Sequence[Any]) -> Any:
        """Targets in the form that the pool takes; labels keep their values and types."""
        if self._task == "regression":
            return np.array(targets, np.float64)
        places = {label: place for place, label in enumerate(dict.fromkeys(targets))}
        return Labels(list(places), np.array([places[label] for label in targets]))

    @property
    def _model(self) -> Model:
        self._learn_waiting()
        return self._pool

    def _predict(self, rows: list[dict[Any, Any]]) -> np.ndarray:
        model = self._model
        if self._columns.n_dense is None:  # nothing is known, and a model would take these rows for all columns
            return np.zeros((len(rows), model.n_outputs))
        return model.predict(self._columns.block(rows))

    def _conformal(self, x: Mapping[Any, Any], coverage: float) -> tuple[Model, Block, np.ndarray, np.ndarray]:
        """The model, a row as a block, its prediction, and the coverage asked for, (1,)."""
        coverages = checked_parts("coverage", coverage)
        if np.ndim(coverage):
            raise ModelError(f"coverage must be one number, not {coverage!r}")
        model = self._model
        if self._columns.n_dense is None:
            raise ModelError(f"coverage {coverage:g} takes evidence, and no row was learned; learn rows first")
        block = self._columns.block([_cells(x)])
        return model, block, model.predict(block), coverages


class _Linear(_Learner):
    """Base class of ScInOL2 as a classifier and as a regressor."""

    epsilon: float

    def __init__(self, epsilon: float = 1.0) -> None:
        self.epsilon = epsilon
        self._model = Model(self._task, "scinol2", settings={"epsilon": epsilon}, n_features=FEATURES)
        self._features: dict[Any, int] = {}  # numbers from 1, in the order in which they are learned

    def _block(self, rows: list[dict[Any, Any]], learning: bool) -> Block:
        """Rows as a block: a string is a feature for each value, a missing value none."""
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
        # A row of weight 0 changes nothing.
        predictions, nothing = np.empty((len(rows), self._model.n_outputs)), np.zeros(len(rows))
        self._member.learn(self._block(rows, False), nothing, nothing, predictions)
        return predictions

    @property
    def _member(self) -> Any:
        return self._model.linear.members[0]  # copies of a model have other members


class _Classifier(_Learner, base.MiniBatchClassifier):
    """The interface of a classifier; no classes are known before the first row."""

    _task, _target = "classification", staticmethod(label_of_row)
    _model: Any

    @property
    def _multiclass(self) -> bool:
        return True

    def _shares(self, rows: list[dict[Any, Any]]) -> list[dict[Any, float]]:
        """The probability of each class known, for each row."""
        classes = self._model.classes
        if len(classes) < 2:
            return [dict.fromkeys(classes, 1.0) for _ in rows]
        shares = []
        for margins in self._predict(rows).tolist() if rows else []:
            margins = [0.0, *margins] if len(classes) == 2 else margins
            largest = max(margins)
            parts = [math.exp(margin - largest) for margin in margins]
            total = math.fsum(parts)  # `sum` differs from one version of Python to the next
            shares.append({label: part / total for label, part in zip(classes, parts, strict=True)})
        return shares

    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[Any, float]:
        return self._shares([_cells(x)])[0]

    def predict_proba_many(self, X: Any) -> Any:
        import pandas as pd

        shares = [list(row_shares.values()) for row_shares in self._shares(_rows(X))]
        return pd.DataFrame(shares, index=X.index, columns=pd.Index(self._model.classes, tupleize_cols=False))


class _Regressor(_Learner, base.MiniBatchRegressor):
    """The interface of a regressor."""

    _task, _target = "regression", staticmethod(target_of_row)

    def predict_one(self, x: Mapping[Any, Any]) -> float:
        return float(self._predict([_cells(x)])[0, 0])

    def predict_many(self, X: Any) -> Any:
        import pandas as pd

        rows = _rows(X)
        return pd.Series(self._predict(rows)[:, 0] if rows else [], index=X.index, dtype=np.float64)


class ScInOLClassifier(_Linear, _Classifier):
    """A linear classifier with nothing to tune: the scale-invariant online learner ScInOL2.

    It needs neither a learning rate nor scaled features. Numbers are features; a string is a feature for each of its
    values; missing values (None, NaN) are left out. Features and classes may appear at any time. The logistic loss is
    multinomial with more than two classes.

    Parameters
    ----------
    epsilon : float, default=1.0
        Initial wealth of each weight; results depend on it little.

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
        while start < len(rows):  # a new class is known from its first row on, not before
            known = [*classes, targets[start]]
            stop = next((k for k in range(start + 1, len(rows)) if targets[k] not in known), len(rows))
            super()._learn(rows[start:stop], self._codes(targets[start:stop]))
            start = stop

    def _codes(self, labels: Sequence[Any]) -> list[float]:
        """Classes as the objective takes them; new ones are added."""
        classes = self._model.classes
        for label in labels:
            if label not in classes:
                self._model.add_class(label)
        codes = [classes.index(label) for label in labels]
        return [float(2 * code - 1) for code in codes] if self._model.n_outputs == 1 else [float(c) for c in codes]


class ScInOLRegressor(_Linear, _Regressor):
    """A linear regressor with nothing to tune: the scale-invariant online learner ScInOL2 with the square loss.

    It needs neither a learning rate nor scaled features or targets. Rows are as in :class:`ScInOLClassifier`.

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
    """A classifier with nothing to tune: :class:`tunefree.TuneFreeClassifier` with river's interface.

    Trees that go on learning and online linear learners predict each row together, and then learn it. Numbers are
    columns, strings are values of categories, and None or NaN is a missing value. Columns, values and classes may
    appear at any time. A number that a row lacks is 0. Rows wait until there are some hundred, or a prediction is
    asked for; then they are learned together.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from tunefree.river import TuneFreeClassifier
    >>> metric = evaluate.progressive_val_score(datasets.Phishing(), TuneFreeClassifier(), metrics.ROCAUC())
    >>> bool(metric.get() > 0.95)
    True
    """

    def predict_set_one(self, x: Mapping[Any, Any], coverage: float = 0.9) -> set[Any]:
        """A set of labels, which has the right one as often as asked for along the stream, whatever the rows are."""
        model, row, margins, coverages = self._conformal(x, coverage)
        in_set = class_sets(model, row, margins, coverages)[0, 0]
        return {label for label, is_in in zip(model.classes, in_set.tolist(), strict=True) if is_in}


class TuneFreeRegressor(_Pooled, _Regressor):
    """A regressor with nothing to tune: :class:`tunefree.TuneFreeRegressor` with river's interface.

    Rows are as in :class:`TuneFreeClassifier`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from tunefree.river import TuneFreeRegressor
    >>> metric = evaluate.progressive_val_score(datasets.TrumpApproval(), TuneFreeRegressor(), metrics.MAE())
    >>> bool(metric.get() < 1.0)
    True
    """

    def predict_interval_one(self, x: Mapping[Any, Any], coverage: float = 0.9) -> tuple[float, float]:
        """An interval that holds the target as often as asked for along the stream, whatever the rows are.

        Parameters
        ----------
        x : dict
        coverage : float, default=0.9

        Returns
        -------
        tuple of float
            Its ends, which may be infinite after targets were missed too often.
        """
        model, row, prediction, coverages = self._conformal(x, coverage)
        low, high = target_intervals(model, row, prediction, coverages)[0, 0].tolist()
        return low, high

"""Rows that wait to be learned: `partial_fit` of one row costs mostly the calls around the learning.

A model does not depend on where its rows are cut into batches. So rows that come one by one are kept, and learned
together once there are many, or once a method is called that predicts, explains or saves. Attributes are of the rows
learned before, and reading them learns nothing. What an estimator has checked before is not checked again: rows are
kept only where they are arrays of float64 with as many columns as before, labels are known, and parameters are as they
were. All else goes the long way.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from tunefree.estimators import jobs, tables, validation

ROWS = 256  # that wait at most
CELLS = 2**16  # numbers that wait at most
FEW = 16  # rows of a call, of more the calls cost little
ONE_LEARNS = threading.RLock()  # whoever predicts first lets waiting rows be learned; others wait for that


class Waiting:
    """Rows of an estimator that wait.

    Parameters
    ----------
    parameters : dict
        Of the estimator, as they were checked.
    n_columns : int
    labels : array, optional
        Labels known, sorted; None in regression.

    Examples
    --------
    >>> waiting = Waiting({}, 1, np.array(["no", "yes"]))
    >>> waiting.keep(np.array([[0.5]]), ["yes"]), waiting.keep(np.array([[0.5]]), ["perhaps"])
    (True, False)
    >>> waiting.take()
    (array([[0.5]]), array([1.]))
    """

    def __init__(self, parameters: dict[str, Any], n_columns: int, labels: np.ndarray | None = None) -> None:
        self.parameters, self.labels = parameters, labels
        self.code_of = None if labels is None else {label: float(code) for code, label in enumerate(labels.tolist())}
        most = min(ROWS, CELLS // max(n_columns, 1))
        self.X, self.y = np.empty((most, n_columns)), np.empty(most)
        self.count = 0

    @property
    def is_full(self) -> bool:
        """Whether the rows should be learned now."""
        return self.count > len(self.X) - FEW

    def keep(self, X: Any, y: Any) -> bool:
        """Let rows wait; False if they have to be checked first.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        """
        if type(X) is not np.ndarray or X.dtype != np.float64 or X.ndim != 2 or X.shape[1] != self.X.shape[1]:
            return False
        n = len(X)
        if not 0 < n <= FEW or self.is_full or getattr(y, "ndim", 1) != 1 or len(y) != n:
            return False
        stop = self.count + n
        targets = _numbers(y) if self.code_of is None else _codes(y, self.code_of, self.labels)
        if targets is None or not np.isfinite(X).all():
            return False
        self.X[self.count : stop], self.y[self.count : stop], self.count = X, targets, stop
        return True

    def take(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows that wait, and their codes or targets; none wait after that."""
        taken = self.X[: self.count].copy(), self.y[: self.count].copy()
        self.count = 0
        return taken


def _codes(y: Any, code_of: dict[Any, float], labels: Any) -> list[float] | None:
    """The codes of labels that are all known, and of the type of those known."""
    if type(y) is np.ndarray:
        if y.dtype.kind != labels.dtype.kind or y.dtype.kind not in "iubU":
            return None
        y = y.tolist()
    elif type(y) is not list or any(type(label) not in (int, bool, str) for label in y):
        return None
    kind = type(labels[:1].tolist()[0])
    codes = [code_of.get(label) if type(label) is kind else None for label in y]
    return None if None in codes else codes  # type: ignore[return-value]


def _numbers(y: Any) -> np.ndarray | None:
    """Finite targets."""
    if type(y) is not np.ndarray or y.dtype.kind not in "if" or not np.isfinite(y).all():
        return None
    return y


def _same(labels: np.ndarray | None, others: np.ndarray | None) -> bool:
    return labels is others if labels is None or others is None else np.array_equal(labels, others)


class LearnsLater:
    """Estimators whose rows may wait.

    They have ``_task`` and ``_pass``, as :class:`tunefree.estimators.base.OnlineEstimator`.
    """

    _task: str
    _waiting: Waiting | None = None

    def _learn_waiting(self) -> None:
        """Learn the rows that wait."""
        if self._waiting is None:
            return
        with ONE_LEARNS, jobs.of(self):
            if self._waiting.count:
                X, y = self._waiting.take()
                targets = y if self._task == "regression" else y.astype(np.int64)
                self._pass(X, targets, validation.as_given(np.ones(len(y))), first=True)

    def _pass(self, X: Any, y: Any, rounds: validation.Rounds, first: bool) -> None:
        raise NotImplementedError

    def _keep(self, X: Any, y: Any, options: tuple[Any, ...]) -> bool:
        """Let rows wait that are like those before, unless there is more to learn of them than X and y."""
        waiting = self._waiting
        if waiting is None or any(option is not None for option in options):
            return False
        state = self.__dict__
        is_changed = any(state[name] is not value for name, value in waiting.parameters.items())
        if is_changed or not waiting.keep(X, y):
            return False
        if waiting.is_full:
            self._learn_waiting()
        return True

    def _let_wait(self, X: Any, labels: np.ndarray | None = None) -> None:
        """Let further rows wait if they are like these, which were learned."""
        plain = type(X) is np.ndarray and len(X) > 0 and tables.encoder_of(self) is None
        plain = plain and not hasattr(self, "feature_names_in_") and getattr(self, "class_weight", None) is None
        if not plain or (labels is not None and (len(labels) < 2 or labels.dtype.kind not in "iubU")):
            self._waiting = None
        elif self._waiting is None or not _same(self._waiting.labels, labels):
            names = self._get_param_names()  # type: ignore[attr-defined]
            self._waiting = Waiting({name: self.__dict__[name] for name in names}, X.shape[1], labels)

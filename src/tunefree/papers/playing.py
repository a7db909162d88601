"""The protocol of the papers: one pass over the rows in their order, and its regret and bounds.

Features are not scaled, no row is held out, no intercept is added, and computations are in double precision.
"""

from __future__ import annotations

import copy
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from tunefree.papers.algorithm import Stream
from tunefree.papers.comparison import Comparator, best_comparator, comparator_of
from tunefree.papers.losses import check_finite, loss_and_targets
from tunefree.papers.spaces import kernel_used
from tunefree.theory.bounds import Bound, no_bound


class Played(NamedTuple):
    """Records of the rounds."""

    predictions: np.ndarray  # (T, K)
    losses: np.ndarray  # (T,)
    slopes: np.ndarray  # (T, K)
    functions: list[tuple[np.ndarray, np.ndarray]]  # weights after selected rounds, and the average so far


@dataclass(frozen=True, repr=False)
class Result:
    """The result of :func:`play`.

    Parameters
    ----------
    algorithm : Algorithm
        The algorithm after the last round.
    X : (T, d) array
    y : (T,) array
        Targets in the form that the loss takes.
    loss : loss
        See :mod:`tunefree.papers.losses`.
    stream : Stream
        Properties of the stream that were known before the first round.
    predictions : (T,) array, or (T, K) for more than two classes
        Progressive predictions: each row is predicted before it is learned.
    losses : (T,) array
    slopes : array of the shape of the predictions
        Subgradients of the losses at the predictions.
    weights : (d, K) array
        Weights after the last round, or with a kernel the coefficients (T, K) of k(x_t, .).
    average : array of the shape of the weights
        The average of the functions that made the predictions, weighted as in the algorithm's paper.

    Examples
    --------
    >>> from tunefree.papers import PiSTOL, play
    >>> X, y = [[0.5, 0.5], [0.5, -0.5], [-0.5, 0.5], [0.5, 0.0]], [1, 1, -1, 1]
    >>> result = play(PiSTOL(a=4.0), X, y, loss="logistic")
    >>> result.losses.sum().round(4), round(result.regret([1.0, 0.0]), 4)
    (np.float64(2.7309), 0.8345)
    >>> result.regret("best", radius=2.0) <= result.bound("best", radius=2.0).value
    True
    """

    algorithm: Any
    X: np.ndarray
    y: np.ndarray
    loss: Any
    stream: Stream
    predictions: np.ndarray
    losses: np.ndarray
    slopes: np.ndarray
    weights: np.ndarray
    average: np.ndarray

    def __repr__(self) -> str:
        return f"<{self.name} on {len(self.y):,} rows, total loss {self.losses.sum():.6g}>"

    @property
    def rounds(self) -> int:
        """T."""
        return len(self.losses)

    @property
    def name(self) -> str:
        """Name of the algorithm."""
        return type(self.algorithm).__name__

    @cached_property
    def gram(self) -> np.ndarray | None:
        """The matrix (T, T) of kernel values; None without a kernel."""
        kernel = kernel_used(self.algorithm)
        return None if kernel is None else np.array([kernel(x, self.X) for x in self.X])

    @cached_property
    def sizes(self) -> np.ndarray:
        """||k(x_t, .)||, (T,)."""
        squares = (self.X**2).sum(axis=1) if self.gram is None else np.diagonal(self.gram)
        return np.sqrt(squares)

    @property
    def mistakes(self) -> int:
        """Number of predictions of a wrong class; a prediction of 0 is wrong."""
        if self.loss.n_outputs > 1:
            return int(np.count_nonzero(self.predictions.argmax(axis=1) != self.y))
        return int(np.count_nonzero(self.y * self.predictions <= 0.0))

    def predict(self, X: Any, average: bool = False) -> np.ndarray:
        """Predict rows by the last function, or by the average.

        An initial function g_1 on separate rows is not included.
        """
        rows, weights = rows_of(X), self.average if average else self.weights
        kernel = kernel_used(self.algorithm)
        values = rows @ weights if kernel is None else np.array([kernel(x, self.X) for x in rows]) @ weights
        return values[:, 0] if self.loss.n_outputs == 1 else values

    def comparator(self, u: Any = "best", radius: float | None = None) -> Comparator:
        """Return a comparator with weights (d,) or (d, K), or with a kernel coefficients (T,) or (T, K).

        ``"best"`` has the least total loss among functions of (Frobenius) norm at most ``radius``.
        """
        if isinstance(u, Comparator):
            return u
        if isinstance(u, str):
            if u != "best":
                raise ValueError(f"a comparator is an array, or 'best', not {u!r}")
            return best_comparator(self, radius)
        return comparator_of(self, u)

    def regret(self, u: Any = "best", radius: float | None = None) -> float:
        """Return the regret, sum_t l_t(y^_t) - l_t(u(x_t)).

        Parameters
        ----------
        u : array, or "best"
            See :meth:`comparator`.
        radius : float, optional
            Bound on the norm of ``"best"``; by default there is none.
        """
        return float((self.losses - self.comparator(u, radius).losses).sum())

    def regrets(self, u: Any = "best", radius: float | None = None) -> np.ndarray:
        """Return the regret (T,) after each round."""
        return np.cumsum(self.losses - self.comparator(u, radius).losses)

    def bound(self, u: Any = "best", radius: float | None = None) -> Bound:
        """Return the bound of the algorithm's theorem on the regret, with the number of the theorem.

        Its ``value`` is None if no theorem applies, and ``reason`` is then the reason. Comparators are as in
        :meth:`regret`.
        """
        if not hasattr(self.algorithm, "bound"):
            return no_bound(f"{self.name} has no method bound")
        return self.algorithm.bound(self, self.comparator(u, radius))

    def after(self, t: int) -> Result:
        """Return the result of the first t rounds, for regrets and bounds; weights and average are still the last."""
        parts = {name: getattr(self, name)[:t] for name in ("X", "y", "predictions", "losses", "slopes")}
        weights = {} if self.gram is None else {"weights": self.weights[:t], "average": self.average[:t]}
        return Result(**{name: getattr(self, name) for name in self.__dataclass_fields__} | parts | weights)


def play(algorithm: Any, X: Any, y: Any, loss: Any = "logistic") -> Result:
    """Run an algorithm once over the rows in their order: it predicts each row, then learns it.

    Parameters
    ----------
    algorithm : Algorithm
        An algorithm of :mod:`tunefree.papers`, or any object with its methods. It is copied, and not changed.
    X : (T, d) array, SciPy sparse matrix or data frame of numbers
    y : (T,) array
        Labels of two or more classes, or numbers.
    loss : str or loss, default "logistic"
        The name of a loss of :mod:`tunefree.losses`, such as ``"hinge"``, ``"smoothed-hinge"``, ``"square"`` or
        ``"absolute"``; or an object with ``value(y, prediction)``, ``slope(y, prediction)`` and ``lipschitz``.

    Examples
    --------
    >>> from tunefree.papers import ScInOL2
    >>> result = play(ScInOL2(), [[1.0], [2.0], [-1.0]], ["yes", "yes", "no"])
    >>> result.predictions.round(4).tolist()
    [0.0, 0.1176, -0.1481]
    """
    if isinstance(algorithm, type):
        raise TypeError(f"`algorithm` must be an object, such as {algorithm.__name__}(), not the class")
    rows = rows_of(X)
    objective, targets = loss_and_targets(loss, y)
    if len(rows) != len(targets) or not len(rows):
        raise ValueError(f"X has {len(rows)} rows and y has {len(targets)}; there must be equally many, at least one")
    algorithm = copy.deepcopy(algorithm)
    played = play_rounds(algorithm, rows, targets, objective, {len(rows)})
    first = slice(None) if objective.n_outputs > 1 else 0
    predictions, slopes = played.predictions[:, first], played.slopes[:, first]
    stream = stream_of(rows, objective)
    return Result(algorithm, rows, targets, objective, stream, predictions, played.losses, slopes, *played.functions[0])


def stream_of(rows: np.ndarray, loss: Any) -> Stream:
    """Return the properties of rows and their loss that are known before the first round."""
    return Stream(rows.shape[1], loss.n_outputs, len(rows), loss.lipschitz)


def play_rounds(algorithm: Any, rows: np.ndarray, targets: np.ndarray, loss: Any, stops: Collection[int]) -> Played:
    """Run an algorithm on the rows; the average is of the functions that made the predictions.

    ``stops``: rounds, counted from 1, after which weights and average are recorded.
    """
    T, K, stream = len(rows), loss.n_outputs, stream_of(rows, loss)
    algorithm.begin(stream)
    predictions, losses, slopes, functions = np.empty((T, K)), np.empty(T), np.empty((T, K)), []
    total, shares = np.zeros_like(_weights(algorithm, stream)), 0.0
    share = getattr(algorithm, "share", lambda t: 1.0)
    for t in range(T):
        x, y = rows[t], targets[t]
        predictions[t] = np.reshape(algorithm.predict(x), K)
        total, shares = total + share(t + 1) * _weights(algorithm, stream), shares + share(t + 1)
        losses[t], slopes[t] = loss.value(y, predictions[t]), loss.slope(y, predictions[t])
        algorithm.update(x, slopes[t].copy())
        if t + 1 in stops:
            last, last_share = _weights(algorithm, stream), share(t + 2)
            averages_last = getattr(algorithm, "averages_last", False)
            average = (total + last_share * last) / (shares + last_share) if averages_last else total / shares
            functions.append((last, average))
    return Played(predictions, losses, slopes, functions)


def _weights(algorithm: Any, stream: Stream) -> np.ndarray:
    """Return weights (d, K), or coefficients (T, K)."""
    n = stream.n_features if kernel_used(algorithm) is None else stream.rounds
    return np.array(algorithm.weights, np.float64).reshape(n, stream.n_outputs)


def rows_of(X: Any) -> np.ndarray:
    """Return rows (T, d) as a read-only float64 array."""
    rows = X.toarray() if issparse(X) else np.array(X)
    if rows.ndim != 2:
        raise ValueError(f"X has shape {rows.shape}; pass a table with a row for each round and a column a feature")
    try:
        rows = rows.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X must hold numbers only: {error}") from None
    check_finite("X", rows).flags.writeable = False
    return rows

"""The course of the weights and losses of a pool's members over the rows, and the expected loss of future rows."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.part import FIXED, Part, argument, array
from tunefree.generations.reservoir import MOST_ROWS
from tunefree.intervals.conformal import recency
from tunefree.intervals.learning_curve import rows_learned

MOST = 256  # the largest number of points kept
N_SUMS = 5
MOST_LOSS = 1e145  # the largest loss of a unit, so that sums of squares are finite
FEWEST = 4  # the smallest number of points for the estimate of a loss
EARLIEST = 1.0 / 16.0  # losses before this fraction of the rows are not used for estimates


class Selection(NamedTuple):
    """The members awake, by decreasing weight.

    Rows of one context judge the members before these learn them, see :mod:`tunefree.pool.contexts`. Losses of members
    are means over different rows, since not all members were awake from the first row on.
    """

    members: list[str]
    weights: np.ndarray  # (M,) in the base of the mixture that predicts future rows; their sum is 1
    losses: np.ndarray  # (M,) weighted mean loss of the rows that judge the member; NaN if there are none
    standard_errors: np.ndarray  # (M,) standard errors of these means; over groups, if there are any
    rows: np.ndarray  # (M,) number of rows that judge the member
    points: np.ndarray  # (T,) numbers of learned rows
    weights_at: np.ndarray  # (T, M) weights in the base of the mixture that follows the stream, at these points


class WeightsRecord(Part):
    """Weights of M members at some row numbers (points), and losses between the points.

    If there are more than MOST points, one is dropped, and its losses are added to those of the next point. The points
    that remain are evenly spaced on a square-root scale: closer at the beginning, where weights change most.

    ``weights`` (T, M) of members awake in the base mixture sum to 1; they are 0 for members asleep. ``losses``
    (T, 5, M + 1) are sums since the previous point for the members and the mixture: weighted losses, weights, rows,
    squares of the weighted losses of units, and units. A unit is a row, or a run of rows of one group.

    Two members, of which the second sleeps up to row 100:

    >>> record = WeightsRecord(2)
    >>> record.observe(np.array([[0.7, np.nan, 0.7]] * 100), np.ones(100))
    >>> record.add(100, np.array([0.5, np.nan]))
    >>> record.observe(np.array([[0.6, 0.2, 0.3]] * 100), np.ones(100))
    >>> record.add(200, np.array([0.1, 0.9]))
    >>> record.rows, record.weights
    (array([100., 200.]), array([[1. , 0. ],
           [0.1, 0.9]]))
    >>> losses, standard_errors, rows = record.totals()
    >>> losses.round(3), rows
    (array([0.65, 0.2 , 0.5 ]), array([200, 100, 200]))
    """

    n_members = argument()
    rows = array("float64", ("points",), FIXED)
    weights = array("float64", ("points", "n_members"), FIXED)
    losses = array("float64", ("points", N_SUMS, "n_judged"), FIXED, may_be_infinite=True)
    since = array("float64", (N_SUMS, "n_judged"), FIXED, may_be_infinite=True)

    def __init__(self, n_members: int) -> None:
        self.n_members = n_members
        self.rows, self.weights = np.empty(0), np.empty((0, n_members))
        self.losses, self.since = np.empty((0, N_SUMS, n_members + 1)), np.zeros((N_SUMS, n_members + 1))

    @property
    def n_judged(self) -> int:
        """The number of columns of losses: the members and the mixture."""
        return self.n_members + 1

    def observe(self, losses: np.ndarray, weights: np.ndarray, starts: np.ndarray | None = None) -> None:
        """Add the losses (n, M + 1) of the members and the mixture on rows; NaN for members asleep.

        ``weights`` (n,) are weights of rows, and ``starts`` the first rows of units, if units are not single rows.
        """
        awake = ~np.isnan(losses)
        weighted = np.minimum(np.where(awake, weights[:, None] * np.minimum(losses, MOST_LOSS), 0.0), MOST_LOSS)
        unit_losses, unit_awake = weighted, awake
        if starts is not None and len(losses):
            unit_losses, unit_awake = (np.add.reduceat(array, starts, axis=0) for array in (weighted, awake))
        squares, units = np.zeros_like(weighted), np.zeros_like(weighted)
        squares[: len(unit_losses)], units[: len(unit_losses)] = np.minimum(unit_losses, MOST_LOSS) ** 2, unit_awake > 0
        self.since = running(self.since, np.stack([weighted, weights[:, None] * awake, awake, squares, units], axis=1))

    def add(self, rows: int, weights: np.ndarray) -> None:
        """Add a point: weights (M,) after so many rows, NaN for members that sleep."""
        awake = np.nan_to_num(weights)
        self.rows = np.append(self.rows, rows)
        self.weights = np.concatenate([self.weights, [awake / max(awake.sum(), 1e-300)]])
        self.losses, self.since = np.concatenate([self.losses, [self.since]]), np.zeros_like(self.since)
        if len(self.rows) > MOST:
            self._drop()

    def _drop(self) -> None:
        """Drop the point whose neighbours are closest on the square-root scale."""
        roots = np.sqrt(self.rows)
        index = 1 + int(np.argmin(roots[2:] - roots[:-2]))
        self.losses[index + 1] += self.losses[index]
        for name in ("rows", "weights", "losses"):
            setattr(self, name, np.delete(getattr(self, name), index, axis=0))

    def totals(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean losses (M + 1,) of the members and the mixture, their standard errors, and their numbers of rows."""
        losses, weights, rows, squares, units = np.concatenate([self.losses, self.since[None]]).sum(axis=0)
        spread = np.maximum(squares - ratio(np.minimum(losses, MOST_LOSS) ** 2, units), 0.0) * ratio(
            units, np.maximum(units - 1.0, 1.0)
        )
        return ratio(losses, weights), ratio(np.sqrt(spread), weights), rows.astype(np.int64)


def ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """``above`` divided by ``below``; NaN where ``below`` is not above 0."""
    return np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0.0)


def running(start: np.ndarray, terms: np.ndarray) -> np.ndarray:
    """``start`` plus the sum of terms over the first axis, added one by one, so that blocks of rows do not matter."""
    return np.cumsum(np.concatenate([start[None], terms]), axis=0)[-1].copy()


class EstimatedLoss(NamedTuple):
    """The estimated mean loss of future rows, and its standard error."""

    loss: float
    standard_error: float


def estimated_loss(pool: Any) -> EstimatedLoss | None:
    """The estimated loss of a pool; None without generations, with too few rows, or for huge targets.

    Known rows and new rows have separate estimates, weighted by their shares of the latest rows.
    """
    if pool.members.growth is None or pool.unit != 1.0:
        return None
    share = 0.0 if pool.members.has_groups else pool.known_share
    end = math.sqrt(min(pool.rows, MOST_ROWS) * pool.rows)
    if not pool.has_finished:
        end = float(rows_learned(np.array([pool.rows + 1]))[0])
    shares = [1.0 - share, share][: len(pool.contexts)]
    estimates = [estimate_of_record(context.record, pool.rows, end) for context in pool.contexts]
    pairs = zip(shares, estimates, strict=True)
    parts = [(part, estimate) for part, estimate in pairs if part > 0.0 and estimate is not None]
    total = sum(part for part, _ in parts)
    if not total > 0.0:
        return None
    loss = sum(part / total * estimate.loss for part, estimate in parts)
    return EstimatedLoss(loss, math.hypot(*(part / total * estimate.standard_error for part, estimate in parts)))


def estimate_of_record(record: WeightsRecord, rows: int, end: float) -> EstimatedLoss | None:
    """The estimated loss from a record of so many rows, if ``end`` rows count as learned; None with too few points.

    The pool had learned little when it predicted early rows, so their mean loss is larger than the loss of future rows.
    With smooth models the loss falls like the loss of a parametric family (Amari: A universal theorem on learning
    curves, Neural Networks 1993), E(r) = a + b / r, where r is the number of learned rows, see
    :mod:`tunefree.intervals.learning_curve`. The curve is fitted by weighted least squares to mean losses between
    points of the record, with larger weights for later ones. Losses before a sixteenth of the rows are not used: they
    often fall faster, for instance where few weights determine the target. The estimate is E(end), a weighted sum of
    these means. Its standard error follows from the variance of losses between points, which is pooled over all points,
    as some have few units. The loss does not fall faster than 1 / r, so a is at least 0.

    >>> record, rng = WeightsRecord(1), np.random.default_rng(0)
    >>> for start in range(32, 2048, 32):
    ...     losses = rng.exponential(0.2 + 30.0 / rows_learned(np.arange(start, start + 32)))
    ...     record.observe(np.stack([losses, losses], axis=1), np.ones(32))
    ...     record.add(start + 32, np.ones(1))
    >>> estimate = estimate_of_record(record, 2048, 2048.0)
    >>> round(estimate.loss, 2), round(estimate.standard_error, 3)  # of 0.21
    (0.21, 0.009)
    """
    stops = np.append(record.rows, rows)
    starts = np.append(0.0, stops[:-1])
    losses, weights, _, squares, units = np.concatenate([record.losses, record.since[None]])[:, :, -1].T
    middles = (starts + stops) / 2.0
    used = np.flatnonzero((units > 1.0) & (weights > 0.0) & (middles > EARLIEST * rows))
    if len(used) < FEWEST or losses.max() >= MOST_LOSS:
        return None
    losses, weights, squares, units, numbers = (
        sums[used] for sums in (losses, weights, squares, units, np.ceil(middles))
    )
    means, recencies = losses / weights, recency(numbers)
    unit = float(np.abs(means).max()) or 1.0
    means, losses, squares = means / unit, losses / unit, squares / unit / unit
    spread = float(recencies @ np.maximum(squares - losses**2 / units, 0.0) / (recencies @ (units - 1.0)))  # of a unit
    errors, counts = np.sqrt(spread * units) / weights, weights * recencies
    learned = rows_learned(np.maximum(numbers, 1.0).astype(np.int64))
    parts, inverse = counts / counts.sum(), 1.0 / learned
    centred = inverse - parts @ inverse
    slopes = parts * centred / max(float(parts @ centred**2), np.finfo(np.float64).tiny)
    mean_weights = parts + slopes * (1.0 / end - float(parts @ inverse))  # E(end) is the sum of means by these weights
    least = float(parts @ (means * np.minimum(learned / end, 1.0)))
    loss = max(float(mean_weights @ means), least)
    return EstimatedLoss(unit * loss, unit * math.sqrt(float(mean_weights**2 @ errors**2)))

"""The mean loss to expect of rows to come, from the losses of rows that were predicted before they were learned.

Early rows were predicted by a pool that knew little, so their mean loss is larger than that of rows to come. With
smooth models the loss falls like that of a parametric family (Amari: A universal theorem on learning curves, Neural
Networks 1993),

    E(r) = a + b / r,

where r is how many rows were learned, see :mod:`tunefree.intervals.learning_curve`. It is fitted by weighted least
squares to mean losses between points of the record, of which later ones count more. Those before a sixteenth of the
rows do not count: there the loss often falls faster, as where few weights determine the target. The estimate is E at
the end, a weighted sum of these means, and its standard error follows from the spread of the losses between points. The
loss is not expected to fall by more than 1 / r, so a counts as at least 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tunefree.generations.reservoir import MOST_ROWS
from tunefree.intervals.conformal import recency
from tunefree.intervals.learning_curve import rows_learned
from tunefree.pool.weights_record import MOST_LOSS, WeightsRecord, ratio

if TYPE_CHECKING:
    from tunefree.pool.pool import Pool

FEWEST = 4  # points of a record
EARLIEST = 1.0 / 16.0  # part of the rows, before which losses tell nothing of the end


class EstimatedLoss(NamedTuple):
    """A mean loss of rows to come, and its standard error."""

    loss: float
    standard_error: float


def estimated_loss(pool: Pool) -> EstimatedLoss | None:
    """That of a pool; None without generations, whose record it needs, with too few rows, or of huge targets.

    Known rows and new rows have estimates of their own, and count by their shares of the latest rows.
    """
    if pool.members.growth is None or pool.unit != 1.0:
        return None
    share = 0.0 if pool.members.has_groups else pool.known_share
    end = math.sqrt(min(pool.rows, MOST_ROWS) * pool.rows)
    if not pool.has_finished:
        end = float(rows_learned(np.array([pool.rows + 1]))[0])
    shares = [1.0 - share, share][: len(pool.contexts)]
    estimates = [estimate_of_record(context.record, pool.rows, end) for context in pool.contexts]
    parts = [(part, one) for part, one in zip(shares, estimates, strict=True) if part > 0.0 and one is not None]
    total = sum(part for part, _ in parts)
    if not total > 0.0:
        return None
    loss = sum(part / total * one.loss for part, one in parts)
    return EstimatedLoss(loss, math.hypot(*(part / total * one.standard_error for part, one in parts)))


def estimate_of_record(record: WeightsRecord, rows: int, end: float) -> EstimatedLoss | None:
    """That of the rows of a record, after so many rows, where ``end`` rows count as learned; None of too few.

    >>> record, rng = WeightsRecord(1), np.random.default_rng(0)
    >>> for start in range(32, 2048, 32):
    ...     losses = rng.exponential(0.2 + 30.0 / rows_learned(np.arange(start, start + 32)))
    ...     record.observe(np.stack([losses, losses], axis=1), np.ones(32))
    ...     record.add(start + 32, np.ones(1))
    >>> estimate = estimate_of_record(record, 2048, 2048.0)
    >>> round(estimate.loss, 2), round(estimate.standard_error, 3)  # of 0.21
    (0.21, 0.008)
    """
    stops = np.append(record.rows, rows)
    starts = np.append(0.0, stops[:-1])
    losses, weights, _, squares, units = np.concatenate([record.losses, record.since[None]])[:, :, -1].T
    middles = (starts + stops) / 2.0
    some = np.flatnonzero((units > 1.0) & (weights > 0.0) & (middles > EARLIEST * rows))
    if len(some) < FEWEST or losses.max() >= MOST_LOSS:
        return None
    means, numbers = (losses / np.where(weights > 0.0, weights, 1.0))[some], np.ceil(middles[some])
    unit = float(np.abs(means).max()) or 1.0
    spread = np.maximum(squares - ratio(np.minimum(losses, MOST_LOSS) ** 2, units), 0.0) * ratio(units, units - 1.0)
    errors = (np.sqrt(spread) / np.where(weights > 0.0, weights, 1.0))[some] / unit
    means = means / unit
    counts = weights[some] * recency(numbers)
    learned = rows_learned(np.maximum(numbers, 1.0).astype(np.int64))
    parts, inverse = counts / counts.sum(), 1.0 / learned
    centred = inverse - parts @ inverse
    slopes = parts * centred / max(float(parts @ centred**2), np.finfo(np.float64).tiny)
    mean_weights = parts + slopes * (1.0 / end - float(parts @ inverse))  # a weighted sum of the means is E(end)
    least = float(parts @ (means * np.minimum(learned / end, 1.0)))
    loss = max(float(mean_weights @ means), least)
    return EstimatedLoss(unit * loss, unit * math.sqrt(float(mean_weights**2 @ errors**2)))

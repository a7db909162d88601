"""The last rows: they tell how members predict rows that come later than those learned.

Where rows are in the order of time and what is to be predicted drifts, a jury of rows of all times is blind: a member
that knows each day of the past predicts it best, and later days worst. So members first learn without the last third of
the rows, as a whole, since a neighbour in time of a row that was learned tells nothing. By these rows the shares follow
the rule of frozen copies (:mod:`tunefree.model.soft_bayes`, of numbers :mod:`tunefree.model.ml_prod`). Its candidates
are the mixture that the jury chose, which begins with nearly all, and each member. If that mixture loses DRIFTS times
what the shares lost, the stream drifts, and these are the shares of the members that learn all rows. Else the jury
weighs those, as if nothing had been tried.

Last rows are different also where rows are sorted. Sorted by class, or by the number to predict, they are of few
classes, and would choose whoever predicts these: :func:`resemble` tells so, before anything is learned. Classes that
are somewhat more frequent among the last rows count less there (importance weights, as for label shift). Sorted by a
category, rows are of one that is rare before: they do not judge (:func:`with_usual_codes`), unless it is the month or
the year of a date. Rows sorted by a number are not told from rows in the order of time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.rows import as_table
from tunefree.distributed.common_model import labelled
from tunefree.distributed.encoded import Encoded
from tunefree.model.deployment import RULES
from tunefree.model.group import LabelledRows
from tunefree.model.mixture import predictive_shares
from tunefree.model.model import Model
from tunefree.model.soft_bayes import PRIOR, Deployed
from tunefree.stream.calendar import Timestamp
from tunefree.stream.features import MOST_CODES
from tunefree.stream.late import Late

LAST_OF = 3  # of so many parts of the rows the last one judges
BETWEEN = 0.25, 0.5  # of the rows, between which whole shards are the last ones
FEWEST = 1024  # last rows; of fewer nobody is judged
DRIFTS = 1.02  # times the loss of the shares learned on the last rows, from which on these shares predict
RATIO = 4.0  # of how often classes or categories come among the last rows and before, up to which that is usual
SMOOTHING = 5.0  # rows that are added to each, so that rare ones decide nothing
PARTS = 8  # of equal size into which numbers to predict are cut to compare them


class Judged(NamedTuple):
    """What last rows tell."""

    shares: np.ndarray  # (N,) of the members, learned on these rows
    loss: float  # mean loss of the shares while they were learned
    of_jury: float  # mean loss of the mixture that the jury chose

    @property
    def drifts(self) -> bool:
        """Whether the mixture that the jury chose does not hold for later rows."""
        return self.of_jury > DRIFTS * self.loss


def first_of_last(offsets: Sequence[int]) -> int:
    """The number of the first of the last rows; that of all rows if there are none.

    Where a shard begins near a third from the end, it is that shard's first row: then all shards stay whole.

    Parameters
    ----------
    offsets : sequence of int
        Rows before each shard, and all rows.

    Examples
    --------
    >>> first_of_last([0, 10_000, 20_000, 30_000, 40_000]), first_of_last([0, 30_000]), first_of_last([0, 10, 20, 30])
    (30000, 20000, 30)
    """
    rows = offsets[-1]
    if rows // LAST_OF < FEWEST:
        return rows
    first = rows - rows // LAST_OF
    edges = [own for own in offsets if BETWEEN[0] * rows <= rows - own <= BETWEEN[1] * rows]
    return min(edges, key=lambda own: abs(own - first), default=first)


def resemble(last: np.ndarray, early: np.ndarray, task: str) -> bool:
    """Whether targets of the last rows are about as frequent as before; of few rows rare ones do not matter.

    Parameters
    ----------
    last, early : (n,), (m,) array
        Codes of classes, or numbers, which are compared by the eighth of the earlier ones in which they are.
    task : {"classification", "regression"}

    Examples
    --------
    >>> days = np.arange(1000) % 7
    >>> resemble(days[-100:], days, "classification"), resemble(np.full(100, 6), days, "classification")
    (True, False)
    >>> resemble(np.arange(900.0, 1000.0), np.arange(900.0), "regression")
    False
    """
    if not len(last) or not len(early):
        return False
    if task == "regression":
        edges = np.unique(np.quantile(early, np.arange(1, PARTS) / PARTS))
        last, early = (np.searchsorted(edges, own, side="right") for own in (last, early))
    ratios = _ratios(last.astype(np.int64), early.astype(np.int64), len(last) / len(early))
    return bool(ratios.max() <= RATIO and ratios.min() >= 1.0 / RATIO)


def _ratios(last: np.ndarray, early: np.ndarray, scale: float) -> np.ndarray:
    """How often each code comes among the last rows, over how often it would if it came as often as before."""
    size = 1 + max(int(last.max(initial=0)), int(early.max(initial=0)))
    found, expected = np.bincount(last, minlength=size), np.bincount(early, minlength=size) * scale
    return np.asarray((found + SMOOTHING) / (expected + SMOOTHING))


def with_usual_codes(last: Encoded, early: Encoded, dates: Sequence[int] = ()) -> Encoded:
    """The last rows without those that have a category which came far more rarely before.

    Parameters
    ----------
    last, early : Encoded
    dates : sequence of int
        Columns of dates, whose codes are new as time goes on.
    """
    codes, before = (_codes(rows, dates) for rows in (last, early))
    if not codes.shape[1]:
        return last
    is_rare = _ratios(codes.ravel(), before.ravel(), len(last.y) / len(early.y)) > RATIO
    is_rare[0] = False  # missing
    return last.at(~is_rare[codes].any(axis=1))


def _codes(rows: Encoded, dates: Sequence[int]) -> np.ndarray:
    """The categories (n, q) of rows but those of dates."""
    table = as_table(rows.X)
    return np.asarray(table.codes[:, ~np.isin(table.code_columns // MOST_CODES, dates)])


def dates_of(encoder: Any) -> list[int]:
    """The columns of an encoder that are dates or timestamps, by their places."""
    columns = (column.column if isinstance(column, Late) else column for column in getattr(encoder, "columns", ()))
    return [place for place, column in enumerate(columns) if isinstance(column, Timestamp)]


def judged(model: Model, last: Encoded, early: Encoded, dates: Sequence[int]) -> Judged | None:
    """What the last rows tell of a model that has learned earlier ones, and that the jury has weighed; None if nothing.

    Parameters
    ----------
    model : Model
    last, early : Encoded
        At the coordinator.
    dates : sequence of int
        Columns of dates.
    """
    last = with_usual_codes(last.at(last.weight > 0.0), early, dates)
    if len(last.y) < FEWEST:
        return None
    rows = labelled(model, last)
    if model.task == "classification":
        rows = rows._replace(weight=rows.weight * _class_factors(last, early))
    return _by_rule(model, rows)


def _class_factors(last: Encoded, early: Encoded) -> np.ndarray:
    """Weights (n) by which classes of the last rows weigh as much as before."""
    codes = last.y.astype(np.int64), early.y.astype(np.int64)
    size = 1 + max(int(own.max()) for own in codes)
    found, before = (
        np.bincount(own, rows.weight, size) / rows.weight.sum() for own, rows in zip(codes, (last, early), strict=True)
    )
    factors = np.divide(before, found, out=np.ones(size), where=found > 0.0)
    return np.asarray(np.clip(factors, 1.0 / RATIO, RATIO)[codes[0]])


def _by_rule(model: Model, rows: LabelledRows) -> Judged:
    """Learn shares of the jury's mixture and of all members whose predictions are numbers."""
    predictions = model.member_predictions(rows.X)
    is_finite = np.isfinite(predictions).all(axis=(1, 2))
    before = predictive_shares(model.mixture)[is_finite]
    before = before / before.sum()
    rules, n_members = RULES[model.task], len(before)
    rule = rules.create(np.r_[PRIOR, np.full(n_members, (1.0 - PRIOR) / n_members)])
    limits = np.array([model.mixture.lowest]), np.array([model.mixture.highest])
    copy = Deployed(before[None], before[None], np.ones(1), np.zeros(1), *limits)
    losses = np.empty((1, len(rows.y)))
    rules.judge(rule, model.objective, rows.y, rows.weight, copy, predictions[None, is_finite], losses)
    shares, weight = np.zeros(len(is_finite)), float(rows.weight.sum())
    shares[is_finite] = rule.means[1:] + rule.means[0] * before
    return Judged(shares / shares.sum(), float(rule.loss[()]) / weight, float(rule.losses[0]) / weight)


def take(model: Model, shares: np.ndarray) -> None:
    """Let a model predict with some shares."""
    mixture: Any = model.mixture
    mixture.shares[:] = mixture.means[:] = shares

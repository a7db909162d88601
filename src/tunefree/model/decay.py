"""How the loss of a model that stands still changes with its age, from copies that were judged by the rows after them.

A copy of a model after s rows predicts rows up to s + span. Its losses are summed for each of AGES parts of the span.
They are compared with the loss on the way: that just before the copy was made, over the rows from s / sqrt(2) to s, and
that on the very rows that the copy predicted. The geometric mean of both ratios over the copies, times the loss on the
way over the latest rows, is the loss to expect once learning ends now. Without drift the first ratio is right as long
as the loss falls like a power of the rows, and too low once it falls more slowly. The second is too high as long as it
falls, since the model on the way has learned more than the copy.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tunefree.core import compiled
from tunefree.model import schedule
from tunefree.model.mixture import TOO_MUCH

AGES = 8  # parts of the span
WINDOW = 2  # cuts: half an octave
RECENT = 32.0  # copies made after so manyth of the rows count
FEWEST_ROWS = 512  # of a copy that counts
DRIFTS = 1.1  # times the loss before from which on a stream is said to drift
GRACE = 1.05  # times the loss of the youngest copies up to which a model may stand still


class Expectation(NamedTuple):
    """What is to be expected of a model that stands still from now on."""

    loss: float  # mean loss over the horizon
    horizon: int  # rows ahead
    recent: float  # mean loss on the way, over the latest rows
    ages: list[float]  # mean loss in each eighth of the horizon; NaN where no copy was so old
    kept_up: float  # loss of copies over the loss on the way, on the same rows
    copies: int  # of how many that is

    @property
    def drifts(self) -> bool:
        """Whether a model that stands still is expected to be clearly worse than one that goes on learning."""
        return self.loss > DRIFTS * self.recent and self.kept_up > DRIFTS

    @property
    def retrain_every(self) -> int | None:
        """Rows for which the mean loss stays near that of the first ones; None if that is as long as is known."""
        known = [age for age in self.ages if age == age]
        for k in range(1, len(known)):
            if sum(known[: k + 1]) / (k + 1) > GRACE * known[0]:
                return self.horizon * k // AGES
        return None


class Copy(NamedTuple):
    """Losses of one copy."""

    rows: int  # learned when it was made
    span: int  # rows after these that it is judged by
    sums: np.ndarray  # (AGES, 3) by age: weight of rows, their losses, and their losses on the way; in place


class Decay:
    """Losses of copies by age, and losses on the way.

    Attributes
    ----------
    copies : list of Copy
        In the order in which they were made.
    way : (cuts, 2) array
        Weight of the rows, and their losses on the way, up to each cut from the one before.
    """

    def __init__(self) -> None:
        self.copies: list[Copy] = []
        self.way = np.zeros((schedule.N_CUTS, 2))

    def add(self, rows: int, span: int) -> Copy:
        """A copy is made."""
        self.copies.append(Copy(rows, span, np.zeros((AGES, 3))))
        return self.copies[-1]

    def go_on(self, rows: int, weight: np.ndarray, losses: np.ndarray) -> None:
        """Rows up to the one with number ``rows`` were predicted and learned; no cut lies between them."""
        if len(losses):
            _add(self.way[schedule.place(rows)][None, :], np.zeros(len(losses), np.int64), weight, losses, losses[:0])

    def expectation(self, rows: int, horizon: int | None = None) -> Expectation | None:
        """What to expect after so many rows; None if too little is known.

        Parameters
        ----------
        rows : int
            Learned so far.
        horizon : int, optional
            Rows ahead that copies were judged by, if fewer than the rows learned.
        """
        known = [own for own in self.copies if own.rows >= max(rows / RECENT, FEWEST_ROWS) and own.sums[0, 0] > 0.0]
        before = [self._recent(own.rows) for own in known]
        usable = [(own, level) for own, level in zip(known, before, strict=True) if level > 0.0]
        if not usable:
            return None
        sums, recent = np.array([own.sums for own, _ in usable]), self._recent(rows)
        weight, of_copies, on_the_way = sums.sum(axis=1).T
        levels = np.array([level for _, level in usable])
        kept_up, before_them = (
            _mean_ratio(of_copies, on_the_way, weight),
            _mean_ratio(of_copies, levels * weight, weight),
        )
        loss = recent * math.sqrt(before_them * kept_up)
        with np.errstate(all="ignore"):
            losses, at_levels = sums[:, :, 1].sum(axis=0), levels @ sums[:, :, 0]
            ages = loss * (losses / at_levels) / _ratio(losses.sum(), at_levels.sum())
        return Expectation(loss, min(rows, horizon or rows), recent, ages.tolist(), kept_up, len(usable))

    def _recent(self, rows: int) -> float:
        """The mean loss on the way over the last rows up to the one with this number."""
        last = schedule.place(rows)
        weight, losses = self.way[max(0, last + 1 - WINDOW) : last + 1].sum(axis=0)
        return float(losses / weight) if weight > 0.0 else 0.0

    def save_state(self) -> dict[str, np.ndarray]:
        """Arrays from which :meth:`restored` makes the same."""
        numbers = np.array([[own.rows, own.span] for own in self.copies], np.int64).reshape(-1, 2)
        sums = np.array([own.sums for own in self.copies]).reshape(-1, AGES, 3)
        used = np.flatnonzero(self.way[:, 0])
        return {"copies": numbers, "sums": sums, "way": self.way[: used[-1] + 1 if len(used) else 0]}

    @classmethod
    def restored(cls, arrays: dict[str, np.ndarray]) -> Decay:
        """What was saved."""
        made = cls()
        made.copies = [
            Copy(rows, span, own.copy())
            for (rows, span), own in zip(arrays["copies"].tolist(), arrays["sums"], strict=True)
        ]
        made.way[: len(arrays["way"])] = arrays["way"]
        return made


def _ratio(number: float, by: float) -> float:
    return float(number / by) if min(number, by) > 0.0 else 1.0


def _mean_ratio(numbers: np.ndarray, by: np.ndarray, weight: np.ndarray) -> float:
    """The geometric mean of ratios: one copy just before a change does not outweigh all others."""
    logarithms = [math.log(_ratio(number, of)) for number, of in zip(numbers.tolist(), by.tolist(), strict=True)]
    return math.exp(np.average(logarithms, weights=weight))


@compiled.entry
def _add(sums, ages, weight, losses, way):
    """Add to sums (AGES, 2 or 3) row by row, so that they do not depend on where batches are cut."""
    for i in range(len(ages)):
        own = sums[ages[i]]
        own[0] += min(weight[i], TOO_MUCH)
        own[1] += min(weight[i] * losses[i], TOO_MUCH)
        if len(way) > 0:
            own[2] += min(weight[i] * way[i], TOO_MUCH)


def add_losses(of_copy: Copy, counts: np.ndarray, weight: np.ndarray, losses: np.ndarray, way: np.ndarray) -> None:
    """Add losses (n,) of a copy, and those on the way, of the rows with some numbers."""
    ages = np.minimum(AGES * (counts - of_copy.rows - 1) // of_copy.span, AGES - 1)
    _add(of_copy.sums, ages, weight, losses, way)

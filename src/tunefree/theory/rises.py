"""A test for rises of the loss along a stream, with the row where a rise starts. A rise is a sign of drift.

Each loss is ranked among all losses so far. If losses are exchangeable, the rank of the next one is uniform and
independent of the past: with a share a of the losses larger, and b at least as large, p is uniform from a to b (Vovk,
Gammerman, Shafer: Algorithmic learning in a random world, 2005, chapters 7 and 8). If predictions improve, p tends to
be larger. A bet on small p, with odds c and power e, assumes the cumulative distribution

    F(p) = (c p / (1 + (c - 1) p))^e,    c >= 1,  e <= 1,                                                          (1)

where e = 1 is for a rise of all losses, and c = 1 for a few losses that exceed nearly all earlier ones. The capital is

    S_t = prod_t (F(b_t) - F(a_t)) / (b_t - a_t),                                                                  (2)

a conformal test martingale that starts at 1 (in these chapters p is drawn between a and b; c = 1 is their power
martingale). The sum over the rows s where betting starts, as in the procedure of Shiryaev and Roberts (for such
martingales Vovk et al.: Retrain or not retrain, 2021; in general the e-detector e-SR of Shin, Ramdas, Rinaldo 2024), is
weighted here,

    R_t = mean_(c, e) sum_s w_s S_t / S_s,    sum_s w_s = 1,                                                       (3)

and so is also a martingale that starts at 1. Without weights, an alarm at 1 / level would have an average run length of
at least 1 / level, so a long stream would certainly have false alarms. With weights, the probability of any false alarm
is at most ``level`` for streams of any length (Ville's inequality). The price is a delay: after n rows a rise is
significant when the gain is 1 / w_n times larger, and 1 / w_n grows as n (log n)^2. When R_t reaches 1 / level, the
losses have risen. The start of the rise is the row where betting would have gained most, as in CUSUM. Then the test
restarts with the following rows: the probability of a false alarm is at most ``level`` for each further stretch of
exchangeable losses.

The ratio of two tiny losses is meaningless. So losses below a tenth of a scale, such as the loss of a guess, are equal.

The losses of a predictor that is still learning are not exchangeable: while its probability of a class rises a little
with each row, each loss of the other class is the largest so far. So earlier losses that are smaller by less than a
share of the mean loss count as equal. This only makes b larger: F is concave, so the factor of (2) becomes smaller, and
the probability of a false alarm with exchangeable losses remains at most ``level``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Annotated, NamedTuple

import numpy as np

from tunefree.compiled.functions import compiled
from tunefree.core.part import LEARNED, Part, array, number
from tunefree.core.schema import COUNT, Record, Sequence, Size
from tunefree.theory.column_changes import Comparison

LEVEL = 0.001  # upper bound on the probability of a false alarm
# Odds c and powers e: for small lasting rises, for large rises, and for a few large losses.
_BETS = np.array([[2.0, 1.0], [16.0, 1.0], [1.0, 0.4]])
LOCATING = 2  # index into _BETS of the bet that locates the start of a rise
CELLS, PER_DOUBLING = 1024, 4  # of the histogram of losses, logarithmic: number of cells, and per factor of 2
SMALL = 0.1  # share of the scale below which losses and rises are ignored
NEAR = 0.075  # share of the mean loss by which an earlier loss may be smaller and count as equal
LEAST = 1.1  # least factor of a rise
MOST_KEPT = 64  # number of rises kept, the largest and the latest; others are only counted
STATE = ("counts", "capital", "gain", "sums", "start", "scale")  # arrays of a test


@dataclass(frozen=True)
class Rise:
    """A rise of the loss from a row on."""

    row: int  # number in the stream, from 1
    file: str  # of that row
    row_in_file: int
    time: str | None  # of that row, from the first column of dates; None if missing
    rows: int  # from that row until the rise was significant
    loss: Size  # their mean loss
    rows_before: int  # since the previous rise
    loss_before: Size
    comparison: Comparison = field(default_factory=lambda: Comparison(0, 0, 0, []))  # of rows before and after

    @property
    def size(self) -> float:
        """The increase of the mean loss."""
        return self.loss - self.loss_before


class Place(NamedTuple):
    """The file and number of a row."""

    row: int = 0  # of the stream
    file: str = ""
    row_in_file: int = 0
    time: str | None = None


class Added(NamedTuple):
    """The result of adding losses."""

    rows: int
    rows_of_rise: int  # number of latest rows in a rise that is now significant; 0 without a rise
    is_kept: bool  # whether the rise is large enough to be kept


class LossRises(Part):
    """The rises of the losses of a stream: their number, the largest rise and the latest, at most MOST_KEPT.

    >>> test, losses = LossRises(), np.random.default_rng(0).exponential(size=2000)
    >>> test.add(losses, np.ones(2000), np.ones(2000), lambda row: Place(row + 1, "a.csv", row + 1))
    Added(rows=2000, rows_of_rise=0, is_kept=False)
    >>> test.add(9.0 * losses, np.ones(2000), np.ones(2000), lambda row: Place(row + 2001, "b.csv", row + 1))
    Added(rows=9, rows_of_rise=13, is_kept=True)
    >>> rise = test.rises[0]
    >>> test.count, rise.row, rise.rows, round(rise.loss_before, 2), round(rise.loss, 2)
    (1, 1997, 13, 1.01, 6.13)
    """

    rises = number(LEARNED, Sequence(Record(Rise), MOST_KEPT))
    count = number(LEARNED, COUNT)
    place = number(LEARNED, Record(Place))
    scale = array("float64", (2,), LEARNED, low=0, may_be_infinite=True)
    targets = array("float64", (2,), LEARNED)
    counts = array("int64", (CELLS,), LEARNED, low=0)
    capital = array("float64", (len(_BETS),), LEARNED, low=0)
    gain = array("float64", (1,), LEARNED)
    sums = array("float64", (3,), LEARNED, low=0, may_be_infinite=True)
    start = array("float64", (4,), LEARNED, may_be_infinite=True)

    def __init__(self) -> None:
        self.rises = []
        self.count = 0
        self.scale = np.zeros(2)  # sum of the scales of rows, and number of rows
        self.targets = np.zeros(2)  # sum of weights and weighted sum of numeric targets; their mean is a guess
        self.counts = np.zeros(CELLS, np.int64)  # histogram of losses
        self.capital = np.zeros(len(_BETS))  # of each bet
        self.gain = np.zeros(1)  # log-capital of the locating bet from the first row on
        self.sums = np.zeros(3)  # rows, weight, and weighted losses
        self.start = np.zeros(4)  # the least gain so far, and the sums at that row
        self.place = Place()  # location of the row after the least gain

    def add(self, losses: np.ndarray, weight: np.ndarray, scale: np.ndarray, place: Callable[[int], Place]) -> Added:
        """Add losses (n,) in the order of their rows, up to a significant rise; weights are positive.

        The scale of losses is the mean of ``scale`` (n,), such as the losses of constant predictions. ``place`` returns
        the location of a row by its index. The result does not depend on batch boundaries.
        """
        progress, record = np.empty(2, np.int64), np.zeros(7)
        follow(losses, weight, scale, progress, record, *(getattr(self, name) for name in STATE))
        n, lowest = progress.tolist()
        start = self.place if lowest < 0 else place(lowest)
        rows = int(record[0])
        self.place = start if rows == 0 else Place()
        return Added(n, rows, rows > 0 and self._keep(record, start))

    @property
    def rows_since(self) -> int:
        """The number of rows since the start of the rise that would be located at the next row."""
        return int(self.sums[0] - self.start[1])

    def _keep(self, record: np.ndarray, place: Place) -> bool:
        """Keep the rise of a record if it is large enough; returns whether it is."""
        rows, weight, total, rows_before, weight_before, total_before, scale = record.tolist()
        loss = total / weight
        loss_before = total_before / weight_before if weight_before > 0.0 else np.inf
        if not (np.isfinite(loss) and loss >= LEAST * loss_before and loss - loss_before >= SMALL * scale):
            return False
        self.count += 1
        self.rises = [*self.rises, Rise(*place, int(rows), loss, int(rows_before), loss_before)]
        if len(self.rises) > MOST_KEPT:  # keep the first largest rise
            self.rises.pop(1 if self.rises[0] is max(self.rises, key=attrgetter("size")) else 0)
        return True


@compiled
def follow(
    losses: Annotated[np.ndarray, "float64[rows]"],
    weight: Annotated[np.ndarray, "float64[rows]"],
    scale: Annotated[np.ndarray, "float64[rows]"],
    progress: Annotated[np.ndarray, "int64[2]"],
    record: Annotated[np.ndarray, "float64[7]"],
    counts: Annotated[np.ndarray, "int64[cells]"],
    capital: Annotated[np.ndarray, "float64[bets]"],
    gain: Annotated[np.ndarray, "float64[1]"],
    sums: Annotated[np.ndarray, "float64[3]"],
    start: Annotated[np.ndarray, "float64[4]"],
    scales: Annotated[np.ndarray, "float64[2]"],
) -> None:
    """Bet on losses up to a significant rise, after which betting begins anew.

    ``progress`` becomes how many losses these are, and the latest of least gain. ``record`` becomes the sums of the
    rise and the sums before it, and the mean scale.
    """
    progress[0], progress[1] = len(losses), -1
    highest = _highest(counts)
    floor, small, before, octave_end = 0, -1.0, 0.0, 0.0
    for i in range(len(losses)):
        if sums[0] == 0.0 or gain[0] <= start[0]:  # of equal losses the last one
            progress[1] = i
            start[0], start[1], start[2], start[3] = gain[0], sums[0], sums[1], sums[2]
        scales[0] += scale[i]
        scales[1] += 1.0
        if small != SMALL * scales[0] / scales[1]:  # constant if constant predictions always have the same loss
            small = SMALL * scales[0] / scales[1]
            floor = _cell(small)
        cell = max(_cell(losses[i]), floor)
        counts[cell] += 1
        highest = max(highest, cell)
        rows, above, total = sums[0] + 1.0, _sum_of(counts[cell + 1 : highest + 1]), 0.0
        ties = _ties(counts, sums, losses[i], cell, floor, rows - above)
        if rows >= octave_end:
            before, octave_end = _prior(sums[0])
        for k in range(len(capital)):
            believed = _believed((above + ties) / rows, k) - _believed(above / rows, k)
            bet = believed / (ties / rows)
            capital[k] = (capital[k] + before) * bet
            total += capital[k]
            if k == LOCATING:
                gain[0] += np.log(bet)
        sums[0] = rows
        sums[1] += weight[i]
        sums[2] += weight[i] * losses[i]
        if total >= len(capital) / LEVEL:
            progress[0], record[6] = i + 1, scales[0] / scales[1]
            for k in range(3):
                record[k], record[3 + k] = sums[k] - start[1 + k], start[1 + k]
            counts[:], capital[:], gain[:], sums[:], start[:] = 0, 0.0, 0.0, 0.0, 0.0
            break


def _ties(counts, sums, loss, cell, floor, n_up_to_cell):
    """The number of losses that count as equal to a loss of this cell; all in the cell ``floor`` and below do."""
    mean = sums[2] / sums[1] if 0.0 < sums[1] < np.inf else 0.0
    lowest = _cell(loss - NEAR * mean)
    return _sum_of(counts[lowest : cell + 1]) if lowest > floor else n_up_to_cell


def _believed(p, k):
    """Equation (1)."""
    odds, power = _BETS[k]
    share = odds * p / (1.0 + (odds - 1.0) * p)
    return share if power == 1.0 else share**power


def _cell(loss):
    return int(min(max(PER_DOUBLING * np.log2(max(loss, 1e-300)) + CELLS / 2, 0.0), CELLS - 1.0))


def _highest(counts):
    """The last cell that has losses; 0 if none has."""
    cell = len(counts) - 1
    while cell > 0 and counts[cell] == 0:
        cell -= 1
    return cell


def _sum_of(counts):
    total = 0
    for count in counts:
        total += count
    return total


def _prior(rows):
    """The part of the capital 1 with which betting begins after so many rows, and the row up to which it is the same.

    Octave k of the rows has 1 / ((k + 1) (k + 2)), and each row of it the same part of that. All parts add up to 1.
    """
    octave = np.floor(np.log2(rows + 1.0))
    return 1.0 / ((octave + 1.0) * (octave + 2.0) * 2.0**octave), 2.0 ** (octave + 1.0)

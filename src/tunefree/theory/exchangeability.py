"""A test of exchangeability: whether the order of the rows matters for their targets.

Rows that are independent and identically distributed, or that have been shuffled, are exchangeable: given how often
each target occurs, every order is equally likely. So the next target is a draw without replacement. Somebody who bets a
part s of a fortune on targets being as among the last h ones has a fortune

    prod_t (1 - s + s q_t / r_t)

with q_t the share of the target of row t among the h before it, and r_t its share among the targets still to be drawn.
Given the past, the target of row t is k with probability r_t(k), so a factor has a mean of at most 1: the fortune is a
supermartingale that starts at 1, and so is the average of fortunes for several s and h. By Markov's inequality its last
value exceeds 1 / level with probability at most ``level``, for any distribution of the targets and any number of rows
(Vovk, Gammerman, Shafer 2005, chapter 7, on betting against exchangeability). Sorted rows make it huge. A small value
proves nothing.

Numbers are replaced by the part of their own sample, between quantiles, in which they lie. This depends on the numbers
and not on their order, so it changes nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.part import FIXED, LEARNED, Part, array, number
from tunefree.core.schema import COUNT, Flag, Number

LEVEL = 0.001  # probability of a false alarm, at most
FIRST = 2048  # targets kept of the beginning of a stream
MOST_SPACED = 4096  # targets kept of all of it, at equal distances
HORIZONS = (1, 8, 64, 512)  # numbers of preceding targets that are bet on
STAKES = (0.03, 0.3, 0.9)
PARTS = (2, 16)  # into which numbers are divided
MOST_CODES = 2**15  # of classes
SORTED = 0.1  # neighbours differ less than so many times as often as in a random order: sorted, or in groups


class Finding(NamedTuple):
    """The dependence of the targets on the order of the rows."""

    log_evidence: float  # natural logarithm of the average fortune
    changes: int  # neighbours that differ, of those that were looked at
    expected: float  # neighbours that differ in a random order, on the average

    @property
    def is_dependent(self) -> bool:
        """Whether exchangeability is refuted at the level ``LEVEL``."""
        return self.log_evidence >= -math.log(LEVEL)

    @property
    def is_sorted(self) -> bool:
        """Whether rows are sorted by the target, or come in groups of equal ones."""
        return self.is_dependent and self.changes < SORTED * self.expected


class TargetSample(Part):
    """Targets of the beginning of a stream, at most FIRST, and of all of it at equal distances.

    These are of rows 0, s, 2 s, ... for the smallest power of two s for which there are at most MOST_SPACED. Targets
    are numbers, or codes of classes, from 0.

    >>> sample = TargetSample()
    >>> sample.add(np.repeat([0, 1], 500))
    >>> sample.finding().is_sorted
    True
    >>> shuffled = TargetSample()
    >>> shuffled.add(np.random.default_rng(0).permutation(np.repeat([0, 1], 500)))
    >>> shuffled.finding().is_dependent
    False
    """

    numbers = number(FIXED, Flag())
    rows = number(LEARNED, COUNT)
    stride = number(LEARNED, Number(1, 2**62, whole=True))
    first = array("float64|int16", (None,), LEARNED)
    spaced = array("float64|int16", (None,), LEARNED)

    def __init__(self, numbers: bool = False) -> None:
        self.numbers, self.rows, self.stride = numbers, 0, 1
        self.first = self.spaced = np.empty(0)

    def check(self) -> None:
        """Raise a ModelError if codes of classes are none."""
        for codes in () if self.numbers else (self.first, self.spaced):
            if not 0 <= codes.min(initial=0) <= codes.max(initial=0) < MOST_CODES:
                raise ModelError("order has classes that are none")

    def add(self, targets: np.ndarray) -> None:
        """Add targets in the order of their rows; nothing depends on how rows are divided into batches."""
        targets = np.asarray(targets, self.first.dtype)
        self.first = np.append(self.first, targets[: FIRST - len(self.first)])
        self.spaced = np.append(self.spaced, targets[-self.rows % self.stride :: self.stride])
        self.rows += len(targets)
        while len(self.spaced) > MOST_SPACED:
            self.spaced, self.stride = self.spaced[::2], 2 * self.stride

    def finding(self) -> Finding:
        """The dependence of the targets on the order, for the rows so far."""
        samples = [self.spaced] if self.stride == 1 else [self.spaced, self.first]
        counts = PARTS if self.numbers else (0,)
        logs = [log_fortunes(_codes(sample, sample, count)) for sample in samples for count in counts]
        everything = _codes(self.spaced, self.spaced, counts[-1])
        # the share of neighbours that differ, on the average over all orders
        n, occurrences = len(everything), np.bincount(everything).astype(np.float64)
        share = 1.0 - float((occurrences * (occurrences - 1)).sum()) / max(n * (n - 1), 1)
        sample_codes = [_codes(sample, self.spaced, counts[-1]) for sample in samples]
        changes = [(int(np.count_nonzero(np.diff(codes))), share * max(len(codes) - 1, 0)) for codes in sample_codes]
        return Finding(log_mean(np.concatenate(logs)), *min(changes, key=lambda both: both[0] / max(both[1], 1e-9)))


def _codes(targets: np.ndarray, sample: np.ndarray, parts: int) -> np.ndarray:
    """Targets as codes from 0: classes as they are, numbers by the part between quantiles of ``sample`` they lie in."""
    if not parts or not len(sample):
        return targets.astype(np.int64)
    edges = np.sort(sample)[np.arange(1, parts) * len(sample) // parts]
    return np.searchsorted(edges, targets, side="right").astype(np.int64)


def log_fortunes(codes: np.ndarray) -> np.ndarray:
    """Logarithms of the fortunes of all who bet on a sequence of codes (n,), one for each horizon and stake.

    The second of these bets is lost: 1 - 0.03, 0.3, 0.9.

    >>> np.exp(log_fortunes(np.array([0, 1]))).round(2)[:3]
    array([0.97, 0.7 , 0.1 ])
    """
    n, rows = len(codes), np.arange(len(codes))
    counts = np.bincount(codes)
    starts = np.cumsum(counts) - counts
    order = np.argsort(codes, kind="stable")
    before = np.empty(n, np.int64)  # rows before with the same code
    before[order] = rows - starts[codes[order]]
    still = (counts[codes] - before) / np.maximum(n - rows, 1)
    keys = codes[order] * n + order  # ascending: by code, then by row
    logs = []
    for horizon in HORIZONS:
        begin = np.maximum(rows - horizon, 0)
        recent = before - (np.searchsorted(keys, codes * n + begin) - starts[codes])
        gain = (recent / np.maximum(rows - begin, 1) / still - 1.0)[1:]
        logs += [np.log1p(stake * gain).sum() for stake in STAKES]
    return np.array(logs)


def log_mean(logs: np.ndarray) -> float:
    """The logarithm of the mean of numbers, from their logarithms."""
    largest = float(logs.max())
    return largest + math.log(float(np.exp(logs - largest).mean()))

"""A test of exchangeability: whether the targets depend on the order of the rows.

Rows that are independent and identically distributed, or that have been shuffled, are exchangeable: given how often
each target occurs, every order is equally likely. So the next target is a draw without replacement. A bettor who stakes
a share s of a fortune on the frequencies of the last h targets has the fortune

    prod_t (1 - s + s q_t / r_t)

with q_t the share of the target of row t among the h targets before it, and r_t its share among the remaining targets.
Given the past, the target of row t is k with probability r_t(k), so a factor has a mean of at most 1: the fortune is a
supermartingale that starts at 1, and so is the average of fortunes for several s and h. By Markov's inequality its last
value exceeds 1 / level with probability at most ``level``, for any distribution of the targets and any number of rows
(Vovk, Gammerman, Shafer 2005, chapter 7, on betting against exchangeability). For sorted rows it is huge. A small value
proves nothing.

Numbers are binned by quantiles of their sample, which do not depend on the order, so the test remains valid.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.part import FIXED, LEARNED, Part, array, number
from tunefree.core.schema import COUNT, Flag, Number

LEVEL = 0.001  # upper bound on the probability of a false alarm
FIRST = 2048  # number of targets sampled from the start of a stream
MOST_SPACED = 4096  # largest number of equally spaced targets
HORIZONS = (1, 8, 64, 512)  # numbers h of preceding targets
STAKES = (0.03, 0.3, 0.9)
PARTS = (2, 16)  # numbers of bins of numeric targets
MOST_CODES = 2**15  # largest number of classes
SORTED = 0.1  # rows are sorted or grouped if neighbours differ less than SORTED times as often as in random order


class Finding(NamedTuple):
    """The dependence of the targets on the order of the rows."""

    log_evidence: float  # natural logarithm of the average fortune
    changes: int  # number of adjacent targets that differ
    expected: float  # expected number in a random order

    @property
    def is_dependent(self) -> bool:
        """Whether exchangeability is rejected at the level ``LEVEL``."""
        return self.log_evidence >= -math.log(LEVEL)

    @property
    def is_sorted(self) -> bool:
        """Whether rows are sorted or grouped by the target."""
        return self.is_dependent and self.changes < SORTED * self.expected


class TargetSample(Part):
    """A sample of the targets of a stream: the first ones, at most FIRST, and equally spaced ones.

    The latter are in rows 0, s, 2 s, ... for the smallest power of two s that gives at most MOST_SPACED targets.
    Targets are numbers, or codes of classes from 0.

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
        """Raise a ModelError if a code of a class is invalid."""
        for codes in () if self.numbers else (self.first, self.spaced):
            if not 0 <= codes.min(initial=0) <= codes.max(initial=0) < MOST_CODES:
                raise ModelError("order has classes that are none")

    def add(self, targets: np.ndarray) -> None:
        """Add targets in the order of their rows; the result does not depend on batch boundaries."""
        targets = np.asarray(targets, self.first.dtype)
        self.first = np.append(self.first, targets[: FIRST - len(self.first)])
        self.spaced = np.append(self.spaced, targets[-self.rows % self.stride :: self.stride])
        self.rows += len(targets)
        while len(self.spaced) > MOST_SPACED:
            self.spaced, self.stride = self.spaced[::2], 2 * self.stride

    def finding(self) -> Finding:
        """The dependence of the targets on the order of the rows so far."""
        samples = [self.spaced] if self.stride == 1 else [self.spaced, self.first]
        counts = PARTS if self.numbers else (0,)
        logs = [log_fortunes(_codes(sample, sample, count)) for sample in samples for count in counts]
        all_codes = _codes(self.spaced, self.spaced, counts[-1])
        # expected share of adjacent targets that differ, over all orders
        n, occurrences = len(all_codes), np.bincount(all_codes).astype(np.float64)
        share = 1.0 - float((occurrences * (occurrences - 1)).sum()) / max(n * (n - 1), 1)
        sample_codes = [_codes(sample, self.spaced, counts[-1]) for sample in samples]
        changes = [(int(np.count_nonzero(np.diff(codes))), share * max(len(codes) - 1, 0)) for codes in sample_codes]
        return Finding(log_mean(np.concatenate(logs)), *min(changes, key=lambda pair: pair[0] / max(pair[1], 1e-9)))


def _codes(targets: np.ndarray, sample: np.ndarray, parts: int) -> np.ndarray:
    """Targets as codes from 0: classes unchanged, numbers binned by the quantiles of ``sample``."""
    if not parts or not len(sample):
        return targets.astype(np.int64)
    edges = np.sort(sample)[np.arange(1, parts) * len(sample) // parts]
    return np.searchsorted(edges, targets, side="right").astype(np.int64)


def log_fortunes(codes: np.ndarray) -> np.ndarray:
    """Logarithms of the fortunes of bets on a sequence of codes (n,), one for each horizon and stake.

    In the example the second bet is lost: 1 - 0.03, 0.3, 0.9.

    >>> np.exp(log_fortunes(np.array([0, 1]))).round(2)[:3]
    array([0.97, 0.7 , 0.1 ])
    """
    n, rows = len(codes), np.arange(len(codes))
    counts = np.bincount(codes)
    starts = np.cumsum(counts) - counts
    order = np.argsort(codes, kind="stable")
    n_before = np.empty(n, np.int64)  # number of earlier rows with the same code
    n_before[order] = rows - starts[codes[order]]
    remaining_share = (counts[codes] - n_before) / np.maximum(n - rows, 1)
    keys = codes[order] * n + order  # ascending: by code, then by row
    logs = []
    for horizon in HORIZONS:
        begin = np.maximum(rows - horizon, 0)
        recent = n_before - (np.searchsorted(keys, codes * n + begin) - starts[codes])
        gain = (recent / np.maximum(rows - begin, 1) / remaining_share - 1.0)[1:]
        logs += [np.log1p(stake * gain).sum() for stake in STAKES]
    return np.array(logs)


def log_mean(logs: np.ndarray) -> float:
    """The logarithm of the mean of numbers given by their logarithms."""
    largest = float(logs.max())
    return largest + math.log(float(np.exp(logs - largest).mean()))

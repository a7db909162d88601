"""Profiles of the columns of training data, in bounded memory, and differences between predicted rows and profiles.

For each column, a profile keeps the number of present values, the smallest and the largest number, and the values in a
sample of rows. The sampled rows are those with the smallest fractional parts of row number times golden ratio. They are
the same for all columns, spread evenly over the stream, and do not depend on how it is cut into chunks. In the sample,
categories are numbers derived from their keys.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError, alike, listed
from tunefree.stream.batch import BadRows
from tunefree.stream.columns import MICROSECONDS_A_DAY, Observed, Timestamp
from tunefree.stream.jsonlines import shown

SAMPLE = 512  # rows of the sample; fewer for wide tables
MOST_NUMBERS = 2**19  # numbers in the sample, of all columns together
GOLDEN = 0x9E3779B97F4A7C15  # the golden ratio's fraction, times 2^64
LARGEST = 3e38  # the largest finite number, approximately, in single precision
FEWEST = 40  # values of each sample in a comparison
LEVEL = 1e-3  # probability of a false alarm, for all columns together, of each kind of test
MOST_CATEGORIES = 1000  # of a column that are counted separately
TOGETHER = 64  # rows of requests that are compared as one batch
MOST_NAMED = 3  # categories or columns in a message

_OUTSIDE = "outside the range of training, {} to {}, by more than its width, such as {}"
_MISSING = "missing in {:.3g} % of the rows, in training in {:.3g} % (a test of level {:g} for all columns together)"
_UNSEEN = "a category that training never saw: "
_OTHERWISE = "distributed otherwise than in training: {} (a test of level {:g} for all columns together)"


class Seen(NamedTuple):
    """The value of a column in a row; :class:`tunefree.stream.columns.Observed` is the same for many rows."""

    is_missing: bool
    number: float  # NaN if there is none
    value: float  # whose distribution is compared; NaN if there is none


def observed_of(seen_by_row: Sequence[Sequence[Seen]]) -> list[Observed]:
    """The values of each column, from the values of each row."""
    observed = []
    for seen_by_column in zip(*seen_by_row, strict=True):
        missing, numbers, values = map(np.array, zip(*seen_by_column, strict=True))
        values_of = None if np.isnan(values).all() else values.__getitem__
        observed.append(Observed(missing, None if np.isnan(numbers).all() else numbers, values_of))
    return observed


class Profile:
    """A profile of rows by column; later columns are appended."""

    def __init__(self, n_columns: int = 0) -> None:
        self.rows, self.capacity = 0, max(min(SAMPLE, MOST_NUMBERS // max(n_columns, 1)), FEWEST)
        self.present = np.zeros(0, np.int64)  # (c,) number of rows where each column is present
        self.ranges = np.zeros((0, 2))  # (c, 2) smallest and largest number; inf and -inf if there is none
        # (k,) keys of the sampled rows (fractional parts times 2^64), ascending: any first rows are a sample, too
        self.keys = np.zeros(0, np.uint64)
        self.values = np.zeros((0, 0), np.float32)  # (k, c); inf if missing or unknown
        self._widen(n_columns)

    def _widen(self, n_columns: int) -> None:
        more = n_columns - len(self.present)
        if more > 0:
            self.present = np.append(self.present, np.zeros(more, np.int64))
            self.ranges = np.concatenate([self.ranges, np.tile([np.inf, -np.inf], (more, 1))])
            unknown = np.full((len(self.values), more), np.inf, np.float32)
            self.values = np.concatenate([self.values, unknown], axis=1)

    def add(self, observed: Sequence[Observed | None], n: int) -> None:
        """Add n rows, given by the values of each column; None for a column that is absent from all of them."""
        self._widen(len(observed))
        keys = np.arange(self.rows, self.rows + n).astype(np.uint64) * np.uint64(GOLDEN)
        rows = np.arange(n) if len(self.keys) < self.capacity else np.flatnonzero(keys < self.keys[-1])
        rows = rows[np.argsort(keys[rows])[: self.capacity]]
        values, missing = np.zeros((len(rows), len(observed))), np.ones((len(rows), len(observed)), bool)
        ranges: dict[int, tuple[float, float]] = {}
        for index, column in enumerate(observed):
            if column is None:
                continue
            self.present[index] += n - np.count_nonzero(column.missing)
            if column.numbers is not None and n:
                ranges[index] = np.fmin.reduce(column.numbers), np.fmax.reduce(column.numbers)
            if column.values_of is not None and len(rows):
                values[:, index], missing[:, index] = column.values_of(rows), column.missing[rows]
        if ranges:
            (low, high), (new_low, new_high) = self.ranges[[*ranges]].T, np.array([*ranges.values()]).T
            self.ranges[[*ranges]] = np.column_stack([np.fmin(low, new_low), np.fmax(high, new_high)])
        np.clip(values, -LARGEST, LARGEST, out=values)
        values[missing] = np.inf
        self._keep(keys[rows], values.astype(np.float32))
        self.rows += n

    def _keep(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Add rows to the sample, and keep those with the smallest keys."""
        if len(keys):
            keys, values = np.concatenate([self.keys, keys]), np.concatenate([self.values, values])
            order = np.argsort(keys, kind="stable")[: self.capacity]
            self.keys, self.values = keys[order], values[order]

    def drawn(self, column: int) -> np.ndarray:
        """The values of a column in the sample that are not missing."""
        values = self.values[:, column] if column < self.values.shape[1] else self.values[:0].ravel()
        return values[values < np.inf]

    def absorb(self, arrays: dict[str, np.ndarray], indices: np.ndarray) -> None:
        """Add the rows of a saved profile; ``indices`` (c,) locate its columns in this profile."""
        other = Profile.restore(arrays, len(indices))
        self._widen(int(indices.max(initial=-1)) + 1)
        self.rows += other.rows
        self.present[indices] += other.present
        low, high = self.ranges[indices].T
        self.ranges[indices] = np.column_stack([np.fmin(low, other.ranges[:, 0]), np.fmax(high, other.ranges[:, 1])])
        values = np.full((len(other.keys), len(self.present)), np.inf, np.float32)
        values[:, indices] = other.values
        self._keep(other.keys, values)

    def save(self) -> dict[str, np.ndarray]:
        """Arrays from which :meth:`restore` creates the same profile."""
        counts = np.append([self.rows, self.capacity], self.present).astype(np.int64)
        arrays = {"counts": counts} | {name: getattr(self, name) for name in ("ranges", "keys", "values")}
        return {f"profile.{name}": array.copy() for name, array in arrays.items()}

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], n_columns: int) -> Profile:
        """The profile from the arrays of :meth:`save`; without arrays, a profile of no rows."""
        profile = cls(n_columns)
        if "profile.counts" in arrays:
            names = "counts", "ranges", "keys", "values"
            counts, profile.ranges, profile.keys, profile.values = (np.array(arrays[f"profile.{n}"]) for n in names)
            profile.rows, profile.capacity, profile.present = int(counts[0]), int(counts[1]), counts[2:]
            n = len(profile.present)
            shapes = profile.ranges.shape, profile.values.shape
            if n > n_columns or shapes != ((n, 2), (len(profile.keys), n)):
                raise ModelError("the ranges of columns do not fit the encoder")
            profile._widen(n_columns)
        return profile


def is_unusual(row: Sequence[Seen], profile: Profile) -> bool:
    """Whether a number of a row lies outside the range of training by more than its width."""
    for seen, (low, high) in zip(row, profile.ranges.tolist(), strict=False):
        width = high - low  # negative if training has no number
        if width >= 0.0 and (seen.number < low - width or seen.number > high + width):
            return True
    return False


class Comparison:
    """A comparison of predicted rows with the profile of the rows learned by an encoder."""

    def __init__(self, encoder: Any) -> None:
        self.encoder, self.here = encoder, Profile(len(encoder.columns))
        self.first: tuple[str, int] = ("", 1)
        self.odd: dict[tuple[str, int], _OddRows] = {}  # by problem and column index
        self._pending: list[Sequence[Seen]] = []  # rows of requests

    def add_seen(self, seen: Sequence[Seen], file: str) -> None:
        """Add a row of a request; rows are compared in batches."""
        self.first = self.first if self.here.rows else (file, 1)
        self._pending.append(seen)
        if len(self._pending) == TOGETHER:
            self._add_waiting()

    def _add_waiting(self) -> None:
        seen_by_row, self._pending = self._pending, []
        self.add(observed_of(seen_by_row), [], self.first[0], np.ones(len(seen_by_row), np.int64))

    def add(
        self,
        observed: Sequence[Observed | None],
        unknown: Sequence[tuple[int, str, int, int]],
        file: str,
        numbers: np.ndarray,
    ) -> None:
        """Add rows of a file: the values of each column, unknown codes (see ``FeatureIds``), and the row numbers."""
        if not len(numbers):
            return
        self.first = self.first if self.here.rows else (file, int(numbers[0]))
        self.here.add(observed, len(numbers))
        columns = self.encoder.columns
        for index, code, count, row in unknown:
            prefix = f"{columns[index].name}="
            if code.startswith(prefix):  # not that of a missing value or a part of a date: new years are expected
                self._count(_UNSEEN, index, code.removeprefix(prefix), count, file, int(numbers[row]))
        ranges = zip(observed, self.encoder.profile.ranges.tolist(), strict=False)
        for index, (values_seen, (low, high)) in enumerate(ranges):
            if values_seen is None or values_seen.numbers is None or low > high:  # training has no number
                continue
            width = high - low
            rows = np.flatnonzero((values_seen.numbers < low - width) | (values_seen.numbers > high + width))
            if len(rows):
                values = values_seen.numbers[rows]
                farthest = repr(float(values[np.argmax(np.abs(values - low))]))
                self._count(_OUTSIDE, index, farthest, len(rows), file, int(numbers[rows[0]]))

    def _count(self, problem: str, column: int, value: str, count: int, file: str, row: int) -> None:
        """Count rows with an odd value of a column; ``row`` is the number of the first in its file."""
        rows = self.odd.setdefault((problem, column), _OddRows(file, row))
        rows.row = min(rows.row, row) if rows.file == file else rows.row
        rows.count += count
        if value in rows.by_value or len(rows.by_value) < MOST_CATEGORIES:
            rows.by_value[value] = rows.by_value.get(value, 0) + count

    def note(self, bad: BadRows) -> None:
        """Report the oddities of all rows."""
        self._add_waiting()
        profile, names = self.encoder.profile, [column.name for column in self.encoder.columns]
        for (problem, index), rows in self.odd.items():
            if problem == _UNSEEN:
                text = self._unseen_message(index, rows)
            else:
                low, high = profile.ranges[index].tolist()
                farthest = max(map(float, rows.by_value), key=lambda value: abs(value - low))
                text = problem.format(*(_as_text(self.encoder.columns[index], each) for each in (low, high, farthest)))
            bad.note(text, rows.file, rows.row, names[index], rows.count)
        for index, missing, learned_missing in missing_more(profile, self.here):
            shares = 100.0 * missing / self.here.rows, 100.0 * learned_missing / profile.rows
            bad.note(_MISSING.format(*shares, LEVEL), *self.first, names[index], missing)
        if further_columns := set(differing(profile, self.here)) - {index for _, index in self.odd}:
            problem = _OTHERWISE.format(listed([names[index] for index in sorted(further_columns)], MOST_NAMED), LEVEL)
            bad.note(problem, *self.first, rows=self.here.rows)

    def _unseen_message(self, index: int, rows: _OddRows) -> str:
        known = self.encoder.ids.names.categories(index, self.encoder.columns[index].name)
        frequent = sorted(rows.by_value, key=lambda value: -rows.by_value[value])
        similar = {value: alike(value, known) for value in frequent[:MOST_NAMED]}
        examples = [
            shown(value) + (f", like {other!r}" if other is not None else "") for value, other in similar.items()
        ]
        if len(frequent) == 1:
            return _UNSEEN + examples[0]
        prefix = "more than " if len(frequent) == MOST_CATEGORIES else ""
        examples += ["..."] if len(frequent) > len(examples) else []
        return f"{prefix}{len(frequent):,} categories that training never saw: {'; '.join(examples)}"


@dataclass
class _OddRows:
    """Rows with an oddity: file and number of the first, number of rows, and number of rows by value."""

    file: str
    row: int
    count: int = 0
    by_value: dict[str, int] = field(default_factory=dict)


def _as_text(column: Any, number: float) -> str:
    """A number of a column as text; for dates, the date."""
    if column.kind != Timestamp.kind:
        return f"{number:g}"
    return str(np.datetime64(round(number * MICROSECONDS_A_DAY), "us")).removesuffix("T00:00:00.000000").split(".")[0]


def missing_more(learned: Profile, here: Profile) -> list[tuple[int, int, int]]:
    """Columns that are missing more often than in training: index, missing rows, and missing rows in training.

    Given the number of all rows that lack a column, the predicted rows among them are a draw without replacement, if
    rows are exchangeable. So the p-value is a tail of the hypergeometric distribution. It is at most LEVEL / n_columns
    in any column with a probability of at most LEVEL (Bonferroni).
    """
    n_columns = min(len(learned.present), len(here.present))
    pairs = zip((here.rows - here.present).tolist(), (learned.rows - learned.present).tolist(), strict=False)
    return [
        (index, missing, learned_missing)
        for index, (missing, learned_missing) in enumerate(pairs)
        if missing and tail(missing, here.rows, learned_missing, learned.rows) * n_columns <= LEVEL
    ]


def tail(count: int, rows: int, other_count: int, other_rows: int) -> float:
    """A bound on the probability that ``count`` or more rows of a sample have a property, given the other rows with it.

    Above the mean, the probabilities of the hypergeometric distribution decrease faster than a geometric series.
    """
    if count * other_rows <= other_count * rows:
        return 1.0
    ratio = (rows - count) * other_count / ((count + 1) * (other_rows - other_count + 1))
    logarithm = _log_choices(rows, count) + _log_choices(other_rows, other_count)
    logarithm -= _log_choices(rows + other_rows, count + other_count)
    return min(1.0, math.exp(logarithm) / (1.0 - ratio))


def _log_choices(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def differing(learned: Profile, here: Profile) -> list[int]:
    """Indices of columns whose distribution differs from training, by two samples of the same size."""
    n_columns = min(len(learned.present), len(here.present)) if len(here.keys) >= FEWEST else 0
    samples = [(learned.drawn(index), here.drawn(index)) for index in range(n_columns)]
    return [
        index
        for index, (first, second) in enumerate(samples)
        if (n := min(len(first), len(second))) >= FEWEST
        and largest_difference(first[:n], second[:n]) > most_by_chance(n, n_columns, LEVEL)
    ]


def most_by_chance(n: int, n_columns: int, level: float) -> float:
    """A bound that no column exceeds with probability 1 - ``level`` if rows are exchangeable.

    The inequality of Dvoretzky, Kiefer, Wolfowitz for two samples of n rows each (Wei, Dudley 2012: P(distance > t) <=
    2 exp(-n t^2) from n = 458 on, with e instead of 2 for fewer).
    """
    return math.sqrt(math.log(math.e * n_columns / level) / n)


def largest_difference(first: np.ndarray, second: np.ndarray) -> float:
    """The largest difference of the empirical distribution functions of two samples."""
    points = np.unique(np.concatenate([first, second]))
    cumulative = [np.searchsorted(np.sort(values), points, "right") / len(values) for values in (first, second)]
    return float(np.abs(cumulative[0] - cumulative[1]).max())

"""Inferred roles of columns: row numbers, identifiers, times that only grow, leaks of the target."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tunefree.core.errors import DataError
from tunefree.pool.options import Monotone
from tunefree.stream.arrays import number_array, to_numpy
from tunefree.stream.batch import BadRows
from tunefree.stream.columns import (
    LIKE_DATES,
    RARE_WORD,
    Boolean,
    Category,
    Faults,
    Number,
    TimeOfDay,
    Timestamp,
    decoded,
)
from tunefree.stream.encoder import check_name, present_of
from tunefree.stream.notation import MOST_WORDS, is_plain_number
from tunefree.training.reading import Reading, Sample

MOST_ROWS, MOST_CELLS = 2**14, 2**19  # size of the sample that is examined
FEWEST_ROWS = 100  # needed to report identifiers, times and leaks
FEWEST_COUNTED = 20  # rows needed to report row numbers
MANY_DIFFERENT = 0.5  # ratio of distinct categories to rows above which a column may identify rows
LEAK = 0.02  # largest ratio of the error of a leaking column to the error of a constant
FEWEST_MISSES = 20  # rows outside the most frequent class that are needed to report a leak
MOST_ALIKE, MOST_NAMED = 4, 8  # listed findings of a kind, and columns named in one
BLOCKS = 16  # of consecutive rows, alternately for learning and for testing
FEWEST_COUNTS, LARGEST_COUNT = 4, 100  # distinct values of a target of counts, and its largest value
GROWN = 10  # distinct values needed for a column that only grows
FEW_PAIRS = 7.0  # expected number of equal pairs from which having none is remarkable: its probability is e^-7
ROW_NUMBER, IDENTIFIER, TIME, LEAK_OF_TARGET, TARGET = "row number", "identifier", "time", "leak", "target"
CONSTANT, COPY = "constant", "copy"


class Finding(NamedTuple):
    """A doubt about data, with its evidence and remedy.

    >>> print(Finding("id", ROW_NUMBER, "counts the rows", "pass `ignore='id'`"))
    column 'id': counts the rows; pass `ignore='id'`
    """

    column: str  # empty for findings about rows or classes
    kind: str
    evidence: str  # in words
    remedy: str = ""  # the option that resolves it

    def __str__(self) -> str:
        where = f"column {self.column!r}: " if self.column else ""
        return where + self.evidence + (f"; {self.remedy}" if self.remedy else "")


class Values(NamedTuple):
    """The values of a column as they are learned."""

    numbers: np.ndarray  # (n,) float64: numbers, microseconds, or category codes by first occurrence; NaN if missing
    are_codes: bool  # whether numbers are codes without a meaningful order

    @property
    def present(self) -> np.ndarray:
        """The numbers that are not missing."""
        return self.numbers[~np.isnan(self.numbers)]


def values_of(column: Any, arrays: Iterable[Any]) -> Values | None:
    """The values of a column of an encoder from Arrow arrays of its chunks; None for texts and lists.

    >>> values_of(Number("age"), [pa.array([39, None])]).numbers
    array([39., nan])
    """
    converted_chunks = [column.convert(array, Faults()) for array in arrays]
    if not converted_chunks:
        return None
    if column.kind in (Category.kind, Boolean.kind):
        texts = [labels.take(number_array(index, index < 0)) for index, labels in converted_chunks]
        codes = pa.chunked_array([text.cast(pa.string()) for text in texts], pa.string()).combine_chunks()
        codes = codes.dictionary_encode().indices
        return Values(to_numpy(codes.cast(pa.float64()), math.nan), True)
    if column.kind in (Timestamp.kind, TimeOfDay.kind):
        moments = [np.where(moment.missing, np.nan, moment.absolute.astype(np.float64)) for moment in converted_chunks]
        return Values(np.concatenate(moments), False)
    return Values(np.concatenate(converted_chunks), False) if column.kind == Number.kind else None


def note_roles(reading: Reading, bad: BadRows) -> None:
    """Note the roles of columns inferred from the first rows, before any row is learned."""
    for finding in shortened(first_findings(reading)):
        bad.note(finding.evidence, reading.file, 0, finding.column, 0, finding.remedy)


def first_findings(reading: Reading) -> list[Finding]:
    """Findings about the target and the columns from the first rows."""
    doubts = doubts_of_target(reading)
    if not reading.first.tables:
        return doubts
    (table,), (usable,), (target,) = reading.first
    max_rows = max(min(MOST_ROWS, MOST_CELLS // max(len(reading.encoder.columns), 1)), 2 * FEWEST_ROWS)
    targets = [target if target is None else target.slice(0, np.count_nonzero(usable[:max_rows]))]
    sample = Sample([table.slice(0, max_rows)], [usable[:max_rows]], targets)
    columns = columns_of(reading.encoder, sample)
    findings = [finding for name, values in columns.items() if (finding := role_of(name, values)) is not None]
    findings += leaks(columns, target_numbers(sample, reading.task), reading.task == "classification")
    nearly = nearly_numbers(reading.encoder)  # reported as such instead
    return doubts + [finding for finding in findings if finding.kind != IDENTIFIER or finding.column not in nearly]


def nearly_numbers(encoder: Any) -> set[str]:
    """Columns of categories that are numbers except for some words, or look like dates."""
    doubts = {column.name: getattr(column, "doubt", ()) for column in getattr(encoder, "columns", ())}
    return {name for name, doubt in doubts.items() if doubt and doubt[0] in (RARE_WORD, LIKE_DATES)}


def shortened(findings: list[Finding]) -> list[Finding]:
    """Findings, with surplus findings of the same kind combined into one."""
    shown: list[Finding] = []
    for kind in dict.fromkeys(finding.kind for finding in findings):
        same_kind = [finding for finding in findings if finding.kind == kind]
        listed = same_kind if len(same_kind) <= MOST_ALIKE else same_kind[: MOST_ALIKE - 1]
        others = [finding.column for finding in same_kind[len(listed) :]]
        names = ", ".join(map(repr, others[:MOST_NAMED])) + (", ..." if len(others) > MOST_NAMED else "")
        evidence = f"{len(others)} more columns like {listed[-1].column!r}: {names}"
        shown += [*listed, *([Finding("", kind, evidence, "pass `ignore` for each")] if others else [])]
    return shown


def doubts_of_target(reading: Reading) -> list[Finding]:
    """Findings about the target that make its task doubtful."""
    guess, (target,) = reading.guess, reading.first.targets
    name = str(reading.encoder.target) if reading.first.tables else ""
    is_square = guess is not None and guess.task == "regression" and reading.loss in (None, "square")
    if is_square and (most := largest_count(target)) is not None:
        remedy = "pass `loss='poisson'` if they are counts"
        others = ", `task='regression'` if they are other numbers, `task='classification'` if they are classes"
        remedy += others if guess is not None and guess.doubtful else ""
        return [Finding(name, TARGET, f"whole numbers from 0 to {most}, learned with the square loss", remedy)]
    words = [label for label in reading.classes if isinstance(label, str) and not is_plain_number(label)]
    if guess is not None and 0 < len(words) <= MOST_WORDS and len(reading.classes) > 2 * MOST_WORDS:
        problem = f"texts, which are numbers but for {words[0]!r}, taken for classes"
        remedy = f"pass `na_values={words[0]!r}` if it stands for a missing number, `task='classification'` if not"
        return [Finding(name, TARGET, problem, remedy)]
    if guess is None or not guess.doubtful:
        return []
    interpretation = {"classification": "classes", "regression": "numbers to predict"}[guess.task]
    remedy = "pass `task='classification'` if they are classes, `task='regression'` if they are numbers"
    return [Finding(name, TARGET, f"{guess.why}, taken for {interpretation}", remedy)]


def largest_count(target: Any) -> int | None:
    """The largest of numeric targets if they look like counts: several distinct small integers, including 0.

    >>> import pyarrow as pa
    >>> largest_count(pa.array([0, 3, 1, 2, 0])), largest_count(pa.array([1, 2, 3, 4]))
    (3, None)
    """
    values = np.array(target.unique().drop_null().to_pylist(), np.float64)
    if len(values) < FEWEST_COUNTS or values.min() != 0.0 or values.max() > LARGEST_COUNT:
        return None
    return int(values.max()) if (values == np.round(values)).all() else None


def columns_of(encoder: Any, sample: Sample) -> dict[str, Values]:
    """The columns of an encoder in the usable rows, by name, except texts, lists, and columns that a table lacks."""
    values, usable = {}, np.concatenate([np.zeros(0, bool), *sample.usable])
    for column in encoder.columns:
        arrays = arrays_of(encoder, sample.tables, column.name, column.kind)
        column_values = values_of(column, arrays) if len(arrays) == len(sample.tables) else None
        if column_values is not None:
            values[column.name] = column_values._replace(numbers=column_values.numbers[usable])
    return values


def arrays_of(encoder: Any, tables: Sequence[Any], name: str, kind: str | None) -> list[Any]:
    """A column of a kind, None for roles, as the encoder reads it, from each table that has it."""
    indices = [table.schema.get_field_index(name) for table in tables]
    arrays = [table.column(index) for table, index in zip(tables, indices, strict=True) if index >= 0]
    return [present_of(encoder, array, name, Faults(), kind) for array in arrays]


def role_of(name: str, values: Values) -> Finding | None:
    """A finding if a column is a row number, an identifier, or only grows; else None."""
    remedy = ignore(name)
    present = values.present
    n = len(present)
    if n < FEWEST_COUNTED or n < len(values.numbers):
        return None
    n_distinct = len(np.unique(present))
    if values.are_codes:
        if n < FEWEST_ROWS or n_distinct <= MANY_DIFFERENT * n:
            return None
        return identifier(name, n_distinct, n, n_distinct < n)
    steps, is_whole = np.diff(present), bool((present == np.round(present)).all())
    if is_whole and (steps > 0).all() and (steps == 1).mean() > 0.99:
        problem = f"counts the rows, from {present[0]:.0f} on, and tells nothing of others"
        return Finding(name, ROW_NUMBER, problem, remedy)
    if n < FEWEST_ROWS:
        return None
    if (steps >= 0).all() and n_distinct >= GROWN:
        problem = "only grows from row to row, so that rows to come have values that were never seen"
        return Finding(name, TIME, problem, remedy)
    pairs = 0.5 * n * (n - 1) / (np.ptp(present) + 1.0)
    if is_whole and n_distinct == n and pairs >= FEW_PAIRS:
        problem = f"{n:,} different whole numbers close together, which may name the rows"
        return Finding(name, IDENTIFIER, problem, remedy)
    return None


def monotone_columns(columns: Sequence[Any], signs: Mapping[str, int], file: str) -> list[Monotone]:
    """Columns of an encoder in which predictions are monotone; a DataError unless they are numbers.

    >>> monotone_columns([Category("job"), Number("age")], {"age": 1}, "a.csv")
    [Monotone(name='age', feature=1, sign=1)]
    """
    names = [column.name for column in columns]
    firsts, monotone = [*accumulate((len(column.dense_names()) for column in columns), initial=1)], []
    for name, sign in signs.items():
        check_name("monotone", name, names, file)
        column, first = columns[names.index(name)], firsts[names.index(name)]
        if column.kind != Number.kind or column.since:
            problem = "came after the first rows" if column.since else f"was read as a {column.kind}, not as numbers"
            remedy = "leave it out of `monotone`, or let it hold numbers from the first row on"
            raise DataError(f"is to be monotone, and {problem}", file, column=name, remedy=remedy)
        monotone.append(Monotone(name, first, sign))
    return monotone


def likenesses(columns: dict[str, Values]) -> list[Finding]:
    """Findings about constant columns, and about copies of an earlier column.

    >>> ages, names = Values(np.array([20.0, 60.0] * 2), False), Values(np.array([0.0, 1.0] * 2), True)
    >>> [(finding.column, finding.evidence) for finding in likenesses({"age": ages, "name": names})]
    [('name', "tells the same as 'age': each value of one goes with one of the other")]
    """
    findings, known = [], dict[bytes, str]()
    for name, values in columns.items():
        distinct, codes = np.unique(np.where(np.isnan(values.numbers), np.inf, values.numbers), return_inverse=True)
        if len(distinct) < 2:
            only = "no value" if np.isinf(distinct).any() or not len(distinct) else "the same value in all rows"
            findings.append(Finding(name, CONSTANT, f"has {only}", ignore(name)))
            continue
        first = np.unique(codes, return_index=True)[1]
        # Any two columns of distinct values correspond one-to-one, so their values themselves must be equal.
        is_key = len(distinct) > MANY_DIFFERENT * len(codes)
        key = (values.numbers if is_key else np.argsort(np.argsort(first))[codes].astype(np.float64)).tobytes()
        if key in known:
            problem = f"tells the same as {known[key]!r}: each value of one goes with one of the other"
            findings.append(Finding(name, COPY, problem, ignore(name)))
        known.setdefault(key, name)
    return findings


def leaks(columns: dict[str, Values], target: np.ndarray | None, is_classes: bool) -> list[Finding]:
    """Columns that alone predict nearly all of the target, and so may leak it.

    Alternate blocks of consecutive rows are predicted from the others, by rows with the same or else the nearest value.
    """
    if target is None or not columns or len(target) < FEWEST_ROWS:
        return []
    n = len(target)
    learned = np.arange(n) * BLOCKS // n % 2 == 0
    target = target if is_classes else target / (np.abs(target).max() or 1.0)  # squares are finite

    def misses(values: Values) -> float:
        """Wrong predictions, or squared errors, if each half of the rows is predicted from the other."""
        numbers, wrong = np.where(np.isnan(values.numbers), np.inf, values.numbers), 0.0
        for half in (learned, ~learned):
            train_numbers, test_numbers = numbers[half], numbers[~half]
            errors = target[~half] - _predicted(train_numbers, target[half], test_numbers, values.are_codes, is_classes)
            wrong += float(np.count_nonzero(errors) if is_classes else errors @ errors)
        return wrong

    baseline = misses(Values(np.zeros(n), False))
    if baseline == 0 or (is_classes and baseline < FEWEST_MISSES):
        return []
    most = LEAK * baseline + is_classes  # a row at the boundary between classes is predicted by chance
    leaking = {name: n_misses for name, values in columns.items() if (n_misses := misses(values)) <= most}
    condition = "it may give the target away, unless it is known when predictions are made"
    evidences = {name: f"{_leak(n_misses, baseline, n, is_classes)}: {condition}" for name, n_misses in leaking.items()}
    return [Finding(name, LEAK_OF_TARGET, evidence, ignore(name)) for name, evidence in evidences.items()]


def ignore(name: str) -> str:
    return f"pass `ignore={name!r}`"


def identifier(name: str, n_distinct: int, n: int, repeats: bool) -> Finding:
    """The finding for a column of categories that may identify rows, or groups of rows if values repeat."""
    remedy = ignore(name) + (f", or `groups={name!r}` if rows of a value belong together" if repeats else "")
    return Finding(name, IDENTIFIER, f"{n_distinct:,} different values in {n:,} rows, which may name the rows", remedy)


def _leak(misses: float, baseline: float, n: int, is_classes: bool) -> str:
    """A phrase on how well a column predicts alone; ``baseline``: the error of the best constant."""
    if is_classes:
        share, baseline_share = (f"{100 * (1 - count / n):.2f} %" for count in (misses, baseline))
        return f"alone predicts {share} of {n:,} rows right, where the most frequent class gets {baseline_share}"
    return f"alone explains {100 * (1 - misses / baseline):.2f} % of the variance of the target"


def _predicted(
    train: np.ndarray, targets: np.ndarray, test: np.ndarray, are_codes: bool, is_classes: bool
) -> np.ndarray:
    """Predict targets from a column: by training rows with the same or the nearest number, or by all for a new code.

    The prediction is the most frequent class, or the mean, interpolated between numbers.
    """
    distinct, inverse = np.unique(train, return_inverse=True)
    if is_classes:
        k, default = int(targets.max()) + 1, np.bincount(targets).argmax()
        pairs, counts = np.unique(inverse * k + targets, return_counts=True)
        pairs = pairs[np.lexsort((counts, pairs // k))]
        by_number = pairs[np.append(np.diff(pairs // k) != 0, True)] % k
    else:
        default, by_number = targets.mean(), np.bincount(inverse, targets) / np.bincount(inverse)
        if not are_codes:
            return np.interp(test, distinct, by_number)
    index = np.searchsorted(distinct[:-1] / 2 + distinct[1:] / 2, test, "right")
    return np.where(are_codes & (distinct[index] != test), default, by_number[index])


def target_numbers(sample: Sample, task: str) -> np.ndarray | None:
    """The targets as numbers, class codes by first occurrence; None if they do not fit the task."""
    if not sample.targets or sample.targets[0] is None:
        return None
    target = pa.chunked_array(list(map(decoded, sample.targets))).combine_chunks()
    if task == "classification":
        return to_numpy(target.dictionary_encode().indices, -1).astype(np.int64)
    is_numbers = pa.types.is_floating(target.type) or pa.types.is_integer(target.type)
    return to_numpy(target.cast(pa.float64(), safe=False), math.nan) if is_numbers else None

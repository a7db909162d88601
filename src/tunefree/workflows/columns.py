"""Inspection of the columns of a source before training: kinds and reasons, values, and possible roles."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tunefree.core.errors import DataError
from tunefree.model_files.plan import Plan, plan_of
from tunefree.stream.batch import BadRows, Position, Tally, no_rows, row_numbers, with_row_numbers
from tunefree.stream.columns import QUANTITIES, Faults, blank_to_null, decoded, family, without_words
from tunefree.stream.encoder import ROLES, kind_of_target, target_values
from tunefree.stream.formats import TABLE
from tunefree.stream.schema import is_among
from tunefree.stream.source import Source, open_source
from tunefree.training import roles
from tunefree.training.reading import Reading, Sample, begin, chunks_of
from tunefree.training.roles import Finding
from tunefree.training.targets import rows_with_usable_targets, task_of
from tunefree.workflows.findings import doubts_of_columns

PLACES = 8  # positions at which a long source is sampled
LONGEST_AGO = 2.0**63 - 1024.0  # largest float64 number of microseconds below 2**63
EXAMPLES, LONGEST_EXAMPLE = 3, 24  # number of example values, and characters of each
HEADER = ["column", "read as", "why", "missing", "different", "values"]


class Kind(NamedTuple):
    """A kind of columns."""

    plural: str
    why: str  # the reason why a column has this kind
    option: str | None = None  # the parameter that sets it


KINDS = {
    "number": Kind("numbers", "numbers", "numeric"),
    "category": Kind("categories", "no numbers, dates or texts", "categorical"),
    "boolean": Kind("true or false", "true and false"),
    "moment": Kind("dates", "dates", "date"),
    "time": Kind("times of day", "times of day"),
    "text": Kind("texts", "words in values that hardly repeat", "text"),
    "bag": Kind("lists of words", "lists of strings"),
    "vector": Kind("lists of numbers", "lists of numbers"),
}


def kind_of(column: Any) -> Kind:
    """The kind of a column; a kind from another package is described by its name."""
    return KINDS.get(column.kind, Kind(column.kind, column.kind))


class ColumnView(NamedTuple):
    """A column as training would read it, with statistics of a sample of its rows."""

    name: str
    kind: str  # kind or role of the column, or "left out"
    why: str
    missing: float  # share of missing values
    different: int  # number of distinct values
    range: tuple[Any, Any] | None  # the smallest and the largest number or date
    examples: list[str]

    @property
    def values(self) -> str:
        """The range and examples as text."""
        texts = (text if len(text) <= LONGEST_EXAMPLE else text[: LONGEST_EXAMPLE - 1] + "…" for text in self.examples)
        examples = ", ".join(texts)
        return examples if self.range is None else f"{' to '.join(map(_as_written, self.range))}: {examples}"


@dataclass(frozen=True)
class ColumnsView:
    """The result of :func:`columns`; printed, it is a table."""

    name: str
    rows: int
    where: str  # description of the sampled rows
    task: str  # task that training would learn; empty without a target
    why: str
    columns: list[ColumnView]
    findings: list[Finding]
    unusable: list[str] = field(default_factory=list)

    def notes(self) -> list[str]:
        """Lines about roles of columns and unusable columns, each with the option that resolves it."""
        return [*map(str, roles.shortened(self.findings)), *self.unusable]

    def __str__(self) -> str:
        task = f"{self.task}: {self.why}" if self.task else "no target is named"
        rows = [HEADER] + [
            [view.name, view.kind, view.why, f"{100 * view.missing:.1f} %", f"{view.different:,}", view.values]
            for view in self.columns
        ]
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        lines = [f"{self.name}: {len(self.columns)} columns, {self.where}; {task}"]
        lines += ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes())])


def columns(data: Any, target: str | None = None, **options: Any) -> ColumnsView:
    """The kinds and roles that training would assign to the columns of a table or of files, from a sample of rows.

    Parameters
    ----------
    data : Source, table, path, or sequence of paths
        Anything that :func:`tunefree.open_source` accepts or returns.
    target : str, optional
        The column to predict.
    **options
        Other parameters of :func:`tunefree.train`, such as ``categorical=["zip"]``, with the same effect.

    Returns
    -------
    ColumnsView
        Printed, it is a table.

    Raises
    ------
    DataError, ModelError
        As in :func:`tunefree.train`, for columns that do not exist and options that do not fit.

    Examples
    --------
    >>> view = columns({"id": list(range(200)), "age": [20.5, 60.5] * 100, "rich": ["no", "yes"] * 100}, target="rich")
    >>> print(view)  # doctest: +NORMALIZE_WHITESPACE
    the table: 3 columns, all 200 rows; classification: the target holds texts
    column  read as  why      missing  different  values
    id      number   numbers  0.0 %    200        0 to 199: 0, 1, 2
    age     number   numbers  0.0 %    2          20.5 to 60.5: 20.5, 60.5
    rich    target   texts    0.0 %    2          no, yes
    note: column 'id': counts the rows, from 0 on, and tells nothing of others; pass `ignore='id'`
    note: column 'age': alone predicts 100.00 % of 200 rows right, where the most frequent class gets 50.00 %: it may \
give the target away, unless it is known when predictions are made; pass `ignore='age'`
    """
    plan = plan_of({"target": target, **options})
    return view_of(open_source(data, is_table=target is not None), plan)


def view_of(source: Source, plan: Plan) -> ColumnsView:
    """The view of a source."""
    if source.kind != TABLE:
        raise DataError(f"{source.kind} text has no columns to look at", source.name, remedy="train on it as it is")
    is_labelled = plan.target is not None
    bad = replace(plan.bad_rows(), skip=True, skip_unlabelled=True)
    reading = begin(source, plan, bad, is_labelled)
    sample, where = _sample_of(source, reading, bad)
    if not sample.n_rows:
        raise no_rows(source.name, bad.tally)
    known = {column.name: column for column in reading.encoder.columns}
    views = [_view(name, known.get(name), reading, plan, sample) for name in reading.first.tables[0].schema.names]
    why = f"the target holds {reading.guess.why}" if reading.guess else "named by task"
    task, why = (reading.task, why) if is_labelled else ("", "")
    first = roles.first_findings(reading)
    further = _further_findings(reading, sample, {leak.column for leak in first if leak.kind == roles.LEAK_OF_TARGET})
    notes = [*map(str, doubts_of_columns(reading.encoder)), *_unusable(bad)]
    return ColumnsView(source.name, sample.n_rows, where, task, why, views, first + further, notes)


def _sample_of(source: Source, reading: Reading, bad: BadRows) -> tuple[Sample, str]:
    """All rows of a short source or rows from evenly spread positions of a long one, and a description of the sample.

    A source that can be read only once is sampled by its first rows.
    """
    positions = source.places(PLACES)
    if not positions:
        return reading.first, "the first rows of a source that can be read only once"
    n_columns = len(reading.first.tables[0].schema)
    most = min(roles.MOST_ROWS, max(roles.MOST_CELLS // n_columns, roles.FEWEST_ROWS * PLACES))
    sample = _rows_from(source, reading, bad, positions[:1], most)
    if sample.n_rows < most or len(positions) == 1:
        return sample, f"{'all' if sample.n_rows < most else 'the first'} {sample.n_rows:,} rows"
    sample = _rows_from(source, reading, bad, positions, most // len(positions))
    return sample, f"{sample.n_rows:,} rows from {len(positions)} places"


def _rows_from(source: Source, reading: Reading, bad: BadRows, positions: list[Position], n_rows: int) -> Sample:
    """Up to ``n_rows`` rows from each of the given positions on."""
    sample, encoder, bad.tally = Sample([], [], []), reading.encoder, Tally()
    for position in positions:
        remaining = n_rows
        for chunk in chunks_of(source, encoder, bad, position):
            numbers = row_numbers(chunk)[:remaining]
            chunk = chunk._replace(data=with_row_numbers(chunk.data.slice(0, remaining), numbers))
            batch = rows_with_usable_targets(encoder.encode(chunk, False, bad, encoder.target is not None), bad)
            sample.tables.append(chunk.data)
            sample.usable.append(np.isin(numbers, batch.numbers))
            sample.targets.append(batch.target)
            remaining -= len(numbers)
            if not remaining:
                break
    return sample


def _unusable(bad: BadRows) -> list[str]:
    """Lines about unusable rows of a sample, and oddities of usable rows."""
    remedy = "pass `on_bad_row='skip'` in training to leave such rows out"
    lines = [f"cannot be used: {reason}; {remedy}" for reason in bad.tally.reasons]
    if n := bad.tally.unlabelled:
        lines.append(f"{n:,} of the rows read have no target; pass `unlabelled='skip'` in training to leave them out")
    return lines + [str(oddity) for oddity in bad.tally.oddities]


def _view(name: str, column: Any, reading: Reading, plan: Plan, sample: Sample) -> ColumnView:
    """The view of a column; ``column`` is None if it is not a feature."""
    arrays = roles.arrays_of(reading.encoder, sample.tables, name, getattr(column, "kind", None))
    if name == reading.encoder.target and name not in reading.encoder.notations:
        encoder = reading.encoder
        arrays = [target_values(encoder, array, kind_of_target(encoder, array, ""), Faults()) for array in arrays]
    arrays = [blank_to_null(decoded(array)) for array in arrays]
    if getattr(column, "kind", "") in QUANTITIES:
        arrays = [without_words(array, name, column.na_values, Faults()) for array in arrays]
    kind, why = _kind_of(name, column, reading, plan)
    read_arrays = arrays
    # Python has no dates after the year 9999.
    arrays = [array.cast(pa.string()) if family(array.type) == "moment" else array for array in arrays]
    values = [value for array in arrays for value in array.to_pylist() if value is not None and value == value]
    distinct = list(dict.fromkeys(_as_written(value) for value in values))
    missing = 1.0 - len(values) / max(sample.n_rows, 1)
    value_range = _range_of(column, read_arrays, values)
    return ColumnView(name, kind, why, missing, len(distinct), value_range, distinct[:EXAMPLES])


def _kind_of(name: str, column: Any, reading: Reading, plan: Plan) -> tuple[str, str]:
    """The kind of a column, or its role, and the reason."""
    if column is not None:
        return column.kind, why_of(plan, column)
    for role, column_name in zip(ROLES, (plan.target, plan.sample_weight, plan.groups, plan.exposure), strict=True):
        if name == column_name:
            why = reading.guess.why if role == "target" and reading.guess else f"named by {role}"
            return role, "named by task" if role == "target" and plan.task else why
    return "left out", "named by ignore" if is_among(name, plan.ignore) else "no values"


def why_of(plan: Plan, column: Any) -> str:
    """The reason why a column is of its kind: an option of the plan, or its values."""
    kind, described = kind_of(column), f", {column.description()}" if column.description() else ""
    named_columns = [str(name) for name in (getattr(plan, kind.option) or ())] if kind.option else []
    if any(name == column.name or name.startswith(f"{column.name}=%") for name in named_columns):
        return f"named by {kind.option}{described}"
    return kind.why + described + (f", from row {column.since:,} on" if column.since else "")


def _range_of(column: Any, arrays: list[Any], values: list[Any]) -> tuple[Any, Any] | None:
    """The smallest and the largest number or date; None for other values."""
    if column is None:
        are_numbers = values and all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in values)
        return (min(values), max(values)) if are_numbers else None
    column_values = roles.values_of(column, arrays)
    if column_values is None or column_values.are_codes or not len(column_values.present):
        return None
    ends = float(column_values.present.min()), float(column_values.present.max())
    if column.kind == "number":
        return ends
    clipped = np.clip(ends, -LONGEST_AGO, LONGEST_AGO).astype(np.int64)  # an infinite SQL timestamp exceeds this
    (first, first_time), (last, last_time) = (str(end).split("T") for end in clipped.view("M8[us]").astype("M8[s]"))
    if column.kind == "time":
        return first_time, last_time
    return (f"{first}T{first_time}", f"{last}T{last_time}") if column.hours else (first, last)


def _as_written(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _further_findings(reading: Reading, sample: Sample, leaking: set[str]) -> list[Finding]:
    """Findings from the sample beyond the first rows: leaks, another task, constant columns, copies."""
    if not any(usable.any() for usable in sample.usable):
        return []
    columns = roles.columns_of(reading.encoder, sample)
    leaks = roles.leaks(columns, roles.target_numbers(sample, reading.task), reading.task == "classification")
    findings = [finding for finding in leaks if finding.column not in leaking] + roles.likenesses(columns)
    targets = pa.chunked_array(list(map(decoded, sample.targets))).combine_chunks() if reading.guess else None
    if reading.guess and (sample_guess := task_of(targets)).task != reading.task:
        evidence = f"the first rows look like {reading.task}, and others like {sample_guess.task}: {sample_guess.why}"
        remedy = f"pass `task={sample_guess.task!r}` or `task={reading.task!r}`"
        findings.insert(0, Finding(reading.encoder.target, roles.TARGET, evidence, remedy))
    return findings

"""Reading of a source as batches of encoded rows: its first rows, encoding, and reading ahead."""

from __future__ import annotations

import atexit
import copy
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import NEAR, DataError, alike, listed
from tunefree.model_files.plan import Plan
from tunefree.pool.targets import ScoredModel
from tunefree.stream.arrays import boolean_array
from tunefree.stream.batch import START, BadRows, Batch, Chunk, Position, Tally, no_rows, row_numbers
from tunefree.stream.columns import without
from tunefree.stream.encoder import check_name, unknown
from tunefree.stream.formats import TABLE
from tunefree.stream.notation import ColumnTypes
from tunefree.stream.schema import as_written, is_among
from tunefree.stream.source import Source
from tunefree.stream.tables import Options
from tunefree.training.stopping import Stop, Stopped
from tunefree.training.targets import (
    NEVER_CLASSES,
    Guess,
    check_classes,
    closed_classes,
    rows_with_usable_targets,
    target_of,
    task_of,
)

# Parameters that name columns, and nouns for messages.
NAMED = {"target": "target", "groups": "group", "monotone": "monotone one"}
POLL = 0.1  # seconds between checks for a stop request
PATIENCE = 1.0  # seconds to wait for a reader thread, which may be blocked on input


class Sample(NamedTuple):
    """Rows of a source as read, in parts; text has no tables."""

    tables: list[Any]  # pyarrow.RecordBatch
    usable: list[np.ndarray]  # (n,) bool mask of the usable rows of each table
    targets: list[Any]  # pyarrow.Array of the targets of usable rows, or None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return sum(map(len, self.usable))


class Reading(NamedTuple):
    """A source after its first batch was read."""

    task: str
    classes: list[Any]  # sorted labels of the first batch; empty in regression
    encoder: Any
    batches: Iterator[Batch]  # all batches, including the first
    guess: Guess | None  # inferred task; None if the plan sets it
    loss: str | None  # of the plan
    first: Sample  # the first rows
    file: str  # file of the first rows, for messages


def begin(
    source: Source,
    plan: Plan,
    bad: BadRows,
    labelled: bool = True,
    most_features: Callable[[str, Sequence[Any]], int | None] | None = None,
) -> Reading:
    """Read the first batch of a source, and infer the task, the classes and the encoder.

    ``labelled``: whether a target is required.
    ``most_features``: maps the task and the classes to the largest number of categories and words of an encoder.
    """
    if labelled and source.kind == TABLE and plan.target is None:
        raise DataError("no target is named", source.name, remedy="name the column to predict with `target`")
    for role, noun in NAMED.items() if source.kind != TABLE else ():
        if getattr(plan, role):
            problem = f"{source.kind} text has no columns to name a {noun}"
            raise DataError(problem, source.name, remedy=f"leave `{role}` out, or give a table")
    encoder, chunks = blank_encoder(source, plan, bad)
    first = next(chunks, None)
    if first is None:
        raise no_rows(source.name, bad.tally)
    if source.kind == TABLE:
        _check_ignored(source, plan, first, bad)
        _note_unused(source, plan.column_types, encoder, first, bad)
    if most_features is not None and not all(column.kind == "number" for column in encoder.columns):
        # the limit depends on the targets of the first rows, and must hold when their features are encoded
        trial_rows = replace(bad, tally=bad.tally.copy())
        trial = without_features(copy.deepcopy(encoder), first, True, trial_rows, labelled)
        encoder.ids.limit(most_features(*problem_of(plan, trial, trial_rows)[:2]))
    batch = encoder.encode(first, True, bad, labelled)
    while not len(batch.weight) and (chunk := next(chunks, None)) is not None:
        first, batch = chunk, encoder.encode(chunk, True, bad, labelled)  # earlier chunks had no usable rows
    task, classes, guess, batch = problem_of(plan, batch, bad)
    rest = encoded(encoder, chunks, bad, True, labelled)
    batches = _chained(batch, rest) if len(batch.weight) else rest
    is_table = source.kind == TABLE
    usable = [np.isin(row_numbers(first), batch.numbers)] if is_table else []
    sample = Sample([first.data] if is_table else [], usable, [batch.target])
    return Reading(task, classes, encoder, batches, guess, plan.loss, sample, batch.file)


def without_features(encoder: Any, chunk: Chunk, learning: bool, bad: BadRows, labelled: bool) -> Batch:
    """Encode a chunk of a table without its features."""
    converted = encoder.convert(chunk, learning, bad, labelled)
    batch: Batch = converted.batch._replace(columns=converted.chunk.data)
    return batch


def problem_of(plan: Plan, batch: Batch, bad: BadRows) -> tuple[str, list[Any], Guess | None, Batch]:
    """The task, the classes and the guess from the first rows, and the rows with usable targets."""
    guess = None if plan.task or batch.target is None else task_of(batch.target)
    if guess is not None and (plan.classes or plan.class_weight) and guess.why not in NEVER_CLASSES:
        guess = Guess("classification", "classes that are named")
    if guess is not None and not plan.classes:
        check_classes(guess, batch.target, batch.file, plan.target)
    task = guess.task if guess is not None else plan.task or "classification"
    if plan.classes:
        return task, closed_classes(plan.classes, task, batch.target), guess, rows_with_usable_targets(batch, bad)
    batch = rows_with_usable_targets(batch, bad) if task == "regression" else batch
    has_classes = task == "classification" and batch.target is not None and len(batch.weight) > 0
    return task, sorted(target_of(task, batch).values) if has_classes else [], guess, batch


def _check_ignored(source: Source, plan: Plan, first: Chunk, bad: BadRows) -> None:
    """Raise a DataError if an ignored column does not exist, or note this if columns may appear later."""
    names = first.data.schema.names
    absent = [name for name in plan.ignore if not any(is_among(column, [name]) for column in names)]
    may_come = source.format == "json" or "-" in source.files[1:]
    later = source.names_in(source.files[1:]) if absent and not may_come else []
    for name in absent:
        if not may_come or alike(name, names, NEAR) is not None:
            check_name("ignored", name, list(dict.fromkeys([*names, *later])), first.file)
        else:
            problem = "is to be ignored, and is not among the columns of the first rows"
            bad.note(problem, first.file, first.row, name, first.data.num_rows, "check `ignore`")


def _note_unused(source: Source, types: ColumnTypes, encoder: Any, rows: Chunk, bad: BadRows) -> None:
    """Note options for the notation of values that match none of the first rows, or of a sample."""
    columns, unused = rows.data.columns, list[str]()
    if source.format != "json":  # JSON values were already read as null
        unused = [
            f"`na_values={text!r}`"
            for text in types.na_values
            if all(without(column, [text]).null_count == column.null_count for column in columns)
        ]
    if not encoder.notations and not any(getattr(column, "notation", None) for column in encoder.columns):
        unused += ["`decimal=','`"] if types.decimal == "," else []  # all numbers have decimal points
        unused += [f"`thousands={types.thousands!r}`"] if types.thousands else []
    for option in unused:
        problem = f"{option} fits none of the {rows.data.num_rows:,} rows looked at"
        bad.note(problem, rows.file, 0, "", 0, "leave it out if it is not meant for others")


def blank_encoder(source: Source, plan: Plan, bad: BadRows) -> tuple[Any, Iterator[Any]]:
    """An encoder for the columns of a source that has seen no row, and all chunks of the source."""
    if source.known is not None:
        return source.known, chunks_of(source, source.known, bad)
    shared_names = ("target", "exposure", "ignore", "text", "hash_bits", "column_types")
    column_roles = {name: getattr(plan, name) for name in shared_names}
    column_roles |= {"weight": plan.sample_weight, "group": plan.groups}
    types, strings = plan.column_types, {*plan.column_types.categorical, *plan.column_types.dates(())}
    named = {*strings, *types.numeric, *plan.ignore, plan.target}
    options: dict[str, Any] = {"named": named, "strings": strings, "na_values": plan.na_values}
    sample = source.sample(Options(**options))
    if sample is not None:
        encoder = source.encoder(sample, **column_roles)
        encoder.labels = plan.classes
        return encoder, chunks_of(source, encoder, bad)
    first, chunks = _peeked(source.chunks(bad=bad, **options))
    if first is None:
        raise no_rows(source.name, bad.tally)
    return source.encoder(first, **column_roles), chunks


def chunks_of(
    source: Source, encoder: Any, bad: BadRows, start: Position = START, kept: Sequence[str] = ()
) -> Iterator[Any]:
    """Chunks of a source from a position on, with the column types of an encoder.

    ``kept``: columns that are read without conversion.
    """
    if source.kind != TABLE:
        return source.chunks(start, bad)
    ignored = () if encoder.further is None else encoder.further.ignored
    options = {"types": encoder.types(), "named": {encoder.target, *kept, *ignored}, "strings": kept}
    return source.chunks(start, bad, **options, na_values=encoder.na_values)


def in_its_notation(
    source: Source, encoder: Any, bad: BadRows, kept: Sequence[str] = (), grows: bool = False
) -> tuple[Any, Iterator[Any]]:
    """An encoder adapted to the notation of numbers and dates in another source, and the chunks of this source.

    ``kept``: columns that are read without conversion.
    ``grows``: whether columns that the encoder does not know are read.
    """
    if source.kind != TABLE:
        if source.column_types != ColumnTypes():
            raise DataError(f"{source.kind} text has no columns", source.name, remedy="leave options of columns out")
        return encoder, chunks_of(source, encoder, bad)
    sample, chunks = source.sample(Options()), None
    if sample is None:
        sample, chunks = _peeked(chunks_of(source, encoder, bad, kept=kept))
        if sample is None:
            return encoder, chunks
    adapted = as_written(encoder, sample, source.column_types)
    _note_unused(source, source.column_types, adapted, sample, bad)
    if not grows and (names := unknown(adapted, sample.data.schema.names, kept)):
        bad.note(f"the model does not know {listed(names)}: left out", sample.file, 0, "", 0)
    return adapted, chunks or chunks_of(source, adapted, bad, kept=kept)


def _peeked(chunks: Iterator[Any]) -> tuple[Any, Iterator[Any]]:
    """The first chunk, None if there is none, and an iterator over all chunks."""
    first = next(chunks, None)
    return first, chunks if first is None else _chained(first, chunks)


def _chained(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    """Chain an item and an iterator; unlike ``itertools.chain``, release the item once it is consumed."""
    yield first
    del first
    yield from rest


def encoded(
    encoder: Any, chunks: Iterator[Any], bad: BadRows, learning: bool, labelled: bool, kept: Sequence[str] = ()
) -> Iterator[Batch]:
    """Encode chunks in order.

    ``learning``: whether new features are added to the encoder.
    ``labelled``: whether each row must have a target.
    ``kept``: columns of a table that batches keep unchanged.
    """
    for chunk in chunks:
        batch = rows_with_usable_targets(encoder.encode(chunk, learning, bad, labelled), bad)
        yield batch._replace(columns=_kept_columns(chunk, batch.numbers, kept)) if kept else batch
    bad.compare()


def _kept_columns(chunk: Chunk, numbers: np.ndarray, names: Sequence[str]) -> Any:
    """Columns of the rows of a chunk with these row numbers."""
    for name in names:
        check_name("", name, chunk.data.schema.names, chunk.file)
    return chunk.data.select(list(names)).filter(boolean_array(np.isin(row_numbers(chunk), numbers)))


def ahead(items: Iterator[Any], depth: int = 2, stop: Stop | None = None) -> Iterator[Any]:
    """Iterate over items that a thread reads ``depth`` items in advance, so that reading and learning overlap.

    ``stop``: the request that the items pass through; after it, Stopped is raised once no item is buffered.

    >>> list(ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    results: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
    permits, has_ended = threading.Semaphore(depth), threading.Event()

    def read() -> None:
        try:
            while permits.acquire() and not has_ended.is_set():
                results.put((next(items), None))
        except BaseException as error:
            results.put((None, error))

    def end() -> None:
        has_ended.set()
        permits.release()
        thread.join(PATIENCE)

    thread = threading.Thread(target=read, name="tunefree-reader", daemon=True)
    atexit.register(end)  # after an exception: a thread that still runs at exit can abort the process
    thread.start()
    try:
        while True:
            permits.release()
            item, error = results.get() if stop is None else _next_result(results, stop)
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield item
    finally:
        atexit.unregister(end)
        end()


def _next_result(results: queue.SimpleQueue[Any], stop: Stop) -> tuple[Any, BaseException | None]:
    """The next item of a queue, or Stopped after a request if the reader waits for rows."""
    while True:
        with suppress(queue.Empty):
            return results.get(timeout=POLL)
        if stop.number and stop.reader_waits and results.empty():  # in this order
            return None, Stopped()


def check_learned(model: ScoredModel, rows: int, tally: Tally, source: Source) -> None:
    """Raise a DataError if no row of a source could be used, or all learned rows have the same class."""
    if rows == 0:
        raise no_rows(source.name, tally)
    if model.task == "classification" and len(model.classes) < 2:
        raise one_class(model.classes[0], source)


def one_class(label: Any, source: Source) -> DataError:
    """The error for rows that all have the same label."""
    numeric = isinstance(label, int | float) and not isinstance(label, bool)
    remedy = "give data with at least two classes" + (", or pass `task='regression'`" if numeric else "")
    return DataError(f"the target has one class only, {label!r}", source.name, remedy=remedy)

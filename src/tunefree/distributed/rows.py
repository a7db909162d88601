"""Rows of a shard: read once to find features and classes, and again with the features and classes of all shards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import DataError
from tunefree.core.rows import table, together
from tunefree.distributed.shards import Shard
from tunefree.generations.reservoir import hashed
from tunefree.model_files.plan import Plan
from tunefree.pool.targets import Labels
from tunefree.stream.batch import BadRows, Batch, Reason, Tally
from tunefree.stream.source import encoder_of
from tunefree.training.reading import begin, blank_encoder, chunks_of
from tunefree.training.roles import note_roles
from tunefree.training.targets import target_of, weighed, weights_by_label

EncoderState = tuple[dict[str, np.ndarray], dict[str, Any]]


class Beginning(NamedTuple):
    """The options for reading all shards, inferred from the first rows."""

    plan: Plan
    kind: str  # kind of the encoder
    encoder: EncoderState  # state with the columns, but without features of codes and words
    task: str
    classes: list[Any]  # classes in the first rows, sorted
    oddities: tuple[Reason, ...] = ()  # oddities of columns in the first rows


NOTHING = Batch(table(np.zeros((0, 0)), [], np.zeros((0, 0))), np.zeros(0), np.zeros(0))


class Survey(NamedTuple):
    """The summary of the rows of a shard, which is merged with other shards."""

    n_rows: int
    totals: dict[Any, float]  # total weight of the rows by label, in the order of first appearance; empty in regression
    encoder: EncoderState
    skipped: Tally  # rows that could not be used
    problem: str | None = None  # reason why the shard could not be read, if it was skipped


def begun(shard: Shard, plan: Plan, frames: Sequence[Any] = ()) -> Beginning | None:
    """Infer the options from the first rows of a shard's file, as on one machine; None if the shard is empty."""
    bad = BadRows(skip=True, skip_unlabelled=True)  # bad rows are reported later, when their shards are read
    for source, _, _ in shard.whole().sources(frames):
        reading = begin(source, plan, bad)
        blank, _ = blank_encoder(source, plan, bad)
        arrays, header = blank.state()[0], reading.encoder.state()[1]  # no features, and the types of the first rows
        if "further" in header:
            header["further"]["rows"] = 0
        note_roles(reading, bad)
        oddities = tuple(oddity for oddity in bad.tally.oddities if not oddity.rows)
        return Beginning(plan, source.kind, (arrays, header), reading.task, reading.classes, oddities)
    return None


def surveyed(shard: Shard, beginning: Beginning, skips: bool, frames: Sequence[Any] = ()) -> Survey:
    """Read the rows of a shard, or of its tables in memory; with ``skips``, leave out a shard that cannot be read."""
    n_rows, totals = 0, dict[Any, float]()
    try:
        encoder, bad, batches = _read(shard, beginning, frames)
        for batch in batches:
            n_rows, y = n_rows + len(batch.weight), batch.target
            label_totals = np.bincount(y.codes, batch.weight, len(y.values)) if isinstance(y, Labels) else ()
            for code in dict.fromkeys(y.codes.tolist()) if isinstance(y, Labels) else ():
                totals[y.values[code]] = totals.get(y.values[code], 0.0) + float(label_totals[code])
    except (DataError, OSError) as error:
        if not skips:
            remedy = "mend it, or pass `on_bad_shard='skip'`"
            raise DataError(f"it cannot be read ({error})", shard.name, remedy=remedy) from None
        return Survey(0, {}, beginning.encoder, Tally(), f"{shard.name}: {error}")
    return Survey(n_rows, totals, encoder.state(), bad.tally)


def _read(shard: Shard, beginning: Beginning, frames: Sequence[Any]) -> tuple[Any, BadRows, Iterator[Batch]]:
    """An encoder, the handling of unusable rows, and batches with targets for a model, read as they are used."""
    encoder, bad = encoder_of(beginning.kind).restore(*beginning.encoder), beginning.plan.bad_rows()
    batches = (
        encoder.encode(chunk, True, bad, True)
        for source, start, rows in shard.sources(frames)
        for chunk in _first(chunks_of(source, encoder, bad, start), rows)
    )
    filled = (batch for batch in batches if len(batch.weight))
    return encoder, bad, (batch._replace(target=target_of(beginning.task, batch)) for batch in filled)


def _first(chunks: Iterator[Any], rows: int | None) -> Iterator[Any]:
    """Yield chunks up to a number of rows; all chunks if it is None."""
    for chunk in chunks:
        yield chunk if rows is None else chunk._replace(data=chunk.data.slice(0, rows))
        if rows is not None and (rows := rows - chunk.data.num_rows) <= 0:
            return


class United(NamedTuple):
    """The summary of the rows of all shards."""

    encoder: Any
    classes: list[Any]
    offsets: list[int]  # (shards + 1,) number of rows before each shard; the last is the total
    skipped: Tally  # rows of all shards that could not be used
    problems: list[str]  # reasons why shards were skipped
    totals: dict[str, float]  # total weight of the rows of each class


def united(beginning: Beginning, surveys: Sequence[Survey]) -> United:
    """Merge the dictionaries and labels of shards in their order, so that features get the same ids as if one reader
    had read all rows."""
    encoder = encoder_of(beginning.kind).restore(*beginning.encoder)
    if not hasattr(encoder, "absorb"):
        raise DataError(f"rows of {beginning.kind} cannot be spread", remedy="train on one machine")
    for survey in surveys:
        encoder.absorb(*survey.encoder)
    labels = dict.fromkeys([*beginning.classes, *(label for survey in surveys for label in survey.totals)])
    offsets = np.cumsum([0, *(survey.n_rows for survey in surveys)]).tolist()
    skipped = Tally()
    for oddity in beginning.oddities:
        skipped.note(oddity)
    totals: dict[str, float] = {}
    for survey in surveys:
        skipped.add_all(survey.skipped)
        for label, total in survey.totals.items():
            totals[str(label)] = totals.get(str(label), 0.0) + total
    problems = [survey.problem for survey in surveys if survey.problem is not None]
    return United(encoder, list(labels), offsets, skipped, problems, totals)


class Sizes(NamedTuple):
    """Numbers of rows in the phases of training."""

    rows: int  # rows of all shards
    sample: int  # rows that the common start learns
    last: int  # rows that are learned after the shards are joined, at most


class Prepared(NamedTuple):
    """A shard that is ready for learning, divided by phase."""

    sample: Batch
    last: Batch
    rest: Batch


def prepared(
    shard: Shard, united: Beginning, classes: Sequence[Any], offset: int, sizes: Sizes, frames: Sequence[Any] = ()
) -> Prepared:
    """Read the rows of a shard with the encoder of all shards, and divide them by phase.

    ``united`` has this encoder, and the weights of classes. ``offset`` is the number of rows in earlier shards.
    """
    weights, batches = weights_by_label(united.plan.class_weight), list[Batch]()
    numbers = {label: float(number) for number, label in enumerate(classes)}
    for batch in _read(shard, united, frames)[2]:
        if isinstance(batch.target, Labels):
            target = np.array([numbers[label] for label in batch.target.values])[batch.target.codes]
            batch = weighed(batch, weights)._replace(target=target)
        batches.append(batch)
    rows = gathered(batches)
    is_sample = drawn(sizes.rows, sizes.sample, offset, len(rows.weight))
    is_last = drawn(sizes.rows, sizes.last, offset, len(rows.weight), 1) & ~is_sample
    return Prepared(*(rows.at(np.flatnonzero(mask)) for mask in (is_sample, is_last, ~is_sample & ~is_last)))


def drawn(rows: int, size: int, start: int, n: int, draw: int = 0) -> np.ndarray:
    """Return a mask of the ``n`` rows from row ``start`` on that are in a sample of ``size`` of all ``rows``.

    One row is drawn from each of ``size`` intervals of equal length.

    >>> drawn(100, 10, 0, 100).sum(), drawn(100, 10, 0, 10).sum(), drawn(5, 9, 0, 5).all()
    (np.int64(10), np.int64(1), np.True_)
    """
    if size >= rows or not size:
        return np.full(n, size > 0)
    edges = np.arange(size + 1) * rows // size
    numbers = edges[:-1] + (hashed(2 * np.arange(size) + draw) % np.diff(edges).astype(np.uint64)).astype(np.int64)
    indices = numbers[np.searchsorted(numbers, start) : np.searchsorted(numbers, start + n)] - start
    is_drawn = np.zeros(n, bool)
    is_drawn[indices] = True
    return is_drawn


def gathered(rows_of_shards: Sequence[Batch]) -> Batch:
    """Concatenate the rows of several shards."""
    filled = [rows for rows in rows_of_shards if len(rows.weight)]
    if not filled:
        return NOTHING
    y, weight = (np.concatenate([getattr(rows, name) for rows in filled]) for name in ("target", "weight"))
    return Batch(together([rows.rows for rows in filled]), y, weight)

"""Rows of a shard: with its own features and classes, and then as models take them, with those of all shards."""

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
from tunefree.stream.feature_lines import LineEncoder
from tunefree.stream.keys import ids_of
from tunefree.stream.source import encoder_of
from tunefree.training.reading import begin, blank_encoder, chunks_of
from tunefree.training.roles import note_roles
from tunefree.training.targets import target_of, weighed, weights_by_label

EncoderState = tuple[dict[str, np.ndarray], dict[str, Any]]


class Beginning(NamedTuple):
    """The options with which all shards are read, decided by the first rows."""

    plan: Plan
    kind: str  # of the encoder
    encoder: EncoderState  # without features beyond the columns
    task: str
    classes: list[Any]  # of the first rows, sorted
    oddities: tuple[Reason, ...] = ()  # of columns, in the first rows


NOTHING = Batch(table(np.zeros((0, 0)), [], np.zeros((0, 0))), np.zeros(0), np.zeros(0))


class Survey(NamedTuple):
    """The description of the rows of a shard, which is united with other shards."""

    n_rows: int
    labels: list[Any]  # in the order of their first rows; none in regression
    totals: list[float]  # what the rows of each weigh
    encoder: EncoderState
    skipped: Tally  # rows that could not be used
    problem: str | None = None  # why the shard could not be read, if it was skipped


class LocalRows(NamedTuple):
    """The rows of a shard as it was read: targets are numbers of its own classes, or numbers."""

    rows: Batch
    survey: Survey


def begun(shard: Shard, plan: Plan, frames: Sequence[Any] = ()) -> Beginning | None:
    """Look at the first rows of a shard, and of its file, as a reader of all would; None if there are none."""
    bad = BadRows(skip=True, skip_unlabelled=True)  # the shards that hold bad rows will tell of them
    for source, _, _ in shard.whole().sources(frames):
        reading = begin(source, plan, bad)
        blank, _ = blank_encoder(source, plan, bad)
        arrays, header = blank.state()[0], reading.encoder.state()[1]  # columns have the types of the first rows
        if "further" in header:
            header["further"]["rows"] = 0
        note_roles(reading, bad)
        oddities = tuple(oddity for oddity in bad.tally.oddities if not oddity.rows)
        return Beginning(plan, source.kind, (arrays, header), reading.task, reading.classes, oddities)
    return None


def read(shard: Shard, beginning: Beginning, skips: bool, frames: Sequence[Any] = ()) -> LocalRows:
    """Read the rows of a shard, or of its tables in memory; ``skips`` leaves out a shard that cannot be read."""
    try:
        return _read(shard, beginning, frames)
    except (DataError, OSError) as error:
        if not skips:
            remedy = "mend it, or pass `on_bad_shard='skip'`"
            raise DataError(f"it cannot be read ({error})", shard.name, remedy=remedy) from None
        return LocalRows(NOTHING, Survey(0, [], [], beginning.encoder, Tally(), f"{shard.name}: {error}"))


def _read(shard: Shard, beginning: Beginning, frames: Sequence[Any]) -> LocalRows:
    encoder, bad = encoder_of(beginning.kind).restore(*beginning.encoder), beginning.plan.bad_rows()
    batches = [
        encoder.encode(chunk, True, bad, True)
        for source, start, rows in shard.sources(frames)
        for chunk in _first(chunks_of(source, encoder, bad, start), rows)
    ]
    batches = [batch for batch in batches if len(batch.weight)]
    targets = [target_of(beginning.task, batch) for batch in batches]
    labels: dict[Any, int] = {}
    if beginning.task == "classification":
        targets = [_codes(batch_targets, labels) for batch_targets in targets]
    rows = gathered([batch._replace(target=y) for batch, y in zip(batches, targets, strict=True)])
    totals = np.bincount(rows.target.astype(np.int64), rows.weight, len(labels)).tolist() if labels else []
    return LocalRows(rows, Survey(len(rows.weight), list(labels), totals, encoder.state(), bad.tally))


def _first(chunks: Iterator[Any], rows: int | None) -> Iterator[Any]:
    """Chunks of a table up to so many rows; of lines all."""
    for chunk in chunks:
        yield chunk if rows is None else chunk._replace(data=chunk.data.slice(0, rows))
        if rows is not None and (rows := rows - chunk.data.num_rows) <= 0:
            return


def _codes(y: Labels, known: dict[Any, int]) -> np.ndarray:
    """The numbers of labels among those that are known, to which new ones are added in the order of their rows."""
    for code in dict.fromkeys(y.codes.tolist()):
        known.setdefault(y.values[code], len(known))
    return np.array([known.get(value, 0) for value in y.values] or [0], np.float64)[y.codes]


class United(NamedTuple):
    """The description of the rows of all shards."""

    encoder: Any
    classes: list[Any]
    offsets: list[int]  # rows before each shard, and all rows at the end
    skipped: Tally  # of all shards; the first row of a reason is that of the first shard
    problems: list[str]
    totals: dict[str, float]  # what the rows of each class weigh


def united(beginning: Beginning, surveys: Sequence[Survey]) -> United:
    """Unite the dictionaries and labels of shards in their order: features then have the numbers that one reader of all
    rows would have given them."""
    encoder = encoder_of(beginning.kind).restore(*beginning.encoder)
    if not hasattr(encoder, "absorb"):
        raise DataError(f"rows of {beginning.kind} cannot be spread", remedy="train on one machine")
    for survey in surveys:
        encoder.absorb(*survey.encoder)
    labels = dict.fromkeys([*beginning.classes, *(label for survey in surveys for label in survey.labels)])
    offsets = np.cumsum([0, *(survey.n_rows for survey in surveys)]).tolist()
    skipped = Tally()
    for oddity in beginning.oddities:
        skipped.note(oddity)
    totals: dict[str, float] = {}
    for survey in surveys:
        skipped.add_all(survey.skipped)
        for label, total in zip(survey.labels, survey.totals, strict=True):
            totals[str(label)] = totals.get(str(label), 0.0) + total
    problems = [survey.problem for survey in surveys if survey.problem is not None]
    return United(encoder, list(labels), offsets, skipped, problems, totals)


class Sizes(NamedTuple):
    """Numbers of rows: of all shards, of the common start, and of the end."""

    rows: int
    sample: int  # that the common start learns
    last: int  # that are learned when shards are joined, or a few less


class Prepared(NamedTuple):
    """A shard, ready to be learned."""

    sample: Batch
    last: Batch
    rest: Batch


def prepared(
    local: LocalRows,
    united: Beginning,
    classes: Sequence[Any],
    offset: int,
    sizes: Sizes,
    shard: Shard,
    frames: Sequence[Any] = (),
) -> Prepared:
    """Number features and classes as all shards do, and take apart what others learn.

    ``united`` has the encoder of all shards, and the weights of classes; ``offset`` rows are in the shards before.
    ``local`` was read from the shard, or its frames.
    """
    ids = _ids_in(united, *local.survey.encoder)
    if ids is None and len(local.rows.weight):  # it knew other columns, so its numbers mean other things
        local = read(shard, united, False, frames)
    rows, labels = local.rows, local.survey.labels
    if not len(rows.weight):
        return Prepared(NOTHING, NOTHING, NOTHING)
    if ids is not None:
        rows = rows._replace(rows=rows.rows._replace(codes=ids[rows.rows.codes], features=ids[rows.rows.features]))
    if labels:
        codes = rows.target.astype(np.int64)
        rows = weighed(rows._replace(target=Labels(labels, codes)), weights_by_label(united.plan.class_weight))
        rows = rows._replace(target=np.array([float(classes.index(label)) for label in labels])[codes])
    is_sample = drawn(sizes.rows, sizes.sample, offset, len(rows.weight))
    is_last = drawn(sizes.rows, sizes.last, offset, len(rows.weight), 1) & ~is_sample
    return Prepared(*(rows.at(np.flatnonzero(mask)) for mask in (is_sample, is_last, ~is_sample & ~is_last)))


def _ids_in(united: Beginning, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> np.ndarray | None:
    """The features of all shards, by their ids in the encoder of one; None if its columns were others."""
    encoder = encoder_of(united.kind).restore(*united.encoder)
    if isinstance(encoder, LineEncoder):
        return ids_of(encoder.keys, arrays["keys"])
    same = encoder.state()[1]["columns"] == header["columns"]
    return ids_of(encoder.ids.keys, arrays["keys"]) if same else None


def drawn(rows: int, size: int, start: int, n: int, draw: int = 0) -> np.ndarray:
    """A mask of the ``n`` rows from number ``start`` on that are in a sample of ``size`` of all rows.

    One row is drawn from each of as many stretches of equal length, so a sample is in the order of the rows.

    >>> drawn(100, 10, 0, 100).sum(), drawn(100, 10, 0, 10).sum(), drawn(5, 9, 0, 5).all()
    (np.int64(10), np.int64(1), np.True_)
    """
    if size >= rows or not size:
        return np.full(n, size > 0)
    edges = np.arange(size + 1) * rows // size
    numbers = edges[:-1] + (hashed(2 * np.arange(size) + draw) % np.diff(edges).astype(np.uint64)).astype(np.int64)
    places = numbers[np.searchsorted(numbers, start) : np.searchsorted(numbers, start + n)] - start
    is_drawn = np.zeros(n, bool)
    is_drawn[places] = True
    return is_drawn


def gathered(rows_of_shards: Sequence[Batch]) -> Batch:
    """The rows of several shards, in the order of these."""
    filled = [rows for rows in rows_of_shards if len(rows.weight)]
    if not filled:
        return NOTHING
    y, weight = (np.concatenate([getattr(rows, name) for rows in filled]) for name in ("target", "weight"))
    return Batch(together([rows.rows for rows in filled]), y, weight)

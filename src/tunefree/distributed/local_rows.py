"""What a worker reads of a shard: its rows as it would know them alone, and what has to be united with others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tunefree.core.errors import DataError
from tunefree.core.rows import Block, together
from tunefree.core.rows import sparse as sparse_rows
from tunefree.distributed.shards import Shard
from tunefree.model.targets import Labels
from tunefree.model_files.plan import Plan
from tunefree.stream.batch import BadRows, Batch, Position, Reason, Tally
from tunefree.stream.source import Source, encoder_of
from tunefree.stream.svmlight import SvmlightEncoder
from tunefree.training.reading import begin, blank_encoder, chunks_of
from tunefree.training.roles import note_roles
from tunefree.training.targets import labels_of, target_of, task_of

EncoderState = tuple[dict[str, np.ndarray], dict[str, Any]]


class Beginning(NamedTuple):
    """How all shards are to be read, as the first rows decide."""

    plan: Plan
    kind: str  # of the encoder
    encoder: EncoderState  # without features beyond the columns
    task: str
    classes: list[Any]  # of the first rows, sorted
    oddities: tuple[Reason, ...] = ()  # of columns, in the first rows


class LocalRows(NamedTuple):
    """The rows of a shard, with features as this shard alone would number them."""

    X: Any  # block of rows, or None if there are none
    y: Any  # Labels, or (n,) numbers in regression
    weight: np.ndarray  # (n,) sample weights, without those of classes
    encoder: EncoderState
    skipped: Tally  # rows that could not be used
    problem: str | None = None  # why the shard could not be read, if it was skipped


class Survey(NamedTuple):
    """What the coordinator has to know of the rows of a shard."""

    n_rows: int
    labels: list[Any]  # in the order of their first rows; none in regression
    totals: list[float]  # what the rows of each weigh
    encoder: EncoderState
    skipped: Tally
    problem: str | None


class SparseBlock(NamedTuple):
    """Rows of a sparse matrix, with their targets."""

    X: Any  # (n, d) compressed sparse rows
    y: np.ndarray  # (n,)

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return len(self.y)

    def batch(self) -> Batch:
        """The rows as a batch; column j becomes feature j + 1."""
        rows = sparse_rows(self.X.indptr, self.X.indices + 1, self.X.data)
        n, position = len(self.y), Position()
        return Batch(rows, pa.array(self.y), np.ones(n), np.arange(1, n + 1), None, "the matrix", position)

    def beginning(self, plan: Plan) -> Beginning:
        """How all blocks of the matrix are to be read."""
        target = self.batch().target
        task = plan.task or task_of(target).task
        classes = sorted(labels_of(target).values) if task == "classification" else []
        return Beginning(plan, "svmlight", SvmlightEncoder.of_indices(self.X.shape[1]).state(), task, classes)


def begun(shard: Shard, plan: Plan, frames: Sequence[Any] = ()) -> Beginning | None:
    """Look at the first rows of a shard, and of its file, as a reader of all would; None if there are none."""
    blocks = [frame for frame in frames if isinstance(frame, SparseBlock)]
    if blocks:
        return next((block.beginning(plan) for block in blocks if block.num_rows), None)
    bad = BadRows(skip=True, skip_unlabelled=True)  # the shards that hold bad rows will tell of them
    for source, _, _ in shard.whole().sources(frames):
        reading = begin(source, plan, bad)
        blank, _ = blank_encoder(source, plan, bad)
        arrays, header = blank.state()[0], reading.encoder.state()[1]  # columns have the types of the first rows
        if "further" in header:
            header["further"]["rows"] = 0
        first = BadRows()
        note_roles(reading, first)
        of_rows = reading.task, reading.classes, tuple(first.tally.oddities())
        return Beginning(plan, source.kind, (arrays, header), *of_rows)
    return None


def read(shard: Shard, beginning: Beginning, skips: bool, frames: Sequence[Any] = ()) -> LocalRows:
    """Read the rows of a shard, or the tables of one without files; ``skips`` leaves out a shard that cannot be read.

    Raises
    ------
    DataError
        If a row cannot be used, or the shard cannot be read and is not to be skipped.
    """
    try:
        return _read(shard, beginning, frames)
    except (DataError, OSError) as error:
        if not skips:
            remedy = "mend it, or pass `on_bad_shard='skip'`"
            raise DataError(f"it cannot be read ({error})", shard.name, remedy=remedy) from None
        nothing = Labels([], np.zeros(0, np.int64)) if beginning.task == "classification" else np.zeros(0)
        return LocalRows(None, nothing, np.zeros(0), beginning.encoder, Tally(), f"{shard.name}: {error}")


def _read(shard: Shard, beginning: Beginning, frames: Sequence[Any]) -> LocalRows:
    encoder, bad = encoder_of(beginning.kind).restore(*beginning.encoder), beginning.plan.bad_rows()
    batches = [frame.batch() for frame in frames if isinstance(frame, SparseBlock)]
    batches += [
        encoder.encode(chunk, True, bad, True)
        for source, start, rows in shard.sources([frame for frame in frames if not isinstance(frame, SparseBlock)])
        for chunk in _first(chunks_of(source, encoder, bad, start), source, rows)
    ]
    batches = [batch for batch in batches if len(batch.weight)]
    targets = [target_of(beginning.task, batch) for batch in batches]
    y: Any = _joined_labels(targets) if beginning.task == "classification" else np.concatenate([np.zeros(0), *targets])
    weight = np.concatenate([np.zeros(0), *(batch.weight for batch in batches)])
    X = together([batch.rows for batch in batches]) if batches else None
    return LocalRows(X, y, weight, encoder.state(), bad.tally)


def _first(chunks: Iterator[Any], source: Source, rows: int | None) -> Iterator[Any]:
    """Chunks of a table up to so many rows; of lines all."""
    for chunk in chunks:
        if rows is None:
            yield chunk
        elif chunk.data.num_rows <= rows:
            yield chunk
            rows -= chunk.data.num_rows
            if not rows:
                return
        else:
            yield chunk._replace(data=chunk.data.slice(0, rows))
            return


def _joined_labels(parts: list[Labels]) -> Labels:
    """The labels of several batches, in the order of the rows that have them first."""
    known: dict[Any, int] = {}
    codes = []
    for part in parts:
        order = [part.values[code] for code in dict.fromkeys(part.codes.tolist())]
        for value in order:
            known.setdefault(value, len(known))
        places = np.array([known.get(value, 0) for value in part.values] or [0], np.int64)
        codes.append(places[part.codes])
    return Labels(list(known), np.concatenate([np.zeros(0, np.int64), *codes]))


def survey(rows: LocalRows) -> Survey:
    """What has to be united with other shards."""
    labels = rows.y.values if isinstance(rows.y, Labels) else []
    totals = np.bincount(rows.y.codes, rows.weight, len(labels)).tolist() if labels else []
    return Survey(len(rows.weight), labels, totals, rows.encoder, rows.skipped, rows.problem)


class United(NamedTuple):
    """What is known of all shards together."""

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
    for of_shard in surveys:
        encoder.absorb(*of_shard.encoder)
    labels = dict.fromkeys([*beginning.classes, *(label for of_shard in surveys for label in of_shard.labels)])
    offsets = np.cumsum([0, *(of_shard.n_rows for of_shard in surveys)]).tolist()
    skipped = Tally()
    for oddity in beginning.oddities:
        skipped.note(oddity)
    totals: dict[str, float] = {}
    for of_shard in surveys:
        skipped.add_all(of_shard.skipped)
        for label, total in zip(of_shard.labels, of_shard.totals, strict=True):
            totals[str(label)] = totals.get(str(label), 0.0) + total
    problems = [of_shard.problem for of_shard in surveys if of_shard.problem is not None]
    return United(encoder, list(labels), offsets, skipped, problems, totals)


def renumbered(X: Block, ids: np.ndarray) -> Block:
    """Rows with other features in the place of their codes and words."""
    return X._replace(codes=ids[X.codes], features=ids[X.features])

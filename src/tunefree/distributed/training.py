"""Learning from more rows than one machine holds: the phases from the first rows to a model, computed by Dask workers.

An engine (:mod:`tunefree.distributed.engines`) calls functions for each shard and adds up what they return by a fixed
tree over the shards' numbers. Everything here depends on the shards alone, not on who computed what, when or how often.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from itertools import chain, pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from scipy import sparse

from tunefree.core import storage
from tunefree.core.errors import DataError, ModelError
from tunefree.distributed import shard_pass
from tunefree.distributed.engines import Engine
from tunefree.distributed.rows import Beginning, Sizes, United, begun, prepared, read, united
from tunefree.distributed.shard_pass import Passed, Start
from tunefree.distributed.shards import FEWEST_ROWS, Cut, Shard, joined, pieces_of, shards_of
from tunefree.estimators.model_file import estimator_of
from tunefree.generations.reservoir import MOST_ROWS
from tunefree.losses.rates import has_rates
from tunefree.model_files.plan import ONE_MACHINE, Plan, plan_of
from tunefree.model_files.progress import Progress
from tunefree.model_files.trained import Trained
from tunefree.pool.model import restored
from tunefree.pool.targets import RunningMetrics
from tunefree.stream.files import TextFile
from tunefree.stream.source import Source, open_source
from tunefree.training import targets
from tunefree.training.training import check_weighed

SAMPLE = 2**17  # rows that the common start learns at least, on one worker; of more than twice as many
SAMPLE_OF = 2  # it learns one of so many, as long as trees are grown on all of them
LAST = 2**14  # other rows that are learned when shards are joined
LAST_OF = 8  # of as many rows beside the sample at most one is one of these
JOURNAL = "journal"  # the kind of file of one
ARRAY = "$array"  # the key of the place of an array in a journal
TARGET = "(target)"  # the name of the targets of an array

Tell = Callable[[str], None]


class Parts(NamedTuple):
    """The data, cut into shards."""

    shards: list[Shard]
    frames: list[list[Any]]  # handles of the tables of each shard; none of shards of files


class Journal:
    """Sums of rounds, in a file that is written whole after each; nothing is kept without a path.

    All that is done between rounds depends on these sums alone. So a training that ``resumes`` reads the rows anew,
    takes the sums of the rounds that were done from the file, and ends with the same bytes as if nothing had happened.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, resumes: bool = False) -> None:
        self.path = None if path is None else Path(path)
        self.identity = ""
        self.arrays: dict[str, np.ndarray] = {}
        self.rounds: dict[str, str] = {}  # JSON
        self.resumes = resumes and self.path is not None and self.path.exists()

    def begin(self, *described: Any) -> None:
        """Training begins, of data and a plan that are so described; a ModelError if the file is of another one."""
        text = json.dumps(described, sort_keys=True, default=str)
        self.identity = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        if not self.resumes or self.path is None:
            return
        self.arrays, header = storage.load(self.path)
        if header.get("kind") != JOURNAL or header.get("identity") != self.identity:
            problem = "it is no checkpoint of this training over shards: the data or the options have changed"
            raise ModelError(f"{self.path}: {problem}; remove it to begin anew")
        self.rounds = header["rounds"]

    def round(self, engine: Engine, stage: str, learn: Callable[[], Any], restored: Callable[[Any], Any]) -> Any:
        """The handle of the result of a round: from the file, or learned now and then written to it.

        A file has nested lists, of which ``restored`` makes the value of ``learn``. Without a file, what was learned
        stays with the workers.
        """
        if stage in self.rounds:
            return engine.hold(stage, restored(json.loads(self.rounds[stage], object_hook=self._restored)))
        handle = learn()
        if self.path is not None:
            self.rounds[stage] = json.dumps(engine.value(handle), default=self._reference)
            storage.save(self.path, self.arrays, {"kind": JOURNAL, "identity": self.identity, "rounds": self.rounds})
        return handle

    def _reference(self, array: np.ndarray) -> dict[str, str]:
        """The place of an array in the file, for JSON."""
        name = str(len(self.arrays))
        self.arrays[name] = array
        return {ARRAY: name}

    def _restored(self, pairs: dict[str, Any]) -> Any:
        """The array at a place in the file, or any other dict."""
        return self.arrays[pairs[ARRAY]] if ARRAY in pairs else pairs


def train(
    client: Any,
    data: Any,
    target: str | None = None,
    y: Any = None,
    *,
    plan: Plan | None = None,
    shard_rows: int = FEWEST_ROWS,
    on_bad_shard: str = "error",
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    tell: Tell | None = None,
    **options: Any,
) -> Any:
    """Learn a model from shards on a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
    data : path, sequence of paths, Source, Dask DataFrame, Dask array, or list of delayed tables
        Files must be where all workers find them under the same names. Texts are cut at line ends and Parquet files
        between row groups; collections between partitions.
    target : str, optional
        The column to predict; None for lines with labels and for arrays.
    y : Dask array or Series, optional
        The targets of a Dask array, cut as its rows are.
    plan : Plan, optional
        What is to be learned, in the place of ``target`` and ``options``.
    shard_rows : int, default 16384
        Rows that a shard has at least, if there are as many; smaller neighbours are joined.
    on_bad_shard : {"error", "skip"}, default "error"
        What to do with a shard that cannot be read: error, or skip.
    checkpoint : path, optional
        File to which the sums of each round are saved.
    resume : bool, default False
        Go on after the last round in the checkpoint, if there is one. The model is then the same, to the byte.
    tell : function, optional
        Called with a line after each round.
    **options
        Other fields of :class:`tunefree.model_files.plan.Plan`.

    Returns
    -------
    TuneFreeClassifier or TuneFreeRegressor
        Fitted, as :func:`tunefree.train` returns it. It depends on the shards, not on how many workers there are, nor
        on which of them were lost.

    Raises
    ------
    DataError, ModelError
        If rows cannot be used, a shard cannot be read, or workers die again and again.
    """
    plan = plan_of({"target": target, **options}) if plan is None else plan
    check(plan)
    if on_bad_shard not in ("error", "skip"):
        raise ModelError(f"`on_bad_shard` must be 'error' or 'skip', not {on_bad_shard!r}")
    if shard_rows < 1:
        raise ModelError(f"shard_rows must be at least 1, not {shard_rows}")
    engine, cut = Engine(client), Cut(shard_rows)
    if is_collection(data):
        parts, plan = parts_of_collection(engine, data, y, plan, cut)
    else:
        if "-" in (data if isinstance(data, list | tuple) else [data]):
            raise DataError("standard input cannot be spread", remedy="save it to a file that all workers see")
        parts = parts_of_files(engine, open_source(data), cut)
    journal = Journal(checkpoint, resume)
    tell = tell or (lambda line: None)
    return estimator_of(learn(engine, parts, plan, tell, on_bad_shard == "skip", journal))


def learn(
    engine: Engine, parts: Parts, plan: Plan, tell: Tell, skips: bool = False, journal: Journal | None = None
) -> Trained:
    """Learn a model from shards; ``skips`` leaves out those that cannot be read.

    ``tell`` is called with a line after each round, and the journal keeps the sums of each.
    """
    check(plan)
    journal = journal or Journal()
    beginning, local, whole = _read(engine, parts, plan, skips, tell)
    rows, n_filled = whole.offsets[-1], sum(start < stop for start, stop in pairwise(whole.offsets))
    sample = rows_of_start(rows) if n_filled > 1 else rows  # one shard is learned as on one machine
    sizes = Sizes(rows, sample, min(LAST, (rows - sample) // LAST_OF))
    journal.begin(plan.changed(), parts.shards, whole.offsets, whole.classes, whole.encoder.n_features, sizes)
    handle = engine.hold("united", beginning._replace(encoder=whole.encoder.state()))
    shards = zip(local, whole.offsets, parts.shards, parts.frames, strict=False)
    items = [(rows, handle, whole.classes, offset, sizes, shard, frames) for rows, offset, shard, frames in shards]
    ready = engine.each("prepare", prepared, items)
    del local, items

    def start_of() -> Any:
        parts_of_sample = engine.each("sample", attrgetter("sample"), [(shard,) for shard in ready])
        described = beginning, whole.classes, whole.encoder.n_features
        return engine.one("start", shard_pass.started, *described, parts_of_sample, sample == rows)

    def total_of() -> Any:
        state = engine.one("following", shard_pass.following, start)
        learned = engine.each("shard", shard_pass.learned, [(shard, state) for shard in ready])
        return engine.total("shard", shard_pass.plus, learned)

    start = end = journal.round(engine, "start", start_of, Start._make)
    metrics = _metrics(engine, end)
    tell(f"common start: {sample:,} rows of all shards, loss before each was learned {metrics.mean_loss():.5g}")
    if sample < rows:
        total = journal.round(engine, "shard", total_of, Passed.restored)
        metrics = _metrics(engine, total)
        tell(f"shards: {metrics.rows:,} rows, loss before each was learned {metrics.mean_loss():.5g}")
        last = engine.each("last", attrgetter("last"), [(shard,) for shard in ready])
        end = engine.one("join", shard_pass.joined, start, total, last)
    model, sums = engine.value(end)
    progress = Progress(complete=True, number=1, progressive=[RunningMetrics(**sums)])
    progress.tally = whole.skipped
    trained = Trained(restored(*model), whole.encoder, beginning.kind, beginning.plan, progress)
    check_weighed(trained)
    tell(f"the model: {trained.progress.progressive[0].rows:,} rows")
    return trained


def rows_of_start(rows: int) -> int:
    """The number of rows that the common start learns.

    >>> [rows_of_start(n) for n in (1000, 200_000, 500_000, 10**9)]
    [1000, 131072, 250000, 1048576]
    """
    return min(max(SAMPLE, min(rows // SAMPLE_OF, MOST_ROWS)), rows)


def _metrics(engine: Engine, handle: Any) -> RunningMetrics:
    """The metrics of predictions of rows before they were learned."""
    return RunningMetrics(**engine.value(engine.one("metrics", attrgetter("metrics"), handle)))


def check(plan: Plan) -> None:
    """Raise a ModelError if a plan has parameters that are not supported over shards."""
    plan.check_scopes(plan.scopes - {ONE_MACHINE})
    if has_rates(plan.loss):
        raise ModelError(f"`loss` {plan.loss} {ONE_MACHINE.says}; {ONE_MACHINE.remedy}")
    targets.is_balanced(plan)


def _read(engine: Engine, parts: Parts, plan: Plan, skips: bool, tell: Tell) -> tuple[Beginning, list[Any], United]:
    """Let workers read their shards, and unite their dictionaries and classes."""
    pairs = list(zip(parts.shards, parts.frames, strict=True))
    looks = (engine.value(engine.one("begin", begun, shard, plan, frames)) for shard, frames in pairs)
    beginning: Beginning | None = next(filter(None, looks), None)
    if beginning is None:
        raise DataError("there are no rows", remedy="check that it is the data you mean")
    handle = engine.hold("beginning", beginning)
    local = engine.each("read", read, [(shard, handle, skips, frames) for shard, frames in pairs])
    surveys = engine.values(engine.each("survey", attrgetter("survey"), [(rows,) for rows in local]))
    whole = united(beginning, surveys)
    for problem in whole.problems:
        tell(f"skipped: {problem}")
    if not whole.offsets[-1]:
        raise DataError("no row could be used", remedy="see the messages about skipped rows")
    if beginning.task == "classification" and len(whole.classes) < 2:
        raise DataError(f"the target has one class only, {whole.classes[0]!r}", remedy="give data with two classes")
    targets.check_class_weight(plan, beginning.task, whole.classes, complete=True)
    if targets.is_balanced(plan):
        weights = targets.balancing(whole.totals)
        beginning = beginning._replace(plan=replace(beginning.plan, class_weight=weights))
    tell(f"read {whole.offsets[-1]:,} rows in {len(local)} shards: {whole.encoder.n_features:,} features")
    return beginning, local, whole


def parts_of_files(engine: Any, source: Source, cut: Cut) -> Parts:
    """The shards of files, which workers cut into pieces."""
    if not source.files:
        raise DataError("a table in memory is not spread", source.name, remedy="train on one machine")
    if not source.rewindable:
        raise DataError("standard input cannot be spread", remedy="save it to a file that all workers see")
    absolute = Source(tuple(map(_absolute, source.files)), source.format, None, source.delimiter)
    items = [(file, absolute.format, absolute.delimiter, cut) for file in absolute.files]
    pieces = engine.values(engine.each("count", pieces_of, items))
    shards = shards_of(absolute, list(chain.from_iterable(pieces)), cut)
    return Parts(shards, [[] for _ in shards])


def _absolute(file: str) -> str:
    """The file with its absolute path: workers have other working directories."""
    named = os.path.abspath(file)
    if not isinstance(file, TextFile):
        return named
    return TextFile(named, **vars(file.but(end=None, chunk_size=None)))


def is_collection(data: Any) -> bool:
    """Whether data are a collection of Dask, or delayed tables."""
    return hasattr(data, "__dask_graph__") or (
        isinstance(data, list | tuple) and len(data) > 0 and all(hasattr(table, "__dask_graph__") for table in data)
    )


def parts_of_collection(engine: Any, data: Any, y: Any, plan: Plan, cut: Cut) -> tuple[Parts, Plan]:
    """The shards of a collection, and the plan with the name of its targets.

    Partitions are joined until each shard has rows enough; their rows are counted. They are computed once, and stay on
    the workers until the rows of their shards have been numbered.
    """
    if hasattr(data, "columns") or isinstance(data, list | tuple):
        if y is not None:
            raise DataError("targets are given apart from a table", remedy="name its column with target=")
        tables = _computed(engine, data if isinstance(data, list | tuple) else data.to_delayed())
    else:
        if y is None:
            raise DataError("an array has no targets", remedy="give them as y=")
        plan = replace(plan, target=TARGET)
        tables = _array_tables(engine, data, y)
    rows = engine.values(engine.each("count", len, [(table,) for table in tables]))
    groups = joined(rows, cut.fewest_rows)
    shards = [Shard(number) for number in range(len(groups))]
    return Parts(shards, [[tables[place] for place in group] for group in groups]), plan


def _computed(engine: Any, delayed: Any) -> list[Any]:
    """Handles of partitions, which are computed on workers."""
    return list(engine.client.compute(delayed.ravel().tolist() if hasattr(delayed, "ravel") else list(delayed)))


def _array_tables(engine: Any, X: Any, y: Any) -> list[Any]:
    """Handles of tables, one for each block of rows."""
    if X.ndim != 2:
        raise DataError(f"an array of {X.ndim} dimensions is not a table", remedy="reshape it to (rows, columns)")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    blocks, target_blocks = (_computed(engine, array.to_delayed()) for array in (X, y))
    if len(blocks) != len(target_blocks):
        problem = f"there are {len(blocks)} blocks of rows and {len(target_blocks)} of targets"
        raise DataError(problem, remedy="rechunk both in the same way")
    return list(engine.each("table", table_of, list(zip(blocks, target_blocks, strict=True))))


def table_of(X: Any, y: Any) -> Any:
    """A block of rows and their targets as one table, with columns x0, x1, ...

    >>> table_of(np.array([[1.0, 2.0]]), np.array(["yes"])).to_pydict()
    {'x0': [1.0], 'x1': [2.0], '(target)': ['yes']}
    """
    if X.shape[0] != len(y):
        raise DataError(f"a block has {X.shape[0]} rows and {len(y)} targets", remedy="rechunk both in the same way")
    if sparse.issparse(X):
        raise DataError("blocks of sparse matrices are not spread", remedy="write svmlight files, and name these")
    dense = np.asarray(X)
    columns = {f"x{place}": np.ascontiguousarray(dense[:, place]) for place in range(dense.shape[1])}
    return pa.table({**columns, TARGET: pa.array(np.asarray(y))})

"""Training on more rows than fit on one machine: the phases from the first rows to a model, computed by Dask workers.

An engine (:mod:`tunefree.distributed.engines`) calls functions for each shard and adds their results in a fixed order.
All results depend on the shards only, not on the workers, or on when or how often a task runs.
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
from tunefree.core.parameters import require
from tunefree.distributed import shard_pass
from tunefree.distributed.engines import Engine
from tunefree.distributed.rows import Beginning, Sizes, United, begun, prepared, surveyed, united
from tunefree.distributed.shard_pass import Passed, Start
from tunefree.distributed.shards import FEWEST_ROWS, Cut, Shard, joined, pieces_of, shards_of
from tunefree.estimators.model_file import estimator_of
from tunefree.generations.reservoir import MOST_ROWS
from tunefree.losses.rates import has_rates
from tunefree.model_files.plan import ERROR, ONE_MACHINE, SKIP, Plan, plan_of
from tunefree.model_files.progress import Progress
from tunefree.model_files.trained import Trained
from tunefree.pool.model import restored
from tunefree.pool.targets import RunningMetrics
from tunefree.stream.files import TextFile
from tunefree.stream.source import Source, open_source
from tunefree.training import targets
from tunefree.training.training import check_weighed

SAMPLE = 2**17  # minimum number of rows that the common start learns, on one worker
SAMPLE_OF = 2  # of more than twice as many rows it learns one half, at most the number on which trees are grown
LAST = 2**14  # maximum number of other rows that are learned after the shards are joined
LAST_OF = 8  # at most one eighth of the rows outside the sample are such rows
JOURNAL = "journal"  # kind of a journal file in its header
ARRAY = "$array"  # key of a reference to an array in the JSON of a journal
TARGET = "(target)"  # column name of the targets of an array

Tell = Callable[[str], None]


class Parts(NamedTuple):
    """The data, cut into shards."""

    shards: list[Shard]
    frames: list[list[Any]]  # handles of the tables of each shard; empty for shards of files


class Journal:
    """The results of rounds, in a file that is rewritten after each round; without a path nothing is saved.

    All computations between rounds depend only on these results. A training that ``resumes`` reads the rows again,
    loads the results of completed rounds from the file, and gives the same model, to the byte, as without interruption.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, resumes: bool = False) -> None:
        self.path = None if path is None else Path(path)
        self.identity = ""
        self.arrays: dict[str, np.ndarray] = {}
        self.rounds: dict[str, str] = {}  # JSON
        self.resumes = resumes and self.path is not None and self.path.exists()

    def begin(self, *description: Any) -> None:
        """Begin a training with this description; raise a ModelError if the file belongs to another training."""
        text = json.dumps(description, sort_keys=True, default=str)
        self.identity = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        if not self.resumes or self.path is None:
            return
        self.arrays, header = storage.load(self.path)
        if header.get("kind") != JOURNAL or header.get("identity") != self.identity:
            problem = "it is no checkpoint of this training over shards: the data or the options have changed"
            raise ModelError(f"{self.path}: {problem}; remove it to begin anew")
        self.rounds = header["rounds"]

    def round(self, engine: Engine, stage: str, learn: Callable[[], Any], restored: Callable[[Any], Any]) -> Any:
        """Return the handle of the result of a round: loaded from the file, or learned now and saved.

        ``restored`` converts the nested lists in the file to a value like that of ``learn``. Without a file, the result
        stays on the workers.
        """
        if stage in self.rounds:
            return engine.hold(stage, restored(json.loads(self.rounds[stage], object_hook=self._restored)))
        handle = learn()
        if self.path is not None:
            self.rounds[stage] = json.dumps(engine.value(handle), default=self._reference)
            storage.save(self.path, self.arrays, {"kind": JOURNAL, "identity": self.identity, "rounds": self.rounds})
        return handle

    def _reference(self, array: np.ndarray) -> dict[str, str]:
        """Store an array, and return a reference to it for JSON."""
        name = str(len(self.arrays))
        self.arrays[name] = array
        return {ARRAY: name}

    def _restored(self, pairs: dict[str, Any]) -> Any:
        """Resolve a reference to an array; return any other dict unchanged."""
        return self.arrays[pairs[ARRAY]] if ARRAY in pairs else pairs


def train(
    client: Any,
    data: Any,
    target: str | None = None,
    y: Any = None,
    *,
    plan: Plan | None = None,
    shard_rows: int = FEWEST_ROWS,
    on_bad_shard: str = ERROR,
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
        Files must have the same paths on all workers. Texts are cut at line ends, Parquet files between row groups, and
        collections between partitions.
    target : str, optional
        The column to predict; None for lines with labels and for arrays.
    y : Dask array or Series, optional
        The targets of a Dask array, with the same chunks of rows.
    plan : Plan, optional
        The options of training, instead of ``target`` and ``options``.
    shard_rows : int, default 16384
        Minimum number of rows of a shard, if there are as many; smaller adjacent parts are joined.
    on_bad_shard : {"error", "skip"}, default "error"
        Handling of a shard that cannot be read: raise an error, or skip it.
    checkpoint : path, optional
        File to which the results of each round are saved.
    resume : bool, default False
        Continue after the last round in the checkpoint, if there is one. The model is then the same, to the byte.
    tell : function, optional
        Called with a line after each round.
    **options
        Other fields of :class:`tunefree.model_files.plan.Plan`.

    Returns
    -------
    TuneFreeClassifier or TuneFreeRegressor
        Fitted, as from :func:`tunefree.train`. It depends on the shards, but not on the number of workers, nor on lost
        workers.

    Raises
    ------
    DataError, ModelError
        If rows cannot be used, a shard cannot be read, or workers die repeatedly.
    """
    plan = plan_of({"target": target, **options}) if plan is None else plan
    check(plan)
    require("on_bad_shard", str, on_bad_shard, choices=(ERROR, SKIP))
    require("shard_rows", int, shard_rows, low=1)
    engine, cut = Engine(client), Cut(shard_rows)
    if is_collection(data):
        parts, plan = parts_of_collection(engine, data, y, plan, cut)
    else:
        paths = data if isinstance(data, list | tuple) else [data]
        if any(isinstance(path, str) and path == "-" for path in paths):  # whose format could not be named
            raise DataError("standard input is not spread", remedy="save it to a file that all workers see")
        parts = parts_of_files(engine, open_source(data), cut)
    journal = Journal(checkpoint, resume)
    tell = tell or (lambda line: None)
    return estimator_of(learn(engine, parts, plan, tell, on_bad_shard == SKIP, journal))


def learn(
    engine: Engine, parts: Parts, plan: Plan, tell: Tell, skips: bool = False, journal: Journal | None = None
) -> Trained:
    """Learn a model from shards; with ``skips``, leave out shards that cannot be read.

    ``tell`` is called with a line after each round, and the journal saves the result of each round.
    """
    journal = journal or Journal()
    beginning, merged = _read(engine, parts, plan, skips, tell)
    rows, n_filled = merged.offsets[-1], sum(start < stop for start, stop in pairwise(merged.offsets))
    sample = rows_of_start(rows) if n_filled > 1 else rows  # one shard is learned as on one machine
    sizes = Sizes(rows, sample, min(LAST, (rows - sample) // LAST_OF))
    journal.begin(plan.changed(), parts.shards, merged.offsets, merged.classes, merged.encoder.n_features, sizes)
    handle = engine.hold("united", beginning._replace(encoder=merged.encoder.state()))
    shards = zip(parts.shards, pairwise(merged.offsets), parts.frames, strict=True)
    items = [(shard, handle, merged.classes, at, sizes, frames) for shard, (at, end), frames in shards if at < end]
    ready = engine.each("prepare", prepared, items)

    def start_of() -> Any:
        parts_of_sample = engine.each("sample", attrgetter("sample"), [(shard,) for shard in ready])
        arguments = beginning, merged.classes, merged.encoder.n_features
        return engine.one("start", shard_pass.started, *arguments, parts_of_sample, sample == rows)

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
    progress.tally = merged.skipped
    trained = Trained(restored(*model), merged.encoder, beginning.kind, beginning.plan, progress)
    check_weighed(trained)
    tell(f"the model: {trained.progress.progressive[0].rows:,} rows")
    return trained


def rows_of_start(rows: int) -> int:
    """Return the number of rows that the common start learns.

    >>> [rows_of_start(n) for n in (1000, 200_000, 500_000, 10**9)]
    [1000, 131072, 250000, 1048576]
    """
    return min(max(SAMPLE, min(rows // SAMPLE_OF, MOST_ROWS)), rows)


def _metrics(engine: Engine, handle: Any) -> RunningMetrics:
    return RunningMetrics(**engine.value(engine.one("metrics", attrgetter("metrics"), handle)))


def check(plan: Plan) -> None:
    """Raise a ModelError if a plan has parameters that are not supported over shards."""
    plan.check_scopes(plan.scopes - {ONE_MACHINE})
    if has_rates(plan.loss):
        raise ModelError(f"`loss` {plan.loss} {ONE_MACHINE.says}; {ONE_MACHINE.remedy}")
    targets.is_balanced(plan)


def _read(engine: Engine, parts: Parts, plan: Plan, skips: bool, tell: Tell) -> tuple[Beginning, United]:
    """Let workers read the shards, and merge their dictionaries and classes."""
    pairs = list(zip(parts.shards, parts.frames, strict=True))
    beginnings = (engine.value(engine.one("begin", begun, shard, plan, frames)) for shard, frames in pairs)
    beginning: Beginning | None = next(filter(None, beginnings), None)
    if beginning is None:
        raise DataError("there are no rows", remedy="check that it is the data you mean")
    handle = engine.hold("beginning", beginning)
    surveys = engine.each("read", surveyed, [(shard, handle, skips, frames) for shard, frames in pairs])
    merged = united(beginning, engine.values(surveys))
    for problem in [*merged.problems, *merged.skipped.first]:
        tell(f"skipped: {problem}")
    if not merged.offsets[-1]:
        raise DataError("no row could be used", remedy="see the messages about skipped rows")
    if beginning.task == "classification" and len(merged.classes) < 2:
        raise DataError(f"the target has one class only, {merged.classes[0]!r}", remedy="give data with two classes")
    targets.check_class_weight(plan, beginning.task, merged.classes, complete=True)
    if targets.is_balanced(plan):
        weights = targets.balancing(merged.totals)
        beginning = beginning._replace(plan=replace(beginning.plan, class_weight=weights))
    tell(f"read {merged.offsets[-1]:,} rows in {len(pairs)} shards: {merged.encoder.n_features:,} features")
    return beginning, merged


def parts_of_files(engine: Any, source: Source, cut: Cut) -> Parts:
    """Return the shards of files, which workers cut into pieces."""
    if not source.files or not source.rewindable:
        raise DataError("it is not spread", source.name, remedy="save it to a file that all workers see")
    # Workers have other working directories.
    files = tuple(TextFile(os.path.abspath(file), **vars(file)) for file in source.files)
    items = [(file, source.format, source.delimiter, cut) for file in files]
    pieces = engine.values(engine.each("count", pieces_of, items))
    shards = shards_of(source, list(chain.from_iterable(pieces)), cut)
    return Parts(shards, [[] for _ in shards])


def is_collection(data: Any) -> bool:
    """Whether data are a Dask collection, or a list of delayed tables."""
    return hasattr(data, "__dask_graph__") or (
        isinstance(data, list | tuple) and len(data) > 0 and all(hasattr(table, "__dask_graph__") for table in data)
    )


def parts_of_collection(engine: Any, data: Any, y: Any, plan: Plan, cut: Cut) -> tuple[Parts, Plan]:
    """Return the shards of a collection, and the plan with the name of its targets.

    Partitions are joined until each shard has enough rows. They are computed once, and stay on the workers until they
    are read with the encoder of all shards.
    """
    if hasattr(data, "columns") or isinstance(data, list | tuple):
        if y is not None:
            raise DataError("targets are given apart from a table", remedy="name its column with target=")
        tables = _computed(engine, data if isinstance(data, list | tuple) else data.to_delayed())
    else:
        if y is None:
            raise DataError("an array has no targets", remedy="give them as y=")
        if plan.target is not None:
            raise DataError("targets are given by `y` and by `target`", remedy="leave `target` out")
        plan = replace(plan, target=TARGET)
        tables = _array_tables(engine, data, y)
    rows = engine.values(engine.each("count", len, [(table,) for table in tables]))
    groups = joined(rows, cut.fewest_rows)
    shards = [Shard(number) for number in range(len(groups))]
    return Parts(shards, [[tables[index] for index in group] for group in groups]), plan


def _computed(engine: Any, delayed: Any) -> list[Any]:
    return list(engine.client.compute(delayed.ravel().tolist() if hasattr(delayed, "ravel") else list(delayed)))


def _array_tables(engine: Any, X: Any, y: Any) -> list[Any]:
    """Return handles of tables, one for each block of rows."""
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
    """Combine a block of rows and their targets to a table with columns x0, x1, ...

    >>> table_of(np.array([[1.0, 2.0]]), np.array(["yes"])).to_pydict()
    {'x0': [1.0], 'x1': [2.0], '(target)': ['yes']}
    """
    if X.shape[0] != len(y):
        raise DataError(f"a block has {X.shape[0]} rows and {len(y)} targets", remedy="rechunk both in the same way")
    if sparse.issparse(X):
        raise DataError("blocks of sparse matrices are not spread", remedy="write svmlight files, and name these")
    dense = np.asarray(X)
    columns = {f"x{column}": np.ascontiguousarray(dense[:, column]) for column in range(dense.shape[1])}
    return pa.table({**columns, TARGET: pa.array(np.asarray(y))})

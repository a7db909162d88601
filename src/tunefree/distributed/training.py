"""`tunefree.distributed.train`: a model from more rows than one machine holds, learned by workers of Dask."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from tunefree.core.errors import DataError, ModelError
from tunefree.distributed import phases
from tunefree.distributed.engines import OnDask
from tunefree.distributed.journal import Journal
from tunefree.distributed.phases import Parts
from tunefree.distributed.rows import SparseBlock
from tunefree.distributed.shards import FEWEST_ROWS, Cut, Shard, count_range, joined, ranges_to_count, shards_of
from tunefree.estimators.model_file import estimator_of
from tunefree.model_files.plan import Plan, plan_of
from tunefree.stream.files import TextFile
from tunefree.stream.source import Source, open_source


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
    tell: Callable[[str], None] | None = None,
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
    phases.check(plan)
    if on_bad_shard not in ("error", "skip"):
        raise ModelError(f"`on_bad_shard` must be 'error' or 'skip', not {on_bad_shard!r}")
    if shard_rows < 1:
        raise ModelError(f"shard_rows must be at least 1, not {shard_rows}")
    engine, cut = OnDask(client), Cut(shard_rows)
    if is_collection(data):
        parts, plan = parts_of_collection(engine, data, y, plan, cut)
    else:
        if "-" in (data if isinstance(data, list | tuple) else [data]):
            raise DataError("standard input cannot be spread", remedy="save it to a file that all workers see")
        parts = parts_of_files(engine, data if isinstance(data, Source) else open_source(data), cut)
    journal = Journal(checkpoint, resume)
    tell = tell or (lambda line: None)
    return estimator_of(phases.learn(engine, parts, plan, tell, on_bad_shard == "skip", journal))


def parts_of_files(engine: Any, source: Source, cut: Cut) -> phases.Parts:
    """The shards of files, whose lines workers count."""
    if not source.files:
        raise DataError("a table in memory is not spread", source.name, remedy="train on one machine")
    if not source.rewindable:
        raise DataError("standard input cannot be spread", remedy="save it to a file that all workers see")
    absolute = Source(tuple(map(_absolute, source.files)), source.format, None, source.delimiter)
    counted = engine.values(engine.each("count", count_range, ranges_to_count(absolute, cut)))
    shards = shards_of(absolute, counted, cut)
    return phases.Parts(shards, [[] for _ in shards])


def _absolute(file: str) -> str:
    """The file with its absolute path: workers have other working directories."""
    named = os.path.abspath(file)
    if not isinstance(file, TextFile):
        return named
    return TextFile(named, **vars(file.but(end=None, chunk_size=None)))


TARGET = "(target)"  # the name of the targets of an array


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
    rows = engine.values(engine.each("count", count_rows, [(table,) for table in tables]))
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


def count_rows(table: Any) -> int:
    """How many rows a table has."""
    return int(table.num_rows if hasattr(table, "num_rows") else len(table))


def table_of(X: Any, y: Any) -> Any:
    """A block of rows and their targets as one table, with columns x0, x1, ...

    >>> table_of(np.array([[1.0, 2.0]]), np.array(["yes"])).to_pydict()
    {'x0': [1.0], 'x1': [2.0], '(target)': ['yes']}
    """
    if X.shape[0] != len(y):
        raise DataError(f"a block has {X.shape[0]} rows and {len(y)} targets", remedy="rechunk both in the same way")
    if sparse.issparse(X):
        return SparseBlock(sparse.csr_array(X), np.asarray(y))
    dense = np.asarray(X)
    columns = {f"x{place}": np.ascontiguousarray(dense[:, place]) for place in range(dense.shape[1])}
    return pa.table({**columns, TARGET: pa.array(np.asarray(y))})

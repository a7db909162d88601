"""Collections of Dask as shards: their partitions, joined until each shard has rows enough.

Partitions are computed once, and stay on the workers until the rows of their shards have been numbered. Empty ones are
passed over; how many rows there are is counted, so sizes need not be known before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from tunefree.core.errors import DataError
from tunefree.distributed.local_rows import SparseBlock
from tunefree.distributed.phases import Parts
from tunefree.distributed.shards import Cut, Shard, joined
from tunefree.model_files.plan import Plan

TARGET = "(target)"  # the name of the targets of an array


def is_collection(data: Any) -> bool:
    """Whether data are a collection of Dask, or delayed tables."""
    return hasattr(data, "__dask_graph__") or (
        isinstance(data, list | tuple) and len(data) > 0 and all(hasattr(table, "__dask_graph__") for table in data)
    )


def parts_of(engine: Any, data: Any, y: Any, plan: Plan, cut: Cut) -> tuple[Parts, Plan]:
    """The shards of a collection, and the plan with the name of its targets."""
    if hasattr(data, "columns") or isinstance(data, list | tuple):
        if y is not None:
            raise DataError("targets are given apart from a table", remedy="name its column with target=")
        tables = _computed(engine, data if isinstance(data, list | tuple) else data.to_delayed())
    else:
        if y is None:
            raise DataError("an array has no targets", remedy="give them as y=")
        plan = replace(plan, target=TARGET)
        tables = _of_arrays(engine, data, y)
    rows = engine.values(engine.each("count", count_rows, [(table,) for table in tables]))
    groups = joined(rows, cut.fewest_rows)
    shards = [Shard(number) for number in range(len(groups))]
    return Parts(shards, [[tables[place] for place in group] for group in groups]), plan


def _computed(engine: Any, delayed: Sequence[Any]) -> list[Any]:
    """Handles of the partitions, which are computed on workers."""
    return list(engine.client.compute(list(delayed)))


def _of_arrays(engine: Any, X: Any, y: Any) -> list[Any]:
    """Handles of tables, one for each block of rows."""
    if X.ndim != 2:
        raise DataError(f"an array of {X.ndim} dimensions is not a table", remedy="reshape it to (rows, columns)")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    blocks = _computed(engine, X.to_delayed().ravel().tolist())
    targets = y.to_delayed()
    of_y = _computed(engine, targets.ravel().tolist() if hasattr(targets, "ravel") else list(targets))
    if len(blocks) != len(of_y):
        problem = f"there are {len(blocks)} blocks of rows and {len(of_y)} of targets"
        raise DataError(problem, remedy="rechunk both in the same way")
    return list(engine.each("table", table_of, list(zip(blocks, of_y, strict=True))))


def count_rows(table: Any) -> int:
    """How many rows a table has."""
    return int(table.num_rows if hasattr(table, "num_rows") else len(table))


def table_of(X: Any, y: Any) -> Any:
    """A block of rows and their targets as one table, with columns x0, x1, ...

    Raises
    ------
    DataError
        If there are not as many targets as rows.

    Examples
    --------
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

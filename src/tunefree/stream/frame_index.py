"""The index of a pandas frame, which Parquet, Feather and Arrow tables hold as one of their columns.

pandas lists in the metadata of a schema which columns are its index. An index without a name is no column of the data.
One with a name is one, unless it numbers the rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pyarrow as pa

from tunefree.stream.batch import BadRows, Columns
from tunefree.stream.columns import decoded

_UNNAMED = re.compile(r"__index_level_\d+__")
_LEFT_OUT = "the index of a pandas frame, left out"
MOST_NUMBERED = 256  # rows that are looked at


def index_columns(schema: Any, first: Callable[[], Any], kept: Collection[str]) -> list[str]:
    """Columns that are nothing but the index of a pandas frame.

    Parameters
    ----------
    schema : pyarrow.Schema
    first : callable
        Returns the first rows, a RecordBatch; called only where an index has a name.
    kept : collection of str
        Columns that stay in any case.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pa.Table.from_pandas(pd.DataFrame({"age": [39, 50, 38]}).sort_values("age"))
    >>> index_columns(table.schema, lambda: table.to_batches()[0], [])
    ['__index_level_0__']
    """
    unnamed = [name for name in schema.names if _UNNAMED.fullmatch(name)]
    named = [name for name in _listed(schema) if name not in unnamed and pa.types.is_integer(schema.field(name).type)]
    rows = first() if set(named) - set(kept) else None
    named = [] if rows is None else [name for name in named if _numbers_rows(rows.column(name))]
    return [name for name in [*unnamed, *named] if name not in kept]


def without_index(chunk: Columns, index: list[str], bad: BadRows, remedy: str) -> Columns:
    """A chunk without such columns, which are noted.

    Parameters
    ----------
    chunk : Columns
    index : list of str
    bad : BadRows
    remedy : str
        What keeps a column, with a place for its name.
    """
    for name in index:
        bad.note(_LEFT_OUT, chunk.file, chunk.row, name, chunk.table.num_rows, remedy.format(name))
    return chunk._replace(table=chunk.table.drop_columns(index)) if index else chunk


def _listed(schema: Any) -> list[str]:
    """The columns that the metadata of a schema list as an index, as far as there are such."""
    try:
        listed = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
        return [name for name in listed if isinstance(name, str) and schema.names.count(name) == 1]
    except (KeyError, TypeError, ValueError, RecursionError):  # others may write what they like there
        return []


def _numbers_rows(column: Any) -> bool:
    """Whether each number is that of the row before plus 1."""
    values = decoded(column)[:MOST_NUMBERED]
    if values.null_count or len(values) < 2:
        return False
    return bool((np.diff(values.to_numpy(zero_copy_only=False).astype(np.float64)) == 1.0).all())

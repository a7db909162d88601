"""Tables in memory as chunks: pandas, polars, objects with Arrow's PyCapsule interface, dicts of arrays, NumPy arrays.

Chunks are converted one at a time, so that a table is never copied as a whole.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tunefree.core.errors import DataError
from tunefree.stream.arrays import flattened, number_array
from tunefree.stream.batch import START, BadRows, Chunk, Position
from tunefree.stream.tables import rows_of_a_chunk

_LEFT_OUT = "the index of a pandas frame, left out"
_INDEX = re.compile(r"__index_level_\d+__")  # the name that pandas gives an unnamed index in Arrow and in files


def index_columns(names: Sequence[str], kept: Collection[str | None]) -> list[str]:
    """Names of columns that are the index of a pandas frame, except for ``kept`` ones."""
    return [name for name in names if _INDEX.fullmatch(name) and name not in kept]


def without_index(chunk: Chunk, kept: Collection[str | None], bad: BadRows) -> Chunk:
    """A chunk without these columns, which are noted."""
    index = index_columns(chunk.data.schema.names, kept)
    for name in index:
        remedy = f"`numeric={name!r}` keeps it" if "categorical" in bad.options else ""
        bad.note(_LEFT_OUT, chunk.file, chunk.row, name, chunk.data.num_rows, remedy)
    return chunk._replace(data=chunk.data.drop_columns(index)) if index else chunk


def read_frame(
    frame: Any,
    start: Position = START,
    chunk_rows: int | None = None,
    name: str = "the table",
    bad: BadRows | None = None,
    kept: Collection[str | None] = (),
) -> Iterator[Chunk]:
    """Read a table in memory as chunks, by default of 32768 rows, fewer for wide tables.

    A table is a DataFrame of pandas or polars, a dict of arrays, a two-dimensional array, whose columns are named x0,
    x1, ..., or anything else with ``__arrow_c_stream__`` or ``__arrow_c_array__``. The index of a pandas frame
    is left out if it has no name, unless it is ``kept``.
    """
    check_has_columns(frame, name)
    frame, row = unmasked(frame), start.row
    is_mapping = isinstance(frame, Mapping) and not hasattr(frame, "tocsr")
    columns = frame if is_mapping else getattr(frame, "columns", None)
    if columns is not None and not len(columns):
        raise DataError("there are no columns", name, remedy="pass a table of one column or more")
    if is_mapping or isinstance(frame, np.ndarray) or is_pandas(frame):
        batches = _batches(frame, row, chunk_rows, name)
    elif hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__arrow_c_array__"):
        batches = _stream_batches(frame, row, chunk_rows, name)
    else:
        is_cursor = hasattr(frame, "fetch_record_batch")
        tables = "a DataFrame, a dict of arrays, or a two-dimensional array"
        remedy = f"pass {'its fetch_record_batch()' if is_cursor else tables}"
        raise DataError(f"{type(frame).__name__} is not a table", name, remedy=remedy)
    for batch in batches:
        row += batch.num_rows
        chunk = Chunk(batch, name, row - batch.num_rows + 1, Position(0, row, row))
        chunk = without_index(chunk, kept, bad or BadRows())
        yield chunk._replace(data=flattened(chunk.data))
    if row == 0:
        raise DataError("there are no rows", name, remedy="pass a table with rows")


def check_has_columns(frame: Any, name: str) -> None:
    """Raise a DataError if an object is not two-dimensional."""
    kind = type(frame).__name__
    if kind == "LazyFrame":
        raise DataError("a LazyFrame has no rows yet", name, remedy="pass X.collect()")
    if frame is None or isinstance(frame, str | os.PathLike):
        remedy = "pass a table or an array; tunefree.train(path, target='y') reads files"
        raise DataError(f"{frame!r} is no table", name, remedy=remedy)
    is_column = isinstance(frame, (pa.Array, pa.ChunkedArray)) and not pa.types.is_struct(frame.type)
    if is_column or kind == "Series" or (getattr(frame, "ndim", 2) == 1 and not isinstance(frame, np.ndarray)):
        remedy = "pass frame[['name']] for one column of a frame, or frame.iloc[[0]] for one row"
        raise DataError(f"a {kind} has no rows and columns", name, remedy=remedy)
    are_objects = isinstance(frame, list) and len(frame) > 0 and isinstance(frame[0], dict)
    if are_objects or getattr(getattr(frame, "dtype", None), "names", None):
        raise DataError(f"a {kind} of records is no table", name, remedy="pass pandas.DataFrame(X)")


def unmasked(array: Any) -> Any:
    """A masked array as an array with missing values; other objects unchanged."""
    if not isinstance(array, np.ma.MaskedArray):
        return array
    if not np.ma.is_masked(array):
        return array.data
    kind = array.dtype.kind
    values = array.data.astype(float if kind in "biuf" else array.dtype if kind in "mM" else object)
    values[np.ma.getmaskarray(array)] = None  # NaN, or not a time
    return values


def cut(batches: Iterable[Any], start: int, size: int) -> Iterator[Any]:
    """The record batches from row ``start`` on, cut to at most ``size`` rows."""
    for batch in batches:
        for first in range(min(start, batch.num_rows), batch.num_rows, size):
            yield batch.slice(first, size)
        start -= min(start, batch.num_rows)


def _stream_batches(frame: Any, start: int, chunk_rows: int | None, name: str) -> Iterator[Any]:
    """The record batches of an Arrow stream. Its source, such as a query, may raise any exception at any time."""
    rows = 0  # read so far
    try:
        is_stream = hasattr(frame, "__arrow_c_stream__")
        batches = frame if is_stream else pa.Table.from_batches([pa.record_batch(frame)])
        reader = pa.RecordBatchReader.from_stream(batches)
        for batch in reader:
            batch.validate(full=True)
            yield from cut([batch], max(start - rows, 0), chunk_rows or rows_of_a_chunk(len(reader.schema)))
            rows += batch.num_rows
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0].partition(". Detail: ")[0]
        problem = f"its source failed after row {rows:,} ({reason})"
        raise DataError(problem, name, remedy="correct the query, or the data that it reads") from error


def _batches(frame: Any, start: int, chunk_rows: int | None, name: str) -> Iterator[Any]:
    """The record batches of a table without Arrow arrays, which is converted in parts."""
    make: Callable[..., Any]  # part of a column -> Arrow array
    if is_pandas(frame):
        names, make = [str(column) for column in frame.columns], _series_array
        columns = [column for _, column in frame.items()]
    elif isinstance(frame, np.ndarray):
        if frame.ndim != 2:
            remedy = "pass rows and columns, such as frame[['name']] for one column of a frame"
            raise DataError(f"an array of {frame.ndim} dimensions is not a table", name, remedy=remedy)
        names, columns = [f"x{column}" for column in range(frame.shape[1])], [*frame.T]
        make = number_array if frame.dtype == np.float64 else _as_array
    else:
        if scalars := [str(key) for key, column in frame.items() if not np.iterable(column) or isinstance(column, str)]:
            raise DataError("a single value is no column", name, column=scalars[0], remedy="pass a list of values")
        names, make = [str(key) for key in frame], _as_array
        columns = [column if hasattr(column, "__getitem__") else list(column) for column in frame.values()]
    lengths = [len(column) for column in columns]
    n_rows = max(lengths, default=0)
    if lengths != [n_rows] * len(names):
        lengths_by_name = ", ".join(f"{label!r} {length}" for label, length in zip(names, lengths, strict=True))
        raise DataError(f"columns differ in length: {lengths_by_name}", name, remedy="give all the same length")
    size = chunk_rows or rows_of_a_chunk(len(names))
    for first in range(start, n_rows, size):
        part, is_whole = slice(first, first + size), first == 0 and size >= n_rows
        parts = columns if is_whole else [getattr(column, "iloc", column)[part] for column in columns]
        arrays = [_array(column, label, name, first, make) for column, label in zip(parts, names, strict=True)]
        yield pa.record_batch(arrays, names=names)


def _series_array(column: Any) -> Any:
    """A part of a pandas column as an Arrow array. Its extension array is converted directly, which is faster."""
    if isinstance(column.dtype, np.dtype):
        return pa.array(column.to_numpy(), from_pandas=True)
    if type(column.dtype).__name__ == "SparseDtype":
        return pa.array(column.array.to_dense(), from_pandas=True)
    if type(getattr(getattr(column.dtype, "categories", None), "dtype", None)).__name__ == "IntervalDtype":
        column = column.cat.rename_categories(str)  # the result of pandas.cut
    return pa.array(column.array if hasattr(column.array, "__arrow_array__") else column, from_pandas=True)


def _as_array(column: Any) -> Any:
    """A part of a column as one Arrow array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else pa.array(column, from_pandas=True)


def _array(column: Any, label: str, name: str, first: int, make: Callable[[Any], Any]) -> Any:
    try:
        array = make(column)
        array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
        array.validate(full=True)
        return array
    except OverflowError:
        remedy = "make the column floats, or strings if these are names"
        raise DataError("a whole number of more than 64 bits", name, first + 1, label, remedy) from None
    except (pa.ArrowException, TypeError, ValueError) as error:
        if getattr(getattr(column, "dtype", None), "kind", "O") != "O":  # such as complex numbers
            problem, remedy = f"columns of type {column.dtype} cannot be used", "leave the column out, or convert it"
            raise DataError(problem, name, column=label, remedy=remedy) from None
        remedy = "give the column one type, for instance strings"
        reason = str(error).splitlines()[0]
        raise DataError(f"values of different types ({reason})", name, first + 1, label, remedy) from None


def is_pandas(frame: Any) -> bool:
    """Whether an object is a pandas DataFrame."""
    pandas = sys.modules.get("pandas")  # imported, if a DataFrame exists
    return pandas is not None and isinstance(frame, pandas.DataFrame)

"""Columns whose values are names of folders, as Hive and Spark write them: ``year=2024/job=cook/part-0.parquet``.

A name that has one value in all files tells nothing of their rows, and becomes a column only where it is asked for: by
a model that knows it, or by an option. So files may lie wherever they like.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tunefree.core.errors import DataError
from tunefree.core.numbers import MOST
from tunefree.stream.batch import BadRows, Columns
from tunefree.stream.columns import decoded
from tunefree.stream.contract import Options
from tunefree.stream.files import Partition, display_name


def with_partitions(chunk: Columns, file: str, options: Options, bad: BadRows) -> Columns:
    """A chunk with columns of the partitions that its file lies in, as far as these are of use.

    Parameters
    ----------
    chunk : Columns
    file : str
        A :class:`tunefree.stream.files.TextFile` knows its partitions.
    options : Options
    bad : BadRows
        Counts rows that get a column.

    Raises
    ------
    DataError
        If the file has a column of the name with other values, or the value is not of the type of its column.
    """
    for partition in getattr(file, "partitions", ()):
        is_ignored = options.grows and partition.name in options.as_written
        if is_ignored or not (partition.varies or partition.name in options.named):
            continue
        if partition.name in chunk.table.schema.names:
            _check_equal(chunk, partition)
            continue
        values = pa.repeat(_value(partition, options, file), chunk.table.num_rows)
        chunk = chunk._replace(table=chunk.table.append_column(partition.name, values))
        if options.grows and partition.name != options.target:
            remedy = f"`ignore={partition.name!r}` leaves it out"
            bad.note("from the names of folders", chunk.file, chunk.row, partition.name, len(values), remedy)
    return chunk


def _value(partition: Partition, options: Options, file: str) -> Any:
    """The value as a scalar of the type of its column."""
    as_written = {*options.as_written, *(options.column_types.as_written(()) if options.column_types else ())}
    usual = pa.float64() if partition.is_number and partition.name not in as_written else pa.string()
    to = options.types.get(partition.name, usual)
    try:
        return pa.array([partition.text], pa.string()).cast(to)[0]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        problem = f"the path says {partition.text!r}, which is not of the type {to}"
        remedy = "name the folder as those that were learned"
        raise DataError(problem, display_name(file), column=partition.name, remedy=remedy) from None


def _check_equal(chunk: Columns, partition: Partition) -> None:
    """Raise a DataError if a column of a chunk differs from what the path says."""
    values = decoded(chunk.table.column(partition.name))
    different = values if pa.types.is_nested(values.type) else values.unique()
    unequal = [value for value in different.to_pylist() if not _is_equal(value, partition.text)]
    if unequal:
        row = chunk.row + values.to_pylist().index(unequal[0])
        problem = f"{unequal[0]!r} here, but the path says {partition.text!r}"
        raise DataError(problem, chunk.file, row, partition.name, "correct the one or the other, or move the file")


def _is_equal(value: Any, text: str | None) -> bool:
    if value is None or text is None or str(value) == text:
        return str(value) == str(text)
    try:
        return abs(float(value)) <= MOST and float(value) == float(text)
    except (TypeError, ValueError, OverflowError):
        return False

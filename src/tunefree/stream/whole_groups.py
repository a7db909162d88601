"""Rows of one group stay together: chunks are cut between runs of a group only.

The rows of the last run of a chunk may go on in the next one, so they wait for it. A checkpoint holds the rows that
wait. Runs end where a file ends, and after ``MOST`` rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from tunefree.core.errors import DataError, ModelError
from tunefree.stream.batch import Columns, Position
from tunefree.stream.chunks import row_numbers, with_row_numbers
from tunefree.stream.columns import Faults, valid_utf8
from tunefree.stream.features import check_name, names_of

MOST = 100_000  # rows of a run that are kept back

State = tuple[dict[str, np.ndarray], dict[str, Any]]


def whole_groups(
    chunks: Iterator[Columns], group: str, held: Columns | None = None, begins: bool = False
) -> Iterator[Columns]:
    """The same rows, in chunks that end where a run of rows of one group ends.

    Parameters
    ----------
    chunks : iterator of Columns
    group : str
        Column that names the group of a row.
    held : Columns, optional
        Rows that wait, of the chunk before these.
    begins : bool, default False
        Whether there were no rows before: these then have to be of two groups at least.

    Yields
    ------
    Columns
        Its ``held`` are the rows that wait after it.

    Raises
    ------
    DataError
        If there is no such column, or there is one single group.

    Examples
    --------
    >>> table = pa.record_batch({"patient": ["a", "a", "b"], "age": [1, 2, 3]})
    >>> chunks = [Columns(table, "visits", row, Position(0, 0, row + 2)) for row in (1, 4)]
    >>> [chunk.table["age"].to_pylist() for chunk in whole_groups(iter(chunks), "patient")]
    [[1, 2], [3, 1, 2], [3]]
    """
    first: Any = None
    for chunk in chunks:
        names = _names(chunk, group)
        if begins and len(names):
            first = names[0] if first is None else first
            begins = bool((names == first).all())
        if held is not None and held.file != chunk.file:
            yield held
            held = None
        if held is not None:
            chunk = joined(held, chunk)
            names = _names(chunk, group)
        if begins and len(names) >= MOST:
            raise _single(group, first, chunk.file, f"the first {MOST:,} rows")
        end = _end_of_runs(names)
        held = _rows(chunk, end, len(names)) if end < len(names) else None
        if end:
            yield _rows(chunk, 0, end)._replace(held=held)
    if begins and first is not None:
        raise _single(group, first, chunk.file, "all rows")
    if held is not None:
        yield held


def _names(chunk: Columns, group: str) -> np.ndarray:
    """The names of the groups (n,) of the rows of a chunk; None where one is missing."""
    check_name("group", group, chunk.table.schema.names, chunk.file)
    names = names_of(valid_utf8(chunk.table.column(group), group, Faults()), group, chunk.file)
    return np.asarray(names.to_numpy(zero_copy_only=False), object)


def _end_of_runs(names: np.ndarray) -> int:
    """Where the last run begins, or after all rows where it is too long."""
    borders = np.flatnonzero(names[1:] != names[:-1]) + 1
    last = int(borders[-1]) if len(borders) else 0
    return last if len(names) - last < MOST else len(names)


def _single(group: str, name: Any, file: str, which: str) -> DataError:
    remedy = "name a column of several groups, or leave `group` out"
    return DataError(f"{which} are of one group, {name!r}", file, column=group, remedy=remedy)


def _rows(chunk: Columns, start: int, stop: int) -> Columns:
    numbers = row_numbers(chunk)[start:stop]
    table = with_row_numbers(chunk.table.slice(start, stop - start), numbers)
    return chunk._replace(table=table, row=int(numbers[0]))


def joined(held: Columns, chunk: Columns) -> Columns:
    """The rows that wait, and those of the next chunk of their file."""
    numbers = np.concatenate([row_numbers(held), row_numbers(chunk)])
    try:
        both = [pa.Table.from_batches([part.table.replace_schema_metadata(None)]) for part in (held, chunk)]
        table = pa.concat_tables(both, promote_options="permissive").combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        problem = "a column has another type than in the rows before"
        raise DataError(problem, chunk.file, chunk.row, remedy="give each column one type in the file") from None
    return chunk._replace(table=with_row_numbers(table.to_batches()[0], numbers), file=held.file, row=held.row)


def save_state(held: Columns) -> State:
    """Rows that wait as arrays and a header, for a checkpoint."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, held.table.schema) as writer:
        writer.write_batch(held.table)
    rows = np.frombuffer(sink.getvalue(), np.uint8)
    return {"rows": rows}, {"file": held.file, "row": held.row, "position": list(held.position)}


def restored(arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Columns:
    """The rows that :func:`save_state` wrote down."""
    with pa.ipc.open_stream(pa.py_buffer(arrays["rows"].tobytes())) as reader:
        table = reader.read_next_batch()
    table.validate(full=True)
    chunk = Columns(table, header["file"], header["row"], Position(*header["position"]))
    if len(row_numbers(chunk)) != table.num_rows:
        raise ModelError("rows that wait for others of their group have not a number each")
    return chunk

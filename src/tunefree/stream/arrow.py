"""Tables from files: CSV, JSON lines, Parquet, Feather and Arrow IPC, as chunks of constant size.

A source is a list of files with the same columns. Reading from the position of a chunk gives exactly what follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import parquet

from tunefree.core.errors import DataError
from tunefree.stream.batch import BadRows, Columns, Position
from tunefree.stream.columns import family
from tunefree.stream.delimited import Options, csv_chunks, csv_header, csv_schema, shown
from tunefree.stream.files import format_of
from tunefree.stream.jsonlines import json_chunks, json_schema

CHUNK_ROWS = 32768
_CHUNK_CELLS = 1 << 21  # a wide table gets fewer rows a chunk: 16 MiB of float64
_TEXTS = frozenset({"csv", "json"})


class Reader(NamedTuple):
    """How one format is read."""

    schema: Callable[[str, Options], Any]  # names and types of the columns, from the first file
    names: Callable[[str, Any, Options], dict[str, Any]]  # columns of any file, with the types that it fixes
    chunks: Callable[[str, int, Position, Any, Options, BadRows], Iterator[Columns]]


def read_tables(
    files: Sequence[str],
    format: str | None = None,
    start: Position = Position(),  # noqa: B008 - an immutable tuple
    bad: BadRows | None = None,
    types: dict[str, Any] | None = None,
    delimiter: str | None = None,
    chunk_rows: int | None = None,
    block_size: int | None = None,
) -> Iterator[Columns]:
    """Read tables as chunks.

    Parameters
    ----------
    files : sequence of str
        As :func:`expand` gives them; "-" is standard input (CSV and JSON lines).
    format : {"csv", "json", "parquet", "arrow"}, optional
        Known by the first file's extension if None.
    start : Position, default=Position()
        Where to begin: a chunk's ``position`` gives the rows that follow it, and no others.
    bad : BadRows, optional
        What happens to rows that cannot be read; an error if None.
    types : dict of str to pyarrow.DataType, optional
        Types of columns that are known before (``TableEncoder.types()``); those of the others are found in the first
        mebibyte of the first file.
    delimiter : str, optional
        Between the fields of a CSV line; guessed from the header if None.
    chunk_rows : int, optional
        Rows of a chunk of columnar files; by default 32768, fewer for wide tables.
    block_size : int, optional
        Bytes of a chunk of text.

    Yields
    ------
    Columns

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.csv"
    ...     _ = path.write_text("age,job\\n39,clerk\\n?,cook\\n")
    ...     for chunk in read_tables([str(path)]):
    ...         print(chunk.row, chunk.table.to_pydict())
    1 {'age': [39.0, None], 'job': ['clerk', 'cook']}
    """
    reader = _READERS[_one_format(files, format)]
    options = Options(delimiter, types or {}, chunk_rows)
    options = options._replace(block_size=block_size) if block_size else options
    schema = reader.schema(files[0], options)
    rows = 0
    for number in range(start.file, len(files)):
        file = files[number]
        if number:
            _check_columns(schema, reader.names(file, schema, options), file, files[0])
        begin = start if number == start.file else Position(number)
        for chunk in reader.chunks(file, number, begin, schema, options, bad or BadRows()):
            rows += chunk.table.num_rows
            yield chunk
    if not rows and start == Position() and not (bad and bad.count):
        raise DataError("there are no rows", shown(files[0]), remedy="check that it is the file you mean")


def _one_format(files: Sequence[str], format: str | None) -> str:
    if not files:
        raise DataError("no file is named", remedy="name one, or - for standard input")
    formats = {file: format or ("csv" if file == "-" else format_of(file)) for file in files}
    for file, found in formats.items():
        if found is None:
            raise DataError("the name does not tell the format", file, remedy="pass --format")
        if found not in _READERS:
            raise DataError(f"there is no format {found!r}", file, remedy=f"choose of {', '.join(_READERS)}")
        if found != formats[files[0]]:
            problem = f"{found} here, but {formats[files[0]]} in {files[0]}"
            raise DataError(problem, file, remedy="give files of one format")
        if file == "-" and found not in _TEXTS:
            raise DataError(f"{found} cannot be read from standard input", remedy="save it to a file")
    return str(formats[files[0]])


def _check_columns(schema: Any, found: dict[str, Any], file: str, first: str) -> None:
    """All files must have the columns of the first one."""
    remedy = "give files with the same columns"
    for name in schema.names:
        if name not in found:
            raise DataError(f"the column is missing here, but {first} has it", shown(file), column=name, remedy=remedy)
        expected, here = _broad(schema.field(name).type), _broad(found[name])
        if "null" not in {expected, here} and expected != here:
            problem = f"{found[name]} here, but {schema.field(name).type} in {first}"
            raise DataError(problem, shown(file), column=name, remedy="give the column one type in all files")
    extra = next((name for name in found if name not in schema.names), None)
    if extra is not None:
        raise DataError(f"the column is not in {first}", shown(file), column=extra, remedy=remedy)


def _broad(arrow_type: Any) -> str:
    return {"category": "string"}.get(family(arrow_type), family(arrow_type))


def _csv_names(file: str, schema: Any, options: Options) -> dict[str, Any]:
    return dict.fromkeys(csv_header(file, options).names, pa.null())  # values are checked one by one


def _json_names(file: str, schema: Any, options: Options) -> dict[str, Any]:
    """Objects may lack names and have others, but not all of them."""
    found = {field.name: field.type for field in json_schema(file, options)}
    if not found.keys() & set(schema.names):
        return found
    return {name: found.get(name, pa.null()) for name in schema.names}


def _columnar_names(file: str, schema: Any, options: Options, open_source: Callable[[str], Any]) -> dict[str, Any]:
    with open_source(file) as source:
        return {field.name: field.type for field in source.schema}


def _columnar_schema(file: str, options: Options, open_source: Callable[[str], Any]) -> Any:
    with open_source(file) as source:
        return source.schema


class Source(NamedTuple):
    """An open columnar file: its schema, and its rows from a place on."""

    schema: Any
    batches: Callable[[int, int], Iterator[Any]]


@contextmanager
def open_parquet(file: str) -> Iterator[Source]:
    """Open a Parquet file; columns of few different strings are read as dictionaries."""
    with _arrow_errors(file, "Parquet"):
        plain = parquet.ParquetFile(file)
        names = _repetitive(plain.metadata, plain.schema_arrow)
        plain.close()
        source = parquet.ParquetFile(file, read_dictionary=names, buffer_size=1 << 16, pre_buffer=False)
    groups = [source.metadata.row_group(group).num_rows for group in range(source.metadata.num_row_groups)]

    def batches(offset: int, size: int) -> Iterator[Any]:
        left = list(range(len(groups)))
        while left and offset >= groups[left[0]]:
            offset -= groups[left.pop(0)]
        for batch in source.iter_batches(size, row_groups=left, use_threads=False):
            yield batch.slice(min(offset, batch.num_rows))
            offset -= min(offset, batch.num_rows)

    try:
        yield Source(source.schema_arrow, batches)
    finally:
        source.close()


def _repetitive(metadata: Any, schema: Any) -> list[str]:
    """Top-level string columns whose first row group takes few bytes a value: a dictionary pays."""
    if not metadata.num_row_groups or metadata.row_group(0).num_rows == 0:
        return []
    group = metadata.row_group(0)
    small = {
        chunk.path_in_schema
        for chunk in (group.column(place) for place in range(group.num_columns))
        if chunk.total_uncompressed_size < 8 * max(chunk.num_values, 1) + 4096
    }
    return [field.name for field in schema if family(field.type) == "string" and field.name in small]


@contextmanager
def open_ipc(file: str) -> Iterator[Source]:
    """Open a Feather or Arrow IPC file, or a file that holds an IPC stream."""
    with _arrow_errors(file, "Arrow"), pa.OSFile(file) as handle:
        try:
            reader = pa.ipc.open_file(handle)
            stored = (reader.get_batch(place) for place in range(reader.num_record_batches))
        except pa.ArrowInvalid:
            handle.seek(0)
            reader = pa.ipc.open_stream(handle)
            stored = iter(reader)

        def batches(offset: int, size: int) -> Iterator[Any]:
            for batch in stored:
                for start in range(min(offset, batch.num_rows), batch.num_rows, size):
                    yield batch.slice(start, size)
                offset -= min(offset, batch.num_rows)

        yield Source(reader.schema, batches)


def _columnar_chunks(
    file: str,
    number: int,
    begin: Position,
    schema: Any,
    options: Options,
    bad: BadRows,
    open_source: Callable[[str], Any],
    name: str,
) -> Iterator[Columns]:
    with open_source(file) as source:
        batches = source.batches(begin.offset, options.chunk_rows or rows_of_a_chunk(len(source.schema)))
        row = begin.row
        while True:
            with _arrow_errors(file, name):
                batch = next(batches, None)
            if batch is None:
                return
            row += batch.num_rows
            if batch.num_rows:
                yield Columns(batch, file, row - batch.num_rows + 1, Position(number, row, row))


def rows_of_a_chunk(n_columns: int) -> int:
    """Rows that fill a chunk of constant memory."""
    return max(256, min(CHUNK_ROWS, _CHUNK_CELLS // max(n_columns, 1)))


@contextmanager
def _arrow_errors(file: str, name: str) -> Iterator[None]:
    """Turn Arrow's errors into ours."""
    try:
        yield
    except FileNotFoundError:
        raise DataError("there is no such file", file, remedy="check the path") from None
    except DataError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        remedy = "get or write the file again, or name its --format"
        raise DataError(f"this is not a whole {name} file ({reason})", file, remedy=remedy) from None


_READERS = {
    "csv": Reader(csv_schema, _csv_names, csv_chunks),
    "json": Reader(json_schema, _json_names, json_chunks),
    **{
        format: Reader(
            partial(_columnar_schema, open_source=open_source),
            partial(_columnar_names, open_source=open_source),
            partial(_columnar_chunks, open_source=open_source, name=name),
        )
        for format, open_source, name in [("parquet", open_parquet, "Parquet"), ("arrow", open_ipc, "Arrow")]
    },
}

"""Files of tables as chunks of constant size, whatever their format.

A source is a list of files. Each has the columns of the first one, and may have further ones. Structs are taken apart.
Reading from the position of a chunk gives exactly what follows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from tunefree.core.errors import DataError
from tunefree.stream import formats
from tunefree.stream.batch import BadRows, Columns, Position
from tunefree.stream.columns import family
from tunefree.stream.contract import Options, TableReader
from tunefree.stream.files import display_name
from tunefree.stream.lists import flattened
from tunefree.stream.partitions import with_partitions

CHUNK_ROWS = 32768
_CHUNK_CELLS = 1 << 21  # a wide table gets fewer rows a chunk: 16 MiB of float64


def read_tables(
    files: Sequence[str],
    format: str | None = None,
    start: Position = Position(),  # noqa: B008 - an immutable tuple
    bad: BadRows | None = None,
    **options: Any,
) -> Iterator[Columns]:
    """Read tables as chunks.

    Parameters
    ----------
    files : sequence of str
        As :func:`tunefree.stream.files.expand` gives them; "-" is standard input (text only).
    format : str, optional
        The name of a format of tables. If None, it is recognised by the first file's extension; standard input is CSV.
    start : Position, default=Position()
        Where to begin: a chunk's ``position`` gives the rows that follow it, and no others.
    bad : BadRows, optional
        What happens to rows that cannot be read; an error if None.
    **options
        Fields of :class:`tunefree.stream.contract.Options`. Columns of CSV are strings. Types of columns of
        JSON that are not known before are inferred from the first lines. Chunks of columnar files have 32768
        rows by default, fewer for wide tables.

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
    1 {'age': ['39', '?'], 'job': ['clerk', 'cook']}
    """
    reader = _reader_of(files, format)
    how = Options(**options)
    schema = of_first = reader.schema(files[0], how)
    rows, bad = 0, bad or BadRows()
    for number in range(start.file, len(files)):
        file = files[number]
        if number:
            known = how._replace(types=dict(zip(schema.names, schema.types, strict=True)) | how.types)
            of_file = reader.schema(file, known)
            columns = dict(zip(of_file.names, of_file.types, strict=True))
            _check_columns(of_first, columns, reader.optional, file, files[0])
            schema = _with_further(schema, columns)
        begin = start._replace(file=0) if number == start.file else Position()
        for chunk in reader.chunks(file, begin, schema, how, bad):
            rows += chunk.table.num_rows
            schema = _with_further(schema, dict(zip(chunk.table.schema.names, chunk.table.schema.types, strict=True)))
            chunk = with_partitions(chunk._replace(table=flattened(chunk.table)), file, how, bad)
            yield chunk._replace(position=chunk.position._replace(file=number))
    if not rows and start == Position() and not bad.count:
        raise DataError("there are no rows", display_name(files[0]), remedy="check that it is the file you mean")


def sample_of(files: Sequence[str], format: str | None, options: Options) -> Columns | None:
    """Rows that say more about the columns of files than their first chunk does; None where that says as much."""
    reader = _reader_of(files, format)
    sample = reader.sample(files[0], options)
    if sample is None:
        return None
    return with_partitions(
        Columns(flattened(sample), display_name(files[0]), 1, Position()), files[0], options, BadRows()
    )


def rows_of_a_chunk(n_columns: int) -> int:
    """Rows that fill a chunk of constant memory."""
    return max(256, min(CHUNK_ROWS, _CHUNK_CELLS // max(n_columns, 1)))


def _reader_of(files: Sequence[str], name: str | None) -> TableReader:
    """The reader of files of a format; if it is not named, the extension of the first one tells."""
    format = formats.named(name) if name else formats.by_extension("x.csv" if files[0] == "-" else files[0])
    if format is None:
        raise DataError("the name does not tell the format", files[0], remedy="pass `format`")
    if format.kind != formats.TABLE:
        raise DataError(f"{format.name} is not a format of tables", files[0], remedy="pass another `format`")
    if "-" in files and not format.text:
        raise DataError(f"{format.name} cannot be read from standard input", remedy="save it to a file")
    reader: TableReader = formats.load(format.reader)
    return reader


def _check_columns(schema: Any, columns: dict[str, Any], optional: bool, file: str, first: str) -> None:
    """All files must have the columns of the first one, or some of them, of the same types."""
    optional = optional and not columns.keys().isdisjoint(schema.names)
    file, remedy = display_name(file), "give files with its columns; they may have more"
    for name in schema.names:
        if name not in columns and optional:
            continue
        if name not in columns:
            raise DataError(f"the column is missing here, but {first} has it", file, column=name, remedy=remedy)
        expected, here = _broad(schema.field(name).type), _broad(columns[name])
        if "null" not in {expected, here} and expected != here:
            problem = f"{columns[name]} here, but {schema.field(name).type} in {first}"
            raise DataError(problem, file, column=name, remedy="give the column one type in all files")


def _with_further(schema: Any, columns: dict[str, Any]) -> Any:
    """A schema with further columns; those whose type is null are not known yet."""
    further = [
        (name, type) for name, type in columns.items() if name not in schema.names and not pa.types.is_null(type)
    ]
    return pa.schema([*schema, *further]) if further else schema


def _broad(arrow_type: Any) -> str:
    """The family of a type, in which categories count as strings."""
    return {"category": "string"}.get(family(arrow_type), family(arrow_type))

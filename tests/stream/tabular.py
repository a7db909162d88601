"""Helpers of the tests of tables."""

import csv
import io
import json
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
from pyarrow import feather, parquet

from tunefree.core.rows import entries_of
from tunefree.stream import formats, tables
from tunefree.stream.batch import BadRows, Chunk, Position, row_numbers
from tunefree.stream.encoder import TableEncoder


def chunk_of(columns, first=1, file="test"):
    batch = columns if isinstance(columns, pa.RecordBatch) else pa.record_batch(columns)
    return Chunk(batch, file, first, Position(0, first + batch.num_rows - 1, first + batch.num_rows - 1))


def encoded(columns, **options):
    """An encoder made of a chunk, and the chunk's batch."""
    chunk = chunk_of(columns)
    encoder = TableEncoder.infer(chunk, **options)
    return encoder, encoder.encode(chunk, True, BadRows())


def bytes_of(encoder):
    """The arrays and the header of an encoder's state."""
    arrays, header = encoder.state()
    return {name: array.tobytes() for name, array in arrays.items()}, json.dumps(header)


def named_rows(encoder, batch, with_zeros=False):
    """Each row as a dictionary from names to values, the constant left out; a feature twice is an error."""
    names, by_name = encoder.names(), []
    for entries in raw_rows(batch.rows, with_zeros):
        assert len({j for j, _ in entries}) == len(entries)
        by_name.append({names[j]: value for j, value in entries if j > 0})
    return by_name


def raw_rows(rows, with_zeros=False):
    """Each row's entries with a value, or all, in their order."""
    starts, ends, *entries = (array.tolist() for array in entries_of(rows))
    pairs = list(zip(*entries, strict=True))
    spans = [pairs[start:end] for start, end in zip(starts, ends, strict=True)]
    return spans if with_zeros else [[(j, x) for j, x in span if x != 0] for span in spans]


def text(path, content):
    """Write a file; its name."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def standard_input(monkeypatch, content):
    """Let standard input have a content."""
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content)))


def write(path, columns, **options):
    """Write columns in the format that the name tells; a string of its name."""
    columns = columns.to_pydict() if isinstance(columns, pa.Table) else columns
    rows, suffix = zip(*columns.values(), strict=True), Path(path).suffix
    if suffix == ".csv":
        with open(path, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([[*columns], *rows])
    elif suffix == ".jsonl":
        Path(path).write_text("".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows))
    elif suffix == ".parquet":
        parquet.write_table(pa.table(columns), path, **options)
    elif suffix == ".feather":
        feather.write_feather(pa.table(columns), str(path), **options)
    else:
        with pa.ipc.new_stream(path, pa.table(columns).schema) as writer:
            writer.write_table(pa.table(columns), **options)
    return str(path)


def read_tables(files, **options):
    """Chunks of files of the format that the name of the first one tells."""
    return tables.read_tables(files, formats.by_extension(files[0]).name, **options)


def records(chunks):
    return [record for chunk in chunks for record in chunk.data.to_pylist()]


def numbers(chunks):
    return [int(number) for chunk in chunks for number in row_numbers(chunk)]


def skipped(files, **options):
    """The chunks without the bad rows, and what was reported of these."""
    bad = BadRows(skip=True)
    return list(read_tables(files, bad=bad, **options)), bad

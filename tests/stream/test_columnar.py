"""Damaged columnar files are refused with one line; they neither end the process nor give wrong rows."""

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from tests.stream.tabular import read_tables
from tunefree.core.errors import DataError
from tunefree.stream.batch import BadRows
from tunefree.stream.encoder import TableEncoder
from tunefree.stream.source import open_source


def as_bytes(numbers, dtype):
    return np.array(numbers, dtype).tobytes()


STRINGS = pa.array(["a", "bc", "def"])
CODED = pa.DictionaryArray.from_arrays(pa.array([2, 0, 1, 2, 1], pa.int32()), STRINGS)
LYING = {  # an array, what the file holds of it, and what instead
    "offset beyond the text": (STRINGS, "<i4", [0, 1, 3, 6], [0, 1, 3, 4573]),
    "offset in between beyond the text": (STRINGS, "<i4", [0, 1, 3, 6], [0, 1, 4573, 6]),
    "negative offset": (STRINGS, "<i4", [0, 1, 3, 6], [0, -7, 3, 6]),
    "offsets that fall": (STRINGS.cast(pa.large_string()), "<i8", [0, 1, 3, 6], [0, 3, 1, 6]),
    "code beyond the dictionary": (CODED, "<i4", [2, 0, 1, 2, 1], [2, 0, 1, 99, 1]),
    "negative code": (CODED, "<i4", [2, 0, 1, 2, 1], [2, 0, -3, 2, 1]),
    "damaged dictionary": (CODED, "<i4", [0, 1, 3, 6], [0, 1, 9**9, 6]),
    "rows without numbers": (pa.array([0.5, 0.25, 4.0]), "<i8", [3, 0], [900, 0]),
    "wrong number of nulls": (pa.array([0.5, None, 4.0]), "<i8", [3, 1], [3, 2]),
}


@pytest.mark.parametrize("lie", LYING)
def test_arrays_that_reach_beyond_their_buffers_are_refused(tmp_path, lie):
    array, dtype, true, false = LYING[lie]
    batch, path = pa.RecordBatch.from_arrays([array], ["s"]), tmp_path / "t.arrows"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, batch.schema) as writer:
        writer.write_batch(batch)
    whole = path.read_bytes()
    assert as_bytes(true, dtype) in whole and sum(c.data.num_rows for c in read_tables([str(path)])) == len(array)
    path.write_bytes(whole.replace(as_bytes(true, dtype), as_bytes(false, dtype)))
    with pytest.raises(DataError, match=r"t.arrows: this is not a whole Arrow file \("):
        list(read_tables([str(path)]))


def table():
    n = 8
    return pa.table(
        {
            "x": np.arange(n) / 7.0,
            "s": pa.array([f"v{i % 5}" for i in range(n)]).dictionary_encode(),
            "t": [None if i % 7 == 0 else f"text {i}" for i in range(n)],
            "y": [i % 3 == 0 for i in range(n)],
        }
    )


def read(path):
    """Read and encode a file as training does; its rows, or the error."""
    try:
        source, bad = open_source(path), BadRows(skip=True)
        chunks = source.chunks(bad=bad)
        first = next(chunks)
        encoder = TableEncoder.infer(first, "y")
        return sum(len(encoder.encode(chunk, True, bad).numbers) for chunk in (first, *chunks)) + bad.tally.count
    except DataError as error:
        return str(error)


@pytest.mark.parametrize("name", ["t.feather", "t.parquet"])
def test_bits_of_the_metadata_may_flip(tmp_path, name):
    """The sizes of columns in Parquet's metadata ended the process, and so did lengths and offsets in Arrow's."""
    path = tmp_path / name
    if name == "t.feather":
        pa.feather.write_feather(table(), path, compression="uncompressed")
    else:
        pa.parquet.write_table(table(), path, store_schema=False)
    whole = path.read_bytes()
    first = whole.index(b"schema") if name == "t.parquet" else 8
    places = range(first, first + 50) if name == "t.parquet" else range(first, len(whole), 16)
    found = [read(str(path))]
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 7
        path.write_bytes(damaged)
        found.append(read(str(path)))
    assert found[0] == 8 and sum(isinstance(one, str) for one in found) > len(found) / 10


def test_text_that_is_not_utf8_costs_its_row_only(tmp_path):
    values = pa.array([b"a", b"\xff", b"c"]).view(pa.string())
    batch = pa.record_batch({"s": values, "y": [1.5, 2.5, 3.5]})
    path = str(tmp_path / "t.arrow")
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)
    chunk = next(read_tables([path]))
    bad = BadRows(skip=True)
    batch = TableEncoder.infer(chunk, "y").encode(chunk, True, bad)
    assert batch.target.to_pylist() == [1.5, 3.5] and "the text is not UTF-8" in bad.tally.first[0]

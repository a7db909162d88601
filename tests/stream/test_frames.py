"""Tables in memory as chunks."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from tunefree.core.errors import DataError
from tunefree.stream.batch import BadRows, Position
from tunefree.stream.encoder import TableEncoder
from tunefree.stream.frames import read_frame

COLUMNS = {"n": [1.0, None, 3.0, 4.0, 5.0], "s": ["a", "b", None, "a", "c"], "i": [1, 2, 3, 4, 5]}


class OnlyStream:
    """Nothing but the interface."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


class OnlyArray(OnlyStream):
    def __arrow_c_array__(self, requested_schema=None):
        return self.table.__arrow_c_array__(requested_schema)

    __arrow_c_stream__ = property()  # not there


FRAMES = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas objects": lambda: pd.DataFrame(COLUMNS).astype({"s": object}),
    "pandas categories": lambda: pd.DataFrame(COLUMNS).astype({"s": "category"}),
    "pandas with an index": lambda: pd.DataFrame(COLUMNS, index=list("vwxyz")),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars categories": lambda: pl.DataFrame(COLUMNS).with_columns(pl.col("s").cast(pl.Categorical)),
    "pyarrow table": lambda: pa.table(COLUMNS),
    "pyarrow chunks": lambda: pa.concat_tables([pa.table(COLUMNS).slice(0, 3), pa.table(COLUMNS).slice(3)]),
    "record batch": lambda: pa.record_batch(COLUMNS),
    "stream interface": lambda: OnlyStream(pa.table(COLUMNS)),
    "array interface": lambda: OnlyArray(pa.record_batch(COLUMNS)),
    "dict of lists": lambda: dict(COLUMNS),
    "dict of arrays": lambda: {name: np.array(values, object) for name, values in COLUMNS.items()},
    "dict of Arrow arrays": lambda: {name: pa.chunked_array([values]) for name, values in COLUMNS.items()},
    "dict of series": lambda: {name: pd.Series(values) for name, values in COLUMNS.items()},
}


def records(chunks):
    found = []
    for chunk in chunks:
        for record in chunk.data.to_pylist():
            found += [{name: None if value != value else value for name, value in record.items()}]
    return found


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("chunk_rows", [1, 2, 100])
def test_every_kind_of_table_gives_the_same_rows(kind, chunk_rows):
    assert records(read_frame(FRAMES[kind](), chunk_rows=chunk_rows)) == pa.table(COLUMNS).to_pylist()


@pytest.mark.parametrize("kind", FRAMES)
def test_every_kind_of_table_gives_the_same_features(kind):
    states = []
    for frame in (FRAMES[kind](), pa.table(COLUMNS)):
        chunks = list(read_frame(frame, chunk_rows=2))
        encoder = TableEncoder.infer(chunks[0])
        for chunk in chunks:
            encoder.encode(chunk, True, BadRows())
        states.append(encoder.names())
    assert states[0] == states[1]


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("chunk_rows", [1, 2, 3])
def test_reading_goes_on_from_every_position(kind, chunk_rows):
    chunks = list(read_frame(FRAMES[kind](), chunk_rows=chunk_rows))
    for k, chunk in enumerate(chunks):
        rest = list(read_frame(FRAMES[kind](), start=chunk.position, chunk_rows=chunk_rows))
        assert records(rest) == records(chunks[k + 1 :])
        assert [c.row for c in rest][:1] == [c.row for c in chunks[k + 1 :]][:1]


@given(st.integers(1, 30), st.integers(1, 4), st.integers(1, 12), st.integers(0, 30))
def test_arrays_of_two_dimensions(n, d, chunk_rows, start):
    values = np.arange(n * d, dtype=np.float32).reshape(n, d)
    start = min(start, n)
    chunks = list(read_frame(values, Position(0, start, start), chunk_rows))
    found = [list(record.values()) for record in records(chunks)]
    assert found == values[start:].tolist()
    assert all(chunk.data.schema.names == [f"x{k}" for k in range(d)] for chunk in chunks)
    assert [chunk.row for chunk in chunks] == list(range(start + 1, n + 1, chunk_rows))


def test_arrays_keep_their_types():
    table = next(read_frame(np.array([[True, False]]))).data
    assert table.schema.types == [pa.bool_()] * 2
    table = next(read_frame(np.array([["a", 1.5], [None, np.nan]], object))).data
    assert table.to_pydict() == {"x0": ["a", None], "x1": [1.5, None]}


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        ([[1, 2]], "list is not a table"),
        (np.zeros(3), "1 dimensions"),
        (np.zeros((0, 3)), "there are no rows"),
        (pd.DataFrame({"a": []}), "there are no rows"),
        (pl.DataFrame({"a": []}), "there are no rows"),
        ({}, "there are no rows"),
        ({"a": [1, 2], "b": [1]}, "differ in length: 'a' 2, 'b' 1"),
        ({"a": ["x", 1]}, "column 'a': values of different types"),
        (pd.DataFrame({"a": ["x", 1]}, dtype=object), "column 'a': values of different types"),
        ({"a": [1, 10**30]}, "column 'a': a whole number of more than 64 bits"),
        (pd.DataFrame({"a": [1j]}), "column 'a': columns of type complex128 cannot be used; leave the column out"),
        (np.array([[1j]]), "column 'x0': columns of type complex128 cannot be used"),
        (pd.Series([1.0]), "a Series has no rows and columns"),
        (pl.Series([1.0]), "a Series has no rows and columns"),
        (pa.chunked_array([[1.0]]), "a ChunkedArray has no rows and columns"),
        ([{"a": 1}], r"a list of records is no table; pass pandas.DataFrame\(X\)"),
        (pd.DataFrame({"a": [1]}).to_records(), "a recarray of records is no table"),
        (pl.DataFrame({"a": [1]}).lazy(), r"pass X.collect\(\)"),
        (sparse.dok_array((2, 2)), "dok_array is not a table"),
    ],
)
def test_what_is_no_table_is_an_error(frame, problem):
    with pytest.raises(DataError, match=problem):
        list(read_frame(frame))


def test_what_is_masked_is_missing():
    masked = np.ma.masked_array([[1.0, 2.0], [3.0, 4.0]], [[True, False], [False, False]])
    assert next(read_frame(masked)).data.to_pandas().isna().to_numpy().tolist() == masked.mask.tolist()
    assert next(read_frame({"a": masked[:, 0]})).data.to_pydict() == {"a": [None, 3.0]}


def test_intervals_of_pandas_are_categories():
    frame = pd.DataFrame({"a": pd.cut([1.0, 2.0, np.nan], 2)})
    assert next(read_frame(frame)).data.to_pydict() == {"a": ["(0.999, 1.5]", "(1.5, 2.0]", None]}


def test_two_columns_of_one_name_are_an_error():
    frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(DataError, match="two columns have this name"):
        TableEncoder.infer(next(read_frame(frame)))


def test_pandas_dates_and_time_zones():
    frame = pd.DataFrame({"t": pd.date_range("2020-01-01 00:30", periods=2, tz="Europe/Berlin", freq="D")})
    chunk = next(read_frame(frame))
    encoder = TableEncoder.infer(chunk)
    encoder.encode(chunk, True, BadRows())
    assert "t[hour=0]" in encoder.names() and "t[year=2020]" in encoder.names()


def test_neither_pandas_nor_polars_nor_sklearn_is_imported_unless_asked_for():
    program = (
        "import sys, numpy as np; from tunefree.stream.frames import read_frame; "
        "from tunefree.stream.encoder import TableEncoder; TableEncoder.infer(next(read_frame(np.ones((2, 2))))); "
        "print([name for name in ('pandas', 'polars', 'sklearn') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"

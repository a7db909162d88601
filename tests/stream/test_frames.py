"""Tables in memory as chunks."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunefree.stream.batch import Position
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
@pytest.mark.parametrize("chunk_rows", [2, 100])
def test_rows_are_the_same_of_every_kind_and_reading_goes_on_from_every_position(kind, chunk_rows):
    chunks = list(read_frame(FRAMES[kind](), chunk_rows=chunk_rows))
    assert records(chunks) == pa.table(COLUMNS).to_pylist()
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

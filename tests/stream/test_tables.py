"""Files of every tabular format: what is read, from where, and what is refused."""

import io

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.stream.tabular import read_tables
from tunefree.core.errors import DataError
from tunefree.stream.files import expand

from .tabular import numbers, records, text, write

TABLE = pa.table(
    {
        "n": [1.5, None, 3.0, 4.0, -5.0, 6.0, 7.0],
        "s": ["a", "b", None, "a", "c", 'é, "quoted"', "two\nlines"],
        "b": [True, False, None, True, True, False, True],
    }
)


OPTIONS = {
    "t.csv": {},
    "t.jsonl": {},
    "t.parquet": {"row_group_size": 3},
    "t.feather": {"chunksize": 4},
    "t.arrows": {"max_chunksize": 2},
}


def as_read(name):
    """The records of the table as a format gives them: CSV has strings only."""
    rows = TABLE.to_pylist()
    if not name.startswith("t.csv"):
        return rows
    return [{key: None if value is None else str(value) for key, value in row.items()} for row in rows]


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_reading_goes_on_from_every_position(tmp_path, name, size):
    files = [str(tmp_path / f"{k}-{name}") for k in range(3)]
    for file in files:
        write(file, TABLE, **OPTIONS[name])
    sizes = {"chunk_rows": size, "block_size": 16 * size}
    chunks = list(read_tables(files, **sizes))
    assert records(chunks) == 3 * as_read(name) and numbers(chunks) == 3 * list(range(1, 8))
    assert len(chunks) > 3 or size == 100
    for k, chunk in enumerate(chunks):
        rest = list(read_tables(files, start=chunk.position, **sizes))
        assert records(rest) == records(chunks[k + 1 :])
        assert numbers(rest) == numbers(chunks[k + 1 :])
        assert [c.position for c in rest][-1:] == [c.position for c in chunks[k + 1 :]][-1:]


CELL = st.text(st.sampled_from('ab ,"\n\r;é\t|'), max_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(st.floats(-1e6, 1e6), CELL), min_size=1, max_size=30),
    block=st.integers(1, 200),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_csv_cut_anywhere_is_what_the_csv_module_wrote(tmp_path, rows, block, end):
    import csv

    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator=end, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(["x", "y"])
    writer.writerows(rows)
    file = text(tmp_path / "t.csv", buffer.getvalue())
    chunks = list(read_tables([file], block_size=block, types={"y": pa.string()}, delimiter=","))
    found = [(record["x"], record["y"]) for record in records(chunks)]
    assert found == [(str(x), y or None) for x, y in rows]
    assert numbers(chunks) == list(range(1, len(rows) + 1))


def test_patterns_and_directories_are_expanded_in_order(tmp_path):
    for name in ("b.csv", "a.csv", "c/d.csv", "c/_done", ".hidden"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n1\n")
    names = [str(tmp_path / name) for name in ("a.csv", "b.csv", "c/d.csv")]
    assert expand([str(tmp_path)]) == names
    assert expand([str(tmp_path / "*.csv")]) == names[:2]
    assert expand([str(tmp_path / "**" / "*.csv")]) == names
    assert expand([names[1], names[0], "-"]) == [names[1], names[0], "-"]
    odd = text(tmp_path / "[1].csv", "x\n1\n")
    assert expand([odd]) == [odd]
    with pytest.raises(DataError, match="no such file"):
        expand([str(tmp_path / "*.parquet")])


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.feather", "t.arrows"])
def test_files_of_one_source_must_have_the_columns_of_the_first(tmp_path, name):
    first, second = str(tmp_path / f"1-{name}"), str(tmp_path / f"2-{name}")
    write(first, TABLE, **OPTIONS[name])
    write(second, TABLE.append_column("c", TABLE["n"]), **OPTIONS[name])
    found = {chunk.file: {*chunk.data.schema.names} for chunk in read_tables([first, second])}
    assert found == {first: {*"nsb"}, second: {*"nsbc"}}
    write(second, TABLE.select(["n", "s"]), **OPTIONS[name])
    with pytest.raises(DataError, match="column 'b': the column is missing here") as caught:
        list(read_tables([first, second]))
    assert caught.value.file == second


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.arrows"])
def test_binary_files_cut_short_or_changed(tmp_path, name):
    write(tmp_path / name, TABLE, **OPTIONS[name])
    whole = (tmp_path / name).read_bytes()
    for cut in range(0, len(whole) - 8, 29):
        with pytest.raises(DataError):
            list(read_tables([text(tmp_path / f"cut-{name}", whole[:cut])]))

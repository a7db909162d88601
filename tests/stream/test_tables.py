"""Tables of every format, in memory and of queries: what is read, and what is refused, wherever blocks are cut."""

import io
from contextlib import closing

import adbc_driver_sqlite.dbapi as sqlite
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tunefree
from tests.stream.tabular import numbers, read_tables, records, skipped, text, write
from tunefree.core.errors import DataError
from tunefree.stream.batch import Position
from tunefree.stream.delimited import csv_header
from tunefree.stream.encoder import TableEncoder
from tunefree.stream.files import expand
from tunefree.stream.frames import read_frame
from tunefree.stream.kinds import Boolean, Category, Number
from tunefree.stream.tables import Options

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


BAD = "x,y,b\n1,a,true\n2,b\n3,c,false\nfour,d,true\n5,e,true,1\n6,f,maybe\n7,g,true\n"


def test_bad_rows_of_csv_are_left_out_and_counted(tmp_path):
    file = text(tmp_path / "t.csv", BAD)
    columns = [Number("x"), Category("y"), Boolean("b")]
    for block in (8, 30, 1000):
        chunks, bad = skipped([file], block_size=block)
        encoder = TableEncoder(columns, typed=False)
        batches = [encoder.encode(chunk, True, bad) for chunk in chunks]
        assert [int(number) for batch in batches for number in batch.numbers] == [1, 3, 7]
        assert [float(row[0]) for batch in batches for row in batch.rows.numbers] == [1, 3, 7]
        assert bad.tally.count == 4
        assert sorted((reason.problem, reason.rows) for reason in bad.tally.reasons) == [
            ("the row has … fields, the header …", 2),
            ("… is neither true nor false", 1),
            ("… is not a number (`na_values` says what stands for a missing one)", 1),
        ]
        for k, chunk in enumerate(chunks):
            rest, _ = skipped([file], block_size=block, start=chunk.position)
            assert numbers(rest) == numbers(chunks[k + 1 :])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["1,a", "2", "x,b", "3,c,d", ",e", ""]), min_size=1, max_size=20), st.integers(1, 40))
def test_bad_rows_are_the_same_however_blocks_are_cut(tmp_path, lines, block):
    lines = [*lines, "1,a"]
    file = text(tmp_path / "t.csv", "\n".join(["n,s", *lines]) + "\n")
    chunks, bad = skipped([file], block_size=block)
    held = [line for line in lines if line]
    good = [place for place, line in enumerate(held, 1) if line in ("1,a", "x,b", ",e")]
    assert numbers(chunks) == good and bad.tally.count == len(held) - len(good)


@pytest.mark.parametrize("block", [5, 9, 1000])
def test_comments_and_headers_again_are_counted_once_however_blocks_are_cut(tmp_path, block):
    lines = ["# one", "", "# two", "n,s", "1,a", "n,s", "2,b", '"n","s"', "\ufeffn,s", "3,s"]
    file = text(tmp_path / "t.csv", "\n".join(lines) + "\n")
    chunks, bad = skipped([file], block_size=block)
    assert [record["s"] for record in records(chunks)] == ["a", "b", "s"] and numbers(chunks) == [1, 3, 6]
    assert bad.tally.count == 0
    assert [(oddity.problem, oddity.rows, oddity.row) for oddity in bad.tally.oddities] == [
        ("comments before the header are left out", 2, 0),
        ("a line that repeats the header is left out", 3, 2),
    ]
    for k, chunk in enumerate(chunks):
        rest, left = skipped([file], block_size=block, start=chunk.position)
        assert numbers(rest) == numbers(chunks[k + 1 :])
        assert "comments before the header are left out" not in {oddity.problem for oddity in left.tally.oddities}


@pytest.mark.parametrize(
    ("content", "names", "comments"),
    [
        ("# a,b\n1,2\n3,4\n", ["# a", "b"], 0),  # as numpy.savetxt writes names
        ("#chrom,pos\nx,1\ny,2\n", ["#chrom", "pos"], 0),
        ("#name,job\nbob,cook\nann,clerk\n", ["#name", "job"], 0),
        ("## one, two\n#name,job\nbob,3\n", ["#name", "job"], 1),
        ("# made by hand, in May\nname,age\nbob,3\n", ["name", "age"], 1),
        ("#made by hand, in May\nname,age\nbob,3\n", ["name", "age"], 1),
        ('# 5" pipes\nname,age\nbob,3\n', ["name", "age"], 1),
        ("#" + "-" * 9000 + "\nname,age\nbob,3\n", ["name", "age"], 1),
        ("#" + "-" * 8180 + "\nname,age\nbob,3\n", ["name", "age"], 1),  # cut within the header by the first window
        ("#name\n", ["#name"], 0),
        ("#name\nbob\n", ["bob"], 1),
        ("#x\n1\n2\n", ["#x"], 0),
    ],
)
def test_the_names_of_columns_are_found_behind_comments(tmp_path, content, names, comments):
    header = csv_header(text(tmp_path / "t.csv", content), Options())
    assert (header.names, header.comments) == (names, comments)


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


def present_records(chunks):
    found = []
    for chunk in chunks:
        for record in chunk.data.to_pylist():
            found += [{name: None if value != value else value for name, value in record.items()}]
    return found


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("chunk_rows", [2, 100])
def test_rows_are_the_same_of_every_kind_and_reading_goes_on_from_every_position(kind, chunk_rows):
    chunks = list(read_frame(FRAMES[kind](), chunk_rows=chunk_rows))
    assert present_records(chunks) == pa.table(COLUMNS).to_pylist()
    for k, chunk in enumerate(chunks):
        rest = list(read_frame(FRAMES[kind](), start=chunk.position, chunk_rows=chunk_rows))
        assert present_records(rest) == present_records(chunks[k + 1 :])
        assert [c.row for c in rest][:1] == [c.row for c in chunks[k + 1 :]][:1]


@given(st.integers(1, 30), st.integers(1, 4), st.integers(1, 12), st.integers(0, 30))
def test_arrays_of_two_dimensions(n, d, chunk_rows, start):
    values = np.arange(n * d, dtype=np.float32).reshape(n, d)
    start = min(start, n)
    chunks = list(read_frame(values, Position(0, start, start), chunk_rows))
    found = [list(record.values()) for record in present_records(chunks)]
    assert found == values[start:].tolist()
    assert all(chunk.data.schema.names == [f"x{k}" for k in range(d)] for chunk in chunks)
    assert [chunk.row for chunk in chunks] == list(range(start + 1, n + 1, chunk_rows))


ROWS = 3000
QUERY = "SELECT * FROM people"


@pytest.fixture
def cursor(tmp_path):
    ages = np.random.default_rng(0).integers(18, 80, ROWS)
    people = {"age": ages, "job": np.where(ages % 3, "cook", "clerk"), "rich": np.where(ages > 45, "yes", "no")}
    with closing(sqlite.connect(str(tmp_path / "people.db"))) as connection, closing(connection.cursor()) as found:
        found.adbc_ingest("people", pa.table(people))
        yield found


def queried(cursor, query=QUERY):
    cursor.execute(query)
    return cursor.fetch_record_batch()


def test_a_model_learns_the_rows_of_a_query_and_predicts_others(cursor):
    model = tunefree.train(queried(cursor), target="rich", learner="scinol2")
    assert model.trained_.progress.progressive[0].rows == ROWS
    test = queried(cursor, "SELECT age, job FROM people LIMIT 50")
    assert model.predict(test).tolist() == model.predict(queried(cursor).read_all().slice(0, 50)).tolist()
    fitted = tunefree.ScInOLClassifier().fit(queried(cursor, "SELECT age, job FROM people LIMIT 200"), [0, 1] * 100)
    assert fitted.n_features_in_ == 2


def test_an_error_of_the_database_on_the_way_names_the_row_before(cursor):
    cursor.execute("INSERT INTO people VALUES ('unknown', 'cook', 'no')")
    with pytest.raises(DataError, match=r"the table: its source failed after row 2,\d{3} \(.*SQLite.*; correct"):
        tunefree.train(queried(cursor), target="rich", learner="scinol2")


@pytest.mark.parametrize("error", [RuntimeError("connection lost\nat line 1"), pa.ArrowInvalid("connection lost")])
@pytest.mark.parametrize("good", [0, 2])
def test_whatever_a_source_raises_becomes_one_error(error, good):
    def batches():
        for _ in range(good):
            yield pa.record_batch({"age": [39, 50], "rich": ["no", "yes"]})
        raise error

    stream = pa.RecordBatchReader.from_batches(pa.schema({"age": pa.int64(), "rich": pa.string()}), batches())
    with pytest.raises(DataError, match=f"its source failed after row {2 * good} .*connection lost") as caught:
        tunefree.train(stream, target="rich", learner="scinol2")
    assert "at line 1" not in str(caught.value)

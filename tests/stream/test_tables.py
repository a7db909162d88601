"""Tables of every format, in memory and of queries: what is read, and what is refused, wherever blocks are cut."""

import csv
import io

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
from tunefree.stream.files import expand
from tunefree.stream.frames import read_frame
from tunefree.stream.source import open_source
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


def check_reading_on(chunks, read):
    """Reading may go on from the place of each chunk."""
    for k, chunk in enumerate(chunks, 1):
        rest = list(read(chunk.position))
        assert present_records(rest) == present_records(chunks[k:]) and numbers(rest) == numbers(chunks[k:])
        assert [c.position for c in rest][-1:] == [c.position for c in chunks[k:]][-1:]


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_reading_goes_on_from_every_position(tmp_path, name, size):
    files = [write(tmp_path / f"{k}-{name}", TABLE, **OPTIONS[name]) for k in range(3)]
    sizes = {"chunk_rows": size, "block_size": 16 * size}
    chunks = list(read_tables(files, **sizes))
    assert records(chunks) == 3 * as_read(name) and numbers(chunks) == 3 * list(range(1, 8))
    assert len(chunks) > 3 or size == 100
    check_reading_on(chunks, lambda start: read_tables(files, start=start, **sizes))


CELL = st.text(st.sampled_from('ab ,"\n\r;é\t|'), max_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(st.floats(-1e6, 1e6), CELL), min_size=1, max_size=30),
    block=st.integers(1, 200),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_csv_cut_anywhere_is_read_as_the_csv_module_wrote_it(tmp_path, rows, block, end):
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
    first = write(tmp_path / f"1-{name}", TABLE, **OPTIONS[name])
    second = write(tmp_path / f"2-{name}", TABLE.append_column("c", TABLE["n"]), **OPTIONS[name])
    found = {chunk.file: {*chunk.data.schema.names} for chunk in read_tables([first, second])}
    assert found == {first: {*"nsb"}, second: {*"nsbc"}}
    write(second, TABLE.select(["n", "s"]), **OPTIONS[name])
    with pytest.raises(DataError, match="column 'b': the column is missing here") as caught:
        list(read_tables([first, second]))
    assert caught.value.file == second


def test_files_of_json_may_lack_columns_but_not_change_their_types(tmp_path):
    files = [write(tmp_path / "1.jsonl", TABLE), write(tmp_path / "2.jsonl", {"n": [0.5]})]
    assert records(read_tables(files))[-1] == {"n": 0.5, "s": None, "b": None}
    for columns, problem in (
        ({"n": ["a"]}, "column 'n': string here, but double in .*1.jsonl"),
        ({"m": [1]}, "missing"),
    ):
        with pytest.raises(DataError, match=f"2.jsonl, .*{problem}"):
            list(read_tables([files[0], write(tmp_path / "2.jsonl", columns)]))


def test_places_all_over_a_file_are_at_the_starts_of_lines(tmp_path):
    lines = [f"{k},{k % 7}\n" for k in range(500)]
    places = open_source(text(tmp_path / "a.csv", "x,y\n" + "".join(lines))).places(4)
    assert len(places) == 4 and {place.offset for place in places} < {0, *np.cumsum([4, *map(len, lines)]).tolist()}
    assert open_source(text(tmp_path / "b.csv", "x,y\n" + '"a\nb",1\n' * 500)).places(4) == [Position()]
    assert open_source(pa.table({"x": [1]}).to_reader()).places(4) == []


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
    assert (header.names, header.beginning.comments) == (names, comments)


def test_names_of_columns_may_take_megabytes(tmp_path):
    names = [f"{k}{'x' * 110_000}" for k in range(20)]
    assert csv_header(text(tmp_path / "t.csv", ",".join(names) + "\n"), Options()).names == names


COLUMNS = {"n": [1.0, None, 3.0, 4.0, 5.0], "s": ["a", "b", None, "a", "c"], "i": [1, 2, 3, 4, 5]}


class OnlyStream:
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
    """The records, with None for NaN."""
    return [{name: None if x != x else x for name, x in record.items()} for record in records(chunks)]


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("chunk_rows", [2, 100])
def test_rows_are_the_same_of_every_kind_and_reading_goes_on_from_every_position(kind, chunk_rows):
    chunks = list(read_frame(FRAMES[kind](), chunk_rows=chunk_rows))
    assert present_records(chunks) == pa.table(COLUMNS).to_pylist()
    check_reading_on(chunks, lambda start: read_frame(FRAMES[kind](), start, chunk_rows))


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (5, "int is not a table; pass a DataFrame"),
        (type("Cursor", (), {"fetch_record_batch": None})(), r"pass its fetch_record_batch\(\)"),
        (pl.LazyFrame({"a": [1]}), r"no rows yet; pass X.collect\(\)"),
        (pd.Series([1]), r"a Series has no rows and columns; pass frame\[\['name'\]\]"),
        ([{"a": 1}], "a list of records is no table"),
        (np.zeros(3, [("a", float)]), "a ndarray of records is no table"),
        (np.zeros(3), "an array of 1 dimensions is not a table"),
        ({"a": [1, 2], "b": [1]}, "columns differ in length: 'a' 2, 'b' 1"),
        ({"a": [1, 2**70]}, "row 1, column 'a': a whole number of more than 64 bits"),
        ({"a": np.array([1j])}, "column 'a': columns of type complex128 cannot be used"),
    ],
)
def test_what_is_no_table_is_refused(table, problem):
    with pytest.raises(DataError, match=f"the table.*{problem}"):
        list(read_frame(table))


@pytest.mark.parametrize("values", [[1, 2], ["a", "b"], np.array(["2024-01-31", "2024-02-01"], "M8[D]")])
def test_masked_values_are_missing_and_intervals_are_categories(values):
    array = np.ma.masked_array([values, values], [[False, True], [False, False]])
    masked, whole = present_records(read_frame(array))
    assert list(masked.values()) == [np.asarray(values)[0].item(), None] and whole["x1"] == np.asarray(values)[1]
    assert [*present_records(read_frame(array[1:]))[0].values()] == np.asarray(values).tolist()
    intervals = pd.DataFrame({"age": pd.cut([1, 5], [0, 3, 6])})
    assert records(read_frame(intervals)) == [{"age": "(0, 3]"}, {"age": "(3, 6]"}]


@given(st.integers(1, 30), st.integers(1, 4), st.integers(1, 12), st.integers(0, 30))
def test_arrays_of_two_dimensions(n, d, chunk_rows, start):
    values = np.arange(n * d, dtype=np.float32).reshape(n, d)
    start = min(start, n)
    chunks = list(read_frame(values, Position(0, start, start), chunk_rows))
    found = [list(record.values()) for record in present_records(chunks)]
    assert found == values[start:].tolist()
    assert all(chunk.data.schema.names == [f"x{k}" for k in range(d)] for chunk in chunks)
    assert [chunk.row for chunk in chunks] == list(range(start + 1, n + 1, chunk_rows))


def test_a_stream_that_is_read_once_is_learned_and_predicted():
    ages = np.random.default_rng(0).integers(18, 80, 3000)
    people = pa.table({"age": ages, "rich": np.where(ages > 45, "yes", "no")})
    model = tunefree.train(people.to_reader(500), target="rich", learner="scinol2")
    assert model.trained_.progress.progressive[0].rows == 3000
    assert model.predict(people.to_reader(500)).tolist() == model.predict(people).tolist()
    fitted = tunefree.ScInOLClassifier().fit(people.select(["age"]).slice(0, 200).to_reader(), [0, 1] * 100)
    assert fitted.n_features_in_ == 1
    with pytest.raises(DataError, match="can be read only once; save it to a file or a table, or give"):
        tunefree.train(people.to_reader(500), target="rich", class_weight="balanced")
    with pytest.raises(DataError, match="can be read only once; save it to a file or a table, or train with one pass"):
        tunefree.train(people.to_reader(500), target="rich", learner="scinol2", passes=2)
    plan = tunefree.Plan(target="rich", learner="scinol2", passes=2, shuffle=True)
    shuffled = [tunefree.train(source, plan).predict_proba(people) for source in (people, people.to_reader(500))]
    np.testing.assert_array_equal(*shuffled)


@pytest.mark.parametrize("error", [RuntimeError("connection lost\nat line 1"), pa.ArrowInvalid("connection lost")])
@pytest.mark.parametrize("good", [0, 2])
def test_any_error_of_a_source_becomes_one_error(error, good):
    def batches():
        for _ in range(good):
            yield pa.record_batch({"age": [39, 50], "rich": ["no", "yes"]})
        raise error

    stream = pa.RecordBatchReader.from_batches(pa.schema({"age": pa.int64(), "rich": pa.string()}), batches())
    with pytest.raises(DataError, match=f"its source failed after row {2 * good} .*connection lost") as caught:
        tunefree.train(stream, target="rich", learner="scinol2")
    assert "at line 1" not in str(caught.value)

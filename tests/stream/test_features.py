"""Columns become rows by type, also from texts and where they come late; nothing depends on where a stream is cut."""

import datetime as dt
import json

import numpy as np
import pyarrow as pa
import pytest

import tunefree
from tests.stream.tabular import bytes_of, chunk_of, encoded, named_rows, read_tables, text
from tunefree.core.errors import DataError, ModelError
from tunefree.core.rows import n_rows
from tunefree.stream import jsonlines
from tunefree.stream.batch import BadRows, restored, save_state
from tunefree.stream.encoder import TableEncoder
from tunefree.stream.layout import Layout
from tunefree.stream.notation import ColumnTypes


def test_numbers_of_all_types_stay_numbers():
    encoder, batch = encoded(
        {
            "a": pa.array([1, 2], pa.int8()),
            "b": pa.array([2**53, 5], pa.uint64()),
            "c": pa.array([1.5, -2.0], pa.float32()),
            "d": pa.array([1, 2], pa.decimal128(5, 2)),
            "e": pa.array([86_400_000, 43_200_000], pa.duration("ms")),
            "f": pa.array([0.5, 1.0], pa.float16()),
        }
    )
    assert batch.rows.numbers.tolist() == [[1, 2.0**53, 1.5, 1, 1, 0.5], [2, 5, -2, 2, 0.5, 1]]
    assert encoder.names() == ["(constant)", "a", "b", "c", "d", "e", "f"]
    assert batch.rows.columns.tolist() == [1, 2, 3, 4, 5, 6] and encoder.n_features == 7


def test_strings_categories_and_booleans_are_one_hot_in_row_major_order():
    encoder, batch = encoded(
        {
            "s": ["x", "y", "x"],
            "b": [True, False, True],
            "c": pa.array(["u", "u", "v"]).dictionary_encode(),
            "i": pa.array([7, 8, 7]).dictionary_encode(),
        }
    )
    assert encoder.names() == ["(constant)", "s=x", "b=true", "c=u", "i=7", "s=y", "b=false", "i=8", "c=v"]
    assert batch.rows.codes.tolist() == [[1, 2, 3, 4], [5, 6, 3, 7], [1, 2, 8, 4]]
    assert encoder.column_of().tolist() == [-1, 0, 1, 2, 3, 0, 1, 3, 2]


def test_missing_values_have_a_feature_of_their_own_and_nothing_else():
    encoder, batch = encoded(
        {
            "n": [1.0, None, float("nan")],
            "s": ["a", None, "?"],
            "b": [True, None, False],
            "d": pa.array([dt.date(2020, 2, 3), None, None]),
            "t": pa.array([dt.time(7), None, dt.time(0)]),
            "x": ["some text", None, " "],
        },
        text=["x"],
    )
    _, second, third = named_rows(encoder, batch)
    assert second == {f"{column}[missing]": 1 for column in "nsbdtx"}
    assert {"n[missing]", "s[missing]", "d[missing]", "x[missing]"} < set(third)
    assert third["b=false"] == 1 and third["t[hour=0]"] == 1 and "t[missing]" not in third


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_become_calendar_codes_and_elapsed_days(unit):
    values = pa.array([dt.datetime(2020, 2, 29, 23), dt.datetime(1969, 12, 31, 11)], pa.timestamp(unit))
    encoder, batch = encoded({"t": values})
    first, second = named_rows(encoder, batch)
    assert first == {"t[year=2020]": 1, "t[month=2]": 1, "t[weekday=6]": 1, "t[hour=23]": 1}
    assert second.pop("t[days]") == pytest.approx(-18322.5)
    assert second == {"t[year=1969]": 1, "t[month=12]": 1, "t[weekday=3]": 1, "t[hour=11]": 1}


def test_what_is_unknown_leaves_no_entry_and_no_trace_when_not_learning():
    encoder, _ = encoded({"t": ["red"], "job": ["a"]}, text=["t"])
    before = bytes_of(encoder)
    batch = encoder.encode(chunk_of({"t": ["red green", "green", "red"], "job": ["a", "a", "b"]}), False, BadRows())
    assert np.diff(batch.rows.pointers).tolist()[:2] == [1, 0] and batch.rows.codes[2].tolist() == [0]
    assert bytes_of(encoder) == before


@pytest.mark.parametrize(
    ("column", "values", "problem"),
    [
        ("y", [1.0, None], "the target is missing"),
        ("y", [1.0, float("nan")], "the target is missing"),
        ("y", ["a", "?"], "the target is missing"),
        ("y", [True, None], "the target is missing"),
        ("y", [1.0, float("inf")], "the number is infinite"),
        ("w", [1.0, -1.0], "the weight is -1.0"),
        ("w", [1.0, float("nan")], "the weight is missing"),
        ("w", [1.0, None], "the weight is missing"),
        ("w", [1.0, float("inf")], "the weight is inf"),
        ("x", [1.0, float("inf")], "the number is infinite"),
        ("x", [1.0, -float("inf")], "the number is infinite"),
    ],
)
def test_bad_rows_are_errors_or_left_out(column, values, problem):
    columns = {"x": [1.0, 2.0], "y": [1.0, 2.0], "w": [1.0, 1.0]} | {column: values}
    chunk = chunk_of(columns, first=11, file="a.csv")
    with pytest.raises(DataError, match=problem) as caught:
        TableEncoder.infer(chunk, "y", "w").encode(chunk, True, BadRows())
    error = caught.value
    assert (error.file, error.row, error.column) == ("a.csv", 12, column) and "`on_bad_row='skip'`" in str(error)
    bad = BadRows(skip=True)
    batch = TableEncoder.infer(chunk, "y", "w").encode(chunk, True, bad)
    assert bad.tally.count == 1 and batch.numbers.tolist() == [11]
    assert n_rows(batch.rows) == len(batch.target) == len(batch.weight) == 1


@pytest.mark.parametrize(
    ("column", "options", "problem"),
    [
        ([1], {"text": ["c"]}, "a text column must hold strings, not int64"),
        ([["a"]], {"column_types": ColumnTypes(numeric=["c"])}, "list<.*> is no number; leave it out of `numeric`"),
        ([["a"]], {"target": "c"}, "a target cannot be of type list<"),
        ([b"a"], {"group": "c"}, "groups cannot be of type binary; name a column of numbers or texts"),
        (pa.array([0], pa.timestamp("us", "Mars/Phobos")), {}, "its time zone is not known"),
    ],
)
def test_columns_that_cannot_be_used_are_named(column, options, problem):
    with pytest.raises(DataError, match=f"column 'c': {problem}"):
        encoded({"x": [0.5], "c": column}, **options)


@pytest.mark.parametrize(("first", "later"), [(["a"], [1.0]), ([1.0], [True])])
def test_a_target_keeps_its_type(first, later):
    encoder, _ = encoded({"x": [0.5], "y": pa.array(first)}, target="y")
    with pytest.raises(DataError, match="column 'y': the target is a .* here, but was a .*; give the column one type"):
        encoder.encode(chunk_of({"x": [0.5], "y": pa.array(later)}), True, BadRows())


@pytest.mark.parametrize("day", [pa.array([dt.date(2024, 2, 29)]), ["2024-02-29"], ["29.2.2024"]])
def test_dates_that_are_named_and_weights_in_a_notation(day):
    types = ColumnTypes(date=["d"])
    encoder, batch = encoded({"d": day, "w": ["1.250,5"]}, weight="w", typed=False, column_types=types)
    assert encoder.columns[0].kind == "moment" and batch.weight.tolist() == [1250.5]
    assert named_rows(encoder, batch) == [{"d[year=2024]": 1, "d[month=2]": 1, "d[weekday=4]": 1}]


def test_rows_that_wait_for_their_group_are_restored_whole_or_refused():
    batch = encoded({"x": [0.5, 1.5], "y": ["no", "yes"], "g": ["a", "a"]}, target="y", group="g")[1]
    arrays, header = save_state(batch)
    again = restored(arrays, header)
    assert again.rows.numbers.tolist() == [[0.5], [1.5]] and again.groups.tolist() == ["a", "a"]
    for other in (batch.part(0, 1), batch._replace(groups=np.array(["a", None], object))):
        with pytest.raises(ModelError, match="rows that wait for others of their group lack parts"):
            restored(arrays | {"rows": save_state(other)[0]["rows"]}, header)


def test_a_bad_row_teaches_no_category():
    chunk, bad = chunk_of({"s": ["bad", "good"], "y": [None, 1.0]}), BadRows(skip_unlabelled=True)
    encoder = TableEncoder.infer(chunk, "y")
    encoder.encode(chunk, True, bad)
    assert encoder.names() == ["(constant)", "s=good"] and bad.tally.unlabelled == 1 and not bad.tally.oddities


@pytest.mark.parametrize(
    ("first", "later", "expected"),
    [
        (pa.array([1]), pa.array([1.5]), {"c": 1.5}),
        (pa.array([1.5]), pa.array(["2.5"]), {"c": 2.5}),
        (pa.array([1.5]), pa.nulls(1), {"c[missing]": 1}),
        (pa.array([1.5]), pa.array(["?"]), {"c[missing]": 1}),
        (pa.array(["a"]).dictionary_encode(), pa.array(["a"]), {"c=a": 1}),
        (pa.array(["a"]), pa.nulls(1), {"c[missing]": 1}),
        (pa.array([True]), pa.array(["True"]), {"c=true": 1}),
        (pa.nulls(1), pa.array(["a"]), {"c=a": 1}),
    ],
)
def test_compatible_changes_of_type(first, later, expected):
    encoder, _ = encoded({"c": first})
    assert named_rows(encoder, encoder.encode(chunk_of({"c": later}), True, BadRows())) == [expected]


@pytest.mark.parametrize(
    ("first", "later", "problem"),
    [
        ([1.0], ["1", "x"], "'x' is not a number"),
        (["2020-01-01"], ["2020-01-02", "soon"], "'soon' is no date"),
        (["2020-01-01"], ["2020-01-02", "2020-01-02T10:00:00Z"], "is no date or timestamp without a time zone"),
        ([True], ["false", "maybe"], "'maybe' is neither"),
        ([dt.time(1)], ["10:00", "25:00"], "'25:00' is no time"),
        ([dt.date(2020, 1, 1)], pa.array([0, 10**14], pa.timestamp("s")), "is no date"),
    ],
)
def test_values_that_do_not_fit_are_bad_rows(first, later, problem):
    encoder, _ = encoded({"c": first})
    chunk = chunk_of({"c": later}, first=5)
    with pytest.raises(DataError, match=problem) as caught:
        encoder.encode(chunk, True, BadRows())
    assert (caught.value.row, caught.value.column) == (6, "c")
    assert encoder.encode(chunk, True, BadRows(skip=True)).numbers.tolist() == [5]


TYPED = {
    "whole": [3, 1, None, 4],
    "real": [2.5, -1e-3, None, 7.0],
    "flag": [True, False, None, True],
    "word": ["a", "b", None, "a"],
    "date": ["2024-01-31", "2024-02-01", None, "2024-02-29"],
    "none": [None] * 4,
}
TEXTS = {name: ["" if value is None else str(value) for value in values] for name, values in TYPED.items()}


def test_texts_become_the_features_of_typed_values():
    typed, batch = encoded({name: pa.array(values) for name, values in TYPED.items()})
    untyped, batch_of_texts = encoded(TEXTS, typed=False)
    assert [column.kind for column in untyped.columns] == [column.kind for column in typed.columns]
    assert named_rows(untyped, batch_of_texts) == named_rows(typed, batch)


@pytest.mark.parametrize(("target", "family"), [("whole", "number"), ("flag", "boolean"), ("word", "string")])
def test_a_target_of_texts_has_its_declared_type(target, family):
    rows = [0, 1, 3]  # those that have a label
    typed, batch = encoded({name: pa.array(values).take(rows) for name, values in TYPED.items()}, target=target)
    texts = {name: [values[row] for row in rows] for name, values in TEXTS.items()}
    untyped, batch_of_texts = encoded(texts, target=target, typed=False)
    assert untyped.target_family == typed.target_family == family
    assert batch_of_texts.target.to_pylist() == batch.target.to_pylist()


def test_integers_of_a_target_keep_their_digits(tmp_path):
    first = 2**53 + 1
    _, batch = encoded({"y": [str(first), "7"], "x": ["1", "2"]}, target="y", typed=False)
    assert batch.target.to_pylist() == [first, 7]
    gaps = {"y": ["NA", str(first)], "x": ["1", "2"]}
    assert TableEncoder.infer(chunk_of(gaps), "y", typed=False).target_family == "integer"
    table = {"x": [float(k) for k in range(60)], "y": [10**18 + 1 + k for k in range(60)]}
    model = tunefree.train(table, target="y", learner="scinol2")
    model.save(tmp_path / "a.model")
    np.testing.assert_allclose(model.predict({"x": [3.0]}), 1e18, rtol=0.1)
    zeros = {"y": [f"{k:05d}" for k in range(200)], "x": ["1"] * 200}
    assert TableEncoder.infer(chunk_of(zeros), "y", typed=False).target_family == "number"


LONG_TEXT = "a text of more than forty characters, in which there are spaces"
LATE = [
    {"x": 1.0},
    {"x": 2.0, "n": None, "s": "?"},
    {"x": 0.5, "s": "red", "n": 7},
    {"x": 3.0, "n": -2.5, "b": True, "day": "2024-01-31"},
    {"x": 4.0, "s": "blue", "day": "2024-03-02", "tags": ["a", "b", "a"], "v": [1.5, 0.0, 2]},
    {"x": 5.0, "o": {"p": 3, "q": {"r": "deep"}}, "note": LONG_TEXT, "tags": ["b"]},
    {"x": 6.0, "s": "red", "o": {"q": {"r": "deep", "late": 4}}, "v": [0.5]},
]
EXPECTED = [
    {"x": 1.0},
    {"x": 2.0},
    {"x": 0.5, "s=red": 1.0, "n": 7.0},
    {"x": 3.0, "n": -2.5, "b=true": 1.0, "day[year=2024]": 1.0, "day[month=1]": 1.0, "day[weekday=3]": 1.0},
    {"x": 4.0, "s=blue": 1.0, "day[days]": 31.0, "day[year=2024]": 1.0, "day[month=3]": 1.0, "day[weekday=6]": 1.0}
    | {"tags=a": np.log2(3.0), "tags=b": 1.0, "v[0]": 1.5, "v[2]": 2.0},
    {"x": 5.0, "o.p": 3.0, "o.q.r=deep": 1.0, "tags=b": 1.0},
    {"x": 6.0, "s=red": 1.0, "o.q.r=deep": 1.0, "o.q.late": 4.0, "v[0]": 0.5},
]


def read(file, **options):
    """The encoder of a file, and the rows by the names of their features."""
    encoder, rows = None, []
    for chunk in read_tables([file], **options):
        encoder = encoder or TableEncoder.infer(chunk._replace(data=chunk.data.select(["x"])))
        rows += named_rows(encoder, encoder.encode(chunk, True, BadRows()))
    return encoder, rows


def test_columns_that_come_later_are_features_from_their_first_value_on(tmp_path, monkeypatch):
    first, *others = (json.dumps(row) + "\n" for row in LATE)
    monkeypatch.setattr(jsonlines, "read_sample", lambda file: first.encode())  # alone it tells the columns
    file = text(tmp_path / "t.jsonl", "".join([first, *others]))
    encoder, rows = read(file)
    for size in (10, 60, 200):
        other, same = read(file, block_size=size)
        assert same == rows and bytes_of(other) == bytes_of(encoder)
    assert [{name: row[name] for name in row if not name.startswith("note=")} for row in rows] == EXPECTED
    assert any(name.startswith("note=") for name in rows[5])
    names = ["n", "s", "b", "day", "tags", "v", "note", "o.p", "o.q.r", "o.q.late"]
    assert [column.name for column in encoder.columns[1:]] == names
    assert [column.since for column in encoder.columns[1:]] == [3, 3, 4, 4, 5, 5, 6, 6, 6, 7]
    layout, labels = Layout.of_encoder(encoder), {"v[2]": "2", "tags=b": "b", "day[month=3]": "3", "s=red": "red"}
    assert {name: layout.label(encoder.names().index(name)) for name in labels} == labels


@pytest.mark.parametrize("hash_bits", [0, 5])
def test_encoders_go_on_when_restored_and_encoders_of_shards_are_joined(hash_bits):
    shards = [
        {"x": [1.0, 2.0], "s": ["a", "b"]},
        {"x": [3.0, 4.0], "s": ["c", "a"], "n": [None, 7.5], "t": ["u", "v"]},
        {"x": [5.0], "s": ["d"], "t": ["u"]},
    ]
    start = TableEncoder.infer(chunk_of(shards[0]), hash_bits=hash_bits).state()
    whole, joined = TableEncoder.restore(*start), TableEncoder.restore(*start)
    for shard in shards:
        encoder = TableEncoder.restore(*start)
        for one in (whole, encoder):
            one.encode(chunk_of(shard), True, BadRows())
        joined.absorb(*encoder.state())
        arrays, header = whole.state()
        whole = TableEncoder.restore(arrays, json.loads(json.dumps(header)))
    assert joined.names() == whole.names() and joined.state()[1] == whole.state()[1]
    profiles = [encoder.profile for encoder in (joined, whole)]
    assert profiles[0].rows == profiles[1].rows and profiles[0].values.shape == profiles[1].values.shape
    assert np.array_equal(*(np.column_stack([profile.present, profile.ranges]) for profile in profiles))
    encoder = TableEncoder.restore(*start)
    encoder.encode(chunk_of({"x": [1.0], "s": ["a"], "n": ["word"]}), True, BadRows())
    with pytest.raises(DataError, match="column 'n': a category here, but a number in rows before; declare its type"):
        joined.absorb(*encoder.state())


def test_strings_of_lists_have_the_logarithms_of_their_own_counts():
    rows = named_rows(*encoded({"tags": [["b", "a", "b"], ["a", "b", "a", "a"]]}))
    assert rows == [{"tags=b": pytest.approx(np.log2(3)), "tags=a": 1.0}, {"tags=a": 2.0, "tags=b": 1.0}]

"""Columns become rows by type; nothing depends on where a stream is cut."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunefree.core.errors import DataError
from tunefree.core.rows import entries_of, n_rows, part
from tunefree.stream.arrays import cast
from tunefree.stream.batch import BadRows, Chunk, Position, row_numbers, with_row_numbers
from tunefree.stream.columns import (
    Faults,
    family,
)
from tunefree.stream.encoder import TableEncoder
from tunefree.stream.notation import ColumnTypes
from tunefree.stream.sequences import looks_like_text
from tunefree.stream.tables import read_tables

from .tabular import DATA, chunk_of, encoded, named_rows

# -- what each type becomes


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


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_all_kinds_of_strings_are_the_same_categories(kind):
    encoder, _ = encoded({"s": pa.array(["a", "b"])})
    batch = encoder.encode(chunk_of({"s": pa.array(["b", None, " a "], kind)}), True, BadRows())
    assert named_rows(encoder, batch) == [{"s=b": 1}, {"s[missing]": 1}, {"s=a": 1}]


def test_same_category_in_two_columns_is_two_features():
    encoder, _ = encoded({"s": ["a"], "t": ["a"]})
    assert encoder.names() == ["(constant)", "s=a", "t=a"]


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


@pytest.mark.parametrize("spelling", ["", "?", " ? ", "NaN", "nan", "  "])
def test_strings_that_hold_nothing(spelling):
    encoder, batch = encoded({"s": ["a", spelling]})
    assert named_rows(encoder, batch)[1] == {"s[missing]": 1}


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_become_calendar_codes_and_elapsed_days(unit):
    values = pa.array([dt.datetime(2020, 2, 29, 23), dt.datetime(1969, 12, 31, 11)], pa.timestamp(unit))
    encoder, batch = encoded({"t": values})
    first, second = named_rows(encoder, batch)
    assert first == {"t[year=2020]": 1, "t[month=2]": 1, "t[weekday=6]": 1, "t[hour=23]": 1}
    assert second == {
        "t[days]": pytest.approx(-18322.5),
        "t[year=1969]": 1,
        "t[month=12]": 1,
        "t[weekday=3]": 1,
        "t[hour=11]": 1,
    }


def test_calendar_fields_follow_the_time_zone():
    values = pa.array([dt.datetime(2020, 1, 1, 0, 30)], pa.timestamp("us")).cast(pa.timestamp("us", "America/New_York"))
    encoder, batch = encoded({"t": values})
    assert named_rows(encoder, batch) == [{"t[year=2019]": 1, "t[month=12]": 1, "t[weekday=2]": 1, "t[hour=19]": 1}]


def test_dates_have_no_hour_and_may_become_timestamps():
    encoder, batch = encoded({"d": pa.array([dt.date(2020, 1, 1)])})
    assert "d[hour=0]" not in encoder.names()
    later = encoder.encode(chunk_of({"d": pa.array([dt.datetime(2020, 1, 2, 12)])}), True, BadRows())
    assert named_rows(encoder, later)[0]["d[days]"] == 1.5


@pytest.mark.parametrize(
    "written",
    [
        ["2020-01-01", "2020-01-03"],
        ["2020-01-01 10:00", "2020-01-03T10:00:00"],
        ["2020-01-01T10:00Z", "2020-01-03 11:00+01:00"],
    ],
)
def test_strings_of_iso_dates_are_dates(written):
    encoder, batch = encoded({"d": [written[0], "?", written[1]]})
    first, second, third = named_rows(encoder, batch)
    assert second == {"d[missing]": 1} and third["d[days]"] == 2 and first["d[year=2020]"] == 1


def test_strings_that_are_not_all_dates_are_categories():
    encoder, _ = encoded({"d": ["2020-01-01", "soon"], "e": ["2020-01-01", "2020-13-01"]})
    assert encoder.names()[1:] == ["d=2020-01-01", "e=2020-01-01", "d=soon", "e=2020-13-01"]


def test_elapsed_time_counts_from_the_first_of_the_stream_not_of_the_chunk():
    encoder, _ = encoded({"d": pa.array([None, dt.date(2020, 1, 1)])})
    batch = encoder.encode(chunk_of({"d": pa.array([dt.date(2020, 1, 11)])}), True, BadRows())
    assert named_rows(encoder, batch)[0]["d[days]"] == 10


def test_times_of_day():
    encoder, batch = encoded({"t": pa.array([dt.time(7, 30)]), "s": ["23:15"]})
    assert named_rows(encoder, batch) == [{"t[hours]": 7.5, "t[hour=7]": 1, "s[hours]": 23.25, "s[hour=23]": 1}]


# -- texts

LONG = [
    "the quick brown fox jumps over the lazy dog, time and again",
    "a completely different and rather long sentence",
]


def test_words_and_pairs_get_logarithmic_counts():
    encoder, batch = encoded({"t": ["red red blue", "blue"]}, text=["t"])
    first, second = named_rows(encoder, batch)
    once = pytest.approx(np.log(2))
    assert first == {"t=red": pytest.approx(np.log(3)), "t=red red": once, "t=blue": once, "t=red blue": once}
    assert second == {"t=blue": once}


def test_unknown_words_leave_no_entry_when_not_learning():
    encoder, _ = encoded({"t": ["red"]}, text=["t"])
    before = encoder.n_features
    batch = encoder.encode(chunk_of({"t": ["red green", "green"]}), False, BadRows())
    assert np.diff(batch.rows.pointers).tolist() == [1, 0] and encoder.n_features == before


def test_texts_are_guessed_only_where_they_are_long_and_different():
    many = pa.array([f"{text} number {i}" for i in range(15) for text in LONG])
    assert looks_like_text(many)
    assert not looks_like_text(many[:19])
    assert not looks_like_text(pa.array(LONG * 15))
    assert not looks_like_text(pa.array([f"{i:050d}" for i in range(50)]))
    assert [column.kind for column in encoded({"t": many, "s": ["a"] * 30})[0].columns] == ["text", "category"]
    given = ColumnTypes(categorical=["t"])
    assert [column.kind for column in encoded({"t": many}, column_types=given)[0].columns] == ["category"]
    named, _ = encoded({"t": many, "s": ["a"] * 30}, text=["s"])  # adds a column, and changes no other
    assert [column.kind for column in named.columns] == ["text", "text"]


# -- target and weight


def test_target_and_weight_are_no_features():
    encoder, batch = encoded(
        {"y": [1, 0], "w": [0.0, 2.0], "x": [3, 4], "z": [1, 1]}, target="y", weight="w", ignore=["z"]
    )
    assert encoder.names() == ["(constant)", "x"]
    assert batch.target.to_pylist() == [1, 0] and batch.weight.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (pa.array([1, 2]), [1, 2]),
        (pa.array([0.5, 2]), [0.5, 2]),
        (pa.array([True, False]), [True, False]),
        (pa.array(["a", "b"]), ["a", "b"]),
        (pa.array(["a", "b"], pa.large_string()).dictionary_encode(), ["a", "b"]),
        (pa.array([5, 6]).dictionary_encode(), [5, 6]),
    ],
)
def test_targets_of_any_type(target, expected):
    _, batch = encoded({"y": target, "x": [1, 2]}, target="y")
    assert batch.target.to_pylist() == expected and batch.target.null_count == 0


@pytest.mark.parametrize(
    ("column", "values", "problem"),
    [
        ("y", [1.0, None], "the target is missing"),
        ("y", [1.0, float("nan")], "the target is missing"),
        ("y", ["a", "?"], "the target is missing"),
        ("y", [True, None], "the target is missing"),
        ("y", [1.0, float("inf")], "the target is infinite"),
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


def test_the_first_bad_row_is_reported_first_and_once():
    chunk = chunk_of({"x": [1.0, np.inf, np.inf], "y": [None, 1.0, None], "z": [0.0, 0.0, np.inf]})
    bad = BadRows(skip=True)
    batch = TableEncoder.infer(chunk, "y").encode(chunk, True, bad)
    assert bad.tally.count == 3 and n_rows(batch.rows) == 0
    assert [message.split(",")[1] for message in bad.tally.first] == [" row 1", " row 2", " row 3"]


def test_a_bad_row_teaches_no_category():
    chunk = chunk_of({"s": ["bad", "good"], "y": [None, 1.0]})
    encoder = TableEncoder.infer(chunk, "y")
    encoder.encode(chunk, True, BadRows(skip=True))
    assert encoder.names() == ["(constant)", "s=good"]


def test_bad_rows_found_while_reading_keep_their_numbers():
    table = with_row_numbers(pa.record_batch({"x": [1.0, np.inf, 3.0]}), np.array([4, 7, 9]))
    chunk = Chunk(table, "a", 4, Position())
    bad = BadRows(skip=True)
    assert TableEncoder.infer(chunk).encode(chunk, True, bad).numbers.tolist() == [4, 9]
    assert "row 7" in bad.tally.first[0]


# -- prediction


@pytest.fixture
def encoder():
    columns = {"age": [1.0, 2.0], "job": ["a", "b"], "y": ["no", "yes"], "w": [1.0, 2.0]}
    return encoded(columns, target="y", weight="w")[0]


def test_prediction_needs_neither_target_nor_weight_nor_order(encoder):
    batch = encoder.encode(chunk_of({"new": [9], "job": ["b"], "age": [3]}), False, BadRows())
    assert batch.target is None and batch.weight.tolist() == [1]
    assert named_rows(encoder, batch) == [{"age": 3, "job=b": 1}]


def test_an_unseen_category_is_nothing_known(encoder):
    before = encoder.state()
    batch = encoder.encode(chunk_of({"job": ["c"], "age": [3]}), False, BadRows())
    assert batch.rows.codes.tolist() == [[0]]
    assert all(np.array_equal(a, b) for a, b in zip(before[0].values(), encoder.state()[0].values(), strict=True))


def test_nulls_in_the_target_do_not_hinder_prediction_but_evaluation(encoder):
    chunk = chunk_of({"job": ["a"], "age": [1], "y": ["?"], "w": [-1.0]})
    assert encoder.encode(chunk, False, BadRows()).target.null_count == 1
    with pytest.raises(DataError, match="the target is missing"):
        encoder.encode(chunk, False, BadRows(), labelled=True)


@pytest.mark.parametrize("labelled", ["y", "w"])
def test_learning_needs_target_and_weight(encoder, labelled):
    columns = {"age": [1.0], "job": ["a"], "y": ["no"], "w": [1.0]}
    del columns[labelled]
    with pytest.raises(DataError, match=f"'{labelled}'"):
        encoder.encode(chunk_of(columns), True, BadRows())


def test_absent_columns_are_named(encoder):
    with pytest.raises(DataError, match="columns 'age', 'job' missing") as caught:
        encoder.encode(chunk_of({"jobb": ["a"]}, file="p.csv"), False, BadRows())
    assert caught.value.file == "p.csv" and "'jobb'" in str(caught.value)


# -- names and types


@pytest.mark.parametrize(
    "options", [{"target": "incom"}, {"weight": "incom"}, {"ignore": ["incom"]}, {"text": ["incom"]}]
)
def test_unknown_names_suggest_close_ones(options):
    with pytest.raises(DataError, match="'incom'.*did you mean 'income'"):
        TableEncoder.infer(chunk_of({"income": ["a"], "age": [1]}), **options)


def test_column_errors_when_the_encoder_is_made():
    nested = {"a": [1], "deep": [[[1, 2]]]}
    with pytest.raises(DataError, match="column 'deep'.*`ignore='deep'`"):
        TableEncoder.infer(chunk_of(nested))
    assert encoded(nested, ignore=["deep"])[0].names() == ["(constant)", "a"]
    with pytest.raises(DataError, match="`ignore="):
        TableEncoder.infer(chunk_of({"b": pa.array([b"\0"], pa.binary())}))
    with pytest.raises(DataError, match="two columns"):
        TableEncoder.infer(chunk_of(pa.record_batch([pa.array([1]), pa.array([2])], names=["a", "a"])))
    with pytest.raises(DataError, match="no column left"):
        TableEncoder.infer(chunk_of({"y": [1]}), target="y")
    with pytest.raises(DataError, match="target cannot be of type"):
        TableEncoder.infer(chunk_of({"y": [dt.date(2020, 1, 1)], "x": [1]}), target="y")
    with pytest.raises(DataError, match="text column must hold strings"):
        TableEncoder.infer(chunk_of({"y": [1], "x": [1]}), text=["x"])


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (pa.array([1.0]), pa.array([dt.date(2020, 1, 1)])),
        (pa.array([1.0]), pa.array([[1]])),
        (pa.array(["a"]), pa.array([1])),
        (pa.array([dt.date(2020, 1, 1)]), pa.array([1])),
        (pa.array([dt.time(1)]), pa.array([1])),
        (pa.array([True]), pa.array([1.5])),
    ],
)
def test_a_column_may_not_change_its_type(first, later):
    encoder, _ = encoded({"c": first})
    with pytest.raises(DataError, match="learned as") as caught:
        encoder.encode(chunk_of({"c": later}, first=40, file="b.parquet"), True, BadRows())
    assert (caught.value.file, caught.value.row, caught.value.column) == ("b.parquet", 40, "c")


def test_a_target_may_not_change_its_type():
    encoder, _ = encoded({"y": [1], "x": [1]}, target="y")
    with pytest.raises(DataError, match="row 1, column 'y': 'a' is not a number"):
        encoder.encode(chunk_of({"y": ["a"], "x": [1]}), True, BadRows())
    assert encoder.encode(chunk_of({"y": [1.5], "x": [1]}), True, BadRows()).target.to_pylist() == [1.5]


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
    batch = encoder.encode(chunk_of({"c": later}), True, BadRows())
    assert named_rows(encoder, batch) == [expected]


@pytest.mark.parametrize(
    ("first", "later", "problem"),
    [
        (pa.array([1.0]), pa.array(["1", "x"]), "'x' is not a number"),
        (pa.array(["2020-01-01"]), pa.array(["2020-01-02", "soon"]), "'soon' is no date"),
        (pa.array([True]), pa.array(["false", "maybe"]), "'maybe' is neither"),
        (pa.array([dt.time(1)]), pa.array(["10:00", "25:00"]), "'25:00' is no time"),
        (pa.array([dt.date(2020, 1, 1)]), pa.array([0, 10**14], pa.timestamp("s")), "is no date"),
    ],
)
def test_values_that_do_not_fit_are_bad_rows(first, later, problem):
    encoder, _ = encoded({"c": first})
    chunk = chunk_of({"c": later}, first=5)
    with pytest.raises(DataError, match=problem) as caught:
        encoder.encode(chunk, True, BadRows())
    assert (caught.value.row, caught.value.column) == (6, "c")
    assert encoder.encode(chunk, True, BadRows(skip=True)).numbers.tolist() == [5]


@pytest.mark.parametrize("kind", ["category", "text", "target", "dictionary"])
def test_strings_that_are_not_utf8_are_bad_rows(kind):
    broken = pa.array([b"ok", b"\xff\xfe"]).view(pa.string())
    broken = broken.dictionary_encode() if kind == "dictionary" else broken
    chunk = chunk_of({"s": broken, "x": [1, 2]})
    by_kind: dict[str, dict] = {"text": {"text": ["s"]}, "target": {"target": "s"}}
    options = by_kind.get(kind, {})
    with pytest.raises(DataError, match="row 2, column 's': the text is not UTF-8"):
        TableEncoder.infer(chunk, **options).encode(chunk, True, BadRows())
    assert TableEncoder.infer(chunk, **options).encode(chunk, True, BadRows(skip=True)).numbers.tolist() == [1]


def test_types_for_a_text_source_are_those_of_training(encoder):
    types = {"age": pa.float64(), "job": pa.string(), "y": pa.string(), "w": pa.float64()}
    assert encoder.types() == types
    assert encoded({"b": [True], "d": [dt.date(2020, 1, 1)]})[0].types() == {"b": pa.bool_(), "d": pa.string()}


def test_families_of_types():
    assert family(pa.dictionary(pa.int8(), pa.string())) == "string"
    assert family(pa.dictionary(pa.int8(), pa.int64())) == "category"
    assert family(pa.struct([])) == family(pa.binary()) == "nested"


# -- small parts


@given(st.lists(st.sampled_from(["1", "2.5", "x", "", None, "1e3"])))
def test_cast_finds_every_element_that_does_not_fit(values):
    found, failed = cast(pa.array(values, pa.string()), pa.float64())
    assert failed == [i for i, value in enumerate(values) if value in ("x", "")]
    assert found.null_count == sum(value in (None, "x", "") for value in values)


def test_faults_keep_the_first_of_each_row():
    faults = Faults()
    faults.add([2, 1], "a", lambda row: f"a{row}")
    faults.add([1, 0], "b", lambda row: f"b{row}")
    assert {row: fault.problem for row, fault in faults.items()} == {2: "a2", 1: "a1", 0: "b0"}
    assert row_numbers(chunk_of({"a": [1, 2]}, first=5)).tolist() == [5, 6]


# -- real data


@pytest.mark.skipif(not (DATA / "adult.parquet").exists(), reason="set TUNEFREE_DATA to the folder of data sets")
def test_adult_has_the_features_that_pandas_counts():
    import pandas as pd

    adult = pd.read_parquet(DATA / "adult.parquet")
    chunks = list(read_tables([str(DATA / "adult.parquet")], chunk_rows=10_000))
    encoder = TableEncoder.infer(chunks[0], target="income", ignore=["split"])
    batches = [encoder.encode(chunk, True, BadRows()) for chunk in chunks]
    strings = adult.drop(columns=["income", "split"]).select_dtypes(exclude="number")
    assert encoder.n_features == 1 + 6 + sum(strings[column].nunique(dropna=False) for column in strings)
    assert sum(n_rows(batch.rows) for batch in batches) == len(adult)
    total = np.zeros(encoder.n_features)
    for batch in batches:
        total += np.bincount(batch.rows.codes.ravel(), minlength=encoder.n_features)
    names = encoder.names()
    for column in strings:
        for value, count in strings[column].value_counts(dropna=False).items():
            known = not (pd.isna(value) or value == "?")
            assert total[names.index(f"{column}={value}" if known else f"{column}[missing]")] == count


# -- one row


def test_frames_of_one_row_are_encoded_as_one_of_many():
    rng, n = np.random.default_rng(0), 400
    day = np.datetime64("2020-01-01")
    columns = {
        "number": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
        "whole": rng.integers(0, 5, n),
        "job": [None if draw < 0.1 else "abcdefgh"[int(8 * draw)] for draw in rng.random(n)],
        "good": rng.random(n) < 0.5,
        "day": day + rng.integers(0, 900, n),
        "text": [" ".join(rng.choice(list("uvwxyz"), 6)) for _ in range(n)],
    }
    first, later = ({name: values[some] for name, values in columns.items()} for some in (slice(200), slice(200, n)))
    later["job"] = ["new" if job == "a" else job for job in later["job"]]
    encoder = TableEncoder.infer(chunk_of(first), text=["text"])
    encoder.encode(chunk_of(first), True, BadRows())
    many = encoder.encode(chunk_of(later), False, BadRows()).rows
    for i in list(range(n - 200)) * 2:
        alone = chunk_of({name: values[i : i + 1] for name, values in later.items()})
        expected = entries_of(part(many, i, i + 1))
        kept = entries_of(encoder.encode(alone, False, BadRows()).rows)
        of_one, of_many = kept.values != 0.0, expected.values != 0.0
        assert kept.indices[of_one].tolist() == expected.indices[of_many].tolist()
        assert kept.values[of_one].tobytes() == expected.values[of_many].tobytes()

"""Columns become rows by type; nothing depends on where a stream is cut."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunefree.core.errors import DataError
from tunefree.core.rows import n_rows
from tunefree.stream.arrays import cast
from tunefree.stream.batch import BadRows
from tunefree.stream.encoder import TableEncoder, renamed
from tunefree.stream.jsonlines import shown

from .tabular import chunk_of, encoded, named_rows


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
    assert second == {
        "t[days]": pytest.approx(-18322.5),
        "t[year=1969]": 1,
        "t[month=12]": 1,
        "t[weekday=3]": 1,
        "t[hour=11]": 1,
    }


def test_words_and_pairs_get_logarithmic_counts():
    encoder, batch = encoded({"t": ["red red blue", "blue"]}, text=["t"])
    first, second = named_rows(encoder, batch)
    once = pytest.approx(np.log(2))
    assert first == {"t=red": pytest.approx(np.log(3)), "t=red red": once, "t=blue": once, "t=red blue": once}
    assert second == {"t=blue": once}


def test_what_is_unknown_leaves_no_entry_and_no_trace_when_not_learning():
    encoder, _ = encoded({"t": ["red"], "job": ["a"]}, text=["t"])
    before = encoder.state()
    batch = encoder.encode(chunk_of({"t": ["red green", "green", "red"], "job": ["a", "a", "b"]}), False, BadRows())
    assert np.diff(batch.rows.pointers).tolist()[:2] == [1, 0] and batch.rows.codes[2].tolist() == [0]
    assert all(np.array_equal(a, b) for a, b in zip(before[0].values(), encoder.state()[0].values(), strict=True))


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


def test_a_bad_row_teaches_no_category():
    chunk = chunk_of({"s": ["bad", "good"], "y": [None, 1.0]})
    encoder = TableEncoder.infer(chunk, "y")
    encoder.encode(chunk, True, BadRows(skip=True))
    assert encoder.names() == ["(constant)", "s=good"]


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


@given(st.lists(st.sampled_from(["1", "2.5", "x", "", None, "1e3"])))
def test_cast_finds_every_element_that_does_not_fit(values):
    found, failed = cast(pa.array(values, pa.string()), pa.float64())
    assert failed == [i for i, value in enumerate(values) if value in ("x", "")]
    assert found.null_count == sum(value in (None, "x", "") for value in values)


# -- one row


def test_names_and_values_in_messages():
    assert renamed(["age", "amount"], ["amout", "day"]) == "'amout' is not known: did you mean 'amount'?"
    assert renamed(["amount"], ["sum"]) == "'sum' is not known: did you mean 'amount'?"
    assert renamed(["age", "amount"], ["day"]) == ""
    assert shown([None, True]) == "[null, true]" and shown("a") == "'a'"

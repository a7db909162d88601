"""Columns of text are what columns of typed values are: one function decides, for features, targets, later columns."""

import pyarrow as pa
import pytest

from tunefree.stream.batch import BadRows
from tunefree.stream.encoder import TableEncoder
from tunefree.stream.notation import ColumnTypes, Notation
from tunefree.stream.schema import FileNotation, values_of_texts

from .tabular import chunk_of, encoded, named_rows

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
def test_a_target_of_texts_is_what_it_is_typed(target, family):
    rows = [0, 1, 3]  # those that have a label
    typed, batch = encoded({name: pa.array(values).take(rows) for name, values in TYPED.items()}, target=target)
    texts = {name: [values[row] for row in rows] for name, values in TEXTS.items()}
    untyped, batch_of_texts = encoded(texts, target=target, typed=False)
    assert untyped.target_family == typed.target_family == family
    assert batch_of_texts.target.to_pylist() == batch.target.to_pylist()


def test_integers_of_a_target_keep_their_digits():
    first = 2**53 + 1
    encoder = TableEncoder.infer(chunk_of({"y": [str(first), "7"], "x": ["1", "2"]}), "y", typed=False)
    batch = encoder.encode(chunk_of({"y": [str(first), "7"], "x": ["1", "2"]}), True, BadRows())
    assert batch.target.to_pylist() == [first, 7]
    assert str(values_of_texts({"y": pa.array(["NA", str(first)])}, ColumnTypes(), False, "y")["y"].type) == "int64"
    zeros = {"y": [f"{k:05d}" for k in range(200)], "x": ["1"] * 200}
    assert TableEncoder.infer(chunk_of(zeros), "y", typed=False).target_family == "number"


def test_a_column_tells_the_notation_of_another():
    strings = {"price": pa.array(["1.868", "2.411"]), "tax": pa.array(["1,5", "2,25"])}
    assert FileNotation({"price": strings["price"]}, {"price": None}).number_notation("price") is None
    assert FileNotation(strings, {"price": None, "tax": None}).number_notation("price") == Notation(",", ".")

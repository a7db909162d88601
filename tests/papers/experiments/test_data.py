"""Columns become features as the papers make them."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tunefree.core.rows import entries_of, n_rows
from tunefree.papers.experiments import data


def features_of(X):
    """Each row as a dictionary without zeros."""
    starts, ends, *entries = (array.tolist() for array in entries_of(X))
    pairs = list(zip(*entries, strict=True))
    return [{j: x for j, x in pairs[start:end] if x} for start, end in zip(starts, ends, strict=True)]


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A data set of six rows: a number, a category with a missing value, and a group of indicators."""
    table = pa.table(
        {
            "age": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            "job": ["a", "b", None, "a", "b", "a"],
            "soil1": [1, 0, 0, 1, 0, 0],
            "soil2": [0, 1, 0, 0, 1, 1],
            "id": [7, 7, 7, 7, 7, 7],
            "y": ["no", "yes", "no", "yes", "no", "yes"],
            "split": ["train"] * 4 + ["test"] * 2,
        }
    )
    parquet.write_table(table, tmp_path / "small.parquet")
    small = data.DataSet("Small", "small.parquet", "y", "a test", drop=("id",), indicators=("soil",))
    monkeypatch.setitem(data.ALL, "Small", small)
    return tmp_path / "small.parquet"


def test_categories_and_missing_values_are_features(small):
    prepared = data.prepare("Small", small)
    assert prepared.labels == ["no", "yes"]
    assert prepared.n_features == 1 + 1 + 3 + 2  # constant, age, a, b and missing, two soils
    found = {features[1]: features for features in features_of(prepared.train) + features_of(prepared.test)}
    missing, a, b = 2, 3, 4  # in the order of the alphabet: a bracket comes before letters
    assert found[1.0] == {0: 1.0, 1: 1.0, a: 1.0, 5: 1.0}
    assert found[2.0] == {0: 1.0, 1: 2.0, b: 1.0, 6: 1.0}
    assert found[3.0] == {0: 1.0, 1: 3.0, missing: 1.0}
    classes = dict(zip((f[1] for f in features_of(prepared.test)), prepared.test_classes, strict=True))
    assert classes == {5.0: 0, 6.0: 1}


def test_mostly_empty_numbers_are_stored_without_zeros(tmp_path, monkeypatch):
    values = np.zeros((9, 4))
    values[3, 2] = 5.0
    columns = {f"p{j}": values[:, j] for j in range(4)} | {"y": [0, 1, 2] * 3}
    parquet.write_table(pa.table(columns), tmp_path / "pixels.parquet")
    monkeypatch.setitem(data.ALL, "Pixels", data.DataSet("Pixels", "pixels.parquet", "y", "a test"))
    prepared = data.prepare("Pixels", tmp_path / "pixels.parquet")
    assert prepared.n_features == 5
    assert not prepared.train.is_table  # trees do not see words of tables
    assert len(prepared.train.values) + len(prepared.test.values) == 1
    assert {3: 5.0, 0: 1.0} in features_of(prepared.train) + features_of(prepared.test)
    assert (n_rows(prepared.train), n_rows(prepared.test)) == (6, 3)

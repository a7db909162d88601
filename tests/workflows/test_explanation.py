"""Explanations of predictions as tables: contributions that add up, of the class asked for, of the strongest terms."""

import numpy as np
import pytest
from pyarrow import csv, parquet

from tests.explanation.models import features, margins_of, rows_of, trained
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source
from tunefree.workflows import explanation
from tunefree.workflows.prediction import columns, predict

PLAIN = ["prediction", "class", "margin", "(constant)"]


def numbers(table, first=3):
    """The contributions of a table of explanations."""
    return np.column_stack([column.to_numpy() for column in table.columns[first:]])


def written(target, path, label=None, top=None, seed=1):
    """What is written of rows that were not learned."""
    data = features(200, seed=seed, target=target)
    told = explanation.write(trained(target), open_source(data), str(path), BadRows(), label, top)
    assert told[0] == 200
    return (parquet.read_table if path.suffix == ".parquet" else csv.read_csv)(path), data, told


@pytest.mark.parametrize("target", ["rich", "mood", "pay"])
def test_contributions_add_up_to_the_margin_that_is_explained(target, tmp_path):
    table, data, told = written(target, tmp_path / "why.parquet")
    model = trained(target)
    plain = PLAIN if target != "pay" else ["prediction", *PLAIN[2:]]
    assert table.column_names == [*plain[:-1], *told[1].names]
    predicted = next(iter(predict(model, open_source(data), BadRows())))
    assert table["prediction"].to_pylist() == columns(model.model, predicted)["prediction"].to_pylist()
    margins = margins_of(model.model, rows_of(model, data))
    explained = margins[:, 0]
    if target == "rich":
        assert set(table["class"].to_pylist()) == {"yes"}
    if target == "mood":
        assert table["class"].to_pylist() == table["prediction"].to_pylist()
        explained = margins[np.arange(200), [model.model.classes.index(label) for label in table["class"].to_pylist()]]
    np.testing.assert_allclose(table["margin"], explained, rtol=0, atol=1e-9 * np.abs(explained).max())
    np.testing.assert_allclose(
        numbers(table, len(plain) - 1).sum(axis=1), explained, atol=1e-9 * np.abs(explained).max()
    )

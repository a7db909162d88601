"""Explanations of predictions as tables: contributions that add up, of the class asked for, of the strongest terms."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from tests.explanation.models import features, margins_of, rows_of, trained
from tunefree.core.errors import DataError, ModelError
from tunefree.model_files.plan import Plan
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source
from tunefree.training.training import train
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


@pytest.mark.parametrize(("target", "label", "other"), [("rich", "no", "yes"), ("mood", "fair", "good")])
def test_a_class_can_be_asked_for(target, label, other, tmp_path):
    table, data, _ = written(target, tmp_path / "why.csv", label)
    model = trained(target).model
    assert set(table["class"].to_pylist()) == {label}
    margins = margins_of(model, rows_of(trained(target), data))
    expected = margins[:, model.classes.index(label)] if target == "mood" else -margins[:, 0]
    np.testing.assert_allclose(table["margin"], expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    opposite, _, _ = written(target, tmp_path / "other.csv", other)
    assert not np.allclose(opposite["margin"], table["margin"])
    with pytest.raises(ModelError, match="no class 'great'"):
        written(target, tmp_path / "none.csv", "great")
    assert not (tmp_path / "none.csv").exists()


def test_all_but_the_strongest_terms_are_added_up(tmp_path):
    table, _, _ = written("rich", tmp_path / "why.csv")
    some, _, _ = written("rich", tmp_path / "some.csv", top=2)
    sizes = {name: np.abs(table[name]).mean() for name in table.column_names[4:]}
    strongest = sorted(sizes, key=sizes.get)[:-3:-1]
    assert some.column_names == [*PLAIN, *strongest, "(other)"]
    others = sum(table[name].to_numpy() for name in sizes if name not in strongest)
    np.testing.assert_allclose(some["(other)"], others, atol=1e-9)
    assert some["margin"].equals(table["margin"])
    every, _, _ = written("rich", tmp_path / "every.csv", top=1000)
    assert every.equals(table)


def test_columns_are_told_from_what_stands_beside_them(tmp_path):
    rng = np.random.default_rng(0)
    data = {"margin": rng.normal(size=300), "class": rng.normal(size=300)}
    data["y"] = np.where(data["margin"] > data["class"], "a", "b")
    model = train(open_source(data), Plan(target="y", learner="scinol2"))
    explanation.write(model, open_source(data), str(tmp_path / "why.csv"), BadRows())
    names = csv.read_csv(tmp_path / "why.csv").column_names
    assert len(set(names)) == len(names) and {"margin'", "class'"} < set(names)


def test_on_the_command_line(run, tmp_path):
    trained("mood").save(tmp_path / "m")
    data = features(50, seed=1, target="mood")
    csv.write_csv(pa.table(data).drop_columns("mood"), tmp_path / "d.csv")
    status, out, err = run("explain", tmp_path / "m", tmp_path / "d.csv", "--top", 1, "--class", "good")
    lines = out.splitlines()
    assert status == 0 and len(lines) == 51
    assert lines[0].startswith('"prediction","class","margin","(constant)","') and lines[0].endswith('"(other)"')
    assert "Contributions add up to the log-odds, and are relative to their mean over 1,024 rows." in err
    status, out, err = run("explain", tmp_path / "m", tmp_path / "d.csv", "-o", tmp_path / "why.parquet")
    assert (status, out) == (0, "") and "50 explanations in" in err
    text = (tmp_path / "d.csv").read_bytes()
    assert run("explain", tmp_path / "m", "-", stdin=text)[0] == 0
    status, out, err = run("explain", tmp_path / "m", "-", "--top", 1, stdin=text)
    assert (status, out) == (2, "") and "leave --top out" in err


def test_bad_rows_are_counted_once(tmp_path):
    bad = BadRows(skip=True)
    (tmp_path / "d.csv").write_text("age,income,flag,job,day\n30,1,0,cook,2021-02-03\nold,1,0,cook,2021-02-03\n")
    told = explanation.write(trained("rich"), open_source(tmp_path / "d.csv"), str(tmp_path / "why.csv"), bad, None, 2)
    assert (told[0], bad.tally.count) == (1, 1)
    assert csv.read_csv(tmp_path / "why.csv")["row"].to_pylist() == [1]
    with pytest.raises(DataError, match="no rows"):
        explanation.sample_of(trained("rich"), open_source({"age": []}))


def test_what_a_model_has_learned_is_told(run, tmp_path):
    trained("mood").save(tmp_path / "m")
    status, out, _ = run("inspect", tmp_path / "m", "--top", 3)
    assert status == 0
    assert "column" in out and "standard error" in out and "where the column is permuted" in out
    figures = json.loads(run("inspect", tmp_path / "m", "--top", 3, "--json")[1])
    assert [sorted(column) for column in figures["terms"]] == [["column", "importance", "noise", "standard_error"]] * 3
    assert 0 < figures["beyond_noise"] < 6
    of_one = json.loads(run("inspect", tmp_path / "m", "--json", "--class", "good")[1])
    assert of_one["terms"] != json.loads(run("inspect", tmp_path / "m", "--json")[1])["terms"]


def test_a_model_without_a_sample_is_looked_at_over_given_rows(run, tmp_path):
    trained("rich", learner="scinol2").save(tmp_path / "m")
    parquet.write_table(pa.table(features(300, target="rich")), tmp_path / "d.parquet")
    assert "standard error" not in run("inspect", tmp_path / "m")[1]
    status, out, _ = run("inspect", tmp_path / "m", "--rows", tmp_path / "d.parquet")
    assert status == 0 and "mean absolute contribution to the log-odds, over 300 rows" in out
    status, _, err = run("inspect", tmp_path / "m", "--plot", tmp_path / "plot.png")
    assert status == 2 and "pass --rows DATA" in err

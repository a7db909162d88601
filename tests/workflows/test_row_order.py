"""Sorted files: they are noticed, their errors are not taken for those of new rows, and `--shuffle` helps."""

import json
from importlib.resources import files

import pytest
from pyarrow import compute, parquet

from tests.interruptions import assert_resumed
from tests.workflows.test_training import people
from tunefree import Plan, open_source
from tunefree.stream import shuffle, tables

QUICK = ("--learner", "scinol2")


@pytest.fixture(scope="module")
def adult(tmp_path_factory):
    """The census data in their own order, and sorted by their target."""
    folder = tmp_path_factory.mktemp("adult")
    table = parquet.read_table(str(files("tunefree") / "data" / "adult.parquet"))
    rows = table.filter(compute.equal(table["split"], "train")).drop_columns("split").slice(0, 12_000)
    parquet.write_table(rows, folder / "own.parquet")
    parquet.write_table(rows.sort_by("income"), folder / "sorted.parquet")
    test = table.filter(compute.equal(table["split"], "test")).drop_columns("split").slice(0, 4_000)
    parquet.write_table(test, folder / "test.parquet")
    return folder


def error(run, model, path):
    return json.loads(run("evaluate", model, path, "--json")[1])["error"]


def test_sorted_census_data(run, done, adult, tmp_path):
    model = tmp_path / "m"
    out, err = done("train", adult / "sorted.parquet", "-t", "income", "-o", model, *QUICK)
    assert "sorted by the target" in out and "--shuffle" in out
    assert error(run, model, adult / "test.parquet") > 0.5
    found = json.loads(run("certify", model, "--json")[1])
    assert "risk" not in found and found["order"]["sorted"]
    told = run("certify", model)[1]
    assert "no bound on the error to come" in told and "confidence" not in told
    assert "sorted by the target" in run("inspect", model)[1]
    assert json.loads(run("inspect", model, "--json")[1])["order"]["depends_on_rows"]
    status, out, err = run("train", adult / "sorted.parquet", "-t", "income", "-o", model, *QUICK, "--shuffle")
    assert status == 0 and "warning" not in out, err
    wrong = error(run, model, adult / "test.parquet")
    assert wrong < 0.17
    assert wrong < json.loads(run("certify", model, "--json")[1])["risk"]["error"] < 0.18


@pytest.mark.parametrize("is_shuffled", [False, True])
def test_training_of_a_table_in_memory_is_resumed_to_the_byte(tmp_path, monkeypatch, is_shuffled):
    for module in (shuffle, tables):
        monkeypatch.setattr(module, "CHUNK_ROWS", 200)
    plan = Plan(target="rich", learner="scinol2", ignore=("pay",), shuffle=is_shuffled)
    assert_resumed(open_source(people()), plan, tmp_path, 300)

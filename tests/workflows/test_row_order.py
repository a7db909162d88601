"""Sorted files: they are noticed, their errors are not taken for those of new rows, and `--shuffle` helps."""

import json

import pyarrow as pa
import pytest
from pyarrow import csv

from tests.interruptions import assert_resumed
from tests.workflows.test_training import people
from tunefree import Plan, open_source
from tunefree.stream import shuffle, tables

QUICK = ("--learner", "scinol2")


def test_sorted_files_are_noticed(run, done, tmp_path):
    model, rows, new = tmp_path / "m", tmp_path / "rows.csv", tmp_path / "new.csv"
    csv.write_csv(pa.table(people(12_000)).sort_by("rich").drop_columns("pay"), rows)
    csv.write_csv(pa.table(people(4000, 1)).drop_columns("pay"), new)
    out, err = done("train", rows, "-t", "rich", "-o", model, *QUICK)
    assert "sorted by the target" in out and "--shuffle" in out
    error_if_sorted = json.loads(run("evaluate", model, new, "--json")[1])["error"]
    found = json.loads(run("certify", model, "--json")[1])
    assert "risk" not in found and found["order"]["sorted"]
    told = run("certify", model)[1]
    assert "no bound on the error to come" in told and "confidence" not in told
    assert "sorted by the target" in run("inspect", model)[1]
    assert json.loads(run("inspect", model, "--json")[1])["order"]["depends_on_rows"]
    assert "warning" not in done("train", rows, "-t", "rich", "-o", model, *QUICK, "--shuffle")[0]
    wrong = json.loads(run("evaluate", model, new, "--json")[1])["error"]
    assert 2 * wrong < error_if_sorted
    assert wrong < json.loads(run("certify", model, "--json")[1])["risk"]["error"] < wrong + 0.05


@pytest.mark.parametrize("is_shuffled", [False, True])
def test_training_of_a_table_in_memory_is_resumed_to_the_byte(tmp_path, monkeypatch, is_shuffled):
    for module in (shuffle, tables):
        monkeypatch.setattr(module, "CHUNK_ROWS", 200)
    plan = Plan(target="rich", learner="scinol2", ignore=("pay",), shuffle=is_shuffled)
    assert_resumed(open_source(people()), plan, tmp_path, 300)

"""What is told of a model that stands still: after training, by `inspect`, and by `evaluate --progressive`."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from pyarrow import csv

from tests.cli.test_cli import run  # noqa: F401 - a fixture
from tests.model.test_deployment import drifting


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    """A stream that drifts, in two files."""
    folder = tmp_path_factory.mktemp("stream")
    rows, y = drifting(3600)
    columns = {f"x{j}": rows.numbers[:, j].round(3) for j in range(rows.numbers.shape[1])}
    table = pa.table(columns | {"y": pa.array(["no", "yes"]).take(pa.array(y))})
    for name, part in (("past.csv", table.slice(0, 2400)), ("next.csv", table.slice(2400))):
        csv.write_csv(part, folder / name)
    return folder


@pytest.mark.slow
def test_drift_is_told_and_can_be_followed(run, stream, tmp_path):  # noqa: F811
    model = tmp_path / "m"
    status, out, err = run("train", stream / "past.csv", "-t", "y", "-o", model)
    assert status == 0, err
    assert "log-loss on the way lately" in out and "over the next 2,400 rows" in out
    assert "the stream drifts" in " ".join(out.split())
    known = json.loads(run("inspect", model, "--json")[1])["after_the_end"]
    assert known["drifts"] and known["loss"] > known["recent"] and len(known["ages"]) == 8
    out = run("inspect", model, "--decay", tmp_path / "decay.svg")[1]
    assert "rows after the end" in out and "2,101 to 2,400" in out and "new rows" in out
    assert (tmp_path / "decay.svg").read_text().startswith("<?xml")

    before = model.read_bytes()
    still, on = (
        json.loads(run("evaluate", model, stream / "next.csv", "--json", *more)[1]) for more in ((), ("--progressive",))
    )
    assert on["rows"] == still["rows"] == 1200 and on["log_loss"] < still["log_loss"]
    assert model.read_bytes() == before


def test_horizons(run, stream, tmp_path):  # noqa: F811
    status, out, err = run("train", stream / "past.csv", "-t", "y", "-o", tmp_path / "m", "--horizon", 300)
    assert status == 0 and "over the next 300 rows" in out, err
    status, _, err = run("train", stream / "past.csv", "-t", "y", "-o", tmp_path / "m", "--horizon", 0)
    assert status == 2 and "--horizon" in err
    assert json.loads(run("inspect", tmp_path / "m", "--json")[1])["after_the_end"]["horizon"] == 300


def test_of_a_single_learner_nothing_is_known(run, stream, tmp_path):  # noqa: F811
    model = tmp_path / "m"
    assert "lately" not in run("train", stream / "past.csv", "-t", "y", "-o", model, "--learner", "scinol2")[1]
    assert "after_the_end" not in json.loads(run("inspect", model, "--json")[1])
    status, _, err = run("inspect", model, "--decay", tmp_path / "decay.svg")
    assert status == 2 and "pool" in err and not (tmp_path / "decay.svg").exists()

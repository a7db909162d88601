"""What is told of a model that stands still: after training, by `inspect`, and by `evaluate --progressive`."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    """A stream that drifts, in two files."""
    folder = tmp_path_factory.mktemp("stream")
    rng, turn = np.random.default_rng(0), np.linspace(0.0, 3.0, 3600)
    x = rng.normal(size=(3600, 5)).round(3)
    score = 2.0 * np.cos(turn) * x[:, 0] + 2.0 * np.sin(turn) * x[:, 1] + x[:, 2] + 0.5 * rng.normal(size=3600)
    table = pa.table({f"x{j}": x[:, j] for j in range(5)} | {"y": np.where(score > 0.0, "yes", "no")})
    for name, part in (("past.csv", table.slice(0, 2400)), ("next.csv", table.slice(2400))):
        csv.write_csv(part, folder / name)
    return folder


@pytest.mark.slow
def test_drift_can_be_followed(run, stream, tmp_path):
    model = tmp_path / "m"
    status, out, err = run("train", stream / "past.csv", "-t", "y", "-o", model)
    assert status == 0, err
    before = model.read_bytes()
    still, on = (
        json.loads(run("evaluate", model, stream / "next.csv", "--json", *more)[1]) for more in ((), ("--progressive",))
    )
    assert on["rows"] == still["rows"] == 1200 and on["log_loss"] < still["log_loss"]
    assert model.read_bytes() == before

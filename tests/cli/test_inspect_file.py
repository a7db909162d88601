"""`tunefree inspect --file`: what a model file holds."""

from __future__ import annotations

import json

from tests.cli.test_cli import data, model  # noqa: F401 - fixtures
from tunefree.core import storage


def test_all_arrays_are_listed_with_their_bytes(run, model):  # noqa: F811
    status, out, _ = run("inspect", model, "--file", "--json")
    listed, (arrays, header) = json.loads(out), storage.load(model)
    assert status == 0 and listed["header"] == json.loads(json.dumps(header))
    assert [(array["name"], array["shape"], array["type"]) for array in listed["arrays"]] == [
        (name, list(array.shape), str(array.dtype)) for name, array in sorted(arrays.items())
    ]
    total = sum(array["bytes"] for array in listed["arrays"])
    assert 0.5 * model.stat().st_size < total < model.stat().st_size
    status, out, _ = run("inspect", model, "--file")
    assert status == 0 and f"{len(arrays):,} arrays, {total:,} bytes" in out
    assert "encoder.keys" in out and "that of the plan" in out and "rich" in out

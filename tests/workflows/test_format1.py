"""Model files written before version 2 of the format: they load, predict as they did, and are saved anew.

The files of ``format1/`` were written by the package as it was before its states and headers got the names they have
now. ``predictions.json`` holds what it predicted of the rows in ``rows.json``. A column is called ``choice``, as a key
of headers was.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tunefree.core import storage
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source
from tunefree.workflows import model_files, prediction

FOLDER = Path(__file__).parent / "format1"
EXPECTED = json.loads((FOLDER / "predictions.json").read_text())
ROWS = json.loads((FOLDER / "rows.json").read_text())
SINGLE = ("kernel", "waiting")  # kernels in single precision, whose sums each processor takes in its own order
TASKS = {"scinol2": "classes", "hinge": "classes", "cocob-regression": "numbers"}


def predicted(trained, name, folder):
    rows = {column: values for column, values in ROWS[TASKS.get(name, "binary")].items() if column not in ("kind", "y")}
    prediction.write(trained, open_source(rows), str(folder / "predictions.parquet"), BadRows(False))
    table = pq.read_table(folder / "predictions.parquet")
    return {column: table.column(column).to_pylist() for column in table.column_names if column != "row"}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_files_of_format_1_predict_as_they_did(name, tmp_path):
    assert storage.load(FOLDER / f"{name}.model")[1]["format"] == 1
    trained = model_files.load(FOLDER / f"{name}.model")
    found = predicted(trained, name, tmp_path)
    assert set(found) == set(EXPECTED[name])
    rtol = 1e-6 if name.startswith(SINGLE) else 1e-9
    for column, values in EXPECTED[name].items():
        if isinstance(values[0], float):
            np.testing.assert_allclose(found[column], values, rtol=rtol, atol=1e-12)
        else:
            assert found[column] == values
    trained.save(tmp_path / "anew")
    assert storage.load(tmp_path / "anew")[1]["format"] == storage.FORMAT
    assert predicted(model_files.load(tmp_path / "anew"), name, tmp_path) == found

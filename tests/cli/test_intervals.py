"""`tunefree predict` writes intervals, quantiles and sets, and `certify` how often the next row was covered."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from tunefree import load

N = 700


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """A table with a number and a class that depend on two columns."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("rows")
    x, z = rng.normal(size=(2, N))
    y, label = 2.0 * x + rng.normal(size=N), np.array(["ann", "bob, jr", 'c"d'])[np.digitize(x + z, [-0.7, 0.7])]
    for name, target in (("numbers", y), ("classes", label)):
        csv.write_csv(pa.table({"x": x, "z": z, "y": target}), folder / f"{name}.csv")
    return folder


@pytest.fixture
def model(rows, run):
    def of(name, *options):
        path = rows / f"{name}{len(options)}.model"
        if not path.exists():
            status, _, err = run("train", rows / f"{name}.csv", "-t", "y", "-o", path, *options)
            assert status == 0, err
        return path

    return of


def test_intervals_and_quantiles_are_columns(rows, model, run, tmp_path):
    out = tmp_path / "out.parquet"
    options = "--interval", "0.5,.9", "--quantiles", ".1,.95"
    status, _, err = run("predict", model("numbers"), rows / "numbers.csv", "-o", out, *options, "--id", "x")
    assert status == 0, err
    table = parquet.read_table(out)
    bounds = ["low[0.5]", "high[0.5]", "low[0.9]", "high[0.9]", "quantile[0.1]", "quantile[0.95]"]
    assert table.column_names == ["x", "prediction", *bounds]
    read, estimator = csv.read_csv(rows / "numbers.csv"), load(model("numbers"))
    expected = estimator.predict_interval(read.drop_columns("y"), [0.5, 0.9])
    np.testing.assert_array_equal(table["low[0.9]"].to_numpy(), expected[:, 1, 0])
    np.testing.assert_array_equal(table["high[0.5]"].to_numpy(), expected[:, 0, 1])
    np.testing.assert_array_equal(table["quantile[0.95]"].to_numpy(), expected[:, 1, 1])

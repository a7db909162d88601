"""Weights of classes on the command line."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from tests.workflows.test_training import people
from tunefree.model_files.trained import Trained

QUICK = ("-t", "rich", "--learner", "scinol2")


@pytest.fixture
def files(tmp_path):
    """Rows of which a tenth are of a class, and the same with the weights that balance the classes as a column."""
    table = pa.table(people()).drop_columns("pay")
    rich = np.array(table["rich"].to_pylist()) == "yes"
    table = table.filter(pa.array(~rich | (np.cumsum(rich) % 9 == 0)))
    rich = np.array(table["rich"].to_pylist()) == "yes"
    share = rich.mean()
    assert share < 0.2
    weights = np.where(rich, 0.5 / share, 0.5 / (1.0 - share))
    csv.write_csv(table, tmp_path / "rare.csv")
    csv.write_csv(table.append_column("w", pa.array(weights)), tmp_path / "weighted.csv")
    return tmp_path, float(weights[np.argmax(rich)]), float(weights[np.argmin(rich)])


def weights_of(path):
    arrays, header = Trained.load(path).model.save_state()
    return header, {name: array.tobytes() for name, array in arrays.items()}


def test_balanced_weights_are_those_of_a_column(files, run):
    folder, yes, no = files
    given = ("--class-weight", f"yes={yes!r}", "--class-weight", f"no={no!r}")
    for data, name, options in (
        ("weighted.csv", "column", ("--weight", "w")),
        ("rare.csv", "balanced", ("--class-weight", "balanced")),
        ("rare.csv", "given", given),
        ("weighted.csv", "both", ("--weight", "w", "--class-weight", "balanced")),
        ("rare.csv", "as they are", ()),
    ):
        status, _, err = run("train", folder / data, "-o", folder / name, *QUICK, *options)
        assert status == 0, err
    assert weights_of(folder / "balanced") == weights_of(folder / "column") == weights_of(folder / "given")
    assert weights_of(folder / "as they are") != weights_of(folder / "given")
    trained = Trained.load(folder / "balanced")
    assert trained.plan.class_weight[0].startswith("no=") and trained.progress.progressive[0].weight > 0
    shares = [float(weight.partition("=")[2]) for weight in Trained.load(folder / "both").plan.class_weight]
    assert shares == pytest.approx([1.0, 1.0])  # rows that have weights are balanced with these


def test_rows_of_a_class_of_weight_0_are_not_learned(files, run):
    folder, *_ = files
    status, _, err = run("train", folder / "rare.csv", "-o", folder / "m", *QUICK, "--class-weight", "no=0")
    assert status == 0, err
    n_learned = csv.read_csv(folder / "rare.csv")["rich"].to_pylist().count("yes")
    assert Trained.load(folder / "m").progress.progressive[0].weight == n_learned

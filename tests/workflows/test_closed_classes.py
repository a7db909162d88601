"""Classes that are named beforehand, and classes of very few rows, on the command line and in Python."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import tunefree
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.stream.source import open_source
from tunefree.training.training import train
from tunefree.workflows.findings import rare_classes

QUICK = ("-t", "label", "--learner", "scinol2")
CLOSED = ("--classes", "no", "--classes", "yes", "--on-bad-row", "skip")


def rows(n=1200, odd=(700,)):
    """A table of two classes, with odd labels in some rows."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    label = np.where(x + rng.normal(size=n) > 0, "yes", "no").astype("U3")
    label[list(odd)] = "goo"
    return {"x": x, "label": label}


@pytest.fixture
def odd_file(tmp_path):
    csv.write_csv(pa.table(rows()), tmp_path / "odd.csv")
    return tmp_path / "odd.csv"


def test_a_closed_set_leaves_the_weights_of_the_other_rows(odd_file, run):
    folder, table = odd_file.parent, pa.table(rows())
    csv.write_csv(table.filter(pa.array(table["label"].to_numpy() != "goo")), folder / "clean.csv")
    for data, name, options in ((odd_file, "a", CLOSED), (folder / "clean.csv", "b", ())):
        assert run("train", data, "-o", folder / name, "-t", "label", *options)[0] == 0
    arrays = [Trained.load(folder / name).model.save_state()[0] for name in "ab"]
    assert {name: a.tobytes() for name, a in arrays[0].items()} == {name: a.tobytes() for name, a in arrays[1].items()}


def test_a_model_that_goes_on_keeps_its_classes(odd_file, run):
    folder = odd_file.parent
    assert run("train", odd_file, "-o", folder / "a", *QUICK, *CLOSED)[0] == 0
    more = ("train", odd_file, "--from", folder / "a", "-o", folder / "b")
    status, _, err = run(*more)
    assert status == 2 and "'goo'" in err and "row 701" in err
    assert run(*more, "--on-bad-row", "skip")[0] == 0
    assert Trained.load(folder / "b").plan.classes == ("no", "yes")
    status, _, err = run(*more, "--classes", "no", "--classes", "goo")
    assert status == 2 and "--classes" in err


@pytest.mark.parametrize(("odd", "places"), [((700,), "row 701"), ((700, 900), "rows 701 and 901")])
def test_rare_classes_are_reported(odd, places, tmp_path, run):
    csv.write_csv(pa.table(rows(odd=odd)), tmp_path / "odd.csv")
    status, out, _ = run("train", tmp_path / "odd.csv", "-o", tmp_path / "m", *QUICK)
    lines = [line for line in out.splitlines() if "'goo'" in line]
    assert status == 0 and len(lines) == 1
    assert places in lines[0] and "--classes" in lines[0]
    with pytest.warns(UserWarning, match=f"'goo'.*{places}.*`classes`"):
        tunefree.train(rows(odd=odd), target="label", learner="scinol2")
    plan = Plan(target="label", learner="scinol2", shuffle=True, random_state=1)
    shuffled = train(open_source(str(tmp_path / "odd.csv")), plan)
    assert all(str(row + 1) in rare_classes(shuffled)[0].evidence for row in odd)

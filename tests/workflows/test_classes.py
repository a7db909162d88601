"""Classes: their weights, names that are closed, classes of few rows, and labels of other types."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import tunefree
from tests.pool.rows import bytes_of
from tests.workflows.test_training import people
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.pool.targets import Labels
from tunefree.stream.source import open_source
from tunefree.training.targets import class_factors, weights_by_label
from tunefree.training.training import with_weights

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
    return bytes_of(Trained.load(path).model)


def test_balanced_weights_equal_a_column_of_weights(files, done):
    folder, yes, no = files
    given = ("--class-weight", f"yes={yes!r}", "--class-weight", f"no={no!r}")
    for data, name, options in (
        ("weighted.csv", "column", ("--weight", "w")),
        ("rare.csv", "balanced", ("--class-weight", "balanced")),
        ("rare.csv", "given", given),
        ("weighted.csv", "both", ("--weight", "w", "--class-weight", "balanced")),
        ("rare.csv", "as they are", ()),
    ):
        done("train", folder / data, "-o", folder / name, *QUICK, *options)
    assert weights_of(folder / "balanced") == weights_of(folder / "column") == weights_of(folder / "given")
    assert weights_of(folder / "as they are") != weights_of(folder / "given")
    trained = Trained.load(folder / "balanced")
    assert trained.plan.class_weight[0].startswith("no=") and trained.progress.progressive[0].weight > 0
    shares = [float(weight.partition("=")[2]) for weight in Trained.load(folder / "both").plan.class_weight]
    assert shares == pytest.approx([1.0, 1.0])  # rows that have weights are balanced with these


def test_rows_of_a_class_of_weight_0_are_not_learned(files, done):
    folder, *_ = files
    done("train", folder / "rare.csv", "-o", folder / "m", *QUICK, "--class-weight", "no=0")
    n_learned = csv.read_csv(folder / "rare.csv")["rich"].to_pylist().count("yes")
    assert Trained.load(folder / "m").progress.progressive[0].weight == n_learned


LABELLED = ("-t", "label", "--learner", "scinol2")
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


def test_a_closed_set_leaves_the_weights_of_the_other_rows(odd_file, done):
    folder, table = odd_file.parent, pa.table(rows())
    csv.write_csv(table.filter(pa.array(table["label"].to_numpy() != "goo")), folder / "clean.csv")
    for data, name, options in ((odd_file, "a", CLOSED), (folder / "clean.csv", "b", ())):
        done("train", data, "-o", folder / name, "-t", "label", *options)
    assert weights_of(folder / "a") == weights_of(folder / "b")


def test_a_model_that_goes_on_keeps_its_classes(odd_file, done):
    folder = odd_file.parent
    done("train", odd_file, "-o", folder / "a", *LABELLED, *CLOSED)
    more = ("train", odd_file, "--from", folder / "a", "-o", folder / "b")
    _, err = done(*more, status=2)
    assert "'goo'" in err and "row 701" in err
    done(*more, "--on-bad-row", "skip")
    assert Trained.load(folder / "b").plan.classes == ("no", "yes")
    assert "--classes" in done(*more, "--classes", "no", "--classes", "goo", status=2)[1]


def test_rare_classes_are_reported(odd_file, done):
    out, _ = done("train", odd_file, "-o", odd_file.parent / "m", *LABELLED)
    (line,) = [line for line in out.splitlines() if "'goo'" in line]
    assert "has 1 of 1,200 rows" in line and "--classes" in line
    with pytest.warns(UserWarning, match="'goo' has 1 of 1,200 rows; .*`classes`"):
        tunefree.train(rows(), target="label", learner="scinol2")


@pytest.mark.parametrize(
    ("labels", "weights"),
    [
        ([0, 1], {"1": 5}),
        ([0, 1], {1: 5}),
        ([0, 1], {1.0: 5}),
        ([False, True], {True: 5}),
        ([False, True], {"true": 5}),
    ],
)
def test_weights_find_labels_that_are_no_strings(labels, weights):
    by_label = weights_by_label(Plan(class_weight=weights).class_weight)
    assert class_factors(by_label, Labels(labels, np.array([0, 1]))).tolist() == [1.0, 5.0]
    table = rows(odd=())
    table["label"] = np.array(labels)[(table["label"] == "yes").astype(int)]
    model = tunefree.train(table, target="label", learner="scinol2", class_weight=weights, task="classification")
    assert model.classes_.tolist() == labels


def test_labels_of_an_evaluation_that_the_model_does_not_know(done, tmp_path):
    model, file, table = tmp_path / "m", tmp_path / "d.csv", rows(400, odd=())
    csv.write_csv(pa.table(table), file, csv.WriteOptions(quoting_style="none"))
    text, n_renamed = file.read_text(), (table["label"] == "yes").sum()
    done("train", file, *LABELLED, "-o", model, "-q")
    assert "no class" not in done("evaluate", model, file)[1]
    (tmp_path / "some.csv").write_text(text.replace(",yes", ",Yes"))
    out, err = done("evaluate", model, tmp_path / "some.csv", "--json")
    assert f'"rows_of_unseen_classes": {n_renamed}' in out
    assert "note: column 'label': 'Yes' is no class of the model" in err
    assert f"did you mean 'yes'? ({n_renamed} rows" in err
    (tmp_path / "all.csv").write_text(text.replace(",yes", ",1").replace(",no", ",0"))
    assert "no row has a label that the model knows" in done("evaluate", model, tmp_path / "all.csv", status=2)[1]


def test_balancing_weights_are_of_all_files(tmp_path):
    for name, labels in (("a", "no no no"), ("b", "yes no")):
        (tmp_path / f"{name}.csv").write_text("x,y\n" + "".join(f"1,{label}\n" for label in labels.split()))
    plan = Plan(target="y", class_weight=("balanced",))
    assert with_weights(plan, open_source(tmp_path)).class_weight == ("no=0.625", "yes=2.5")

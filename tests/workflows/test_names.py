"""Names of columns, labels and losses: one string is one name, and a name that means nothing is an error."""

import numpy as np
import pytest

import tunefree
import tunefree.distributed
from tunefree import Plan
from tunefree.core.errors import ModelError
from tunefree.training.class_weights import class_factors

OF_ALL = {"target": "rich", "learner": "scinol2"}


def table(n=400, seed=0):
    """A tenth of the rows are rich."""
    random = np.random.RandomState(seed)
    leak, rich = random.randn(n), np.where(random.rand(n) < 0.1, "yes", "no")
    return {"leak": leak, "a": random.randint(0, 5, n), "job": random.choice(["cook", "clerk"], n), "rich": rich}


@pytest.fixture
def file(tmp_path):
    """The table as CSV."""
    rows = table()
    lines = [",".join(rows), *(",".join(map(str, row)) for row in zip(*rows.values(), strict=True))]
    (tmp_path / "d.csv").write_text("\n".join(lines))
    return tmp_path / "d.csv"


@pytest.mark.parametrize(
    "options",
    [
        {"ignore": "rich"},
        {"ignore": "a", "numeric": "a"},
        {"text": "job", "categorical": "job"},
        {"sample_weight": "rich"},
    ],
)
def test_a_column_has_one_role(options):
    with pytest.raises(ModelError, match="name the same column"):
        Plan(target="rich", **options)


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
    plan = Plan(class_weight=weights)
    by_label = tunefree.training.class_weights.weights_by_label(plan.class_weight)
    from tunefree.pool.targets import Labels

    assert class_factors(by_label, Labels(labels, np.array([0, 1]))).tolist() == [1.0, 5.0]
    rows = table() | {"rich": np.array(labels)[(table()["rich"] == "yes").astype(int)]}
    assert tunefree.train(rows, class_weight=weights, task="classification", **OF_ALL).classes_.tolist() == labels


def test_labels_of_an_evaluation_that_the_model_does_not_know(run, tmp_path, file):
    model, text = tmp_path / "m", file.read_text()
    assert run("train", file, "-t", "rich", "--learner", "scinol2", "-o", model, "-q")[0] == 0
    assert "no class" not in run("evaluate", model, file)[2]
    (tmp_path / "some.csv").write_text(text.replace(",yes", ",Yes"))
    status, out, err = run("evaluate", model, tmp_path / "some.csv", "--json")
    assert status == 0 and '"rows_of_unseen_classes": 40' in out
    assert "note: column 'rich': 'Yes' is no class of the model" in err and "did you mean 'yes'? (40 rows" in err
    (tmp_path / "all.csv").write_text(text.replace(",yes", ",1").replace(",no", ",0"))
    status, _, err = run("evaluate", model, tmp_path / "all.csv")
    assert status == 2 and "no row has a label that the model knows" in err

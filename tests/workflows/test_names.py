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


@pytest.mark.parametrize(
    "options",
    [{"ignore": "rich"}, {"ignore": "a", "numeric": "a"}, {"text": "job", "categorical": "job"}, {"weight": "rich"}],
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
    from tunefree.model.targets import Labels

    assert class_factors(by_label, Labels(labels, np.array([0, 1]))).tolist() == [1.0, 5.0]
    rows = table() | {"rich": np.array(labels)[(table()["rich"] == "yes").astype(int)]}
    assert tunefree.train(rows, class_weight=weights, task="classification", **OF_ALL).classes_.tolist() == labels

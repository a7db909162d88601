"""A class that comes late begins as it would be had it been declared from the start."""

import pickle

import numpy as np
import pytest

from tunefree import learners
from tunefree.core.rows import dense
from tunefree.learners.weights import read
from tunefree.losses import loss_of
from tunefree.losses.objectives import Objective
from tunefree.pool import passes
from tunefree.pool.linear_members import Member, Setting
from tunefree.pool.model import Model
from tunefree.pool.targets import Labels

TWO, THREE = ["c0", "c1"], ["c0", "c1", "goo"]


def stream(n_before, n_after, share=0.0):
    """Rows of two classes, an odd one, and rows of these classes of which some are of a third, if there is a share."""
    rng = np.random.default_rng(0)
    n = n_before + n_after
    X = rng.normal(size=(n, 6))
    odds = X @ np.array([1.5, -1.0, 0.7, 0.5, -0.3, 0.0]) + 0.2
    y = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-odds)), "c1", "c0").astype("U3")
    third = rng.random(n_after) < 2.0 * share * (X[n_before:, 0] > 0.0)
    y[n_before:][third] = "goo"
    return np.insert(X, n_before, 0.1, axis=0), np.insert(y, n_before, "goo")


def learned(X, y, classes, batch=1000, scale=1.0, model=None):
    """A model of rows in batches, and the loss of each row before it was learned; it may go on from another."""
    model, losses = model or Model("classification", classes=classes), []
    for start in range(0, len(y), batch):
        rows = slice(start, start + batch)
        weight = np.full(len(y[rows]), scale)
        losses.append(model.learn(dense(X[rows]), Labels.of(y[rows]), weight)[1])
    return model, np.concatenate(losses)


@pytest.mark.parametrize(
    ("n_before", "shares"), [(1000, (0.0,)), pytest.param(5000, (0.0, 0.1), marks=pytest.mark.slow)]
)
def test_a_late_class_is_predicted_as_a_declared_one(n_before, shares):
    X, y = stream(n_before, 3000)
    begun = [pickle.dumps(learned(X[:n_before], y[:n_before], classes)[0]) for classes in (TWO, THREE)]
    for share in shares:
        X, y = (rows[n_before:] for rows in stream(n_before, 3000, share))
        late, declared = (learned(X, y, None, model=pickle.loads(model))[1][1:] for model in begun)
        assert late.mean() <= 1.005 * declared.mean()
        assert late[:300].mean() <= 1.03 * declared[:300].mean()


@pytest.mark.parametrize(
    "name", [name for name in learners.ALL if any(field.is_halved for field in learners.ALL[name].fields)]
)
def test_two_classes_share_the_margin_between_them(name):
    X, y = stream(300, 0)
    state, X, weight = learners.ALL[name](7, 1), dense(X), np.ones(len(y))
    objective = Objective("classification", loss_of("classification", None))
    passes.learn(state, objective, X, np.where(y == "c1", 1.0, -1.0), weight, np.empty((len(y), 1)))
    margin = passes.score(*read(state), X)[:, 0]
    margins = passes.score(*read(state.with_outputs(3, first=1, mirrors=True)), X)
    np.testing.assert_allclose(margins[:, 1], 0.5 * margin, rtol=1e-12)
    np.testing.assert_allclose(margins[:, 0], -margins[:, 1], rtol=1e-12)
    assert not margins[:, 2].any()


def test_a_late_class_knows_that_it_was_absent():
    """What the constant has learned is what it learns of rows of other classes alone."""
    X, y = stream(400, 0)
    member = Member.create(
        Setting("scinol2", {}, "raw"), False, 7, 1, Objective("classification", loss_of("classification", None))
    )
    member.learn(dense(X), np.where(y == "c1", 1.0, -1.0), np.ones(len(y)), np.empty((len(y), 1)))
    member.add_outputs(Objective("classification"), 1, 3)
    assert member.state.wealth[0, 2] > 1.0 and member.state.gradients[0, 2] < 0.0
    weights, units = member.weights(7, 3)
    np.testing.assert_allclose(weights[0, 2] / units[0], -np.log(len(y)), rtol=1e-12)
    assert not weights[1:, 2].any()

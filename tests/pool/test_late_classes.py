"""A class that comes late begins as it would be had it been declared from the start."""

from __future__ import annotations

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


@pytest.mark.parametrize(("n_before", "shares"), [(1000, (0.0,)), (5000, (0.0, 0.1))])
def test_a_late_class_is_predicted_as_a_declared_one(n_before, shares):
    X, y = stream(n_before, 3000)
    begun = [pickle.dumps(learned(X[:n_before], y[:n_before], classes)[0]) for classes in (TWO, THREE)]
    for share in shares:
        X, y = (rows[n_before:] for rows in stream(n_before, 3000, share))
        late, declared = (learned(X, y, None, model=pickle.loads(model))[1][1:] for model in begun)
        assert late.mean() <= 1.005 * declared.mean()
        assert late[:300].mean() <= 1.03 * declared[:300].mean()


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.1])
def test_a_late_class_after_many_rows(share):
    X, y = stream(100_000, 30_000, share)
    late, declared = (learned(X, y, classes)[1][100_001:] for classes in (TWO, THREE))
    assert late.mean() <= 1.005 * declared.mean()


def test_a_late_class_begins_as_improbable_as_it_was():
    X, y = stream(3000, 0)
    model, _ = learned(X[:-1], y[:-1], TWO)
    rows = dense(X[:50])
    before, margins = model.linear.present(rows).predict(rows)[:, :, 0], model.predict(rows)[:, 0]
    model.add_class("goo")
    after = model.linear.present(rows).predict(rows)
    np.testing.assert_allclose(after[:, :, 1] - after[:, :, 0], before, rtol=1e-9, atol=1e-9)
    predicted = model.predict(rows)
    np.testing.assert_allclose(predicted[:, 1] - predicted[:, 0], margins, rtol=1e-3, atol=1e-3)
    probabilities = model.probabilities(predicted)[:, 2]
    assert (probabilities > 0.1 / 3000).all() and (probabilities < 10 / 3000).all()


def test_weights_of_rows_are_relative_to_a_late_class():
    X, y = stream(2000, 2000, 0.1)
    losses = [learned(X, y, classes, scale=2.0**-20)[1][2001:].mean() for classes in (TWO, THREE)]
    assert losses[0] <= 1.02 * losses[1]


def test_a_late_class_is_saved_to_the_bit_and_does_not_depend_on_batches():
    X, y = stream(700, 500, 0.1)
    models = [learned(X, y, TWO, batch)[0] for batch in (len(y), 137)]
    begun, _ = learned(X[:800], y[:800], TWO)
    arrays, header = begun.save_state()
    restored = Model.restore({name: array.copy() for name, array in arrays.items()}, header)
    restored.learn(dense(X[800:]), Labels.of(y[800:]), np.ones(len(y) - 800))
    saved = [state_of(model) for model in (*models, restored)]
    assert saved[0] == saved[1] == saved[2]
    np.testing.assert_array_equal(restored.predict(dense(X[:50])), models[0].predict(dense(X[:50])))


def state_of(model):
    return {name: array.tobytes() for name, array in model.save_state()[0].items()}


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

"""The members of a model in groups: who learns, what is saved, and what is chosen stays as it is."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from tests.papers.kernel.contracts import frozen_after
from tunefree.core.rows import dense
from tunefree.model.ensemble import Ensemble
from tunefree.model.group import LabelledRows
from tunefree.model.members import Setting
from tunefree.model.model import Model
from tunefree.model.options import ModelOptions
from tunefree.model.targets import Labels

SETTINGS = [Setting("kernel-pistol", {"width": width}, "steady") for width in (1.0, 2.0)]


def ensemble():
    return Ensemble(ModelOptions.create("classification", "kernel-pistol", member_settings=SETTINGS), 4, 1, 2)


def rows(n=60):
    X = np.random.default_rng(0).normal(size=(n, 3))
    return X, np.where(X[:, 0] > 0, "yes", "no")


def labelled(n=60):
    X, y = rows(n)
    return LabelledRows(dense(X), np.where(y == "yes", 1.0, -1.0), np.ones(n), np.ones(n))


def test_members_are_numbered_group_after_group():
    members = ensemble()
    assert [member.setting for member in members.members] == SETTINGS
    assert [len(group.members) for group in members.groups] == [0, 2]
    assert members.banks == members.groups[1:]


def test_kernels_sleep_until_there_are_rows_enough_and_then_predict_log_odds():
    members, first = ensemble(), labelled()
    with frozen_after(40):
        predictions = members.learn(first)
    assert np.isnan(predictions[:, :40]).all() and np.isfinite(predictions[:, 40:]).all()
    assert np.isfinite(members.take_warmup_predictions().predictions).all()
    assert members.take_warmup_predictions() is None
    assert all(bank.nbytes > 0 for bank in members.banks)


def test_a_saved_ensemble_goes_on_alike():
    members, again = ensemble(), ensemble()
    with frozen_after(40):
        members.learn(labelled())
    again.linear.take_over(*members.linear.save_state())
    for bank, saved in zip(again.banks, members.banks, strict=True):
        bank.restore(*saved.save_state(4))
    np.testing.assert_array_equal(members.learn(labelled()), again.learn(labelled()))
    np.testing.assert_array_equal(members.predict(labelled().X), again.predict(labelled().X))


@pytest.mark.parametrize("learned", ["members", "mixture", "evidence", "risks", "banks", "views", "aggregation"])
def test_what_is_learned_is_no_argument(learned):
    with pytest.raises(TypeError, match=learned):
        Model("classification", **{learned: []})


def test_what_is_chosen_does_not_change():
    model = Model("classification", "scinol2")
    with pytest.raises(FrozenInstanceError):
        model.options.loss = "hinge"


def test_predictions_follow_the_members():
    """Weights are read once, and again after whatever changes them."""
    X, y = rows()
    model = Model("classification", "scinol2", n_features=4)
    model.learn(dense(X), Labels.of(y), np.ones(60))
    shown = [model.predict(dense(X))]
    model.learn(dense(X), Labels.of(y), np.ones(60))
    shown.append(model.predict(dense(X)))
    assert (shown[0] != shown[1]).any()
    model.reserve_features(9)
    np.testing.assert_array_equal(model.predict(dense(X)), shown[1])
    assert model.mean_weights().shape == (9, 1)
    model.add_class("perhaps")
    margins = model.predict(dense(X))  # the two classes share the margin between them
    np.testing.assert_allclose(margins[:, 1] - margins[:, 0], shown[1][:, 0], rtol=1e-12)


def test_banks_predict_what_they_learned_after_they_predicted_early():
    X, y = rows()
    model, other = (Model("classification", "kernel-pistol", view="raw", n_features=4) for _ in range(2))
    for each in (model, other):
        each.learn(dense(X), Labels.of(y), np.ones(60))
    early = model.predict(dense(X))
    for each in (model, other):
        each.freeze()
    np.testing.assert_array_equal(model.predict(dense(X)), other.predict(dense(X)))
    assert early.shape == (60, 1)

"""The members of a model in groups: whose numbers become places, who learns, and what is chosen stays as it is."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from tunefree.core.rows import dense
from tunefree.model.ensemble import Ensemble
from tunefree.model.group import MemberGroup
from tunefree.model.members import Setting
from tunefree.model.model import Model
from tunefree.model.options import ModelOptions
from tunefree.model.pruning import next_narrower
from tunefree.model.targets import Labels

SETTINGS = [
    Setting("scinol2", {}, "raw"),
    Setting("scinol2", {}, "fourier"),
    Setting("kernel-pistol", {"width": 1.0}, "steady"),
    Setting("scinol2", {}, "steady"),
    Setting("kernel-pistol", {"width": 2.0}, "steady"),
    Setting("kernel-pistol", {"width": 2.0}, "level"),
]
IN_ORDER = [SETTINGS[m] for m in (0, 3, 1, 2, 4, 5)]  # linear members, then bank after bank


def ensemble(settings=SETTINGS):
    return Ensemble(ModelOptions.create("classification", member_settings=settings), 4, 1, 2)


def rows(n=60):
    X = np.random.default_rng(0).normal(size=(n, 3))
    return X, np.where(X[:, 0] > 0, "yes", "no")


def test_members_are_numbered_group_after_group():
    made = ensemble()
    assert [member.setting for member in made.members] == IN_ORDER
    assert [len(group.members) for group in made.groups] == [2, 1, 2, 1]
    numbers = np.arange(6)
    parts = made.split(numbers)
    assert [part.tolist() for part in parts] == [[0, 1], [2], [3, 4], [5]]
    parts[2][:] = 7
    assert numbers.tolist() == [0, 1, 2, 7, 7, 5]
    assert made.kernel_banks == made.groups[2:]
    assert all(isinstance(group, MemberGroup) for group in made.groups)


def test_pruning_drops_members_and_banks_without_any():
    made = ensemble()
    made.prune(np.array([True, False, True, False, True, False]))
    assert [member.setting for member in made.members] == [IN_ORDER[m] for m in (1, 3, 5)]
    made.prune(np.array([True, False, True]))
    assert [member.setting for member in made.members] == [IN_ORDER[3]]
    assert made.groups == [made.linear, made.banks[0]]
    assert made.linear.members == []


def test_only_members_that_are_named_learn_rows_again():
    X, y = rows()
    model = Model("classification", member_settings=SETTINGS, n_features=4)
    model.learn(dense(X), Labels.of(y), np.ones(60))
    model.begin_pass([1, 2])
    before = model.member_predictions(dense(X))
    model.replay(dense(X), Labels.of(y), np.ones(60), [1, 2])
    changed = (model.member_predictions(dense(X)) != before).any(axis=(1, 2))
    assert changed.tolist() == [False, True, True, False, False, False]


def test_the_next_narrower_kernel_of_a_group_is_known():
    linear, _, bank, other = ensemble().groups
    assert next_narrower(bank, np.array([0.6, 0.1])).tolist() == [False, True]
    assert next_narrower(bank, np.array([0.1, 0.6])).tolist() == [False, False]
    assert not next_narrower(other, np.array([1.0])).any()
    assert not next_narrower(linear, np.array([0.5, 0.5])).any()


@pytest.mark.parametrize("learned", ["members", "mixture", "evidence", "risks", "banks", "views", "history"])
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

"""Wide rows of several classes, and many columns of several classes, are learned by fewer members."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model.test_meetings import N, words
from tunefree.core.rows import dense, part
from tunefree.model import pruning
from tunefree.model.members import Setting
from tunefree.model.model import Model
from tunefree.model.pool import MEMBERS, NOT_OF_WIDE_ROWS
from tunefree.model.targets import Labels

REVIEW = 64
SETTINGS = [
    Setting("nag", {"eta": 2.0}, "steady"),
    Setting("nag", {"eta": 0.5}, "steady"),
    Setting("scinol2", {"epsilon": 1.0}, "steady"),
    Setting("scinol2", {"epsilon": 1.0}, "raw"),
]


@pytest.fixture(autouse=True)
def early_review(monkeypatch):
    monkeypatch.setattr(pruning, "REVIEW_OF_WIDTH", REVIEW)


def learned(n_classes, n_words, cuts=(), replays=True):
    """A model that has learned rows, and the margins before each of them."""
    rng = np.random.default_rng(0)
    X, y = words(rng, d=n_words), np.append(np.arange(n_classes), rng.integers(0, n_classes, N - n_classes))
    model, found, edges = Model("classification", "pool", member_settings=SETTINGS, replays=replays), [], [0, *cuts, N]
    for start, stop in zip(edges, edges[1:], strict=False):
        found.append(model.learn(part(X, start, stop), Labels.of(y[start:stop]), np.ones(stop - start))[0])
    return model, np.concatenate([margins[:, : model.n_outputs] for margins in found])


def test_members_that_are_left_out_are_members():
    assert set(map(str, NOT_OF_WIDE_ROWS)) < set(map(str, MEMBERS))


@pytest.mark.parametrize("replays", [True, False])
def test_wide_rows_of_several_classes_have_fewer_members_whatever_the_batches(replays):
    model, margins = learned(3, 400, replays=replays)
    assert model.member_settings == [SETTINGS[0], SETTINGS[2]]
    assert [len(own["shares"]) for own in model.history] == [4, 2]
    for cuts in ((REVIEW,), (10, 63, 65, 100)):
        np.testing.assert_array_equal(learned(3, 400, cuts, replays)[1], margins)


@pytest.mark.parametrize(("n_classes", "n_words"), [(2, 400), (3, 40)])
def test_all_members_stay_with_two_classes_or_narrow_rows(n_classes, n_words):
    assert learned(n_classes, n_words)[0].member_settings == SETTINGS


@pytest.mark.parametrize(("n_classes", "view"), [(3, {"steady", "raw"}), (2, {"steady", "raw", "curves", "pairs"})])
def test_members_on_curves_leave_where_there_are_many_classes(n_classes, view, monkeypatch):
    monkeypatch.setattr(pruning, "MANY_OUTPUTS", 3)
    on_curves = [Setting("scinol2", {"epsilon": 1.0}, "curves"), Setting("nag", {"eta": 0.5}, "pairs")]
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), np.append(np.arange(n_classes), rng.integers(0, n_classes, 200 - n_classes))
    found = []
    for cuts in ((200,), (63, 65, 200)):
        model = Model("classification", "pool", member_settings=[*SETTINGS, *on_curves], classes=range(n_classes))
        for start, stop in zip((0, *cuts), cuts, strict=False):
            model.learn(dense(X[start:stop]), Labels.of(y[start:stop]), np.ones(stop - start))
        found.append(model.predict(dense(X)))
        assert {own.view for own in model.member_settings} == view
    np.testing.assert_array_equal(*found)


def test_a_pool_of_curves_alone_keeps_them_whatever_the_classes(monkeypatch):
    monkeypatch.setattr(pruning, "MANY_OUTPUTS", 3)
    on_curves = [Setting("scinol2", {"epsilon": 1.0}, "curves"), Setting("nag", {"eta": 0.5}, "pairs")]
    model, rng = Model("classification", "pool", member_settings=on_curves), np.random.default_rng(0)
    model.learn(dense(rng.normal(size=(400, 3))), Labels.of(rng.integers(0, 4, 400)), np.ones(400))
    assert model.member_settings == on_curves


@pytest.mark.parametrize(
    ("n_columns", "n_classes", "stays"), [(10, 5, False), (10, 4, True), (50, 2, True), (9, 6, False)]
)
def test_negligible_members_leave_early_where_a_row_changes_many_weights(n_columns, n_classes, stays, monkeypatch):
    monkeypatch.setattr(pruning, "COSTLY", 50)
    rng = np.random.default_rng(0)
    X, y = dense(rng.normal(size=(100, n_columns))), np.append(np.arange(n_classes), rng.integers(0, n_classes, 90))
    model = Model("classification", "pool", member_settings=SETTINGS)
    X = part(X, 0, len(y))
    model.learn(X, Labels.of(y), np.ones(len(y)))
    shares, standing = np.array([0.5, 0.004, 0.492, 0.004]), np.array([0.0, 0.0, 0.0, 0.02])
    before, due, late = (
        pruning.negligible_members(model.ensemble, shares, standing, rounds).tolist()
        for rounds in (pruning.FIRST_PRUNING_OF_COSTLY - 1, pruning.FIRST_PRUNING_OF_COSTLY, pruning.FIRST_PRUNING)
    )
    assert before == [False] * 4
    assert due == [False, not stays, False, False]
    assert late == [False, True, False, False]

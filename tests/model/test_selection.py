"""How many passes pay: found from rows that are held out, for each member of a pool."""

from __future__ import annotations

import numpy as np
import pytest

from tunefree.core.rows import dense
from tunefree.learners import ALL
from tunefree.model import selection
from tunefree.model.model import Model
from tunefree.model.patience import MEMBER
from tunefree.model.pool import MEMBERS
from tunefree.model.selection import find_passes
from tunefree.model.targets import Labels


def split(n=300, d=10, noise=0.5, seed=0, task="classification"):
    """A pool's model, a function that lets members learn a pass, and held-out rows."""
    rng = np.random.default_rng(seed)
    X, rule = rng.normal(size=(n + 200, d)), rng.normal(size=d)
    scores = X @ rule + noise * rng.normal(size=n + 200)
    y = (scores > 0).astype(int) if task == "classification" else scores
    targets = Labels.of if task == "classification" else np.asarray
    model = Model(task, n_features=d + 1, classes=[0, 1] if task == "classification" else [])
    rows, labels, weight = dense(X[:n]), targets(y[:n]), np.ones(n)
    calls = []

    def learn_pass(number, members):
        calls.append((number, list(members)))
        if number == 1:
            model.learn(rows, labels, weight)
        else:
            model.replay(rows, labels, weight, members)

    return model, learn_pass, calls, (dense(X[n:]), targets(y[n:]), rng.uniform(0.5, 2.0, 200))


def held_out_losses(passes_made, **options):
    """Mean held-out loss (passes, N) of each member after each pass, nobody ever leaving."""
    model, learn_pass, _, (X, y, weight) = split(**options)
    rows = []
    for number in range(1, passes_made + 1):
        learn_pass(number, list(range(len(MEMBERS))))
        rows.append([np.average(model.losses(y, p), weights=weight) for p in model.member_predictions(X)])
    return np.array(rows)


def by_the_rule(losses, most):
    """What :func:`find_passes` promises: (passes of each member, how many each tried)."""
    n_members = losses.shape[1]
    best, found, tried = losses[0].copy(), np.ones(n_members, int), np.ones(n_members, int)
    busy = np.ones(n_members, bool)
    for number in range(2, most + 1):
        tried[busy] = number
        better = busy & (losses[number - 1] < (1 - MEMBER.worthwhile) * best)
        best[better], found[better] = losses[number - 1][better], number
        busy &= number - found < MEMBER.passes
        if number > MEMBER.passes:
            busy &= best <= selection.HOPELESS * best.min()
        if not busy.any():
            break
    return found, tried


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("noise", [0.0, 0.5, 5.0])
def test_each_member_has_the_passes_that_the_rule_gives_it(task, noise):
    most = 12
    model, learn_pass, calls, held_out = split(noise=noise, task=task)
    found = find_passes(model, learn_pass, *held_out, most)
    expected, tried = by_the_rule(held_out_losses(most, noise=noise, task=task), most)
    assert found.passes == expected.tolist()
    assert [number for number, _ in calls] == list(range(1, tried.max() + 1))
    for number, members in calls:
        assert members == np.flatnonzero(tried >= number).tolist()


def test_the_mixture_is_of_members_each_after_its_passes():
    model, learn_pass, _, (X, y, weight) = split()
    found = find_passes(model, learn_pass, X, y, weight, 12)
    losses = held_out_losses(max(found.passes))
    each = losses[np.array(found.passes) - 1, np.arange(len(MEMBERS))]
    assert found.loss <= each.min() + (np.log(len(MEMBERS)) + np.log(201)) * 2.0 / weight.sum()
    assert found.loss < np.median(each)
    assert found.mixture.rounds == 200
    assert found.mixture.means.sum() == pytest.approx(1.0)
    best, worst = int(each.argmin()), int(each.argmax())
    assert found.mixture.means[best] > found.mixture.means[worst]


@pytest.mark.parametrize(("most", "made"), [(1, 1), (3, 3), (50, 1 + MEMBER.passes)])
def test_it_stops_where_nobody_gets_better(most, made):
    model, learn_pass, calls, held_out = split()

    def only_once(number, members):
        if number == 1:
            learn_pass(number, members)
        else:
            calls.append((number, members))

    found = find_passes(model, only_once, *held_out, most)
    assert found.passes == [1] * len(MEMBERS)
    assert len(calls) == made


def test_more_passes_where_they_help():
    model, learn_pass, calls, held_out = split(n=100, d=10, noise=0.0)
    found = find_passes(model, learn_pass, *held_out, 32)
    once = split(n=100, d=10, noise=0.0)
    loss_once = find_passes(once[0], once[1], *once[3], 1).loss
    assert found.loss < 0.8 * loss_once
    assert np.average(found.passes, weights=found.mixture.means) > 3
    assert len(calls) <= 32


def test_few_passes_where_they_hurt():
    """Labels that are noise, and many features: what is learned again is learned by heart."""
    model, learn_pass, calls, held_out = split(n=300, d=100, noise=1e3)
    found = find_passes(model, learn_pass, *held_out, 32)
    assert np.average(found.passes, weights=found.mixture.means) < 4
    assert len(calls) < 32
    assert found.loss < 1.2 * np.log(2)
    often = held_out_losses(8, n=300, d=100, noise=1e3)
    assert found.loss < 0.8 * np.median(often[-1])


def test_views_and_shares_of_the_model_stay_as_the_first_pass_left_them():
    model, learn_pass, _, held_out = split()
    other, learn_other, _, _ = split()
    find_passes(model, learn_pass, *held_out, 6)
    learn_other(1, [])
    for one, two in zip(*(each.ensemble.linear.views["steady"] for each in (model, other)), strict=True):
        np.testing.assert_array_equal(one, two)
    for one, two in zip(model.mixture, other.mixture, strict=True):
        np.testing.assert_array_equal(one, two)


def test_all_members_are_learners():
    assert {setting.learner for setting in MEMBERS} <= set(ALL)


def test_kernels_are_given_up_sooner_than_linear_members():
    """A pass of theirs costs more: half as bad again as the best is too much after one, and less after more."""
    best, everyone = [1.0, 1.4, 1.6, 1.3, 1.9], [0, 1, 2, 3, 4]
    of_kernels = [False, True, True, True, False]
    assert selection._hopeful(best, everyone, of_kernels, 1) == [0, 1, 3, 4]
    assert selection._hopeful(best, [0, 1, 3, 4], of_kernels, 2) == [0, 4]
    assert selection._hopeful(best, [0, 4], of_kernels, MEMBER.passes) == [0, 4]
    assert selection._hopeful(best, [0, 4], of_kernels, MEMBER.passes + 1) == [0]


def test_linear_members_far_behind_kernels_are_given_up_at_once():
    assert selection._hopeful([1.0, 9.0, 1.1], [0, 1, 2], [False, False, True], 1) == [0, 2]
    assert selection._hopeful([1.0, 9.0, 1.1], [0, 1, 2], [False, False, False], 1) == [0, 1, 2]

"""Aggregation: who predicts of several members, what sleepers and failures do to it, and that cuts do not matter."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from tunefree import losses
from tunefree.losses.objectives import Objective, measured
from tunefree.model.aggregation import Leader, Mixed
from tunefree.model.relative import RelativeWeights

LOGISTIC = Objective("classification", losses.Logistic())
SQUARE = Objective("regression", losses.Square())
N = 300


def drawn(seed, n_outputs=1, n_members=3):
    """Targets, weights of which some are 0, and predictions of members, the last of which is the best."""
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], N) if n_outputs == 1 else rng.integers(0, n_outputs, N).astype(float)
    truth = y[:, None] if n_outputs == 1 else 2.0 * (np.arange(n_outputs) == y[:, None]) - 1.0
    skill = np.linspace(0.0, 1.5, n_members)[:, None, None]
    return y, rng.choice([0.0, 0.5, 2.0], N), skill * truth + rng.normal(size=(n_members, N, n_outputs))


def rules(kind):
    if kind == "leader":
        return Leader(3, None), LOGISTIC, drawn(0)
    if kind == "calibrated":
        return Leader(3, 2), LOGISTIC, drawn(0)
    if kind == "classes":
        return Mixed(3, 3), Objective("classification"), drawn(0, 3)
    y, weight, predictions = drawn(0)
    return Mixed(3, 0, losses.Square()), SQUARE, (7.0 * y + 100.0, weight, 5.0 * predictions + 100.0)


kinds = pytest.mark.parametrize("kind", ["leader", "calibrated", "classes", "numbers"])


def state_of(rule):
    arrays, header = rule.save_state()
    return {name: array.tobytes() for name, array in arrays.items()} | {"header": repr(header)}


@kinds
@pytest.mark.parametrize("cuts", [(1,), (100, 100, 250)])
def test_cuts_and_saving_change_no_byte(kind, cuts):
    (whole, objective, (y, weight, predictions)), (pieces, *_) = rules(kind), rules(kind)
    predictions[:, 20:40] = np.nan
    predictions[1, 40:50] = np.nan
    expected = whole.learn(objective, y, weight, predictions)
    shown, edges = [], [0, *cuts, N]
    for start, stop in zip(edges[:-1], edges[1:], strict=True):
        shown.append(pieces.learn(objective, y[start:stop], weight[start:stop], predictions[:, start:stop]))
        again, *_ = rules(kind)
        again.take_over(*copy.deepcopy(pieces.save_state()))
        pieces = again
    np.testing.assert_array_equal(np.concatenate(shown), expected)
    assert state_of(pieces) == state_of(whole)
    np.testing.assert_array_equal(pieces.predict(predictions), whole.predict(predictions))
    assert not expected[20:40].any() and np.isfinite(expected).all()


def test_the_member_of_the_least_loss_before_each_row_predicts():
    y, weight, predictions = drawn(1)
    rule = Leader(3, None)
    shown = rule.learn(LOGISTIC, y, weight, predictions)
    totals = np.array([np.cumsum(weight * measured(LOGISTIC, y, of_member)) for of_member in predictions])
    leaders = np.concatenate([[0], totals[:, :-1].argmin(axis=0)])
    np.testing.assert_array_equal(shown, predictions[leaders, np.arange(N)])
    assert rule.shares.tolist() == [0.0, 0.0, 1.0] and leaders[-1] == 2
    np.testing.assert_array_equal(rule.predict(predictions), predictions[2])


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_a_member_that_predicts_no_number_never_leads_again(value):
    y, _, predictions = drawn(2)
    predictions[2, 200] = value
    rule = Leader(3, None)
    shown = rule.learn(LOGISTIC, y, np.ones(N), predictions)
    assert np.isinf(rule.losses[2]) and rule.shares[2] == 0.0
    assert shown[200] == 0.0 and np.isfinite(shown).all()


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_mixture_is_nearly_as_good_as_its_best_member_and_the_best_has_most_weight(kind):
    rule, objective, (y, _, predictions) = rules(kind)
    shown = rule.learn(objective, y, np.ones(N), predictions)
    of_members = [measured(objective, y, np.ascontiguousarray(of_member)).mean() for of_member in predictions]
    assert measured(objective, y, shown)[50:].mean() < 1.05 * min(of_members)
    assert rule.shares.argmax() == 2 and rule.shares.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_the_scale_of_the_weights_does_not_matter_to_a_mixture(kind):
    shown = []
    for scale in (2.0**-900, 1.0, 2.0**900):
        rule, objective, (y, weight, predictions) = rules(kind)
        shown.append(rule.learn(objective, y, scale * weight, predictions))
    np.testing.assert_array_equal(shown[0], shown[1])
    np.testing.assert_array_equal(shown[2], shown[1])


def test_a_new_class_leaves_the_odds_of_the_others():
    y, weight, predictions = drawn(3)
    rule = Mixed(3, 2)
    rule.learn(LOGISTIC, y, weight, predictions)
    before = rule.log_odds(rule.predict(predictions))
    rule.add_class(3)
    late = np.full((3, N, 1), -9.0)
    wide = np.concatenate([np.zeros_like(predictions), predictions, late], axis=2)
    after = rule.log_odds(rule.predict(wide))
    np.testing.assert_allclose(after[:, 1] - after[:, 0], before[:, 1] - before[:, 0], rtol=1e-2, atol=1e-2)
    assert (after[:, 2] < after[:, :2].max(axis=1) - 5.0).all()


def test_relative_weights_are_over_the_mean_so_far():
    weights = np.array([3.0, 0.0, 1.0, 5.0])
    whole, pieces = RelativeWeights(), RelativeWeights()
    np.testing.assert_array_equal(whole.of(weights), np.float32([1.0, 0.0, 0.5, 5.0 / 3.0]))
    parts = [pieces.of(weights[:1]), pieces.of(np.empty(0))]
    again = RelativeWeights()
    again.take_over(*pieces.save_state())
    parts += [again.of(weights[1:])]
    np.testing.assert_array_equal(np.concatenate(parts), np.float32([1.0, 0.0, 0.5, 5.0 / 3.0]))
    assert RelativeWeights().of(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]
    assert np.isfinite(RelativeWeights().of(np.array([1e-300, 1e300, 1e300]))).all()

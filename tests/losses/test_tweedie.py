"""Losses of counts and amounts: their deviances are scikit-learn's, and an offset is a rate with a weight."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mean_tweedie_deviance

from tunefree.losses import loss_of
from tunefree.losses.numbers import observe
from tunefree.losses.objectives import Objective
from tunefree.losses.rates import as_rates

LOSSES = {name: loss_of("regression", name) for name in ("poisson", "tweedie:1.1", "tweedie", "tweedie:1.9", "gamma")}
each_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
target = st.floats(1e-3, 1e3)
logarithm = st.floats(-6.0, 6.0)


@each_loss
@given(y=target, eta=logarithm)
def test_it_is_half_the_deviance_of_scikit_learn(loss, y, eta):
    expected = 0.5 * mean_tweedie_deviance([y], [math.exp(eta)], power=loss.power)
    assert loss.value(y, eta) == pytest.approx(expected, rel=1e-6, abs=1e-9 * (1 + y))
    if loss.power < 2.0:
        expected = 0.5 * mean_tweedie_deviance([0.0], [math.exp(eta)], power=loss.power)
        assert loss.value(0.0, eta) == pytest.approx(expected, rel=1e-9)


@each_loss
@given(y=target, eta=logarithm, exposure=st.floats(0.01, 50.0))
def test_an_offset_is_a_rate_with_a_weight(loss, y, eta, exposure):
    (rate,), (weight,) = as_rates(loss, np.array([y]), np.ones(1), np.array([exposure]))
    for function, rel in ((loss.value, 1e-7), (loss.slope, 1e-9), (loss.curvature, 1e-9)):
        expected = function(y, eta + math.log(exposure))
        assert weight * function(rate, eta) == pytest.approx(expected, rel=rel, abs=1e-9 * (1 + y))


@each_loss
def test_responses_undo_predictions(loss):
    means = np.array([1e-200, 0.5, 3.0, 1e200])
    assert loss.response(loss.prediction_of(means)) == pytest.approx(means, rel=1e-9)
    assert np.isfinite(loss.response(np.array([-1e308, 1e308]))).all()


def test_the_objective_follows_the_logarithm_of_the_mean():
    rng = np.random.default_rng(0)
    y, weight = rng.poisson(0.2, 500).astype(float), rng.exponential(size=500)
    objective = Objective("regression", LOSSES["poisson"])
    for row in zip(y, weight, strict=True):
        observe(objective.numbers, *row)
    assert objective.predictions_of(np.zeros((1, 1)))[0, 0] == pytest.approx(np.log(np.average(y, weights=weight)))


def test_while_all_targets_are_zero_half_an_event_is_expected():
    objective = Objective("regression", LOSSES["tweedie"])
    observe(objective.numbers, 0.0, 1.0)
    assert np.exp(objective.predictions_of(np.full((1, 1), 5.0))[0, 0]) == pytest.approx(0.5 / 1.5)
    assert objective.unit == 0.0

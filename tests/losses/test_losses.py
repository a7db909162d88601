"""Losses: slopes are slopes, constants are constants, and everything is finite."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tunefree import losses
from tunefree.losses import left_slope, slope, value
from tunefree.losses.contract import at_zero, growth, rescaled

CLASSIFICATION = {
    "logistic": losses.Logistic(),
    "hinge": losses.Hinge(),
    "smoothed hinge": losses.SmoothedHinge(),
    "squared hinge": losses.SquaredHinge(),
    "exponential": losses.Exponential(),
    "square": losses.Square(),
}
REGRESSION = {
    "square": losses.Square(),
    "absolute": losses.Absolute(),
    "power 1": losses.power_loss(1.0),
    "power 1.5": losses.power_loss(1.5),
    "power 3": losses.power_loss(3.0),
    "insensitive": losses.epsilon_insensitive(0.3),
    "insensitive 2": losses.epsilon_insensitive(0.3, 2.0),
    "huber": losses.huber(0.7),
    "quantile": losses.quantile(0.8),
}
CASES = [(f"{name} (labels)", loss, True) for name, loss in CLASSIFICATION.items()] + [
    (name, loss, False) for name, loss in REGRESSION.items()
]
holdout_stride = pytest.mark.parametrize(("loss", "labels"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
moderate = st.floats(-20, 20)
number = st.floats(-1e308, 1e308)


def target(labels, y):
    return math.copysign(1.0, y) if labels else y


@holdout_stride
@settings(max_examples=100, deadline=None)
@given(y=moderate, p=moderate, q=moderate)
def test_slope_is_a_subgradient_of_a_convex_loss(loss, labels, y, p, q):
    y = target(labels, y)
    lower = value(loss, y, p) + slope(loss, y, p) * (q - p)
    assert value(loss, y, q) >= lower - 1e-9 * (1 + abs(lower))


@holdout_stride
@settings(max_examples=100, deadline=None)
@given(y=moderate, p=moderate, q=moderate)
def test_lipschitz_and_smoothness_constants(loss, labels, y, p, q):
    y = target(labels, y)
    assert abs(slope(loss, y, p)) <= loss.lipschitz * (1 + 1e-12)
    change = abs(slope(loss, y, p) - slope(loss, y, q))
    assert loss.smoothness == math.inf or change <= loss.smoothness * abs(p - q) * (1 + 1e-9) + 1e-12


@holdout_stride
@pytest.mark.parametrize("p", [-1e308, -1e160, -800.0, -1e-300, 0.0, 1e-300, 1.0, 800.0, 1e160, 1e308])
@pytest.mark.parametrize("y", [-1e308, -1.0, 1.0, 1e308])
def test_finite_for_any_prediction(loss, labels, y, p):
    y = target(labels, y)
    assert math.isfinite(value(loss, y, p))
    assert value(loss, y, p) >= 0
    assert math.isfinite(slope(loss, y, p))


@settings(max_examples=200, deadline=None)
@given(p=st.floats(-700, 700))
def test_logistic_is_accurate_in_the_tails(p):
    expected = np.logaddexp(0.0, np.longdouble(-p))
    assert value(losses.Logistic(), 1.0, p) == pytest.approx(float(expected), rel=1e-14, abs=0)
    steep = -1 / (1 + np.exp(np.longdouble(p)))
    assert slope(losses.Logistic(), 1.0, p) == pytest.approx(float(steep), rel=1e-13, abs=0)


def test_the_papers_smoothed_hinge():
    loss = losses.SmoothedHinge()
    assert [value(loss, 1.0, m) for m in (2.0, 0.5, 0.0, -1.0)] == [0.0, 0.25, 1.0, 3.0]
    assert [slope(loss, -1.0, -m) for m in (2.0, 0.5, 0.0, -1.0)] == [0.0, 1.0, 2.0, 2.0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: losses.huber(0.0),
        lambda: losses.huber(math.nan),
        lambda: losses.quantile(1.0),
        lambda: losses.power_loss(0.5),
        lambda: losses.epsilon_insensitive(-1.0),
        lambda: losses.epsilon_insensitive(0.1, 0.5),
    ],
)
def test_impossible_parameters_are_refused(make):
    with pytest.raises(ValueError, match=r"must|at least"):
        make()


@holdout_stride
@settings(max_examples=100, deadline=None)
@given(y=moderate, p=moderate, step=st.floats(1e-7, 1.0))
def test_left_slope_is_the_left_derivative(loss, labels, y, p, step):
    y = target(labels, y)
    left = left_slope(loss, y, p)
    assert value(loss, y, p - step) >= value(loss, y, p) - step * left - 1e-9 * (1 + abs(left))
    # Convex: the difference quotient from the left grows to the left derivative.
    quotient = (value(loss, y, p) - value(loss, y, p - 1e-6)) / 1e-6
    assert quotient <= left + 1e-7 * (1 + abs(left) + value(loss, y, p))
    assert left <= slope(loss, y, p) + 1e-12


KINKS = [
    (losses.Hinge(), 1.0, 1.0, -1.0),
    (losses.Hinge(), -1.0, -1.0, 0.0),
    (losses.Hinge(), -1.0, -0.999, 1.0),
    (losses.Absolute(), 2.0, 2.0, -1.0),
    (losses.power_loss(1.0), 2.0, 2.0, -1.0),
    (losses.power_loss(2.0), 2.0, 2.0, 0.0),
    (losses.quantile(0.75), 2.0, 2.0, -0.75),
    (losses.epsilon_insensitive(0.5), 2.0, 2.5, 0.0),
    (losses.epsilon_insensitive(0.5), 2.0, 2.75, 1.0),
    (losses.epsilon_insensitive(0.5), 2.0, 1.5, -1.0),
    (losses.epsilon_insensitive(0.0), 2.0, 2.0, -1.0),
    (losses.epsilon_insensitive(0.25, 2.0), 2.0, 1.5, -1.0),
    (losses.epsilon_insensitive(0.25, 2.0), 2.0, 2.5, 0.0),
]


@pytest.mark.parametrize(("loss", "y", "p", "left"), KINKS)
def test_at_kinks_the_piece_to_the_left_counts(loss, y, p, left):
    assert left_slope(loss, y, p) == left


@holdout_stride
@settings(max_examples=100, deadline=None)
@given(y=moderate, p=st.floats(-1e3, 1e3), bound=st.floats(0.1, 20.0))
def test_growth_constants_bound_slopes(loss, labels, y, p, bound):
    y = target(labels, y) if labels else min(max(y, -bound), bound)
    power, constant = growth(loss, 1.0 if labels else bound)
    if power == 0.0:
        assert abs(left_slope(loss, y, p)) <= constant * (1 + 1e-12)
    elif power < math.inf:
        assert abs(left_slope(loss, y, p)) <= constant * (1 + abs(p) ** power) * (1 + 1e-12)
    assert value(loss, y, 0.0) <= at_zero(loss, 1.0 if labels else bound) * (1 + 1e-12)


def test_growth_exponents():
    exponents = {name: growth(loss, 1.0).power for name, loss in (CLASSIFICATION | REGRESSION).items()}
    assert exponents == {
        "logistic": 0.0,
        "hinge": 0.0,
        "smoothed hinge": 0.0,
        "squared hinge": 1.0,
        "exponential": math.inf,
        "square": 1.0,
        "absolute": 0.0,
        "power 1": 0.0,
        "power 1.5": 0.5,
        "power 3": 2.0,
        "insensitive": 0.0,
        "insensitive 2": 1.0,
        "huber": 0.0,
        "quantile": 0.0,
    }


@pytest.mark.parametrize("loss", REGRESSION.values(), ids=REGRESSION)
@settings(max_examples=50, deadline=None)
@given(y=moderate, p=moderate, exponent=st.integers(-20, 20))
def test_losses_in_other_units(loss, y, p, exponent):
    unit = 2.0**exponent
    own, factor = rescaled(loss, unit)
    assert factor * value(own, y / unit, p / unit) == pytest.approx(value(loss, y, p), rel=1e-9, abs=1e-12)
    assert factor / unit * slope(own, y / unit, p / unit) == pytest.approx(slope(loss, y, p), rel=1e-9, abs=1e-12)


def test_smooth_losses_of_other_units_keep_their_constants():
    own, _ = rescaled(losses.huber(3.0), 2.0)
    assert (own.delta, own.lipschitz, own.smoothness) == (1.5, 1.5, 1.0)

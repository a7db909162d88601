"""Losses: slopes are slopes, constants are constants, and everything is finite."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tunefree import losses
from tunefree.losses import slope, value

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
every = pytest.mark.parametrize(("loss", "labels"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
moderate = st.floats(-20, 20)
number = st.floats(-1e308, 1e308)


def target(labels, y):
    return math.copysign(1.0, y) if labels else y


@every
@settings(max_examples=100, deadline=None)
@given(y=moderate, p=moderate, q=moderate)
def test_slope_is_a_subgradient_of_a_convex_loss(loss, labels, y, p, q):
    y = target(labels, y)
    lower = value(loss, y, p) + slope(loss, y, p) * (q - p)
    assert value(loss, y, q) >= lower - 1e-9 * (1 + abs(lower))


@every
@settings(max_examples=100, deadline=None)
@given(y=moderate, p=moderate, q=moderate)
def test_lipschitz_and_smoothness_constants(loss, labels, y, p, q):
    y = target(labels, y)
    assert abs(slope(loss, y, p)) <= loss.lipschitz * (1 + 1e-12)
    change = abs(slope(loss, y, p) - slope(loss, y, q))
    assert loss.smoothness == math.inf or change <= loss.smoothness * abs(p - q) * (1 + 1e-9) + 1e-12


@every
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

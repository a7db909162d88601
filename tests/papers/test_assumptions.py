"""What papers assume of a loss: how its slopes grow, and its link function, which minimises the conditional risk."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from tests.losses.test_contract import CLASSIFICATION, REGRESSION, every_loss, moderate, target
from tunefree import losses
from tunefree.papers.growth import at_zero, growth
from tunefree.papers.links import least_risk, link, low_noise_margin, risk

for_labels = pytest.mark.parametrize("loss", CLASSIFICATION.values(), ids=CLASSIFICATION)
probability_inside = st.floats(0.001, 0.999)


@every_loss
@given(y=moderate, p=st.floats(-1e3, 1e3), bound=st.floats(0.1, 20.0))
def test_growth_constants_bound_slopes(loss, labels, y, p, bound):
    y = target(labels, y) if labels else min(max(y, -bound), bound)
    power, constant = growth(loss, 1.0 if labels else bound)
    if power == 0.0:
        assert abs(loss.left_slope(y, p)) <= constant * (1 + 1e-12)
    elif power < math.inf:
        assert abs(loss.left_slope(y, p)) <= constant * (1 + abs(p) ** power) * (1 + 1e-12)
    assert loss.value(y, 0.0) <= at_zero(loss, 1.0 if labels else bound) * (1 + 1e-12)


def test_growth_exponents():
    exponents = {name: growth(loss, 1.0).power for name, loss in (CLASSIFICATION | REGRESSION).items()}
    expected = {
        "logistic": 0.0,
        "hinge": 0.0,
        "smoothed-hinge": 0.0,
        "squared-hinge": 1.0,
        "exponential": math.inf,
        "square": 1.0,
        "absolute": 0.0,
        "absolute-power:1": 0.0,
        "absolute-power:1.5": 0.5,
        "absolute-power:3": 2.0,
        "epsilon-insensitive:0.3": 0.0,
        "epsilon-insensitive:0.3:2": 1.0,
        "huber:0.7": 0.0,
        "quantile:0.8": 0.0,
        "log-cosh:0.3": 0.0,
        "log-cosh:2.0": 0.0,
    }
    assert {name: exponents[name] for name in expected} == expected


@for_labels
@given(probability=probability_inside)
def test_the_link_minimises_the_conditional_risk(loss, probability):
    least = minimize_scalar(lambda h: risk(loss, probability, h), bounds=(-12, 12), method="bounded").fun
    assert least_risk(loss, probability) <= least + 1e-9
    assert least_risk(loss, probability) == risk(loss, probability, link(loss, probability))


def test_the_papers_links():
    assert link(losses.Logistic(), 0.8) == pytest.approx(math.log(4.0))
    assert link(losses.Square(), 0.8) == pytest.approx(0.6)
    assert link(losses.Exponential(), 0.8) == pytest.approx(0.5 * math.log(4.0))
    assert link(losses.SmoothedHinge(), 0.8) == pytest.approx(0.75)
    assert link(losses.SmoothedHinge(), 0.2) == pytest.approx(-0.75)
    margins = [low_noise_margin(loss, 0.3) for loss in (losses.Logistic(), losses.Square())]
    assert margins == pytest.approx([math.log(4.0), 0.6])


def test_margins_grow_at_least_like_delta_over_the_lipschitz_constant_of_the_inverse():
    for delta in (0.01, 0.1, 0.4):
        assert low_noise_margin(losses.Logistic(), delta) >= 4 * delta
        assert low_noise_margin(losses.Square(), delta) >= 2 * delta * (1 - 1e-12)

"""What papers assume of a loss: how its slopes grow, its link, and excess risks where the Bayes rule is known."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from tests.losses.test_contract import CLASSIFICATION, IN_UNITS, REGRESSION, every_loss, moderate, target
from tunefree import losses
from tunefree.papers.excess import excess_risk, excess_risk_by_bregman
from tunefree.papers.growth import at_zero, growth
from tunefree.papers.left_slopes import left_slope
from tunefree.papers.links import least_risk, link, risk

probability_inside = st.floats(0.001, 0.999)


@every_loss
@given(y=moderate, p=moderate, step=st.floats(1e-7, 1.0))
def test_left_slope_is_the_left_derivative(loss, labels, y, p, step):
    y = target(labels, y)
    left = left_slope(loss, y, p)
    assert loss.value(y, p - step) >= loss.value(y, p) - step * left - 1e-9 * (1 + abs(left))
    # Convex: the difference quotient from the left grows to the left derivative.
    quotient = (loss.value(y, p) - loss.value(y, p - 1e-6)) / 1e-6
    assert quotient <= left + 1e-7 * (1 + abs(left) + loss.value(y, p))
    assert left <= loss.slope(y, p) + 1e-12


KINKS = [
    (losses.Hinge(), 1.0, 1.0, -1.0),
    (losses.Hinge(), -1.0, -1.0, 0.0),
    (losses.Absolute(), 2.0, 2.0, -1.0),
    (losses.power_loss(1.0), 2.0, 2.0, -1.0),
    (losses.quantile(0.75), 2.0, 2.0, -0.75),
    (losses.epsilon_insensitive(0.5), 2.0, 2.5, 0.0),
    (losses.epsilon_insensitive(0.5), 2.0, 1.5, -1.0),
    (losses.epsilon_insensitive(0.25, 2.0), 2.0, 1.5, -1.0),
    (losses.epsilon_insensitive(0.25, 2.0), 2.0, 2.5, 0.0),
]


@pytest.mark.parametrize(("loss", "y", "p", "left"), KINKS)
def test_at_kinks_the_piece_to_the_left_counts(loss, y, p, left):
    assert left_slope(loss, y, p) == left


@every_loss
@given(y=moderate, p=st.floats(-1e3, 1e3), bound=st.floats(0.1, 20.0))
def test_growth_constants_bound_slopes(loss, labels, y, p, bound):
    y = target(labels, y) if labels else min(max(y, -bound), bound)
    power, constant = growth(loss, 1.0 if labels else bound)
    if power == 0.0:
        assert abs(left_slope(loss, y, p)) <= constant * (1 + 1e-12)
    elif power < math.inf:
        assert abs(left_slope(loss, y, p)) <= constant * (1 + abs(p) ** power) * (1 + 1e-12)
    assert loss.value(y, 0.0) <= at_zero(loss, 1.0 if labels else bound) * (1 + 1e-12)


def test_growth_exponents():
    exponents = {name: growth(loss, 1.0).power for name, loss in (CLASSIFICATION | REGRESSION).items()}
    expected = {"squared-hinge": 1.0, "square": 1.0, "epsilon-insensitive:0.3:2": 1.0, "exponential": math.inf}
    expected |= {"absolute-power:1.5": 0.5, "absolute-power:3": 2.0}
    expected |= dict.fromkeys(REGRESSION.keys() - IN_UNITS.keys(), math.inf)
    assert {name: power for name, power in exponents.items() if power} == expected


@pytest.mark.parametrize("loss", CLASSIFICATION.values(), ids=CLASSIFICATION)
@given(probability=probability_inside)
def test_the_link_minimises_the_conditional_risk(loss, probability):
    least = minimize_scalar(lambda h: risk(loss, probability, h), bounds=(-12, 12), method="bounded").fun
    assert least_risk(loss, probability) <= least + 1e-9
    assert least_risk(loss, probability) == risk(loss, probability, link(loss, probability))


INVERTIBLE = [losses.Logistic(), losses.Square(), losses.SquaredHinge(), losses.Exponential(), losses.SmoothedHinge()]


@pytest.mark.parametrize("loss", INVERTIBLE, ids=lambda loss: type(loss).__name__)
@given(pairs=st.lists(st.tuples(st.floats(0.01, 0.99), st.floats(0.01, 0.99)), min_size=1, max_size=8))
def test_the_identity_of_excess_risk_and_bregman_divergence(loss, pairs):
    stands_for, true = np.array(pairs).T
    predictions = [link(loss, mu) for mu in stands_for.tolist()]
    direct = excess_risk(loss, predictions, true)
    assert excess_risk_by_bregman(loss, predictions, true) == pytest.approx(direct, rel=1e-8, abs=1e-10)
    assert direct >= -1e-12

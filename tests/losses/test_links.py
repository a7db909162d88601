"""Link functions: they minimise the conditional risk, and their inverses undo them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from tunefree import losses
from tunefree.losses.links import has_inverse_link, inverse_link, least_risk, link, low_noise_margin, risk

LOSSES = [
    losses.Logistic(),
    losses.Square(),
    losses.SquaredHinge(),
    losses.Exponential(),
    losses.SmoothedHinge(),
    losses.Hinge(),
]
holdout_stride = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
inner = st.floats(0.001, 0.999)


@holdout_stride
@settings(max_examples=60, deadline=None)
@given(probability=inner)
def test_the_link_minimises_the_conditional_risk(loss, probability):
    found = minimize_scalar(lambda h: risk(loss, probability, h), bounds=(-12, 12), method="bounded").fun
    assert least_risk(loss, probability) <= found + 1e-9
    assert least_risk(loss, probability) == risk(loss, probability, link(loss, probability))


@holdout_stride
@settings(max_examples=60, deadline=None)
@given(probability=inner)
def test_the_inverse_undoes_the_link(loss, probability):
    if has_inverse_link(loss):
        assert inverse_link(loss, np.array([link(loss, probability)]))[0] == pytest.approx(probability, rel=1e-9)


@holdout_stride
def test_signs_agree_with_the_likelier_label(loss):
    for probability in (0.01, 0.3, 0.499, 0.501, 0.7, 0.99):
        assert math.copysign(1.0, link(loss, probability)) == math.copysign(1.0, probability - 0.5)


def test_the_papers_formulas():
    assert link(losses.Logistic(), 0.8) == pytest.approx(math.log(4.0))
    assert link(losses.Square(), 0.8) == pytest.approx(0.6)
    assert link(losses.Exponential(), 0.8) == pytest.approx(0.5 * math.log(4.0))
    assert link(losses.SmoothedHinge(), 0.8) == pytest.approx(0.75)
    assert link(losses.SmoothedHinge(), 0.2) == pytest.approx(-0.75)
    assert [low_noise_margin(loss, 0.3) for loss in LOSSES[:2]] == pytest.approx([math.log(4.0), 0.6])


def test_margins_grow_at_least_like_delta_over_the_lipschitz_constant_of_the_inverse():
    for delta in (0.01, 0.1, 0.4):
        assert low_noise_margin(losses.Logistic(), delta) >= 4 * delta
        assert low_noise_margin(losses.Square(), delta) >= 2 * delta * (1 - 1e-12)


@pytest.mark.parametrize("loss", LOSSES[:5], ids=lambda loss: type(loss).__name__)
def test_probabilities_are_probabilities_at_any_prediction(loss):
    shares = inverse_link(loss, np.array([-1e308, -800.0, -1.0, -1e-300, 0.0, 1e-300, 1.0, 800.0, 1e308]))
    assert (np.diff(shares) >= 0).all() and shares[0] == 0.0 and shares[-1] == 1.0 and shares[4] == 0.5


def test_what_has_no_link_says_so():
    with pytest.raises(TypeError, match="no link"):
        link(losses.Absolute(), 0.3)
    with pytest.raises(TypeError, match="no inverse"):
        inverse_link(losses.Hinge(), np.zeros(1))
    with pytest.raises(ValueError, match="between 0 and 1/2"):
        low_noise_margin(losses.Logistic(), 0.5)

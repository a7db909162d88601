"""Every loss holds its contract: those of the registry, and the one that the documentation adds from outside.

Slopes and curvatures are derivatives, constants are bounds, everything is finite, links minimise the conditional risk.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from tests.extending import run_page
from tunefree import losses
from tunefree.losses import contract, curvature, left_slope, loss_of, slope, value
from tunefree.losses.contract import at_zero, growth, has_inverse_link, inverse_link, link, rescaled, variance_exponent
from tunefree.losses.links import least_risk, low_noise_margin, risk

PAGE = run_page("loss.md", until="losses.register")
PARAMETERS = {  # what is tested instead of the defaults
    "absolute-power": ["absolute-power:1", "absolute-power:1.5", "absolute-power:3"],
    "epsilon-insensitive": ["epsilon-insensitive:0.3", "epsilon-insensitive:0.3:2"],
    "huber": ["huber:0.7"],
    "quantile": ["quantile:0.8"],
    "tweedie": ["tweedie:1.5", "tweedie:1.1", "tweedie:1.99"],
}


def of_task(task):
    """The losses of a task by what is written on the command line."""
    written = itertools.chain(*(PARAMETERS.get(name, [name]) for name in losses.names(task)))
    return {name: loss_of(task, name) for name in written}


CLASSIFICATION = of_task("classification")
REGRESSION = of_task("regression") | {f"log-cosh:{scale}": PAGE["log_cosh"](scale) for scale in (0.3, 2.0)}
CASES = [(f"{name} (labels)", loss, True) for name, loss in CLASSIFICATION.items()] + [
    (name, loss, False) for name, loss in REGRESSION.items()
]
# Losses of a prediction in units of the target; those with a logarithmic link have none.
IN_UNITS = {name: loss for name, loss in REGRESSION.items() if not isinstance(loss, losses.Tweedie)}
every_loss = pytest.mark.parametrize(("loss", "labels"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
for_labels = pytest.mark.parametrize("loss", CLASSIFICATION.values(), ids=CLASSIFICATION)
moderate = st.floats(-20, 20)
number = st.floats(-1e308, 1e308)
probability_inside = st.floats(0.001, 0.999)
EXTREMES = [-1e308, -1e160, -800.0, -1.0, -1e-300, 0.0, 1e-300, 1.0, 800.0, 1e160, 1e308]


def target(labels, y):
    return math.copysign(1.0, y) if labels else y


@every_loss
@given(y=moderate, p=moderate, q=moderate)
def test_slope_is_a_subgradient_of_a_convex_loss(loss, labels, y, p, q):
    y = target(labels, y)
    lower = value(loss, y, p) + slope(loss, y, p) * (q - p)
    assert value(loss, y, q) >= lower - 1e-9 * (1 + abs(lower))


@every_loss
@given(y=moderate, p=moderate, q=moderate)
def test_lipschitz_and_smoothness_constants(loss, labels, y, p, q):
    y = target(labels, y)
    assert abs(slope(loss, y, p)) <= loss.lipschitz * (1 + 1e-12)
    change = abs(slope(loss, y, p) - slope(loss, y, q))
    assert loss.smoothness == math.inf or change <= loss.smoothness * abs(p - q) * (1 + 1e-9) + 1e-12
    assert 0.0 <= curvature(loss, y, p) <= loss.smoothness * (1 + 1e-12)


@every_loss
@given(y=moderate, p=moderate)
def test_curvature_is_the_derivative_of_the_slope(loss, labels, y, p):
    y = target(labels, y)
    steps = (1e-4, -1e-4, 2e-5, -2e-5)
    quotients = [(slope(loss, y, p + step) - slope(loss, y, p)) / step for step in steps]
    assume(quotients == pytest.approx([quotients[0]] * 4, rel=1e-2, abs=1e-6))  # not so where the slope jumps or bends
    assert curvature(loss, y, p) == pytest.approx(quotients[0], rel=2e-2, abs=1e-5)


@every_loss
def test_finite_for_any_prediction(loss, labels):
    for y, p in itertools.product([-1e308, -1.0, 1.0, 1e308], EXTREMES):
        y = target(labels, y)
        assert 0.0 <= value(loss, y, p) < math.inf, (y, p)
        assert math.isfinite(slope(loss, y, p)), (y, p)


@every_loss
@given(y=number, p=number)
@example(y=-1e308, p=1e308)
def test_finite_for_any_target_and_prediction(loss, labels, y, p):
    y = target(labels, y)
    assert value(loss, y, p) >= 0
    assert curvature(loss, y, p) >= 0
    assert all(math.isfinite(function(loss, y, p)) for function in (value, slope, curvature, left_slope))


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
        lambda: losses.tweedie(1.0),
        lambda: losses.tweedie(math.nan),
        lambda: losses.power_loss(0.5),
        lambda: losses.epsilon_insensitive(-1.0),
        lambda: losses.epsilon_insensitive(0.1, 0.5),
        lambda: PAGE["log_cosh"](0.0),
    ],
)
def test_impossible_parameters_are_refused(make):
    with pytest.raises(ValueError, match=r"must|at least"):
        make()


@every_loss
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


@every_loss
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


@pytest.mark.parametrize("loss", IN_UNITS.values(), ids=IN_UNITS)
@given(y=moderate, p=moderate, exponent=st.integers(-20, 20))
def test_losses_in_other_units(loss, y, p, exponent):
    unit = 2.0**exponent
    scaled, factor = rescaled(loss, unit)
    assert factor * value(scaled, y / unit, p / unit) == pytest.approx(value(loss, y, p), rel=1e-9, abs=1e-12)
    assert factor / unit * slope(scaled, y / unit, p / unit) == pytest.approx(slope(loss, y, p), rel=1e-9, abs=1e-12)
    assert factor / unit * scaled.lipschitz == pytest.approx(loss.lipschitz)
    assert factor / unit**2 * scaled.smoothness == pytest.approx(loss.smoothness)


def test_smooth_losses_of_other_units_keep_their_constants():
    scaled, _ = rescaled(losses.huber(3.0), 2.0)
    assert (scaled.delta, scaled.lipschitz, scaled.smoothness) == (1.5, 1.5, 1.0)


def test_the_square_loss_alone_implies_an_exponent_of_the_variance():
    assert [loss for loss in (CLASSIFICATION | REGRESSION).values() if variance_exponent(loss)] == [losses.Square()]


@for_labels
@given(probability=probability_inside)
def test_the_link_minimises_the_conditional_risk(loss, probability):
    least = minimize_scalar(lambda h: risk(loss, probability, h), bounds=(-12, 12), method="bounded").fun
    assert least_risk(loss, probability) <= least + 1e-9
    assert least_risk(loss, probability) == risk(loss, probability, link(loss, probability))


@for_labels
@given(probability=probability_inside)
def test_the_inverse_undoes_the_link(loss, probability):
    if has_inverse_link(loss):
        assert inverse_link(loss, np.array([link(loss, probability)]))[0] == pytest.approx(probability, rel=1e-9)


@for_labels
def test_signs_agree_with_the_likelier_label(loss):
    for probability in (0.01, 0.3, 0.499, 0.501, 0.7, 0.99):
        assert math.copysign(1.0, link(loss, probability)) == math.copysign(1.0, probability - 0.5)


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


INVERTIBLE = {name: loss for name, loss in CLASSIFICATION.items() if has_inverse_link(loss)}


def test_which_losses_give_probabilities():
    assert set(INVERTIBLE) >= {"logistic", "square", "squared-hinge", "exponential", "smoothed-hinge"}
    assert not any(has_inverse_link(loss) for loss in (losses.Hinge(), losses.Absolute(), PAGE["log_cosh"]()))


@pytest.mark.parametrize("loss", INVERTIBLE.values(), ids=INVERTIBLE)
def test_probabilities_are_probabilities_at_any_prediction(loss):
    shares = inverse_link(loss, np.array([-1e308, -800.0, -1.0, -1e-300, 0.0, 1e-300, 1.0, 800.0, 1e308]))
    assert (np.diff(shares) >= 0).all() and shares[0] == 0.0 and shares[-1] == 1.0 and shares[4] == 0.5


def test_what_a_loss_lacks_is_said():
    with pytest.raises(TypeError, match="no link"):
        link(losses.Absolute(), 0.3)
    with pytest.raises(TypeError, match="no inverse"):
        inverse_link(losses.Hinge(), np.zeros(1))
    with pytest.raises(TypeError, match="not a regression loss"):
        rescaled(losses.Hinge(), 2.0)
    with pytest.raises(ValueError, match="between 0 and 1/2"):
        low_noise_margin(losses.Logistic(), 0.5)
    for function, arguments in ((contract.growth, (1.0,)), *((f, (1.0, 1.0)) for f in (value, slope, curvature))):
        with pytest.raises(TypeError, match="tuple is not a loss"):
            function((), *arguments)

"""Every loss holds its contract: those of the registry, and the one that the documentation adds from outside.

Slopes and curvatures are derivatives, constants are bounds, and everything is finite.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.extending import run_page
from tunefree import losses
from tunefree.core.errors import ModelError
from tunefree.losses import loss_of

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
CASES = [(f"{name} (labels)", loss, True) for name, loss in CLASSIFICATION.items()]
CASES += [(name, loss, False) for name, loss in REGRESSION.items()]
# Losses of a prediction in units of the target; those with a logarithmic link have none.
IN_UNITS = {name: loss for name, loss in REGRESSION.items() if not isinstance(loss, losses.Tweedie)}
every_loss = pytest.mark.parametrize(("loss", "labels"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
moderate = st.floats(-20, 20)
number = st.floats(-1e308, 1e308)
EXTREMES = [-1e308, -1e160, -800.0, -1.0, -1e-300, 0.0, 1e-300, 1.0, 800.0, 1e160, 1e308]


def target(labels, y):
    return math.copysign(1.0, y) if labels else y


@every_loss
@given(y=moderate, p=moderate, q=moderate)
def test_slopes_are_subgradients_of_a_convex_loss_and_constants_bound_them(loss, labels, y, p, q):
    y = target(labels, y)
    lower = loss.value(y, p) + loss.slope(y, p) * (q - p)
    assert loss.value(y, q) >= lower - 1e-9 * (1 + abs(lower))
    assert abs(loss.slope(y, p)) <= loss.lipschitz * (1 + 1e-12)
    change = abs(loss.slope(y, p) - loss.slope(y, q))
    assert loss.smoothness == math.inf or change <= loss.smoothness * abs(p - q) * (1 + 1e-9) + 1e-12
    assert 0.0 <= loss.curvature(y, p) <= loss.smoothness * (1 + 1e-12)


@every_loss
@given(y=moderate, p=moderate)
def test_curvature_is_the_derivative_of_the_slope(loss, labels, y, p):
    y = target(labels, y)
    steps = (1e-4, -1e-4, 2e-5, -2e-5)
    quotients = [(loss.slope(y, p + step) - loss.slope(y, p)) / step for step in steps]
    assume(quotients == pytest.approx([quotients[0]] * 4, rel=1e-2, abs=1e-6))  # not so where the slope jumps or bends
    assert loss.curvature(y, p) == pytest.approx(quotients[0], rel=2e-2, abs=1e-5)


@every_loss
@given(drawn=st.tuples(number, number))
def test_finite_for_any_target_and_prediction(loss, labels, drawn):
    for y, p in [drawn, *itertools.product([-1e308, -1.0, 1.0, 1e308], EXTREMES)]:
        y = target(labels, y)
        assert loss.value(y, p) >= 0.0 <= loss.curvature(y, p), (y, p)
        answers = [getattr(loss, name)(y, p) for name in ("value", "slope", "curvature")]
        assert np.isfinite(answers).all(), (y, p)


@given(p=st.floats(-700, 700))
def test_logistic_is_accurate_in_the_tails(p):
    expected = np.logaddexp(0.0, np.longdouble(-p))
    assert losses.Logistic().value(1.0, p) == pytest.approx(float(expected), rel=1e-14, abs=0)
    steep = -1 / (1 + np.exp(np.longdouble(p)))
    assert losses.Logistic().slope(1.0, p) == pytest.approx(float(steep), rel=1e-13, abs=0)


@pytest.mark.parametrize("loss", IN_UNITS.values(), ids=IN_UNITS)
@given(y=moderate, p=moderate, exponent=st.integers(-20, 20))
def test_losses_in_other_units(loss, y, p, exponent):
    unit = 2.0**exponent
    scaled, factor = loss.rescaled(unit)
    assert factor * scaled.value(y / unit, p / unit) == pytest.approx(loss.value(y, p), rel=1e-9, abs=1e-12)
    assert factor / unit * scaled.slope(y / unit, p / unit) == pytest.approx(loss.slope(y, p), rel=1e-9, abs=1e-12)
    assert factor / unit * scaled.lipschitz == pytest.approx(loss.lipschitz)
    assert factor / unit**2 * scaled.smoothness == pytest.approx(loss.smoothness)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("absolute-power:0.99", "the power must be at least 1, not 0.99"),
        ("absolute-power:inf", "the power must be at least 1, not inf"),
        ("epsilon-insensitive:-0.1", "epsilon must be a number of at least 0, not -0.1"),
        ("huber:0", "delta must be a number above 0, not 0.0"),
        ("huber:1:2", "too many parameters; write huber:DELTA"),
        ("quantile:1.5", "tau must lie between 0 and 1"),
        ("tweedie:2", "the power must lie between 1 .* and 2 .*, not 2.0"),
    ],
)
def test_parameters_out_of_range_are_refused(name, problem):
    with pytest.raises(ModelError, match=f"loss '{name}'.*{problem}"):
        loss_of("regression", name)

"""Stopping times and rates against numbers worked out by hand from the paper's formulas; bounds against true errors."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, target
from hypothesis import strategies as st

from tests import naive
from tunefree import losses
from tunefree.papers.early_stopping.stopping_times import (
    gradient_bound,
    hinge_schedule,
    largest_step,
    optimisation_bound,
    stopping_time,
)
from tunefree.papers.growth import growth
from tunefree.papers.left_slopes import left_slope

HINGE, LOGISTIC, SQUARE, CUBE = losses.Hinge(), losses.Logistic(), losses.Square(), losses.power_loss(3.0)

# (loss, options) -> exponent, rate, logarithm; each worked out by hand from the statement named.
BY_HAND = {
    "Corollary 6": (HINGE, {"theta": 0.5}, "2/3", "1/3", True),
    # theta >= 1/2: gamma = 2/((1-theta)(2 beta+1)(2-tau+zeta tau/2)) with 2 - 1/2 + 1/4 = 7/4.
    "Corollary 5, late": (HINGE, {"theta": 0.5, "beta": 0.5, "tau": 0.5, "zeta": 1.0}, "8/7", "2/7", True),
    # theta < 1/2: gamma = 2/((1-theta+2 beta theta) 7/4), alpha = theta beta gamma; theta = 1/4, beta = 1/2.
    "Corollary 5, early": (HINGE, {"theta": 0.25, "beta": 0.5, "tau": 0.5, "zeta": 1.0}, "8/7", "1/7", True),
    # q = 2, edge 3/4: 2/(1-theta) = 10; (1+2)(2) + 2(1+1/2) = 9.
    "Theorem 4, late": (CUBE, {"theta": 0.8, "zeta": 1.0}, "10/9", "2/9", False),
    # theta = 0.7: (theta(1+q)-q)/(1-theta) = 1/3; gamma = (20/3)/((1+2/3) 2 + 3); alpha = 1/(2 + 3(1+3/2)).
    "Theorem 4, early": (CUBE, {"theta": 0.7, "zeta": 1.0}, "20/19", "2/19", True),
    "Theorem 7, late": (HINGE, {"theta": 0.75, "output": "average"}, "4/3", "1/3", False),
    "Theorem 7, at the edge": (HINGE, {"theta": 0.5, "output": "best"}, "2/3", "1/3", True),
    "Theorem 7, early": (HINGE, {"theta": 0.25, "output": "average"}, "4/5", "1/5", False),
    # Theorem 8 with q = 0: gamma = 2/((1-theta)(1+2 beta)(2-tau+zeta tau/2)), alpha = (1-theta) beta gamma.
    "Theorem 8": (LOGISTIC, {"theta": 0.5, "beta": 0.5, "tau": 0.5, "zeta": 1.0}, "8/7", "2/7", False),
    "Corollary 9": (LOGISTIC, {"theta": 0.25, "beta": 0.5}, "2/3", "1/4", False),
    "Corollary 10, f in the space": (SQUARE, {"zeta": 1.0}, "1/3", "1/3", False),
    # T = m^(1/((1-theta)(2 beta+1))), rate beta/(2 beta+1)
    "Theorem 11": (HINGE, {"theta": 0.6, "beta": 0.5, "zeta": 0.3}, "5/4", "1/4", False),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_stopping_times_by_hand(case):
    loss, options, exponent, rate, logarithm = BY_HAND[case]
    found = stopping_time(5000, loss, **options)
    assert found.exponent == pytest.approx(float(Fraction(exponent)), rel=1e-14)
    assert found.rate == pytest.approx(float(Fraction(rate)), rel=1e-14)
    assert found.logarithm is logarithm
    assert found.iterations == math.ceil(5000 ** float(Fraction(exponent)) - 1e-6)


def test_theorem_12_by_hand():
    # epsilon = 1/6, beta = 9/10 > 7/10: theta = (3.6-1+0.5 2.8)/(2.8 2.5) = 4/7, T = m^(5/6), rate 1/3 - 1/24
    found = hinge_schedule(64, beta=0.9, epsilon=1 / 6)
    assert found.theta == pytest.approx(4 / 7, rel=1e-14)
    assert (found.iterations, found.exponent) == (32, pytest.approx(5 / 6))
    assert found.rate == pytest.approx(7 / 24)


def test_largest_steps_by_hand():
    # (10) with c_0 = 1, |V|_0 = 1: min(sqrt(1/2)/(sqrt 2 (kappa+1)), (1/2)/4)
    assert largest_step(HINGE, 0.5, kappa=1.0) == pytest.approx(0.125)
    assert largest_step(HINGE, 0.5, kappa=9.0) == pytest.approx(0.05)
    # Theorem 8: min((1-theta)/(2 ln 2), 4/kappa^2)
    assert largest_step(LOGISTIC, 0.5, kappa=1.0) == pytest.approx(0.25 / math.log(2))
    assert largest_step(LOGISTIC, 0.0, kappa=4.0) == pytest.approx(0.25)
    # the multinomial logistic loss: L = 1/2, |V|_0 = ln K
    assert largest_step(LOGISTIC, 0.0, kappa=4.0, outputs=3, softmax=True) == pytest.approx(2 / 16)
    assert largest_step(LOGISTIC, 0.5, kappa=0.1, outputs=3, softmax=True) == pytest.approx(0.25 / math.log(3))
    # the square loss: L = 2, |V|_0 = b^2
    assert largest_step(SQUARE, 0.0, kappa=1.0, bound=0.5) == pytest.approx(0.5)
    # q = 2, c_2 = 3 * 2: min(sqrt(1/8)/(6 (kappa+1)^3), (1/4)/4)
    assert largest_step(CUBE, 0.75, kappa=1.0) == pytest.approx(math.sqrt(1 / 8) / 48)


@pytest.mark.parametrize(("theta", "last", "mean"), [
    (0.75, 20 + 0.4 * (1.5 + 2**1.5), 80 + 0.4 * 4.5),
    (0.5, (20 + 0.4 * 6) * math.log(16) / 4, (80 + 0.4 * 3) * math.log(16) / 4),
    (0.25, (20 + 0.4 * (2**0.5 + 3)) * math.log(16), 80 + 0.4 * 3),
])  # fmt: skip
def test_lemmas_17_19_and_20_by_hand(theta, last, mean):
    known = {"step": 0.1, "kappa": 1.0, "radius": 2.0}
    for output, expected in (("last", last), ("average", mean), ("best", mean)):
        assert optimisation_bound(16, HINGE, theta=theta, output=output, **known) == pytest.approx(expected)
    smooth = optimisation_bound(16, LOGISTIC, theta=0.0, output="average", **known)
    assert smooth == pytest.approx((2.0 + 0.1 * math.log(2)) / 1.6)


@given(power=st.floats(1.0, 4.0), kappa=st.floats(0.01, 100.0), norm=st.floats(0.0, 50.0))
def test_gradient_bound_is_the_assumption_of_21(power, kappa, norm):
    slopes = growth(losses.power_loss(power), 1.0)
    q = slopes.power
    # |f(x)| <= kappa ||f||, so the gradient's norm is at most kappa c_q (1 + (kappa ||f||)^q); with q = 0, kappa c_0.
    needed = kappa * slopes.constant * ((1 + (kappa * norm) ** q) if q > 0 else 1.0)
    assert needed <= gradient_bound(slopes, kappa) * max(1.0, norm**q) * (1 + 1e-9)


def descend(X, y, loss, theta, step, rounds):
    """The iterates of (1) and their averages."""
    etas, slope = step * np.arange(1.0, rounds + 1) ** -theta, np.vectorize(partial(left_slope, loss))
    slopes = lambda margins: slope(np.reshape(y, (-1, 1)), margins) / len(y)  # noqa: E731
    weights = np.array([X.T @ c[:, 0] for c in naive.subgradient(X @ X.T, slopes, etas)])
    return weights, np.cumsum(etas[:, None] * weights, axis=0) / np.cumsum(etas)[:, None]


@given(
    seed=st.integers(0, 2**32),
    y=st.lists(st.sampled_from([-1.0, 1.0]), min_size=2, max_size=8),
    u=st.lists(st.floats(-8.0, 8.0), min_size=2, max_size=2),
    kind=st.sampled_from([(HINGE, 0.3), (HINGE, 0.5), (LOGISTIC, 0.0), (SQUARE, 0.25)]),
)
def test_no_rows_are_found_on_which_the_lemmas_fail(seed, y, u, kind):
    (loss, theta), X = kind, np.random.default_rng(seed).choice([-1.0, -0.25, 0.0, 1.0], size=(len(y), 2))
    kappa = float(np.sqrt((X**2).sum(axis=1).max())) or 1.0
    step = largest_step(loss, theta, kappa)
    weights, averages = descend(X, np.array(y), loss, theta, step, 12)
    *errors, other = (np.vectorize(loss.value)(y, X @ w).mean() for w in (*weights, *averages, u))
    for T in (3, 12):
        radius = float(np.linalg.norm([*weights[:T], u], axis=1).max())
        of_outputs = {"last": errors[T - 1], "average": errors[12 + T - 1], "best": min(errors[:T])}
        for output, error in of_outputs.items():
            bound = optimisation_bound(T, loss, theta=theta, step=step, kappa=kappa, radius=radius, output=output)
            target(float(error - other - bound), label=f"{output} after {T}: error minus bound")
            assert error - other <= bound + 1e-12


def test_iterates_stay_where_lemma_15_has_them():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(30, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    kappa = float(np.sqrt((X**2).sum(axis=1).max()))
    for loss, theta in ((HINGE, 0.5), (CUBE, 0.7), (LOGISTIC, 0.0)):
        step = largest_step(loss, theta, kappa)
        for t, w in enumerate(descend(X, y, loss, theta, step, 100)[0][1:], start=1):
            assert np.linalg.norm(w) <= t ** ((1 - theta) / 2)

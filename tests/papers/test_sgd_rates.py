"""Nitanda and Suzuki's rates against numbers worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from scipy.optimize import minimize

from tunefree.losses import Logistic
from tunefree.papers.links import low_noise_margin
from tunefree.papers.sgd_rates import ExponentialRate, least_offset, sgd_penalty, variance_constant

positive = st.floats(0.05, 2.0)


@given(regularization=positive, smoothness=positive)
def test_the_least_offset_meets_its_condition_exactly(regularization, smoothness):
    first = 2 / (regularization * (least_offset(regularization, smoothness) + 1))
    assert first == pytest.approx(min(1 / (smoothness + regularization), 1 / (2 * regularization)))


@given(lam=positive, gamma=st.floats(3.0, 50.0), m=positive, R=positive, M=positive, D=st.floats(0.0, 50.0))
def test_the_threshold_of_theorem_2_is_the_first_number_that_meets_it(lam, gamma, m, R, M, D):
    T = ExponentialRate(lam, gamma, m, kernel_bound=R, slope_bound=M, averaged=True).threshold(initial_distance=D)

    def meets(rounds, slack):
        noise = 36 * M**2 * R**2 / (lam**2 * (2 * gamma + rounds))
        start = gamma * (gamma - 1) * D**2 / ((2 * gamma + rounds) * (rounds + 1))
        return max(noise, start) <= m**2 / (32 * R**2) * (1 + slack)

    assert meets(T, 1e-9) and (T == 1 or not meets(T - 1, -1e-9))


def test_rates_by_hand():
    assert ExponentialRate(1.0, 3.0, 1.0).bound(4605) == pytest.approx(2 * math.exp(-1))  # 2^9 * 9 = 4608
    assert ExponentialRate(1.0, 3.0, 1.0, averaged=True).bound(9210) == pytest.approx(
        2 * math.exp(-1)
    )  # 2^10 * 9 = 9216
    assert ExponentialRate(1.0, 3.0, 2.0, kernel_bound=2.0, slope_bound=3.0).bound(4605) == pytest.approx(
        2 * math.exp(-1 / 36)
    )
    corollary = ExponentialRate(1.0, 3.0, low_noise_margin(Logistic(), 0.3), averaged=True).bound(9210)
    assert corollary == pytest.approx(2 * math.exp(-(math.log(4) ** 2)))


def test_a_penalty_by_proposition_1_is_small_enough():
    """Functions on a few points, with the kernel that is 1 for equal points: the loss is that of each point apart."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        chance = np.where(rng.random(4) < 0.5, 1, -1) * rng.uniform(0.1, 0.4, 4) + 0.5
        best = np.log(chance / (1 - chance))
        distance = float(np.abs(best).min()) / 2.0

        def risk(f, p=chance):
            return np.mean(p * np.logaddexp(0.0, -f) + (1 - p) * np.logaddexp(0.0, f), axis=-1)

        ways = rng.normal(size=(4000, 4))
        away = best + distance * ways / np.linalg.norm(ways, axis=1, keepdims=True)
        room = 0.9 * risk(away).min() - 0.9 * risk(best)  # 0.9 for the directions that were not tried
        penalty, found = sgd_penalty(float(np.abs(best).min()), float(np.linalg.norm(best)), float(room))
        assert found == pytest.approx(distance)
        least = minimize(lambda f, p=penalty: risk(f) + 0.5 * p * f @ f, np.zeros(4)).x
        assert np.linalg.norm(least - best) <= found


def test_sgd_errs_no_more_often_than_the_theorems_allow():
    """One point with 90 % positive labels and the largest lambda for which they hold: (4) and (5), where they say
    something."""
    chance, rounds, runs = 0.9, 100_000, 50
    margin, rng = math.log(chance / (1 - chance)), np.random.default_rng(0)
    least = margin / 2  # of the minimiser, which must not be further from the margin
    lam = (chance - 1 / (1 + math.exp(-least))) / least
    gap = math.log(2) - chance * math.log1p(math.exp(-least)) - (1 - chance) * math.log1p(math.exp(least))
    gap -= 0.5 * lam * least**2
    gamma = least_offset(lam, smoothness=0.25)
    nu = variance_constant(lam, gamma, 0.25, chance * (1 - chance), gap)
    last = ExponentialRate(lam, gamma, margin).threshold(nu=nu)
    mean = ExponentialRate(lam, gamma, margin, averaged=True).threshold(initial_distance=least)
    assert max(last, mean) < rounds / 2
    assert ExponentialRate(lam, gamma, margin, averaged=True).bound(rounds) < 2 * chance - 1
    y, g, weighted = np.where(rng.random((rounds, runs)) < chance, 1.0, -1.0), np.zeros(runs), np.zeros(runs)
    for t in range(1, rounds + 1):
        weighted += g * (gamma + t - 1)  # the average, up to a factor
        if t & (t - 1) == 0 or t in (last, mean, rounds):
            for f, first, is_averaged in ((g, last, False), (weighted, mean, True)):
                excess = (2 * chance - 1) * np.mean(f <= 0.0)
                assert t < first or excess <= ExponentialRate(lam, gamma, margin, averaged=is_averaged).bound(t)
        eta = 2.0 / (lam * (gamma + t))
        g = (1.0 - eta * lam) * g + eta * y[t - 1] * special.expit(-y[t - 1] * g)

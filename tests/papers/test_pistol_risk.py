"""What Orabona 2014 says for finite T holds in simulation, and falls at the rates that the paper prints."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import naive
from tunefree.losses import Logistic, SmoothedHinge, Square
from tunefree.papers import pistol_risk
from tunefree.papers.pistol_risk import constants_of

POINTS = 5  # a kernel that is 1 for equal points and 0 for others: functions are any values, eigenvalues 1 / POINTS


def values_of(loss, y, margins):
    return np.array([loss.value(*pair) for pair in zip(y, margins, strict=True)])


def slopes_of(loss, y):
    return lambda t, margins: np.array([loss.slope(y[t], margins[0])])


@given(seed=st.integers(0, 2**32), spread=st.floats(-3.0, 0.0), loss=st.sampled_from([Logistic(), Square()]))
def test_the_excess_error_is_bounded_by_the_excess_risk(seed, spread, loss):
    """Any probabilities and any function on a few points; alpha = 0."""
    rng = np.random.default_rng(seed)
    p, chance = rng.dirichlet(np.ones(4)), 0.5 + 10.0**spread * rng.uniform(-0.5, 0.5, 4)
    best = np.log(chance / (1 - chance)) if loss == Logistic() else 2 * chance - 1
    f = rng.normal(size=4) * 10.0 ** rng.uniform(-3, 0)

    def risk(g):
        each = [c * loss.value(1.0, m) + (1 - c) * loss.value(-1.0, m) for c, m in zip(chance, g, strict=True)]
        return p @ np.array(each)

    excess_error = p @ (np.abs(2 * chance - 1) * ((f > 0) != (chance > 0.5)))
    assert excess_error <= pistol_risk.excess_error_bound(risk(f) - risk(best), loss) + 1e-9


@pytest.mark.parametrize("loss", [SmoothedHinge(), Logistic()])
@given(
    seed=st.integers(0, 2**32), n=st.integers(1, 200), size=st.floats(0.0, 30.0), a=st.sampled_from([2.6, 4.0, 9.0]),
    b=st.sampled_from([0.1, 1.0, 10.0]),
)  # fmt: skip
def test_corollary_1_holds(loss, seed, n, size, a, b):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X /= np.linalg.norm(X, axis=1).max()
    X[0] /= np.linalg.norm(X[0])  # the learner's M is then the paper's
    h = size * rng.normal(size=3)
    y = np.where(X @ h + rng.normal(size=n) > 0, 1.0, -1.0)
    constants = constants_of(loss, a, b * loss.lipschitz)

    def divided(t, margins):
        return slopes_of(loss, y)(t, margins) / loss.lipschitz

    margins, _ = naive.pistol(X, divided, 1, np.ones(n), a, b)
    own, other = values_of(loss, y, margins[:, 0]).sum(), values_of(loss, y, X @ h).sum()
    bound = pistol_risk.smooth_regret_bound(float(np.linalg.norm(h)), other, n, constants)
    assert own - other <= bound + 1e-9


def average_risks(rounds, chance, a, b, runs=20):
    """Mean risk of PiSTOL's average with the logistic loss, of independent points that are all equally likely."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(runs):
        at = rng.integers(0, POINTS, rounds)
        y = np.where(rng.random(rounds) < chance[at], 1.0, -1.0)
        g, alpha, total = np.zeros(POINTS), a, np.zeros(POINTS)
        for i, label in zip(at, y, strict=True):
            f = g * b / alpha * math.exp(g @ g / (2 * alpha))
            total += f
            s = -label / (1 + math.exp(label * f[i]))
            g[i], alpha = g[i] - s, alpha + a * abs(s)
        found.append(risk_of(total / rounds, chance))
    return float(np.mean(found))


def risk_of(f, chance):
    return float(np.mean(chance * np.logaddexp(0, -f) + (1 - chance) * np.logaddexp(0, f)))


@pytest.mark.parametrize("rounds", [10, 100, 2000])
def test_the_risk_of_the_average_is_within_corollary_2_and_theorems_2_and_3(rounds):
    chance = np.array([0.1, 0.3, 0.5, 0.8, 0.95])
    best = np.log(chance / (1 - chance))
    least, norm, a = risk_of(best, chance), float(np.linalg.norm(best)), 4.0
    constants = constants_of(Logistic(), a)
    excess = average_risks(rounds, chance, a, 1.0) - least
    assert 0.0 < excess <= pistol_risk.smooth_regret_bound(norm, rounds * least, rounds, constants) / rounds
    assert excess <= pistol_risk.lipschitz_excess_risk_bound(rounds, 1.0, norm**2, constants)
    for beta in (0.1, 1 / 3, 0.4, 0.5):
        source = POINTS**beta * np.sqrt(np.mean(best**2))  # L_K^beta divides by POINTS^beta
        assert excess <= pistol_risk.excess_risk_bound(rounds, least, beta, float(source), constants)

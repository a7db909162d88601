"""Regret and risk are never above the bounds of theorems, on random streams, in simulations and by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from scipy.optimize import minimize

from tunefree import papers
from tunefree.losses import Logistic, Square
from tunefree.papers import pistol_risk, play
from tunefree.papers.gradient_descent import FixedRates
from tunefree.papers.links import low_noise_margin, risk
from tunefree.papers.pistol_risk import constants_of
from tunefree.papers.sgd_rates import ExponentialRate, least_offset, sgd_penalty, variance_constant

# Each algorithm, a loss, and whether the theorem takes rows of any size.
THEOREMS = {
    "Theorem 3.1": (papers.ScInOL1(), "logistic", True),
    "Theorem 3.2": (papers.ScInOL2(), "logistic", True),
    "Theorem 3.1, hinge": (papers.ScInOL1(0.1), "hinge", True),
    "Theorem 3.2, absolute": (papers.ScInOL2(10.0), "absolute", True),
    "Appendix A": (FixedRates(0.05), "logistic", True),
    "Theorem 1": (papers.PiSTOL(), "smoothed-hinge", False),
    "Theorem 1, logistic": (papers.PiSTOL(a=4.0, b=0.1), "logistic", False),
    "Theorem 1, Gaussian": (papers.PiSTOL(kernel="gaussian", gamma=0.5), "hinge", True),
    "Theorem 1, normalised": (papers.PiSTOL(normalised=True), "hinge", True),
    "Theorem 1, normalised polynomial": (papers.PiSTOL(kernel="polynomial", normalised=True), "hinge", True),
    "Corollary 3": (papers.CoordinatePiSTOL(), "smoothed-hinge", False),
    "(3)": (papers.AveragedSGD(0.25), "square", False),
    "(5)": (papers.Perceptron(), "hinge", True),
    "(5), Gaussian": (papers.Perceptron(kernel="gaussian", gamma=0.5), "hinge", True),
    "Theorem G.1": (papers.ScInOL1(), "several", True),
    "Theorem G.2": (papers.ScInOL2(), "several", True),
}


def stream(seed, any_size, loss):
    """Rows, targets, and a few comparators."""
    random = np.random.default_rng(seed)
    n, d = int(random.integers(1, 60)), int(random.integers(1, 5))
    X = random.standard_t(1.5, size=(n, d)) * 10.0 ** random.integers(-2, 3, d) * (random.random((n, d)) < 0.8)
    if not any_size:
        X = X / max(float(np.linalg.norm(X, axis=1).max()), 1e-300)
    u = random.normal(size=d) * 10.0 ** random.uniform(-1, 1) / np.maximum(np.abs(X).max(axis=0), 1e-3)
    noisy = X @ u + random.normal(size=n) * 10.0 ** random.uniform(-2, 1)
    if loss == "absolute":
        return X, noisy
    if loss == "several":
        return X, np.r_[[0, 1, 2], random.integers(0, 3, max(n - 3, 0))][:n] if n >= 3 else None
    return X, np.where(noisy > 0, 1, -1)


@pytest.mark.parametrize("name", THEOREMS)
def test_regret_is_within_the_bound(name):
    (algorithm, loss, any_size), n_positive = THEOREMS[name], 0
    for seed in range(20):
        X, y = stream(seed, any_size, loss)
        if y is None:
            continue
        result = play(algorithm, X, y, "logistic" if loss == "several" else loss)
        random = np.random.default_rng([seed, 1])
        direction = random.normal(size=result.weights.shape)
        comparators = [result.comparator(size * direction) for size in (0.0, 0.1, 10.0)]
        if seed % 10 == 0:
            comparators.append(result.comparator("best", radius=3.0))
        for comparator in comparators:
            bound = result.bound(comparator)
            assert bound.value is not None, bound.reason
            regret = result.mistakes if name.startswith("(5)") else result.regret(comparator)
            assert regret <= bound.value + 1e-9 * (1.0 + abs(bound.value)), (name, seed, regret, str(bound))
            n_positive += bound.value > 0.0
    assert n_positive > 25


@pytest.mark.parametrize(
    ("algorithm", "loss", "scale", "reason"),
    [
        (papers.PiSTOL(), "logistic", 2.0, "the theorem assumes ||k(x, .)|| <= 1, and the largest is 2"),
        (papers.PiSTOL(a=2.0), "logistic", 1.0, "the theorem assumes a >= 2.25 L, and a / L is 2"),
        (papers.PiSTOL(a=8.0, L=0.1), "logistic", 1.0, "a slope exceeds L = 0.1"),
        (papers.PiSTOL.in_experiments(), "smoothed-hinge", 1.0, "assumes a >= 2.25 L, and a / L is 0.125"),
        (papers.ScInOL1(), "square", 1.0, "the theorems assume a loss with a Lipschitz constant"),
        (papers.AveragedSGD(0.5), "square", 1.0, "(3) assumes a rate of at most 1/4, not 0.5"),
        (papers.Adam(), "logistic", 1.0, "no theorem of the papers bounds the regret of Adam"),
        (papers.RegularizedSGD(), "logistic", 1.0, "bound the expected classification error, not the regret"),
    ],
    ids=str,
)
def test_what_no_theorem_covers_has_a_reason(algorithm, loss, scale, reason):
    X, y = np.array([[1.0, 0.0], [0.6, -0.8], [-0.6, 0.8]]) * scale, [1, 1, -1]
    bound = play(algorithm, X, y, loss).bound([1.0, 0.0])
    assert bound.value is None
    assert reason in str(bound)


POINTS = 5  # a kernel that is 1 for equal points and 0 for others: functions are any values, eigenvalues 1 / POINTS


@given(seed=st.integers(0, 2**32), spread=st.floats(-3.0, 0.0), loss=st.sampled_from([Logistic(), Square()]))
def test_the_excess_error_is_bounded_by_the_excess_risk(seed, spread, loss):
    """Any probabilities and any function on a few points; alpha = 0."""
    rng = np.random.default_rng(seed)
    p, chance = rng.dirichlet(np.ones(4)), 0.5 + 10.0**spread * rng.uniform(-0.5, 0.5, 4)
    best = np.log(chance / (1 - chance)) if loss == Logistic() else 2 * chance - 1
    f = rng.normal(size=4) * 10.0 ** rng.uniform(-3, 0)
    risks = [p @ [risk(loss, *pair) for pair in zip(chance, margins, strict=True)] for margins in (f, best)]
    excess_error = p @ (np.abs(2 * chance - 1) * ((f > 0) != (chance > 0.5)))
    assert excess_error <= pistol_risk.excess_error_bound(risks[0] - risks[1], loss) + 1e-9


def logistic_risk(f, chance):
    """The risk of functions (.., points) of points that are all equally likely."""
    return np.mean(chance * np.logaddexp(0, -f) + (1 - chance) * np.logaddexp(0, f), axis=-1)


@pytest.mark.parametrize("rounds", [10, 100, 1000])
def test_the_risk_of_the_average_is_within_corollary_2_and_theorems_2_and_3(rounds):
    chance = np.array([0.1, 0.3, 0.5, 0.8, 0.95])
    best = np.log(chance / (1 - chance))
    least, norm, a = float(logistic_risk(best, chance)), float(np.linalg.norm(best)), 4.0
    constants, rng, risks = constants_of(Logistic(), a), np.random.default_rng(0), []
    for _ in range(20):
        points = rng.integers(0, POINTS, rounds)
        y = np.where(rng.random(rounds) < chance[points], 1.0, -1.0)
        risks.append(logistic_risk(play(papers.PiSTOL(a=a), np.eye(POINTS)[points], y).average[:, 0], chance))
    excess = float(np.mean(risks)) - least
    assert 0.0 < excess <= pistol_risk.smooth_regret_bound(norm, rounds * least, rounds, constants) / rounds
    assert excess <= pistol_risk.lipschitz_excess_risk_bound(rounds, 1.0, norm**2, constants)
    for beta in (0.1, 1 / 3, 0.4, 0.5):
        source = POINTS**beta * np.sqrt(np.mean(best**2))  # L_K^beta divides by POINTS^beta
        assert excess <= pistol_risk.excess_risk_bound(rounds, least, beta, float(source), constants)


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
    for rate, rounds, exponent in (
        (ExponentialRate(1.0, 3.0, 1.0), 4605, 1.0),  # 2^9 * 9 = 4608
        (ExponentialRate(1.0, 3.0, 1.0, averaged=True), 9210, 1.0),  # 2^10 * 9 = 9216
        (ExponentialRate(1.0, 3.0, 2.0, kernel_bound=2.0, slope_bound=3.0), 4605, 1 / 36),
    ):
        assert rate.bound(rounds) == pytest.approx(2 * math.exp(-exponent))
    corollary = ExponentialRate(1.0, 3.0, low_noise_margin(Logistic(), 0.3), averaged=True).bound(9210)
    assert corollary == pytest.approx(2 * math.exp(-(math.log(4) ** 2)))


def test_a_penalty_by_proposition_1_is_small_enough():
    """Functions on a few points, with the kernel that is 1 for equal points: the loss is that of each point apart."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        chance = np.where(rng.random(4) < 0.5, 1, -1) * rng.uniform(0.1, 0.4, 4) + 0.5
        best = np.log(chance / (1 - chance))
        distance = float(np.abs(best).min()) / 2.0
        ways = rng.normal(size=(4000, 4))
        away = best + distance * ways / np.linalg.norm(ways, axis=1, keepdims=True)
        room = 0.9 * (logistic_risk(away, chance).min() - logistic_risk(best, chance))  # for ways that were not tried
        penalty, found = sgd_penalty(float(np.abs(best).min()), float(np.linalg.norm(best)), float(room))
        assert found == pytest.approx(distance)
        least = minimize(lambda f, c=chance, p=penalty: logistic_risk(f, c) + 0.5 * p * f @ f, np.zeros(4)).x
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

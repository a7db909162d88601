"""Regret is never above the bound of a theorem, on random streams."""

import numpy as np
import pytest

from tunefree import papers
from tunefree.papers import play
from tunefree.papers.gradient_descent import FixedRates

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
        if y is None or (loss != "absolute" and loss != "several" and len(set(y)) == 1 and abs(y[0]) != 1):
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

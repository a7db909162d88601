"""Each algorithm of the papers against an independent version of it.

``tests.naive`` has those of algorithms that the rest of the package has too; the others are written here, with every
function stored as it is, from the text of the papers.
"""

import math
from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array

from tests import naive
from tests.papers.kernel.contracts import gram
from tunefree import papers
from tunefree.losses import loss_of
from tunefree.papers import play
from tunefree.papers.left_slopes import left_slope
from tunefree.papers.losses import Multinomial

EXACT = {"rtol": 1e-12, "atol": 1e-12}


def dense(seed, n=60, d=4):
    random = np.random.default_rng(seed)
    return random.normal(size=(n, d)), random.choice([-1.0, 1.0], n)


def sparse(seed):
    X, y = dense(seed)
    return X * (np.random.default_rng(seed + 1).random(X.shape) < 0.3), y


def one_hot(seed):
    _, y = dense(seed)
    codes = np.random.default_rng(seed + 1).integers(0, 3, (len(y), 2))
    return np.concatenate([np.eye(3)[codes[:, 0]], np.eye(3)[codes[:, 1]]], axis=1), y


def hostile(seed):
    X, y = dense(seed)
    return X * 10.0 ** np.array([-70.0, -3.0, 8.0, 70.0]), y  # whose squares are within the range of the twin


DATA = {"dense": dense, "sparse": sparse, "one-hot": one_hot, "hostile": hostile}

# Invariant to the scale of features, or not: the others overflow on hostile scales, as their papers have them do.
INVARIANT = {
    "ScInOL1": (papers.ScInOL1(0.5), naive.scinol1, {"epsilon": 0.5}),
    "ScInOL2": (papers.ScInOL2(0.5), naive.scinol2, {"epsilon": 0.5}),
    "NAG": (papers.NAG(0.3), naive.nag, {"eta": 0.3}),
    "SFMD": (papers.SFMD(0.3), naive.sfmd, {"eta": 0.3}),
    "Kotlowski": (papers.Kotlowski(), naive.kotlowski, {}),
    "CoCoBOriginal": (papers.CoCoBOriginal(), naive.cocob_original, {}),
}
OTHERS = {
    "CoCoB": (papers.CoCoB(), naive.cocob, {}),
    "OGD": (papers.OGD(0.3), naive.ogd, {"eta": 0.3}),
    "FixedRates": (papers.FixedRates(0.03), naive.coordinate_ogd, {"eta": 0.03}),
    "AdaGrad": (papers.AdaGrad(0.3), naive.adagrad, {"eta": 0.3}),
    "Adam": (papers.Adam(0.01), naive.adam, {"eta": 0.01}),
    "Perceptron": (papers.Perceptron(), naive.perceptron, {}),
    "PiSTOL, normalised": (papers.PiSTOL(a=3.0, normalised=True), naive.pistol, {"a": 3.0}),
}
ALL = INVARIANT | OTHERS


def twin(function, X, y, loss, K=1, **settings):
    def slope(t, margins):
        return loss.slope(y[t], margins) if K > 1 else np.array([loss.slope(y[t], float(margins[0]))])

    return function(X, slope, K, np.ones(len(X)), **settings)


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("name", ALL)
def test_linear_algorithms_equal_their_papers(name, kind):
    if kind == "hostile" and name not in INVARIANT:
        pytest.skip("not invariant")
    X, y = DATA[kind](0)
    algorithm, function, settings = ALL[name]
    result = play(algorithm, X, y)
    margins, weights = twin(function, X, y, loss_of("classification", "logistic"), **settings)
    np.testing.assert_allclose(result.predictions, margins[:, 0], **EXACT)
    sizes = np.abs(X).max(axis=0)[:, None] + (np.abs(X).max(axis=0) == 0)[:, None]
    np.testing.assert_allclose(result.weights * sizes, weights * sizes, **EXACT)
    assert play(algorithm, csr_array(X), y).predictions.tobytes() == result.predictions.tobytes()


@pytest.mark.parametrize("name", sorted(set(ALL) - {"Perceptron"}))
def test_several_outputs_are_learned_as_appendix_g_has_them(name):
    X, _ = dense(1)
    y = np.random.default_rng(2).integers(0, 3, len(X)).astype(float)
    algorithm, function, settings = ALL[name]
    result = play(algorithm, X, y)
    margins, weights = twin(function, X, y, Multinomial(3), 3, **settings)
    np.testing.assert_allclose(result.predictions, margins, **EXACT)
    np.testing.assert_allclose(result.weights, weights, **EXACT)


@pytest.mark.parametrize(("loss", "unit"), [("smoothed-hinge", 2.0), ("square", 1.0)])
@pytest.mark.parametrize("name", ["ScInOL1", "ScInOL2", "Kotlowski", "CoCoBOriginal"])
def test_slopes_are_in_units_of_the_lipschitz_constant_if_there_is_one(name, loss, unit):
    if (name, loss) == ("CoCoBOriginal", "square"):
        pytest.skip("it takes losses with such a constant only")
    X, y = dense(3, n=12)
    algorithm, function, settings = ALL[name]
    known = loss_of("classification", loss)
    expected, _ = function(X, lambda t, p: np.array([known.slope(y[t], p[0]) / unit]), 1, np.ones(len(X)), **settings)
    np.testing.assert_allclose(play(algorithm, X, y, loss).predictions, expected[:, 0], **EXACT)


GRAMS = {
    "gaussian": lambda X: gram(X, X, "rbf", 0.5),
    "linear": lambda X: X @ X.T,
    "polynomial": lambda X: (X @ X.T + 1) ** 2,
}
by_kernel = pytest.mark.parametrize("kernel", GRAMS)


def kernel_of(name):
    return {"kernel": name, "gamma": 0.5 if name == "gaussian" else 1.0, "degree": 2}


def functions_of(result):
    """Values on the rows of the last function and of the average."""
    return result.predict(result.X), result.predict(result.X, average=True)


def unit_rows(kind):
    X, y = DATA[kind](4)
    return X / np.linalg.norm(X, axis=1).max(), y


def plain_pistol(gram, slope, a, b, L):
    """Algorithm 3, line by line, with all functions as vectors of coefficients."""
    n = len(gram)
    g, alpha, functions, margins = np.zeros(n), a * L, [], np.zeros(n)
    for t in range(n):
        functions.append(g * b / alpha * np.exp(g @ gram @ g / (2 * alpha)))
        margins[t] = functions[-1] @ gram[t]
        s = slope(t, margins[t])
        g = g.copy()
        g[t] -= s
        alpha += a * abs(s) * np.sqrt(gram[t, t])
    return margins, gram @ (g * b / alpha * np.exp(g @ gram @ g / (2 * alpha))), gram @ np.mean(functions, axis=0)


@by_kernel
@pytest.mark.parametrize("kind", ["dense", "sparse", "one-hot"])
@pytest.mark.parametrize("loss", ["smoothed-hinge", "logistic"])
def test_pistol_is_algorithm_3(kernel, kind, loss):
    X, y = unit_rows(kind)
    known = loss_of("classification", loss)
    result = play(papers.PiSTOL(a=5.0, b=0.7, **kernel_of(kernel)), X, y, loss)
    twins = plain_pistol(GRAMS[kernel](X), lambda t, p: known.slope(y[t], p), 5.0, 0.7, known.lipschitz)
    np.testing.assert_allclose((result.predictions, *functions_of(result)), twins, **EXACT)


def test_pistol_in_the_experiments_has_one_b_for_all_rounds():
    X, y = unit_rows("dense")
    loss = loss_of("classification", "smoothed-hinge")
    result = play(papers.PiSTOL.in_experiments(**kernel_of("gaussian")), X, y, "smoothed-hinge")
    b = math.sqrt(2 * 0.25 * 2 * len(X))
    margins, *_ = plain_pistol(GRAMS["gaussian"](X), lambda t, p: loss.slope(y[t], p), 0.25, b, 2.0)
    np.testing.assert_allclose(result.predictions, margins, **EXACT)


@pytest.mark.parametrize("kind", ["dense", "sparse", "one-hot"])
def test_coordinate_pistol_is_appendix_a(kind):
    X, y = DATA[kind](5)
    X = X / np.abs(X).max()
    loss, d, a = loss_of("classification", "smoothed-hinge"), X.shape[1], 5.0
    g, alpha, margins = np.zeros(d), np.full(d, a * 2.0), []
    for x, label in zip(X, y, strict=True):
        w = g * (1 / d) / alpha * np.exp(g**2 / (2 * alpha))
        margins.append(w @ x)
        s = loss.slope(label, margins[-1]) * x
        g, alpha = g - s, alpha + a * np.abs(s)
    result = play(papers.CoordinatePiSTOL(a=a), X, y, "smoothed-hinge")
    np.testing.assert_allclose(result.predictions, margins, **EXACT)


KERNEL_ALGORITHMS = {
    "AveragedSGD": (partial(papers.AveragedSGD, 0.2), naive.kernel_sgd, {"eta": 0.2}),
    "Perceptron": (papers.Perceptron, naive.kernel_perceptron, {}),
    "RegularizedSGD": (
        partial(papers.RegularizedSGD, 0.05, 5.0),
        naive.kernel_regularized_sgd,
        {"penalty": 0.05, "offset": 5.0},
    ),
    "OnlineRegularized": (
        partial(papers.OnlineRegularized, 0.5, 0.5, 0.1, 0.25),
        naive.kernel_online_regularized,
        {"eta": 0.5, "theta": 0.5, "penalty": 0.1, "kappa": 0.25},
    ),
    "PiSTOL": (partial(papers.PiSTOL, a=0.5, b=2.0, normalised=True), naive.kernel_pistol, {"a": 0.5, "b": 2.0}),
}


@by_kernel
@pytest.mark.parametrize("kind", ["dense", "sparse", "one-hot"])
@pytest.mark.parametrize("name", KERNEL_ALGORITHMS)
def test_algorithms_of_any_kernel_equal_their_papers(name, kind, kernel):
    X, y = unit_rows(kind)
    if (name, kind) == ("Perceptron", "one-hot"):
        X = X + 0.01 * dense(9, d=6)[0]  # margins of 0 but for rounding errors would be mistakes or not
    make, function, settings = KERNEL_ALGORITHMS[name]
    loss = "hinge" if name in ("Perceptron", "OnlineRegularized") else "logistic"
    result = play(make(**kernel_of(kernel)), X, y, loss)
    gram = GRAMS[kernel](X)
    margins, last, average = twin(function, gram, y, loss_of("classification", loss), **settings)
    np.testing.assert_allclose(result.predictions, margins[:, 0], **EXACT)
    for ours, other in zip(functions_of(result), (last, average), strict=True):
        np.testing.assert_allclose(ours, gram @ other[:, 0], **EXACT)


def test_regularized_sgd_may_start_anywhere():
    X, y = dense(6)
    start, lam, gamma, loss = np.array([1.0, -2.0, 0.5, 0.0]), 0.1, 4.0, loss_of("classification", "logistic")
    g, all_g = start, [start]
    for t, (x, label) in enumerate(zip(X, y, strict=True), 1):
        g = g - 2 / (lam * (gamma + t)) * (loss.slope(label, g @ x) * x + lam * g)
        all_g.append(g)
    T = len(X)
    alpha = [2 * (gamma + t - 1) / ((2 * gamma + T) * (T + 1)) for t in range(1, T + 2)]
    assert sum(alpha) == pytest.approx(1.0)
    result = play(papers.RegularizedSGD(lam, gamma, start=start), X, y)
    np.testing.assert_allclose(result.weights[:, 0], g, **EXACT)
    np.testing.assert_allclose(result.average[:, 0], alpha @ np.array(all_g), **EXACT)
    rows = X[:1]
    in_rkhs = papers.RegularizedSGD(lam, gamma, start=[0.5], start_rows=rows, **kernel_of("polynomial"))
    first = play(in_rkhs, X, y).predictions[0]
    assert first == pytest.approx(0.5 * (rows[0] @ X[0] + 1) ** 2)


@by_kernel
@pytest.mark.parametrize("loss", ["hinge", "logistic", "square", "epsilon-insensitive"])
def test_the_subgradient_method_is_1_to_3(kernel, loss):
    X, y = unit_rows("dense")
    known = loss_of("classification" if loss in ("hinge", "logistic") else "regression", loss)
    path = papers.SubgradientMethod(eta=0.8, theta=0.5, **kernel_of(kernel)).run(X, y, 25, loss)
    gram, etas = GRAMS[kernel](X), 0.8 * np.arange(1.0, 26.0) ** -0.5
    slope, value = np.vectorize(lambda y, p: left_slope(known, y, p)), np.vectorize(known.value)
    all_c = naive.subgradient(gram, lambda margins: slope(y[:, None], margins) / len(X), etas)
    all_c = [c[:, 0] for c in all_c]
    errors = [value(y, gram @ c).mean() for c in all_c]
    np.testing.assert_allclose(path.errors, errors, **EXACT)
    twins = all_c[-1], etas @ np.array(all_c) / etas.sum(), all_c[int(np.argmin(errors))]
    for ours, other in zip((path.last, path.average, path.best), twins, strict=True):
        np.testing.assert_allclose(path.features @ ours, gram @ other, **EXACT)

"""Regularised stochastic gradient descent in a kernel's space is the paper's, whatever else learns beside it."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from tunefree import KernelSGDClassifier
from tunefree.core.errors import ModelError
from tunefree.model.model import Model
from tunefree.model.targets import Labels
from tunefree.papers.kernel import kernel_bank
from tunefree.papers.kernel.kernel_bank import KernelConfig
from tunefree.papers.kernel.regularized_sgd import RegularizedKernelSGD, least_offset

GAMMA = 0.7
SLOPES = {
    "logistic": lambda m: -1.0 / (1.0 + np.exp(m)),
    "smoothed-hinge": lambda m: -2.0 * min(max(1.0 - m, 0.0), 1.0),
    "hinge": lambda m: -1.0 if m <= 1.0 else 0.0,
    "square": lambda m: -2.0 * (1.0 - m),
    "exponential": lambda m: -np.exp(-m),
}


@pytest.fixture(autouse=True)
def settled_early(monkeypatch):
    monkeypatch.setattr(kernel_bank, "WARMUP_ROWS", 100)


def drawn(n=400, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    scores = np.sin(2.0 * X @ rng.normal(size=(3, n_classes))) + 0.4 * rng.normal(size=(n, n_classes))
    return X, scores.argmax(axis=1), rng.integers(1, 4, n) / 2.0


def gram(X, Z):
    return np.exp(-GAMMA * ((X[:, None] - Z[None]) ** 2).sum(axis=2))


def naive(loss, K, y, weight, penalty, offset, radius=math.inf):
    """Algorithm 1 of Nitanda, Suzuki 2019, with a projection: coefficients of g_1 .. g_{T+1}, a row each."""
    n = len(y)
    c = np.zeros(n)
    functions = [c]
    for t in range(1, n + 1):
        eta = 2.0 / (penalty * (offset + t))
        margin = y[t - 1] * (K[t - 1] @ c)
        c = (1.0 - eta * penalty) * c
        c[t - 1] -= eta * weight[t - 1] * y[t - 1] * SLOPES[loss](margin)
        c = c * min(1.0, radius / max(math.sqrt(max(c @ K @ c, 0.0)), 1e-300))
        functions.append(c)
    return np.array(functions)


def averaged(functions, offset):
    """The weights as printed: 2 (gamma + t - 1) / ((2 gamma + T) (T + 1)), t = 1 .. T + 1."""
    T = len(functions) - 1
    alphas = 2.0 * (offset + np.arange(1, T + 2) - 1.0) / ((2.0 * offset + T) * (T + 1))
    assert abs(alphas.sum() - 1.0) < 1e-12
    return alphas @ functions


def model_of(**parameters):
    fixed = {"gamma": GAMMA, "view": "raw", "passes": 1, "shuffle": False}
    return KernelSGDClassifier(**{**fixed, **parameters})


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize(
    ("loss", "penalty", "offset", "radius"),
    [
        ("logistic", 0.01, 51.0, None),
        ("logistic", 0.01, 3.0, None),
        ("logistic", 0.01, 51.0, 1.5),
        ("smoothed-hinge", 0.003, 300.0, None),
        ("hinge", 0.01, 20.0, None),
        ("square", 0.01, 400.0, None),
        ("square", 0.1, 9.0, 2.0),
        ("exponential", 0.05, 80.0, 2.0),
        ("exponential", 0.5, 20.0, None),
    ],
)
def test_functions_are_those_of_ten_lines(loss, penalty, offset, radius, average):
    X, codes, _ = drawn()
    y = 2.0 * codes - 1.0
    model = model_of(loss=loss, penalty=penalty, offset=offset, radius=radius, average=average).fit(X, codes)
    ball = radius or (math.sqrt(2.0 / penalty) if loss in ("square", "exponential") else math.inf)
    functions = naive(loss, gram(X, X), y, np.ones(len(y)), penalty, offset, ball)
    expected = averaged(functions, offset) if average else functions[-1]
    new = drawn(seed=1)[0]
    lost = 1e-11 if ball == math.inf else 1e-8  # projections make factors small within a block
    np.testing.assert_allclose(model.decision_function(new), gram(new, X) @ expected, rtol=1e-9, atol=lost)


def test_decreasing_penalties_are_those_of_ten_lines():
    """(15) of Lin, Rosasco, Zhou 2016: rates and penalties that decrease, of the hinge."""
    X, codes, _ = drawn()
    K, y, f = gram(X, X), 2.0 * codes - 1.0, np.zeros(len(X))
    margins = np.zeros(len(X))
    for t in range(1, len(X) + 1):
        eta, penalty = 0.7 * t**-0.5, 0.5 * t**-0.25
        margins[t - 1] = K[t - 1] @ f
        f *= 1.0 - eta * penalty
        if y[t - 1] * margins[t - 1] <= 1.0:
            f[t - 1] = eta * y[t - 1]
    settings = {"eta": 0.7, "theta": 0.5, "penalty": 0.5, "kappa": 0.25, "width": 1.0}
    config = KernelConfig("rbf", GAMMA)
    model = Model("classification", "kernel-online-regularized", "hinge", False, settings, "raw", [0, 1], 4, config)
    model.learn(_dense(X), Labels.of(codes), np.ones(len(X)))
    np.testing.assert_allclose(model.banks[0].margins(_dense(X))[0, :, 0], K @ f, rtol=1e-9, atol=1e-11)


def test_weights_multiply_slopes():
    X, codes, weight = drawn()
    model = model_of(penalty=0.01, offset=60.0, average=False).partial_fit(X, codes, sample_weight=weight)
    functions = naive("logistic", gram(X, X), 2.0 * codes - 1.0, weight, 0.01, 60.0)
    np.testing.assert_allclose(model.decision_function(X), gram(X, X) @ functions[-1], rtol=1e-9, atol=1e-11)


def test_each_class_against_the_others_is_a_problem_of_its_own():
    X, codes, _ = drawn(n_classes=3)
    fixed = {"loss": "smoothed-hinge", "penalty": 0.01, "offset": 500.0}
    margins = model_of(**fixed).fit(X, codes).decision_function(X)
    for k in range(3):
        alone = model_of(**fixed).fit(X, codes == k).decision_function(X)
        np.testing.assert_allclose(margins[:, k], alone, rtol=1e-10, atol=1e-12)


def test_the_ladder_is_each_penalty_alone_and_the_best_so_far_predicts():
    X, codes, _ = drawn()
    ladder = model_of().fit(X, codes)
    alone = [model_of(penalty=penalty).fit(X, codes) for penalty in (0.1, 0.01, 0.001, 0.0001)]
    found = np.array([(p["penalty"], p["offset"], p["loss"]) for p in ladder.penalties_])
    np.testing.assert_array_equal(found[:, :2], [(model.penalty_, model.offset_) for model in alone])
    np.testing.assert_allclose(found[:, 2], [model.penalties_[0]["loss"] for model in alone], rtol=1e-12)
    best = int(found[:, 2].argmin())
    assert ladder.penalty_ == found[best, 0]
    np.testing.assert_allclose(ladder.decision_function(X), alone[best].decision_function(X), rtol=1e-9, atol=1e-12)


def test_widths_may_be_shared_and_apart():
    X, codes, _ = drawn()
    bank = model_of(gamma="ladder").fit(X, codes)._learned.model.banks[0]
    assert len(bank.members) == 36 and len(set(bank.expansion.steps.tolist())) == 9
    margins = bank.margins(_dense(X))
    for m in (0, 13, 35):
        settings = bank.members[m].setting.settings
        alone = model_of(penalty=settings["penalty"], gamma=bank.gamma * settings["width"]).fit(X, codes)
        np.testing.assert_allclose(margins[m, :, 0], alone.decision_function(X), rtol=1e-8, atol=1e-10)


def _dense(X):
    from tunefree.core import rows

    return rows.dense(X)


def test_offsets_follow_the_theorems():
    X, codes, _ = drawn(200)
    for average in (False, True):
        model = model_of(average=average).fit(X, codes)
        assert [p["offset"] for p in model.penalties_] == [
            least_offset(penalty, 0.25, average) for penalty in (0.1, 0.01, 0.001, 0.0001)
        ]
    in_ball = model_of(loss="exponential", penalty=0.01, radius=2.0).fit(X, codes)
    assert in_ball.offset_ == pytest.approx(least_offset(0.01, math.exp(2.0), True))
    scaled = model_of(kernel="linear", gamma="median", penalty=0.01).fit(X, codes)
    assert scaled.offset_ == pytest.approx(least_offset(0.01, 0.25 * (X[:100] ** 2).sum(axis=1).max(), True))


@pytest.mark.parametrize("loss", ["logistic", "exponential", "square"])
def test_a_tuned_offset_is_the_best_on_the_first_rows(loss):
    X, codes, _ = drawn(100)
    tuned = model_of(loss=loss, penalty=0.01, offset="tuned").fit(X, codes)
    losses = {}
    for exponent in range(-3, 4):
        offset = max(2.0 / (0.01 * 4.0**exponent) - 1.0, 3.0)
        losses[offset] = model_of(loss=loss, penalty=0.01, offset=offset).fit(X, codes).penalties_[0]["loss"]
    assert len(set(losses.values())) == len(losses) > 3
    assert tuned.penalties_[0]["loss"] == min(losses.values())
    assert losses[tuned.offset_] == min(losses.values())


def test_batches_pickles_and_waiting_change_no_bit():
    X, codes, weight = drawn(500, n_classes=3)
    whole = model_of(loss="exponential").partial_fit(X, codes, classes=[0, 1, 2], sample_weight=weight)
    parts = model_of(loss="exponential")
    for start in range(0, 500, 70):
        here = slice(start, start + 70)
        parts.partial_fit(X[here], codes[here], classes=[0, 1, 2], sample_weight=weight[here])
        parts = pickle.loads(pickle.dumps(parts))
    assert parts.decision_function(X).tobytes() == whole.decision_function(X).tobytes()
    assert parts.penalties_ == whole.penalties_


def test_a_new_class_begins_at_nothing():
    X, codes, _ = drawn(600, n_classes=3)
    order = np.argsort(codes == 2, kind="stable")
    model = model_of(loss="smoothed-hinge").partial_fit(X[order], codes[order])
    assert np.isfinite(model.decision_function(X)).all() and model.classes_.tolist() == [0, 1, 2]
    assert model.score(X[order][-50:], codes[order][-50:]) > 0.9


def test_later_passes_approach_the_regularised_minimum():
    X, codes, _ = drawn(200)
    K, y, penalty = gram(X, X), 2.0 * codes - 1.0, 0.05
    c = np.zeros(200)
    for _ in range(3000):  # functional gradient steps on the regularised empirical risk
        c = c - 1.0 * (y * SLOPES["logistic"](y * (K @ c)) / 200 + penalty * c)
    model = model_of(penalty=penalty, passes=60, shuffle=True).fit(X, codes)
    assert np.abs(model.decision_function(X) - K @ c).max() < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("loss", SLOPES)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("offset", ["auto", 3.0])
def test_numbers_of_any_size_leave_finite_predictions(loss, kernel, offset):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) * 10.0 ** rng.uniform(-30, 30, (300, 1))
    model = KernelSGDClassifier(loss=loss, kernel=kernel, offset=offset, view="raw", passes=2)
    model.fit(X, rng.integers(0, 2, 300), sample_weight=10.0 ** rng.uniform(-30, 3, 300))
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize(
    "wrong", [{"penalty": 0.0}, {"penalty": "best"}, {"offset": 2.0}, {"offset": "theory"}, {"radius": -1.0}]
)
def test_wrong_parameters_are_told(wrong):
    X, codes, _ = drawn(50)
    with pytest.raises(ValueError, match=next(iter(wrong))):
        KernelSGDClassifier(**wrong).fit(X, codes)


def test_a_learner_wants_numbers_in_their_range():
    with pytest.raises(ModelError, match="offset"):
        RegularizedKernelSGD(0, 1, penalty=0.1, offset=1.0)

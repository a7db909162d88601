"""The subgradient method against ten-line loops: iterates, averages, the best one, norms, and looking back."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import softmax

from tunefree import losses
from tunefree.losses.objectives import Binary, Multinomial, OneAgainstAll
from tunefree.papers.early_stopping import subgradient
from tunefree.papers.early_stopping.descent import Descent
from tunefree.papers.early_stopping.optimality import descends, least_error
from tunefree.papers.early_stopping.path import PATH
from tunefree.papers.early_stopping.problem import Problem, Rows, Schedule, absolute_errors, wrong_classes
from tunefree.papers.early_stopping.spaces import Dictionary, KernelSpace, largest_eigenvalue
from tunefree.papers.early_stopping.step_size import step_size
from tunefree.papers.kernel.gaussian import Gaussian
from tunefree.papers.kernel.polynomial import LINEAR

GAUSSIAN = Gaussian(0.25)
LARGE = 10**9


def data(n=60, d=4, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.8)
    codes = (X @ rng.normal(size=(d, classes)) + 0.5 * rng.normal(size=(n, classes))).argmax(axis=1)
    weight = rng.uniform(0.2, 2.0, n)
    return X, (2.0 * codes - 1.0 if classes == 2 else codes.astype(float)), weight


def share(weight):
    return weight / weight.sum()


def problem(X, y, weight, loss, space=None, n_outputs=1, objective=None, errors=wrong_classes, held=15):
    objective = objective or Binary(loss, 0.0)
    space = (space or Dictionary)(X[held:], X[:held])
    learned, beside = Rows(y[held:], share(weight[held:])), Rows(y[:held], share(weight[:held]))
    return Problem(space, objective, n_outputs, errors, learned, beside)


def in_kernel(X, held, budget=LARGE):
    return KernelSpace(GAUSSIAN, X, held, budget)


def slopes_of(loss, y, margins):
    """Left derivatives, an output a column."""
    if loss == "multinomial":
        return softmax(margins, axis=1) - np.eye(margins.shape[1])[y.astype(int)]
    labels = y[:, None] if margins.shape[1] == 1 else 2.0 * np.eye(margins.shape[1])[y.astype(int)] - 1.0
    return np.vectorize(lambda a, b: loss.left_slope(a, b))(labels, margins)


def twin(K, y, weight, loss, n_outputs, eta, theta, T):
    """Equation (1) with a kernel matrix: coefficients of f_1 .. f_T."""
    c, found = np.zeros((len(y), n_outputs)), []
    for t in range(1, T + 1):
        found.append(c)
        c = c - eta * t**-theta * share(weight)[:, None] * slopes_of(loss, y, K @ c)
    return found


def twin_weights(X, y, weight, loss, n_outputs, eta, theta, T):
    """Equation (1) with weights, the constant last."""
    Phi = np.column_stack([X, np.ones(len(X))])
    w, found = np.zeros((Phi.shape[1], n_outputs)), []
    for t in range(1, T + 1):
        found.append(w)
        w = w - eta * t**-theta * Phi.T @ (share(weight)[:, None] * slopes_of(loss, y, Phi @ w))
    return found


SETTINGS = [
    (losses.Logistic(), Binary(losses.Logistic(), 0.0), 2, 1, 0.0),
    (losses.Hinge(), Binary(losses.Hinge(), 0.0), 2, 1, 0.5),
    (losses.SmoothedHinge(), OneAgainstAll(losses.SmoothedHinge(), 0.0), 3, 3, 0.0),
    (losses.Hinge(), OneAgainstAll(losses.Hinge(), 0.0), 3, 3, 0.6),
    ("multinomial", Multinomial(1.0), 4, 4, 0.25),
]
by_setting = pytest.mark.parametrize(
    ("loss", "objective", "classes", "n_outputs", "theta"),
    SETTINGS,
    ids=["logistic", "hinge", "smoothed against all", "hinge against all", "multinomial"],
)


@by_setting
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_weights_are_those_of_ten_lines(loss, objective, classes, n_outputs, theta, form):
    X, y, weight = data(classes=classes)
    run = Descent(problem(form(X), y, weight, loss, None, n_outputs, objective), Schedule(0.4, theta), LARGE)
    run.run(25)
    expected = twin_weights(X[15:], y[15:], weight[15:], loss, n_outputs, 0.4, theta, 25)
    for t in (1, 2, 10, 25):
        np.testing.assert_allclose(run.last(t), expected[t - 1], rtol=1e-10, atol=1e-12)
        steps = 0.4 * np.arange(1, t + 1) ** -theta
        mean = np.tensordot(steps, expected[:t], axes=1) / steps.sum()
        np.testing.assert_allclose(run.average(t), mean, rtol=1e-12, atol=1e-12)
        assert run.path["norm"][t - 1] == pytest.approx(np.linalg.norm(expected[t - 1]), rel=1e-10)


@by_setting
@pytest.mark.parametrize("budget", [0, LARGE], ids=["computed anew", "kept"])
def test_coefficients_are_those_of_ten_lines(loss, objective, classes, n_outputs, theta, budget):
    X, y, weight = data(classes=classes)
    space = lambda rows, held: in_kernel(rows, held, budget)  # noqa: E731
    run = Descent(problem(X, y, weight, loss, space, n_outputs, objective), Schedule(0.9, theta), LARGE)
    run.run(20)
    K = GAUSSIAN.tile(X[15:], X[15:])
    expected = twin(K, y[15:], weight[15:], loss, n_outputs, 0.9, theta, 20)
    for t in (1, 2, 20):
        np.testing.assert_allclose(run.last(t), expected[t - 1], rtol=1e-10, atol=1e-12)
        norm = np.sqrt((expected[t - 1] * (K @ expected[t - 1])).sum())
        assert run.path["norm"][t - 1] == pytest.approx(norm, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Hinge()])
def test_a_linear_kernel_learns_what_weights_learn(loss):
    X, y, weight = data()
    X = np.column_stack([X, np.ones(len(X))])
    linear = problem(X[:, :-1], y, weight, loss)
    kernel = problem(X, y, weight, loss, lambda a, b: KernelSpace(LINEAR, a, b, LARGE))
    runs = [Descent(p, Schedule(0.3, 0.5), LARGE) for p in (linear, kernel)]
    for run in runs:
        run.run(30)
    for name in PATH.names:
        np.testing.assert_allclose(runs[0].path[name], runs[1].path[name], rtol=1e-8, atol=1e-10, err_msg=name)


def test_the_path_says_what_the_coefficients_say():
    X, y, weight = data()
    loss = losses.Hinge()
    run = Descent(problem(X, y, weight, loss), Schedule(0.8, 0.5), LARGE)
    run.run(40)
    for t in (1, 7, 40):
        record = run.path[t - 1]
        for kind, w in (("", run.last(t)), ("average_", run.average(t))):
            for rows, name in ((slice(15, None), "training"), (slice(0, 15), "validation")):
                margins = X[rows] @ w[:-1, 0] + w[-1, 0]
                row_losses = np.maximum(0, 1 - y[rows] * margins)
                wrong = (margins > 0) != (y[rows] > 0)
                assert record[f"{kind}{name}_loss"] == pytest.approx(share(weight[rows]) @ row_losses, rel=1e-9)
                assert record[f"{kind}{name}_error"] == pytest.approx(share(weight[rows]) @ wrong, rel=1e-9)
    least = int(run.path["training_loss"][:33].argmin())
    np.testing.assert_array_equal(run.best(33), run.last(least + 1))
    assert run.path["step"] == pytest.approx(0.8 / np.sqrt(np.arange(1, 41)))


@pytest.mark.parametrize("order", ["batch", "cyclic", "shuffled"])
@pytest.mark.parametrize("space", [None, in_kernel], ids=["weights", "kernel"])
def test_looking_back_gives_the_same_bits_however_little_is_kept(order, space):
    X, y, weight = data()
    runs = []
    for budget in (LARGE, 6000, 0):
        run = Descent(problem(X, y, weight, losses.Logistic(), space), Schedule(0.5, 0.5, order, 3), budget)
        run.run(23)
        runs.append(run)
        assert len(run.kept) == 1 or len(run.kept) * 2 * run.iterate.coefficients.nbytes <= budget
    assert len(runs[2].kept) == 1 < len(runs[0].kept) == 23
    for t in range(1, 24):
        for output in ("last", "average", "best"):
            first, *others = (getattr(run, output)(t) for run in runs)
            for other in others:
                assert first.tobytes() == other.tobytes()


@pytest.mark.parametrize("order", ["batch", "cyclic", "shuffled"])
@pytest.mark.parametrize("space", [None, in_kernel], ids=["weights", "kernel"])
def test_going_on_is_the_same_as_not_stopping(order, space):
    X, y, weight = data()
    runs = [Descent(problem(X, y, weight, losses.Hinge(), space), Schedule(0.5, 0.5, order), LARGE) for _ in range(2)]
    runs[0].run(20)
    for t in (1, 2, 9, 9, 20):
        runs[1].run(t)
    assert runs[0].path.tobytes() == runs[1].path.tobytes()
    assert runs[0].average(20).tobytes() == runs[1].average(20).tobytes()


def one_by_one(K, y, weight, loss, orders, eta, theta):
    """Remark 3: one row a step; the coefficients after each pass, and the sums of eta_t f_t over the steps before."""
    n = len(y)
    c, sums, mass, step, found = np.zeros(n), np.zeros(n), 0.0, 0, []
    for order in orders:
        for j in order:
            step += 1
            eta_t = eta * step**-theta
            sums, mass = sums + eta_t * c, mass + eta_t
            c[j] -= eta_t * n * share(weight)[j] * loss.left_slope(y[j], K[j] @ c)
        following = eta * (step + 1) ** -theta
        found.append((c.copy(), (sums + following * c) / (mass + following)))
    return found


@pytest.mark.parametrize("at_a_time", [1, 7, 256])
@pytest.mark.parametrize("order", ["cyclic", "shuffled"])
def test_single_steps_are_those_of_ten_lines(order, at_a_time, monkeypatch):
    monkeypatch.setattr(subgradient, "AT_A_TIME", at_a_time)
    X, y, weight = data()
    n = len(X) - 15
    orders = [np.arange(n) if order == "cyclic" else np.random.default_rng([5, e]).permutation(n) for e in (1, 2, 3)]
    run = Descent(problem(X, y, weight, losses.Hinge(), in_kernel), Schedule(0.5, 0.5, order, 5), LARGE)
    run.run(4)
    K = GAUSSIAN.tile(X[15:], X[15:])
    for t, (c, mean) in enumerate(one_by_one(K, y[15:], weight[15:], losses.Hinge(), orders, 0.5, 0.5), start=2):
        np.testing.assert_allclose(run.last(t)[:, 0], c, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(run.average(t)[:, 0], mean, rtol=1e-9, atol=1e-12)
    margins = GAUSSIAN.tile(X[:15], X[15:]) @ run.average(4)[:, 0]
    expected = share(weight[:15]) @ np.maximum(0, 1 - y[:15] * margins)
    assert run.path["average_validation_loss"][3] == pytest.approx(expected)
    linear = Descent(problem(X, y, weight, losses.Hinge()), Schedule(0.5, 0.5, order, 5), LARGE)
    Phi = np.column_stack([X[15:], np.ones(n)])
    linear.run(4)
    for t, (c, _) in enumerate(one_by_one(Phi @ Phi.T, y[15:], weight[15:], losses.Hinge(), orders, 0.5, 0.5), 2):
        np.testing.assert_allclose(linear.last(t)[:, 0], Phi.T @ c, rtol=1e-9, atol=1e-12)


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), hinge=st.booleans(), kernel=st.booleans())
def test_a_row_of_weight_k_is_k_rows(seed, hinge, kernel):
    X, y, _ = data(seed=seed)
    counts = np.random.default_rng(seed).integers(1, 4, len(X)).astype(float)
    loss = losses.Hinge() if hinge else losses.Logistic()
    space = in_kernel if kernel else None
    again = np.repeat(np.arange(len(X)), counts.astype(int))
    held = int(counts[:15].sum())
    theta = 0.5 if hinge else 0.0
    one = problem(X, y, counts, loss, space)
    two = problem(X[again], y[again], np.ones(len(again)), loss, space, held=held)
    runs = [Descent(p, Schedule(step_size(p, loss, theta, "auto"), theta), LARGE) for p in (one, two)]
    for run in runs:
        run.run(10)
    for name in PATH.names:
        np.testing.assert_allclose(runs[0].path[name], runs[1].path[name], rtol=1e-7, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("space", [None, in_kernel], ids=["weights", "kernel"])
def test_the_largest_eigenvalue_is_met_from_above(space):
    X, y, weight = data(n=200)
    p = problem(X, y, weight, losses.Logistic(), space)
    Phi = np.column_stack([X[15:], np.ones(len(X) - 15)])
    K = Phi @ Phi.T if space is None else GAUSSIAN.tile(X[15:], X[15:])
    roots = np.sqrt(p.learned.weight)
    true = np.linalg.eigvalsh(roots[:, None] * K * roots).max()
    found = largest_eigenvalue(p.space, p.learned.weight, 1.0 + y[15:])
    assert true <= found <= 1.1 * true * (1 + 1e-9)


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.SmoothedHinge(), losses.SquaredHinge(), losses.Square()])
def test_steps_for_smooth_losses_descend(loss):
    X, y, weight = data(n=200)
    p = problem(X, y, weight, loss)
    run = Descent(p, Schedule(step_size(p, loss, 0.0, "auto"), 0.0), LARGE)
    run.run(100)
    assert descends(run.path) and (np.diff(run.path["training_loss"]) <= 1e-12).all()
    assert step_size(p, loss, 0.0, "theory") <= step_size(p, loss, 0.0, "auto")
    wild = Descent(p, Schedule(50 * step_size(p, loss, 0.0, "auto"), 0.0), LARGE)
    wild.run(20)
    assert not descends(wild.path)


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Hinge(), losses.Square()])
@pytest.mark.parametrize("space", [None, in_kernel], ids=["weights", "kernel"])
def test_no_predictor_is_below_the_certified_error(loss, space):
    X, y, weight = data()
    p = problem(X, y, weight, loss, space)
    run = Descent(p, Schedule(step_size(p, loss, 0.5, "auto"), 0.5), LARGE)
    run.run(300)
    rng = np.random.default_rng(1)
    Phi = np.column_stack([X[15:], np.ones(len(X) - 15)])
    K = GAUSSIAN.tile(X[15:], X[15:])
    for trial in range(200):
        c = rng.normal(size=run.last(1).shape) * 10.0 ** rng.uniform(-3, 1)
        c = run.last(trial + 1) * rng.uniform(0.5, 1.5) if trial % 2 else c
        margins = (Phi if space is None else K) @ c
        norm = np.linalg.norm(c) if space is None else math.sqrt(max((c * margins).sum(), 0.0))
        error = p.learned.weight @ [loss.value(a, b) for a, b in zip(y[15:], margins[:, 0], strict=True)]
        assert least_error(run.path, float(norm)) <= error + 1e-9
    # and the bound comes near: within a tenth of what the path reached
    reached = float(run.path["training_loss"][-1])
    assert least_error(run.path, float(run.path["norm"][-1])) >= reached - 0.1


def test_numbers_are_learned_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=80)
    p = problem(X, y, np.ones(80), losses.Square(), errors=absolute_errors)
    run = Descent(p, Schedule(step_size(p, losses.Square(), 0.0, "auto", bound=5.0), 0.0), LARGE)
    run.run(200)
    assert run.path["validation_error"][-1] < 0.15
    np.testing.assert_allclose(run.last(200)[:3, 0], [1.0, -2.0, 0.5], atol=0.1)


def test_steps_too_large_are_told():
    X, y, weight = data()
    run = Descent(problem(X, y, weight, losses.Square()), Schedule(1e6, 0.0), LARGE)
    with pytest.raises(ValueError, match="smaller eta"):
        run.run(200)


def test_the_exponential_loss_has_no_step_of_its_own():
    X, y, weight = data()
    with pytest.raises(ValueError, match="pass eta"):
        step_size(problem(X, y, weight, losses.Exponential()), losses.Exponential(), 0.5, "auto")


def test_iterates_that_are_not_there():
    X, y, weight = data()
    run = Descent(problem(X, y, weight, losses.Hinge()), Schedule(0.5, 0.5), LARGE)
    run.run(3)
    for t in (0, 4):
        with pytest.raises(ValueError, match="1 to 3"):
            run.last(t)

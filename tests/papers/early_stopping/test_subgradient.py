"""The subgradient method against ten-line loops: iterates, averages, the best one, norms, and looking back."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import softmax

from tunefree import losses
from tunefree.losses.objectives import Objective
from tunefree.papers.early_stopping.gram import Gram
from tunefree.papers.early_stopping.step_size import largest_eigenvalue, step_size
from tunefree.papers.early_stopping.stopping_times import descends, lemma_bound
from tunefree.papers.kernel.usual import Gaussian
from tunefree.papers.subgradient import RECORD, Problem, Rows, descend, steps_of, wrong_classes

GAUSSIAN = Gaussian(0.25)


def data(n=60, d=4, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.8)
    codes = (X @ rng.normal(size=(d, classes)) + 0.5 * rng.normal(size=(n, classes))).argmax(axis=1)
    weight = rng.uniform(0.2, 2.0, n)
    return X, (2.0 * codes - 1.0 if classes == 2 else codes.astype(float)), weight


def share(weight):
    return weight / weight.sum()


def with_constant(X):
    ones = np.ones((X.shape[0], 1))
    return sparse.hstack([X, ones], format="csr") if sparse.issparse(X) else np.hstack([X, ones])


def problem(X, y, weight, loss, kernel=None, n_outputs=1, objective=None, errors=wrong_classes, held=15):
    """The rows after the first few, which are held out; without a kernel there is a constant, whose weight is last."""
    objective = objective or Objective("classification", loss)
    if kernel is None:
        X = with_constant(X)
        matrices = X[held:], X[:held]
        squares = np.asarray((X[held:] * X[held:]).sum(axis=1)).reshape(-1)
    else:
        matrices = Gram(kernel, X[held:]), Gram(kernel, X[:held], X[held:])
        squares = kernel.diagonal(X[held:])
    learned, beside = (
        Rows(matrices[0], y[held:], share(weight[held:])),
        Rows(matrices[1], y[:held], share(weight[:held])),
    )
    return Problem(learned, beside, squares, kernel is not None, objective, errors, n_outputs)


def path_of(p, eta, theta, T):
    return descend(p, steps_of(eta, theta, T))


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


SETTINGS = [
    (losses.Logistic(), Objective("classification", losses.Logistic()), 2, 1, 0.0),
    (losses.Hinge(), Objective("classification", losses.Hinge()), 2, 1, 0.5),
    (losses.SmoothedHinge(), Objective("classification", losses.SmoothedHinge()), 3, 3, 0.0),
    (losses.Hinge(), Objective("classification", losses.Hinge()), 3, 3, 0.6),
    ("multinomial", Objective("classification"), 4, 4, 0.25),
]
by_setting = pytest.mark.parametrize(
    ("loss", "objective", "classes", "n_outputs", "theta"),
    SETTINGS,
    ids=["logistic", "hinge", "smoothed against all", "hinge against all", "multinomial"],
)


@by_setting
def test_coefficients_are_those_of_ten_lines(loss, objective, classes, n_outputs, theta):
    X, y, weight = data(classes=classes)
    run = path_of(problem(X, y, weight, loss, GAUSSIAN, n_outputs, objective), 0.9, theta, 20)
    K = GAUSSIAN.tile(X[15:], X[15:])
    expected = twin(K, y[15:], weight[15:], loss, n_outputs, 0.9, theta, 20)
    for t in (1, 2, 20):
        np.testing.assert_allclose(run.last(t), expected[t - 1], rtol=1e-10, atol=1e-12)
        norm = np.sqrt((expected[t - 1] * (K @ expected[t - 1])).sum())
        assert run.records["norm"][t - 1] == pytest.approx(norm, rel=1e-9, abs=1e-12)


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), hinge=st.booleans(), kernel=st.booleans())
def test_a_row_of_weight_k_is_k_rows(seed, hinge, kernel):
    X, y, _ = data(seed=seed)
    counts = np.random.default_rng(seed).integers(1, 4, len(X)).astype(float)
    loss = losses.Hinge() if hinge else losses.Logistic()
    space = GAUSSIAN if kernel else None
    again = np.repeat(np.arange(len(X)), counts.astype(int))
    held = int(counts[:15].sum())
    theta = 0.5 if hinge else 0.0
    one = problem(X, y, counts, loss, space)
    two = problem(X[again], y[again], np.ones(len(again)), loss, space, held=held)
    runs = [path_of(p, step_size(p, loss, theta, "auto"), theta, 10) for p in (one, two)]
    for t in range(2, 11):  # a row whose margin is rounding alone may be wrong in one of the two
        for coefficients in (runs[0].last(t), runs[0].average(t)):
            margins = [rows.matrix @ coefficients for rows in (one.learned, one.others)]
            assume(np.abs(np.concatenate(margins)).min() > 1e-9)
    for name in RECORD.names:
        np.testing.assert_allclose(runs[0].records[name], runs[1].records[name], rtol=1e-7, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("space", [None, GAUSSIAN], ids=["weights", "kernel"])
def test_the_largest_eigenvalue_is_met_from_above(space):
    X, y, weight = data(n=200)
    p = problem(X, y, weight, losses.Logistic(), space)
    Phi = np.column_stack([X[15:], np.ones(len(X) - 15)])
    K = Phi @ Phi.T if space is None else GAUSSIAN.tile(X[15:], X[15:])
    roots = np.sqrt(p.learned.weight)
    true = np.linalg.eigvalsh(roots[:, None] * K * roots).max()
    found = largest_eigenvalue(p)
    assert true <= found <= 1.1 * true * (1 + 1e-9)


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.SmoothedHinge(), losses.SquaredHinge(), losses.Square()])
def test_steps_for_smooth_losses_descend(loss):
    X, y, weight = data(n=200)
    p = problem(X, y, weight, loss)
    run = path_of(p, step_size(p, loss, 0.0, "auto"), 0.0, 100)
    assert descends(run.records) and (np.diff(run.records["training_loss"]) <= 1e-12).all()
    assert step_size(p, loss, 0.0, "theory") <= step_size(p, loss, 0.0, "auto")
    assert not descends(path_of(p, 50 * step_size(p, loss, 0.0, "auto"), 0.0, 20).records)


def test_the_lemmas_are_told_where_they_hold():
    X, y, weight = data()
    p, settings = problem(X, y, weight, losses.Hinge()), {"theta": 0.5, "radius": 2.0, "bound": 1.0}
    kappa = float(np.sqrt(p.squares.max()))
    step = step_size(p, losses.Hinge(), 0.5, "theory")
    longer = path_of(p, step, 0.5, 400).records
    bounds, least = {}, longer["training_loss"][longer["norm"] <= 2.0].min()
    for output in ("last", "best"):
        records = path_of(p, step, 0.5, 40).records
        bounds[output] = lemma_bound(records, losses.Hinge(), kappa=kappa, output=output, **settings)
        assert records["training_loss"][-1] - least <= bounds[output].value
    assert "Lemma 17" in bounds["last"].theorem and "norm" in bounds["last"].assumes
    assert "Lemma 19" in bounds["best"].theorem and not bounds["best"].assumes
    larger = path_of(p, 3.0 * step, 0.5, 40).records
    refused = lemma_bound(larger, losses.Hinge(), kappa=kappa, output="last", **settings)
    assert refused.value is None and "assume eta_1 <=" in refused.reason
    assert "at least 3" in lemma_bound(larger[:2], losses.Hinge(), kappa=kappa, output="last", **settings).reason

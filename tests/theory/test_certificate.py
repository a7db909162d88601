"""The theorems hold: on random streams, and on the census data against batch logistic regression."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contracts import run
from tunefree import losses
from tunefree.core import rows
from tunefree.learners.scinol import ScInOL2
from tunefree.learners.weights import averaged
from tunefree.losses.objectives import Objective
from tunefree.papers.learners.pistol import CoordinatePiSTOL, PiSTOL
from tunefree.papers.learners.scinol1 import ScInOL1
from tunefree.papers.pistol_bound import log_phi
from tunefree.papers.pistol_risk import pistol_bound
from tunefree.papers.scinol import scinol1_bound, scinol2_bound
from tunefree.pool.model import Model
from tunefree.pool.targets import Labels
from tunefree.theory.bounds import paper_bound

LOSS = losses.Logistic()
OBJECTIVE = Objective("classification", LOSS)


def logistic(y, margins):
    return np.logaddexp(0.0, -y * margins)


def stream(seed, n, d):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, d) * (rng.random((n, d)) < 0.7)
    largest = np.abs(X).max(0)
    u = rng.normal(size=d) * 10.0 ** rng.uniform(-3, 1) / np.where(largest > 0, largest, 1.0)
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-X @ u)), 1.0, -1.0)
    return X, y, u


def learn(learner, X, y):
    n = len(X)
    state = learner(X.shape[1] + 1)
    objective = Objective("classification", LOSS)
    margins = run(state, objective, rows.dense(X, intercept=False), y, np.ones(n), 1)[2][:, 0]
    slopes = np.array([LOSS.slope(*pair) for pair in zip(y, margins, strict=True)])
    return logistic(y, margins).sum(), slopes


def scales(X, slopes):
    return np.sqrt(((slopes[:, None] * X) ** 2).sum(0) + np.abs(X).max(0) ** 2)


def first_values(X):
    return np.abs(X[np.argmax(X != 0, axis=0), np.arange(X.shape[1])])


def bound_of(name, X, slopes, u):
    if name == "scinol1":
        return scinol1_bound(u, scales(X, slopes), len(X))
    return scinol2_bound(u, scales(X, slopes), first_values(X))


SCINOL = {"scinol1": ScInOL1, "scinol2": ScInOL2}


@pytest.mark.parametrize("name", SCINOL)
@given(seed=st.integers(0, 2**32), n=st.integers(1, 300), d=st.integers(1, 5), size=st.floats(-3, 3))
def test_scinol_theorems_on_random_streams(name, seed, n, d, size):
    X, y, u = stream(seed, n, d)
    loss, slopes = learn(SCINOL[name], X, y)
    for comparator in (u, 10.0**size * u, -u, np.zeros(d)):
        assert loss - logistic(y, X @ comparator).sum() <= bound_of(name, X, slopes, comparator) + 1e-9


@pytest.mark.parametrize("a", [2.25, 4.0])
@given(seed=st.integers(0, 2**32), n=st.integers(1, 300), d=st.integers(1, 5), b=st.sampled_from([0.1, 1.0, 10.0]))
def test_pistol_theorem_on_random_streams(a, seed, n, d, b):
    X, y, u = stream(seed, n, d)
    norms = np.linalg.norm(X, axis=1)
    if norms.max() == 0:
        return
    X = X / norms.max()
    X[0] *= 1.0 / max(np.linalg.norm(X[0]), 1e-300) if norms[0] > 0 else 1.0  # the learner's M is that of the paper
    state = PiSTOL(d + 1, a=a, b=b)
    margins = run(state, OBJECTIVE, rows.dense(X, intercept=False), y, np.ones(n), 1)[2][:, 0]
    slopes = np.abs([LOSS.slope(*pair) for pair in zip(y, margins, strict=True)])
    for comparator in (u, 100.0 * u, np.zeros(d)):
        regret = logistic(y, margins).sum() - logistic(y, X @ comparator).sum()
        assert regret <= pistol_bound(np.linalg.norm(comparator), slopes[:-1].sum(), n, a, b) + 1e-9


@given(seed=st.integers(0, 2**32), n=st.integers(2, 300), d=st.integers(1, 5))
def test_coordinate_pistol_theorem(seed, n, d):
    """Appendix A with b = 1 / d, the sum over coordinates of the bounds of the copies; a = 4 keeps phi small."""
    X, y, u = stream(seed, n, d)
    X = np.vstack([np.abs(X).max(0), X])  # the largest value first: the learner's M_i is that of the paper
    X = np.divide(X, X[0], out=np.zeros_like(X), where=X[0] > 0)
    y = np.r_[1.0, y]
    state = CoordinatePiSTOL(d + 1, a=4.0, b=1.0 / d)
    margins = run(state, OBJECTIVE, rows.dense(X, intercept=False), y, np.ones(n + 1), 1)[2][:, 0]
    slopes = np.array([LOSS.slope(*pair) for pair in zip(y, margins, strict=True)])
    regret = logistic(y, margins).sum() - logistic(y, X @ u).sum()
    sums = np.abs(slopes[:-1, None] * X[:-1]).sum(0)
    assert regret <= sum(pistol_bound(abs(u[i]), sums[i], n + 1, 4.0, 1.0 / d) for i in range(d)) + 1e-9


@pytest.mark.parametrize("name", SCINOL)
def test_scinol_theorems_on_census_data(name):
    from importlib.resources import as_file, files

    from pyarrow import parquet
    from sklearn.linear_model import LogisticRegression

    with as_file(files("tunefree") / "data" / "adult.parquet") as path:
        table = parquet.read_table(path)
    numbers = [c for c in table.column_names if str(table.schema.field(c).type).startswith(("int", "float"))]
    X = np.column_stack([table[c].to_numpy() for c in numbers]).astype(float)[:20_000]
    X = np.c_[np.ones(len(X)), X]
    y = np.where(np.array(table["income"].to_pylist())[: len(X)] == ">50K", 1.0, -1.0)
    scale = X.std(0) + (X.std(0) == 0)
    best = LogisticRegression(C=1e6, fit_intercept=False, max_iter=2000).fit(X / scale, y).coef_[0] / scale
    loss, slopes = learn(SCINOL[name], X, y)
    regret = loss - logistic(y, X @ best).sum()
    assert regret <= bound_of(name, X, slopes, best)
    assert loss < len(X) * np.log(2) * 0.9


OWN = {
    "scinol1": lambda d: ScInOL1(d + 1, epsilon=0.7),
    "scinol2": lambda d: ScInOL2(d + 1, epsilon=0.7),
    "averaged": lambda d: averaged(ScInOL2)(d + 1),
    "pistol": lambda d: PiSTOL(d + 1, a=4.0, b=0.5),
    "coordinate-pistol": lambda d: CoordinatePiSTOL(d + 1, a=4.0, b=0.5),
}


@pytest.mark.parametrize("name", OWN)
@given(seed=st.integers(0, 2**32), n=st.integers(1, 300), d=st.integers(1, 5), growth=st.floats(0, 0.5))
def test_bounds_from_what_a_learner_kept(name, seed, n, d, growth):
    """With sample weights, and features that grow along the stream."""
    X, y, u = stream(seed, n, d)
    rng = np.random.default_rng(seed)
    X *= 2.0 ** np.floor(growth * np.minimum(np.arange(n), 100))[:, None]
    weight = 10.0 ** rng.uniform(-1, 1, n)
    if np.abs(X[0]).max() == 0:
        X[0] = 1.0
    state = OWN[name](d)
    margins = run(state, OBJECTIVE, rows.dense(X, intercept=False), y, weight, 1)[2][:, 0]
    for comparator in (u, 30.0 * u, -u, np.zeros(d)):
        regret = (weight * (logistic(y, margins) - logistic(y, X @ comparator))).sum()
        bound = paper_bound(state, OBJECTIVE, np.r_[0.0, comparator])
        assert regret <= bound + 1e-9 * (1 + abs(bound))


@given(seed=st.integers(0, 2**32), n=st.integers(1, 300), d=st.integers(1, 5))
def test_bounds_from_what_a_learner_kept_are_sharper(seed, n, d):
    X, y, u = stream(seed, n, d)
    one, two = ScInOL1(d + 1), ScInOL2(d + 1)
    for name, state in (("scinol1", one), ("scinol2", two)):
        margins = run(state, OBJECTIVE, rows.dense(X, intercept=False), y, np.ones(n), 1)[2][:, 0]
        slopes = np.array([LOSS.slope(*pair) for pair in zip(y, margins, strict=True)])
        seen = (X != 0).any(0)
        theorem = bound_of(name, X[:, seen], slopes, u[seen])
        own = paper_bound(state, OBJECTIVE, np.r_[0.0, u])
        assert own <= theorem + 1e-9 * (1 + abs(theorem))


def test_bounds_of_several_outputs_add_up():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), rng.integers(0, 3, 100).astype(float)
    for name in ("scinol1", "scinol2", "pistol"):
        state = {"scinol1": ScInOL1, "scinol2": ScInOL2, "pistol": PiSTOL}[name](
            3, 3, **({"a": 4.0} if name == "pistol" else {})
        )
        objective = Objective("classification")
        *_, row_losses = run(state, objective, rows.dense(X, intercept=False), y, np.ones(100), 3)
        u = rng.normal(size=(3, 3))
        margins = X @ u[1:]
        best = (np.log(np.exp(margins).sum(1)) - margins[np.arange(100), y.astype(int)]).sum()
        assert row_losses.sum() - best <= paper_bound(state, objective, u) < 1e4


def test_nothing_is_claimed_where_no_theorem_holds():
    X, y = np.array([[1.0], [2.0], [3.0]]), np.array([5.0, 7.0, -1.0])
    for create in (ScInOL1, ScInOL2, lambda d: PiSTOL(d, a=4.0)):
        state = create(2)
        assert paper_bound(state, OBJECTIVE, [0.0, 1.0]) < np.inf
        objective = run(
            state, Objective("regression", losses.Absolute()), rows.dense(X, intercept=False), y, np.ones(3), 1
        )[1]
        assert paper_bound(state, objective, [0.0, 1.0]) == np.inf
    assert paper_bound(state, Objective("classification", losses.SquaredHinge()), [0.0, 1.0]) == np.inf
    early = CoordinatePiSTOL(2, a=4.0)  # as from a file of a version that did not store the first values
    early.largest[1] = early.slopes[1] = 1.0
    assert paper_bound(early, OBJECTIVE, [0.0, 1.0]) == np.inf


def test_a_late_class_does_not_make_a_certificate_false():
    """Two classes share the margin from then on."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(303, 2))
    y = np.where(rng.random(303) < 1 / (1 + np.exp(-2 * X[:, 0])), "a", "b")
    y[0], y[300:] = "a", "c"  # the first label is class 0
    for name in SCINOL:
        model = Model("classification", name, n_features=3)
        total = sum(
            model.learn(rows.dense(X[part]), Labels.of(y[part]), np.ones(part.stop - part.start))[1].sum()
            for part in (slice(0, 300), slice(300, 303))
        )
        member = model.linear.members[0]
        u = np.zeros((member.room, 3))
        u[1, 0], u[0, 2] = 2.0, -4.0  # with which only class 0 tells apart what only class 1 has learned
        regret = total - softmax_loss(X, y, u)
        assert model.certificate().regret(u) >= regret - 1e-9


def softmax_loss(X, y, u):
    margins = np.c_[np.ones(len(X)), X] @ u[:3]
    code = np.searchsorted(["a", "b", "c"], y)
    return (np.logaddexp.reduce(margins, axis=1) - margins[np.arange(len(X)), code]).sum()


def test_phi_of_the_proof():
    assert np.exp(log_phi(0.25)) == pytest.approx(1.07, abs=0.05)
    assert log_phi(4 / 9) > 709  # why it is kept as a logarithm
    assert log_phi(0.5) == np.inf

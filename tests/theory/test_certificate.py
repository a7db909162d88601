"""The theorems hold: on random streams, and on the census data against batch logistic regression."""

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


SCINOL = {"scinol1": ScInOL1, "scinol2": ScInOL2}


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

"""Nobody beats what the package prints: streams at random, streams that Hypothesis drives at each bound, and real data.

Every bound is on the regret of a learner against a comparator: that of the learner's theorem, and that which is
computed from the slopes. ``target`` steers the search towards streams on which the regret comes near the bound.
"""

import numpy as np
import pytest
from hypothesis import given, target
from hypothesis import strategies as st

from tests.contracts import run
from tests.strategies import as_dense
from tunefree import losses
from tunefree.core import rows
from tunefree.learners.scinol import ScInOL2
from tunefree.learners.weights import averaged
from tunefree.losses.objectives import Objective, measured
from tunefree.papers.learners.pistol import CoordinatePiSTOL, PiSTOL
from tunefree.papers.learners.scinol1 import ScInOL1
from tunefree.papers.pistol_risk import pistol_parameter
from tunefree.pool.model import Model
from tunefree.pool.targets import Labels
from tunefree.theory.bounds import paper_bound
from tunefree.theory.evidence import Evidence, certify, record_evidence

LEARNERS = {
    "scinol1": lambda d: ScInOL1(d + 1),
    "scinol2": lambda d: ScInOL2(d + 1),
    "averaged": lambda d: averaged(ScInOL2)(d + 1, epsilon=0.7),
    "pistol": lambda d: PiSTOL(d + 1, a=pistol_parameter()),
    "coordinate-pistol": lambda d: CoordinatePiSTOL(d + 1, a=pistol_parameter()),
}
LOSSES = {"logistic": losses.Logistic(), "smoothed-hinge": losses.SmoothedHinge(), "hinge": losses.Hinge()}

by_learner = pytest.mark.parametrize("name", LEARNERS)


@st.composite
def streams(draw):
    """Rows whose values are powers of two, labels, weights and a comparator, all for the search to choose."""
    n, d = draw(st.integers(1, 40)), draw(st.integers(1, 3))
    entries = st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=n * d, max_size=n * d)
    exponents = st.lists(st.integers(-3, 3), min_size=n, max_size=n)
    X = np.reshape(draw(entries), (n, d)) * 2.0 ** np.array(draw(exponents))[:, None]
    y = np.array(draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n, max_size=n)))
    weight = np.array(draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=n, max_size=n)))
    u = np.array(draw(st.lists(st.floats(-8.0, 8.0), min_size=d, max_size=d)))
    return X, y, weight, u


def claims(state, loss, X, y, weight, u):
    """The regret of a learner, the bound of its theorem, and what is computed from the slopes."""
    objective = Objective("classification", loss)
    state, _, predictions, row_losses = run(state, objective, as_dense(X), y, weight, 1)
    evidence = Evidence(X.shape[1] + 1)
    record_evidence(evidence, objective, as_dense(X), y, weight, predictions, row_losses)
    regret = float(weight @ (row_losses - np.vectorize(loss.value)(y, X @ u)))
    return regret, paper_bound(state, objective, np.r_[0.0, u]), certify(evidence, objective).regret(np.r_[0.0, u])


@by_learner
@given(stream=streams(), kind=st.sampled_from(sorted(LOSSES)))
def test_no_stream_is_found_that_beats_a_theorem_or_a_certificate(name, stream, kind):
    X, y, weight, u = stream
    regret, theorem, certificate = claims(LEARNERS[name](X.shape[1]), LOSSES[kind], X, y, weight, u)
    assert np.isfinite(theorem)
    target(regret - theorem, label="regret minus the theorem's bound")
    rounding = 1e-9 * (1.0 + abs(regret) + abs(theorem))
    assert regret <= certificate + rounding
    assert regret <= theorem + rounding


@by_learner
@given(seed=st.integers(0, 2**32), n=st.integers(1, 300), noise=st.floats(0, 3), growth=st.floats(0, 0.5))
def test_no_random_stream_beats_a_theorem_or_a_certificate(name, seed, n, noise, growth):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(1.5, size=(n, 3)) * 10.0 ** rng.integers(-3, 4, 3)
    X *= 2.0 ** np.floor(growth * np.minimum(np.arange(n), 100))[:, None]
    u = rng.normal(size=3) * 10.0 ** rng.uniform(-2, 1) / np.abs(X).max(0)
    y = np.where(X @ u + noise * rng.normal(size=n) > 0, 1.0, -1.0)
    weight, loss = 10.0 ** rng.uniform(-1, 1, n), LOSSES[rng.choice(sorted(LOSSES))]
    for comparator in (u, 30.0 * u, -u, np.zeros(3)):
        regret, theorem, certificate = claims(LEARNERS[name](3), loss, X, y, weight, comparator)
        assert regret <= min(theorem, certificate) + 1e-9 * (1.0 + abs(regret) + abs(theorem))


def test_nothing_is_claimed_where_no_theorem_holds():
    X, y = np.array([[1.0], [2.0], [3.0]]), np.array([5.0, 7.0, -1.0])
    for create in (ScInOL1, ScInOL2, lambda d: PiSTOL(d, a=4.0)):
        state = create(2)
        assert paper_bound(state, Objective("classification", LOSSES["logistic"]), [0.0, 1.0]) < np.inf
        objective = run(state, Objective("regression", losses.Absolute()), as_dense(X), y, np.ones(3), 1)[1]
        assert paper_bound(state, objective, [0.0, 1.0]) == np.inf
    assert paper_bound(state, Objective("classification", losses.SquaredHinge()), [0.0, 1.0]) == np.inf
    early = CoordinatePiSTOL(2, a=4.0)  # as from a file of a version that did not store the first values
    early.largest[1] = early.slopes[1] = 1.0
    assert paper_bound(early, Objective("classification", LOSSES["logistic"]), [0.0, 1.0]) == np.inf


def test_a_late_class_does_not_make_a_certificate_false():
    """Two classes share the margin from then on."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(303, 2))
    y = np.where(rng.random(303) < 1 / (1 + np.exp(-2 * X[:, 0])), "a", "b")
    y[0], y[300:] = "a", "c"  # the first label is class 0
    for name in ("scinol1", "scinol2"):
        model = Model("classification", name, n_features=3)
        parts = slice(0, 300), slice(300, 303)
        losses = [model.learn(rows.dense(X[part]), Labels.of(y[part]), np.ones(len(y[part])))[1] for part in parts]
        total = np.concatenate(losses).sum()
        member = model.linear.members[0]
        u = np.zeros((member.room, 3))
        u[1, 0], u[0, 2] = 2.0, -4.0  # with which only class 0 tells apart what only class 1 has learned
        codes, margins = np.searchsorted(["a", "b", "c"], y) * 1.0, np.c_[np.ones(303), X] @ u[:3]
        regret = total - measured(Objective("classification"), codes, margins).sum()
        assert model.certificate().regret(u) >= regret - 1e-9

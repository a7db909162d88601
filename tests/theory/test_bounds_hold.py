"""Nobody beats what the package prints: streams at random, streams that Hypothesis drives at each bound, and real data.

Every bound is on the regret of a learner against a comparator: that of the learner's theorem, and that which is
computed from the slopes. ``target`` steers the search towards streams on which the regret comes near the bound.
"""

from importlib.resources import as_file, files

import numpy as np
import pytest
from hypothesis import given, target
from hypothesis import strategies as st
from pyarrow import parquet
from sklearn.linear_model import LogisticRegression

from tests import naive
from tests.contracts import run
from tests.strategies import as_dense
from tunefree import losses
from tunefree.learners.scinol import ScInOL2
from tunefree.losses.objectives import Objective
from tunefree.papers.learners.pistol import CoordinatePiSTOL, PiSTOL
from tunefree.papers.learners.scinol1 import ScInOL1
from tunefree.papers.pistol_bound import growing_pistol_bound
from tunefree.papers.pistol_risk import pistol_parameter
from tunefree.theory.bounds import paper_bound
from tunefree.theory.evidence import Evidence, certify, record_evidence

LEARNERS = {
    "scinol1": lambda d: ScInOL1(d + 1),
    "scinol2": lambda d: ScInOL2(d + 1),
    "pistol": lambda d: PiSTOL(d + 1, a=pistol_parameter()),
    "coordinate-pistol": lambda d: CoordinatePiSTOL(d + 1, a=pistol_parameter()),
}
LOSSES = {"logistic": losses.Logistic(), "smoothed-hinge": losses.SmoothedHinge(), "hinge": losses.Hinge()}

by_learner = pytest.mark.parametrize("name", LEARNERS)
LENGTH = 40


@st.composite
def streams(draw):
    """Rows whose values are powers of two, labels, weights and a comparator, all for the search to choose."""
    n, d = draw(st.integers(1, LENGTH)), draw(st.integers(1, 3))
    entries = st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=n * d, max_size=n * d)
    exponents = st.lists(st.integers(-3, 3), min_size=n, max_size=n)
    X = np.reshape(draw(entries), (n, d)) * 2.0 ** np.array(draw(exponents))[:, None]
    y = np.array(draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n, max_size=n)))
    weight = np.array(draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=n, max_size=n)))
    u = np.array(draw(st.lists(st.floats(-8.0, 8.0), min_size=d, max_size=d)))
    return X, y, weight, u


def total(loss, y, margins, weight):
    return float(weight @ [loss.value(*pair) for pair in zip(y, margins, strict=True)])


def claims(state, loss, X, y, weight, u):
    """The regret of a learner, the bound of its theorem, and what is computed from the slopes."""
    objective = Objective("classification", loss)
    state, _, predictions, row_losses = run(state, objective, as_dense(X), y, weight, 1)
    evidence = Evidence(X.shape[1] + 1)
    record_evidence(evidence, objective, as_dense(X), y, weight, predictions, row_losses)
    regret = float(weight @ row_losses) - total(loss, y, X @ u, weight)
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
@given(seed=st.integers(0, 2**32), n=st.integers(1, 300), noise=st.floats(0, 3), kind=st.sampled_from(sorted(LOSSES)))
def test_no_random_stream_beats_a_theorem_or_a_certificate(name, seed, n, noise, kind):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(1.5, size=(n, 3)) * 10.0 ** rng.integers(-3, 4, 3)
    u = rng.normal(size=3) * 10.0 ** rng.uniform(-2, 1) / np.abs(X).max(0)
    y = np.where(X @ u + noise * rng.normal(size=n) > 0, 1.0, -1.0)
    weight = 10.0 ** rng.uniform(-1, 1, n)
    for comparator in (u, 10.0 * u, np.zeros(3)):
        regret, theorem, certificate = claims(LEARNERS[name](3), LOSSES[kind], X, y, weight, comparator)
        assert regret <= min(theorem, certificate) + 1e-9 * (1.0 + abs(regret) + abs(theorem))


def census(n):
    with as_file(files("tunefree") / "data" / "adult.parquet") as path:
        table = parquet.read_table(path).slice(0, n)
    numbers = [c for c in table.column_names if str(table.schema.field(c).type).startswith(("int", "float"))]
    X = np.column_stack([np.ones(n), *(table[c].to_numpy().astype(float) for c in numbers)])
    return X, np.where(np.array(table["income"].to_pylist()) == ">50K", 1.0, -1.0)


@by_learner
@pytest.mark.parametrize("kind", LOSSES)
def test_real_rows_beat_no_theorem_and_no_certificate(name, kind):
    X, y = census(4000)
    scale = X.std(0) + (X.std(0) == 0)
    best = LogisticRegression(C=1e4, fit_intercept=False, max_iter=2000).fit(X / scale, y).coef_[0] / scale
    for u in (best, 3.0 * best, 0.0 * best):
        regret, theorem, certificate = claims(LEARNERS[name](X.shape[1]), LOSSES[kind], X, y, np.ones(len(y)), u)
        assert regret <= min(theorem, certificate) + 1e-6


@given(stream=streams(), a=st.sampled_from([2.5, 4.0]), b=st.sampled_from([0.1, 1.0]))
def test_no_stream_is_found_that_beats_the_theorem_in_a_space_of_functions(stream, a, b):
    X, y, weight, u = stream
    loss, slopes = losses.Hinge(), np.zeros(len(y))

    def noted(t, margins):
        slopes[t] = weight[t] * loss.slope(y[t], margins[0])
        return slopes[t : t + 1]

    margins, _, _ = naive.kernel_pistol(X @ X.T, noted, 1, weight, a, b)
    sizes = np.linalg.norm(X, axis=1)
    reach, path = np.maximum.accumulate(weight * sizes), float(np.abs(slopes) @ sizes)
    if reach[-1] == 0.0:
        return
    first = reach[reach > 0.0][0]
    bound = float(growing_pistol_bound(np.linalg.norm(u) * reach[-1], path / reach[-1], path / first, a, b))
    regret = total(loss, y, margins[:, 0], weight) - total(loss, y, X @ u, weight)
    target(regret - bound, label="regret minus bound")
    assert regret <= bound + 1e-9 * (1.0 + abs(regret) + bound)

"""The exact certificate: its sums are those of its definition, and no model that can be found violates it."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn import datasets

from tests.strategies import KINDS, OBJECTIVES, as_dense, streams
from tunefree import losses
from tunefree.core import rows
from tunefree.losses.objectives import Objective, measured
from tunefree.papers.subgradient import respond
from tunefree.pool.model import Model
from tunefree.pool.targets import Labels
from tunefree.theory.evidence import Certificate, Evidence, certify, record_evidence, widened

LEARNERS = ["scinol1", "scinol2", "pistol"]


def certified(objective, X, y, weight, predictions, cuts=(), form=rows.dense):
    """The certificate of rows (n, d), which come in blocks of a form."""
    evidence, block = Evidence(X.shape[1] + 1, predictions.shape[1]), form(X)
    for start, stop in pairwise([0, *cuts, len(y)]):
        part = (a[start:stop] for a in (y, weight, predictions, measured(objective, y, predictions)))
        record_evidence(evidence, objective, rows.part(block, start, stop), *part)
    return certify(evidence, objective)


def with_predictions(stream, seed):
    """The objective of a stream, its rows, targets and weights, and some predictions of it."""
    predictions = np.random.default_rng(seed).normal(size=(len(stream.y), stream.n_outputs)) * 3.0
    return stream.objective, stream.X, stream.y, stream.weight, predictions


@pytest.mark.parametrize("kind", KINDS)
@given(stream=streams(), seed=st.integers(0, 2**32), cut=st.floats(0, 1))
def test_sums_equal_the_definition(kind, stream, seed, cut):
    objective, X, y, weight, predictions = learned_rows = with_predictions(stream, seed)
    certificate = certified(*learned_rows, (int(cut * len(y)),), KINDS[kind])
    slopes = weight[:, None] * respond(objective, y, predictions)[0]
    largest = np.abs(X).max(0)
    pulls = np.where(largest > 0, X / np.where(largest > 0, largest, 1.0), 0.0).T @ slopes
    close = {"rel": 1e-9, "abs": 1e-12 * weight.sum()}
    assert certificate.inner == pytest.approx((slopes * predictions).sum(), **close)
    assert certificate.loss == pytest.approx((weight * measured(objective, y, predictions)).sum(), **close)
    assert certificate.pulls[1:] == pytest.approx(pulls, **close)
    assert (certificate.largest[1:] == largest).all()
    assert (certificate.weight, certificate.rounds) == (pytest.approx(weight.sum()), len(y))
    rest = certified(*learned_rows, form=as_dense)
    assert (rest.pulls == certificate.pulls).all() and rest.inner == certificate.inner


@given(stream=streams(), seed=st.integers(0, 2**32), size=st.floats(-2, 2), radius=st.floats(0.01, 100))
def test_no_comparator_violates_it(stream, seed, size, radius):
    objective, X, y, weight, predictions = with_predictions(stream, seed)
    certificate = certified(objective, X, y, weight, predictions, form=as_dense)
    rng = np.random.default_rng(seed + 1)
    largest = np.abs(X).max(0)
    slack = 1e-9 * (1.0 + radius) * weight.sum()
    corner = np.sign(certificate.pulls[1:])
    for u in (rng.uniform(-1, 1, corner.shape), rng.choice([-1.0, 0.0, 1.0], corner.shape), corner, -corner):
        u = radius * u / np.where(largest > 0, largest, 1.0)[:, None]
        total = (weight * measured(objective, y, X @ u)).sum()
        regret = certificate.regret(np.vstack([np.zeros(u.shape[1]), u]))
        assert certificate.loss - total <= regret + slack
        assert certificate.lower_bound(radius) * weight.sum() <= total + slack
    worst = certificate.regret(np.vstack([np.zeros(u.shape[1]), u]))  # u is the last, the corner against the pulls
    least = (certificate.loss - worst) / weight.sum()
    assert certificate.lower_bound(radius) == pytest.approx(least, abs=1e-9 * (1.0 + radius))


def best_in_box(objective, X, y, certificate, radius):
    """The best mean loss that L-BFGS-B finds among the models of a radius, and its weights."""
    A = np.c_[np.ones(len(X)), X]
    scale = np.where(certificate.largest > 0, certificate.largest, 1.0)
    A, shape = A / scale, certificate.pulls.shape
    centre = np.zeros(shape)
    centre[0] = certificate.centre

    def mean_loss(v):
        predictions = np.ascontiguousarray(A @ (centre + v.reshape(shape)))
        slopes, row_losses = respond(objective, y, predictions)
        return row_losses.mean(), (A.T @ slopes / len(y)).ravel()

    limits = [(-radius * certificate.unit, radius * certificate.unit)] * centre.size
    best = minimize(mean_loss, np.zeros(centre.size), jac=True, method="L-BFGS-B", bounds=limits)
    return best.fun, (centre + best.x.reshape(shape)) / scale[:, None]


def learned(task, learner, X, y, loss=None):
    """A model that has learned a data set in one pass, the objective's targets, and the certificate of that pass."""
    labels = Labels.of(y) if task == "classification" else y
    model = Model(task, learner, loss, classes=labels.values if task == "classification" else [])
    model.reserve(X.shape[1] + 1)
    model.learn(rows.dense(X), labels, np.ones(len(y)))
    return model, model.targets_of(labels.codes) if task == "classification" else y, model.certificate()


def data_set(name):
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = np.asarray(X, np.float64)[order], y[order]
    return (X[:300, 20:30], y[:300] % 4) if name == "digits" else (X, y)


CASES = [
    ("breast_cancer", "classification", None),
    ("breast_cancer", "classification", "squared-hinge"),
    ("digits", "classification", None),
    ("digits", "classification", "smoothed-hinge"),
    ("diabetes", "regression", None),
    ("diabetes", "regression", "absolute"),
    ("diabetes", "regression", "huber:20"),
]


@pytest.mark.parametrize(("name", "task", "loss"), CASES)
def test_batch_optimisation_finds_no_better_model(name, task, loss):
    X, y = data_set(name)
    passes = [learned(task, learner, X, y, loss) for learner in LEARNERS]
    model, targets, first = passes[0]
    smallest = {}
    for radius in (0.1, 1.0, 10.0):
        smallest[radius], u = best_in_box(model.objective, X, targets, first, radius)
        for _, _, certificate in passes:
            assert (certificate.centre, certificate.unit) == (first.centre, first.unit)  # so models compete in one box
            assert certificate.lower_bound(radius) <= smallest[radius] + 1e-9
            assert certificate.loss - smallest[radius] * len(y) <= certificate.regret(u) + 1e-6 * certificate.loss
    for _, _, certificate in passes:
        assert certificate.lower_bound(0.01) > 0.4 * smallest[0.1]  # and it says something


def test_features_whose_sums_lack_a_row_count_by_their_largest_weight():
    pulls, largest = np.array([[0.0, 0.0], [1.0, -2.0], [0.5, 0.5]]), np.array([1.0, 2.0, 1.0])
    whole, partial = (Certificate(9.0, 1.0, 4.0, 3, pulls, largest, n_partial=n, steepest=0.25) for n in (0, 1))
    u = [[0.0, 0.0], [0.1, -0.3], [0.4, 0.0]]
    assert (whole.regret(u), partial.regret(u)) == pytest.approx((-0.6, -0.6 + 0.25 * 0.6))
    units = np.array([1.0, 4.0, 0.5])  # of the features, in which a model has its weights
    assert partial.regret(u * units[:, None], units) == pytest.approx(partial.regret(u))
    assert (whole.lower_bound(0.5), partial.lower_bound(0.5)) == pytest.approx((1.5, 1.5 - 0.5 * 0.25 / 4.0))
    assert repr(whole) == "Certificate(rows=3, features=3, mean_loss=2.25)"


@pytest.mark.parametrize("multinomial", [True, False])
@given(seed=st.integers(0, 2**32), size=st.floats(-1, 1))
def test_evidence_holds_when_classes_are_added(multinomial, seed, size):
    """Two classes, then three, then four: compared with models of four classes on all rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3))
    loss = losses.Logistic() if multinomial else losses.SmoothedHinge()
    many = Objective("classification") if multinomial else Objective("classification", loss)
    y = np.r_[rng.integers(0, 2, 20), rng.integers(0, 3, 20), rng.integers(0, 4, 20)].astype(float)
    evidence = Evidence(3, 1)
    pieces, objectives = (slice(0, 20), slice(20, 40), slice(40, 60)), (Objective("classification", loss), many, many)
    for n_outputs, objective, piece in zip((1, 3, 4), objectives, pieces, strict=True):
        evidence = widened(evidence, evidence.n_features + 1, n_outputs, objective)
        targets = np.where(y[piece] == 1, 1.0, -1.0) if n_outputs == 1 else y[piece]
        predictions = rng.normal(size=(20, n_outputs))
        row_losses = measured(objective, targets, predictions)
        record_evidence(evidence, objective, as_dense(X[piece]), targets, np.ones(20), predictions, row_losses)
    certificate = certify(evidence, many)
    assert certificate.pulls.shape == (6, 4) and certificate.rounds == 60
    for u in (10.0**size * rng.normal(size=(3, 4)), -np.sign(certificate.pulls[1:4])):
        total = measured(many, y, X @ u).sum()
        whole = np.zeros((6, 4))
        whole[1:4] = u
        assert certificate.loss - total <= certificate.regret(whole) + 1e-9
    radius = np.abs(u * np.abs(X).max(0)[:, None]).max()
    assert certificate.lower_bound(radius) <= total / 60 + 1e-12


@pytest.mark.parametrize("exponents", [(40, -40), (900, -950)])
def test_units_of_features_are_free(exponents):
    rng = np.random.default_rng(3)
    X, y, p = rng.normal(size=(50, 2)), rng.choice([-1.0, 1.0], 50), rng.normal(size=(50, 1))
    one, other = (certified(OBJECTIVES["logistic"], Z, y, np.ones(50), p) for Z in (X, np.ldexp(X, exponents)))
    assert (one.pulls == other.pulls).all() and one.table() == other.table()
    u = np.array([[0.1], [0.2], [0.3]])
    scaled = np.ldexp(u, [[0], [-exponents[0]], [-exponents[1]]])
    assert other.regret(scaled) == pytest.approx(one.regret(u))


extreme = st.one_of(st.floats(-1e308, 1e308), st.floats(-10, 10), st.sampled_from([0.0, 1e300, -1e300, 5e-324, 1e-300]))


@given(
    data=st.lists(st.tuples(extreme, extreme, extreme, st.sampled_from([1.0, 1e-300, 1e300])), min_size=1, max_size=6),
    loss=st.sampled_from([losses.Square(), losses.Absolute(), losses.power_loss(1.5), losses.huber(1.0)]),
)
def test_finite_for_any_numbers(data, loss):
    X, y, predictions, weight = (np.array(column) for column in zip(*data, strict=True))
    objective = Objective("regression", loss)
    certificate = certified(objective, X[:, None], y, weight, predictions[:, None])
    assert np.isfinite(certificate.pulls).all() and not math.isnan(certificate.inner)
    for radius in (0.0, 1.0, 1e300):
        assert 0.0 <= certificate.lower_bound(radius) < math.inf
    row_losses = measured(objective, y, np.zeros((len(y), 1)))  # a model of radius 0
    if row_losses.max() <= 1e308:
        total = sum(h * loss for h, loss in zip(weight.tolist(), row_losses.tolist(), strict=True))
        assert certificate.lower_bound(0.0) * weight.sum() <= total * (1 + 1e-9) + 1e-12
    assert not math.isnan(certificate.regret(np.array([[1.0], [1e300]])))


@pytest.mark.parametrize("loss", [losses.Square(), losses.huber(0.5), losses.power_loss(1.5)])
@given(seed=st.integers(0, 2**32), offset=st.floats(-5, 5))
def test_smooth_losses_give_more(loss, seed, offset):
    """The closed form is the best multiple of the slopes, and holds for every constant."""
    rng = np.random.default_rng(seed)
    y, objective = rng.normal(size=30), Objective("regression", loss)
    predictions = np.full((30, 1), y.mean() + offset)
    certificate = certified(objective, np.zeros((30, 1)), y, np.ones(30), predictions)
    grid = np.linspace(-8.0, 8.0, 41)
    true = np.array([measured(objective, y, np.full((30, 1), c)).sum() for c in grid])
    claimed = np.array([certificate.loss - certificate.regret([[c], [0.0]]) for c in grid])
    assert (claimed <= true + 1e-9).all() and (claimed >= 0.0).all()
    linear = certificate.loss - certificate.inner + certificate.pulls[0, 0] * (grid - certificate.centre)
    r = np.linspace(0.0, 1.0, 2001)[:, None]
    assert claimed == pytest.approx((r * linear + r * (1.0 - r) * certificate.bends).max(0), abs=1e-3)
    assert (certificate.bends > 0.0) == math.isfinite(loss.smoothness)

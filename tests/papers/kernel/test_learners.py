"""What every learner in a kernel's space obeys: what it agrees with, and what certificates and theorems promise."""

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests import naive
from tests.contracts import naive_slope, uncompile
from tests.papers.kernel.contracts import OBJECTIVES, by_row, drawn, frozen_after, gram, taught
from tests.strategies import KINDS, Stream, as_dense, one_hot
from tunefree import KernelPiSTOLClassifier
from tunefree.core import rows
from tunefree.losses.objectives import measured
from tunefree.model_files.progress import POINTS
from tunefree.papers.kernel.kernel_bank import KernelConfig
from tunefree.papers.kernel.kernel_certificates import certificate_of
from tunefree.pool.model import Model
from tunefree.pool.targets import Labels
from tunefree.report.guarantees import certificates
from tunefree.report.rendering import record

TOLERANCE = 1e-10
KERNELS = {"rbf": (0.5, 3, 1.0), "laplacian": (0.25, 3, 1.0), "poly": (0.5, 2, 1.0), "linear": (1.0, 1, 0.0)}

few = settings(max_examples=6)


def assert_near(found, expected, tolerance, largest=1e-300):
    """Rounding errors are relative to the ``largest`` number on the way, of which sums may leave next to nothing."""
    atol = tolerance * np.abs(expected).max(initial=largest)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=atol)


def merged(X, coefficients):
    """Coefficients (n, K) at the first of the rows that are the same."""
    found = np.zeros_like(coefficients)
    _, first, owner = np.unique(X, axis=0, return_index=True, return_inverse=True)
    np.add.at(found, first[owner.reshape(-1)], coefficients)
    return found


@few
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(2, 300),
    kind=st.sampled_from(sorted(OBJECTIVES)),
    kernel=st.sampled_from(sorted(KERNELS)),
    distinct=st.sampled_from([0.3, 1.0]),
    average=st.booleans(),
)
@example(seed=2, n=2, kind="binary", kernel="laplacian", distinct=0.3, average=False)
@example(seed=3701850, n=26, kind="against", kernel="linear", distinct=0.3, average=False)
@example(seed=528876063, n=298, kind="binary", kernel="poly", distinct=0.3, average=False)
def test_agrees_with_the_paper(seed, n, kind, kernel, distinct, average):
    data = drawn(seed, n, kind=kind, distinct=distinct)
    assume(data.weight.any())
    gamma, degree, constant = KERNELS[kernel]
    choice = KernelConfig(kernel, gamma, degree, constant)
    values, block = gram(data.X, data.X, kernel, gamma, degree, constant), as_dense(data.X)
    expected, last, mean = naive.kernel_pistol(values, naive_slope(data), data.n_outputs, data.weight)
    bank, predictions = taught(data, kernel_config=choice, average=average)
    assert_near(predictions[0], expected, TOLERANCE)
    function = mean if average else last
    margins = np.abs(expected).max()  # whose rounding errors are those of slopes
    assert_near(by_row(bank, block)[0], merged(data.X, function), TOLERANCE, max(margins, np.abs(function).max()))
    others = drawn(seed + 1, 40).X
    seen = gram(others, data.X, kernel, gamma, degree, constant)
    assert_near(bank.predict(as_dense(others))[0], seen @ function, TOLERANCE, (np.abs(seen) @ np.abs(function)).max())


def test_many_points_agree_with_the_paper():
    data = drawn(0, 1400, weighted=False)
    values = gram(data.X, data.X, "laplacian", 8.0)
    expected, _, mean = naive.kernel_pistol(values, naive_slope(data), 1, data.weight)
    bank, predictions = taught(data, kernel_config=KernelConfig("laplacian", 8.0))
    assert bank.expansion.support.points.size > 1024
    assert_near(predictions[0], expected, TOLERANCE)
    assert_near(by_row(bank, as_dense(data.X))[0], merged(data.X, mean), TOLERANCE)


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_dense_sparse_and_table_rows_are_learned_alike(kernel):
    data = drawn(2, 300, kind="against")
    gamma, degree, constant = KERNELS[kernel]
    choice, others = KernelConfig(kernel, gamma, degree, constant), drawn(3, 50).X
    results = {}
    for kind, block in KINDS.items():
        bank, predictions = taught(data, block(data.X), kernel_config=choice)
        results[kind] = predictions, by_row(bank, block(data.X)), bank.predict(block(others))
    for kind in ("sparse", "table"):
        for found, expected in zip(results[kind], results["dense"], strict=True):
            assert_near(found, expected, TOLERANCE)


def test_one_hot_codes_are_columns_of_zeros_and_ones():
    rng = np.random.default_rng(4)
    data = drawn(4, 200)
    codes = rng.integers(0, 4, (200, 2))
    features = np.where(codes > 0, codes + np.array([4, 7]), 0)  # behind four numbers
    _, predictions = taught(data, rows.table(data.X, np.arange(4) + 1, features))
    _, expected = taught(data, as_dense(np.c_[data.X, one_hot(features, 10)[:, 4:]]))
    assert_near(predictions, expected, TOLERANCE)


def test_uncompiled_gives_the_same_numbers(monkeypatch):
    data = drawn(8, 60)
    _, compiled = taught(data)
    uncompile(monkeypatch)
    _, predictions = taught(data)
    np.testing.assert_allclose(predictions, compiled, rtol=1e-12, atol=1e-300)


def total_loss(data, margins):
    return float(data.weight @ measured(data.objective, data.y, margins))


@pytest.mark.parametrize("kind", sorted(OBJECTIVES))
@few
@given(seed=st.integers(0, 2**32), n=st.integers(2, 300), radius=st.sampled_from([0.1, 1.0, 10.0]))
def test_no_function_of_the_span_beats_the_certificate(kind, seed, n, radius):
    data = drawn(seed, n, kind=kind)
    assume(data.weight[1:].any())
    data.weight[0] = 0.0
    bank, _ = taught(data, kernel_config=KernelConfig("rbf", 0.5), average=False)
    function = bank.members[0]
    loss, inner = float(function.evidence.loss[0]), float(function.evidence.inner[0])
    lipschitz = getattr(getattr(function.objective, "loss", None), "lipschitz", 1.0)
    norm = lipschitz * np.sqrt(function.state.norms.sum())  # by how much a function of norm 1 is better at most
    values, rng = gram(data.X, data.X, "rbf", 0.5), np.random.default_rng(seed)
    slope_of, slopes = naive_slope(data), np.zeros((n, data.n_outputs))

    def noted(t, margins):
        slopes[t] = slope_of(t, margins)
        return slopes[t]

    margins, *_ = naive.kernel_pistol(values, noted, data.n_outputs, data.weight)
    np.testing.assert_allclose(loss, total_loss(data, margins), rtol=1e-9)
    # The last is the worst there is: the margins of the rows are along their slopes.
    for coefficients in [*rng.normal(size=(5, n, data.n_outputs)), -slopes]:
        size = np.sqrt(max((coefficients * (values @ coefficients)).sum(), 1e-300))
        margins = values @ coefficients * min(radius / size, 1e150)
        assert total_loss(data, margins) >= loss - (inner + norm * radius) - 1e-9 * (1.0 + loss)


@given(
    seed=st.integers(0, 2**32), n=st.integers(3, 200), growth=st.floats(0.0, 2.0), radius=st.floats(0.0, 10.0),
    a=st.sampled_from([2.5, 4.0, 16.0]),
)  # fmt: skip
def test_the_theorem_holds(seed, n, growth, radius, a):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * 2.0 ** np.floor(growth * np.arange(n) % 50)[:, None]
    u = rng.normal(size=3)
    y = np.where(X @ u + rng.normal(size=n) > 0.0, 1.0, -1.0)
    data = Stream(X, y, np.r_[0.0, np.ones(n - 1)], 1, OBJECTIVES["binary"])  # the first row makes the bank freeze
    bank, _ = taught(data, kernel_config=KernelConfig("linear", 0.5), average=False, a=a, b=0.5)
    certificate = certificate_of(bank.members[0])
    u *= radius / np.linalg.norm(u) / certificate.state.largest[0]
    total = total_loss(data, X @ u[:, None])
    assert certificate.loss - total <= certificate.theorem(np.linalg.norm(u)) + 1e-9 * (1.0 + certificate.loss)
    assert total >= certificate.weight * certificate.lower_bound(np.linalg.norm(u)) - 1e-9 * (1.0 + certificate.loss)


def test_after_a_late_class_no_function_is_claimed_to_be_worse():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    y = np.where(X[:, 0] > 0, "a", "b")
    y[1400:] = "c"
    model = Model("classification", "kernel-pistol", "logistic", settings={"width": 1.0}, n_features=3)
    for part in (slice(0, 1300), slice(1300, 1500)):
        model.learn(rows.dense(X[part]), Labels.of(y[part]), np.ones(part.stop - part.start))
    assert certificate_of(model.predictor.bank.members[0]) is None


def test_bounds_of_estimators_or_why_there_is_none():
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    theory = {"gamma": 0.5, "preset": "theory"}
    model = KernelPiSTOLClassifier(**theory)
    assert "buffered" in str(model.partial_fit(X, y, classes=[0, 1]).bound(1.0)) and model.n_support_ == 0
    bound = model.fit(X, y).bound(1.0)
    assert bound.value == model.certificates_[0].theorem(1.0) < 1000.0 and bound.theorem
    for parameters, reason in (
        ({"preset": "theory"}, "of one learner"),
        ({"gamma": 0.5}, "a of at least 2.25 L"),
        (theory | {"passes": 2}, "of one pass"),
        (theory | {"loss": "square"}, "with a Lipschitz constant"),
    ):
        assert reason in str(KernelPiSTOLClassifier(**parameters).fit(X, y).bound(1.0))


@pytest.mark.parametrize("n", [150, 400])
def test_the_loss_that_is_certified_is_the_progressive_one(n):
    """Also where no row was left after those that are kept back, which say nothing of the error of new rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    with frozen_after(200):
        model = KernelPiSTOLClassifier(passes=1).fit(X, y)
    known = record(certificates(model.trained_))
    assert known["rows"] == n
    assert known["loss"] == model.progressive_loss_ < 0.65
    assert model.history()["rows"].to_pylist() == [point for point in POINTS if point < n] + [n]
    assert ("risk" in known) == (n > 200)
    if "risk" in known:
        errors = model._learned.model.record.risks["error"]
        assert errors.rows == known["risk"]["rows_that_tell"] == n - 200
        assert errors.total / errors.rows < known["risk"]["error"] < 0.45
    assert not model.set_params(passes=2).fit(X, y).certificates_  # its sums are then of rows that came again

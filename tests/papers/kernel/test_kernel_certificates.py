"""Certificates and the theorem of PiSTOL in a kernel's space hold where the norm grows, for numbers, and after classes
that come late."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.papers.kernel.contracts import Rows, frozen_after, taught
from tests.papers.kernel.test_learners import total_loss
from tunefree import KernelPiSTOLClassifier, losses
from tunefree.core import rows
from tunefree.losses.objectives import Objective
from tunefree.papers.kernel.kernel_bank import KernelConfig
from tunefree.papers.kernel.kernel_certificates import certificate_of
from tunefree.pool.model import Model
from tunefree.pool.targets import Labels
from tunefree.workflows.certification import certified

SMOOTHED = Objective("classification", losses.SmoothedHinge())


def learned(X, y, objective=SMOOTHED, kernel="linear", **options):
    data = Rows(X, y, np.r_[0.0, np.ones(len(y) - 1)], 1, objective)  # the first row makes the bank freeze
    bank, _ = taught(data, kernel_config=KernelConfig(kernel, 0.5), average=False, **options)
    return data, bank.members[0]


@given(
    seed=st.integers(0, 2**32), n=st.integers(3, 200), growth=st.floats(0.0, 2.0), radius=st.floats(0.0, 10.0),
    a=st.sampled_from([2.5, 4.0, 16.0]),
)  # fmt: skip
def test_the_theorem_holds(seed, n, growth, radius, a):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * 2.0 ** np.floor(growth * np.arange(n) % 50)[:, None]
    u = rng.normal(size=3)
    y = np.where(X @ u + rng.normal(size=n) > 0.0, 1.0, -1.0)
    data, member = learned(X, y, a=a, b=0.5)
    certificate = certificate_of(member)
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


@pytest.mark.parametrize("n", [150, 400])
def test_the_loss_that_is_certified_is_the_progressive_one(n):
    """Also where no row was left after those that are kept back, which say nothing of the error of new rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    with frozen_after(200):
        model = KernelPiSTOLClassifier(passes=1).fit(X, y)
    known = certified(model.trained_)
    assert known["rows"] == n
    assert known["loss"] == model.progressive_loss_ < 0.65
    assert ("risk" in known) == (n > 200)
    if "risk" in known:
        errors = model._learned.model.record.risks["error"]
        assert errors.rows == known["risk"]["rows"] == n - 200
        assert errors.total / errors.rows < known["risk"]["error"] < 0.45
    for gap, radius in known["largest_radii"].items():
        bound = -np.inf if radius is None else model.certificate_.lower_bound(radius)
        assert radius is None or bound == pytest.approx((1 - gap) * known["loss"], rel=1e-9)
    assert not model.set_params(passes=2).fit(X, y).certificates_  # its sums are then of rows that came again

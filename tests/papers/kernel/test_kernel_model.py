"""Kernel learners as a model: asleep at first, then the widths are mixed, and saved."""

import copy
import pickle

import numpy as np
import pytest

from tests.papers.kernel.contracts import frozen_after
from tests.pool.rows import bytes_of
from tests.strategies import KINDS
from tunefree.core import storage
from tunefree.core.rows import dense, part
from tunefree.papers.kernel.family import WIDTHS
from tunefree.pool.model import Model, restored
from tunefree.pool.targets import Labels

AXES = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]  # along which curves and pairs are no help


def rings(n, n_classes=2):
    """Classes, or numbers, that lie around each other in a plane oblique to all columns, and columns of noise."""
    X = np.random.default_rng(0).normal(size=(n, 4))
    radius = np.hypot(X[:, 0], X[:, 1])
    return X @ AXES, np.digitize(radius, np.linspace(0.0, 2.4, n_classes + 1)[1:-1]) if n_classes else radius + 3.0


def targets(y):
    return Labels.of(y) if y.dtype.kind == "i" else y


def learned(X, y, learner="kernel-pistol", cuts=(), frozen=256, form=dense, **options):
    """A model after one pass, and what it predicted on the way."""
    known = {"classes": sorted(set(y.tolist()))} if y.dtype.kind == "i" else {}
    task = "classification" if known else "regression"
    model = Model(task, learner, view="steady", n_features=X.shape[1] + 1, **known | options)
    shown, edges = [], [0, *cuts, len(X)]
    with frozen_after(frozen):
        for start, stop in zip(edges[:-1], edges[1:], strict=True):
            shown.append(model.learn(part(form(X), start, stop), targets(y[start:stop]), np.ones(stop - start)))
    assert all(margins.shape[1] in (1, model.n_outputs) for margins, _ in shown)
    return model, shown


@pytest.mark.parametrize("n_classes", [2, 3])
def test_kernels_sleep_at_first_and_then_predict_better_than_a_line(n_classes):
    X, y = rings(1500, n_classes=n_classes)
    model, shown = learned(X[:1000], y[:1000])
    assert len(model.predictor.bank.members) == len(WIDTHS)
    assert np.isfinite(shown[0][0]).all() and not shown[0][0][:256, 0].any()
    wrong = model.errors(Labels.of(y[1000:]), model.predict(dense(X[1000:]))).mean()
    linear, _ = learned(X[:1000], y[:1000], "nag")
    assert wrong < 0.15
    assert wrong < 0.5 * linear.errors(Labels.of(y[1000:]), linear.predict(dense(X[1000:]))).mean()
    shares = model.predictor.shares()
    assert list(shares) == [member.name for member in model.predictor.bank.members]
    assert sum(shares.values()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("n", "n_classes", "kind"),
    [(100, 2, "table"), (300, 3, "dense"), (300, 0, "sparse"), (684, 2, "table"), (900, 2, "dense")],
)
def test_cuts_and_saving_change_no_byte(n, n_classes, kind, tmp_path):
    X, y = rings(1000, n_classes)
    X[::3], form = X[0], KINDS[kind]  # rows that come again
    whole, shown = learned(X[:n], y[:n], form=form)
    pieces, parts = learned(X[:n], y[:n], form=form, cuts=[cut for cut in (1, 70, 99, 270, 311, 700) if cut < n])
    assert np.concatenate([margins for margins, _ in parts]).tobytes() == shown[0][0].tobytes()
    data = bytes_of(whole)
    assert bytes_of(pieces) == data
    storage.save(tmp_path / "whole", *whole.save_state())
    again = restored(*storage.load(tmp_path / "whole"))
    rest = form(X[n:]), targets(y[n:]), np.ones(1000 - n)
    with frozen_after(256):
        for one in (again, pickle.loads(pickle.dumps(whole)), copy.deepcopy(whole)):
            assert bytes_of(one) == data
            assert one.predict(form(X)).tobytes() == whole.predict(form(X)).tobytes()
        assert whole.learn(*rest)[0].tobytes() == again.learn(*rest)[0].tobytes()
    assert bytes_of(whole) == bytes_of(again)


@pytest.mark.parametrize("loss", ["logistic", "smoothed-hinge"])
def test_a_class_that_comes_while_rows_are_kept_back_is_learned_as_if_it_had_been_known(loss):
    X, y = rings(300, 3)
    y[:100] %= 2
    late = Model("classification", "kernel-pistol", loss, n_features=5)
    known = Model("classification", "kernel-pistol", loss, n_features=5, classes=[0, 1, 2])
    for model, cuts in ((late, (0, 100, 300)), (known, (0, 300))):
        for start, stop in zip(cuts[:-1], cuts[1:], strict=True):
            model.learn(dense(X[start:stop]), Labels.of(y[start:stop]), np.ones(stop - start))
        model.freeze()
    np.testing.assert_array_equal(late.predict(dense(X)), known.predict(dense(X)))


@pytest.mark.parametrize(("classes", "n_outputs"), [([*"ab"], 1), ([*"abc"], 3), (None, 1)])
def test_the_scale_of_the_weights_does_not_matter_to_a_mixture(classes, n_outputs):
    rng, shown = np.random.default_rng(0), []
    y, weight = rng.integers(0, max(n_outputs, 2), 300) * 1.0, rng.choice([0.0, 0.5, 2.0], 300)
    predictions = rng.normal(size=(9, 300, n_outputs)) + np.linspace(0.0, 1.5, 9)[:, None, None] * y[:, None]
    predictions[:, 20:40] = predictions[1, 40:50] = np.nan
    for scale in (2.0**-900, 1.0, 2.0**900):
        task, known = ("classification", {"classes": classes}) if classes else ("regression", {})
        shown.append(Model(task, "kernel-pistol", **known).predictor._mixed(predictions, y, scale * weight))
    assert np.flatnonzero(np.isnan(shown[1]).any(axis=1)).tolist() == list(range(20, 40))
    np.testing.assert_array_equal(shown[0], shown[1])
    np.testing.assert_array_equal(shown[2], shown[1])

"""The pool with kernels, as scikit-learn meets it."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import make_circles
from sklearn.svm import SVC

import tunefree
from tests.kernel.contracts import frozen_after
from tunefree import (
    KernelPiSTOLClassifier,
    KernelSGDClassifier,
    OnlineClassifier,
    TuneFreeClassifier,
    TuneFreeRegressor,
)


@pytest.fixture(scope="module")
def circles():
    X, y = make_circles(700, noise=0.15, factor=0.5, random_state=0)
    return np.c_[X, np.random.default_rng(0).normal(size=(700, 1))], np.array(["in", "out"])[1 - y]


def kernels_of(model):
    return [name for name in model.selection_["member"] if name.startswith("kernel-pistol")]


@pytest.fixture(scope="module")
def fitted(circles):
    X, y = circles
    return TuneFreeClassifier(kernel="rbf").fit(X[:400], y[:400])


def test_kernels_part_what_no_hyperplane_does(fitted, circles):
    X, y = circles
    of_machine = SVC().fit(X[:400], y[:400]).score(X[400:], y[400:])
    assert fitted.score(X[400:], y[400:]) > of_machine - 0.03
    assert OnlineClassifier("scinol2", view="steady").fit(X[:400], y[:400]).score(X[400:], y[400:]) < 0.7
    assert TuneFreeClassifier().fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.85  # trees part them too
    probabilities = fitted.predict_proba(X[400:])
    right = probabilities[np.arange(300), np.searchsorted(fitted.classes_, y[400:])]
    assert -np.log(right).mean() < 0.45
    assert kernels_of(fitted)


@pytest.mark.parametrize("copied", [lambda model: pickle.loads(pickle.dumps(model)), copy.deepcopy])
def test_copies_are_the_same_and_go_on_alike(fitted, circles, copied):
    X, y = circles
    one, other = copied(fitted), copied(fitted)
    assert one.predict_proba(X).tobytes() == fitted.predict_proba(X).tobytes()
    one.partial_fit(X[400:], y[400:])
    other.partial_fit(X[400:], y[400:])
    assert one.predict_proba(X).tobytes() == other.predict_proba(X).tobytes()
    assert one.predict_proba(X).tobytes() != fitted.predict_proba(X).tobytes()


def test_fitting_again_gives_the_same_bytes(fitted, circles):
    X, y = circles
    again = TuneFreeClassifier(kernel="rbf").fit(X[:400], y[:400])
    assert again.predict_proba(X).tobytes() == fitted.predict_proba(X).tobytes()


def test_sparse_rows_are_fitted(circles):
    X, y = circles
    model = TuneFreeClassifier(kernel="rbf").fit(csr_array(X[:400]), y[:400])
    assert model.score(csr_array(X[400:]), y[400:]) > 0.75


def test_streams_whose_buffer_is_used_again(circles):
    X, y = circles
    with frozen_after(200):
        one, other = TuneFreeClassifier(kernel="rbf"), TuneFreeClassifier(kernel="rbf")
        buffer = np.empty((100, 3))
        for start in range(0, 400, 100):
            buffer[:] = X[start : start + 100]
            one.partial_fit(buffer, y[start : start + 100], classes=["in", "out"])
            other.partial_fit(X[start : start + 100], y[start : start + 100], classes=["in", "out"])
            buffer[:] = -1.0
        assert one.predict_proba(X).tobytes() == other.predict_proba(X).tobytes()


@pytest.mark.parametrize("n", [2, 10, 39, 41, 60])
def test_few_rows_are_enough(circles, n):
    X, y = circles
    model = TuneFreeClassifier(kernel="rbf").fit(X[:n], y[:n])
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.all_trees  # whose share of the figure is large
def test_curves_are_fitted(circles):
    X, _ = circles
    y = 1e3 * np.sin(3.0 * X[:, 0]) + 1e5
    kernel = TuneFreeRegressor(kernel="rbf").fit(X[:400], y[:400]).score(X[400:], y[400:])
    assert kernel > 0.9
    assert np.isfinite(TuneFreeRegressor(kernel="rbf").fit(1e200 * X[:100], y[:100]).predict(1e200 * X)).all()


def test_a_model_with_kernels_is_one_like_others(fitted, circles, tmp_path):
    X, _ = circles
    fitted.save(tmp_path / "a.model")
    assert tunefree.load(tmp_path / "a.model").predict_proba(X).tobytes() == fitted.predict_proba(X).tobytes()
    assert fitted._repr_html_()


def test_kernels_are_learned_where_they_are_asked_for(circles):
    X, y = circles
    assert not kernels_of(TuneFreeClassifier().fit(X[:200], y[:200]))
    with pytest.raises(ValueError, match="unknown `kernel` 'auto'; choose one of rbf, laplacian, poly, linear"):
        TuneFreeClassifier(kernel="auto").fit(X[:200], y[:200])


ONE_PASS = {"passes": 1, "shuffle": False}
OF_KERNELS = {
    "pistol": lambda: KernelPiSTOLClassifier(preset="theory", **ONE_PASS),  # in practice `fit` knows the rounds
    "pistol raw": lambda: KernelPiSTOLClassifier(a=0.25, b=1.0, view="raw", **ONE_PASS),
    "sgd": lambda: KernelSGDClassifier(**ONE_PASS),
    "online": lambda: OnlineClassifier("kernel-pistol", view="steady", **ONE_PASS),
}


@pytest.mark.parametrize("make", OF_KERNELS.values(), ids=OF_KERNELS)
def test_partial_fit_of_any_batches_is_fit_while_rows_wait_and_after(make):
    """Views keep 256 rows back, and widths 1024: rows that were learned while others waited counted twice."""
    X, y = make_circles(1100, noise=0.15, factor=0.5, random_state=0)
    X, whole = X * [1.0, 100.0], make().fit(X * [1.0, 100.0], y)
    for cuts in [(512,), (600,), (1023,), (1024,), (255, 513, 700, 1030), tuple(range(37, 1100, 97))]:
        parts = make()
        for start, stop in zip((0, *cuts), (*cuts, 1100), strict=True):
            parts.partial_fit(X[start:stop], y[start:stop], classes=[0, 1])
        assert parts.decision_function(X).tobytes() == whole.decision_function(X).tobytes(), cuts


@pytest.mark.slow
def test_partial_fit_of_the_pool_with_kernels_does_not_depend_on_the_batches():
    X, y = make_circles(1100, noise=0.15, factor=0.5, random_state=0)
    shown = set()
    for cuts in [(), (600,), (512, 1023), (255, 513, 700, 1030)]:
        model = TuneFreeClassifier(kernel="rbf")
        for start, stop in zip((0, *cuts), (*cuts, 1100), strict=True):
            model.partial_fit(X[start:stop], y[start:stop], classes=[0, 1])
        shown.add(model.predict_proba(X).tobytes())
    assert len(shown) == 1

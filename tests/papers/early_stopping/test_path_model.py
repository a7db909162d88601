"""Estimators of iterative regularization that are saved and come back: not a bit differs, nothing needless is kept."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.kernel_approximation import RBFSampler

from tunefree import IterativeRegularizationClassifier as Classifier
from tunefree import IterativeRegularizationRegressor as Regressor
from tunefree import load
from tunefree.core import storage
from tunefree.core.errors import ModelError

CANCER = load_breast_cancer(return_X_y=True)
WINE = load_wine(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
SOME_WINE, SOME_DIABETES = ((X[::3], y[::3]) for X, y in (WINE, DIABETES))  # where each iteration takes long
MODELS = {
    "two classes": (Classifier(), CANCER),
    "three classes": (Classifier(output="average"), WINE),
    "a hinge, whose margins are calibrated": (Classifier(loss="hinge", output="best"), WINE),
    "a kernel": (Classifier(kernel="rbf"), WINE),
    "a kernel and a hinge": (Classifier(kernel="laplacian", loss="hinge"), SOME_WINE),
    "a kernel in double precision": (Regressor(kernel="poly", precision="double"), DIABETES),
    "numbers": (Regressor(loss="epsilon-insensitive:0.1"), DIABETES),
    "numbers of another size": (Regressor(output="average"), (DIABETES[0], 1e200 * DIABETES[1])),
    "single rows": (Classifier(stochastic="shuffled", output="average"), WINE),
    "single rows in a kernel": (Regressor(kernel="rbf", stochastic="cyclic", output="average"), SOME_DIABETES),
    "the theory's stop": (Classifier(stop="theory"), WINE),
    "few rows": (Classifier(), (WINE[0][50:70], WINE[1][50:70])),
    "rows as they are": (Classifier(standardize=False, eta="theory"), WINE),
}
ITERATIONS = 23


def written(estimator, folder):
    """The estimator as it comes back from a file, and its arrays."""
    estimator.save(folder / "estimator")
    arrays = {name.removeprefix("model."): array for name, array in storage.load(folder / "estimator")[0].items()}
    return load(folder / "estimator"), arrays


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def cases():
    """Each model, each layout and each memory; quick is each model once, in turn with each pair of the others."""
    for (place, case), memory, scattered in product(enumerate(MODELS), (2**31, 1), (False, True)):
        is_quick = place % 4 == 2 * (memory == 1) + scattered
        name = f"{case}-{'one' if memory == 1 else 'all'} kept-{'sparse' if scattered else 'dense'}"
        yield pytest.param(case, memory, scattered, id=name, marks=[] if is_quick else [pytest.mark.slow])


@pytest.mark.parametrize(("case", "memory", "scattered"), cases())
def test_what_comes_back_is_the_same_to_the_bit(case, memory, scattered, tmp_path):
    model, (X, y) = MODELS[case]
    rows = sparse.csr_array(np.where(np.abs(X) > np.median(np.abs(X), axis=0), X, 0.0)) if scattered else X
    estimator = model.set_params(max_iter=ITERATIONS, gram_bytes=memory).fit(rows, y)
    back, _ = written(estimator, tmp_path)
    assert type(back) is type(estimator) and back.get_params() == estimator.get_params()
    assert (estimator.fitted_path_.descent.stride > 1) == (memory == 1)
    assert same(back.path_, estimator.path_)
    step = 5 if memory > 1 else 11  # what was not kept is computed anew
    for t in (None, *range(1, len(estimator.path_) + 1, step), len(estimator.path_)):
        one, two = (estimator, back) if t is None else (estimator.at(t), back.at(t))
        assert one.n_iter_ == two.n_iter_
        assert same(one.coefficients_, two.coefficients_)
        assert same(one.predict(rows), two.predict(rows))
        if isinstance(estimator, Classifier):
            assert same(one.predict_proba(rows), two.predict_proba(rows))
    for name in ("coef_", "intercept_", "dual_coef_", "gamma_", "eta_", "theta_", "classes_", "n_features_in_"):
        assert hasattr(back, name) == hasattr(estimator, name)
        if hasattr(estimator, name):
            assert same(getattr(back, name), getattr(estimator, name)), name


@pytest.mark.parametrize("case", ["two classes", "a kernel", "numbers of another size"])
def test_what_comes_back_certifies_and_is_saved_again_alike(case, tmp_path):
    model, (X, y) = MODELS[case]
    estimator = model.set_params(max_iter=ITERATIONS, gram_bytes=2**31).fit(X, y)
    back, _ = written(estimator, tmp_path)
    np.testing.assert_array_equal(back.certificate(), estimator.certificate())
    before = (tmp_path / "estimator").read_bytes()
    written(back.at(7), tmp_path)
    assert (tmp_path / "estimator").read_bytes() != before
    written(back.at(7).at(estimator.n_iter_), tmp_path)
    assert (tmp_path / "estimator").read_bytes() == before


def test_rows_are_kept_only_where_they_are_needed(tmp_path):
    X, y = CANCER
    kept = {}
    for kernel in (None, "rbf"):
        for memory in (2**31, 1):
            estimator = Classifier(max_iter=ITERATIONS, kernel=kernel, gram_bytes=memory).fit(X, y)
            _, arrays = written(estimator, tmp_path)
            assert len(arrays["descent.t"]) == (ITERATIONS if memory > 1 else 1)
            kept[kernel, memory] = "rows.array" in arrays, len(arrays["descent.y"]) > 0
    assert kept == {
        (None, 2**31): (False, False),
        (None, 1): (True, True),
        ("rbf", 2**31): (True, False),
        ("rbf", 1): (True, True),
    }


def test_labels_of_any_kind_come_back(tmp_path):
    X, y = WINE
    for labels in (np.array(["red", "white", "rosé"]), np.array(["a", "b", "c"], object), np.array([-1.0, 0.0, 7.0])):
        estimator = Classifier(max_iter=5).fit(X, labels[y])
        back, _ = written(estimator, tmp_path)
        assert back.classes_.dtype == estimator.classes_.dtype
        assert back.predict(X).tolist() == estimator.predict(X).tolist()


def test_what_comes_back_begins_anew(tmp_path):
    X, y = WINE
    estimator = Classifier(max_iter=10, warm_start=True).fit(X, y)
    back, _ = written(estimator, tmp_path)
    again = back.set_params(max_iter=20).fit(X, y)
    assert same(again.path_, Classifier(max_iter=20).fit(X, y).path_)


def test_a_transformer_is_refused(tmp_path):
    X, y = WINE
    estimator = Classifier(max_iter=5, transformer=RBFSampler(random_state=0)).fit(X, y)
    with pytest.raises(ModelError, match="transform the rows before"):
        written(estimator, tmp_path)
    assert not (tmp_path / "estimator").exists()


def test_of_a_function_for_the_width_the_width_is_kept(tmp_path):
    X, y = WINE
    back, _ = written(Classifier(max_iter=5, kernel="rbf", gamma=lambda X, y: 0.1).fit(X, y), tmp_path)
    assert back.gamma == back.gamma_ == 0.1

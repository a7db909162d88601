"""Estimators of iterative regularization that are saved and come back: not a bit differs, nothing needless is kept."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from tunefree import IterativeRegularizationClassifier as Classifier
from tunefree import IterativeRegularizationRegressor as Regressor
from tunefree import load
from tunefree.core import storage

CANCER = load_breast_cancer(return_X_y=True)
WINE = load_wine(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
MODELS = {
    "two classes": (Classifier(), CANCER),
    "three classes": (Classifier(output="average"), WINE),
    "a hinge": (Classifier(loss="hinge", output="best"), WINE),
    "a kernel": (Classifier(kernel="rbf"), WINE),
    "a kernel and a hinge": (Classifier(kernel="laplacian", loss="hinge"), WINE),
    "a kernel in double precision": (Regressor(kernel="poly", precision="double"), DIABETES),
    "numbers": (Regressor(loss="epsilon-insensitive:0.1"), DIABETES),
    "numbers of another size": (Regressor(output="average"), (DIABETES[0], 1e200 * DIABETES[1])),
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


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("case", MODELS)
def test_an_estimator_comes_back_the_same_to_the_bit(case, form, tmp_path):
    model, (X, y) = MODELS[case]
    rows = form(np.where(np.abs(X) > np.median(np.abs(X), axis=0), X, 0.0))
    estimator = model.set_params(max_iter=ITERATIONS).fit(rows, y)
    back, arrays = written(estimator, tmp_path)
    assert type(back) is type(estimator) and back.get_params() == estimator.get_params()
    assert any(name.startswith("support") for name in arrays) == (estimator.kernel is not None)
    assert same(back.path_, estimator.path_)
    for t in (None, *range(1, len(estimator.path_) + 1, 5), len(estimator.path_)):
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

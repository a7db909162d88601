"""Iterative regularization as estimators: the path, the stop, looking back, pictures, files."""

import os
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.metrics import log_loss

from tests.estimators.test_model_file import assert_same, saved
from tunefree import IterativeRegularizationClassifier as Classifier
from tunefree import IterativeRegularizationRegressor as Regressor
from tunefree import PathDisplay
from tunefree.core import storage
from tunefree.papers.early_stopping import preparation
from tunefree.papers.early_stopping.path_model import PathModel

CANCER = load_breast_cancer(return_X_y=True)
WINE = load_wine(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)


def of_kernel(kernel):
    """A kernel in double precision, or none."""
    return {} if kernel is None else {"kernel": kernel, "precision": "double"}


def halves(data, step=1):
    """Rows to learn and rows to predict, in a fixed random order; of all rows, or of each in so many."""
    X, y = (array[::step] for array in data)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order[::2]], y[order[::2]], X[order[1::2]], y[order[1::2]]


LOSSES = ["logistic", "hinge", "smoothed-hinge", "squared-hinge", "square", "exponential"]
# Each loss learns once in a kernel and once without, and two classes in the one and three in the other.
CASES = [
    pytest.param(loss, data, kernel, marks=[] if (place + is_binary + (kernel is None)) % 2 else [pytest.mark.slow])
    for (place, loss), (is_binary, data), kernel in product(enumerate(LOSSES), enumerate([WINE, CANCER]), [None, "rbf"])
]


@pytest.mark.parametrize(("loss", "data", "kernel"), CASES)
def test_classifiers_learn(loss, data, kernel):
    X, y, X_test, y_test = halves(data)
    eta = "auto" if loss != "exponential" else 0.1 if kernel is None else 5.0
    model = Classifier(loss=loss, kernel=kernel, max_iter=200, eta=eta)
    shares = model.fit(X, y).predict_proba(X_test)
    assert model.score(X_test, y_test) > 0.9
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert (model.classes_[shares.argmax(axis=1)] == model.predict(X_test)).mean() > 0.99
    bounded = np.clip(shares, 1e-3, 1)
    assert log_loss(y_test, bounded / bounded.sum(axis=1, keepdims=True)) < 0.5
    assert len(model.path_) == 200 and 1 <= model.n_iter_ <= 200
    assert model.n_iter_ == model.path_["validation_loss"].argmin() + 1


@pytest.mark.parametrize(
    "loss", ["square", "absolute", "absolute-power:1.5", "epsilon-insensitive:10", "huber:30", "quantile:0.5"]
)
@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_regressors_learn(loss, kernel):
    X, y, X_test, y_test = halves(DIABETES)
    model = Regressor(loss=loss, kernel=kernel).fit(X, y)
    assert model.score(X_test, y_test) > (0.4 if kernel is None else 0.3)
    errors = np.abs(model.predict(X_test) - y_test).mean()
    assert model.path_.validation_error[model.n_iter_ - 1] == pytest.approx(errors, rel=0.4)


@pytest.mark.parametrize("exponent", [-900, 300])
def test_nothing_depends_on_units(exponent):
    X, y, X_test, _ = halves(DIABETES)
    expected = Regressor(max_iter=50).fit(X, y).predict(X_test)
    of_targets = Regressor(max_iter=50).fit(X, np.ldexp(y, exponent)).predict(X_test)
    np.testing.assert_allclose(np.ldexp(of_targets, -exponent), expected, rtol=1e-9)
    columns = np.ldexp(X, np.where(np.arange(X.shape[1]) % 2, exponent, 0))
    model = Regressor(max_iter=50).fit(columns, y)
    np.testing.assert_allclose(model.predict(np.ldexp(X_test, np.where(np.arange(10) % 2, exponent, 0))), expected)
    assert np.isfinite(model.coef_).all() and np.isfinite(list(model.path_[-1])).all()


def test_weights_of_standardised_columns_predict():
    X, y, _, _ = halves(DIABETES)
    model = Regressor(max_iter=50).fit(X, y)
    constant, *weights = PathModel(model).mean_weights()[:, 0]
    np.testing.assert_allclose(constant + model.fitted_path_.standards.apply(X) @ weights, model.predict(X))


def test_dense_and_sparse_rows_are_learned_alike():
    X, y, X_test, _ = halves(CANCER)
    X, X_test = X * (np.median(X, axis=0) < X), X_test * (X_test > np.median(X, axis=0))
    largest = np.abs(X).max(axis=0)
    for kernel in (None, "rbf", "poly"):
        model = Classifier(**of_kernel(kernel), standardize=False, max_iter=40)
        forms = (np.asarray, sparse.csr_array, sparse.csc_matrix)
        margins = [model.fit(form(X / largest), y).decision_function(X_test / largest) for form in forms]
        np.testing.assert_allclose(margins[1:], [margins[0]] * 2, rtol=1e-8)
    scaled = Classifier(max_iter=40).fit(sparse.csr_array(X), y)
    by_hand = X / np.sqrt((X**2).mean(axis=0))
    expected = Classifier(max_iter=40, standardize=False).fit(by_hand, y).score(by_hand, y)
    assert scaled.score(sparse.csr_array(X), y) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(("output", "kernel"), [("last", None), ("average", "rbf"), ("best", None)])
def test_at_is_a_fit_that_stopped_there(output, kernel):
    X, y, X_test, _ = halves(CANCER, step=3)
    settings = {"loss": "hinge", "kernel": kernel, "output": output}
    model = Classifier(**settings, max_iter=40).fit(X, y)
    for t in (1, 3, 40):
        view = model.at(t)
        alone = Classifier(**settings, stop=t, validation_fraction=0.1).fit(X, y)
        assert view.n_iter_ == alone.n_iter_ == t
        assert view.decision_function(X_test).tobytes() == alone.decision_function(X_test).tobytes()
        assert view.predict_proba(X_test).tobytes() == alone.predict_proba(X_test).tobytes()
    assert model.at(model.n_iter_).predict_proba(X_test).tobytes() == model.predict_proba(X_test).tobytes()
    with pytest.raises(ValueError, match="1 to 40"):
        model.at(41)


def test_a_bound_is_in_units_of_the_targets():
    X, y = DIABETES
    one, eight = (Regressor(stop=200, eta="theory").fit(X, unit * y).at(20) for unit in (1.0, 8.0))
    factor = eight.path_["training_loss"][19] / one.path_["training_loss"][19]
    assert eight.bound(8.0 * 50.0).value == pytest.approx(factor * one.bound(50.0).value)


@pytest.mark.parametrize("estimator", [Classifier(), Classifier(loss="hinge"), Regressor(), Classifier(kernel="rbf")])
@pytest.mark.parametrize("output", ["last", "average", "best"])
def test_the_error_of_rows_learned_is_within_the_bound(estimator, output):
    X, y = DIABETES if isinstance(estimator, Regressor) else CANCER
    whole = estimator.set_params(output=output, stop=200, eta="theory").fit(X, y)
    losses_of_path = {"average": "average_training_loss"}.get(output, "training_loss")
    stopped = whole.at(20)
    loss = stopped.path_[losses_of_path][:20].min() if output == "best" else stopped.path_[losses_of_path][19]
    for t in (1, 50, 199):  # functions of the path itself
        bound = stopped.bound(whole.path_["norm"][t])
        if bound.value is None:
            assert bound.reason
            continue
        assert loss - whole.path_["training_loss"][t] <= bound.value and bound.theorem
    assert stopped.bound(0.0).value is None or stopped.bound(1e3).value > stopped.bound(0.0).value


def test_rows_held_out_are_a_share_of_each_class_and_equal_rows_stay_together():
    X, y, _, _ = halves(CANCER)
    again = np.repeat(np.arange(len(y)), 1 + np.arange(len(y)) % 3)
    rows = preparation.order(X[again], y[again].astype(float), np.random.RandomState(0))
    held = preparation.held_out(rows, y[again], np.ones(len(again)), 0.2)
    for label in (0, 1):
        assert held[y[again] == label].mean() == pytest.approx(0.2, abs=0.03)
    once = np.zeros(len(y), bool)
    once[again[held]] = True
    assert (once[again] == held).all()


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_a_row_of_weight_k_is_k_rows_held_out_or_not(kernel):
    for model, (X, y, X_test, _) in ((Classifier, halves(CANCER)), (Regressor, halves(DIABETES))):
        counts = 1 + np.arange(len(y)) % 3
        again = np.random.default_rng(0).permutation(np.repeat(np.arange(len(y)), counts))
        settings = of_kernel(kernel) | {"max_iter": 40}
        one = model(**settings).fit(X, y, sample_weight=counts)
        two = model(**settings).fit(X[again], y[again])
        assert one.n_iter_ == two.n_iter_
        np.testing.assert_allclose(one.predict(X_test), two.predict(X_test), rtol=1e-7)
        np.testing.assert_allclose(one.path_.validation_loss, two.path_.validation_loss, rtol=1e-7)


def test_the_holdout_depends_on_the_random_state_alone():
    X, y, _, _ = halves(CANCER)
    models = [Classifier(max_iter=20, random_state=seed).fit(X, y) for seed in (0, 0, 1)]
    assert models[0].path_.tobytes() == models[1].path_.tobytes() != models[2].path_.tobytes()
    shuffled = np.random.default_rng(1).permutation(len(y))
    other = Classifier(max_iter=20).fit(X[shuffled], y[shuffled])
    np.testing.assert_allclose(other.coef_, models[0].coef_, rtol=1e-8)


def test_pictures():
    Figure = pytest.importorskip("matplotlib.figure").Figure
    X, y, _, _ = halves(CANCER)
    model = Classifier(max_iter=30, output="best").fit(X, y)
    display = PathDisplay.from_estimator(model, axes=Figure().subplots(3))
    above, middle, below = display.axes_
    assert display.figure_ is above.figure
    assert above.get_xscale() == "log" and below.get_xlabel() == "iteration"
    for axes in (above, middle):
        assert sum(line.get_transform() is not axes.transAxes for line in axes.get_lines()) == 5
    least = np.minimum.accumulate(model.path_.training_loss)
    np.testing.assert_array_equal(above.get_lines()[0].get_ydata(), least)
    assert any("training" in text.get_text() for text in above.texts)


@pytest.mark.parametrize("kernel", [None, "rbf", "laplacian", "poly", "linear"])
def test_nothing_is_too_large_or_too_small(kernel):
    X, y, X_test, _ = halves(CANCER)
    even = Classifier(kernel=kernel, max_iter=10).fit(X, y)
    for weight in (1e-300, 1e300):
        model = Classifier(kernel=kernel, max_iter=10).fit(X, y, sample_weight=np.full(len(y), weight))
        np.testing.assert_allclose(model.decision_function(X_test), even.decision_function(X_test), rtol=1e-4)
    far = np.concatenate([X_test[:3] * 1e300, -X_test[:3] * 1e300, X_test[:3] * 1e-300])
    assert np.isfinite(even.decision_function(far)).all() and np.isfinite(even.predict_proba(far)).all()
    values = np.random.default_rng(0).choice([-1e300, -1.0, -1e-300, 0.0, 1e-300, 1.0, 1e300], X.shape)
    model = Classifier(kernel=kernel, max_iter=10).fit(values, y)
    assert np.isfinite(model.decision_function(values)).all() and np.isfinite(list(model.path_[-1])).all()
    model = Regressor(kernel=kernel, max_iter=10).fit(values, values[:, 0])
    assert np.isfinite(model.predict(values)).all() and np.isfinite(list(model.path_[-1])).all()
    sparsely = Classifier(kernel=kernel, max_iter=10).fit(sparse.csr_array(values), y)
    assert np.isfinite(sparsely.decision_function(values)).all()


FIT_AND_PRINT = """
import hashlib
import numpy as np
from tunefree import IterativeRegularizationClassifier, IterativeRegularizationRegressor
random = np.random.default_rng(0)
X = random.normal(size=(30_000, 20))
margins = X @ random.normal(size=20) + random.normal(size=30_000)
for settings in ({}, {"kernel": "rbf"}):
    n = 3000 if settings else 30_000
    for model, y in ((IterativeRegularizationClassifier, margins > 0), (IterativeRegularizationRegressor, margins)):
        model = model(max_iter=5, **settings).fit(X[:n], y[:n])
        print(hashlib.sha256(model.path_.tobytes() + model.predict(X[:n]).tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_no_bit_depends_on_the_number_of_threads():
    printed = [
        subprocess.run(
            [sys.executable, "-c", FIT_AND_PRINT],
            env=os.environ | {"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads},
            capture_output=True,
            check=True,
        ).stdout
        for threads in ("1", "2")
    ]
    assert printed[0] == printed[1] and len(printed[0].split()) == 4


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


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("case", MODELS)
def test_an_estimator_comes_back_the_same_to_the_bit(case, form, tmp_path):
    model, (X, y) = MODELS[case]
    rows = form(np.where(np.abs(X) > np.median(np.abs(X), axis=0), X, 0.0))
    estimator = model.set_params(max_iter=23).fit(rows, y)
    back = saved(estimator, tmp_path)
    assert type(back) is type(estimator) and back.get_params() == estimator.get_params()
    arrays, _ = storage.load(tmp_path / "m")
    assert any(name.startswith("model.support") for name in arrays) == (estimator.kernel is not None)
    assert back.path_.dtype == estimator.path_.dtype and back.path_.tobytes() == estimator.path_.tobytes()
    assert_same(estimator, back, rows)
    for t in (*range(1, len(estimator.path_) + 1, 5), len(estimator.path_)):
        assert_same(estimator.at(t), back.at(t), rows)

"""Gram products by PyTorch are NumPy's, whatever is kept; and estimators with a device are those without."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes, load_wine

from tunefree import IterativeRegularizationClassifier as Classifier
from tunefree import IterativeRegularizationRegressor as Regressor
from tunefree import load
from tunefree.core.errors import ModelError
from tunefree.papers.early_stopping.gram import Gram
from tunefree.papers.early_stopping.products import expand, gram_of
from tunefree.papers.kernel.gaussian import Gaussian
from tunefree.papers.kernel.laplacian import Laplacian
from tunefree.papers.kernel.polynomial import LINEAR, Polynomial

torch = pytest.importorskip("torch")
on_torch = pytest.importorskip("tunefree.papers.kernel.torch_backend")
gram_on_torch = pytest.importorskip("tunefree.papers.early_stopping.torch_gram")

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
KERNELS = {
    "linear": LINEAR,
    "rbf": Gaussian(0.3),
    "laplacian": Laplacian(0.2),
    "poly": Polynomial(3, 0.1, 1.0),
}
WINE, DIABETES = load_wine(return_X_y=True), load_diabetes(return_X_y=True)
ITERATIONS = 20
by_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


@pytest.fixture(autouse=True)
def one_thread():  # products of few rows are made ten times as fast by one as by threads that wait for each other
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


@pytest.fixture
def small_tiles(monkeypatch):
    monkeypatch.setattr(gram_on_torch, "BLOCK", 64)


def rows(n, seed=0, dtype=np.float64):
    X = np.random.default_rng(seed).normal(size=(n, 5))
    return (X * (np.abs(X) > 0.4)).astype(dtype)


def coefficients(n, n_outputs=2):
    return np.random.default_rng(2).normal(size=(n, n_outputs))


def assert_alike(found, expected, tolerance):
    """Within a part of the largest number."""
    assert found.shape == expected.shape and found.dtype == expected.dtype
    assert np.abs(expected).max() > 0.01
    assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()


@by_kernel
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-4), (np.float64, 1e-12)])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("budget", [0, 70_000, 10**9])
def test_products_are_numpys_whatever_is_kept(kernel, form, dtype, tolerance, budget, device, small_tiles):
    X, Z, c = form(rows(150, dtype=dtype)), form(rows(70, 1, dtype)), coefficients(150)
    expected, matrix = Gram(kernel, X, Z, 0), gram_of(kernel, X, Z, budget, device)
    for _ in range(2):
        assert_alike(matrix.times(c), expected.times(c), tolerance)
        assert_alike(matrix.times_held(c), expected.times_held(c), tolerance)
        assert_alike(matrix.times_others(Z[3:], c), expected.times_held(c)[3:], tolerance)
    kept = sum(values.nbytes for values in matrix._tiles.values())
    assert kept <= budget and (budget == 0 or kept > 0)
    assert not matrix.times(0.0 * c).any()
    matrix.release()
    assert not matrix._tiles and matrix._there is None


@by_kernel
def test_the_same_bytes_whatever_is_kept_and_after_release(kernel, device, small_tiles):
    X, Z, c = rows(150, dtype=np.float32), rows(70, 1, np.float32), coefficients(150, 1)
    matrix, nothing = (gram_of(kernel, X, Z, budget, device) for budget in (10**9, 0))
    before = matrix.times(c).tobytes(), matrix.times_held(c).tobytes()
    assert before == (nothing.times(c).tobytes(), nothing.times_held(c).tobytes())
    matrix.release()
    assert before == (matrix.times(c).tobytes(), matrix.times_held(c).tobytes())
    again = pickle.loads(pickle.dumps(matrix))
    assert not again._tiles and again._there is None
    assert before == (again.times(c).tobytes(), again.times_held(c).tobytes())


@by_kernel
def test_large_numbers_stay_numbers(kernel, device):
    X = np.array([[1e15, -1e15], [1e15, 1e15], [0.0, 1e-30]], np.float32)
    c = np.ones((3, 1))
    kernel = kernel._replace(degree=4) if kernel is KERNELS["poly"] else kernel
    matrix = gram_of(kernel, X, X, 0, device)
    assert np.isfinite(matrix.times(c)).all() and np.isfinite(matrix.times_held(c)).all()


def test_the_device_has_less_memory_than_is_asked_for(device, small_tiles, monkeypatch):
    X, Z, c = rows(150, dtype=np.float32), rows(70, 1, np.float32), coefficients(150)
    needed = (220 * 6 + 2 * 64 * 64) * 4
    for more, n_tiles in ((0, 0), (2 * 64 * 64 * 4 / 0.9 + 1, 2)):
        monkeypatch.setattr(gram_on_torch, "free_memory", lambda device, more=more: needed + more)
        matrix = gram_of(KERNELS["rbf"], X, Z, 10**9, device)
        assert_alike(matrix.times(c), Gram(KERNELS["rbf"], X, Z, 0).times(c), 1e-4)
        assert len(matrix._tiles) == n_tiles
    monkeypatch.setattr(gram_on_torch, "free_memory", lambda device: needed - 1)
    with pytest.raises(ModelError, match="220 rows of 5 features.*leave the device out"):
        gram_of(KERNELS["rbf"], X, Z, 10**9, device).times(c)


def test_wide_sparse_rows_say_what_to_do(device):
    X = sparse.csr_array((np.ones(2), [0, on_torch.WIDEST], [0, 1, 2]), shape=(2, on_torch.WIDEST + 1))
    with pytest.raises(ModelError, match="leave the device out"):
        gram_of(KERNELS["rbf"], X, X, 0, device)


def test_expansions(device, small_tiles):
    support, new, c = rows(150), rows(130, 1), coefficients(150)
    c[:70] = 0.0
    assert_alike(expand(KERNELS["rbf"], support, c, new, device), expand(KERNELS["rbf"], support, c, new), 1e-12)
    assert expand(KERNELS["rbf"], support, c, new[:0], device).shape == (0, 2)


MODELS = {
    "a ladder of widths": (Classifier(kernel="rbf"), WINE),
    "a hinge, whose margins are calibrated": (Classifier(kernel="laplacian", loss="hinge", output="average"), WINE),
    "numbers": (Regressor(kernel="poly", output="best"), DIABETES),
    "single rows": (Regressor(kernel="rbf", stochastic="shuffled", output="average"), DIABETES),
    "a line": (Classifier(kernel="linear"), WINE),
}


@pytest.mark.parametrize("scattered", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("memory", [2**31, 1], ids=["all kept", "one kept"])
@pytest.mark.parametrize("case", MODELS)
def test_estimators_learn_what_the_processor_learns(case, memory, scattered, device, tmp_path):
    model, (X, y) = MODELS[case]
    X = sparse.csr_array(np.where(np.abs(X) > np.median(np.abs(X), axis=0), X, 0.0)) if scattered else X
    settings = {"precision": "double", "max_iter": ITERATIONS, "gram_bytes": memory}
    expected = model.set_params(**settings, device=None).fit(X, y)
    expected, path = expected.at(ITERATIONS), expected.path_
    fitted = [model.set_params(device=device).fit(X, y).at(ITERATIONS) for _ in range(2)]
    assert fitted[0].coefficients_.tobytes() == fitted[1].coefficients_.tobytes()
    found = fitted[0]
    assert found.gamma_ == expected.gamma_
    np.testing.assert_allclose(found.path_.tolist(), path.tolist(), rtol=1e-8, atol=1e-8)
    if not model.stochastic:
        np.testing.assert_allclose(found.certificate(), expected.certificate(), rtol=1e-8, atol=1e-8)
    outputs = [e.predict(X) if isinstance(e, Regressor) else e.decision_function(X) for e in (found, expected)]
    assert_alike(*outputs, 1e-8)
    found.save(tmp_path / "estimator")
    back = load(tmp_path / "estimator")
    assert back.get_params() == found.get_params() and back.device == device
    assert back.at(7).coefficients_.tobytes() == found.at(7).coefficients_.tobytes()
    assert back.predict(X).tobytes() == found.predict(X).tobytes()


def test_estimators_learn_in_single_precision(device):
    X, y = WINE
    found, expected = (Classifier(kernel="rbf", max_iter=ITERATIONS, device=d).fit(X, y) for d in (device, None))
    assert found.gamma_ == expected.gamma_
    assert_alike(found.decision_function(X), expected.decision_function(X), 1e-4)


def test_a_fit_goes_on(device):
    X, y = WINE
    whole = Classifier(kernel="rbf", max_iter=ITERATIONS, device=device).fit(X, y)
    parts = Classifier(kernel="rbf", max_iter=7, device=device, warm_start=True).fit(X, y)
    assert parts.set_params(max_iter=ITERATIONS).fit(X, y).path_.tobytes() == whole.path_.tobytes()


@pytest.mark.parametrize("memory", [2**31, 1], ids=["all kept", "one kept"])
def test_an_estimator_is_used_where_its_device_is_not(memory, tmp_path, monkeypatch):
    X, y = WINE
    found = Classifier(kernel="rbf", max_iter=ITERATIONS, device="cpu", gram_bytes=memory).fit(X, y)
    found.save(tmp_path / "estimator")
    expected = found.at(7).decision_function(X)
    monkeypatch.setattr("tunefree.papers.kernel.backends.find_spec", lambda name: None)
    back = load(tmp_path / "estimator")
    assert back.device is None
    assert_alike(back.at(7).decision_function(X), expected, 1e-4)


@pytest.mark.parametrize("name", ["abacus", "cuda:99"])
def test_no_such_device(name):
    with pytest.raises(ValueError, match="leave the device out"):
        Classifier(kernel="rbf", device=name).fit(*WINE)

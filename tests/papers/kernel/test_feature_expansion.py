"""Functions that go on in random Fourier features: no jump, no growth, the same algorithm."""

from __future__ import annotations

import pickle
from unittest.mock import patch

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from typer.testing import CliRunner

from tunefree import KernelPiSTOLClassifier, KernelPiSTOLRegressor, TuneFreeClassifier
from tunefree.cli.app import app
from tunefree.core import machine, rows, storage
from tunefree.core.errors import ModelError
from tunefree.core.rows import part
from tunefree.estimators import resources
from tunefree.model.group import LabelledRows
from tunefree.model.model import Model
from tunefree.model.targets import Labels
from tunefree.papers.kernel import fourier
from tunefree.papers.kernel.feature_expansion import FeatureExpansion, affordable
from tunefree.papers.kernel.fourier import Fourier
from tunefree.papers.kernel.gaussian import Gaussian
from tunefree.papers.kernel.kernel_bank import KernelConfig
from tunefree.papers.kernel.laplacian import Laplacian
from tunefree.papers.kernel.points import BLOCK
from tunefree.papers.kernel.projection import place


def test_features_beyond_the_limit_share_directions_with_any_sign():
    limit, n = 16, 4000
    at, signs = np.array([place(j, limit, limit) for j in range(limit, limit + n)]).T
    assert set(signs) == {-1.0, 1.0}
    counts = np.bincount(at.astype(int) + limit * (signs > 0))  # of each direction and sign
    assert len(counts) == 2 * limit and np.abs(counts - n / 32).max() < 5.0 * np.sqrt(n / 32)
    assert [place(j, limit, 4) for j in (3, 4)] == [(3, 1.0), (0, 0.0)]


LAPLACIAN = pytest.mark.parametrize("kernel", ["rbf", "laplacian"])


def noisy(n, seed=0, n_classes=2):
    """Classes that overlap, so that the support grows with the rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.floor((np.sin(2.0 * X[:, 0]) * X[:, 1] + rng.normal(size=n) + 3.0) / 6.0 * n_classes)
    return X, np.clip(y, 0, n_classes - 1).astype(int)


def learned(X, y, max_support, kernel="rbf", cuts=(), make=rows.dense, learner="kernel-pistol", **settings):
    classes, choice = sorted(set(y.tolist())), KernelConfig(kernel, max_support=max_support)
    view = "raw" if kernel == "precomputed" else "steady"
    model = Model(
        "classification", learner, view=view, n_features=4, average=True, classes=classes, config=choice,
        settings=settings,
    )  # fmt: skip
    labels, block, edges = Labels.of(y.tolist()), make(X), [0, *cuts, len(X)]
    for start, stop in zip(edges[:-1], edges[1:], strict=True):
        some = labels._replace(codes=labels.codes[start:stop])
        model.learn(part(block, start, stop), some, np.ones(stop - start))
    return model


def bytes_of(model, path):
    storage.save(path, *model.save_state())
    return path.read_bytes()


def restored(model, path):
    storage.save(path, *model.save_state())
    arrays, header = storage.load(path)
    header.pop("format")
    return Model.restore(arrays, header)


def test_features_by_cauchys_law_have_products_near_the_laplacian_kernel():
    X = np.random.default_rng(0).normal(size=(60, 4))
    angles = fourier.angles(Fourier.create(5, 8192, spectral_distribution="cauchy"), rows.dense(X))
    shown = np.empty((60, 2 * 8192))
    fourier.turn(angles, Laplacian(0.3).frequency_scale(), 1.0 / np.sqrt(8192), shown)
    error = shown @ shown.T - np.exp(-0.3 * cdist(X, X, "cityblock"))
    assert np.sqrt(np.mean(error[np.triu_indices(60, 1)] ** 2)) < 1.2 / np.sqrt(8192)


@pytest.mark.slow
@LAPLACIAN
def test_predictions_change_by_the_error_of_the_approximation_alone(kernel):
    """|f - f'|^2 is at most ||f||^2 / h in the mean over directions, and falls like 1 / h."""
    X, y = noisy(2560)
    bank = learned(X, y, None, kernel).banks[0]
    exact = bank.expansion
    assert exact.filled == 0
    assert exact.n > 1500
    new = rows.dense(noisy(300, seed=1)[0])
    before, coefficients = bank.margins(new), bank._coefficients()[0][:, 0]
    points, distance = exact.store.values[: exact.n], "sqeuclidean" if kernel == "rbf" else "cityblock"
    gammas = [bank.gamma * function.setting.settings["width"] for function in bank.members]
    K = [np.exp(-gamma * cdist(points, points, distance)) for gamma in gammas]
    norms = np.array([np.sqrt(c @ values @ c) for c, values in zip(coefficients, K, strict=True)])
    changes = {}
    for n_features in (1024, 16384):
        bank.expansion, bank._read = FeatureExpansion.of(exact, n_features), None
        changes[n_features] = np.sqrt(np.mean((bank.margins(new) - before) ** 2, axis=(1, 2)))
        expected = norms / np.sqrt(n_features / 2)
        assert (changes[n_features] < 2.0 * expected).all()  # one draw of directions
        assert np.mean(changes[n_features] / expected) < 1.0
        assert np.mean(changes[n_features] / expected) > 0.2
    assert 2.0 < np.mean(changes[1024] / changes[16384]) < 8.0  # 4 expected


@pytest.mark.parametrize("kernel", ["rbf", pytest.param("laplacian", marks=pytest.mark.slow)])
def test_memory_stays_as_it_is_after_the_switch_and_rows_are_told(kernel, tmp_path):
    X, y = noisy(6016)
    model = learned(X[:2944], y[:2944], 1024, kernel)  # whole blocks
    bank, switched = model.banks[0], model.banks[0].switched
    assert 1024 < switched <= 2944
    assert switched % BLOCK == 0
    kept = {name: array.shape for name, array in bank.expansion.save_state().items()}
    model.learn(rows.dense(X[2944:]), Labels.of(y[2944:].tolist()), np.ones(3072))
    assert bank.switched == switched
    assert {name: array.shape for name, array in bank.expansion.save_state().items()} == kept
    assert bank.expansion.coefficients.shape[2] == affordable(1024)
    assert bank.n_support < BLOCK


def test_nothing_changes_before_there_are_too_many_points(tmp_path):
    X, y = noisy(2000)
    exact, bounded = learned(X, y, None), learned(X, y, 2000)
    assert bounded.banks[0].switched is None
    new = rows.dense(noisy(200, seed=1)[0])
    np.testing.assert_array_equal(exact.predict(new), bounded.predict(new))


@pytest.mark.slow
def test_functions_in_features_learn_about_as_well_as_those_in_points():
    X, y = noisy(6000)
    Z, z = noisy(2000, seed=1)
    errors = []
    for max_support in (None, 1024):
        model = learned(X, y, max_support)
        errors.append(model.errors(Labels.of(z.tolist()), model.predict(rows.dense(Z))).mean())
    assert abs(errors[0] - errors[1]) < 0.03
    assert errors[1] < 0.4


def test_functions_that_share_a_width_switch_as_each_alone():
    X, y = noisy(2600)
    Z = rows.dense(noisy(50, seed=1)[0])
    settings = {"learner": "kernel-regularized-sgd"}
    several = [1.0, 0.5]  # widths, each with four penalties
    together = learned(X, y, 1024, **settings).banks[0]
    assert together.switched is not None
    margins = together.margins(Z)
    for width in several:
        for m, function in enumerate(together.members):
            if function.setting.settings["width"] == width:
                alone = learned(X, y, 1024, width=width, penalty=function.setting.settings["penalty"], **settings)
                rounding = 1e-5 * np.abs(margins[m]).max()  # features are in single precision
                np.testing.assert_allclose(alone.banks[0].margins(Z)[0], margins[m], rtol=0, atol=rounding)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_models_do_not_depend_on_where_batches_are_cut(n_classes, tmp_path):
    X, y = noisy(2600, n_classes=n_classes)
    one = bytes_of(learned(X, y, 1024, width=1.0), tmp_path / "one")
    other = bytes_of(learned(X, y, 1024, cuts=(5, 1024, 1300, 1301, 2100), width=1.0), tmp_path / "other")
    assert one == other


@LAPLACIAN
@pytest.mark.parametrize("at", [1100, 2500])
def test_models_are_restored_in_both_phases(kernel, at, tmp_path):
    X, y = noisy(2800)
    model = learned(X[:at], y[:at], 1100, kernel, width=2.0)
    other = restored(model, tmp_path / "model")
    assert other.banks[0].switched == model.banks[0].switched
    assert (model.banks[0].switched is None) == (at == 1100)
    for each in (model, other):
        each.learn(rows.dense(X[at:]), Labels.of(y[at:].tolist()), np.ones(len(X) - at))
    assert model.banks[0].switched is not None
    assert bytes_of(model, tmp_path / "one") == bytes_of(other, tmp_path / "other")


def test_sparse_rows_switch_too_and_meet_new_features():
    X, y = noisy(2600)
    pointers, features = np.arange(0, 3 * 2601, 3), np.tile([1, 2, 3], 2600)
    features[3 * 2500 :] += 5
    block = rows.sparse(pointers, features, X.ravel())
    model = Model(
        "classification", "kernel-pistol", n_features=9, config=KernelConfig(max_support=1024), classes=[0, 1]
    )
    model.learn(block, Labels.of(y.tolist()), np.ones(2600))
    assert model.banks[0].switched is not None
    assert np.isfinite(model.predict(block)).all()


def test_a_new_class_and_fewer_members_after_the_switch():
    X, y = noisy(2600)
    model = learned(X, y, 1024)
    bank, shown = model.banks[0], rows.dense(X[:50])
    before = bank.margins(shown)
    bank.keep([0, 1, 2])
    np.testing.assert_allclose(bank.margins(shown), before[:3], atol=1e-9)
    bank.add_class(model.options.objective(3), 3, 3)
    np.testing.assert_allclose(bank.margins(shown)[:, :, 1], before[:3, :, 0], atol=1e-9)
    of_class = LabelledRows(rows.dense(X[:200]), np.full(200, 2.0), np.ones(200), np.ones(200))
    bank.learn(of_class, np.empty((3, 200, 3)))
    assert np.isfinite(bank.predict(shown)).all()


@pytest.mark.parametrize("kernel", ["poly", "linear", "precomputed"])
def test_kernels_without_features_are_refused(kernel):
    with pytest.raises(ModelError, match="choose the kernel rbf or laplacian"):
        learned(*noisy(10), 1024, kernel)


def test_a_bound_that_is_none_is_refused():
    with pytest.raises(ModelError, match="max_support must be"):
        learned(*noisy(10), 0)


def test_speeds_are_those_of_the_kernels():
    assert Gaussian(0.5).frequency_scale() == 1.0
    assert Laplacian(0.5).frequency_scale() == 0.5


def test_estimators_warn_once_and_survive_pickling():
    X, y = noisy(2600)
    model = KernelPiSTOLClassifier(max_support=1024, passes=1)
    with pytest.warns(UserWarning, match="go on in random Fourier features") as told:
        model.fit(X, y)
    assert len(told) == 1
    assert model.n_support_ < BLOCK
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X[:50]), model.predict_proba(X[:50]))
    with pytest.raises(ValueError, match="`max_support` must be at least 1"):
        KernelPiSTOLClassifier(max_support=0).fit(X, y)
    with pytest.raises(ValueError, match="choose the kernel rbf or laplacian"):
        KernelPiSTOLClassifier(kernel="poly", max_support=1024).fit(X, y)


def test_a_fit_that_cannot_be_held_in_memory_is_refused_with_the_remedies():
    X, y = noisy(300)
    with patch.object(machine, "memory", lambda: 2**14):
        for refused in (KernelPiSTOLClassifier(), KernelPiSTOLRegressor()):
            with pytest.raises(ValueError, match="max_support.*without kernels"):
                refused.fit(X, y)
        TuneFreeClassifier().fit(X, y)
        KernelPiSTOLClassifier(max_support=10, passes=1).fit(X, y)


def test_bytes_needed_are_about_those_taken():
    X, y = noisy(3000)
    bank = learned(X, y, None).banks[0]
    expansion = bank.expansion
    taken = expansion.coefficients.nbytes + expansion.lags.nbytes + expansion.store.values.nbytes
    bound = resources.needed(rows.dense(X), expansion.n, len(bank.members), 1)
    assert 0.4 * bound < taken <= bound


def test_training_tells_of_the_switch(tmp_path):
    X, y = noisy(2600)
    path, model = tmp_path / "rows.csv", str(tmp_path / "model")
    lines = [",".join([*map(repr, x), f"c{k}"]) for x, k in zip(X.tolist(), y, strict=True)]
    path.write_text("\n".join(["a,b,c,goal", *lines]))
    arguments = ["train", str(path), "-t", "goal", "-o", model, "--learner", "kernel-pistol:max_support=1024"]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0
    assert shown.stderr.count("random Fourier features") == 1

"""Features of a kernel: what their products are, that they are the same for all kinds of rows, and models on them."""

from __future__ import annotations

import json
import math
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.spatial.distance import cdist
from sklearn.datasets import make_moons
from threadpoolctl import threadpool_limits
from typer.testing import CliRunner

from tests.model.interrupted import check_that_training_goes_on_to_the_same_bytes
from tests.strategies import KINDS
from tunefree import OnlineClassifier, losses
from tunefree.cli.app import app
from tunefree.core import rows, storage
from tunefree.core.errors import ModelError
from tunefree.core.rows import part, together
from tunefree.kernel import fourier, nystroem, projection
from tunefree.kernel.fourier import LENGTH, Fourier
from tunefree.kernel.nystroem import Nystroem
from tunefree.losses import objectives
from tunefree.model.feature_bank import BANKS, VIEWS
from tunefree.model.group import LabelledRows
from tunefree.model.members import Setting
from tunefree.model.model import Model
from tunefree.model.targets import Labels
from tunefree.model.warmup import WARMUP_ROWS
from tunefree.workflows.training import Plan

quick = settings(max_examples=40, deadline=None)
by_view = pytest.mark.parametrize("view", ["fourier+1", "nystroem+1"])


@st.composite
def points(draw, exponents=3):
    """Rows of a few features, some zeros, each column of a scale of its own."""
    n, d = draw(st.integers(1, 30)), draw(st.integers(1, 11))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < draw(st.sampled_from([0.3, 1.0])))
    return np.ldexp(X, rng.integers(-exponents, exponents + 1, d))


def gaussian(X, Z, gamma):
    return np.exp(-gamma * cdist(X, Z, "sqeuclidean"))


def hashed(X, limit):
    """Columns 1, 2, ... of X as they share the rows of directions."""
    Z = np.zeros((len(X), limit))
    for j in range(1, X.shape[1] + 1):
        at, sign = projection.place(j, limit, limit)
        Z[:, at] += sign * X[:, j - 1]
    return Z


@quick
@given(X=points(), limit=st.sampled_from([3, 8, 100]))
def test_products_with_directions_are_a_matrix_product_of_hashed_columns(X, limit):
    directions = np.random.default_rng(1).normal(size=(2, limit, projection.TILE))
    flat = directions.transpose(1, 0, 2).reshape(limit, -1)
    expected = hashed(X, limit) @ flat
    np.testing.assert_allclose(projection.products_with(rows.dense(X), directions, limit), expected, atol=1e-9)


@quick
@given(X=points(), data=st.data())
def test_products_are_the_same_for_all_kinds_of_rows_and_wherever_they_are_cut(X, data):
    directions = np.random.default_rng(1).normal(size=(1, 8, projection.TILE))
    cut = data.draw(st.integers(0, len(X)))
    whole = projection.products_with(rows.dense(X), directions, 8)
    for make in KINDS.values():
        block = make(X)
        pieces = [part(block, 0, cut), part(block, cut, len(X))]
        shown = [projection.products_with(piece, directions, 8) for piece in pieces]
        np.testing.assert_array_equal(whole, np.concatenate(shown))


def test_one_hot_codes_are_projected_like_ones():
    X = np.eye(5)[[0, 3, 4, 3]]
    codes = np.array([[1, 0], [0, 4], [5, 0], [4, 0]])
    block = rows.table(np.zeros((4, 0)), [], codes)
    directions = Fourier.create(6, 64).directions
    np.testing.assert_array_equal(
        projection.products_with(rows.dense(X), directions, 100), projection.products_with(block, directions, 100)
    )


def test_signs_and_places_of_hashed_features_are_even():
    places = np.array([projection.place(j, 64, 64) for j in range(64, 64 + 64 * 400)])
    assert abs(places[:, 1].mean()) < 0.03
    counts = np.bincount(places[:, 0].astype(int), minlength=64)
    assert counts.min() > 330
    assert counts.max() < 470
    assert abs(places[places[:, 0] == 5, 1].mean()) < 0.2


def test_hashing_keeps_distances_on_average():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2, 2000))
    errors = [
        np.sum(np.diff(hashed(X, limit), axis=0) ** 2) / np.sum(np.diff(X, axis=0) ** 2) - 1 for limit in (64, 512)
    ]
    assert abs(errors[0]) < 0.5
    assert abs(errors[1]) < 0.15


def test_directions_are_standard_normal_and_do_not_depend_on_one_another():
    numbers = np.array([fourier.normal(3, j, 1001) for j in range(200)])
    assert abs(numbers.mean()) < 0.01
    assert abs(numbers.std() - 1.0) < 0.01
    assert abs((numbers**4).mean() - 3.0) < 0.1
    assert abs(np.corrcoef(numbers)[np.triu_indices(200, 1)]).max() < 0.2
    np.testing.assert_array_equal(fourier.normal(3, 7, 1001)[:100], fourier.normal(3, 7, 100))
    assert (fourier.normal(4, 7, 100) != fourier.normal(3, 7, 100)).all()


def test_more_features_change_none_before():
    few, many = Fourier.create(5, 128), Fourier.create(300, 128)
    np.testing.assert_array_equal(few.directions, many.directions[:, :5])
    np.testing.assert_array_equal(
        fourier.extended(few, 200).directions[:, :200],
        fourier.extended(fourier.extended(few, 7), 200).directions[:, :200],
    )


def test_memory_has_a_limit_whatever_the_number_of_features():
    many = fourier.extended(Fourier.create(2, 8192), 10**7)
    assert many.directions.size <= fourier.MOST_NUMBERS
    block = rows.sparse([0, 2, 3], [9_999_999, 5, 77_777], [1.0, -1.0, 2.0])
    shown = fourier.features(fourier.angles(many, block), 0.1).values / LENGTH
    np.testing.assert_allclose(shown @ shown.T, gaussian(*([[[1, -1, 0], [0, 0, 2]]] * 2), 0.1), atol=0.04)


@quick
@given(angles=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_cosine_and_sine_are_those_of_the_library(angles):
    written = np.empty((1, 2 * len(angles)))
    fourier.turn(np.array([angles]), 1.0, 1.0, written)
    np.testing.assert_allclose(written[0], [*np.cos(angles), *np.sin(angles)], atol=1e-9)
    near = np.clip(angles, -100.0, 100.0)
    fourier.turn(near[None], 1.0, 1.0, written)
    np.testing.assert_allclose(written[0], [*np.cos(near), *np.sin(near)], atol=4e-16)


@quick
@given(X=points())
def test_fourier_features_are_cosines_and_sines_of_products(X):
    made = Fourier.create(X.shape[1] + 1, 64)
    shown = fourier.features(fourier.angles(made, rows.dense(X)), 0.3).values
    angles = X @ (math.sqrt(0.6) * made.directions[0, 1 : X.shape[1] + 1])
    np.testing.assert_allclose(shown, LENGTH / 8.0 * np.c_[np.cos(angles), np.sin(angles)], atol=1e-9)


def test_products_of_fourier_features_near_the_kernel_like_one_over_the_root_of_their_number():
    X = np.random.default_rng(0).normal(size=(60, 6))
    true, errors = gaussian(X, X, 0.1), {}
    for h in (64, 1024):
        means = []
        for seed in range(5):
            shown = fourier.features(fourier.angles(Fourier.create(7, h, seed), rows.dense(X)), 0.1).values / LENGTH
            means.append(np.mean((shown @ shown.T - true)[np.triu_indices(60, 1)] ** 2))
        errors[h] = math.sqrt(np.mean(means))
    assert errors[1024] < 1.0 / 32.0
    assert 3.0 < errors[64] / errors[1024] < 5.3  # 4 expected


def test_products_of_nystroem_features_are_those_of_the_projections():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    made = Nystroem.create(rows.dense(X), 5, 0.2, n_landmarks=64)
    L = made.landmarks[0, 1:].T
    K = gaussian(L, L, 0.2)
    shown = nystroem.features(made, rows.dense(X)).values / LENGTH
    k = gaussian(X, L, 0.2)
    np.testing.assert_allclose(shown @ shown.T, k @ np.linalg.solve(K, k.T), atol=1e-6)
    assert np.abs(shown @ shown.T - gaussian(X, X, 0.2)).max() < 0.15
    variances = (shown**2).sum(axis=0)
    assert variances[0] > 5 * variances[-1]  # principal axes, large ones first


def test_landmarks_are_rows_that_others_do_not_represent():
    X = np.repeat(np.random.default_rng(0).normal(size=(20, 3)), 5, axis=0)
    made = Nystroem.create(rows.dense(X), 4, 0.5, n_landmarks=64)
    assert np.isfinite(made.squares).sum() == 20
    shown = nystroem.features(made, rows.dense(X)).values / LENGTH
    np.testing.assert_allclose(shown @ shown.T, gaussian(X, X, 0.5), atol=1e-6)
    usable = np.arange(0, 50)
    few = Nystroem.create(rows.dense(X), 4, 0.5, usable, n_landmarks=64)
    assert np.isfinite(few.squares).sum() == 10


def test_landmarks_are_the_same_bytes_whatever_the_threads():
    X = np.random.default_rng(0).normal(size=(600, 5))
    made = []
    for threads in (1, 2, 4):
        with threadpool_limits(threads):
            made.append(Nystroem.create(rows.dense(X), 6, 0.3, n_landmarks=512))
    for one, two, four in zip(*made, strict=True):
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(one, four)


def test_nothing_to_take_landmarks_from():
    made = Nystroem.create(rows.dense(np.zeros((0, 3))), 4, 1.0, n_landmarks=64)
    np.testing.assert_array_equal(nystroem.features(made, rows.dense(np.ones((2, 3)))).values, np.zeros((2, 64)))


@quick
@given(seed=st.integers(0, 2**32), span=st.sampled_from([10, 300]))
def test_finite_on_any_finite_input(seed, span):
    rng = np.random.default_rng(seed)
    X = rng.choice([-1.0, 0.0, 1.0], (20, 3)) * 10.0 ** rng.uniform(-span, span, (20, 3))
    X[rng.integers(20)] = rng.choice([-1.0, 1.0], 3) * 1.7e308
    block = rows.dense(X)
    for gamma in (1e-100, 1.0, 1e100):
        assert np.isfinite(fourier.features(fourier.angles(Fourier.create(4, 64), block), gamma).values).all()
        made = Nystroem.create(block, 4, gamma, n_landmarks=64)
        assert np.isfinite(nystroem.features(made, block).values).all()


@quick
@given(X=points(), data=st.data())
def test_joined_blocks_are_what_part_would_cut_into_them(X, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(X)), max_size=3)))
    edges = [0, *cuts, len(X)]
    for make in KINDS.values():
        block = make(X)
        pieces = [part(block, start, stop) for start, stop in zip(edges[:-1], edges[1:], strict=True)]
        for whole, again in zip(block, together(pieces), strict=True):
            np.testing.assert_array_equal(whole, again)
            assert np.asarray(whole).dtype == np.asarray(again).dtype


def rings(n, seed=0):
    """Two classes that no linear model tells apart: inside and outside of a circle, in features of odd scales."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X * [1e-3, 1e3] + [5.0, -7e3], np.where((X**2).sum(axis=1) > 1.4, "out", "in")


def learned(view, X, y, cuts=(), make=rows.dense, weight=None, learner="scinol2"):
    model = Model("classification", learner, view=view, n_features=X.shape[1] + 1)
    labels, block, edges = Labels.of(y), make(X), [0, *cuts, len(X)]
    weight = np.ones(len(X)) if weight is None else weight
    for start, stop in zip(edges[:-1], edges[1:], strict=True):
        some = Labels(codes=labels.codes[start:stop], values=labels.values)
        model.learn(part(block, start, stop), some, weight[start:stop])
    return model


def restored(model, path):
    storage.save(path, *model.save_state())
    arrays, header = storage.load(path)
    header.pop("format")
    return Model.restore(arrays, header)


@by_view
def test_models_learn_what_no_linear_one_does(view):
    X, y = rings(4000)
    model = learned(view, X[:3000], y[:3000])
    wrong = model.errors(Labels.of(y[3000:]), model.predict(rows.dense(X[3000:]))).mean()
    assert wrong < 0.06
    linear = learned("steady", X[:3000], y[:3000])
    assert linear.errors(Labels.of(y[3000:]), linear.predict(rows.dense(X[3000:]))).mean() > 0.3


@by_view
@pytest.mark.parametrize("cuts", [(1, 2, 700, 1023), (1024,), (300, 1500)])
def test_models_do_not_depend_on_where_batches_are_cut(view, cuts, tmp_path):
    X, y = rings(1600)
    weight = np.where(np.arange(1600) % 7 == 0, 0.0, 1.0)
    for name, at in (("whole", ()), ("cut", cuts)):
        storage.save(tmp_path / name, *learned(view, X, y, at, weight=weight).save_state())
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "cut").read_bytes()


@by_view
@pytest.mark.parametrize("at", [100, 1500])
def test_models_are_restored_to_the_last_bit(view, at, tmp_path):
    X, y = rings(2000)
    model = learned(view, X[:at], y[:at])
    other = restored(model, tmp_path / "model")
    np.testing.assert_array_equal(model.predict(rows.dense(X)), other.predict(rows.dense(X)))
    rest = rows.dense(X[at:]), Labels.of(y[at:]), np.ones(2000 - at)
    np.testing.assert_array_equal(model.learn(*rest)[0], other.learn(*rest)[0])
    storage.save(tmp_path / "one", *model.save_state())
    storage.save(tmp_path / "other", *other.save_state())
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


@by_view
def test_words_wait_and_are_restored_too(view, tmp_path):
    X, y = rings(1400)
    block = rows.sparse(np.arange(0, 2801, 2), np.tile([1, 2], 1400), np.exp(X / [1e-2, 1e4]).ravel())
    model = Model("classification", "scinol2", view=view, n_features=3)
    model.learn(part(block, 0, 500), Labels.of(y[:500]), np.ones(500))
    model = restored(model, tmp_path / "model")
    model.learn(part(block, 500, 1400), Labels.of(y[500:]), np.ones(900))
    assert np.isfinite(model.predict(block)).all()
    assert model.ensemble.is_sparse


@by_view
@pytest.mark.parametrize("exponent", [0, 900])
def test_features_may_come_at_any_row_and_of_any_size(view, exponent, tmp_path):
    """Words of which new ones appear all the time, known early or late: the same bytes, and nothing but numbers."""
    rng = np.random.default_rng(0)
    words = np.sort(np.array([rng.choice(np.arange(5, 12 + i), 4, replace=False) for i in range(1300)]))
    values = np.ldexp(rng.normal(size=words.shape), rng.integers(-exponent, exponent + 1, words.shape))
    y = Labels.of(np.where(words[:, 0] % 2 == 0, "even", "odd"))
    for name, cuts in (("whole", [1300]), ("pieces", [3, 1000, 1100, 1300])):
        model, start = Model("classification", "scinol2", view=view), 0
        for stop in cuts:
            block = rows.sparse(
                np.arange(0, 4 * (stop - start) + 1, 4), words[start:stop].ravel(), values[start:stop].ravel()
            )
            model.reserve_features(int(words[:stop].max()) + 1)
            model.learn(block, y._replace(codes=y.codes[start:stop]), np.ones(stop - start))
            start = stop
        assert np.isfinite(model.predict(block)).all()
        storage.save(tmp_path / name, *model.save_state())
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "pieces").read_bytes()


@by_view
def test_predictions_before_rows_suffice_are_of_those_there_are_and_change_nothing(view, tmp_path):
    X, y = rings(600)
    model = learned(view, X[:400], y[:400])
    storage.save(tmp_path / "before", *model.save_state())
    assert model.errors(Labels.of(y[400:]), model.predict(rows.dense(X[400:]))).mean() < 0.2
    np.testing.assert_array_equal(model.predict(rows.dense(X)), model.predictor()(rows.dense(X)))
    storage.save(tmp_path / "after", *model.save_state())
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    model.begin_pass([0])
    assert model.ensemble.banks[0].frozen


@by_view
def test_rows_of_weight_0_teach_nothing(view):
    X, y = rings(1500)
    spoilt, other, weight = X.copy(), y.copy(), np.ones(1500)
    spoilt[::5], weight[::5] = 1e6 * X[::5], 0.0
    other[5::5] = np.where(y[5::5] == "in", "out", "in")  # not the first: classes are in the order of their rows
    one, two = learned(view, spoilt, other, weight=weight), learned(view, X, y, weight=weight)
    np.testing.assert_array_equal(one.predict(rows.dense(X)), two.predict(rows.dense(X)))


@by_view
def test_rows_that_all_have_weight_0_settle_something(view):
    X, y = rings(2600)
    model = learned(view, X, y, weight=np.repeat([0.0, 1.0], 1300))
    assert np.isfinite(model.predict(rows.dense(X))).all()


@by_view
def test_a_bank_may_settle_on_rows_of_weight_0_alone(view):
    X, y = rings(100)
    for task, targets in (("classification", Labels.of(y)), ("regression", X[:, 0])):
        model = Model(task, "nag", view=view, n_features=3)
        model.learn(rows.dense(X), targets, np.zeros(100))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.freeze()
        assert np.isfinite(model.predict(rows.dense(X))).all()


@by_view
def test_nothing_learned_predicts_nothing(view):
    model = Model("classification", view=view, learner="nag", n_features=3, classes=["a", "b"])
    np.testing.assert_array_equal(model.predict(rows.dense(np.ones((3, 2)))), np.zeros((3, 1)))


@by_view
def test_classes_may_come_while_rows_wait_and_later(view):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 2))
    y = np.array(["a", "b", "c", "d"])[(X[:, 0] * X[:, 1] > 0) + 2 * (np.abs(X[:, 0]) > 1)]
    y[:20] = "a"
    y[:1800][y[:1800] == "d"] = "c"
    model = learned(view, X[:2000], y[:2000])
    assert model.classes[0] == "a"
    assert len(model.classes) == 4
    keep = y[2000:] != "d"
    assert model.errors(Labels.of(y[2000:]), model.predict(rows.dense(X[2000:])))[keep].mean() < 0.3


@by_view
def test_regression(view):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (4000, 2))
    y = 100.0 + 10.0 * np.sin(2.0 * X[:, 0]) * X[:, 1]
    model = Model("regression", "nag", view=view, n_features=3)
    model.learn(rows.dense(X[:3000]), y[:3000], np.ones(3000))
    assert model.errors(y[3000:], model.predict(rows.dense(X[3000:]))).mean() < 0.35 * np.abs(y - y.mean()).mean()


@by_view
def test_members_that_look_differently_learn_side_by_side(view, tmp_path):
    X, y = rings(2600)
    member_settings = [Setting("scinol2", {}, view), Setting("scinol2", {}, "steady"), Setting("nag", {}, "fourier-1")]
    model = Model("classification", n_features=3, member_settings=member_settings)
    model.learn(rows.dense(X), Labels.of(y), np.ones(2600))
    shares = {member.setting.view: share for member, share in zip(model.members, model.mixture.means, strict=True)}
    assert shares[view] > shares["steady"]
    assert model.mean_weights().shape == (3, 1)
    again = restored(model, tmp_path / "model")
    np.testing.assert_array_equal(model.predict(rows.dense(X)), again.predict(rows.dense(X)))


def test_rows_of_another_width_are_refused():
    X, y = rings(10)
    model = learned("fourier", X, y)
    with pytest.raises(ModelError, match="3 dense columns, where the model has learned 2"):
        model.learn(rows.dense(np.ones((2, 3))), Labels.of(y[:2]), np.ones(2))


def bank_of(view, n_outputs=1):
    return BANKS[VIEWS[view][0]](
        [Setting("nag", {}, view)], objectives.Binary(losses.Logistic(), 0.0), n_outputs, False
    )


def test_as_many_rows_wait_as_are_needed():
    bank = bank_of("fourier")
    X, weight = rows.dense(np.random.default_rng(0).normal(size=(2000, 2))), np.tile([0.0, 1.0], 1000)
    y, predictions = np.tile([1.0, 1.0, -1.0, -1.0], 500), np.zeros((1, 2000, 1))
    for start, stop in ((0, 100), (100, 1000), (1000, 2000)):
        here = slice(start, stop)
        bank.learn(LabelledRows(X, y, weight, weight).part(start, stop), predictions[:, here])
        assert bank.n_warmup == (stop if stop < 2000 else 0)
        assert bank.frozen == (stop == 2000)
    assert np.isnan(predictions[0, :WARMUP_ROWS]).all()
    assert np.isfinite(predictions[0, WARMUP_ROWS:]).all()


def test_rows_that_wait_are_the_banks_own():
    X = np.random.default_rng(0).normal(size=(20, 2))
    bank, kept = bank_of("fourier"), X.copy()
    bank.learn(LabelledRows(rows.dense(X), np.ones(20), np.ones(20), np.ones(20)), np.zeros((1, 20, 1)))
    X[:] = 7.0
    np.testing.assert_array_equal(bank.waiting[0].X.values, kept)


def test_a_kernel_learner_has_a_kernel_already():
    with pytest.raises(ModelError, match="has a kernel of its own"):
        Model("classification", "kernel-pistol", view="nystroem")


def test_newton_steps_are_refused_on_thousands_of_features():
    with pytest.raises(ModelError, match="newton cannot afford"):
        Model("classification", "newton", view="nystroem")


def written(tmp_path, n=1300):
    """A file of two classes, inside and outside of a circle."""
    X, y = rings(n)
    path = tmp_path / "rings.csv"
    path.write_text(
        "\n".join(["a,b,goal", *(f"{a!r},{b!r},{goal}" for (a, b), goal in zip(X.tolist(), y, strict=True))])
    )
    return path


@pytest.mark.parametrize("learner", ["adagrad", "kernel-pistol"])
def test_inspect_tells_that_features_as_given_have_no_weights(learner, tmp_path):
    view, model = "nystroem+1" if learner == "adagrad" else "raw", str(tmp_path / "model")
    arguments = ["train", str(written(tmp_path)), "-t", "goal", "-o", model, "--learner", learner, "--view", view, "-q"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    shown = CliRunner().invoke(app, ["inspect", model])
    assert shown.exit_code == 0
    assert "have no weights" in shown.output
    assert json.loads(CliRunner().invoke(app, ["inspect", model, "--json"]).output)["features"] == []
    assert CliRunner().invoke(app, ["certify", model]).exit_code == 0


@pytest.mark.slow
def test_interrupted_training_goes_on_to_the_same_bytes(tmp_path):
    plan = Plan(target="goal", learner="adagrad", view="nystroem+1")
    check_that_training_goes_on_to_the_same_bytes(written(tmp_path, 40000), plan, tmp_path)


@by_view
@pytest.mark.parametrize("make", [np.asarray, csr_matrix])
def test_estimators_learn_curves_and_survive_pickling(view, make):
    X, y = make_moons(1500, noise=0.15, random_state=0)
    X = make(X)
    model = OnlineClassifier("nag", view=view, epochs=2).fit(X[:600], y[:600])  # fewer than are waited for
    assert model.score(X[600:], y[600:]) > 0.95
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))
    assert OnlineClassifier("nag", view="steady", epochs=2).fit(X[:600], y[:600]).score(X[600:], y[600:]) < 0.9

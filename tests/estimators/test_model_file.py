"""Estimators that are saved and loaded: the same class with the same parameters, which goes on to the bit."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import tunefree
from tests.fuzz import models
from tunefree.core import storage
from tunefree.core.errors import DataWarning, ModelError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 3))
NOISE = 0.5 * RNG.normal(size=240)
NAMES = np.where(X[:, 0] + NOISE > 0, "yes", "no")
NUMBERS = X[:, 0] + NOISE
SEVERAL = np.digitize(X[:, 0], [-0.5, 0.5]).astype(np.int8)
ESTIMATORS = {
    "pool": (tunefree.TuneFreeClassifier(class_weight={"yes": 2.0, "no": 1.0}), NAMES),
    "pool of numbers": (tunefree.TuneFreeRegressor(loss="absolute"), NUMBERS),
    "scinol": (tunefree.ScInOLClassifier(passes=np.int64(3), class_weight={0: 1.0, 1: 2.0}), SEVERAL),
    "scinol of numbers": (tunefree.ScInOLRegressor(variant=1, passes=2), NUMBERS),
    "pistol": (tunefree.PiSTOLClassifier(passes=2, loss="hinge"), NAMES.astype(object)),
    "single": (tunefree.OnlineClassifier("newton", settings={"variance": 2.0}, view="steady"), X[:, 0] > 0),
    "single of numbers": (tunefree.OnlineRegressor("kernel-pistol", settings={"a": 4.0}, view="steady"), NUMBERS),
    "kernel": (tunefree.KernelPiSTOLClassifier(passes=1, gamma=0.5), NAMES),
    "path": (tunefree.IterativeRegularizationClassifier(max_iter=10, class_weight={"yes": 3.0}), NAMES),
    "path of numbers": (tunefree.IterativeRegularizationRegressor(max_iter=10, kernel="rbf"), NUMBERS),
}
LINEAR = ("pool", "pool of numbers", "scinol", "scinol of numbers", "pistol", "single")
FORMS = {
    "array": lambda rows: rows,
    "frame": lambda rows: pd.DataFrame(rows, columns=["a", "b", "c"]),
    "matrix": lambda rows: sparse.csr_array(np.where(np.abs(rows) > 0.3, rows, 0.0)),
    "table": lambda rows: {"a": rows[:, 0], "b": np.where(rows[:, 1] > 0, "cook", "clerk"), "c": rows[:, 2]},
    "gaps": lambda rows: np.where(np.abs(rows) > 0.1, rows, np.nan),
}


def outputs(estimator, rows):
    names = ("predict", "predict_proba", "decision_function")
    return [np.asarray(getattr(estimator, name)(rows)) for name in names if hasattr(estimator, name)]


FITTED = ("classes_", "n_features_in_", "feature_names_in_", "t_", "n_iter_", "progressive_loss_", "coefficients_")
FITTED += ("coef_", "intercept_", "dual_coef_", "gamma_", "eta_", "theta_")


def assert_same(one, other, rows):
    for left, right in zip(outputs(one, rows), outputs(other, rows), strict=True):
        assert left.dtype == right.dtype and left.tolist() == right.tolist()
    for name in FITTED:
        assert hasattr(one, name) == hasattr(other, name), name
        if hasattr(one, name):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name


def saved(estimator, folder, **options):
    with warnings.catch_warnings(action="error"):
        estimator.save(folder / "m", **options)
    return tunefree.load(folder / "m")


# Tables are read by code that all estimators share: quick is one of each family.
OF_ALL_FORMS = ("pool", "scinol", "path")


@pytest.mark.parametrize(
    ("name", "form"),
    [
        pytest.param(*pair, marks=[] if pair[0] in OF_ALL_FORMS or pair[1] == "array" else [pytest.mark.slow])
        for pair in product(ESTIMATORS, FORMS)
    ],
)
def test_a_loaded_model_equals_the_saved_one_and_goes_on(name, form, tmp_path):
    estimator, y = ESTIMATORS[name]
    estimator, rows, further = type(estimator)(**estimator.get_params()), FORMS[form](X[:200]), FORMS[form](X[200:])
    if form == "gaps" and not estimator.__sklearn_tags__().input_tags.allow_nan:
        pytest.skip("it takes no gaps")
    estimator.fit(rows, y[:200])
    back = saved(estimator, tmp_path)
    assert type(back) is type(estimator)
    for parameter, value in estimator.get_params().items():
        np.testing.assert_equal(back.get_params()[parameter], value.tolist() if hasattr(value, "tolist") else value)
    assert_same(estimator, back, rows)
    if hasattr(estimator, "explain") and name in LINEAR:
        assert estimator.explain(further).equals(back.explain(further))
    if not hasattr(estimator, "partial_fit") or estimator.get_params().get("shuffle") is None:
        return
    for one in (estimator, back):
        one.partial_fit(further, y[200:])
    assert_same(estimator, back, rows)
    assert_same(estimator, saved(back, tmp_path), further)


def test_a_model_only_for_prediction_lacks_other_methods(tmp_path):
    estimator = tunefree.TuneFreeClassifier().fit(X, NAMES)
    before = estimator.predict_proba(X)
    small = saved(estimator, tmp_path, only_for_prediction=True)
    size = (tmp_path / "m").stat().st_size
    np.testing.assert_allclose(small.predict_proba(X), before, atol=2e-3)
    assert hasattr(estimator, "certificate_") and not hasattr(small, "certificate_")
    with pytest.raises(ModelError, match="this model only predicts; go on from the model that it was made of"):
        small.partial_fit(X, NAMES)
    np.testing.assert_allclose(small.predict_proba(X), before, atol=2e-3)
    np.testing.assert_array_equal(estimator.partial_fit(X, NAMES).classes_, small.classes_)  # the whole one goes on
    whole = saved(tunefree.TuneFreeClassifier().fit(X, NAMES), tmp_path)
    assert size < 0.8 * (tmp_path / "m").stat().st_size
    np.testing.assert_array_equal(whole.predict_proba(X), before)
    np.testing.assert_array_equal(small.fit(X, NAMES).predict_proba(X), before)
    with pytest.raises(ModelError, match="the model of a single learner predicts as it is"):
        tunefree.ScInOLRegressor().fit(X, NUMBERS).save(tmp_path / "m", only_for_prediction=True)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda described: described.update({"class": "Nothing"}), "unknown estimator 'Nothing'"),
        (lambda described: described.update({"class": "ScInOLRegressor"}), "has a model of classification"),
        (lambda described: described["parameters"].update(nothing=1), "unexpected keyword argument 'nothing'"),
        (lambda described: described["parameters"].update(class_weight={"pairs": [[[], 1]]}), "unhashable"),
        (lambda described: described["fitted"].update(labels="float8"), "estimator.fitted.labels is 'float8'"),
        (lambda described: described["fitted"].update(rows="array"), "has columns that arrays do not have"),
        (lambda described: described["fitted"].update(rows="table"), "estimator.fitted.rows is 'table'"),
        (lambda described: described.pop("parameters"), "estimator.parameters is missing"),
    ],
)
def test_lies_about_an_estimator_are_refused(change, problem, tmp_path):
    tunefree.ScInOLClassifier(passes=1).fit(FORMS["table"](X), NAMES).save(tmp_path / "m")
    arrays, header = storage.load(tmp_path / "m")
    change(header["estimator"])
    models.write(tmp_path / "lie", arrays, header)
    with pytest.raises(ModelError, match=problem):
        tunefree.load(tmp_path / "lie")


def test_a_parameter_that_files_cannot_hold_has_its_default_in_the_estimator_that_is_loaded(tmp_path):
    model = tunefree.ScInOLClassifier(random_state=np.random.RandomState(1), passes=2).fit(X, NAMES)
    with pytest.warns(DataWarning, match="the file does not keep random_state of ScInOLClassifier"):
        model.save(tmp_path / "m")
    assert tunefree.load(tmp_path / "m").get_params() == tunefree.ScInOLClassifier(passes=2).get_params()


@pytest.mark.parametrize("size", [1e99, 1e308])
def test_models_of_huge_targets_are_saved(tmp_path, size):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(3000) % 1000 == 700, size, rng.normal(size=3000))
    pool = tunefree.train({"x": rng.normal(size=3000), "y": y}, target="y")  # a warning would be an error
    pool.save(tmp_path / "m")
    assert tunefree.load(tmp_path / "m").predict({"x": [0.5]}) == pool.predict({"x": [0.5]})


def test_trainings_become_the_estimators_of_their_plans(tmp_path):
    table = {"x": X[:, 0], "job": np.where(X[:, 1] > 0, "cook", "clerk"), "zip": SEVERAL % 2, "y": NAMES}
    options = {"target": "y", "categorical": "zip", "class_weight": {"yes": 2}, "shuffle": True, "random_state": 3}
    pool = tunefree.train(table, **options)
    assert type(pool) is tunefree.TuneFreeClassifier
    parameters = {"categorical": ["zip"], "class_weight": {"no": 1.0, "yes": 2.0}, "random_state": 3}
    assert pool.get_params() == tunefree.TuneFreeClassifier(**parameters).get_params()
    single = tunefree.train(table, learner="nag", settings={"eta": 0.5}, view="steady", passes=2, **options)
    assert type(single) is tunefree.OnlineClassifier and single.n_iter_ == 2
    assert (single.learner, single.settings, single.view, single.passes) == ("nag", {"eta": 0.5}, "steady", 2)
    number = tunefree.train({"x": X[:, 0], "y": NUMBERS}, target="y", loss="absolute")
    assert number.get_params() == tunefree.TuneFreeRegressor(loss="absolute").get_params()
    rows = {name: values for name, values in table.items() if name != "y"}
    for model in (pool, single):
        back = saved(model, tmp_path)
        assert_same(model, back, rows)
        for one in (model, back):
            one.partial_fit(rows | {"new": X[:, 2]}, np.where(X[:, 2] > 1, "perhaps", NAMES))
        assert model.feature_names_in_.tolist() == ["x", "job", "zip", "new"]
        assert_same(model, back, rows | {"new": X[:, 2]})
        assert_same(model, saved(model, tmp_path), rows)
        model.fit(rows, NAMES)
        assert model.feature_names_in_.tolist() == ["x", "job", "zip"] and model.score(rows, NAMES) > 0.6

"""Wide rows, rows in several forms, and rows of few values: what trees see of them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import log_loss
from sklearn.preprocessing import OneHotEncoder

import tunefree
from tunefree import TuneFreeClassifier, TuneFreeRegressor
from tunefree.generations.columns import is_bundle

LIGHTGBM_ONE_HOT = 0.0831  # of one_hot()
LIGHTGBM_INTERACTING = 0.2914  # of interacting()


def split(X, y, n):
    return X[:n], y[:n], X[n:], y[n:]


def one_hot(levels=1100, n=8000, of_all=12000):
    """A category of many levels and four numbers, as a pipeline of encoders writes them."""
    rng = np.random.default_rng(0)
    category, Z = rng.integers(0, levels, of_all), rng.normal(size=(of_all, 4))
    signal = rng.normal(size=levels)[category] * 0.5 + 3 * np.sign(Z[:, 0] * Z[:, 1]) + Z[:, 2] ** 2 - 1
    X = sparse.hstack([OneHotEncoder().fit_transform(category[:, None]), Z]).tocsr()
    return split(X, (signal + 0.5 * rng.logistic(size=of_all) > 0) * 1, n)


def interacting(n=4000, of_all=8000, further=1):
    """Two categories whose effects are multiplied, a number, and a category of ``further`` levels without effect."""
    rng = np.random.default_rng(0)
    a, b, z = rng.integers(0, 20, of_all), rng.integers(0, 20, of_all), rng.uniform(-3, 3, of_all)
    signal = 2 * rng.choice([-1, 1], 20)[a] * rng.choice([-1, 1], 20)[b] + 2 * np.sin(2 * z)
    noise = rng.logistic(size=of_all)
    X = sparse.hstack([OneHotEncoder().fit_transform(np.column_stack([a, b])), z[:, None]]).tocsr()
    if further > 1:
        X = sparse.hstack([X, np.eye(further)[rng.integers(0, further, of_all)]]).tocsr()
    return split(X, (signal + 0.5 * noise > 0) * 1, n)


@pytest.mark.parametrize(
    ("rows", "bar"), [(one_hot, 1.10 * LIGHTGBM_ONE_HOT), (interacting, 1.02 * LIGHTGBM_INTERACTING)]
)
def test_trees_see_wide_rows(rows, bar):
    X, y, X_new, y_new = rows()
    assert log_loss(y_new, TuneFreeClassifier(random_state=0).fit(X, y).predict_proba(X_new)) < bar


@pytest.fixture(scope="module")
def of_bundles():
    """A model of more one-hot columns than trees see, and rows to come."""
    X, y, X_new, y_new = interacting(n=1000, of_all=1100, further=1100)
    return TuneFreeClassifier().fit(X, y), X_new, y_new


def test_it_is_saved_with_its_bundles_and_goes_on(of_bundles, tmp_path):
    model, X, y = of_bundles
    assert any(map(is_bundle, model.trained_.model.pool.members.growth.columns.grown_on()))
    model.save(tmp_path / "a.model")
    one, other = (tunefree.load(tmp_path / "a.model") for _ in range(2))
    assert one.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    one.partial_fit(X, y)
    for k in range(X.shape[0]):
        other.partial_fit(X[k], y[k : k + 1])
    assert one.predict_proba(X).tobytes() == other.predict_proba(X).tobytes()


def test_a_bundle_contributes_as_the_feature_of_a_row(of_bundles):
    model, X, _ = of_bundles
    contributions = model.explain(X).to_pandas()
    names, contributions = list(contributions), contributions.to_numpy()
    margins = np.log(model.predict_proba(X))
    assert np.allclose(contributions.sum(axis=1), margins[:, 1] - margins[:, 0], rtol=1e-9)
    sizes, n_features = np.abs(contributions[:, 1 : 1 + X.shape[1]]), X.shape[1]
    assert len(names) == 1 + n_features
    assert sizes[np.asarray(X.todense()) != 0.0].sum() > 0.7 * sizes.sum()


COLUMNS = {
    "indicators": lambda rng, n: np.hstack([rng.integers(0, k, (n, 1)) == np.arange(k) for k in (3, 8)]).astype(float),
    "counts": lambda rng, n: rng.poisson(0.7, (n, 6)).astype(float),
    "numbers": lambda rng, n: rng.normal(size=(n, 3)),
}


def trees_of(model):
    """What each generation of trees was born as, by its clock, kind and age."""
    generations = model.trained_.model.pool.members.growth.generations()
    return {
        (clock, kind, age): (generation.model, generation.keys, generation.inherited.settings)
        for clock, kind, age, generation in generations
        if kind != "linear"
    }


@pytest.mark.parametrize("kinds", [("indicators",), ("counts",), tuple(COLUMNS)])
def test_trees_of_dense_sparse_and_table_rows_have_the_same_bits(kinds):
    rng = np.random.default_rng(0)
    X = np.hstack([COLUMNS[kind](rng, 1200) for kind in kinds])
    y = (X[:, 0] + X[:, 4] * X[:, 1] - X[:, 5] + 0.3 * rng.logistic(size=len(X)) > 0.3) * 1
    fitted, new = slice(1000), slice(1000, None)
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
    forms = X, sparse.csr_matrix(X), frame
    models = [TuneFreeClassifier(random_state=0).fit(rows[fitted], y[fitted]) for rows in forms]
    dense, *others = map(trees_of, models)
    assert {kind for _, kind, _ in dense} == {"boosted", "randomised"}
    for trees in others:
        assert trees.keys() == dense.keys()
        for key, (model, keys, settings) in dense.items():
            other, other_keys, other_settings = trees[key]
            assert settings == other_settings and keys.tolist() == other_keys.tolist()
            assert model.nodes.tobytes() == other.nodes.tobytes() and model.values.tobytes() == other.values.tobytes()
    of_dense, of_sparse, of_table = (model.predict_proba(rows[new]) for model, rows in zip(models, forms, strict=True))
    assert of_table.tobytes() == of_dense.tobytes()
    # Linear members differ: columns of a dense array have a scale each, the entries of a sparse row one together.
    losses = [-np.log(p[np.arange(len(p)), y[new]]).mean() for p in (of_dense, of_sparse)]
    assert abs(losses[0] - losses[1]) < 0.05 * losses[0]


def cells(n, seed=0, values=5):
    """Rows of two categories, the numbers of their cells, and an effect of each cell."""
    rng = np.random.default_rng(seed)
    of_rows = rng.integers(0, values, (n, 2))
    effects = 1.5 * np.random.default_rng(100).normal(size=(values, values))
    frame = pd.DataFrame({"a": of_rows[:, 0], "b": of_rows[:, 1]}).astype(str)
    return frame, of_rows @ [values, 1], effects[tuple(of_rows.T)]


@pytest.mark.parametrize("shuffle", [True, False])
def test_targets_are_predicted_as_well_as_by_the_shares_and_means_of_each_cell(shuffle):
    X, cell, effect = cells(2000)
    y = np.random.default_rng(1).random(2000) < 1 / (1 + np.exp(-effect))
    with warnings.catch_warnings(action="error"):  # no row is said to be a copy
        model = TuneFreeClassifier(shuffle=shuffle).fit(X[:1000], y[:1000])
    ones, rows = (np.bincount(cell[:1000], of_rows, 25) for of_rows in (y[:1000] * 1.0, np.ones(1000)))
    shares = ((ones + 0.5) / (rows + 1.0))[cell[1000:]]
    assert log_loss(y[1000:], model.predict_proba(X[1000:])[:, 1]) < 1.02 * log_loss(y[1000:], shares)
    y = effect + np.random.default_rng(1).normal(size=2000)
    model = TuneFreeRegressor(shuffle=shuffle).fit(X[:1000], y[:1000])
    means = np.bincount(cell[:1000], y[:1000], 25) / np.bincount(cell[:1000], minlength=25)
    predictions = model.predict(X[1000:]), means[cell[1000:]]
    errors = [np.sqrt(np.mean((y[1000:] - predicted) ** 2)) for predicted in predictions]
    assert errors[0] < 1.02 * errors[1]

"""Wide rows: trees see embeddings and one-hot columns of sparse rows; losses beside those of LightGBM's default."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import log_loss
from sklearn.preprocessing import OneHotEncoder

import tunefree
from tunefree import TuneFreeClassifier
from tunefree.generations.columns import is_bundle

LIGHTGBM_WIDE = 0.7214  # on rows of wide()
LIGHTGBM_ONE_HOT = 0.0831  # of one_hot()
LIGHTGBM_INTERACTING = 0.2914  # of interacting()


def columns_of(model):
    return model.trained_.model.pool.members.growth.columns


def split(X, y, n):
    return X[:n], y[:n], X[n:], y[n:]


def wide(d, n=400, of_all=1400):
    """An embedding: d noisy functions of twelve numbers, of which four decide the class."""
    rng = np.random.default_rng(0)
    Z, W = rng.normal(size=(of_all, 12)), rng.normal(size=(12, d))
    X = np.tanh(Z @ W / 3) + 0.3 * rng.normal(size=(of_all, d))
    signal = 2 * np.sin(2 * Z[:, 0]) + Z[:, 1] ** 2 - 1 + Z[:, 2] * Z[:, 3]
    return split(X, (2 * signal + 0.5 * rng.logistic(size=of_all) > 0) * 1, n)


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
    ("rows", "bar"),
    [
        pytest.param(lambda: wide(1100), 0.95 * LIGHTGBM_WIDE, marks=pytest.mark.slow),
        (one_hot, 1.10 * LIGHTGBM_ONE_HOT),
        (interacting, 1.02 * LIGHTGBM_INTERACTING),
    ],
    ids=["embedding", "one-hot", "interacting"],
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
    assert any(map(is_bundle, columns_of(model).grown_on()))
    model.save(tmp_path / "a.model")
    one, other = (tunefree.load(tmp_path / "a.model") for _ in range(2))
    assert one.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    one.partial_fit(X, y)
    for k in range(X.shape[0]):
        other.partial_fit(X[k], y[k : k + 1])
    assert one.predict_proba(X).tobytes() == other.predict_proba(X).tobytes()


def test_what_a_bundle_contributes_is_that_of_the_feature_of_a_row(of_bundles):
    model, X, _ = of_bundles
    contributions = model.explain(X).to_pandas()
    names, contributions = list(contributions), contributions.to_numpy()
    margins = np.log(model.predict_proba(X))
    assert np.allclose(contributions.sum(axis=1), margins[:, 1] - margins[:, 0], rtol=1e-9)
    sizes, n_features = np.abs(contributions[:, 1 : 1 + X.shape[1]]), X.shape[1]
    assert len(names) == 1 + n_features
    of_rows = np.asarray(X.todense()) != 0.0
    assert sizes[of_rows].sum() > 0.7 * sizes.sum()

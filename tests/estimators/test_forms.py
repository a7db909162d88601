"""The same numbers as a dense array, as a sparse one and as a table: trees are the same."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from tunefree import TuneFreeClassifier


def indicators(rng, n):
    return np.hstack([rng.integers(0, size, (n, 1)) == np.arange(size) for size in (3, 8)]).astype(float)


def counts(rng, n):
    return rng.poisson(0.7, (n, 6)).astype(float)


def mixed(rng, n):
    return np.hstack([indicators(rng, n), counts(rng, n), rng.normal(size=(n, 3))])


def trees_of(model):
    """What each generation of trees was born as, by its clock, kind and age."""
    growth = model.trained_.model.pool.members.growth
    return {
        named[:3]: (named[3].model, named[3].keys, named[3].inherited.settings)
        for named in growth.generations()
        if named[1] != "linear"
    }


@pytest.mark.parametrize("columns", [indicators, counts, mixed])
def test_trees_of_dense_sparse_and_table_rows_have_the_same_bits(columns):
    rng = np.random.default_rng(0)
    X = columns(rng, 1200)
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

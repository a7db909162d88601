"""Columns that exclude each other are summed up together, and trees have the same bits."""

import numpy as np
import pytest

from tunefree.generations.boosted import grow_boosted
from tunefree.generations.bundles import MOST_MEMBERS, exclusive_of
from tunefree.generations.problem import Problem, prepared
from tunefree.losses import Square


def indicators(n=600, n_levels=7, seed=0):
    """A number, indicators of a category, two that conflict, one with missing values."""
    random = np.random.default_rng(seed)
    level = random.integers(0, n_levels, n)
    X = np.column_stack(
        [random.normal(size=n), level[:, None] == np.arange(n_levels), level != 3, random.random(n) < 0.5]
    )
    late = np.where(random.random(n) < 0.1, np.nan, X[:, -1])
    return np.column_stack([X, late]), level


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_trees_have_the_same_bits_with_and_without_bundles(n_classes):
    X, level = indicators()
    y = X[:, 0] + level % 3
    y = np.digitize(y, [0.5, 1.5][: n_classes - 1]).astype(float) if n_classes else y
    problem = prepared(
        Problem(X, np.zeros(X.shape[1], bool), y, np.ones(len(y)), n_classes, None if n_classes else Square())
    )
    binned = problem.binned
    assert binned.exclusive.bundles[1:9].tolist() == [0] * 7 + [-1] and binned.exclusive.n_filled == 5
    none = exclusive_of(binned.codes, np.full(len(binned.codes), 3), binned.bins.is_categorical)
    assert none.n_filled == len(binned.codes)
    bundled, single = (
        grow_boosted(problem._replace(binned=part), 3) for part in (binned, binned._replace(exclusive=none))
    )
    assert len(bundled.nodes) > 100
    assert bundled.nodes.tobytes() == single.nodes.tobytes() and bundled.values.tobytes() == single.values.tobytes()


def test_rows_have_one_column_of_a_bundle_at_most():
    level = np.random.default_rng(1).integers(0, 300, 900)
    codes = (level == np.arange(300)[:, None]).astype(np.uint8)
    codes[280, :] |= codes[283]  # a conflict
    n_codes, is_categorical = np.full(300, 2), np.zeros(300, bool)
    n_codes[290], is_categorical[291] = 3, True
    exclusive = exclusive_of(codes, n_codes, is_categorical)
    assert np.bincount(exclusive.bundles + 1).tolist() == [2, MOST_MEMBERS, 28, 7, 8]
    for b, of_rows in enumerate(exclusive.codes):
        members = np.flatnonzero(exclusive.bundles == b)
        assert codes[members].sum(axis=0).max() == 1
        assert np.array_equal(of_rows, (codes[members] * exclusive.members[members][:, None]).sum(axis=0))

"""Screening: gains by definition, and the one interaction among many columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.additive.contracts import FIRST_CODE, altered, features_of, table_of
from tunefree import losses
from tunefree.additive.screening import CELLS, DEVIATIONS, Screening, best_pairs, gains
from tunefree.losses import objectives

quick = settings(max_examples=30, deadline=None)
OBJECTIVES = {
    "binary": objectives.Binary(losses.Logistic(), 0.0),
    "multinomial": objectives.Multinomial(1.0),
    "regression": objectives.regression(losses.Square()),
}
kinds = pytest.mark.parametrize("kind", sorted(OBJECTIVES))


def slopes_of(kind, y, predictions):
    """Gradients (n, K) of the losses, in units of the first one that is not 0."""
    if kind == "binary":
        slopes = -y[:, None] / (1.0 + np.exp(y[:, None] * predictions))
    elif kind == "regression":
        slopes = predictions - y[:, None]
    else:
        odds = np.exp(predictions)
        slopes = odds / odds.sum(axis=1, keepdims=True) - (np.arange(predictions.shape[1]) == y[:, None])
    return slopes / np.abs(slopes[slopes != 0.0][0])


def grid_of(features, rows):
    """The cell of the grid (n, sources) of each row, from 0 to CELLS - 1."""
    cells = []
    for own, column in zip(features.knots, rows.numbers.T, strict=True):
        nearest = np.abs(column[:, None] - own.values).argmin(axis=1)
        cells.append(np.minimum(nearest * CELLS // len(own.values), CELLS - 1))
    for codes in rows.codes.T:
        different, counts = np.unique(codes[codes > 0], return_counts=True)
        order = different[np.argsort(-counts, kind="stable")].tolist()
        cells.append(np.array([order.index(code) % CELLS if code > 0 else CELLS - 1 for code in codes]))
    return np.column_stack(cells)


def gain_by_definition(a, b, slopes, weight):
    """What the grid of two sources explains of the gradients, beyond rows and columns of the grid, and beyond noise."""
    explained, groups = 0.0, [a * CELLS + b, a, b, np.zeros(len(a), int)]
    n_groups = [len(np.unique(group[weight > 0])) for group in groups]
    for group, sign in zip(groups, (1, -1, -1, 1), strict=True):
        for value in np.unique(group[weight > 0]):
            own = weight * (group == value)
            explained += sign * ((own @ slopes) ** 2).sum() / own.sum()
    freedom = max(n_groups[0] - n_groups[1] - n_groups[2] + 1, 1)
    variance = ((weight[:, None] * slopes) ** 2).sum(axis=0) / weight.sum()
    return (explained - freedom * variance.sum()) / np.sqrt(2.0 * freedom * (variance**2).sum())


def drawn(rng, kind, n, p, effect):
    """Numbers (n, p), targets, and the part of the predictions that is made of single columns.

    ``effect`` is that of the product of columns 2 and 5.
    """
    X = rng.uniform(-2.0, 2.0, (n, p))
    alone = np.sin(2.0 * X[:, 0]) + np.abs(X[:, 1]) - 1.0 + 0.5 * X[:, 2]
    score = alone + effect * X[:, 2] * X[:, 5]
    if kind == "regression":
        return X, score + rng.normal(size=n), alone[:, None]
    if kind == "binary":
        return X, np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-score)), 1.0, -1.0), alone[:, None]
    margins = np.column_stack([score, -score, np.zeros(n)]) + rng.gumbel(size=(n, 3))
    return X, margins.argmax(axis=1).astype(float), np.column_stack([alone, -alone, np.zeros(n)])


def screened(features, kind, rows, y, weight, predictions, cuts=()):
    made = Screening.create(len(features.sources.sizes), predictions.shape[1])
    edges = [0, *cuts, len(y)]
    for start, stop in zip(edges[:-1], edges[1:], strict=True):
        here = slice(start, stop)
        part = altered(rows, numbers=rows.numbers[here], codes=rows.codes[here])
        features.screen(made, OBJECTIVES[kind], part, y[here], weight[here], predictions[here])
    return made


@kinds
@quick
@given(seed=st.integers(0, 2**32), cut=st.integers(1, 199))
def test_gains_are_what_cells_explain_beyond_their_rows_and_columns(kind, seed, cut):
    rng = np.random.default_rng(seed)
    numbers, y, predictions = drawn(rng, kind, 200, 6, 1.0)
    numbers[:, 3], numbers[:, 4] = np.round(numbers[:, 3]), numbers[:, 4] > 0
    codes = rng.integers(0, 5, (200, 2)) + np.array([0, 10])
    rows = table_of(numbers, np.where(codes % 10 > 0, codes, 0))
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], 200)
    features = features_of(rows)
    found = screened(features, kind, rows, y, weight, predictions, (cut,))
    grid = grid_of(features, rows)
    slopes = slopes_of(kind, y[weight > 0], predictions[weight > 0])
    expected = [
        gain_by_definition(grid[weight > 0, a], grid[weight > 0, b], slopes, weight[weight > 0])
        for a, b in zip(found.first, found.second, strict=True)
    ]
    np.testing.assert_allclose(gains(found), expected, rtol=1e-9, atol=1e-9)
    assert len(expected) == 8 * 7 // 2
    whole = screened(features, kind, rows, y, weight, predictions)
    for one, other in zip(found, whole, strict=True):
        np.testing.assert_array_equal(one, other)


@kinds
def test_the_one_interaction_is_found_and_none_where_there_is_none(kind):
    """Of 66 pairs; the threshold of one in some thousand is passed by chance in a few of the seeds."""
    only, none = 0, 0
    for seed in range(20):
        for effect in (0.7, 0.0):
            numbers, y, predictions = drawn(np.random.default_rng(seed), kind, 1500, 12, effect)
            rows = table_of(numbers)
            found = screened(features_of(rows), kind, rows, y, np.ones(1500), predictions)
            chosen = best_pairs(found, set(), np.full(66, 4.0), 256.0)
            pairs = [(int(found.first[p]), int(found.second[p])) for p in chosen]
            assert effect == 0.0 or pairs[0] == (2, 5)
            only, none = only + (effect > 0.0 and len(pairs) == 1), none + (effect == 0.0 and not pairs)
    assert only >= 15
    assert none >= 15


@pytest.mark.parametrize("factor", [1e-100, 0.01, 100.0, 1e100])
def test_the_unit_of_weights_and_of_targets_is_no_evidence(factor):
    numbers, y, predictions = drawn(np.random.default_rng(0), "regression", 1000, 6, 0.3)
    rows, ones = table_of(numbers), np.ones(1000)
    features = features_of(rows)
    expected = gains(screened(features, "regression", rows, y, ones, predictions))
    heavy = gains(screened(features, "regression", rows, y, factor * ones, predictions))
    scaled = gains(screened(features, "regression", rows, factor * y, ones, factor * predictions))
    np.testing.assert_allclose(heavy, expected, rtol=1e-9)
    np.testing.assert_allclose(scaled, expected, rtol=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("weight", [0.0, 1e-300, 1e300])
def test_sums_beyond_what_can_be_represented_choose_nothing(weight):
    numbers, y, predictions = drawn(np.random.default_rng(0), "regression", 500, 6, 1.0)
    rows = table_of(numbers)
    found = screened(features_of(rows), "regression", rows, y, np.full(500, weight), predictions)
    assert len(best_pairs(found, set(), np.full(15, 4.0), 256.0)) == 0


def test_pairs_are_taken_in_the_order_of_their_gain_within_the_budget():
    numbers, y, predictions = drawn(np.random.default_rng(0), "regression", 3000, 12, 1.0)
    y = y + numbers[:, 7] * numbers[:, 8] + 2.0 * np.sign(numbers[:, 9]) * np.sign(numbers[:, 10])
    rows = table_of(numbers)
    found = screened(features_of(rows), "regression", rows, y, np.ones(3000), predictions)
    gain, costs = gains(found), np.full(66, 4.0)
    every = best_pairs(found, set(), costs, 256.0)
    assert set(zip(found.first[every][:3].tolist(), found.second[every][:3].tolist(), strict=True)) == {
        (2, 5), (7, 8), (9, 10),
    }  # fmt: skip
    assert (np.diff(gain[every]) <= 0.0).all()
    assert (gain[every] >= DEVIATIONS).all()
    assert (np.delete(gain, every) < DEVIATIONS).all()
    np.testing.assert_array_equal(best_pairs(found, set(), costs, 8.0), every[:2])
    first = {(int(found.first[every[0]]), int(found.second[every[0]]))}
    np.testing.assert_array_equal(best_pairs(found, first, costs, 8.0), every[1:3])
    costs[every[0]] = 16.0
    np.testing.assert_array_equal(best_pairs(found, set(), costs, 8.0), every[1:3])


def test_of_very_many_sources_only_some_pairs_are_looked_at():
    made = Screening.create(20_000, 1)
    assert len(made.first) == 2**16
    assert made.counts.nbytes + made.gradients.nbytes <= 2**26


def test_codes_that_interact_are_found():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 6, (2000, 12))
    together = (codes[:, 3] + codes[:, 8]) % 2
    y = np.where(rng.random(2000) < 0.2 + 0.6 * together, 1.0, -1.0)
    rows = table_of(np.zeros((2000, 0)), 1 + codes + 10 * np.arange(12))
    features = features_of(rows)
    assert rows.codes.min() > FIRST_CODE
    found = screened(features, "binary", rows, y, np.ones(2000), np.zeros((2000, 1)))
    best = best_pairs(found, set(), np.ones(66), 256.0)[0]
    assert (found.first[best], found.second[best]) == (3, 8)

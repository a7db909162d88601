"""Curves: hats by definition, at any number, and what more knots do not change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.additive.contracts import FIRST_CODE, dense_of, features_of, hats, table_of, words_of
from tunefree.additive.curves import Knots, ascent, interval_of, position, tabulated
from tunefree.additive.features import AdditiveFeatures
from tunefree.additive.knots import first_knots

quick = settings(max_examples=60, deadline=None)
finite = st.floats(allow_nan=False, allow_infinity=False)
ascending = st.lists(finite, min_size=2, max_size=12, unique=True).map(sorted).map(np.array)


ROWS = st.integers(1, 120)


@st.composite
def tables(draw):
    """Columns of numbers: of many scales, of few values, of one; and numbers beyond them."""
    n, p = draw(st.integers(1, 120)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    columns = []
    for _ in range(p):
        scale, values = 10.0 ** rng.uniform(-200, 200), rng.normal(size=n)
        kind = rng.integers(4)
        values = (values, np.round(values), (values > 0).astype(float), np.full(n, values[0]))[kind]
        columns.append(scale * (values + rng.choice([0.0, 5.0])))
    return np.column_stack(columns)


def refined(features, numbers, rng):
    """The features after more rows, between the others and beyond, and new knots."""
    more = np.concatenate([numbers, numbers * rng.uniform(0.5, 2.0, (len(numbers), 1)), 3.0 * numbers])
    features.meet(table_of(np.tile(more, (6, 1))), np.ones(6 * len(more)))
    features.refine()
    return more


def curves_by_definition(features, numbers):
    """Each knot's function (n, features): it goes to 0 at the next knots of lower levels, and no further."""
    made = np.zeros((len(numbers), features.n_features))
    for column, own in zip(numbers.T, features.knots, strict=True):
        base = own.values[own.levels == 0]
        first = hats(base, column)
        for at, (value, level, feature) in enumerate(zip(own.values, own.levels, own.features, strict=True)):
            if feature > 0 and level == 0:
                made[:, feature] = first[:, np.searchsorted(base, value)]
            elif feature > 0:
                lower = own.levels < level
                sides = [*own.values[:at][lower[:at]][-1:], value, *own.values[at:][lower[at:]][:1]]
                made[:, feature] = np.interp(column, sides, [float(side == value) for side in sides])
    return made


@quick
@given(numbers=tables(), refinements=st.integers(0, 3), seed=st.integers(0, 2**32))
def test_curves_are_the_functions_of_the_knots(numbers, refinements, seed):
    features, rng = features_of(table_of(numbers)), np.random.default_rng(seed)
    for _ in range(refinements):
        numbers = refined(features, numbers[:40], rng)
    X = features.curves(table_of(numbers))
    np.testing.assert_allclose(dense_of(X, features.n_features), curves_by_definition(features, numbers), atol=1e-12)
    assert (X.values != 0.0).all()
    assert X.constant == 1.0


@quick
@given(numbers=tables(), seed=st.integers(0, 2**32))
def test_functions_of_level_0_are_at_most_two_and_sum_to_1(numbers, seed):
    features = features_of(table_of(numbers))
    shown = np.concatenate([numbers, 2.0 * numbers, 0.5 * numbers, -numbers])
    written = dense_of(features.curves(table_of(shown)), features.n_features)
    for own in features.knots:
        values = written[:, own.features[own.features > 0]]
        assert ((values >= 0.0) & (values <= 1.0)).all()
        assert (np.count_nonzero(values, axis=1) <= 2).all()
        if len(own.values) > 2:
            np.testing.assert_allclose(values.sum(axis=1), 1.0, rtol=1e-12)
        elif len(own.values) == 1:
            assert values.size == 0


@quick
@given(numbers=tables(), seed=st.integers(0, 2**32))
def test_new_knots_change_no_function_and_numbers_beyond_all_knots_are_alike(numbers, seed):
    features, rng = features_of(table_of(numbers)), np.random.default_rng(seed)
    for _ in range(3):
        before = features.n_features
        shown = np.concatenate([numbers, numbers * rng.uniform(-3.0, 3.0, numbers.shape)])
        old = dense_of(features.curves(table_of(shown)), before)
        refined(features, numbers, rng)
        new = dense_of(features.curves(table_of(shown)), features.n_features)
        np.testing.assert_allclose(new[:, :before], old, atol=1e-12)
    ends = np.array([[own.values[0] for own in features.knots], [own.values[-1] for own in features.knots]])
    beyond = np.array([[-1.7e308] * len(features.knots), [1.7e308] * len(features.knots)])
    for at_the_end, far in zip(ends, beyond, strict=True):
        shown = features.curves(table_of(np.stack([at_the_end, far])))
        np.testing.assert_array_equal(*dense_of(shown, features.n_features))


@quick
@given(knots=ascending, number=finite)
def test_places_between_knots_agree_with_a_search(knots, number):
    interval = interval_of(knots, len(knots), number)
    assert interval == np.clip(np.searchsorted(knots, number, side="right") - 1, 0, len(knots) - 2)
    t = position(knots, interval, number)
    assert 0.0 <= t <= 1.0
    start, stop = knots[interval : interval + 2]
    scale = np.longdouble(1.0)  # wider exponents: no overflow, and nothing subnormal
    if np.finfo(np.longdouble).maxexp > 2000:
        exact = np.clip((scale * number - start) / (scale * stop - start), 0.0, 1.0)
        assert t == pytest.approx(float(exact), rel=1e-12, abs=1e-300)
    assert t == ascent(np.array([number]), start, stop)[0]


@pytest.mark.parametrize(
    "values",
    [
        [-1.7e308, 1.7e308],
        [-1.7e308, 0.0, 1.7e308],
        [-1.7e308, -1.0, 5e-324, 1e-323, 1e300, 1.7e308],
        [0.0, 5e-324],
        [0.0, 5e-324, 1e-323, 1.5e-323],
        [-1e-300, 1e-300, 2e-300],
    ],
)
def test_ends_of_what_can_be_represented(values):
    with np.errstate(all="raise", under="ignore"):
        features = features_of(table_of(np.array(values)[:, None]))
        between = np.array(values)[:-1] / 2 + np.array(values)[1:] / 2
        numbers = np.concatenate([values, between, [-np.finfo(float).max, np.finfo(float).max]])
        written = dense_of(features.curves(table_of(numbers[:, None])), features.n_features)
    expected = np.eye(len(values))[:, 1:] if len(values) == 2 else np.eye(len(values))
    np.testing.assert_array_equal(written[: len(values), 1:], expected)
    assert np.isfinite(written).all()
    if len(values) > 2:
        np.testing.assert_allclose(written.sum(axis=1), 1.0, rtol=1e-12)
    if values[-1] - values[0] > 1e300:
        np.testing.assert_allclose(written[len(values), 1:3], [0.5, 0.5][: written.shape[1] - 1], rtol=1e-12)


def test_a_column_that_was_constant_at_first_gets_a_function_later():
    features = features_of(table_of(np.full((20, 1), 3.0)))
    assert (features.n_features, features.n_curves) == (1, 0)
    features.meet(table_of(np.linspace(3.0, 8.0, 50)[:, None]), np.ones(50))
    features.refine()
    written = dense_of(features.curves(table_of(np.array([[2.0], [3.0], [5.5], [8.0], [9.0]]))), features.n_features)
    np.testing.assert_array_equal(written[:, 1:], [[0.0], [0.0], [0.5], [1.0], [1.0]])


def test_codes_and_words_have_features_of_their_own_in_the_order_in_which_they_come():
    rng = np.random.default_rng(0)
    numbers, codes = rng.normal(size=(50, 1)), rng.integers(0, 5, (50, 2)) + np.array([0, 10])
    rows = table_of(numbers, codes, None, words_of(rng, 50, 3, 20))
    features = AdditiveFeatures(rows, np.arange(50), 1)
    first = features.n_features
    weight = (np.arange(50) % 3 > 0).astype(float)
    features.meet(rows, weight)
    seen = {}
    for i in np.flatnonzero(weight):
        own = rows.features[rows.pointers[i] : rows.pointers[i + 1]]
        for name in [*rows.codes[i], *own]:
            if name > 0:
                seen.setdefault(int(name), first + len(seen))
    assert features.n_features == first + len(seen)
    written, expected = dense_of(features.curves(rows), features.n_features), np.zeros((50, features.n_features))
    expected[:, 1:first] = hats(first_knots(numbers[:, 0], 8), numbers[:, 0])
    for i in range(50):
        entries = {int(code): 1.0 for code in rows.codes[i]}
        at = slice(rows.pointers[i], rows.pointers[i + 1])
        entries |= dict(zip(rows.features[at].tolist(), rows.values[at].tolist(), strict=True))
        for name, value in entries.items():
            if name in seen:
                expected[i, seen[name]] = value
    np.testing.assert_allclose(written, expected, atol=1e-12)
    unknown = table_of(numbers[:3], np.full((3, 2), 77))
    np.testing.assert_array_equal(dense_of(features.curves(unknown), features.n_features)[:, first:], 0.0)


def test_rows_show_the_codes_that_were_known_when_they_came():
    codes = np.array([[1], [2], [2], [3], [1], [3]])
    rows = table_of(np.zeros((6, 0)), codes)
    features = AdditiveFeatures(rows, np.arange(6), 1)
    shown = features.meet(rows, np.array([0.0, 1.0, 0.0, 0.0, 1.0, 1.0])).codes
    np.testing.assert_array_equal(shown, np.where([[0], [1], [1], [0], [1], [1]], FIRST_CODE + codes, 0))


def test_no_column_has_no_functions():
    curves = tabulated([])
    assert len(curves.parts) == 0
    assert curves.most_parts == 0
    assert Knots.create(np.zeros(0), 1).n_functions == 0
    features = features_of(table_of(np.zeros((4, 0)), np.array([[1], [2], [1], [0]])))
    assert features.n_features == 3

"""Columns become codes."""

import numpy as np
import pytest

from tunefree.generations.bins import MISSING, MOST_CODES, bins_of, codes_of

NUMBER, CATEGORY = np.array([False]), np.array([True])


def codes(column, is_categorical=NUMBER, scores=None, new=None):
    X = np.asarray(column, float)[:, None]
    bins = bins_of(X, is_categorical, np.zeros(len(X)) if scores is None else np.asarray(scores, float))
    return codes_of(bins, X if new is None else np.asarray(new, float)[:, None])[:, 0]


@pytest.mark.parametrize(
    "column",
    [
        [3.0, 1.0, 2.0, 1.0],
        [-1.7e308, 0.0, 1.7e308],
        [0.0, 5e-324, 1e-323, -5e-324],
        [1.0, np.nextafter(1.0, 2.0), np.nextafter(1.0, 0.0)],
        [-0.0, 0.0, 1.0],
    ],
)
def test_few_numbers_have_a_code_each_in_their_order(column):
    ranks = np.unique(column, return_inverse=True)[1]
    assert (codes(column) == ranks).all()


def test_many_numbers_share_codes_about_evenly():
    column = np.random.default_rng(0).normal(size=20_000)
    counts = np.bincount(codes(column))
    assert len(counts) == MOST_CODES
    assert counts.min() > 30 and counts.max() < 160


def test_frequent_numbers_have_codes_of_their_own():
    random = np.random.default_rng(0)
    column = np.where(random.random(5000) < 0.6, 0.0, random.normal(size=5000))
    column[:300] = 0.25
    of_rows = codes(column)
    for value in (0.0, 0.25):  # or share it with less than half of the rows that others have
        with_it = column[of_rows == of_rows[column == value][0]]
        assert (with_it == value).mean() > 0.97
    assert of_rows.max() > 100


def test_what_is_missing_or_unknown_has_a_code_of_its_own():
    assert codes([1.0, np.nan, 2.0]).tolist() == [0, MISSING, 1]
    assert codes([7.0, np.nan, 2.0**31], CATEGORY, new=[2.0**31, 8.0, np.nan]).tolist()[1:] == [MISSING, MISSING]
    assert (codes([np.nan, np.nan]) == MISSING).all()


def test_categories_are_ordered_by_their_mean_score():
    column, scores = np.repeat([5.0, 1.0, 9.0], 50), np.repeat([2.0, 3.0, 1.0], 50)
    assert codes(column, CATEGORY, scores, new=[9.0, 5.0, 1.0]).tolist() == [0, 1, 2]

"""Samples of rows before and after a rise: the same however rows are cut, saved and restored, in bounded memory."""

from __future__ import annotations

import numpy as np
import pytest

from tunefree.core.rows import dense, sparse, table
from tunefree.model_files.column_samples import MOST_COLUMNS, SAMPLE, ColumnSamples
from tunefree.theory.column_changes import MISSING


def fed(X, cuts=(), begun=None, samples=None):
    samples = samples or ColumnSamples()
    for start, stop in zip((0, *cuts), (*cuts, len(X)), strict=True):
        part = X[start:stop]
        samples.add(len(part), lambda rows, part=part: samples.matrix(dense(part[rows]), part[rows, 0]))
        if stop == begun:
            samples.begin(30)
    return samples


def test_nothing_depends_on_batches_or_on_being_saved():
    X = np.random.default_rng(0).normal(size=(3000, 3))
    whole = fed(X, (2000,), 2000)
    for cuts in (range(1, 3000), (1, 5, 700, 1999, 2000, 2001)):
        assert repr(fed(X, cuts, 2000).save_state()) == repr(whole.save_state())
    begun = fed(X[:2000], (), 2000)
    again = fed(X[2000:], samples=ColumnSamples.restore(*begun.save_state()))
    assert repr(again.save_state()) == repr(whole.save_state())
    assert again.comparison() == whole.comparison() and whole.comparison().rows_after == SAMPLE


def test_what_was_before_has_no_row_of_the_rise():
    X = np.arange(2000.0)[:, None]
    samples = fed(X, (), 2000)
    assert samples.before[:, 1].max() < 1970.0 and len(samples.before) > 0.95 * SAMPLE
    assert samples.needed == SAMPLE - 30 and samples.comparison() is None  # too few rows after it
    assert not len(samples.sample)
    samples.end()
    assert samples.needed == 0 and samples.began == -1 and samples.comparison() is None


def test_a_sample_is_spread_over_all_rows():
    samples = fed(np.arange(100_000.0)[:, None], range(5000, 100_000, 5000))
    assert len(samples.sample) == SAMPLE and len(samples.latest) == SAMPLE
    counts = np.histogram(samples.sample[:, 1], bins=16, range=(0, 100_000))[0]
    assert counts.min() >= SAMPLE // 16 - 4
    assert set(samples.latest[:, 1].tolist()) == set(range(100_000 - SAMPLE, 100_000))


def test_columns_that_come_later_are_missing_before():
    samples = ColumnSamples()
    first, later = table(np.ones((50, 1)), [1], np.zeros((50, 0))), table(np.ones((50, 1)), [1], np.full((50, 1), 7))
    for block in (first, later):
        samples.add(50, lambda rows, block=block: samples.matrix(block, np.zeros(50))[rows % 50])
    assert samples.columns.keys == [1, -1]
    assert (samples.latest[:50, 2] == MISSING).all() and (samples.latest[50:, 2] == 7.0).all()


@pytest.mark.parametrize("wide", [MOST_COLUMNS + 50, 5000])
def test_wide_rows_are_cut_to_the_first_columns(wide):
    samples = ColumnSamples()
    block = sparse(np.arange(11), np.full(10, wide), np.ones(10))
    samples.add(10, lambda rows: samples.matrix(block, np.zeros(10))[rows])
    assert samples.sample.shape[1] == 1 + MOST_COLUMNS

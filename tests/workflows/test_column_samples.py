"""Samples of rows before and after a rise: the same however rows are cut, saved and restored, in bounded memory."""

from __future__ import annotations

import numpy as np

from tunefree.core.part import restored
from tunefree.core.rows import dense, sparse, table
from tunefree.model_files.column_samples import SAMPLE, ColumnSamples
from tunefree.theory.column_changes import MISSING
from tunefree.theory.rises import Rise


def rise(row, rows=30):
    return Rise(row, "a.csv", row, None, rows, 2.0, row - 1, 1.0)


def fed(X, cuts=(), sure=(), chosen=None, since=5, samples=None, first=0):
    """Samples of rows that come in parts, at which rises of 30 rows become sure after these numbers of rows."""
    samples = samples or ColumnSamples()
    for start, stop in zip((0, *cuts), (*cuts, len(X)), strict=True):
        part, of_part = X[start:stop], [s for s in sure if start < s - first <= stop]
        rises = [(s - first - start, 30, rise(s - 29)) for s in of_part]
        known = {s - 29 for s in sure if s - first <= stop}
        latest = known if chosen is None else known & chosen
        samples.add(
            len(part),
            rises,
            min(since, first + stop - max((s for s in sure if s - first <= stop), default=0)),
            latest,
            lambda rows, part=part: samples.matrix(dense(part[rows]), part[rows, 0]),
        )
    return samples


def test_nothing_depends_on_batches_or_on_being_saved():
    X = np.random.default_rng(0).normal(size=(3000, 3))
    sure = (1000, 2000, 2100)
    whole = fed(X, (), sure, since=40)
    for cuts in (range(1, 3000), (1, 5, 700, 1999, 2000, 2001), (2050, 2110)):
        assert repr(fed(X, cuts, sure, since=40).save_state()) == repr(whole.save_state())
    begun = fed(X[:2010], (), sure, since=40)
    again = fed(X[2010:], (), sure, since=40, samples=restored(ColumnSamples(), "", *begun.save_state()), first=2010)
    assert repr(again.save_state()) == repr(whole.save_state())
    assert [one.stop - one.start for one in whole.waiting] == [SAMPLE, 100, SAMPLE]  # up to the next rise


def test_rows_of_rises_that_are_not_compared_are_not_held():
    X = np.random.default_rng(0).normal(size=(3000, 3))
    whole, of_last = fed(X, (), (1000, 2000)), fed(X, (500, 1500), (1000, 2000), chosen={1971})
    assert [one.row for one in of_last.waiting] == [1971] and len(of_last.numbers) < len(whole.numbers)
    (one,), other = of_last.waiting, whole.waiting[1]
    assert of_last.comparison(one) == whole.comparison(other)
    of_last.settle({1971}, 5)
    assert not of_last.waiting and len(of_last.numbers) <= SAMPLE + 5 and len(of_last.values) == len(of_last.numbers)


def test_of_a_long_rise_the_latest_rows_are_compared():
    samples, X = ColumnSamples(), np.arange(2000.0)[:, None]
    add = samples.add
    add(1200, [], 700, set(), lambda rows: samples.matrix(dense(X[rows]), X[rows, 0]))
    assert samples.numbers[-SAMPLE:].tolist() == list(range(1200 - SAMPLE, 1200))
    later = X[1200:]
    add(800, [(50, 750, rise(501, 750))], 5, {501}, lambda rows: samples.matrix(dense(later[rows]), later[rows, 0]))
    (one,) = samples.waiting
    assert (one.start, one.stop) == (1250 - SAMPLE, 1250) and one.before.max() < 500 and samples.is_complete(one)


def test_columns_that_come_later_are_missing_before():
    samples = ColumnSamples()
    first, later = table(np.ones((50, 1)), [1], np.zeros((50, 0))), table(np.ones((50, 1)), [1], np.full((50, 1), 7))
    for block in (first, later):
        samples.add(50, [], 0, set(), lambda rows, block=block: samples.matrix(block, np.zeros(50))[rows])
    assert samples.columns.keys == [1, -1]
    assert (samples.values[:50, 2] == MISSING).all() and (samples.values[50:, 2] == 7.0).all()


def test_columns_do_not_depend_on_batches_either():
    rng, n = np.random.default_rng(0), 2000
    words = [rng.choice(9 if i < n - 1 else 40, 3, replace=False) + 1 for i in range(n)]
    states = []
    for cuts in ((), (n - 1,), range(100, n, 100), (n // 2, n - 1)):
        samples = ColumnSamples()
        for start, stop in zip((0, *cuts), (*cuts, n), strict=True):
            part = words[start:stop]

            def matrix(rows, part=part, samples=samples):
                chosen = [part[row] for row in rows]
                block = sparse(3 * np.arange(len(rows) + 1), np.concatenate([[], *chosen]), np.ones(3 * len(rows)))
                return samples.matrix(block, np.zeros(len(rows)))

            samples.add(stop - start, [], 1 if stop == n - 1 else 0, set(), matrix)
        states.append(repr(samples.save_state()))
    assert len(set(states)) == 1

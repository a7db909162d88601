"""Samples of rows before and after a rise: the same however rows are cut, saved and restored, in bounded memory."""

import numpy as np

from tunefree.core.part import restored
from tunefree.core.rows import dense, sparse
from tunefree.model_files.column_samples import SAMPLE, ColumnSamples
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

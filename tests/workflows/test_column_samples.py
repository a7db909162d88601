"""Samples of rows before and after a rise: the same however rows are cut, saved and restored, in bounded memory."""

import numpy as np

from tunefree.core.part import restored
from tunefree.core.rows import dense
from tunefree.model_files.column_samples import ColumnSamples
from tunefree.theory.column_changes import MISSING


def fed(X, cuts=(), sure=(), since=40, samples=None, first=0):
    """Samples of rows that come in parts, at which rises of 30 rows become sure after these numbers of rows."""
    samples, latest = samples or ColumnSamples(), 0
    for stop in sorted({*cuts, *sure, len(X)} - set(range(first + 1))):
        part, first = X[first:stop], stop
        latest = max((row for row in sure if row < stop), default=0)

        def matrix(rows, part=part):
            return samples.matrix(dense(part[rows]), part[rows, 0])

        samples.add(len(part), 30 if stop in sure else min(since, stop - latest), matrix)
        if stop in sure:
            samples.note_rise(30, row=stop - 29)
        elif samples.rows >= samples.stop:
            samples.end_comparison()
            samples.add(0, min(since, stop - latest), matrix)
    return samples


def test_nothing_depends_on_batches_or_on_being_saved():
    X = np.random.default_rng(0).normal(size=(3000, 3))
    assert [len(fed(X[:n]).sample) for n in (511, 512, 513)] == [511, 512, 512]
    for sure in ((1000, 2000, 2100), (1000, 2900)):
        whole = fed(X, (), sure)
        assert whole.row == (0 if sure[-1] == 2100 else 2871) and whole.sample.min() >= sure[-1]
        for cuts in (range(2, 3000, 3), (1, 5, 700, 1999, 2000, 2001), (2050, 2110)):
            assert repr(fed(X, cuts, sure).save_state()) == repr(whole.save_state())
        begun = restored(ColumnSamples(), "", *fed(X[:2010], (), sure[:-1]).save_state())
        assert repr(fed(X, (), sure, samples=begun, first=2010).save_state()) == repr(whole.save_state())


def test_rows_are_before_a_rise_or_after_it_up_to_the_next():
    X = np.random.default_rng(0).normal(size=(1100, 3)) * [1.0, 1.0, np.nan]
    X[-30:, 2] = 1.0
    samples = fed(X, (), (400, 1000))
    assert samples.start == 970 and samples.before.min() >= 400 and samples.before.max() < 970
    compared = samples.comparison(n_others=30)
    assert (compared.rows_before, compared.rows_after) == (len(samples.before), 100)
    assert compared.columns == 3  # the target, and those of which a value is known
    assert restored(ColumnSamples(), "", *samples.save_state()).comparison(n_others=30) == compared
    assert samples.comparison(frozenset([1]), 30).columns == 2


def test_a_column_that_comes_later_is_missing_in_earlier_rows():
    X, samples = np.random.default_rng(0).normal(size=(300, 2)), ColumnSamples()
    for rows, width in ((X[:200], 1), (X[200:], 2)):
        samples.add(len(rows), 10, lambda k, part=rows, d=width: samples.matrix(dense(part[k][:, :d]), part[k, 0]))
    assert ((samples.values[:, 2] == MISSING) == (samples.numbers < 200)).all()

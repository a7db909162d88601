"""Rows that were set apart move the point where descents were stopped, if they are sure of it."""

from __future__ import annotations

from itertools import islice

import numpy as np

from tunefree.core.rows import dense
from tunefree.distributed.contacts import Curvature, Sample
from tunefree.distributed.last_step import Stopped, influences, moved
from tunefree.losses import Logistic, objectives
from tunefree.model import lbfgs
from tunefree.model.batch_rows import BatchRows

N, D = 600, 4


def rows(n, seed):
    """Rows of a logistic model, and their labels."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, D))
    y = np.where(random.random(n) < 1.0 / (1.0 + np.exp(-X @ [1.0, -2.0, 0.5, 0.0])), 1.0, -1.0)
    return X, y


def sample(X, y, n_in_all=N):
    blocks = [BatchRows([(dense(X), y, np.ones(len(y)))], 1 + D, 1)]
    squares = np.r_[1.0, np.square(X).mean(axis=0)]
    return Sample(blocks, objectives.Binary(Logistic(), 0.0), np.ones(1 + D), squares, n_in_all)


def stopped(some):
    """Where an exact descent on some rows ends."""

    def function(flat):
        loss, slopes = some.slopes(some.margins(flat[:, None]))
        return loss, some.back(slopes)[:, 0]

    *_, last = islice(lbfgs.iterates(function, np.zeros(1 + D), 1.0), 40)
    _, gradient = function(last)
    return Stopped(0.0, last[:, None], gradient[:, None], some.weight, 0.0)


def loss_at(some, point):
    return some.losses(some.margins(point)).mean()


def test_rows_apart_move_the_point_towards_where_all_rows_would_have_it():
    few, jury = rows(N, 0), rows(N, 1)
    learned, apart = sample(*few), sample(*jury)
    halves = sample(jury[0][::2], jury[1][::2]), sample(jury[0][1::2], jury[1][1::2])
    start = stopped(learned)
    best = stopped(sample(*(np.concatenate(own) for own in zip(few, jury, strict=True)))).point
    *_, whole = influences(Curvature(learned, start.point, 0.0), start, apart)
    away = np.linalg.norm(start.point - best)
    assert np.linalg.norm(start.point + whole - best) < 0.1 * away
    found = moved(start, learned, apart, halves)  # as far as the halves are sure
    assert 0.0 < np.linalg.norm(found - best) < away
    new = sample(*rows(5000, 2))
    assert loss_at(new, found) < loss_at(new, start.point)


def test_rows_that_tell_nothing_new_move_nothing():
    learned = sample(*rows(N, 0))
    start = stopped(learned)
    np.testing.assert_array_equal(moved(start, learned, learned, (learned, learned)), start.point)

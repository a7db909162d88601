"""Snapshots of linear groups: they predict to the bit what the group did then, whatever it learned since."""

import copy

import numpy as np
import pytest

from tunefree.core.rows import dense, part, sparse, table
from tunefree.losses import Square
from tunefree.losses.objectives import Objective
from tunefree.pool import occurrences
from tunefree.pool.linear_group import LinearGroup, LinearSnapshot
from tunefree.pool.linear_members import Setting
from tunefree.pool.rows import LabelledRows

N = 200
SETTINGS = [
    Setting("nag", {"eta": 2.0}, "steady"),
    Setting("scinol2", {"epsilon": 0.1}, "raw"),
    Setting("adagrad", {"eta": 0.1}, "steady"),
    Setting("newton", {}, "steady"),
]
REPLAYED = SETTINGS[:3]  # those that can learn first meetings later


@pytest.fixture(autouse=True)
def few_features_have_slots_from_the_start(monkeypatch):
    monkeypatch.setattr(occurrences, "FIRST", 6)


def words(rng, n=N, d=400):
    """Rows of words of which most are met once; later rows reach further."""
    rows = [np.unique(((200 + d * i / n) * rng.random(9) ** 2).astype(int) + 1) for i in range(n)]
    pointers = np.cumsum([0, *map(len, rows)])
    return sparse(pointers, np.concatenate(rows), rng.exponential(size=pointers[-1]))


def block(rng, kind):
    if kind == "dense":
        return dense(rng.normal(size=(N, 5)) * [1e-3, 1.0, 1e3, 1.0, 0.0])
    if kind == "sparse":
        return words(rng)
    return table(rng.normal(size=(N, 2)), [1, 2], rng.integers(3, 60, size=(N, 1)), words(rng))


def group_of(kind, task):
    objective = Objective("classification") if task == "classes" else Objective("regression", Square())
    of_group = (SETTINGS, objective, 6) if kind == "dense" else (REPLAYED, objective, 2)
    known = None if kind == "dense" else occurrences.FirstMeetings()
    return LinearGroup(*of_group, 3 if task == "classes" else 1, False, known)


def learn(group, X, y, start, stop):
    for first in range(start, stop, 40):
        last = min(first + 40, stop)
        rows = part(X, first, last)
        group.reserve(1000)
        weight = np.ones(last - first)
        group.learn(LabelledRows(rows, y[first:last], weight, weight))


def frozen_of(group, arrays, header):
    frozen = LinearSnapshot.bare(group=group)
    frozen.take_over(arrays, header)
    return frozen


@pytest.mark.parametrize("task", ["classes", "numbers"])
@pytest.mark.parametrize("kind", ["dense", "sparse", "table"])
def test_it_predicts_what_the_group_did(kind, task):
    rng = np.random.default_rng(0)
    X, y = block(rng, kind), rng.integers(0, 3, N).astype(float)
    group = group_of(kind, task)
    learn(group, X, y, 0, 100)
    frozen, expected = group.snapshot(), group.present(X).predict(X)
    saved = copy.deepcopy(frozen.save_state())
    np.testing.assert_array_equal(frozen.predict(X), expected)
    for start in range(100, N, 50):
        learn(group, X, y, start, start + 50)
        np.testing.assert_array_equal(frozen.predict(X), expected)
    assert (group.present(X).predict(X) != expected).any()
    restored = frozen_of(group, *saved)
    np.testing.assert_array_equal(restored.predict(X), expected)
    assert frozen.nbytes == restored.nbytes > 0

"""When generations are grown: as a pass ends, and of the latest rows."""

import numpy as np
import pytest

from tests.pool.rows import learned, stream
from tunefree.core import threads
from tunefree.core.rows import dense
from tunefree.generations.clocks import Event
from tunefree.generations.generation import Generation
from tunefree.pool.model import Model
from tunefree.pool.slots import TREES, WHOLE
from tunefree.pool.targets import Labels
from tunefree.pool.windows import BLOCK, Window

BIRTH = 91  # rows after which a generation is grown on all of them, and predicts at once


@pytest.mark.parametrize("later", [0, 9])
def test_trees_are_not_grown_again_on_the_rows_that_the_newest_were_grown_on(later):
    model, _ = learned(stream(n=BIRTH + later))
    before = {kind: model.pool.members.growth.generations_of(WHOLE, kind)[0] for kind in TREES}
    for _ in range(2):  # the second pass ends where the first did
        model.freeze()
        for kind in TREES:
            of_kind = model.pool.members.growth.generations_of(WHOLE, kind)
            assert of_kind[0].rows == BIRTH + later
            assert of_kind[later > 0] is before[kind]


def test_a_window_sleeps_longer_after_each_failure_in_a_row():
    window, useless, useful = Window(2048), np.array([0.9, 0.1]), np.array([0.1, 0.9])
    waits, places = [], np.array([False, True])
    for weights in (useless, useless, useful, useful, useless, useless, useless):
        rows = window.birth
        window.decide(rows, weights, places)  # that of a window that sleeps is awake again, whatever the weights
        waits.append((window.birth - rows) // 2048)
    assert waits == [1, 2, 1, 1, 2, 1, 4]


def test_a_rise_of_the_loss_wakes_windows():
    rng, n = np.random.default_rng(0), 10 * BLOCK
    x = rng.normal(size=(n, 1))
    y = x[:, 0] + 0.5 * rng.normal(size=n) > 0.0
    y[-BLOCK:] ^= True
    model = Model("classification", n_features=2, classes=[False, True])
    model.learn(dense(x), Labels([False, True], y.astype(int)), np.ones(n))
    assert [window.birth - n for window in model.pool.members.growth.windows] == [1024, 8192]


def test_trials_are_made_of_all_rows_before_the_last_generation_while_there_is_memory(monkeypatch):
    model, _ = learned(stream(n=BIRTH))
    growth, grown = model.pool.members.growth, []
    monkeypatch.setattr(Generation, "grown", lambda birth, kind, before, has_trials: grown.append(has_trials))
    with threads.at_most(1):
        for clock, at_last in ((WHOLE, False), (2048, False), (WHOLE, True)):
            growth._give_birth(clock, Event(BIRTH, BIRTH), at_last)
    assert grown == [*[True] * 3, *[False] * 5]  # boosted, randomised and linear ones, the last not of windows
    grown.clear()
    growth.put_to_sleep()
    growth._give_birth(WHOLE, Event(BIRTH, BIRTH))
    assert not any(grown)

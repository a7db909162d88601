"""When generations are grown: as a pass ends, and of the latest rows."""

import numpy as np
import pytest

from tests.pool.rows import differences, learned, stream
from tunefree.core import threads
from tunefree.core.rows import dense
from tunefree.generations.clocks import Event
from tunefree.generations.generation import Generation
from tunefree.generations.problem import USUAL
from tunefree.pool.growth import settings_of_trees
from tunefree.pool.model import Model, restored
from tunefree.pool.slots import TREES, WHOLE
from tunefree.pool.windows import Window

BIRTH = 91  # rows after which a generation is grown on all of them, and predicts at once


@pytest.mark.parametrize("later", [0, 9])
def test_trees_are_not_grown_again_on_the_rows_that_the_newest_were_grown_on(later):
    model, _ = learned(stream(n=BIRTH + later))
    before = dict(model.pool.members.growth.awake)
    for _ in range(2):  # the second pass ends where the first did
        model.freeze()
        for kind in TREES:
            of_kind = model.pool.members.growth.awake[WHOLE, kind]
            assert of_kind[0].rows == BIRTH + later
            assert of_kind[later > 0] is before[WHOLE, kind][0]


def test_a_window_sleeps_longer_after_each_failure_in_a_row():
    window, useless, useful = Window(2048, np.array([False, True])), np.array([0.9, 0.1]), np.array([0.1, 0.9])
    waits = []
    for weights in (useless, useless, useful, useful, useless, useless, useless):
        rows = window.birth
        window.decide(rows, weights)  # that of a window that sleeps is awake again, whatever the weights
        waits.append((window.birth - rows) // 2048)
    assert waits == [1, 2, 1, 1, 2, 1, 4]


def test_settings_that_rows_chose_are_inherited_saved_and_taken_over_by_the_last_generation():
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (1100, 6))
    y = 20.0 * np.sin(4.0 * X[:, 0]) * X[:, 1] + 10.0 * X[:, 2] ** 2
    model = Model("regression")
    with threads.at_most(1):
        model.learn(dense(X[:700]), y[:700], np.ones(700))
    chosen = settings_of_trees(model.pool.members.growth)
    assert chosen["boosted"] != USUAL
    other = restored(*model.save_state())
    assert settings_of_trees(other.pool.members.growth) == chosen
    for goes_on, n_threads in ((model, 1), (other, 2)):
        with threads.at_most(n_threads):
            goes_on.learn(dense(X[700:]), y[700:], np.ones(400))
            growth = goes_on.pool.members.growth
            before = {
                kind: growth._inherited(WHOLE, kind).for_rows(1100).settings for kind in settings_of_trees(growth)
            }
            goes_on.freeze()
        assert settings_of_trees(growth) == before  # of as many more trees as the rows afford, and no other trial
        assert goes_on.pool.members.growth.awake[WHOLE, "boosted"][0].rows == 1100
    assert differences(model, other) == []


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


def test_rows_kept_of_a_sample_stand_for_all_rows_and_further_ones_take_their_places():
    model, _ = learned(stream(n=BIRTH))
    model.pool.members.growth.resume(100 * BIRTH)
    other = restored(*model.save_state())
    for of_model in (model, other):
        whole = of_model.pool.members.growth.whole
        before = whole.kept()["digests"]
        one = whole.columns[:1], whole.targets[:1], whole.weights[:1], np.ones(1, np.uint64)
        for _ in range(BIRTH):
            whole.add(*one, [np.nan])
        assert of_model.pool.kept_rows == (BIRTH, 101 * BIRTH)
        assert 0 <= np.count_nonzero(whole.kept()["digests"] != before) < 8  # one is expected
    assert differences(model, other) == []

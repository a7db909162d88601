"""What is left out since it tells too little for its cost: members, contacts, points and rows."""

from __future__ import annotations

import numpy as np
import pytest

from tests.distributed.data import parquet_of, people
from tests.distributed.test_last_rows import drifting, saved  # noqa: F401 - a fixture
from tests.distributed.test_phases import learned, loss_of
from tunefree.core import threads
from tunefree.distributed import phases, pool_round
from tunefree.workflows.plan import Plan

N, REVIEW = 9000, 4096


@pytest.fixture(scope="module")
def shard(tmp_path_factory):
    """What the pool round is given of a shard."""
    given = []

    def keeping(rows, state):
        given.append((rows, state))
        return learned_as_ever(rows, state)

    learned_as_ever = pool_round.learned
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool_round, "learned", keeping)
        learned(parquet_of(tmp_path_factory.mktemp("people"), people(N), 1), Plan(target="rich"))
    return max(given, key=lambda own: len(own[0].y))


def alike(first, second, members=None):
    places = range(len(first.weighted)) if members is None else members
    return all(
        np.array_equal(getattr(first, name)[m], getattr(second, name)[m])
        for name in ("weighted", "squares")
        for m in places
    )


def test_members_with_a_negligible_share_learn_no_more_but_what_they_learned_counts(shard, monkeypatch):
    rows, state = shard
    whole = pool_round.learned(rows, state)
    assert len(rows.y) > REVIEW
    first = pool_round.learned(rows.at(np.arange(len(rows.y)) < REVIEW), state)
    monkeypatch.setattr(pool_round, "FIRST_PRUNING", REVIEW)
    found = pool_round.learned(rows, state)
    stopped = [m for m in range(len(whole.weighted)) if alike(found, first, [m])]
    going_on = [m for m in range(len(whole.weighted)) if alike(found, whole, [m])]
    assert stopped and len(going_on) >= 2 and len(stopped) + len(going_on) == len(whole.weighted)
    for name in ("largest", "means"):
        for own, of_all in zip(getattr(found, name), getattr(whole, name), strict=True):
            np.testing.assert_array_equal(own, of_all)
    assert found.metrics["loss"] < 1.01 * whole.metrics["loss"]


def test_the_size_of_columns_is_that_of_all_rows_even_if_nobody_sees_them_any_more(shard, monkeypatch):
    rows, state = shard
    whole = pool_round.learned(rows, state)
    monkeypatch.setattr(pool_round, "FIRST_PRUNING", REVIEW)
    in_curves = [member.setting.view == "curves" for member in phases.Model.restore(*state).members]
    monkeypatch.setattr(pool_round, "negligible_members", lambda *given: ~np.array(in_curves))
    found = pool_round.learned(rows, state)
    for own, of_all in zip(found.largest + found.means, whole.largest + whole.means, strict=True):
        np.testing.assert_array_equal(own, of_all)


def test_small_shards_keep_all_members(shard, monkeypatch):
    rows, state = shard
    before = pool_round.learned(rows, state)
    monkeypatch.setattr(pool_round, "FIRST_PRUNING", 10**9)
    assert alike(before, pool_round.learned(rows, state))


def test_a_contact_that_would_end_the_phase_is_not_made(tmp_path, monkeypatch):
    path, plan = parquet_of(tmp_path, people(4000), 4), Plan(target="rich")
    fewer, more = [], []
    found = learned(path, plan, told=fewer)
    monkeypatch.setattr(phases, "_is_over", lambda history, view: phases.PATIENCE.is_over(history))
    before = learned(path, plan, told=more)
    contacts = [sum(line.startswith("contact") for line in told) for told in (fewer, more)]
    assert 2 <= contacts[0] < contacts[1]
    assert loss_of(found, path) == pytest.approx(loss_of(before, path), rel=1e-3)


def test_the_same_point_is_asked_of_once(tmp_path, monkeypatch):
    asked, answered = [], phases.contacts.answered

    def counting(rows, state, points, stride):
        asked.append([len(own.points) for own in points])
        return answered(rows, state, points, stride)

    monkeypatch.setattr(phases.contacts, "answered", counting)
    learned(parquet_of(tmp_path, people(600), 1), Plan(target="rich"))
    n_descents = len(phases.contacts.RIDGES) + len(phases.contacts.FROM_ZERO)
    assert asked[0] == [2, 2] and max(map(max, asked)) == n_descents  # there are two starts


def test_a_part_of_the_early_rows_tells_of_drift_too(drifting, tmp_path, monkeypatch):  # noqa: F811 - the fixture
    train, test = drifting
    whole = learned(train, Plan(target="late"))
    rows_of, answered = {}, phases.contacts.answered

    def counting(rows, state, points, stride):
        found = answered(rows, state, points, stride)
        rows_of.setdefault(stride, []).append(found.weight / len(rows.y))
        return found

    monkeypatch.setattr(phases.contacts, "answered", counting)
    monkeypatch.setattr(phases, "ENOUGH_EARLY", 2000)
    told = []
    found = learned(train, Plan(target="late"), told=told)
    assert any(line.endswith("they drift") for line in told)
    stride = max(rows_of)
    assert set(rows_of) == {1, stride} and stride > 1
    np.testing.assert_allclose(rows_of[stride], 1.0 / stride, rtol=0.1)
    assert loss_of(found, test) < 1.02 * loss_of(whole, test)


def test_the_number_of_threads_changes_no_byte(tmp_path):
    path, plan = parquet_of(tmp_path, people(6000), 2), Plan(target="rich")
    with threads.at_most(1):
        alone = saved(learned(path, plan), tmp_path)
    with threads.at_most(3):
        assert saved(learned(path, plan), tmp_path) == alone

"""Rows in the order of time: the last ones weigh members where the stream drifts, and else change nothing."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

from tests.distributed.data import parquet_of, people, shards
from tests.distributed.test_phases import Shuffled, learned, loss_of
from tunefree.core.rows import table
from tunefree.distributed import last_rows, phases
from tunefree.distributed.encoded import Encoded
from tunefree.distributed.engines import Here
from tunefree.distributed.journal import Journal
from tunefree.workflows.plan import Plan

N, SHARDS, TIMES = 9600, 8, 16


def flights(n=N, later=4800, seed=0):
    """Rows in the order of time, each time with an effect of its own, and the rows that come later."""
    random = np.random.default_rng(seed)
    time = np.arange(n + later) // (n // TIMES)
    effect = random.normal(0.0, 2.5, time.max() + 1)
    x = random.normal(size=n + later)
    is_late = random.random(n + later) < 1.0 / (1.0 + np.exp(-x - effect[time]))
    day = np.arange(n + later) / n
    rows = pa.table({"day": day, "x": x, "late": np.where(is_late, "yes", "no")})
    return rows.slice(0, n), rows.slice(n)


@pytest.fixture(scope="module")
def drifting(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flights")
    train, test = flights()
    return parquet_of(folder, train, SHARDS), parquet_of(folder, test, 1, "test.parquet")


@pytest.fixture
def jury_alone(monkeypatch):
    """A function that calls another as if no row was among the last ones."""

    def call(function, *given):
        with monkeypatch.context() as patch:
            patch.setattr(last_rows, "FEWEST", 10**9)
            return function(*given)

    return call


def saved(trained, folder):
    trained.save(folder / "some.model")
    return (folder / "some.model").read_bytes()


def test_last_rows_weigh_members_of_a_drifting_stream(drifting, jury_alone):
    path, test = drifting
    told, plan = [], Plan(target="late")
    trained, blind = learned(path, plan, told=told), jury_alone(learned, path, plan)
    assert any(line.startswith("last rows") and line.endswith("they drift") for line in told)
    assert loss_of(trained, test) < 0.95 * loss_of(blind, test)
    promised, blindly = (own.progress.held_out[0].mean_loss() / loss_of(own, test) for own in (trained, blind))
    assert abs(np.log(promised)) < abs(np.log(blindly))


def test_a_drifting_stream_in_one_shard_is_cut_within_it(drifting, tmp_path, jury_alone):
    train, _ = flights()
    whole, told = parquet_of(tmp_path, train, 1), []
    trained = learned(whole, Plan(target="late"), told=told)
    assert any(line.endswith("they drift") for line in told)
    blind = jury_alone(learned, whole, Plan(target="late"))
    assert loss_of(trained, drifting[1]) < 0.95 * loss_of(blind, drifting[1])


def test_order_and_interruptions_change_no_byte_of_it(drifting, tmp_path):
    path, plan = drifting[0], Plan(target="late")
    whole = saved(learned(path, plan), tmp_path)
    assert saved(learned(path, plan, Shuffled()), tmp_path) == whole

    class Killed(Exception):
        pass

    def kill(line):
        if line.startswith("early contact 1"):
            raise Killed

    cut_up = phases.Parts(shards(path), [[] for _ in range(SHARDS)])
    with pytest.raises(Killed):
        phases.learn(Here(), cut_up, plan, kill, journal=Journal(tmp_path / "rounds"))
    told = []
    resumed = phases.learn(Here(), cut_up, plan, told.append, journal=Journal(tmp_path / "rounds", resumes=True))
    assert saved(resumed, tmp_path) == whole and any(line.endswith("they drift") for line in told)


@pytest.mark.parametrize("order", [None, "rich", "job"])
def test_rows_that_do_not_drift_or_are_sorted_change_no_byte(order, tmp_path, jury_alone):
    rows = people(4000) if order is None else people(4000).sort_by(order)
    path, told = parquet_of(tmp_path, rows, 6), []
    found = saved(learned(path, Plan(target="rich"), told=told), tmp_path)
    assert found == saved(jury_alone(learned, path, Plan(target="rich")), tmp_path)
    assert any(line.startswith("early contact") for line in told) == (order != "rich")  # nothing is tried in vain


def test_numbers_that_are_sorted_change_no_byte(tmp_path, jury_alone):
    random = np.random.default_rng(0)
    x = random.normal(size=4000)
    rows = pa.table({"x": x, "y": np.exp(x) + random.normal(0.0, 0.1, 4000)})
    for order in (None, "y"):
        path = parquet_of(tmp_path, rows if order is None else rows.sort_by(order), 6)
        assert saved(learned(path, Plan(target="y")), tmp_path) == saved(
            jury_alone(learned, path, Plan(target="y")), tmp_path
        )


def test_numbers_of_a_drifting_stream_are_followed(tmp_path, jury_alone):
    random, n = np.random.default_rng(2), N + 4800
    effect = random.normal(0.0, 2.0, n // 200)[np.arange(n) // 200]
    x = random.normal(size=n)
    rows = pa.table({"day": np.arange(n) / n, "x": x, "y": x + effect + random.normal(0.0, 0.5, n)})
    path, test = parquet_of(tmp_path, rows.slice(0, N), SHARDS), parquet_of(tmp_path, rows.slice(N), 1, "test.parquet")
    told = []
    trained = learned(path, Plan(target="y"), told=told)
    assert any(line.endswith("they drift") for line in told)
    assert loss_of(trained, test) < 0.9 * loss_of(jury_alone(learned, path, Plan(target="y")), test)


def coded(codes):
    """Rows of one column of categories."""
    made = table(np.zeros((len(codes), 0)), [], np.array(codes)[:, None])
    return Encoded(made, np.zeros(len(codes)), np.ones(len(codes)))


def test_rows_of_categories_that_were_rare_before_do_not_judge():
    early = coded([1] * 60 + [2] * 40)
    last = coded([1] * 50 + [3] * 40 + [0] * 9 + [4])  # 3 is new, 0 missing, 4 too rare to matter
    assert last_rows.with_usual_codes(last, early).X.codes.ravel().tolist() == [1] * 50 + [0] * 9 + [4]
    assert len(last_rows.with_usual_codes(last, early, dates=[0]).y) == 100


def test_a_new_month_is_no_rare_category(tmp_path):
    start = datetime.datetime(2001, 1, 1)
    train, _ = flights()
    days = [start + datetime.timedelta(days=100.0 * own) for own in train["day"].to_pylist()]
    path, told = parquet_of(tmp_path, train.set_column(0, "day", [days]), SHARDS), []
    learned(path, Plan(target="late"), told=told)
    assert any(line.startswith("last rows") for line in told)

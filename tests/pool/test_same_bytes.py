"""Nothing depends on how rows come in batches, on threads, or on being saved."""

from itertools import product

import numpy as np
import pytest

from tests.pool.rows import KINDS, TARGETS, blank, bytes_of, differences, learned, restored, stream
from tunefree.core import threads
from tunefree.core.rows import part

N = 100  # rows of most streams
EVENTS = (16, 23, 32, 45, 64, 91)  # births
LONG = 4700  # rows that have a trial of the short window, and a birth that takes over later

# Quick are all targets of tables, and of each kind of rows those that change most: a late class.
QUICK = {("table", targets) for targets in TARGETS} | {(kind, "late") for kind in KINDS}
each_kind_and_target = pytest.mark.parametrize(
    ("kind", "targets"),
    [pytest.param(*pair, marks=[] if pair in QUICK else [pytest.mark.slow]) for pair in product(KINDS, TARGETS)],
)


@each_kind_and_target
def test_any_cut_into_batches_makes_the_same_model(kind, targets):
    rows, rng = stream(kind, targets, N), np.random.default_rng(7)
    rows = rows._replace(weight=np.where(rng.random(N) < 0.1, 0.0, rng.uniform(0.5, 2.0, N)))
    whole, losses = learned(rows)
    assert whole.pool.n_known > 0 or kind != "table"
    (new, _, _), *_ = stream(kind, targets, N, seed=1).pieces(10**6)
    for size in (1, 33):
        cut, of_rows = learned(rows, size)
        assert cut.pool.single_rows.rows or size > 1 or targets == "late"
        assert differences(cut, whole) == []
        assert of_rows.tobytes() == losses.tobytes()
        assert restored(cut).predict(new).tobytes() == restored(whole).predict(new).tobytes()
    for model in (cut, whole):
        model.freeze()
    assert differences(cut, whole) == []


@pytest.fixture(scope="module")
def long_run():
    """A long stream, and what a model of it is without interruption in one thread."""
    rows = stream("table", "two", LONG)
    with threads.at_most(1):
        model, losses = learned(rows)
        model.freeze()
    record = model.pool.contexts[0].record
    assert record.rows[:4].tolist() == [16, 23, 32, 45] and {1024, 2048} < set(record.rows.tolist())
    assert record.losses[:, 1, -1].sum() == record.rows[-1]
    return rows, model, losses


@pytest.mark.parametrize(("threads_at_most", "size"), [(2, 10**6), (1, 1000)])
def test_threads_and_batches_of_a_long_stream(long_run, threads_at_most, size):
    rows, expected, losses = long_run
    with threads.at_most(threads_at_most):
        model, of_rows = learned(rows, size)
        model.freeze()
    assert differences(model, expected) == []
    assert of_rows.tobytes() == losses.tobytes()


def test_saved_around_births_takeovers_and_trials_of_a_long_stream(long_run):
    rows, expected, _ = long_run
    saves = (2895, 2896, 2897, 3257, 3258, 3259, 4095, 4096, 4097, 4351, 4352, 4353, 4607, 4608, 4609)
    model, start = blank(rows), 0
    for stop in (*saves, LONG):
        for piece in rows.pieces(10**6, start, stop):
            model.learn(*piece)
        again, start = restored(model), stop
        assert differences(again, model) == []
        model = again
    model.freeze()
    assert differences(model, expected) == []


@pytest.mark.parametrize(("kind", "targets"), [("table", "late"), ("late columns", "numbers")])
def test_saved_at_a_birth_it_goes_on_as_if_it_had_not_been(kind, targets):
    rows = stream(kind, targets, N)
    expected, _ = learned(rows)
    (new, _, _), *_ = stream(kind, targets, N, seed=1).pieces(10**6)
    model, start = blank(rows), 0
    for stop in sorted({at + more for at in EVENTS for more in (-1, 0, 1)}):
        for piece in rows.pieces(10**6, start, stop):
            model.learn(*piece)
        again, start = restored(model), stop
        assert differences(again, model) == []
        assert restored(again).predict(new).tobytes() == restored(model).predict(new).tobytes()
        model = again
    for piece in rows.pieces(10**6, start):
        model.learn(*piece)
    assert differences(model, expected) == []


@pytest.mark.parametrize("targets", ["late", "numbers"])
def test_more_rows_after_the_end_of_a_pass_go_on_from_the_file_too(targets):
    rows = stream("table", targets, N)
    model, _ = learned(stream("table", targets, N))
    model.freeze()
    again = restored(model)
    for piece in rows.pieces(33):
        model.learn(*piece)
        again.learn(*piece)
    assert differences(again, model) == []


@each_kind_and_target
def test_a_row_alone_is_predicted_as_in_a_batch(kind, targets):
    model, _ = learned(stream(kind, targets, N))
    model.freeze()
    before = bytes_of(model)
    *_, (X, _, _) = stream(kind, targets, N, seed=1).pieces(10**6)
    together = model.predict(X)
    alone = np.concatenate([model.predict(part(X, i, i + 1)) for i in range(len(together))])
    assert alone.tobytes() == together.tobytes()
    assert bytes_of(model) == before

"""Nothing depends on how rows come, in batches or alone, on threads, or on being saved."""

import copy
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest

from tests.pool.rows import KINDS, TARGETS, blank, bytes_of, differences, learned, restored, stream
from tunefree.core import threads
from tunefree.core.rows import Block, part, rows_at, sparse, table
from tunefree.pool.model import Model, published
from tunefree.pool.slots import LATEST_LINEAR_ROWS

N = 100  # rows of most streams
EVENTS = (16, 23, 32, 45, 64, 91)  # births
LONG = 4700  # rows that have a trial of the short window, and a birth that takes over later

# Quick are all targets of tables, and of each kind of rows those that change most: a late class.
QUICK = {("table", targets) for targets in TARGETS} | {(kind, "late") for kind in KINDS}


@pytest.mark.parametrize(
    ("kind", "targets"),
    [pytest.param(*pair, marks=[] if pair in QUICK else [pytest.mark.slow]) for pair in product(KINDS, TARGETS)],
)
def test_any_cut_into_batches_makes_the_same_model(kind, targets):
    rows, rng = stream(kind, targets, N), np.random.default_rng(7)
    rows = rows._replace(weight=np.where(rng.random(N) < 0.1, 0.0, rng.uniform(0.5, 2.0, N)))
    whole, losses = learned(rows)
    assert whole.pool.n_known > 0 or kind != "table"
    *_, (new, _, _) = stream(kind, targets, N, seed=1).pieces(10**6)
    for size in (1, 33):
        cut, of_rows = learned(rows, size)
        assert cut.pool.single_rows or size > 1 or targets == "late"
        assert differences(cut, whole) == []
        assert of_rows.tobytes() == losses.tobytes()
        assert restored(cut).predict(new).tobytes() == restored(whole).predict(new).tobytes()
    for model in (cut, whole):
        model.freeze()
    assert differences(cut, whole) == []
    before, together = bytes_of(whole), whole.predict(new)
    alone = np.concatenate([whole.predict(part(new, i, i + 1)) for i in range(len(together))])
    assert alone.tobytes() == together.tobytes() and bytes_of(whole) == before


def saved_at(rows, numbers):
    """What a model of a stream is if it is saved, and restored, after each of these numbers of rows."""
    model, start = blank(rows), 0
    for stop in (*numbers, rows.starts[-1]):
        for piece in rows.pieces(10**6, start, stop):
            model.learn(*piece)
        again, start = restored(model), stop
        assert differences(again, model) == []
        model = again
    return model


@pytest.fixture(scope="module")
def long_run():
    """A long stream, and what a model of it is without interruption in one thread."""
    rows = stream("table", "two", LONG)
    with threads.at_most(1):
        model, losses = learned(rows)
        model.freeze()
    record = model.pool.contexts[0].record
    assert record.rows[:4].tolist() == [16, 23, 32, 45] and {1024, 2048} < set(record.rows.tolist())
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
    model = saved_at(rows, saves)
    model.freeze()
    assert differences(model, expected) == []


@pytest.mark.parametrize(("kind", "targets"), [("table", "late"), ("late columns", "numbers")])
def test_saved_at_a_birth_it_goes_on_as_if_it_had_not_been(kind, targets):
    rows = stream(kind, targets, N)
    model = saved_at(rows, sorted({at + more for at in EVENTS for more in (-1, 0, 1)}))
    assert differences(model, learned(rows)[0]) == []


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


N_NEW, MANY = 40, 400


def check(model: Model, X: Block) -> None:
    """Rows alone have the bits of rows together, and leave the same behind; arrays for one row are used at the end."""
    other = copy.deepcopy(model)
    together = other.predict(X)
    alone = [model.predict(part(X, i, i + 1)) for i in range(len(X.numbers))]
    assert np.concatenate(alone).tobytes() == together.tobytes()
    ours, others = model.pool.waiting.rows, other.pool.waiting.rows
    assert list(ours) == list(others)
    assert all(ours[digest].tobytes() == others[digest].tobytes() for digest in ours)
    assert model.pool.single_rows


@pytest.mark.parametrize(
    ("targets", "n"),
    [*product(("numbers", "two", "three"), (20, MANY)), ("two", LATEST_LINEAR_ROWS + 100)],
)
def test_a_row_has_the_bits_of_many(targets: str, n: int) -> None:
    model, _ = learned(stream("words", targets, n))
    first, second, third, last, new = (stream("words", targets, N_NEW, seed) for seed in range(1, 6))
    check(model, first.blocks[0])
    other = copy.deepcopy(model)
    for each, size in ((other, 1), (model, N_NEW)):
        for piece in new.pieces(size):
            each.learn(*piece)
    assert other.predict(new.blocks[0]).tobytes() == model.predict(new.blocks[0]).tobytes()
    check(published(model), second.blocks[0])
    model.freeze()
    check(model, third.blocks[0])
    for _ in range(2):  # a reduced model can be reduced again
        model.reduce()
        check(model, last.blocks[0])


@pytest.mark.parametrize("targets", ["numbers", "two"])
def test_rows_that_are_recorded_later_are_copies(targets: str) -> None:
    """Whoever passes arrays may write over them."""
    rows = stream("table", targets, 120)
    X, models = rows.blocks[0], [blank(rows) for _ in range(2)]
    row = X._replace(numbers=np.empty((1, 2)), codes=X.codes[:1], pointers=X.pointers[:2])
    weight, y = np.ones(1), np.ones(1)
    for i in range(120):
        row.numbers[:], weight[:], label = X.numbers[i], 1.0 + i % 3, rows.labels(i, i + 1)
        y[:] = label if targets == "numbers" else 0.0
        models[0].learn(row, y if targets == "numbers" else label, weight)
        models[1].learn(rows_at(row, np.zeros(1, int)), label, weight.copy())
        assert models[1].pool.rows == i + 1  # after each row all are recorded
        row.numbers[:] = weight[:] = y[:] = np.nan
    assert differences(*models) == []


def test_rows_of_other_layouts_between() -> None:
    """Columns of codes and words may be absent, or more than there was room for."""
    (model, _), X = learned(stream("words", "two", MANY)), stream("words", "two", N_NEW, 1).blocks[0]
    check(model, X)
    check(model, table(X.numbers, [1, 2, 3], X.codes[:, :1]))
    many = np.arange(10, 500)
    words = sparse(np.arange(N_NEW + 1) * len(many), np.tile(many, N_NEW), np.ones(len(many) * N_NEW))
    check(model, table(X.numbers, [1, 2, 3], X.codes, words))


def test_threads_predict_the_same() -> None:
    (model, _), X = learned(stream("words", "two", MANY)), stream("words", "two", 200, 1).blocks[0]
    model.freeze()
    together = model.predict(X).tobytes()

    def one_by_one(_: int) -> bytes:
        return b"".join(model.predict(part(X, i, i + 1)).tobytes() for i in range(200))

    with ThreadPoolExecutor(4) as executor:
        assert set(executor.map(one_by_one, range(4))) == {together}

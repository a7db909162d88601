"""Nothing depends on how rows come, in batches or alone, on threads, or on being saved."""

import copy
import threading
from itertools import product

import numpy as np
import pytest

from tests.pool.rows import KINDS, TARGETS, blank, bytes_of, differences, learned, restored, stream
from tunefree.core import threads
from tunefree.core.rows import Block, part, rows_at, sparse, table
from tunefree.pool.model import Model, published
from tunefree.pool.slots import LATEST_LINEAR_ROWS
from tunefree.pool.targets import Labels

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
        assert cut.pool.single_rows.rows or size > 1 or targets == "late"
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


N_NEW = 40


def rows_of(n: int, seed: int, has_words: bool = True) -> Block:
    """Rows of a table with numbers, some of them missing, categories, and words."""
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(4, 9, n), np.where(rng.random(n) < 0.2, 9, 0)])
    counts = rng.integers(0, 4, n) if has_words else np.zeros(n, int)
    features = [10 + rng.permutation(8)[:count] for count in counts]
    words = sparse(np.append(0, np.cumsum(counts)), np.concatenate([[], *features]), rng.random(counts.sum()))
    return table(rng.normal(size=(n, 3)), [1, 2, 3], codes, words)


def targets_of(X: Block, n_classes: int) -> np.ndarray:
    scores = X.numbers[:, 0] + 0.5 * (X.codes[:, 0] == 5)
    return np.digitize(scores, np.linspace(-0.5, 0.5, n_classes - 1)) if n_classes else 100.0 + 3.0 * scores


def model_of(n_classes: int, X: Block) -> Model:
    model = Model("classification" if n_classes else "regression")
    learn(model, n_classes, X)
    return model


def learn(model: Model, n_classes: int, X: Block) -> None:
    y = targets_of(X, n_classes)
    model.learn(X, Labels.of(y.tolist()) if n_classes else y, np.ones(len(y)))


def check(model: Model, X: Block) -> None:
    """Rows alone have the bits of rows together, and leave the same behind; arrays for one row are used at the end."""
    other = copy.deepcopy(model)
    together = other.predict(X)
    alone = [model.predict(part(X, i, i + 1)) for i in range(len(X.numbers))]
    assert np.concatenate(alone).tobytes() == together.tobytes()
    ours, others = model.pool.waiting.rows, other.pool.waiting.rows
    assert list(ours) == list(others)
    assert all(ours[digest].tobytes() == others[digest].tobytes() for digest in ours)
    assert model.pool.single_rows.rows


@pytest.mark.parametrize(
    ("n_classes", "n"), [(0, 20), (2, 20), (3, 20), (0, 700), (2, 700), (3, 700), (2, LATEST_LINEAR_ROWS + 100)]
)
def test_a_row_has_the_bits_of_many(n_classes: int, n: int) -> None:
    model = model_of(n_classes, rows_of(n, 1))
    check(model, rows_of(N_NEW, 2))
    other, new = copy.deepcopy(model), rows_of(N_NEW, 6)
    for i in range(N_NEW):
        learn(other, n_classes, part(new, i, i + 1))
    learn(model, n_classes, new)
    assert other.predict(new).tobytes() == model.predict(new).tobytes()
    check(published(model), rows_of(N_NEW, 3))
    model.freeze()
    check(model, rows_of(N_NEW, 4))
    for _ in range(2):  # a reduced model can be reduced again
        model.reduce()
        check(model, rows_of(N_NEW, 5))


@pytest.mark.parametrize("n_classes", [0, 2])
def test_rows_that_are_recorded_later_are_copies(n_classes: int) -> None:
    """Whoever passes arrays may write over them."""
    task = "classification" if n_classes else "regression"
    X, models = rows_of(200, 1, has_words=False), [Model(task) for _ in range(2)]
    targets, numbers = targets_of(X, n_classes), np.array(X.numbers)
    row = X._replace(numbers=np.empty((1, 3)), codes=X.codes[:1], pointers=X.pointers[:2])
    weight, y = np.ones(1), np.ones(1)
    for i in range(200):
        row.numbers[:], weight[:], y[:] = numbers[i], 1.0 + i % 3, targets[i]
        models[0].learn(row, Labels.of([targets[i]]) if n_classes else y, weight)
        of_copies = Labels.of([targets[i]]) if n_classes else y.copy()
        models[1].learn(rows_at(row, np.zeros(1, int)), of_copies, weight.copy())
        assert models[1].pool.rows == i + 1  # after each row all are recorded
        row.numbers[:] = weight[:] = y[:] = np.nan
    assert differences(*models) == []


def test_rows_of_other_layouts_between() -> None:
    """Columns of codes and words may be absent, or more than there was room for."""
    model, X = model_of(2, rows_of(700, 1)), rows_of(N_NEW, 2)
    check(model, X)
    without = rows_of(N_NEW, 3, has_words=False)
    check(model, without._replace(codes=without.codes[:, :1].copy(), code_columns=without.code_columns[:1]))
    many = np.arange(10, 500)
    words = sparse(np.arange(N_NEW + 1) * len(many), np.tile(many, N_NEW), np.ones(len(many) * N_NEW))
    check(model, table(X.numbers, [1, 2, 3], X.codes, words))


def test_threads_predict_the_same() -> None:
    model, X = model_of(2, rows_of(700, 1)), rows_of(200, 2)
    model.freeze()
    together, alone = model.predict(X), [np.empty((200, 1)) for _ in range(4)]

    def predict(written: np.ndarray) -> None:
        for i in range(200):
            written[i] = model.predict(part(X, i, i + 1))

    workers = [threading.Thread(target=predict, args=(written,)) for written in alone]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(written.tobytes() == together.tobytes() for written in alone)

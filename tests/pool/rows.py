"""Streams of every kind of rows, cut as a test asks, and models as bytes."""

import hashlib
import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.rows import dense, part, sparse, table
from tunefree.pool.model import Model
from tunefree.pool.model import restored as restored_model
from tunefree.pool.targets import Labels

LATE = 50  # rows after which late columns and classes come
N_FEATURES = 16


class Stream(NamedTuple):
    """Rows in blocks of one layout each, with targets and weights."""

    blocks: list[Any]
    starts: list[int]  # the first row of each block, and the number of rows
    targets: list[Any]
    weight: np.ndarray  # (n,)
    task: str

    def pieces(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[tuple[Any, Any, np.ndarray]]:
        """Rows from ``start`` on, in pieces of at most so many rows."""
        stop = self.starts[-1] if stop is None else stop
        edges = sorted({start, stop, *range(start, stop, size), *(s for s in self.starts if start < s < stop)})
        for first, last in pairwise(edges):
            b = int(np.searchsorted(self.starts, first, "right")) - 1
            rows = part(self.blocks[b], first - self.starts[b], last - self.starts[b])
            yield rows, self.labels(first, last), self.weight[first:last]

    def labels(self, first: int, last: int) -> Any:
        """Targets as models take them."""
        y = self.targets[first:last]
        return Labels.of(y) if self.task == "classification" else np.array(y, np.float64)


def _numbers(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(size=(n, 4))


def _dense(rng: np.random.Generator, n: int) -> list[Any]:
    return [dense(_numbers(rng, n))]


def _missing(rng: np.random.Generator, n: int) -> list[Any]:
    numbers = _numbers(rng, n)
    numbers[rng.random(numbers.shape) < 0.2] = np.nan
    return [dense(numbers)]


def _sparse_of(numbers: np.ndarray) -> Any:
    kept = numbers != 0.0
    pointers = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    return sparse(pointers, 1 + np.nonzero(kept)[1], numbers[kept])


def _sparse(rng: np.random.Generator, n: int) -> list[Any]:
    numbers = np.concatenate([_numbers(rng, n), rng.normal(size=(n, 3))], axis=1)
    numbers[:, 2:] *= rng.random((n, 5)) < 0.4
    numbers[:LATE, 6] = 0.0  # a feature that comes late
    return [_sparse_of(numbers)]


def _table(rng: np.random.Generator, n: int) -> list[Any]:
    numbers, codes = _numbers(rng, n)[:, :2], 3 + rng.integers(0, 4, (n, 1))
    numbers[rng.random(numbers.shape) < 0.1] = np.nan
    codes[rng.random(n) < 0.1] = 0
    for array in (numbers, codes):  # rows that come again
        array[60:70] = array[20:30]
    return [table(numbers, [1, 2], codes, code_columns=[2])]


def _words(rng: np.random.Generator, n: int) -> list[Any]:
    """A table of numbers, categories of which one is mostly missing, and words."""
    codes = np.column_stack([rng.integers(4, 9, n), np.where(rng.random(n) < 0.2, 9, 0)])
    counts = rng.integers(0, 4, n)
    features = [10 + rng.permutation(6)[:count] for count in counts]
    words = sparse(np.append(0, np.cumsum(counts)), np.concatenate([[], *features]), rng.random(counts.sum()))
    return [table(_numbers(rng, n)[:, :3], [1, 2, 3], codes, words)]


def _late_columns(rng: np.random.Generator, n: int) -> list[Any]:
    """As a table's encoder has them: a late column of categories is one more of codes, numbers are sparse entries."""
    numbers, codes = rng.normal(size=(n, 3)), np.stack([3 + rng.integers(0, 4, n), 8 + rng.integers(0, 3, n)], 1)
    first = table(numbers[:LATE, :2], [1, 2], codes[:LATE, :1], code_columns=[2])
    words = sparse(np.arange(n - LATE + 1), np.full(n - LATE, 7), numbers[LATE:, 2])
    return [first, table(numbers[LATE:, :2], [1, 2], codes[LATE:], words, [2, 4], late=[7])]


def _one_hot(rng: np.random.Generator, n: int) -> list[Any]:
    """Two numbers, and two categories of many features and of few, as an encoder writes them."""
    many, few = rng.integers(3, 1500, n), rng.integers(1500, 1504, n)
    few[rng.random(n) < 0.1] = 1600  # a number, of some rows
    features = np.stack([np.full(n, 1), np.full(n, 2), many, few], axis=1)
    values = np.concatenate([rng.normal(size=(n, 2)), np.ones((n, 1)), np.where(few < 1600, 1.0, 2.5)[:, None]], axis=1)
    return [sparse(np.arange(0, 4 * n + 1, 4), features.reshape(-1), values.reshape(-1))]


KINDS: dict[str, Callable[[np.random.Generator, int], list[Any]]] = {
    "dense": _dense,
    "missing": _missing,
    "sparse": _sparse,
    "table": _table,
    "words": _words,
    "late columns": _late_columns,
    "one-hot": _one_hot,
}
TARGETS = ("two", "three", "late", "numbers")


def _signal(block: Any) -> np.ndarray:
    """A function of rows that trees and linear members learn in part."""
    first, second = (_column(block, number) for number in (1, 2))
    return first * second + 0.5 * first


def _column(block: Any, number: int) -> np.ndarray:
    if block.numbers.shape[1]:
        return np.nan_to_num(block.numbers[:, number - 1])
    values = np.zeros(len(block.numbers))
    row = np.repeat(np.arange(len(values)), np.diff(block.pointers))
    here = block.features == number
    values[row[here]] = block.values[here]
    return values


def stream(kind: str = "dense", targets: str = "two", n: int = 300, seed: int = 0) -> Stream:
    """A stream of rows of a kind, with two or three classes, a third class that comes late, or numbers."""
    rng = np.random.default_rng(seed)
    blocks = KINDS[kind](rng, n)
    signal = np.concatenate([_signal(block) for block in blocks]) + 0.5 * rng.normal(size=n)
    starts = [0, *np.cumsum([len(_column(block, 1)) for block in blocks]).tolist()]
    weight = np.ones(n)
    if targets == "numbers":
        return Stream(blocks, starts, (100.0 + 10.0 * signal).tolist(), weight, "regression")
    codes = (signal > 0.0).astype(int)
    if targets != "two":
        late = signal > 1.0
        late[: LATE + 20 if targets == "late" else 0] = False
        codes[late] = 2
    return Stream(blocks, starts, [("a", "b", "c")[code] for code in codes.tolist()], weight, "classification")


def blank(rows: Stream, **options: Any) -> Model:
    """A model that has seen nothing."""
    return Model(rows.task, n_features=N_FEATURES, **options)


def learned(rows: Stream, size: int = 10**6, **options: Any) -> tuple[Model, np.ndarray]:
    """A model that learned a stream in pieces of so many rows, and the loss of each row."""
    model, losses = blank(rows, **options), []
    for X, y, weight in rows.pieces(size):
        losses.append(model.learn(X, y, weight)[1])
    return model, np.concatenate(losses)


def bytes_of(model: Any) -> str:
    """A digest of all that a file would hold."""
    arrays, header = model.save_state()
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def differences(model: Any, other: Any) -> list[str]:
    """The names of what two models hold differently."""
    (arrays, header), (others, other_header) = model.save_state(), other.save_state()
    names = [name for name in {**arrays, **others} if not _is_same(arrays.get(name), others.get(name))]
    return sorted(names) + [f"header: {name}" for name in header if header[name] != other_header.get(name)]


def _is_same(array: Any, other: Any) -> bool:
    if array is None or other is None or array.shape != other.shape:
        return False
    return bool(np.ascontiguousarray(array).tobytes() == np.ascontiguousarray(other).tobytes())


def restored(model: Model) -> Model:
    """The model that a file of this one would hold."""
    arrays, header = model.save_state()
    return restored_model({name: np.array(a) for name, a in arrays.items()}, json.loads(json.dumps(header)))

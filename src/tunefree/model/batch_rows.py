"""All rows as matrices, for methods that need the exact gradient of the loss.

Rows are kept block by block in single precision: as arrays if they are dense, else as sparse matrices, with the
constant in column 0. Each block's part of the gradient is computed by itself, in threads. Blocks are dealt to a number
of sums that depends on the data only, and these are added in a fixed order. So the number of threads changes no bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tunefree.core import compiled, threads
from tunefree.core.numbers import clip
from tunefree.core.rows import Dense, Sparse, Table, entry, n_entries, n_rows, numbers_alone, row, size
from tunefree.losses.linked import slopes_in_margins
from tunefree.losses.objectives import measured, predictions_of

PIECE = 4096  # rows of a block, however rows come
LARGEST = 1e38  # of an entry
MOST_SUMS = 16  # into which blocks are dealt
MOST_NUMBERS = 2**26  # in all sums together


class Block(NamedTuple):
    """Some of the rows."""

    rows: Any  # (n, d) float32, an array or a sparse matrix
    y: np.ndarray  # (n,) targets as the objective takes them
    weight: np.ndarray  # (n,) sample weights


class BatchRows:
    """Rows of one view, with their targets.

    Parameters
    ----------
    blocks : iterable of (block of rows, targets, sample weights)
    n_features : int
    n_outputs : int
    """

    def __init__(self, blocks: Iterable[tuple[Any, np.ndarray, np.ndarray]], n_features: int, n_outputs: int) -> None:
        self.n_features, self.n_outputs = n_features, n_outputs
        self.blocks = list(_in_pieces(Block(matrix(X, n_features), y, weight) for X, y, weight in blocks))

    @property
    def n_rows(self) -> int:
        """Rows in all."""
        return sum(len(block.y) for block in self.blocks)

    @property
    def work(self) -> float:
        """What a gradient costs, in multiplications of sparse entries; those of arrays take an eighth of the time."""
        entries = (b.rows.nnz if sparse.issparse(b.rows) else b.rows.size / 8 for b in self.blocks)
        return float(max(sum(entries), 1.0) * self.n_outputs)

    @property
    def weight(self) -> float:
        """The sum of the sample weights."""
        return float(sum(block.weight.sum() for block in self.blocks))

    def extended(self, other: BatchRows) -> BatchRows:
        """These rows and others."""
        made = BatchRows((), self.n_features, self.n_outputs)
        made.blocks = list(_in_pieces([*self.blocks, *other.blocks]))
        return made

    def sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """The largest absolute value (d,) of each column, and the mean of its squares."""
        largest, squares = np.zeros(self.n_features), np.zeros(self.n_features)
        for rows, _, _ in self.blocks:
            np.maximum(largest, largest_of(rows), out=largest)
        inverse = inverses(largest)
        for rows, _, _ in self.blocks:
            squares += squares_of(rows, inverse)
        return largest, squares * largest**2 / max(self.n_rows, 1)

    def gradient(self, objective: Any, weights: np.ndarray, inverse: np.ndarray) -> tuple[float, np.ndarray]:
        """The sum of the losses, times sample weights, and its gradient (d, K).

        Parameters
        ----------
        objective : objective
        weights : (d, K) array
            Of the columns times ``inverse`` (d,).
        """
        by_column = (weights * inverse[:, None]).astype(np.float32)
        n_sums = int(np.clip(MOST_NUMBERS // weights.size, 1, min(MOST_SUMS, len(self.blocks))))
        losses, sums = np.zeros(n_sums), [np.zeros(0)] * n_sums

        def add(number: int) -> None:
            for block in self.blocks[number::n_sums]:
                loss, slopes = _slopes(objective, block, block.rows @ by_column)
                losses[number] += loss
                part = block.rows.T @ slopes
                sums[number] = part if not sums[number].size else sums[number] + part

        with threads.one_for_products():
            threads.each(add, [(number,) for number in range(n_sums)], self.n_rows)
        total = sums[0].astype(np.float64)
        for part in sums[1:]:
            total += part
        return float(losses.sum()), total * inverse[:, None]

    def predictions(self, objective: Any, weights: np.ndarray, inverse: np.ndarray) -> np.ndarray:
        """What the weights predict of the rows, (n, K)."""
        by_column = (weights * inverse[:, None]).astype(np.float32)
        with threads.one_for_products():
            margins = [(block.rows @ by_column).astype(np.float64) for block in self.blocks]
        return predictions_of(objective, np.concatenate(margins))

    def limits(self, objective: Any) -> tuple[float, float]:
        """The range of the numbers to predict, to which mixtures clip predictions; of classes there is none."""
        if objective.task == "classification":
            return -np.inf, np.inf
        y = np.concatenate([block.y[block.weight > 0.0] for block in self.blocks])
        return float(y.min(initial=np.inf)), float(y.max(initial=-np.inf))

    def loss(
        self, objective: Any, weights: np.ndarray, inverse: np.ndarray, limits: tuple[float, float] = (-np.inf, np.inf)
    ) -> float:
        """The mean loss of the rows, of predictions that are clipped to limits."""
        y, weight = (np.concatenate([block[field] for block in self.blocks]) for field in (1, 2))
        predictions = np.clip(self.predictions(objective, weights, inverse), *limits)
        return float(np.average(measured(objective, y, predictions), weights=weight))


def _in_pieces(blocks: Iterable[Block]) -> Iterator[Block]:
    """The same rows in blocks of PIECE, the last one excepted."""
    waiting: list[Block] = []
    filled = 0
    for block in blocks:
        start = 0
        while start < len(block.y):
            own = block if start == 0 and filled + len(block.y) <= PIECE else _cut(block, start, start + PIECE - filled)
            waiting.append(own)
            start, filled = start + len(own.y), filled + len(own.y)
            if filled == PIECE:
                yield _joined(waiting)
                waiting, filled = [], 0
    if waiting:
        yield _joined(waiting)


def _cut(block: Block, start: int, stop: int) -> Block:
    return Block(*(field[start:stop] for field in block))


def _joined(blocks: list[Block]) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    rows = [block.rows for block in blocks]
    together = sparse.vstack(rows, format="csr") if sparse.issparse(rows[0]) else np.concatenate(rows)
    return Block(together, *(np.concatenate([block[field] for block in blocks]) for field in (1, 2)))


def _slopes(objective: Any, block: Block, margins: np.ndarray) -> tuple[float, np.ndarray]:
    """The sum of the losses of a block, and their slopes (n, K) in the margins."""
    loss, slopes = slopes_in_margins(objective, block.y, block.weight, margins.astype(np.float64))
    return loss, slopes.astype(np.float32)


def inverses(numbers: np.ndarray) -> np.ndarray:
    """1 over numbers, 0 for those that are 0."""
    return np.divide(1.0, numbers, out=np.zeros(len(numbers)), where=numbers > 0.0)


@singledispatch
def matrix(X: Any, n_features: int) -> Any:
    """A block of rows as a matrix (n, d) in single precision, the constant in column 0."""
    raise TypeError(f"{type(X).__name__} is not a block of rows")


@matrix.register(Dense)
def _of_dense(X: Dense, n_features: int) -> Any:
    made = np.zeros((n_rows(X), n_features), np.float32)
    made[:, 0] = X.constant
    made[:, 1 : 1 + X.values.shape[1]] = np.clip(X.values, -LARGEST, LARGEST)
    return made


@matrix.register(Sparse)
def _of_sparse(X: Sparse, n_features: int) -> Any:
    return _compressed(X, n_features)


@matrix.register(Table)
def _of_table(X: Table, n_features: int) -> Any:
    alone = numbers_alone(X)
    return _compressed(X, n_features) if alone is None else matrix(alone, n_features)


def _compressed(X: Any, n_features: int) -> Any:
    """Sparse rows; places in half the memory where they allow it, since products take as long as reading these does."""
    n, most = n_rows(X), n_rows(X) + n_entries(X) + 1  # one more for an entry that is overwritten
    starts, places, values = np.zeros(n + 1, np.int64), np.empty(most, np.int32), np.empty(most, np.float32)
    used = _write(X, n_features, starts, places, values)
    small = np.int32 if used <= np.iinfo(np.int32).max else np.int64
    indices, pointers = places[:used].astype(small, copy=False), starts.astype(small)
    return sparse.csr_array((values[:used], indices, pointers), (n, n_features))


@compiled.entry
def _write(X, n_features, starts, places, values):
    at = 0
    for i in range(n_rows(X)):
        x = row(X, i)
        for e in range(size(x)):
            j, x_j = entry(x, e)
            places[at], values[at] = j, clip(x_j, LARGEST)
            at += 1 if x_j != 0.0 and j < n_features else 0
        starts[i + 1] = at
    return at


def largest_of(rows: Any) -> np.ndarray:
    """The largest absolute value (d,) of each column."""
    if sparse.issparse(rows):
        found = np.zeros(rows.shape[1], rows.dtype)  # of one type, NumPy is ten times faster
        np.maximum.at(found, rows.indices, np.abs(rows.data))
        return found.astype(np.float64)
    return np.abs(rows).max(axis=0, initial=0.0)


def squares_of(rows: Any, inverse: np.ndarray) -> np.ndarray:
    """Sums of squares of columns, in units of which the inverses are given."""
    if sparse.issparse(rows):
        return np.bincount(rows.indices, (rows.data * inverse[rows.indices]) ** 2, minlength=rows.shape[1])
    scaled = rows * inverse.astype(np.float32)
    return np.einsum("ij,ij->j", scaled, scaled, dtype=np.float64)

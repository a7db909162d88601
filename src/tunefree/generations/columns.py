"""Rows as columns for trees: one matrix of numbers, whatever holds the rows.

A dense number is a column under the number of its feature, as is each feature of sparse rows while there are few. A
column of one-hot codes is a column of feature ids, a category without an order. Missing is NaN. Words of texts are not
for trees.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np

from tunefree.core.kernels import kernel
from tunefree.core.numbers import MOST, clip
from tunefree.core.rows import Block, n_rows, row_sums
from tunefree.generations.reservoir import hashed_values

MOST_COLUMNS = 1024  # beyond which rows are too wide for trees
TURN = 2**31  # beyond all ids of features
NOTHING = np.uint64(0x2545F4914F6CDD1D)  # digest of a row without values; 0 is an empty place of a table


class Columns:
    """The columns that rows have had so far, each under a key.

    Keys are the numbers of features, and -1 - q for the column of codes number q. A category is the id of its feature,
    to which TURN is added each time that the id is given to another feature.

    Attributes
    ----------
    keys : list of int
        In the order in which columns came.
    fills : list of float
        What rows have in each where it is not named: 0 where it came in sparse rows, else NaN, nothing known.
    turns : (d,) array of int64
        How often each of the first features was forgotten.

    Examples
    --------
    >>> from tunefree.core.rows import sparse, table
    >>> columns = Columns()
    >>> columns.matrix(table([[5.0]], [1], [[7]]), np.array([True]))
    array([[5., 7.]])
    >>> columns.keys
    [1, -1]
    """

    def __init__(
        self, keys: list[int] | None = None, fills: list[float] | None = None, turns: np.ndarray | None = None
    ) -> None:
        self.keys, self.fills = list(keys or []), list(fills or [])
        self.turns = np.zeros(0, np.int64) if turns is None else turns
        self._place = {key: place for place, key in enumerate(self.keys)}
        self._together: dict[bytes, Any] = {}  # places of columns that came together, by their keys

    @property
    def is_for_trees(self) -> bool:
        """Whether rows have columns, and not too many."""
        return 0 < len(self.keys) <= MOST_COLUMNS

    def forget(self, features: np.ndarray) -> None:
        """Let features be others from here on: trees, and rows that are kept, do not take them for those before."""
        missing = int(features.max(initial=-1)) + 1 - len(self.turns)
        self.turns = np.append(self.turns, np.zeros(max(missing, 0), np.int64))
        self.turns[features] += 1

    def features(self, matrix: np.ndarray) -> np.ndarray:
        """A matrix (n, c) in which categories are the ids of their features; NaN where these were forgotten."""
        if not len(self.turns):
            return matrix
        of_features, is_of_codes = matrix.copy(), np.array(self.keys[: matrix.shape[1]]) < 0
        turns, ids = np.divmod(np.nan_to_num(matrix[:, is_of_codes]).astype(np.int64), TURN)
        of_features[:, is_of_codes] = np.where((ids > 0) & (turns == self._turns_of(ids)), ids, np.nan)
        return of_features

    def _turns_of(self, ids: np.ndarray) -> np.ndarray:
        turns: np.ndarray = self.turns.take(ids, mode="clip")
        return np.where(ids < len(self.turns), turns, 0)

    def places(self, keys: np.ndarray) -> list[int]:
        """Where the columns with these keys are among those so far."""
        return [self._place[key] for key in keys.tolist()]

    def matrix(self, X: Block, learned: np.ndarray | None = None) -> np.ndarray:
        """The columns (n, c) of a block of rows, with those at the end that rows which are learned, (n,), bring."""
        if learned is not None and learned.any():
            for keys in (X.columns, -1 - X.code_columns):
                if keys.tobytes() not in self._together:
                    self._add(keys.tolist(), np.nan)
            if X.values.size and not X.is_table:
                of_learned = X.features[np.repeat(learned, np.diff(X.pointers))]
                self._add(list(range(1, 1 + _n_word_columns(of_learned))), 0.0)
        matrix = np.empty((n_rows(X), len(self.fills)))
        matrix[:] = self.fills
        for keys, values in self._columns_of(X):
            at, known = self._at(keys)
            matrix[:, at] = values if known is None else values[:, known]
        return matrix

    def _at(self, keys: np.ndarray) -> tuple[Any, list[int] | None]:
        """Where columns with these keys are, and which of them are known; None if all are."""
        at = self._together.get(keys.tobytes())
        if at is not None:
            return at, None
        known = [k for k, key in enumerate(keys.tolist()) if key in self._place]
        places = self.places(keys[known])
        if len(known) < len(keys):
            return places, known
        is_run = places == list(range(places[0], places[0] + len(places))) if places else True  # as they came
        at = slice(*(places[0], places[0] + len(places)) if places else (0, 0)) if is_run else places
        self._together[keys.tobytes()] = at
        return at, None

    def _columns_of(self, X: Block) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Keys and values (n, k) of the columns of a block."""
        yield X.columns, X.numbers
        if X.codes.size:
            ids = X.codes.astype(np.int64)
            of_codes = ids + TURN * self._turns_of(ids) if len(self.turns) else ids
            yield -1 - X.code_columns, np.where(ids > 0, of_codes, np.nan)
        if X.values.size and not X.is_table:
            yield _of_words(X)

    def _add(self, keys: list[int], fill: float) -> None:
        """Know columns, of which rows that do not name them have the fill."""
        for key in keys:
            if key not in self._place and len(self.keys) <= MOST_COLUMNS:
                self._place[key] = len(self.keys)
                self.keys.append(key)
                self.fills.append(fill)


def is_categorical(keys: np.ndarray) -> np.ndarray:
    """Which columns hold ids of categories."""
    return keys < 0


def _n_word_columns(features: np.ndarray) -> int:
    """How many columns words with these features need: each feature up to the largest has one."""
    return min(int(features.max(initial=0)), MOST_COLUMNS + 1)


def _of_words(X: Block) -> tuple[np.ndarray, np.ndarray]:
    """Keys and values (n, k) of the columns of words of a block."""
    words = np.zeros((n_rows(X), _n_word_columns(X.features)))
    row, is_near = np.repeat(np.arange(n_rows(X)), np.diff(X.pointers)), X.features <= words.shape[1]
    words[row[is_near], X.features[is_near] - 1] = X.values[is_near]
    return np.arange(1, 1 + words.shape[1], dtype=np.int32), words


def _mixed(bits):
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def digests_of_words(X: Block) -> np.ndarray:
    """A 64-bit digest of the words of each row, the same in whatever order they are."""
    return row_sums(hashed_values(X.features, X.values), X.pointers)


@kernel
def _write_digests(
    matrix: Annotated[np.ndarray, "float64[rows, columns]"],
    keys: Annotated[np.ndarray, "uint64[columns]"],
    digests: Annotated[np.ndarray, "uint64[rows]"],
) -> None:
    for i in range(len(matrix)):
        total = NOTHING
        for c in range(len(keys)):
            if matrix[i, c] < 0.0 or matrix[i, c] > 0.0:  # neither 0 nor missing
                bits = np.float64(clip(matrix[i, c], MOST)).view(np.uint64)
                total += _mixed(bits + keys[c] * np.uint64(0x9E3779B97F4A7C15))
        digests[i] = total


def digests_of(matrix: np.ndarray, keys: list[int]) -> np.ndarray:
    """A 64-bit digest of each row (n, c), the same whatever columns there are in which nothing is known, or 0.

    Examples
    --------
    >>> one = digests_of(np.array([[3.0, np.nan]]), [1, -1])
    >>> bool(one[0] == digests_of(np.array([[0.0, 3.0]]), [5, 1])[0])
    True
    """
    digests = np.empty(len(matrix), np.uint64)
    _write_digests(np.ascontiguousarray(matrix), np.array(keys, np.int64).view(np.uint64), digests)
    return digests

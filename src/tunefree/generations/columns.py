"""Rows as columns for trees: one matrix of numbers for all representations of rows.

The key of a dense number is its feature, and so is the key of a number in sparse rows. A column of one-hot codes is a
categorical column of feature ids, without an order, and so is a bundle of features of sparse rows
(:mod:`tunefree.generations.bundles`). Missing values are NaN. Words of texts do not become columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated

import numpy as np

from tunefree.compiled.functions import compiled
from tunefree.core.errors import ModelError
from tunefree.core.numbers import MOST, clip
from tunefree.core.part import LEARNED, Part, argument, array, child, number, scratch
from tunefree.core.rows import Block, n_rows, row_sums, sparse
from tunefree.core.schema import COUNT, Flag, Number, Sequence
from tunefree.generations.bundles import UNLIMITED, Bundles
from tunefree.generations.reservoir import GOLDEN, hashed, hashed_values, mixed

MOST_COLUMNS = 2**14  # so that the fewest rows kept have about as many numbers as all rows of few columns
MOST_FEATURES = 2**10  # features of sparse rows that are a column each; more features are in bundles
FILLED = 0.5  # smallest share of the rows that have a value in a filled column of a number or a bundle
FEW_ROWS = 40  # fewer rows do not show yet whether they are texts
ROWS_OF_COLUMN = 20  # fewest rows of a feature, on average over a bundle: as many as in a leaf
PART_OF_FILLED = 0.5  # smallest part of the entries in filled columns; with less, rows are texts
MOST_TOGETHER = 64  # sets of keys whose column indices are cached
TURN = 2**31  # larger than all feature ids
NOTHING = np.uint64(0x2545F4914F6CDD1D)  # digest of a row without values; 0 is an empty entry of a table
BUNDLE = 2**32  # a bundle of the features from a up to b has the key -(a * BUNDLE + b)


class Columns(Part):
    """The columns of the rows so far, each with a key.

    Keys are feature ids for numbers, -1 - q for the column q of codes, and below -BUNDLE for bundles. A category is the
    id of its feature, to which TURN is added each time that the id is given to another feature. ``fills`` are the
    values of rows in columns that they lack: 0 for columns of sparse rows, else NaN. ``turns`` counts how often each of
    the first features was forgotten, and ``n_unseen`` the columns, or features of sparse rows, beyond the limits.
    ``last`` is the last feature of sparse rows that may be a column.

    >>> from tunefree.core.rows import sparse, table
    >>> columns = Columns()
    >>> columns.matrix(table([[5.0]], [1], [[7]]), np.array([True]))
    array([[5., 7.]])
    >>> columns.keys
    [1, -1]
    """

    last = argument()
    keys = number(LEARNED, Sequence(Number(-(2**63), 2**31 - 1, whole=True), MOST_COLUMNS))
    fills = number(
        LEARNED,
        Sequence(Flag()),
        lambda columns: [fill == 0.0 for fill in columns.fills],
        lambda columns, are_sparse: setattr(columns, "fills", [0.0 if one else math.nan for one in are_sparse]),
    )
    turns = array("int64", (None,), LEARNED, low=0, below=2**21)
    bundles = child(Bundles, LEARNED)
    n_unseen = number(LEARNED, COUNT)
    _index_of, _numbers, _bundles, _together = scratch(), scratch(), scratch(), scratch()

    def __init__(self, keys: Iterable[int] = (), fills: Iterable[float] = (), last: int = UNLIMITED) -> None:
        self.keys, self.fills, self.last = list(keys), list(fills), last
        self.turns, self.bundles, self.n_unseen = np.zeros(0, np.int64), Bundles(), 0
        self.complete()

    def check(self) -> None:
        """Raise a ModelError unless each column has a unique key, and a fill value."""
        if not len({*self.keys}) == len(self.keys) == len(self.fills):
            raise ModelError("columns have not a key each")

    def complete(self) -> None:
        """Index the columns by their keys, columns of numbers by their sorted features, and the bundles."""
        self._index_of = {key: column for column, key in enumerate(self.keys)}
        pairs = sorted((key, column) for key, column in self._index_of.items() if key > 0)
        self._numbers = np.array(pairs, np.int64).reshape(-1, 2)  # feature and column
        self._bundles = [(*features_of(key), column) for key, column in self._index_of.items() if is_bundle(key)]
        self._together = {}  # cache: indices of columns that come together, by their keys

    def forget(self, features: np.ndarray) -> None:
        """Forget features, whose ids may be given to others: trees and kept rows lose their columns."""
        missing = int(features.max(initial=-1)) + 1 - len(self.turns)
        self.turns = np.append(self.turns, np.zeros(max(missing, 0), np.int64))
        self.turns[features] += 1

    def digests(self, X: Block, matrix: np.ndarray) -> np.ndarray:
        """Digests (n,) of the observations of rows: their columns (n, c), and words without a column."""
        if not (X.is_table or X.numbers.shape[1]):
            return digests_of_words(X) + NOTHING  # independent of the bundles
        digests = digests_of(matrix, self.keys)
        return digests + digests_of_words(X) if len(X.values) else digests

    def without_forgotten(self, matrix: np.ndarray) -> np.ndarray:
        """A matrix (n, c) with NaN for the categories of forgotten features."""
        if not len(self.turns):
            return matrix
        remaining, is_of_codes = matrix.copy(), np.array(self.keys[: matrix.shape[1]]) < 0
        categories = matrix[:, is_of_codes]
        is_known = categories == self._categories(np.nan_to_num(categories).astype(np.int64) % TURN)
        remaining[:, is_of_codes] = np.where(is_known, categories, np.nan)
        return remaining

    def places(self, keys: np.ndarray) -> list[int]:
        """The indices of the columns with these keys."""
        return [self._index_of[key] for key in keys.tolist()]

    def matrix(self, X: Block, learned: np.ndarray | None = None) -> np.ndarray:
        """The columns (n, c) of a block of rows; new columns of the learned rows, a mask (n,), are added at the end."""
        if learned is not None and learned.any():
            for keys in (X.columns, -1 - X.code_columns):
                if keys.tobytes() not in self._together:
                    self._add(keys.tolist(), np.nan)
            if X.values.size and (len(X.late) or not X.is_table):
                self._learn_words(X, learned)
        matrix = np.empty((n_rows(X), len(self.fills)))
        matrix[:] = self.fills
        self._write_dense(X.columns, X.numbers, matrix)
        if X.codes.size:
            ids = X.codes.astype(np.int64)
            self._write_dense(-1 - X.code_columns, np.where(ids > 0, self._categories(ids), np.nan), matrix)
        if X.values.size:
            self._write_words(X, matrix)
        return matrix

    def _write_dense(self, keys: np.ndarray, values: np.ndarray, matrix: np.ndarray) -> None:
        """Write values (n, k) to the columns with these keys; unknown keys are left out."""
        indices = self._together.get(keys.tobytes())
        if indices is None:
            known = [k for k, key in enumerate(keys.tolist()) if key in self._index_of]
            columns = self.places(keys[known])
            run = range(columns[0], columns[0] + len(columns)) if columns else range(0)
            indices = slice(run.start, run.stop) if columns == [*run] else columns
            if len(known) < len(keys):
                values = values[:, known]
            else:
                if len(self._together) >= MOST_TOGETHER:
                    self._together.clear()
                self._together[keys.tobytes()] = indices
        matrix[:, indices] = values

    def _categories(self, ids: np.ndarray) -> np.ndarray:
        if not len(self.turns):
            return ids
        turns: np.ndarray = self.turns.take(ids, mode="clip")
        return ids + TURN * np.where(ids < len(self.turns), turns, 0)

    def _learn_words(self, X: Block, learned: np.ndarray) -> None:
        """Add the columns of words: late numbers of tables, and features of sparse rows in no bundle yet."""
        row = np.repeat(np.arange(n_rows(X)), np.diff(X.pointers))
        counts = learned[row] & (X.values != 0.0)
        row, features, values = row[counts], X.features[counts], X.values[counts]
        if X.is_table:
            features = features[np.isin(features, X.late)]
        else:
            self.bundles.add(int(np.count_nonzero(learned)), row, features, values)
        for start, stop, _ in self._bundles:
            features = features[(features < start) | (features >= stop)]
        room = max(MOST_FEATURES - self.fills.count(0.0), 0)
        new_features, first = np.unique(features[features <= self.last], return_index=True)
        self._add(new_features[np.argsort(first)].tolist(), room=room)

    def _write_words(self, X: Block, matrix: np.ndarray) -> None:
        """Write the words of a block to their columns; in a bundle, the first feature of a row counts."""
        if X.is_table and 0.0 not in self.fills:
            return
        order = np.argsort(X.features, kind="stable")
        order = order[X.values[order] != 0.0]
        row = np.repeat(np.arange(n_rows(X)), np.diff(X.pointers))[order]
        features, values = X.features[order], X.values[order]
        numbers, columns = self._numbers.T
        if not X.is_table:
            matrix[:, columns] = 0.0
        positions = np.searchsorted(numbers, features)
        is_number = numbers.take(positions, mode="clip") == features if len(numbers) else np.zeros(len(positions), bool)
        matrix[row[is_number], columns[positions[is_number]]] = values[is_number]
        for start, stop, column in self._bundles:
            inside = slice(*np.searchsorted(features, (start, stop)))
            matrix[row[inside][::-1], column] = self._categories(features[inside].astype(np.int64))[::-1]

    def grown_on(self) -> list[int] | None:
        """The keys of the columns for new trees; None for texts.

        Few rows with more features than rows may be texts, so trees are not grown yet. With many features, a bundle
        that many rows have is one column if its categories have enough rows. Each other feature with enough rows is a
        column, up to a limit on their number.
        """
        bundles = self.bundles
        features = np.flatnonzero(bundles.counts)
        are_many = len(bundles.counts) > 1 + MOST_FEATURES
        if not are_many and (len(features) <= bundles.rows or bundles.rows >= FEW_ROWS):
            return features.tolist() or self.keys
        starts, stops, shares, sizes = bundles.runs()
        is_filled = shares >= FILLED
        if shares[is_filled].sum() < PART_OF_FILLED * shares.sum():
            return None if are_many else []
        if not are_many:
            return features.tolist()
        is_one = is_filled & ((sizes == 1) | (shares * bundles.rows >= ROWS_OF_COLUMN * sizes))
        spans = zip(starts.tolist(), stops.tolist(), strict=True)
        runs = [start if stop == start + 1 else -(start * BUNDLE + stop) for start, stop in spans]
        self._add([run for run, is_kept in zip(runs, is_filled, strict=True) if is_kept])  # others follow from these
        features = features[~is_one[np.searchsorted(starts, features, "right") - 1]]
        features = features[bundles.counts[features] >= ROWS_OF_COLUMN]
        is_new = np.array([feature not in self._index_of for feature in features.tolist()], bool)
        order = np.lexsort((-bundles.counts[features], is_new))[:MOST_FEATURES]
        self.n_unseen, features = len(features) - len(order), np.sort(features[order])
        keys = [run for run, is_column in zip(runs, is_one, strict=True) if is_column] + features.tolist()
        self._add(keys)
        return [key for key in keys if key in self._index_of]

    def completed(self, matrix: np.ndarray) -> np.ndarray:
        """Rows (n, c) with the first keys, extended to all keys: later numbers and bundles follow from earlier ones."""
        n_before = matrix.shape[1]
        if n_before == len(self.keys):
            return matrix
        completed = np.tile(self.fills, (len(matrix), 1))
        completed[:, :n_before] = matrix
        spans = np.array([features_of(key) for key in self.keys], np.int64)
        for column in range(n_before, len(self.keys)):
            start, stop = spans[column]
            overlapping = np.flatnonzero((spans[:n_before, 0] < stop) & (spans[:n_before, 1] > start))
            for source in overlapping[np.argsort(-spans[overlapping, 0], kind="stable")]:
                ids = matrix[:, source]
                if self.keys[source] > 0:
                    (category,) = self._categories(spans[source, :1])
                    ids = np.where(ids != 0.0, category, np.nan)
                inside = (ids % TURN >= start) & (ids % TURN < stop)
                completed[inside, column] = 1.0 if self.keys[column] > 0 else ids[inside]
        return completed

    def words_of(self, matrix: np.ndarray) -> Block:
        """Sparse rows restored from rows (n, c), as far as their features are columns of numbers or in bundles."""
        keys, known = np.array(self.keys, np.int64), np.nan_to_num(matrix)
        are_numbers, are_bundles = np.array(self.fills) == 0.0, keys < -BUNDLE
        row, column = np.nonzero(known * are_numbers)
        bundle_rows, bundle_columns = np.nonzero(known * are_bundles)
        categories = known[bundle_rows, bundle_columns].astype(np.int64) % TURN
        entries = np.concatenate([row * BUNDLE + keys[column], bundle_rows * BUNDLE + categories])
        values = np.concatenate([known[row, column], np.ones(len(categories))])
        entries, first = np.unique(entries, return_index=True)  # a feature that was a number may be in a bundle, too
        pointers = np.searchsorted(entries, BUNDLE * np.arange(len(matrix) + 1))
        return sparse(pointers, entries % BUNDLE, values[first])

    def _add(self, keys: list[int], fill: float | None = None, room: int | None = None) -> None:
        """Add columns, or a sample of too many by hash; rows without them get the fill value, by default 0 or NaN."""
        new = [key for key in dict.fromkeys(keys) if key not in self._index_of][:room]
        room = MOST_COLUMNS - len(self.keys)
        if len(new) > room:
            self.n_unseen = max(self.n_unseen, len(new) - room)
            chosen = np.argsort(hashed(np.array(new, np.int64)), kind="stable")[:room]
            new = [new[k] for k in np.sort(chosen)]
        if new:
            self.keys += new
            self.fills += [(0.0 if key > 0 else np.nan) if fill is None else fill for key in new]
            self.complete()


def is_categorical(keys: np.ndarray) -> np.ndarray:
    """A mask of the categorical columns."""
    return keys < 0


def is_bundle(key: int) -> bool:
    """Whether a key belongs to a bundle."""
    return key < -BUNDLE


def features_of(key: int) -> tuple[int, int]:
    """The first feature and the end of the features of a number or a bundle; (0, 0) for a column of codes.

    >>> features_of(7), features_of(-(7 * BUNDLE + 9)), features_of(-1)
    ((7, 8), (7, 9), (0, 0))
    """
    if key > 0:
        return key, key + 1
    first, end = divmod(-key, BUNDLE)
    return (first, end) if first else (0, 0)


def digests_of_words(X: Block) -> np.ndarray:
    """A 64-bit digest of the words of each row, which does not depend on their order."""
    return row_sums(hashed_values(X.features, X.values), X.pointers)


@compiled
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
                total += mixed(bits + keys[c] * GOLDEN)
        digests[i] = total


def digests_of(matrix: np.ndarray, keys: list[int]) -> np.ndarray:
    """A 64-bit digest of each row (n, c), which does not depend on columns in which it is missing or 0.

    >>> one = digests_of(np.array([[3.0, np.nan]]), [1, -1])
    >>> bool(one[0] == digests_of(np.array([[0.0, 3.0]]), [5, 1])[0])
    True
    """
    digests = np.empty(len(matrix), np.uint64)
    _write_digests(np.ascontiguousarray(matrix), np.array(keys, np.int64).view(np.uint64), digests)
    return digests

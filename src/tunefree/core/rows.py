"""Rows: blocks of rows from a source, and pairs of features and values for learners.

A :class:`Block` holds rows of dense numbers, one-hot codes and sparse words. An array has numbers only, a sparse matrix
or a text words only, a table all three. :func:`entries_of` converts a block to :class:`Rows`, the form that compiled
code accepts. Feature 0 is the constant (the intercept), so that the number of features may grow along a stream; other
features start at 1. An entry may have the value 0, which means that the feature is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tunefree.core.schema import FROM_ZERO, Limits

FEATURES = Limits(0, "D")  # limits of features in files
_NO_FEATURES, _NO_VALUES = np.zeros(0, np.int32), np.zeros(0)
_NO_FEATURES.flags.writeable = _NO_VALUES.flags.writeable = False


class Block(NamedTuple):
    """A block of rows: numbers, codes and words; an absent kind has width 0."""

    numbers: Annotated[np.ndarray, "float64[n, p]"]
    columns: Annotated[np.ndarray, "int32[p]", FEATURES]  # the feature of each number
    codes: Annotated[np.ndarray, "int32[n, q]", FEATURES]  # the feature with value 1; 0 if missing
    # The column index of each code, ascending; a block need not have all columns.
    code_columns: Annotated[np.ndarray, "int32[q]", FROM_ZERO]
    # Row i has the words pointers[i] .. pointers[i + 1].
    pointers: Annotated[np.ndarray, "int64[n+1]", Limits(ascends_to="words")]
    features: Annotated[np.ndarray, "int32[words]", FEATURES]  # from 1; unique within a row
    values: Annotated[np.ndarray, "float64[words]"]
    constant: Annotated[float, "float64[]"]  # value of feature 0: 1, or 0 without an intercept
    # Whether later blocks may have codes and words where this one has none, and words come from texts.
    is_table: Annotated[bool, "bool[]"]
    # In tables for learning, the features of words that are numbers, ascending.
    late: Annotated[np.ndarray, "int32[late]", FEATURES] = _NO_FEATURES


class Row(NamedTuple):
    """One row for learners: pairs of a feature and its value, including the constant."""

    indices: np.ndarray  # (entries,) uint32; unsigned, so that compiled code skips the check for negative indices
    values: np.ndarray  # (entries,) float64


class Rows(NamedTuple):
    """Rows for compiled code: row i has the entries ``starts[i] .. ends[i]``."""

    starts: Annotated[np.ndarray, "int64[rows]"]
    ends: Annotated[np.ndarray, "int64[rows]"]
    indices: Annotated[np.ndarray, "uint32[entries]"]
    values: Annotated[np.ndarray, "float64[entries]"]


def read_only(array: ArrayLike, dtype: Any) -> np.ndarray:
    """A read-only, C-contiguous view, or a copy if the layout or the dtype requires one."""
    view = np.ascontiguousarray(array, dtype).view()
    view.flags.writeable = False
    return view


def dense(values: ArrayLike, intercept: bool = True) -> Block:
    """Rows of a two-dimensional array; column j becomes feature j + 1."""
    numbers = read_only(values, np.float64)
    n, columns = len(numbers), np.arange(1, numbers.shape[1] + 1, dtype=np.int32)
    words = np.zeros(n + 1, np.int64), _NO_FEATURES, _NO_VALUES
    return Block(numbers, columns, np.empty((n, 0), np.int32), _NO_FEATURES, *words, float(intercept), False)


def sparse(pointers: ArrayLike, features: ArrayLike, values: ArrayLike, intercept: bool = True) -> Block:
    """Compressed sparse rows; ``features`` start at 1 and are unique within a row."""
    words = read_only(pointers, np.int64), read_only(features, np.int32), read_only(values, np.float64)
    n = len(words[0]) - 1
    numbers, codes = np.empty((n, 0)), np.empty((n, 0), np.int32)
    return Block(numbers, _NO_FEATURES, codes, _NO_FEATURES, *words, float(intercept), False)


def words_of(parts: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]], n: int) -> Block:
    """Words (row numbers, features, values) as n sparse rows; each part is sorted by row, and feature 0 is dropped.

    >>> first, second = (np.array([0, 1]), np.array([5, 0]), np.ones(2)), (np.array([0]), np.array([6]), np.ones(1))
    >>> block = words_of([first, second], 2)
    >>> block.pointers, block.features
    (array([0, 2, 2]), array([5, 6], dtype=int32))
    """
    if not parts:
        return sparse(np.zeros(n + 1), [], [])
    rows, features, values = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    if len(parts) > 1:
        order = np.argsort(rows, kind="stable")
        rows, features, values = rows[order], features[order], values[order]
    is_feature = features > 0
    pointers = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(rows[is_feature], minlength=n), out=pointers[1:])
    return sparse(pointers, features[is_feature], values[is_feature])


def table(
    numbers: ArrayLike,
    columns: ArrayLike,
    codes: ArrayLike,
    words: Block | None = None,
    code_columns: ArrayLike | None = None,
    late: ArrayLike = (),
) -> Block:
    """Rows of a table: ``numbers`` (n, p) of features ``columns``, one-hot ``codes`` (n, q), and sparse ``words``.

    ``code_columns`` (q,) are the column indices of the codes, ascending; by default the first q columns. Words with the
    features ``late`` are numbers of columns that appeared later in the stream.
    """
    numbers, codes = read_only(numbers, np.float64), read_only(codes, np.int32)
    words = words_of([], len(numbers)) if words is None else words
    code_columns = read_only(np.arange(codes.shape[1]) if code_columns is None else code_columns, np.int32)
    columns, late = read_only(columns, np.int32), read_only(late, np.int32)
    return Block(numbers, columns, codes, code_columns, words.pointers, words.features, words.values, 1.0, True, late)


def n_rows(X: Block) -> int:
    """Number of rows of a block."""
    return len(X.numbers)


def row_sums(entries: np.ndarray, pointers: np.ndarray) -> np.ndarray:
    """Sums (n,) over the entries of each sparse row, unsigned whole numbers that may wrap around.

    >>> row_sums(np.array([3, 4, 5], np.uint64), np.array([0, 2, 2, 3]))
    array([7, 0, 5], dtype=uint64)
    """
    sums = np.append(np.uint64(0), np.cumsum(entries, dtype=np.uint64))
    totals: np.ndarray = sums[pointers[1:]] - sums[pointers[:-1]]
    return totals


def reach(X: Block) -> int:
    """One more than the largest feature of a block."""
    return 1 + max((int(features.max()) for features in (X.columns, X.codes, X.features) if features.size), default=0)


def entries_of(X: Block | Rows) -> Rows:
    """The rows of a block as pairs of features and values, in their order: constant, numbers, codes, words.

    ``Rows`` are returned unchanged.

    >>> entries = entries_of(table([[1.5], [2.5]], [1], [[3], [0]], sparse([0, 0, 1], [7], [4.0])))
    >>> entries.starts, entries.ends, entries.indices.tolist(), entries.values.tolist()
    (array([0, 3]), array([3, 7]), [0, 1, 3, 0, 1, 0, 7], [1.0, 1.5, 1.0, 1.0, 2.5, 0.0, 4.0])
    """
    if isinstance(X, Rows):
        return X
    n, n_numbers = X.numbers.shape
    width = 1 + n_numbers + X.codes.shape[1]
    features, numbers = np.empty((n, width), np.uint32), np.empty((n, width))
    features[:, 0], numbers[:, 0] = 0, X.constant
    features[:, 1 : 1 + n_numbers], numbers[:, 1 : 1 + n_numbers] = X.columns, X.numbers
    features[:, 1 + n_numbers :], numbers[:, 1 + n_numbers :] = X.codes, X.codes > 0
    if not len(X.values):
        starts = np.arange(n, dtype=np.int64) * width
        return Rows(starts, starts + width, features.reshape(-1), numbers.reshape(-1))
    pointers = X.pointers + width * np.arange(n + 1)
    starts, ends = pointers[:-1], pointers[1:]
    indices, values = np.empty(pointers[-1], np.uint32), np.empty(pointers[-1])
    is_word = np.ones(pointers[-1], bool)
    head = (starts[:, None] + np.arange(width)).reshape(-1)
    indices[head], values[head], is_word[head] = features.reshape(-1), numbers.reshape(-1), False
    indices[is_word], values[is_word] = X.features[: X.pointers[-1]], X.values[: X.pointers[-1]]
    return Rows(starts, ends, indices, values)


def entries_together(parts: Sequence[Rows]) -> Rows:
    """The concatenation of rows, as a copy."""
    sizes = np.cumsum([0, *(len(rows.values) for rows in parts)])[:-1]
    moved = [Rows(X.starts + size, X.ends + size, *X[2:]) for X, size in zip(parts, sizes, strict=True)]
    return Rows(*map(np.concatenate, zip(*moved, strict=True)))


def compressed(X: Block) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The nonzero entries of a block, without the constant, as compressed sparse rows.

    >>> compressed(table([[1.5], [0.0]], [1], [[3], [0]]))
    (array([0, 2, 2]), array([1, 3], dtype=int32), array([1.5, 1. ]))
    """
    rows = entries_of(X)
    is_known = (rows.values != 0.0) & (rows.indices > 0)
    pointers = np.append(0, np.cumsum(is_known))[np.append(0, rows.ends)]
    return pointers, rows.indices[is_known].astype(np.int32), rows.values[is_known]


def part(X: Block, start: int, stop: int) -> Block:
    """Rows ``start`` to ``stop`` of a block, without a copy."""
    if start == 0 and stop >= len(X.numbers):
        return X
    pointers = X.pointers[start : stop + 1]
    first, last = pointers[0], pointers[-1]
    return X._replace(
        numbers=X.numbers[start:stop],
        codes=X.codes[start:stop],
        pointers=pointers - first if first else pointers,
        features=X.features[first:last],
        values=X.values[first:last],
    )


def rows_at(X: Block, indices: np.ndarray) -> Block:
    """The rows of a block at some indices.

    >>> words = sparse([0, 1, 1, 3], [5, 6, 7], [1.0, 2.0, 3.0])
    >>> rows = rows_at(table([[1.0], [2.0], [3.0]], [1], [[2], [3], [4]], words), np.array([0, 2]))
    >>> rows.numbers[:, 0], rows.codes[:, 0], rows.pointers, rows.values
    (array([1., 3.]), array([2, 4], dtype=int32), array([0, 1, 3]), array([1., 2., 3.]))
    """
    pointers, words = np.zeros(len(indices) + 1, np.int64), np.zeros(0, np.int64)
    if len(X.values):
        counts = np.diff(X.pointers)[indices]
        pointers = np.concatenate([[0], np.cumsum(counts)])
        words = np.repeat(X.pointers[indices] - pointers[:-1], counts) + np.arange(pointers[-1])
    return X._replace(
        numbers=X.numbers[indices],
        codes=X.codes[indices],
        pointers=pointers,
        features=X.features[words],
        values=X.values[words],
    )


def together(blocks: list[Block]) -> Block:
    """The vertical concatenation of blocks with the same numeric columns and constant, as a copy."""
    code_columns = np.unique(np.concatenate([X.code_columns for X in blocks]))
    counts = np.concatenate([np.diff(X.pointers) for X in blocks])
    return blocks[0]._replace(
        numbers=np.concatenate([X.numbers for X in blocks]),
        codes=np.concatenate([_codes_of(code_columns, X) for X in blocks]),
        code_columns=code_columns,
        pointers=np.concatenate([[0], np.cumsum(counts)]),
        features=np.concatenate([X.features for X in blocks]),
        values=np.concatenate([X.values for X in blocks]),
        late=np.unique(np.concatenate([X.late for X in blocks])),
    )


def copied(X: Block) -> Block:
    """A copy of a block."""
    return Block._make(value.copy() if isinstance(value, np.ndarray) else value for value in X)


def saved(X: Block) -> dict[str, np.ndarray]:
    """The arrays of a block, for :func:`tunefree.core.part.restored`."""
    return {name: np.asarray(value) for name, value in X._asdict().items()}


def _codes_of(columns: np.ndarray, X: Block) -> np.ndarray:
    """Codes (n, q) of the columns; 0 in columns that the block does not have."""
    if len(columns) == len(X.code_columns):  # no column is missing
        return X.codes
    codes = np.zeros((n_rows(X), len(columns)), np.int32)
    codes[:, np.searchsorted(columns, X.code_columns)] = X.codes
    return codes

"""Rows of numbers, whatever holds them: one small interface over dense, sparse and tabular data.

A block of rows answers ``n_rows(X)`` and ``row(X, i)``; a row answers ``size(x)`` and ``entry(x, k)``, the k-th pair
``(feature, value)``. Every learner is written once against these four. Feature 0 is the constant (the intercept),
so that the number of features may grow along a stream; a block's other features start at 1. Entries of value 0 are
allowed and mean that nothing is known of that feature.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Dense(NamedTuple):
    """Rows of an array."""

    values: np.ndarray  # (n, d) float64, read-only
    constant: float  # value of feature 0: 1, or 0 without an intercept


class DenseRow(NamedTuple):
    """One row of :class:`Dense`."""

    values: np.ndarray  # (d,)
    constant: float


class Sparse(NamedTuple):
    """Compressed sparse rows."""

    pointers: np.ndarray  # (n + 1,) int64: row i has the entries pointers[i] .. pointers[i + 1]
    features: np.ndarray  # (entries,) int32, from 1
    values: np.ndarray  # (entries,) float64
    constant: float


class SparseRow(NamedTuple):
    """One row of :class:`Sparse`."""

    features: np.ndarray  # (entries,)
    values: np.ndarray  # (entries,)
    constant: float


class Table(NamedTuple):
    """Rows of a table: numbers, one-hot codes, and the words of its texts."""

    numbers: np.ndarray  # (n, p) float64
    columns: np.ndarray  # (p,) int32: the feature of each number
    codes: np.ndarray  # (n, q) int32: the feature that is 1, or 0 where nothing is known
    pointers: np.ndarray  # (n + 1,) int64: into the words
    features: np.ndarray  # (words,) int32
    values: np.ndarray  # (words,) float64
    constant: float
    code_columns: np.ndarray  # (q,) int32: which column codes are of, in blocks that may not hold all columns


class TableRow(NamedTuple):
    """One row of :class:`Table`."""

    numbers: np.ndarray  # (p,)
    columns: np.ndarray  # (p,)
    codes: np.ndarray  # (q,)
    features: np.ndarray  # (words,)
    values: np.ndarray  # (words,)
    constant: float


class Row(NamedTuple):
    """One row, as learners see it: pairs of a feature and its value, the constant among them."""

    indices: np.ndarray  # (entries,) uint32; unsigned, so that compiled code need not ask whether one is below 0
    values: np.ndarray  # (entries,) float64


class Rows(NamedTuple):
    """Some rows, as compiled code takes them: row i has the entries ``starts[i] .. ends[i]``.

    A block of any kind becomes such rows by :func:`entries_of`, once for all learners that see it.
    """

    starts: Annotated[np.ndarray, "int64[rows]"]
    ends: Annotated[np.ndarray, "int64[rows]"]
    indices: Annotated[np.ndarray, "uint32[entries]"]
    values: Annotated[np.ndarray, "float64[entries]"]


class OneHot(NamedTuple):
    """Rows of codes alone, as many in each row, and no constant: the leaves that rows reach in trees."""

    codes: np.ndarray  # (n, q) int32: the features that are 1


class OneHotRow(NamedTuple):
    """One row of :class:`OneHot`."""

    codes: np.ndarray  # (q,)


@singledispatch
def n_rows(X: Any) -> int:
    """Number of rows of a block."""
    raise TypeError(f"{type(X).__name__} is not a block of rows")


@singledispatch
def row(X: Any, i: int) -> Any:
    """The i-th row of a block."""
    raise TypeError(f"{type(X).__name__} is not a block of rows")


@singledispatch
def size(x: Any) -> int:
    """Number of entries of a row."""
    raise TypeError(f"{type(x).__name__} is not a row")


@singledispatch
def entry(x: Any, k: int) -> tuple[int, float]:
    """The k-th entry of a row: (feature, value)."""
    raise TypeError(f"{type(x).__name__} is not a row")


@n_rows.register(Dense)
def n_rows_dense(X):
    return len(X.values)


@row.register(Dense)
def row_dense(X, i):
    return DenseRow(X.values[i], X.constant)


@size.register(DenseRow)
def size_dense(x):
    return len(x.values) + 1


@entry.register(DenseRow)
def entry_dense(x, k):
    if k == 0:
        return np.uint32(0), x.constant
    return np.uint32(k), x.values[k - 1]


@n_rows.register(Sparse)
def n_rows_sparse(X):
    return len(X.pointers) - 1


@row.register(Sparse)
def row_sparse(X, i):
    start, stop = X.pointers[i], X.pointers[i + 1]
    return SparseRow(X.features[start:stop], X.values[start:stop], X.constant)


@size.register(SparseRow)
def size_sparse(x):
    return len(x.values) + 1


@entry.register(SparseRow)
def entry_sparse(x, k):
    if k == 0:
        return np.uint32(0), x.constant
    return np.uint32(x.features[k - 1]), x.values[k - 1]


@n_rows.register(Table)
def n_rows_table(X):
    return len(X.numbers)


@row.register(Table)
def row_table(X, i):
    start, stop = X.pointers[i], X.pointers[i + 1]
    return TableRow(X.numbers[i], X.columns, X.codes[i], X.features[start:stop], X.values[start:stop], X.constant)


@size.register(TableRow)
def size_table(x):
    return 1 + len(x.numbers) + len(x.codes) + len(x.values)


@entry.register(TableRow)
def entry_table(x, k):
    if k == 0:
        return np.uint32(0), x.constant
    k -= 1
    if k < len(x.numbers):
        return np.uint32(x.columns[k]), x.numbers[k]
    k -= len(x.numbers)
    if k < len(x.codes):
        code = x.codes[k]
        return np.uint32(code), 1.0 if code > 0 else 0.0
    k -= len(x.codes)
    return np.uint32(x.features[k]), x.values[k]


@n_rows.register(OneHot)
def n_rows_one_hot(X):
    return len(X.codes)


@row.register(OneHot)
def row_one_hot(X, i):
    return OneHotRow(X.codes[i])


@size.register(OneHotRow)
def size_one_hot(x):
    return len(x.codes)


@entry.register(OneHotRow)
def entry_one_hot(x, k):
    return np.uint32(x.codes[k]), 1.0


def read_only(array: ArrayLike, dtype: Any) -> np.ndarray:
    """A read-only, C-contiguous view (a copy only where the layout or type asks for one): the one kind of array that
    enters compiled code, so that each entry point is compiled once and a user's data cannot be changed."""
    view = np.ascontiguousarray(array, dtype).view()
    view.flags.writeable = False
    return view


def dense(values: ArrayLike, intercept: bool = True) -> Dense:
    """Rows of a two-dimensional array; column j becomes feature j + 1."""
    return Dense(read_only(values, np.float64), float(intercept))


def sparse(pointers: ArrayLike, features: ArrayLike, values: ArrayLike, intercept: bool = True) -> Sparse:
    """Compressed sparse rows; ``features`` start at 1 and no row holds a feature twice."""
    return Sparse(
        read_only(pointers, np.int64), read_only(features, np.int32), read_only(values, np.float64), float(intercept)
    )


def table(
    numbers: ArrayLike,
    columns: ArrayLike,
    codes: ArrayLike,
    words: Sparse | None = None,
    code_columns: ArrayLike | None = None,
) -> Table:
    """Rows of a table: ``numbers`` (n, p) of features ``columns``, one-hot ``codes`` (n, q), and sparse ``words``.

    ``code_columns`` (q,) tells which columns the codes are of, ascending; the first q if it is None.
    """
    numbers, codes = read_only(numbers, np.float64), read_only(codes, np.int32)
    if words is None:
        words = sparse(np.zeros(len(numbers) + 1), [], [])
    sources = np.arange(codes.shape[1]) if code_columns is None else code_columns
    of_words = words.pointers, words.features, words.values
    return Table(numbers, read_only(columns, np.int32), codes, *of_words, 1.0, read_only(sources, np.int32))


def entries_of(X: Any) -> Rows:
    """The rows of a block as pairs of features and values, in their order: constant, numbers, codes, words.

    Rows that are such pairs stay as they are.

    Examples
    --------
    >>> entries = entries_of(table([[1.5], [2.5]], [1], [[3], [0]], sparse([0, 0, 1], [7], [4.0])))
    >>> entries.starts, entries.ends, entries.indices.tolist(), entries.values.tolist()
    (array([0, 3]), array([3, 7]), [0, 1, 3, 0, 1, 0, 7], [1.0, 1.5, 1.0, 1.0, 2.5, 0.0, 4.0])
    """
    if isinstance(X, Rows):
        return X
    if isinstance(X, OneHot):
        n, width = X.codes.shape
        starts = np.arange(n, dtype=np.int64) * width
        return Rows(starts, starts + width, X.codes.reshape(-1).astype(np.uint32), np.ones(X.codes.size))
    block = as_table(X)
    n, n_numbers = block.numbers.shape
    width = 1 + n_numbers + block.codes.shape[1]
    features, numbers = np.empty((n, width), np.uint32), np.empty((n, width))
    features[:, 0], numbers[:, 0] = 0, block.constant
    features[:, 1 : 1 + n_numbers], numbers[:, 1 : 1 + n_numbers] = block.columns, block.numbers
    features[:, 1 + n_numbers :], numbers[:, 1 + n_numbers :] = block.codes, block.codes > 0
    if not len(block.values):
        starts = np.arange(n, dtype=np.int64) * width
        return Rows(starts, starts + width, features.reshape(-1), numbers.reshape(-1))
    pointers = block.pointers + width * np.arange(n + 1)
    starts, ends = pointers[:-1], pointers[1:]
    indices, values = np.empty(pointers[-1], np.uint32), np.empty(pointers[-1])
    is_word = np.ones(pointers[-1], bool)
    head = (starts[:, None] + np.arange(width)).reshape(-1)
    indices[head], values[head], is_word[head] = features.reshape(-1), numbers.reshape(-1), False
    indices[is_word], values[is_word] = block.features[: block.pointers[-1]], block.values[: block.pointers[-1]]
    return Rows(starts, ends, indices, values)


def part(X: Any, start: int, stop: int) -> Any:
    """Rows ``start`` to ``stop`` of a block, as a block of the same kind that shares its memory."""
    rows = X._asdict()
    for name in ("values", "numbers", "codes"):
        if name in rows and rows[name].ndim == 2:
            rows[name] = rows[name][start:stop]
    if "pointers" in rows:
        pointers = rows["pointers"][start : stop + 1]
        rows["pointers"] = read_only(pointers - pointers[0], np.int64)
        for name in ("features", "values"):
            rows[name] = rows[name][pointers[0] : pointers[-1]]
    return type(X)(**rows)


def rows_at(X: Any, places: np.ndarray) -> Any:
    """Some rows of a block, as a block of the same kind.

    Examples
    --------
    >>> words = sparse([0, 1, 1, 3], [5, 6, 7], [1.0, 2.0, 3.0])
    >>> found = rows_at(table([[1.0], [2.0], [3.0]], [1], [[2], [3], [4]], words), np.array([0, 2]))
    >>> found.numbers[:, 0], found.codes[:, 0], found.pointers, found.values
    (array([1., 3.]), array([2, 4], dtype=int32), array([0, 1, 3]), array([1., 2., 3.]))
    """
    rows = X._asdict()
    for name in ("values", "numbers", "codes"):
        if name in rows and rows[name].ndim == 2:
            rows[name] = read_only(rows[name][places], rows[name].dtype)
    if "pointers" in rows:
        counts = np.diff(rows["pointers"])[places]
        pointers = np.concatenate([[0], np.cumsum(counts)])
        entries = np.repeat(rows["pointers"][places] - pointers[:-1], counts) + np.arange(pointers[-1])
        rows["pointers"] = read_only(pointers, np.int64)
        for name in ("features", "values"):
            rows[name] = read_only(rows[name][entries], rows[name].dtype)
    return type(X)(**rows)


def together(blocks: list[Any]) -> Any:
    """Blocks of one kind, below each other, in memory of their own."""
    fields = {name: [block._asdict()[name] for block in blocks] for name in blocks[0]._fields}
    if "codes" in fields:  # a chunk has no column of codes that all are unknown
        every = np.unique(np.concatenate(fields["code_columns"])).astype(np.int32)
        fields["codes"] = [_codes_of(every, *own) for own in zip(fields["codes"], fields["code_columns"], strict=True)]
        fields["code_columns"] = [read_only(every, np.int32)]
    if "pointers" in fields:
        counts = np.concatenate([np.diff(pointers) for pointers in fields["pointers"]])
        fields["pointers"] = [np.concatenate([[0], np.cumsum(counts)])]
    same = {name: values[0] for name, values in fields.items() if name in ("columns", "constant", "code_columns")}
    joined = {n: read_only(np.concatenate(v), v[0].dtype) for n, v in fields.items() if n not in same}
    return type(blocks[0])(**joined | same)


def _codes_of(columns: np.ndarray, codes: np.ndarray, code_columns: np.ndarray) -> np.ndarray:
    """Codes (n, q), with 0 for those of the columns that they lack."""
    placed = np.zeros((len(codes), len(columns)), np.int32)
    placed[:, np.searchsorted(columns, code_columns)] = codes
    return placed


@singledispatch
def reach(X: Any) -> int:
    """One more than the highest feature of a block."""
    raise TypeError(f"{type(X).__name__} is not a block of rows")


@reach.register(Dense)
def reach_dense(X):
    return 1 + X.values.shape[1]


@reach.register(Sparse)
def reach_sparse(X):
    return 1 + int(X.features.max(initial=0))


@reach.register(Table)
def reach_table(X):
    return 1 + max(int(features.max(initial=0)) for features in (X.columns, X.codes, X.features))


def rebuilt(kind: str, fields: dict[str, Any]) -> Any:
    """A block of the kind of that name from its fields, as they were saved."""
    made = {"Dense": Dense, "Sparse": Sparse, "Table": Table}[kind]
    return made(**{name: float(v) if v.ndim == 0 else read_only(v, v.dtype) for name, v in fields.items()})


class Parts(NamedTuple):
    """The parts of a block whose scale is the user's: all but one-hot codes."""

    numbers: np.ndarray  # (n, p) dense numbers
    pointers: np.ndarray  # (n + 1,) into the entries
    entries: np.ndarray  # (entries,) sparse values


@singledispatch
def parts(X: Any) -> Parts:
    """The dense numbers and the sparse entries of a block."""
    raise TypeError(f"{type(X).__name__} is not a block of rows")


@singledispatch
def with_parts(X: Any, numbers: np.ndarray, entries: np.ndarray) -> Any:
    """The same rows with other numbers and entries."""
    raise TypeError(f"{type(X).__name__} is not a block of rows")


@parts.register(Dense)
def parts_dense(X):
    return Parts(X.values, read_only(np.zeros(len(X.values) + 1), np.int64), read_only([], np.float64))


@parts.register(Sparse)
def parts_sparse(X):
    return Parts(read_only(np.zeros((n_rows(X), 0)), np.float64), X.pointers, X.values)


@parts.register(Table)
def parts_table(X):
    return Parts(X.numbers, X.pointers, X.values)


@with_parts.register(Dense)
def with_parts_dense(X, numbers, entries):
    return X._replace(values=read_only(numbers, np.float64))


@with_parts.register(Sparse)
def with_parts_sparse(X, numbers, entries):
    return X._replace(values=read_only(entries, np.float64))


@with_parts.register(Table)
def with_parts_table(X, numbers, entries):
    return X._replace(numbers=read_only(numbers, np.float64), values=read_only(entries, np.float64))


@singledispatch
def as_table(X: Any) -> Table:
    """The same rows as a table, whatever holds them."""
    raise TypeError(f"{type(X).__name__} is not a block of rows")


@as_table.register(Dense)
def as_table_dense(X):
    n, d = X.values.shape
    return table(X.values, np.arange(1, d + 1), np.zeros((n, 0)))._replace(constant=X.constant)


@as_table.register(Sparse)
def as_table_sparse(X):
    n = n_rows(X)
    return table(np.zeros((n, 0)), [], np.zeros((n, 0)), X)._replace(constant=X.constant)


@as_table.register(Table)
def as_table_table(X):
    return X


def numbers_alone(X: Any) -> Dense | None:
    """Rows of a table without codes and words as those of an array; None if there are any, or no numbers.

    Examples
    --------
    >>> numbers_alone(table([[1.0, 2.0]], [1, 2], [[0]])).values, numbers_alone(table([[1.0]], [1], [[7]]))
    (array([[1., 2.]]), None)
    """
    given = as_table(X)
    if given.codes.any() or len(given.values) or not given.numbers.shape[1]:
        return None
    return dense(given.numbers)._replace(constant=given.constant)

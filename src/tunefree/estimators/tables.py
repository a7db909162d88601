"""Tables of any columns as rows of features, by the encoder of `tunefree train`.

A table is what has named columns: pandas and polars DataFrames, whatever has Arrow's PyCapsule interface, dicts of
arrays. An estimator that was fitted on one keeps its encoder, which finds columns by their names. Where `fit` sees
numbers only, and none is missing, the rows are an array, so that the model is that of the array. On a stream the first
missing number may come with any later rows, so there rows of numbers are rows of a table too. An array in which numbers
are missing is a table whose columns have numbers for names, from the first such rows on.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse
from sklearn.utils.validation import validate_data

from tunefree.core.errors import DataError
from tunefree.core.rows import Table, part, rows_at, table, together
from tunefree.stream.arrays import of_strings
from tunefree.stream.batch import Columns, Refused
from tunefree.stream.columns import Number, family, string_keys
from tunefree.stream.features import TableEncoder
from tunefree.stream.frames import read_frame
from tunefree.stream.notation import ColumnTypes
from tunefree.stream.texts import Text

NAME = "X"  # what messages call a table
CHUNK_ROWS = 32768  # that are encoded at a time: columns of many short chunks would take long
ROLES = ("categorical_features", "text_features")  # parameters of estimators that say what columns are


class EncodedRows:
    """Rows of a table, which are indexed like those of an array.

    Parameters
    ----------
    block : Table
    encoder : TableEncoder

    Examples
    --------
    >>> from tunefree.core.rows import table
    >>> from tunefree.stream.columns import Category
    >>> encoder = TableEncoder([Category("job")])
    >>> rows = EncodedRows(table(np.zeros((3, 0)), [], [[1], [2], [1]]), encoder)
    >>> rows[1:].block.codes[:, 0], rows[np.array([0, 0])].block.codes[:, 0]
    (array([2, 1], dtype=int32), array([1, 1], dtype=int32))
    """

    def __init__(self, block: Table, encoder: TableEncoder) -> None:
        self.block, self.encoder = block, encoder

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and features without the constant."""
        return len(self.block.numbers), self.encoder.n_features - 1

    def __getitem__(self, places: slice | np.ndarray) -> EncodedRows:
        if isinstance(places, slice):
            start, stop, _ = places.indices(self.shape[0])
            return EncodedRows(part(self.block, start, stop), self.encoder)
        return EncodedRows(rows_at(self.block, places), self.encoder)

    @cached_property
    def keys(self) -> np.ndarray:
        """(d,) uint64: hashes of the names of features, which do not depend on the order of rows."""
        return string_keys(of_strings(self.encoder.names()), 0)


def has_columns(X: Any) -> bool:
    """Whether X is a table; a pandas DataFrame of sparse columns is a sparse matrix.

    Examples
    --------
    >>> has_columns(pa.table({"age": [39]})), has_columns(np.zeros((1, 1))), has_columns([[0.0]])
    (True, False, False)
    """
    if isinstance(X, (np.ndarray, str)) or sparse.issparse(X) or (hasattr(X, "sparse") and X.shape[1]):
        return False
    is_arrow = hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")
    return isinstance(X, Mapping) or (is_arrow and getattr(X, "ndim", 2) == 2)


def is_for_encoder(estimator: Any, X: Any, reset: bool) -> bool:
    """Whether an encoder makes features of X.

    Parameters
    ----------
    estimator : estimator
    X : table, array or sparse matrix
    reset : bool
        Whether the estimator is fitted anew; else it keeps to what it was fitted on.

    Raises
    ------
    DataError
        If X is an array, and the estimator was fitted on a table with more than numbers.
    """
    named = [role for role in ROLES if getattr(estimator, role, None) is not None]
    if sparse.issparse(X) and named:
        raise DataError(f"{named[0]} is for tables and arrays, not for sparse matrices", NAME, remedy="leave it out")
    encoder = None if reset else encoder_of(estimator)
    if encoder is None:
        is_new_table = reset and (bool(named) or has_columns(X))
        return is_new_table or ((reset or not getattr(estimator, "_is_sparse", True)) and _has_gaps(estimator, X))
    if has_columns(X) or named or _is_of_arrays(estimator):
        return True
    if any(column.kind != Number.kind for column in encoder.columns):
        columns = ", ".join(repr(column.name) for column in encoder.columns[:12])
        problem = f"the model was fitted on a table, this is of type {type(X).__name__}"
        raise DataError(problem, NAME, remedy=f"pass a table with the columns {columns}")
    return not _is_numbers(encoder) or _has_gaps(estimator, X)


def encoder_of(estimator: Any) -> TableEncoder | None:
    """The encoder of an estimator that was fitted on a table, else None."""
    found: TableEncoder | None = getattr(estimator, "_encoder", None)
    return found


def forget(estimator: Any) -> None:
    """Let an estimator be fitted on an array."""
    if hasattr(estimator, "_encoder"):
        del estimator._encoder


def as_learned(estimator: Any, X: Any) -> Any:
    """Rows of an array or a sparse matrix, as rows of the table if the estimator learned such from a stream."""
    encoder = encoder_of(estimator)
    if encoder is None or estimator._as_array:
        return X
    numbers = X.toarray() if sparse.issparse(X) else X
    return EncodedRows(table(numbers, np.arange(1, X.shape[1] + 1), np.zeros((X.shape[0], 0))), encoder)


def encode(estimator: Any, X: Any, learning: bool, reset: bool = False, as_array: bool = True) -> Any:
    """Rows of a table.

    Parameters
    ----------
    estimator : estimator
        With ``reset``, its encoder, ``n_features_in_`` and ``feature_names_in_`` are set.
    X : table, or array where the estimator has categorical_features or text_features
    learning : bool
        Whether categories and words that are new become features.
    reset : bool, default False
        Whether there is to be a new encoder.
    as_array : bool, default True
        Whether this estimator, which begins anew, learns an array where there are only numbers.

    Returns
    -------
    EncodedRows, or ndarray of shape (n_rows, n_columns)

    Raises
    ------
    DataError
        If a column is missing or of a type that has no features, or a value cannot be used.
    """
    encoder = None if reset else encoder_of(estimator)
    of_arrays = not has_columns(X) if reset else encoder is None or _is_of_arrays(estimator)
    if encoder is None and not reset:  # in the array that it was fitted on no number was missing
        encoder = TableEncoder([Number(name) for name in feature_names(estimator)])
    elif not reset:
        as_array = estimator._as_array
    if encoder is not None and (of_arrays or not has_columns(X)):
        X = validate_data(estimator, np.asarray(X), reset=False, skip_check_array=True)  # with as many columns
        X = dict(zip([column.name for column in encoder.columns], X.T, strict=True))
    chunks = _chunks(X)
    first = next(chunks)
    if encoder is None:
        encoder = _new_encoder(estimator, first)
        validate_data(estimator, X, reset=True, skip_check_array=True, ensure_2d=False)  # sets feature_names_in_
        estimator.n_features_in_ = len(encoder.columns)
        if not of_arrays and (not hasattr(X, "iloc") or X.shape[1] != len(encoder.columns)):  # a struct is several
            estimator.feature_names_in_ = np.array([column.name for column in encoder.columns], object)
    if learning:
        estimator._encoder, estimator._as_array, estimator._of_arrays = encoder, as_array, of_arrays
    block = together([_encoded(encoder, chunk, learning) for chunk in itertools.chain([first], chunks)])
    return block.numbers if as_array and _is_numbers(encoder) else EncodedRows(block, encoder)


def feature_names(estimator: Any) -> list[str]:
    """Names of the features of a fitted estimator, without the constant."""
    encoder = encoder_of(estimator)
    if encoder is not None:
        return encoder.names()[1:]
    usual = [f"x{j}" for j in range(estimator.n_features_in_)]
    return [str(name) for name in getattr(estimator, "feature_names_in_", usual)]


def places(names: Sequence[str], given: Any, parameter: str) -> list[int]:
    """The places of columns that are given by their names, by numbers from 0, or as a mask.

    Examples
    --------
    >>> places(["age", "job"], ["job"], "text_features"), places(["age", "job"], [True, False], "text_features")
    ([1], [0])

    Raises
    ------
    DataError
        If there is no such column.
    """
    listed = [] if given is None else np.asarray(given, object).reshape(-1).tolist()
    if listed and all(isinstance(item, (bool, np.bool_)) for item in listed):
        if len(listed) != len(names):
            raise DataError(f"{parameter} is a mask of {len(listed)} columns; there are {len(names)}", NAME)
        return [int(place) for place in np.flatnonzero(listed)]
    found = []
    for item in listed:
        is_place = isinstance(item, Integral) and -len(names) <= int(item) < len(names)
        if item not in names and not is_place:
            remedy = f"give names or numbers from 0; the columns are {', '.join(map(repr, names[:12]))}"
            raise DataError(f"{parameter}: there is no column {item!r}", NAME, remedy=remedy)
        found.append(list(names).index(item) if item in names else range(len(names))[int(item)])
    return found


def _is_of_arrays(estimator: Any) -> bool:
    """Whether the columns of the estimator's encoder are those of arrays."""
    return getattr(estimator, "_of_arrays", False)


def _has_gaps(estimator: Any, X: Any) -> bool:
    """Whether X has numbers that are missing, or infinite, and the estimator takes those that are missing."""
    if sparse.issparse(X) or not estimator.__sklearn_tags__().input_tags.allow_nan:
        return False
    try:
        numbers = np.asarray(X)
        numbers = numbers.astype(np.float64) if numbers.dtype.kind == "O" else numbers
    except (TypeError, ValueError):
        return False
    return numbers.ndim == 2 and numbers.dtype.kind == "f" and not np.isfinite(numbers).all()


def _chunks(X: Any) -> Iterator[Columns]:
    columns = X if isinstance(X, Mapping) else getattr(X, "columns", None)
    if columns is not None and not len(columns):
        raise DataError("there are no columns", NAME, remedy="pass a table of one column or more")
    try:
        yield from read_frame(X if has_columns(X) else np.asarray(X), chunk_rows=CHUNK_ROWS, name=NAME)
    except (pa.ArrowException, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"this is not a table ({reason})", NAME, remedy="pass a DataFrame") from None


def _new_encoder(estimator: Any, first: Columns) -> TableEncoder:
    names = first.table.schema.names
    categories, texts = ({names[k] for k in places(names, getattr(estimator, role, None), role)} for role in ROLES)
    if both := categories & texts:
        raise DataError(f"column {min(both)!r} is among categorical_features and text_features", NAME)
    for field in first.table.schema:
        kind = family(field.type)
        if field.name in texts and kind not in Text.families:
            raise DataError(f"a text must be a string, not {field.type}", NAME, column=field.name)
        if kind == "nested":
            problem = f"columns of type {field.type} cannot be used"
            raise DataError(problem, NAME, column=field.name, remedy="leave the column out")
    given = ColumnTypes(categorical=sorted(categories, key=names.index))
    return TableEncoder.infer(first, text=sorted(texts, key=names.index), given=given, grows=False)


def _encoded(encoder: TableEncoder, chunk: Columns, learning: bool) -> Table:
    rows: Table = encoder.encode(chunk, learning, Refused(), labelled=False).rows
    return rows


def _is_numbers(encoder: TableEncoder) -> bool:
    """Whether all columns are numbers, and none was missing where rows were learned."""
    return encoder.n_features == 1 + sum(len(column.names()) for column in encoder.columns)

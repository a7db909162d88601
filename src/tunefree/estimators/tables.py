"""Conversion of tables and arrays to rows of features, by the encoder of `tunefree train`.

A table has named columns: pandas and polars DataFrames, objects with Arrow's PyCapsule interface, dicts of arrays. An
estimator fitted on a table keeps the encoder, which finds columns by name. If `fit` gets a table of numbers without
missing values, the rows are learned as an array, so that the model equals the model of the array. `partial_fit` always
learns a table as such, because any later row may have the first missing number. An array with missing numbers is
encoded as a table whose columns are named by numbers, from the first such rows on.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse
from sklearn.utils.validation import assert_all_finite, validate_data

from tunefree.core.errors import DataError, ModelError, listed, nearest, warn
from tunefree.core.parameters import naming
from tunefree.core.rows import Block, dense, table, together
from tunefree.core.rows import sparse as sparse_rows
from tunefree.learners import family_of
from tunefree.model_files.plan import signs_of
from tunefree.pool.options import Monotone
from tunefree.stream.arrays import string_array
from tunefree.stream.batch import BadRows, Chunk, Position, unique_names
from tunefree.stream.columns import Number, missing_name, string_keys
from tunefree.stream.encoder import TableEncoder, unknown
from tunefree.stream.feature_lines import SvmlightEncoder
from tunefree.stream.frames import read_frame
from tunefree.stream.notation import ColumnTypes
from tunefree.stream.row_encoder import block_of_frame
from tunefree.stream.schema import as_written
from tunefree.training.roles import monotone_columns

MOST_FEATURES = 2**31 - 2  # features are numbered from 1 by int32
MOST_NUMBERS = 2**31  # limit on the size of a dense array from a sparse matrix
NAME = "X"  # name of a table in messages
CHUNK_ROWS = 32768  # rows encoded at a time: columns of many short chunks would take long
ROLES = ("categorical", "text")  # parameters of estimators that set the types of columns


def has_columns(X: Any) -> bool:
    """Return whether X is a table; a pandas DataFrame of sparse columns counts as a sparse matrix.

    >>> has_columns(pa.table({"age": [39]})), has_columns(np.zeros((1, 1))), has_columns([[0.0]])
    (True, False, False)
    """
    if isinstance(X, (np.ndarray, str)) or sparse.issparse(X) or _has_only_sparse_columns(X):
        return False
    is_arrow = hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")
    return isinstance(X, Mapping) or (is_arrow and getattr(X, "ndim", 2) == 2)


def _has_only_sparse_columns(X: Any) -> bool:
    """Return whether all columns of X are sparse pandas columns with fill value 0."""
    if not hasattr(type(X), "sparse") or not X.shape[1]:
        return False
    types = (column.dtype for _, column in X.items())
    return all(type(dtype).__name__ == "SparseDtype" and dtype.fill_value == 0 for dtype in types)


def is_for_encoder(estimator: Any, X: Any, reset: bool) -> bool:
    """Return whether X is converted by an encoder; with ``reset`` the estimator is fitted from scratch."""
    encoder = None if reset else estimator._encoder
    roles = [role for role in ROLES if getattr(estimator, role, None) is not None]
    if sparse.issparse(X) and roles:
        raise DataError(f"{roles[0]} is for tables and arrays, not for sparse matrices", NAME, remedy="leave it out")
    if encoder is None:
        is_new_table = reset and (bool(roles) or has_columns(X))
        return is_new_table or ((reset or not estimator._is_sparse) and _has_missing(estimator, X))
    has_late = any(column.since for column in encoder.columns)
    if has_columns(X) or roles or has_late or estimator._reads_arrays:
        return True
    if any(column.kind != Number.kind for column in encoder.columns):
        columns = listed([column.name for column in encoder.columns])
        problem = f"the model was fitted on a table, this is of type {type(X).__name__}"
        raise DataError(problem, NAME, remedy=f"pass a table with the columns {columns}")
    return not _is_numbers(encoder) or _has_missing(estimator, X)


def restore(estimator: Any, encoder: Any, form: dict[str, Any]) -> None:
    """Restore the state for reading rows from the ``form`` in a file, which is empty after a training by a plan."""
    names, rows = [column.name for column in getattr(encoder, "columns", [])], form.get("rows", "encoded")
    n_features = encoder.n_features - 1
    if rows == "array" and len(names) != n_features:
        raise ModelError("the encoder has columns that arrays do not have")
    estimator._is_sparse = rows == "matrix"
    if rows == "encoded":
        estimator._encoder, estimator._as_array = encoder, form.get("as_array", False)
        estimator._reads_arrays = form.get("of_arrays", False)
    has_names = form.get("has_names", names != [f"x{j}" for j in range(len(names))])  # names of arrays
    _name_columns(estimator, names if rows != "matrix" else [], n_features, has_names)


def _name_columns(estimator: Any, names: list[str], n_features: int, has_names: bool) -> None:
    """Set ``n_features_in_`` and ``feature_names_in_``; without names, the features are the columns."""
    estimator.n_features_in_ = len(names) or n_features
    if has_names and names:
        estimator.feature_names_in_ = np.array(names, object)


def one_row_block(estimator: Any, X: Any, learning: bool = False) -> Block | None:
    """Encode a single row of a pandas DataFrame by the fast row encoder; None if X is not supported by it."""
    encoder = estimator._encoder
    is_table = isinstance(encoder, TableEncoder) and not estimator._reads_arrays
    if not is_table or (block := block_of_frame(encoder, X, learning)) is None:
        return None
    return dense(block.numbers) if estimator._as_array and _is_numbers(encoder) else block


def monotone_of(estimator: Any) -> list[Monotone]:
    """Return the monotone columns of an estimator; its parameter gives them by names or indices from 0."""
    if estimator.monotone is None:
        return []
    if not isinstance(estimator.monotone, Mapping):
        raise ModelError(f"`monotone` must be a dict from columns to 1 or -1, not {estimator.monotone!r}")
    encoder = encoder_of(estimator)
    if not isinstance(encoder, TableEncoder):
        raise DataError("monotone is for tables and arrays, not for sparse matrices", NAME, remedy="leave it out")
    columns = encoder.columns
    names = [column.name for column in columns]
    signed = zip(indices_of(names, list(estimator.monotone), "monotone"), estimator.monotone.values(), strict=True)
    return monotone_columns(columns, signs_of(f"{names[index]}={sign}" for index, sign in signed), NAME)


def canonical(X: Any) -> Any:
    """Return a CSR matrix with checked, sorted indices and no duplicates; an array is returned unchanged."""
    if X.shape[1] > MOST_FEATURES:
        raise ValueError(f"X has {X.shape[1]} features; at most {MOST_FEATURES} can be learned")
    if not sparse.issparse(X):
        return X
    X = sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape)  # shares the data, not the flags
    X.check_format(full_check=True)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
        assert_all_finite(X.data, input_name="X")
    if not X.data.all():  # explicit zeros are removed, so that they equal implicit ones
        X = X.copy()
        X.eliminate_zeros()
    return X


def as_block(X: Any) -> Block:
    """Return the rows of an array or a sparse matrix as a block; column j becomes feature j + 1."""
    return sparse_rows(X.indptr, X.indices + 1, X.data) if sparse.issparse(X) else dense(X)


def as_learned(estimator: Any, X: Any) -> Block:
    """Return rows of an array or sparse matrix as a block of the kind that was learned, since views depend on it."""
    if estimator._is_sparse:
        return as_block(sparse.csr_array(X))
    if sparse.issparse(X) and math.prod(X.shape) > MOST_NUMBERS:
        problem = f"the model was fitted on arrays, and {X.shape[0]:,} rows as an array take more than 16 GiB"
        raise DataError(problem, NAME, remedy="pass fewer at a time, or fit on a sparse matrix")
    numbers = X.toarray() if sparse.issparse(X) else X
    if estimator._encoder is None or estimator._as_array:
        return as_block(numbers)
    return table(numbers, np.arange(1, X.shape[1] + 1), np.zeros((X.shape[0], 0)))


def encoder_of(estimator: Any) -> Any:
    """Return the encoder of an estimator; of arrays or matrices, which need none, one of their numbers."""
    if estimator._encoder is not None:
        return estimator._encoder
    if estimator._is_sparse:
        return SvmlightEncoder.with_indices(estimator.n_features_in_)
    return TableEncoder([Number(name) for name in feature_names(estimator)])


def n_features(estimator: Any) -> int:
    """Return the number of features of an estimator, without the constant."""
    return estimator.n_features_in_ if estimator._encoder is None else estimator._encoder.n_features - 1


def keys_of(estimator: Any) -> np.ndarray | None:
    """Return uint64 hashes (d,) of the feature names of a table, which do not depend on the order of rows."""
    encoder = estimator._encoder
    if encoder is None or (estimator._as_array and _is_numbers(encoder)):
        return None
    return string_keys(string_array(encoder.names()), 0)


@naming("tunefree.train", ROLES)
def encode(estimator: Any, X: Any, learning: bool, reset: bool, as_array: bool) -> Block:
    """Encode the rows of a table. With ``learning``, new categories and words become features.

    ``as_array``: with ``reset``, whether a table of numbers only is learned as an array.
    If rows to predict differ from the learned rows, one warning has a line for each difference.
    """
    bad, is_table = BadRows(options=()), has_columns(X)
    if reset:
        reads_arrays = not is_table
        frame = np.asarray(X) if reads_arrays else X
    else:
        reads_arrays = estimator._encoder is None or estimator._reads_arrays
        as_array = as_array if estimator._encoder is None else estimator._as_array
        encoder = encoder_of(estimator)
        frame = X if is_table and not reads_arrays else _named_columns(estimator, encoder, X)
    chunks = read_frame(frame, chunk_rows=CHUNK_ROWS, name=NAME, bad=bad)
    first = next(chunks)
    if reset:
        encoder = _fitted_encoder(estimator, X, first, as_array)
    elif not reads_arrays and not (learning and encoder.further is None):
        encoder = as_written(encoder, first, ColumnTypes())
    if learning:
        estimator._encoder, estimator._as_array, estimator._reads_arrays = encoder, as_array, reads_arrays
    gaps: Counter[str] = Counter()
    numbers = [column.name for column in encoder.columns if column.kind == Number.kind and not column.since]
    blocks = list[Block]()
    for chunk in itertools.chain([first], chunks):
        blocks.append(encoder.encode(chunk, learning, bad, labelled=False).rows)
        for name in [] if learning else numbers:
            gaps[name] += pc.is_null(chunk.data.column(name), nan_is_null=True).true_count
    block = together(blocks) if len(blocks) > 1 else blocks[0]
    if learning and encoder.further is not None:  # encoders of plans may have added columns
        names = [column.name for column in encoder.columns]
        _name_columns(estimator, names, len(names), hasattr(estimator, "feature_names_in_"))
    is_closed = not learning or encoder.further is None
    if is_closed and (extra := unknown(encoder, first.data.schema.names, estimator._role_names.values())):
        bad.note(f"the model does not know {listed(extra)}: left out", NAME, 0, "", 0)
    _warn_of_oddities(encoder, bad, gaps)
    return dense(block.numbers) if as_array and _is_numbers(encoder) else block


def _named_columns(estimator: Any, encoder: TableEncoder, X: Any) -> dict[str, Any]:
    """Return the columns of an array, in the order of the encoder's columns, by their names."""
    X = X.toarray() if sparse.issparse(X) else np.asarray(X)
    X = validate_data(estimator, X, reset=False, dtype=None, ensure_all_finite=False)
    return dict(zip([column.name for column in encoder.columns], X.T, strict=True))


def _fitted_encoder(estimator: Any, X: Any, first: Chunk, as_array: bool) -> TableEncoder:
    """Create the encoder of the first rows of X, and set the names and the number of columns of the estimator."""
    reads_arrays = not has_columns(X)
    keeps_points = hasattr(estimator, "_learner") and family_of(estimator._learner()[0]) is not None
    grows = not (reads_arrays or (as_array and keeps_points))  # points of a kernel learner have fixed columns
    encoder = _new_encoder(estimator, first, grows)
    validate_data(estimator, X, reset=True, skip_check_array=True, ensure_2d=False)  # sets feature_names_in_
    estimator.n_features_in_ = len(encoder.columns)
    if not reads_arrays and (not hasattr(X, "iloc") or X.shape[1] != len(encoder.columns)):  # structs are split
        estimator.feature_names_in_ = np.array([column.name for column in encoder.columns], object)
    return encoder


def feature_names(estimator: Any) -> list[str]:
    """Return the names of the features of a fitted estimator, without the constant."""
    encoder = estimator._encoder
    if encoder is not None:
        return encoder.names()[1:]
    usual = [f"x{j}" for j in range(estimator.n_features_in_)]
    return [str(name) for name in getattr(estimator, "feature_names_in_", usual)]


def name_columns(estimator: Any, **values: Any) -> None:
    """Store the names of targets, groups and exposures: of a Series or one-column table, else the role itself.

    >>> from types import SimpleNamespace
    >>> import pandas as pd
    >>> estimator = SimpleNamespace(_role_names={})
    >>> name_columns(estimator, target=pd.Series([0, 1], name="rich"), group=[5, 6], exposure=None)
    >>> estimator._role_names
    {'target': 'rich', 'group': 'group'}
    """
    for role, role_values in values.items():
        columns: Sequence[Any] = getattr(role_values, "columns", ())
        name = columns[0] if len(columns) == 1 else getattr(role_values, "name", None)
        if role_values is not None:
            name = role if name is None or str(name) == "" else str(name)
            estimator._role_names = {**estimator._role_names, role: name}


def indices_of(names: Sequence[str], columns: Any, parameter: str) -> list[int]:
    """Return the indices of columns given by names, by indices, or as a mask.

    >>> indices_of(["age", "job"], ["job"], "text"), indices_of(["age", "job"], [True, False], "text")
    ([1], [0])
    """
    items = [] if columns is None else np.asarray(columns, object).reshape(-1).tolist()
    if items and all(isinstance(item, (bool, np.bool_)) for item in items):
        if len(items) != len(names):
            raise DataError(f"{parameter} is a mask of {len(items)} columns; there are {len(names)}", NAME)
        return [int(index) for index in np.flatnonzero(items)]
    numbers = []
    for item in items:
        is_index = isinstance(item, Integral) and -len(names) <= int(item) < len(names)
        if item not in names and not is_index:
            remedy = f"give names or numbers from 0; {nearest(item, names, 'columns')}"
            raise DataError(f"{parameter}: there is no column {item!r}", NAME, remedy=remedy)
        numbers.append(list(names).index(item) if item in names else range(len(names))[int(item)])
    return numbers


def _has_missing(estimator: Any, X: Any) -> bool:
    """Return whether X has missing or infinite numbers, and the estimator accepts missing ones."""
    if sparse.issparse(X) or not estimator.__sklearn_tags__().input_tags.allow_nan:
        return False
    try:
        numbers = np.asarray(X)
        if numbers.dtype.kind == "O":  # None, NaN and pandas.NA are missing
            plain = pa.array(numbers.ravel(), from_pandas=True).cast(pa.float64())
            numbers = plain.to_numpy(zero_copy_only=False).reshape(numbers.shape)
    except (pa.ArrowException, TypeError, ValueError):
        return False
    return numbers.ndim == 2 and numbers.dtype.kind == "f" and not np.isfinite(numbers).all()


def _new_encoder(estimator: Any, first: Chunk, grows: bool) -> TableEncoder:
    """Create an encoder for the columns of a table; an empty column of numbers keeps its type for later values."""
    names = unique_names(first)
    categories, texts = ({names[k] for k in indices_of(names, getattr(estimator, role, None), role)} for role in ROLES)
    if both := categories & texts:
        raise DataError(f"column {min(both)!r} is among categorical and text", NAME)
    numeric = [
        field.name
        for field in first.data.schema
        if (pa.types.is_floating(field.type) or pa.types.is_integer(field.type))
        and first.data.column(field.name).null_count == first.data.num_rows
    ]
    column_types = ColumnTypes(categorical=sorted(categories, key=names.index), numeric=numeric)
    return TableEncoder.infer(first, text=sorted(texts, key=names.index), column_types=column_types, grows=grows)


def _warn_of_oddities(encoder: TableEncoder, bad: BadRows, gaps: Counter[str]) -> None:
    """Issue one warning with a line for each oddity of the rows, if there are any."""
    bad.compare()
    oddities = [oddity for oddity in bad.tally.oddities if oddity.column != encoder.exposure]  # not a column of X
    lines, noted = [*map(str, oddities)], {oddity.column for oddity in oddities}
    known = set(encoder.names()) if any(gaps.values()) else set()
    new = {name: rows for name, rows in gaps.items() if rows and missing_name(name) not in known and name not in noted}
    if new:
        columns = ", ".join(f"{name!r} ({rows:,} rows)" for name, rows in itertools.islice(new.items(), 6))
        others = f" and {len(new) - 6} others" if len(new) > 6 else ""
        problem = f"numbers are missing in {columns}{others}, and none was in the rows that were learned"
        lines.append(f"{problem}; fill them, or learn rows with gaps")
    if lines:
        warn("\n".join(lines))


def _is_numbers(encoder: TableEncoder) -> bool:
    """Return whether all columns are numbers without missing values in the learned rows."""
    return encoder.n_features == 1 + sum(len(column.dense_names()) for column in encoder.columns)


def text_rows(estimator: Any, X: Any, learning: bool) -> Block:
    """Encode lines of text; svmlight models also take a matrix, whose column j has index j + 1, or j if from 0."""
    encoder = estimator._encoder
    is_table = sparse.issparse(X) or isinstance(X, (str, dict)) or hasattr(X, "columns")
    if not is_table and np.ndim(X) == 1 and len(X) > 0 and all(isinstance(line, str) for line in X):
        lines = [line.rstrip("\r\n") for line in X]
        for row, line in enumerate(lines, 1):
            if not line.strip() or "\n" in line:
                raise DataError("each string must be one line of text, and not empty", NAME, row)
        text = np.frombuffer("\n".join(lines).encode(), np.uint8)
        block = encoder.encode(Chunk(text, NAME, 1, Position()), learning, BadRows(options=()), False).rows
    elif isinstance(encoder, SvmlightEncoder):
        block = _indexed_block(encoder, X, learning)
    else:
        raise DataError("the model reads lines of text", NAME, remedy="pass them as strings, or predict files of them")
    if learning:
        _name_columns(estimator, [], encoder.n_features - 1, False)
    return block


def _indexed_block(encoder: SvmlightEncoder, X: Any, learning: bool) -> Block:
    matrix = canonical(sparse.csr_array(X, dtype=np.float64))
    if not np.isfinite(matrix.data).all():
        raise DataError("a value is not finite", NAME, remedy="leave out features of unknown value")
    ids = encoder.ids_of(matrix.indices, learning)
    known = ids > 0
    pointers = np.append(0, np.cumsum(known))[matrix.indptr]
    return sparse_rows(pointers, ids[known], matrix.data[known])

"""Validation of rows, weights and parameters, and the order of rows in a pass."""

from __future__ import annotations

import math
import numbers
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from scipy import sparse
from sklearn.base import RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_X_y, validate_data

from tunefree.core import rows
from tunefree.core.errors import DataError, nearest
from tunefree.core.rows import Block, n_rows
from tunefree.estimators import tables
from tunefree.estimators.tables import MOST_FEATURES, canonical
from tunefree.generations.reservoir import GOLDEN, mixed
from tunefree.pool.groups import digests as digests_of_labels
from tunefree.pool.targets import is_missing
from tunefree.stream.encoder import TableEncoder
from tunefree.stream.frames import check_has_columns, unmasked

BLOCK = 16384  # rows copied at a time, so that a reordered pass needs no copy of the table
INTEGER_KINDS = "biu"  # kinds of dtypes of integer labels
STRINGS_IN_ARRAY = (
    "X is an array with strings, and does not say which columns are categories: let the step before give a DataFrame, "
    "by set_output(transform='pandas') of a ColumnTransformer or pipeline, or encode categories there, such as by "
    "OneHotEncoder"
)
FEW_ROUNDS = 2**16  # up to this total number of rounds, a row of weight k is learned in k rounds


def quiet() -> Any:
    """Return a context that ignores overflow: scikit-learn first looks for NaN in a sum, then in each number."""
    return np.errstate(over="ignore", invalid="ignore")


def plain(labels: Any) -> Any:
    """Convert labels of dtype object that are all integers, or all booleans, to that dtype; others are unchanged.

    A Series of an extension type, such as pandas' boolean, is converted too, because scikit-learn would make floats.

    >>> plain(np.array([0, 1], object)), plain(np.array([True, False], object)), plain(np.array(["a"], object))
    (array([0, 1]), array([ True, False]), array(['a'], dtype=object))
    """
    if not isinstance(getattr(labels, "dtype", np.dtype(int)), np.dtype) and np.ndim(labels) == 1:
        labels = np.asarray(labels)
    if getattr(getattr(labels, "dtype", None), "kind", "") != "O" or labels.ndim != 1:
        return labels
    types = set(map(type, labels))
    are_whole = all(issubclass(kind, numbers.Integral) and kind is not bool for kind in types)
    return np.array(list(labels)) if types and (are_whole or types <= {bool, np.bool_}) else labels


def class_labels(y: np.ndarray) -> None:
    """Raise scikit-learn's error unless y has class labels."""
    if len(y) == 1 and y.dtype.kind in INTEGER_KINDS:
        return
    if y.dtype.kind == "O":
        types = {type(label): index for index, label in reversed([*enumerate(y)])}
        if len(types) > 1 or not all(issubclass(kind, (str, float, np.floating)) for kind in types):
            examples = " and ".join(f"{kind.__name__} in row {index + 1}" for kind, index in [*types.items()][:2])
            raise ValueError(f"y: Unknown label type: {examples}; make the labels all strings, or all whole numbers")
    with quiet():
        check_classification_targets(y)


def features(estimator: Any, X: Any, learning: bool = False, reset: bool = False, stream: bool = False) -> Block:
    """Validate X against the fitted columns, or with ``reset`` set them, and return its rows as a block."""
    block = None if reset else tables.one_row_block(estimator, X, learning)
    if block is None:
        block = _block(estimator, X, learning, reset, stream)
    return block._replace(constant=float(estimator.fit_intercept))


def _block(estimator: Any, X: Any, learning: bool, reset: bool, stream: bool) -> Block:
    check_has_columns(X, tables.NAME)
    X = unmasked(X)
    if not (reset or estimator._encoder is None or isinstance(estimator._encoder, TableEncoder)):
        return tables.text_rows(estimator, X, learning)
    if tables.is_for_encoder(estimator, X, reset):
        return tables.encode(estimator, X, learning, reset, not stream)
    if reset:
        estimator._encoder, estimator._is_sparse = None, sparse.issparse(X)
    if reset or not _is_sound(estimator, X):
        with quiet():
            X = canonical(_validated(estimator, X, reset))
    return tables.as_learned(estimator, X)


def _is_sound(estimator: Any, X: Any) -> bool:
    """Return whether ``validate_data`` would return X unchanged; the call takes longer than predicting a row."""
    return (
        type(X) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and len(X) > 0
        and X.flags.c_contiguous
        and X.shape[1] == getattr(estimator, "n_features_in_", None)
        and not hasattr(estimator, "feature_names_in_")  # validate_data warns of an array without names
        and bool(np.isfinite(X).all())
    )


def _are_sound(y: Any, n_rows: int, is_numeric: bool) -> bool:
    """Return whether scikit-learn's validation would return these targets or labels unchanged."""
    if type(y) is not np.ndarray or y.shape != (n_rows,):
        return False
    return y.dtype == np.float64 and bool(np.isfinite(y).all()) if is_numeric else y.dtype.kind in INTEGER_KINDS


def _validated(estimator: Any, X: Any, reset: bool) -> Any:
    """Call scikit-learn's ``validate_data``, and add a remedy to errors about strings and missing numbers."""
    try:
        return validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype=np.float64, order="C")
    except ValueError as error:
        problem = str(error).splitlines()[0]
        if problem.startswith("could not convert string to float"):
            raise ValueError(f"{problem}. {STRINGS_IN_ARRAY}") from None
        if not problem.startswith("Input X contains NaN"):
            raise
        where = "sparse matrices" if sparse.issparse(X) else f"arrays by {type(estimator).__name__}"
        remedy = "fill it, or pass a table, such as a DataFrame, or TuneFreeClassifier or TuneFreeRegressor an array"
        raise ValueError(f"{problem} No missing value is taken in {where}; {remedy}") from None


def labelled(
    estimator: Any, X: Any, y: Any, reset: bool, stream: bool = False, learning: bool = True
) -> tuple[Block, np.ndarray]:
    """Return X as by :func:`features`, and y as a validated (n,) array; with ``reset`` store the name of y, too."""
    if reset:
        estimator._role_names = {}
        tables.name_columns(estimator, target=y)
    if isinstance(y, str):
        raise ValueError(f"y should be a 1d array, not {y!r}; pass the column, such as X[{y!r}], and X without it")
    y, y_numeric = plain(unmasked(y)), isinstance(estimator, RegressorMixin)
    _check_known(y, y_numeric)
    X = features(estimator, X, learning, reset, stream)
    if not _are_sound(y, n_rows(X), y_numeric):
        with quiet():
            y = check_X_y(np.zeros((n_rows(X), 1)), y, y_numeric=y_numeric, estimator=estimator)[1]
        if y_numeric:  # scikit-learn does not check numbers that it converts from objects
            assert_all_finite(y, input_name="y")
    return X, y


def _check_known(y: Any, is_numeric: bool) -> None:
    """Raise a ValueError that names the row unless all targets are known."""
    labels = np.asarray(y)
    if is_numeric and labels.dtype.kind in "mM":
        raise ValueError(f"Input y is of type {labels.dtype}; pass numbers, such as days since a date")
    if is_numeric and labels.dtype.kind in "OU" and labels.ndim == 1:
        try:
            np.array([text for text in labels.tolist() if isinstance(text, str)], np.float64)
        except ValueError as error:
            raise ValueError(f"y: {error}; pass numbers, or use a classifier, which predicts labels") from None
    if labels.ndim != 1 or labels.dtype.kind not in "fO":
        return
    values = labels.tolist() if labels.dtype.kind == "O" else []
    missing = np.array([is_missing(value) for value in values]) if values else labels != labels
    if missing.any():
        row = int(np.argmax(missing)) + 1
        raise DataError("Input y contains NaN", "y", row, remedy="leave the row out")
    if is_numeric and labels.dtype.kind == "f" and (is_infinite := np.isinf(labels)).any():
        row = int(np.argmax(is_infinite)) + 1
        raise DataError("Input y contains infinity", "y", row, remedy="correct it, or leave the row out")


def numbers_of_rows(name: str, values: Any, n: int) -> np.ndarray:
    """Return a float64 array (n,); a single number is repeated for all rows."""
    if isinstance(values, numbers.Real):
        return np.full(n, values, np.float64)
    if isinstance(values, str):
        raise ValueError(f"{name} is {values!r}; pass a number for each row, such as X[{values!r}]")
    try:
        array = np.ascontiguousarray(unmasked(values), np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}; give a number for each row") from None
    if array.shape != (n,):
        raise ValueError(f"{name} has the shape {array.shape}, and there are {n} rows; give one for each")
    return array


def weights(sample_weight: Any, n_rows: int, may_vanish: bool) -> np.ndarray:
    """Return float64 sample weights (n,), finite and non-negative; ``may_vanish``: whether all may be 0."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = numbers_of_rows("sample_weight", sample_weight, n_rows)
    is_bad = ~np.isfinite(weight) | (weight < 0)
    if is_bad.any():
        row = int(np.argmax(is_bad))
        problem = f"the weight is {weight[row]}, but weights are numbers of at least 0"
        remedy = "correct it, or give the row the weight 0 to leave it out"
        raise DataError(problem, "sample_weight", row + 1, remedy=remedy)
    if not (may_vanish or weight.any()):
        problem = "Sample weights must contain at least one non-zero number: all of sample_weight are zero"
        raise ValueError(f"{problem}; leave it out for equal weights")
    return weight


def group_digests(groups: Any, n_rows: int, may_be_one: bool) -> np.ndarray | None:
    """Return digests (n,) of the groups of rows, or None without groups."""
    if groups is None:
        return None
    labels = np.asarray(groups)
    if labels.ndim != 1 or len(labels) != n_rows:
        raise ValueError(f"groups has the shape {labels.shape}, expected {(n_rows,)}: give one label for each row of X")
    try:
        is_missing = pa.array(labels, from_pandas=True).is_null().to_numpy(zero_copy_only=False)
    except pa.ArrowException:
        raise ValueError("groups has labels of several types; make them all strings, or all numbers") from None
    if is_missing.any():
        remedy = "give the row a label, one of its own if it belongs to no group"
        raise DataError("the label is missing", "groups", int(np.argmax(is_missing)) + 1, remedy=remedy)
    group: np.ndarray = digests_of_labels(labels)
    if not may_be_one and len(np.unique(group)) == 1:
        raise ValueError(
            f"groups: all {n_rows} labels are {labels[:1].tolist()[0]!r}, so no row could judge a model "
            "learned from others; give the rows of each subject a label, or leave groups out"
        )
    return group


def class_weights(class_weight: Any, classes: np.ndarray | None = None) -> dict[Any, float]:
    """Validate ``class_weight`` and return the weights by class; None and 'balanced' become an empty dict."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return {}
    if not isinstance(class_weight, dict):
        raise ValueError(f"class_weight must be a dict, 'balanced' or None, not {class_weight!r}")
    for label, weight in class_weight.items():
        if not (isinstance(weight, numbers.Real) and math.isfinite(weight) and float(weight) >= 0):
            raise ValueError(f"class_weight of {label!r} must be a number of at least 0, not {weight!r}")
    known = [] if classes is None else classes.tolist()
    if set(known) - set(class_weight) and (strange := [label for label in class_weight if label not in known]):
        remedy = nearest(strange[0], known, "classes")
        raise ValueError(f"class_weight of {strange[0]!r}: there is no such class; {remedy}")
    return {label: float(weight) for label, weight in class_weight.items()}


class Rounds(NamedTuple):
    """The rounds of a pass; each learns one row."""

    row: np.ndarray  # (rounds,) row number in X
    weight: np.ndarray  # (rounds,) weight with which the row is learned
    counts: np.ndarray  # (rounds,) sample weight of the row in its first round; 0 in its later rounds
    group: np.ndarray | None = None  # (rounds,) digest of the row's group; None without groups
    mass: np.ndarray | None = None  # (rounds,) total weight of the row and its copies; None if unknown

    def at(self, index: Any) -> Rounds:
        """Select rounds by a slice or an index array."""
        return Rounds._make(None if array is None else array[index] for array in self)


def rounds_in_order(weight: np.ndarray, group: np.ndarray | None = None) -> Rounds:
    """Return one round for each row of nonzero weight, in the order of the rows."""
    row = np.flatnonzero(weight)
    return Rounds(row, weight[row], weight[row], None if group is None else group[row])


def spread(keys: np.ndarray, weight: np.ndarray) -> Rounds:
    """Return rounds in an order that depends only on the weighted set of rows.

    ``keys`` (n,): digests of rows with their targets. A row of weight 3 makes three rounds, like three copies of it. A
    row of weight at most 1 makes one round. Large weights make fewer rounds if there would be too many in total.
    """
    row = np.flatnonzero(weight)
    unit = max(1.0, weight.sum() / max(FEW_ROUNDS, 4 * len(row)))
    copies = np.maximum(np.ceil(weight[row] / unit * (1.0 - 1e-12)), 1.0).astype(np.int64)
    share = weight[row] / copies
    order = np.lexsort((share, keys[row]))
    order = np.repeat(order, copies[order])
    return Rounds(row[order], share[order], np.zeros(len(order)))


def drawn(observation: np.ndarray, y: np.ndarray, rounds: Rounds, random: np.random.RandomState) -> Rounds:
    """Return the rounds of rows in a random order that depends only on the weighted set of rows.

    ``observation`` (n,): digests of the rows without targets. With groups, the rounds of a group stay together; else
    copies of a row have their total weight as mass.
    """
    keys = observation[rounds.row] + target_digests(y[rounds.row]) + (0 if rounds.group is None else rounds.group)
    by_key = np.lexsort((rounds.weight, keys))
    rounds, order = rounds.at(by_key), random.permutation(len(by_key))
    if rounds.group is not None:
        groups, index = np.unique(rounds.group, return_inverse=True)
        return rounds.at(order[np.argsort(random.permutation(len(groups))[index[order]], kind="stable")])
    _, index = np.unique(keys[by_key], return_inverse=True)
    rounds = rounds._replace(mass=np.bincount(index, rounds.weight)[index])
    return rounds.at(np.argsort(_times(observation[rounds.row], np.argsort(order), random), kind="stable"))


def _times(observation: np.ndarray, position: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """Return times (n,) in (0, 1) by which to sort rows, from their digests and their positions in a random order.

    In a random order, the first of many copies of a row comes early, so most new rows that come late have no copies.
    That would mislead the mixture if most future rows are new. So with a probability equal to the proportion of
    observations without copies, the time of the first copy is uniform, and its later copies come after it.
    """
    _, first, number, counts = np.unique(observation, return_index=True, return_inverse=True, return_counts=True)
    times = (position + 0.5) / max(len(observation), 1)
    is_even = random.random_sample(len(first)) < np.mean(counts == 1)
    begins, later = times[first][number], np.ones(len(observation), bool)
    later[first] = False
    return np.where(later & is_even[number], begins + (1.0 - begins) * times, times)


def shuffled(rounds: Rounds, weight: np.ndarray, random: np.random.RandomState) -> Rounds:
    """Return the rounds of :func:`spread` in random order; the first round of a row counts its weight (n,)."""
    rounds = rounds.at(random.permutation(len(rounds.row)))
    unique_rows, first = np.unique(rounds.row, return_index=True)
    rounds.counts[first] = weight[unique_rows]
    return rounds


def digests(X: Block, keys: np.ndarray | None = None) -> np.ndarray:
    """Return 64-bit digests (n,) of dense or sparse rows; the keys of features are by default their numbers."""

    def key(features: np.ndarray) -> np.ndarray:
        return features if keys is None else keys[features] + np.uint64(1)

    step, columns = BLOCK // 8, key(X.columns)
    total = rows.row_sums(_mixed(X.values, key(X.features)), X.pointers)
    for start in range(0, n_rows(X), step):
        total[start : start + step] += _mixed(X.numbers[start : start + step], columns).sum(axis=1)
    for codes in X.codes.T:
        total += _mixed((codes > 0).astype(np.float64), key(codes))
    return total


def target_digests(y: np.ndarray) -> np.ndarray:
    """Return 64-bit digests (n,) of the targets."""
    return _mixed(y.astype(np.float64), np.full(1, MOST_FEATURES + 1))


def _mixed(values: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return a 64-bit hash of each value and the key of its column; 0 for a value of 0."""
    return np.where(values == 0.0, np.uint64(0), mixed(values.view(np.uint64) ^ (keys.astype(np.uint64) * GOLDEN)))

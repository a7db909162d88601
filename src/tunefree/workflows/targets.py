"""What the target of a source is: the task it suggests, and its values as labels or numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from tunefree.core.errors import DataError
from tunefree.model.targets import Labels, check_lengths
from tunefree.stream.arrays import to_numpy
from tunefree.stream.batch import Batch

MOST_CLASSES_OF_INTEGERS = 100  # a target of integers with more distinct values is taken for numbers


def task_of(target: Any) -> str:
    """The task that a target's values suggest.

    Strings and booleans are classes. So are at most two distinct numbers, and integers that take few values, close
    together and each of them often. Other numbers make a regression.

    Parameters
    ----------
    target : pyarrow.Array

    Returns
    -------
    {"classification", "regression"}

    Examples
    --------
    >>> import pyarrow as pa
    >>> task_of(pa.array([1.0, 2.0] * 10)), task_of(pa.array([1.5, 2.0, 2.5] * 10)), task_of(pa.array(["a", "b"]))
    ('classification', 'regression', 'classification')
    """
    if not (pa.types.is_floating(target.type) or pa.types.is_integer(target.type)):
        return "classification"
    values = np.array(target.unique().to_pylist(), np.float64)
    if len(values) <= 2:
        return "classification"
    few = len(values) <= MOST_CLASSES_OF_INTEGERS and 5 * len(values) <= len(target)
    close = np.ptp(values) <= 3 * len(values)  # codes are counted; prices and ages in round numbers are not
    return "classification" if few and close and (values == np.round(values)).all() else "regression"


def labels_of(target: Any) -> Labels:
    """Labels of an Arrow array: each distinct one that a row has, once.

    Parameters
    ----------
    target : pyarrow.Array
        Whole numbers lose their ``.0``.

    Returns
    -------
    Labels

    Examples
    --------
    >>> import pyarrow as pa
    >>> labels_of(pa.array([2.0, 1.0, 2.0]))
    Labels(values=[2, 1], codes=array([0, 1, 0]))
    """
    coded = target if pa.types.is_dictionary(target.type) else target.dictionary_encode()
    codes = to_numpy(coded.indices, -1).astype(np.int64)
    values = [_label(value) for value in coded.dictionary.to_pylist()]
    numbers: dict[Any, int] = {}
    renumbered = np.zeros(len(values), np.int64)
    for i in np.unique(codes).tolist():
        renumbered[i] = numbers.setdefault(values[i], len(numbers))
    return Labels(list(numbers), renumbered[codes])


def _label(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def target_of(task: str, batch: Batch) -> Any:
    """A batch's target as models take it.

    Parameters
    ----------
    task : {"classification", "regression"}
    batch : Batch

    Returns
    -------
    Labels or (n,) array of float64

    Raises
    ------
    DataError
        If the target of a regression does not hold numbers, or a label is too long.
    """
    if task == "classification":
        labels = labels_of(batch.target)
        check_lengths(labels, batch.file, batch.numbers)
        return labels
    try:
        return to_numpy(batch.target.cast("float64"), math.nan)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise DataError(
            f"the target holds {batch.target.type}, not numbers",
            batch.file,
            int(batch.numbers[0]),
            remedy="pass --task classification",
        ) from None

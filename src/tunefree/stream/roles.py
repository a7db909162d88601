"""Columns of a table that are no features: what they are called, and the weights and exposures that they hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tunefree.core.errors import DataError, nearest
from tunefree.stream.batch import BadRows, Columns
from tunefree.stream.columns import Faults, to_numbers, valid_utf8
from tunefree.stream.inference import without

ROLES = ("target", "weight", "group", "exposure")


def check_name(role: str, name: str, names: Sequence[str], file: str) -> None:
    """Raise a DataError with the nearest names if there is no column of this name."""
    if name in names:
        return
    raise DataError(f"there is no {role} column {name!r}", file, remedy=nearest(name, names, "columns"))


def column_of(chunk: Columns, name: str, faults: Faults) -> Any:
    """A column of a chunk; texts that are no UTF-8 are faults."""
    return valid_utf8(chunk.table.column(name), name, faults)


def weights(encoder: Any, chunk: Columns, faults: Faults, labelled: bool, learning: bool, bad: BadRows) -> np.ndarray:
    """The sample weights (n,) of rows; 1 where nobody names a column of them, or rows are predicted only."""
    n, name = chunk.table.num_rows, encoder.weight
    if name is None or not labelled:
        return np.ones(n)
    if not learning and name not in chunk.table.schema.names:
        if n and not faults:  # a chunk with faults comes again
            bad.note("the column of weights is missing: rows count equally", chunk.file, chunk.row, name, n)
        return np.ones(n)
    numbers = _numbers(encoder, chunk, faults, "weight", name)
    wrong = np.flatnonzero((numbers < 0) | np.isinf(numbers))
    faults.add(wrong, name, lambda row: f"the weight is {numbers[row]}, not a finite number from 0")
    return numbers


def exposures(encoder: Any, chunk: Columns, faults: Faults, learning: bool, bad: BadRows) -> np.ndarray | None:
    """What rows were exposed to, (n,); None where nobody names a column of that, or one to predict has none."""
    n, name = chunk.table.num_rows, encoder.exposure
    if name is None:
        return None
    if not learning and name not in chunk.table.schema.names:
        if n and not faults:
            problem = "the column of exposures is missing: what is predicted is of an exposure of 1"
            bad.note(problem, chunk.file, chunk.row, name, n)
        return None
    numbers = _numbers(encoder, chunk, faults, "exposure", name)
    wrong = np.flatnonzero((numbers <= 0) | np.isinf(numbers))
    faults.add(wrong, name, lambda row: f"the exposure is {numbers[row]:g}, not a finite number above 0")
    return numbers


def _numbers(encoder: Any, chunk: Columns, faults: Faults, role: str, name: str) -> np.ndarray:
    check_name(role, name, chunk.table.schema.names, chunk.file)
    array = without(column_of(chunk, name, faults), encoder.na_values)
    numbers = to_numbers(array, name, faults, encoder.notations.get(name))
    faults.add(np.flatnonzero(np.isnan(numbers)), name, lambda row: f"the {role} is missing")
    return numbers

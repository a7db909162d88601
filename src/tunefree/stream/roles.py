"""Columns of a table that are no features: what they are called, and the targets, weights and exposures they hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tunefree.core.errors import DataError, nearest
from tunefree.stream.arrays import cast, is_missing, of_numbers
from tunefree.stream.batch import UNLABELLED, BadRows, Columns
from tunefree.stream.booleans import Boolean
from tunefree.stream.columns import (
    QUANTITIES,
    Category,
    Faults,
    blank_to_null,
    family,
    names_of,
    not_a_number,
    to_dictionary,
    to_numbers,
    valid_utf8,
)
from tunefree.stream.inference import values_of_texts, without
from tunefree.stream.missing import as_numbers, without_nulls, without_words
from tunefree.stream.notation import NULLS, ColumnTypes
from tunefree.stream.texts import Text

ROLES = ("target", "weight", "group", "exposure")
INTEGER = "integer"  # the family of a target of integers that float64 does not distinguish
TARGET_TYPES = {"number": pa.float64(), INTEGER: pa.int64(), "string": pa.string(), "boolean": pa.bool_()}
_ABSENT = {
    "weight": "the column of weights is missing: rows count equally",
    "exposure": "the column of exposures is missing: what is predicted is of an exposure of 1",
}


def check_name(role: str, name: str, names: Sequence[str], file: str) -> None:
    """Raise a DataError with the nearest names if there is no column of this name."""
    if name in names:
        return
    raise DataError(f"there is no {role} column {name!r}", file, remedy=nearest(name, names, "columns"))


def column_of(chunk: Columns, name: str, faults: Faults) -> Any:
    """A column of a chunk; texts that are no UTF-8 are faults."""
    array = chunk.table.column(name)
    return array if chunk.is_utf8 else valid_utf8(array, name, faults)


def present_of(encoder: Any, array: Any, name: str, faults: Faults) -> Any:
    """A column of an encoder's chunk, null where a value stands for a missing one whatever the column holds."""
    array = without(array, encoder.na_values)
    is_quantity = any(column.name == name and column.kind in QUANTITIES for column in encoder.columns)
    if encoder.typed or is_quantity or name in encoder.kept:
        return array
    is_text = any(column.name == name and column.kind == Text.kind for column in encoder.columns)
    if family(array.type) == "string" and not is_text:
        array = to_dictionary(array)  # of few strings, each of which is looked at once
    return without_nulls(array, name, encoder.labels if name == encoder.target else (), faults)


def labels_in(encoder: Any, array: Any, faults: Faults, labelled: bool) -> Any:
    """The labels of a target that is no number; where rows must be labelled, what is missing is an error of its row."""
    index, values = Category(encoder.target).encoded(present_of(encoder, array, encoder.target, Faults()), faults)

    def problem(row: int) -> str:
        text = array[row].as_py()
        is_word = isinstance(text, str) and text.strip() in NULLS
        return UNLABELLED + (f" ({text!r} stands for that unless it is among the `classes`)" if is_word else "")

    if labelled:
        faults.add(np.flatnonzero(index < 0), encoder.target, problem)
    return pa.DictionaryArray.from_arrays(of_numbers(index, index < 0), values)


def target_family_of(array: Any, target: str, file: str) -> str | None:
    """number, string or boolean; None for a column of which all values in this chunk are missing."""
    arrow_type = array.type
    kind = family(arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type)
    if kind == "null":
        return None
    if kind not in TARGET_TYPES:
        remedy = "name a column of numbers, strings or booleans"
        raise DataError(f"a target cannot be of type {arrow_type}", file, column=target, remedy=remedy)
    return kind


def target_of_texts(encoder: Any, array: Any, faults: Faults) -> Any:
    """A target that is written as text, as the numbers or booleans that it is known to be; any other as it is."""
    if family(array.type) != "string" or encoder.target in encoder.notations:
        return array
    name, kind = encoder.target, encoder.target_family
    if kind is None and not encoder.typed:  # the first value tells
        present = blank_to_null(array, NULLS).drop_null()[:1]
        kind = family(values_of_texts({name: present}, ColumnTypes(), False)[name].type)
    if kind == "boolean":
        index, words = Boolean(name).encoded(array, faults)
        return words.take(of_numbers(index, index < 0)).cast(pa.bool_())
    if kind not in ("number", INTEGER):
        return array
    values = as_numbers(array, name, faults) if kind == "number" else without_words(array, name, (), faults)
    numbers, failed = cast(values, TARGET_TYPES[kind])
    faults.add(failed, name, lambda row: not_a_number(values[row].as_py()))
    return numbers


def numeric_target(array: Any, name: str, faults: Faults, labelled: bool) -> Any:
    """Targets as numbers; what is infinite, and where rows must be labelled what is missing, is an error of its row."""
    values = to_numbers(array, name, faults)
    missing = np.isnan(values)
    faults.add(np.flatnonzero(np.isinf(values)), name, lambda row: f"the target is infinite ({values[row]})")
    if labelled:
        faults.add(np.flatnonzero(missing), name, lambda row: UNLABELLED)
    return array if pa.types.is_integer(array.type) else of_numbers(values, missing)


def weights(encoder: Any, chunk: Columns, faults: Faults, labelled: bool, learning: bool, bad: BadRows) -> np.ndarray:
    """The sample weights (n,) of rows; 1 where nobody names a column of them, or rows are predicted only."""
    numbers = _numbers(encoder, chunk, faults, "weight", learning, bad) if labelled else None
    if numbers is None:
        return np.ones(chunk.table.num_rows)
    wrong = np.flatnonzero((numbers < 0) | np.isinf(numbers))
    faults.add(wrong, encoder.weight, lambda row: f"the weight is {numbers[row]}, not a finite number from 0")
    return numbers


def exposures(encoder: Any, chunk: Columns, faults: Faults, learning: bool, bad: BadRows) -> np.ndarray | None:
    """What rows were exposed to, (n,); None where nobody names a column of that, or one to predict has none."""
    numbers = _numbers(encoder, chunk, faults, "exposure", learning, bad)
    if numbers is not None:
        wrong = np.flatnonzero((numbers <= 0) | np.isinf(numbers))
        problem = "the exposure is {:g}, not a finite number above 0"
        faults.add(wrong, encoder.exposure, lambda row: problem.format(numbers[row]))
    return numbers


def groups(encoder: Any, chunk: Columns, faults: Faults) -> np.ndarray:
    """The names of the rows' groups (n,)."""
    group = str(encoder.group)
    check_name("group", group, chunk.table.schema.names, chunk.file)
    names = names_of(present_of(encoder, column_of(chunk, group, faults), group, faults), group, chunk.file)
    faults.add(np.flatnonzero(is_missing(names)), group, lambda row: "the group is missing")
    return np.asarray(names.to_numpy(zero_copy_only=False), object)


def _numbers(
    encoder: Any, chunk: Columns, faults: Faults, role: str, learning: bool, bad: BadRows
) -> np.ndarray | None:
    """The numbers of a role; None where no column has it, or rows that are not learned lack the column."""
    n, name = chunk.table.num_rows, getattr(encoder, role)
    if name is None:
        return None
    if not learning and name not in chunk.table.schema.names:
        if n and not faults:  # a chunk with faults comes again
            bad.note(_ABSENT[role], chunk.file, chunk.row, name, n)
        return None
    check_name(role, name, chunk.table.schema.names, chunk.file)
    array = without(column_of(chunk, name, faults), encoder.na_values)
    notation = encoder.notations.get(name)
    numbers = to_numbers(as_numbers(array, name, faults) if notation is None else array, name, faults, notation)
    faults.add(np.flatnonzero(np.isnan(numbers)), name, lambda row: f"the {role} is missing")
    return numbers

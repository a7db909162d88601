"""What a column of targets holds: numbers, strings or booleans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tunefree.core.errors import DataError
from tunefree.stream.arrays import of_numbers
from tunefree.stream.batch import Columns
from tunefree.stream.columns import UNLABELLED, Faults, family, to_numbers

INTEGER = "integer"  # the family of a target of integers that float64 does not distinguish
TARGET_TYPES = {"number": pa.float64(), INTEGER: pa.int64(), "string": pa.string(), "boolean": pa.bool_()}


def target_family_of(chunk: Columns, target: str) -> str | None:
    """number, string or boolean; None for a column of which all values in this chunk are missing."""
    arrow_type = chunk.table.schema.field(target).type
    kind = family(arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type)
    if kind == "null":
        return None
    if kind not in TARGET_TYPES:
        remedy = "name a column of numbers, strings or booleans"
        raise DataError(f"a target cannot be of type {arrow_type}", chunk.file, column=target, remedy=remedy)
    return kind


def numeric_target(array: Any, name: str, faults: Faults, labelled: bool) -> Any:
    """Targets as numbers; what is infinite, and where rows must be labelled what is missing, is a error of its row."""
    values = to_numbers(array, name, faults)
    missing = np.isnan(values)
    faults.add(np.flatnonzero(np.isinf(values)), name, lambda row: f"the target is infinite ({values[row]})")
    if labelled:
        faults.add(np.flatnonzero(missing), name, lambda row: UNLABELLED)
    return array if pa.types.is_integer(array.type) else of_numbers(values, missing)

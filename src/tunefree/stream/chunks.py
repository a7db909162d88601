"""What is asked of a chunk of a table: the numbers of its rows, which bad ones leave, and the names of its columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core.errors import DataError
from tunefree.stream.arrays import of_booleans
from tunefree.stream.batch import UNLABELLED, BadRows, Columns
from tunefree.stream.columns import Faults

_ROWS = b"tunefree.row_numbers"
SEMICOLONS = b"tunefree.semicolons"  # of a sample whose fields they divide


def row_numbers(chunk: Any) -> np.ndarray:
    """Numbers of the rows of a chunk in its file; a chunk whose bad rows were left out carries them."""
    carried = (chunk.table.schema.metadata or {}).get(_ROWS)
    if carried is not None:
        return np.frombuffer(carried, np.int64)
    return np.arange(chunk.row, chunk.row + chunk.table.num_rows, dtype=np.int64)


def with_row_numbers(table: Any, numbers: np.ndarray) -> Any:
    """The record batch, carrying the numbers of its rows."""
    return table.replace_schema_metadata({_ROWS: numbers.astype(np.int64).tobytes()})


def without_faults(chunk: Columns, faults: Faults, bad: BadRows) -> Columns:
    """Report bad rows in their order; the chunk without them."""
    numbers = row_numbers(chunk)
    for row in sorted(faults):
        report = bad.report_unlabelled if faults[row].problem.startswith(UNLABELLED) else bad.report
        report(faults[row].problem, chunk.file, int(numbers[row]), faults[row].column)
    keep = np.ones(len(numbers), bool)
    keep[list(faults)] = False
    return chunk._replace(table=with_row_numbers(chunk.table.filter(of_booleans(keep)), numbers[keep]))


def unique_names(chunk: Columns) -> list[str]:
    """Names of the columns of a chunk; a DataError if two are the same."""
    names = chunk.table.schema.names
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        raise DataError("two columns have this name", chunk.file, column=twice, remedy="rename one of them")
    return names

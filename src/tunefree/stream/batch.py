"""What a source yields: places in a stream, chunks as they are read, and batches as they are learned."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import DataError


class Position(NamedTuple):
    """A place in a source, from which reading can go on."""

    file: int = 0  # number of the file in the source's list
    offset: int = 0  # bytes of the decompressed text, or rows of a columnar file, that come before
    row: int = 0  # rows of this file that come before (a header is not a row)


class Lines(NamedTuple):
    """A chunk of text: whole lines."""

    data: np.ndarray  # (bytes,) uint8, read-only; ends with a line end but perhaps at the end of the file
    file: str  # name of the file, for messages
    row: int  # number of the first row, counted from 1
    position: Position  # where the next chunk starts


class Columns(NamedTuple):
    """A chunk of a table."""

    table: Any  # pyarrow.RecordBatch
    file: str  # name of the file, for messages
    row: int  # number of the first row, counted from 1
    position: Position  # where the next chunk starts


class Batch(NamedTuple):
    """Rows ready to be learned or predicted."""

    rows: Any  # rows.Sparse or rows.Table
    target: Any  # pyarrow.Array (n,) of any type, or None; no nulls where rows must be labelled
    weight: np.ndarray  # (n,) float64: sample weights
    numbers: np.ndarray  # (n,) int64: number of each row in its file, counted from 1
    tags: list[str] | None  # Vowpal Wabbit's tags, or None
    file: str  # name of the file, for messages
    position: Position  # where the next batch starts


@dataclass
class BadRows:
    """What to do with a row that cannot be used, and how many there were."""

    skip: bool = False
    count: int = 0
    first: list[str] = field(default_factory=list)  # the first few messages

    def report(
        self, problem: str, file: str, row: int, column: str | None = None, remedy: str = "mend the row"
    ) -> None:
        """Raise a DataError, or count the row when bad rows are skipped."""
        error = DataError(problem, file, row, column, f"{remedy}, or pass --on-bad-row skip")
        if not self.skip:
            raise error
        self.count += 1
        if len(self.first) < 5:
            self.first.append(str(error))

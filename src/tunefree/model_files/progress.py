"""The progress of training: rows and passes learned, and the losses along the way."""

from __future__ import annotations

import os
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from tunefree.pool.rows import LateLosses
from tunefree.pool.targets import RunningMetrics
from tunefree.stream.batch import Position, Tally

# Numbers of rows after which losses are recorded, growing by about 2^(1/8) each.
POINTS = tuple(rows << octave for octave in range(50) for rows in (64, 70, 76, 83, 91, 99, 108, 117))

MOST_DATA = 8  # names of data sets that are recorded
IN_MEMORY = "a table in memory"


class Evaluated(NamedTuple):
    """The mean loss and error on an evaluation set after a number of rows of the first pass."""

    name: str
    rows: int
    loss: float
    error: float


@dataclass
class Progress:
    """The progress of a training, saved with the model so that it can be resumed."""

    complete: bool = False
    number: int = 0  # index of the pass
    position: Position = field(default_factory=Position)
    rows: int = 0  # usable rows of this pass so far
    tally: Tally = field(default_factory=Tally)  # skipped and odd rows of this pass
    sizes: list[int] = field(default_factory=list)  # bytes of each file at the start of training; empty once complete
    read: list[int] = field(default_factory=list)  # bytes of each file read so far; empty once complete
    read_digests: list[str] = field(default_factory=list)  # digests of these bytes; empty once complete
    progressive: list[RunningMetrics] = field(default_factory=list)  # of each pass: rows are predicted, then learned
    curve: list[RunningMetrics] = field(default_factory=list)  # of the first pass up to each of POINTS
    evaluated: list[Evaluated] = field(default_factory=list)  # on the evaluation sets of ``fit``, in the first pass
    class_rows: list[int] = field(default_factory=list)  # number of rows of each class in the first pass
    data: list[str] = field(default_factory=list)  # names, without folders, of the files and tables learned

    def note_data(self, name: str) -> None:
        """Record the name of a learned file, without its folder, or of a table; after MOST_DATA names, "others"."""
        name = os.path.basename(name)
        if name not in self.data and len(self.data) <= MOST_DATA:
            self.data.append(name if len(self.data) < MOST_DATA else "others")

    def end_pass(self) -> None:
        """End the pass; the next one may start at the first row."""
        self.number, self.position, self.rows = self.number + 1, Position(), 0

    def end(self) -> None:
        """Complete the training; the files may change now."""
        self.complete, self.sizes, self.read, self.read_digests = True, [], [], []

    def add(self, weight: np.ndarray, row_losses: np.ndarray, errors: np.ndarray) -> None:
        """Add rows of the current pass that were predicted and then learned."""
        self.rows += len(weight)
        metrics, start = self.progressive[-1], 0
        earlier_rows = metrics.rows
        first, last = bisect_left(POINTS, earlier_rows + 1), bisect_left(POINTS, earlier_rows + len(weight) + 1)
        for cut in POINTS[first:last] if self.number == 0 else ():
            rows = slice(start, cut - earlier_rows)
            metrics.add(weight[rows], row_losses[rows], errors[rows])
            self.curve.append(replace(metrics))
            start = cut - earlier_rows
        metrics.add(weight[start:], row_losses[start:], errors[start:])

    def add_late(self, late: LateLosses | None) -> None:
        """Add the losses of the first rows, which were counted without a loss before."""
        if late is None:
            return
        for metrics in (*self.curve, self.progressive[0]):
            rows = metrics.rows
            metrics.add(late.weight[:rows], late.row_losses[:rows], late.errors[:rows])
            metrics.rows = rows

    def points(self) -> list[RunningMetrics]:
        """Metrics of the first pass up to each of ``POINTS``, and up to now."""
        return list({point.rows: point for point in [*self.curve, *self.progressive[:1]]}.values())

    def history(self) -> Any:
        """Progressive losses of the first pass along the stream, eight points in each doubling of the rows.

        A table of ``rows`` and the means ``loss`` and ``error`` (absolute error in regression) of the rows so far. For
        each evaluation set it has the means ``{name}_loss`` and ``{name}_error``, null where it was not evaluated.

        >>> progress = Progress(progressive=[RunningMetrics()])
        >>> progress.add(np.ones(100), np.linspace(1.0, 0.0, 100), np.zeros(100))
        >>> progress.evaluated.append(Evaluated("valid_0", 91, 0.5, 0.25))
        >>> table = progress.history()
        >>> table.column("rows").to_pylist()
        [64, 70, 76, 83, 91, 99, 100]
        >>> table.column("valid_0_loss").to_pylist()
        [None, None, None, None, 0.5, None, None]
        """
        import pyarrow as pa  # not loaded by tunefree.prediction

        columns: dict[str, dict[int, float]] = {
            "loss": {point.rows: point.mean_loss() for point in self.points()},
            "error": {point.rows: point.mean_error() for point in self.points()},
        }
        for name, rows, loss, error in self.evaluated:  # the last value replaces one for the same rows
            columns.setdefault(f"{name}_loss", {})[rows] = loss
            columns.setdefault(f"{name}_error", {})[rows] = error
        all_rows = sorted(set().union(*columns.values()))
        by_row = {name: [column.get(rows) for rows in all_rows] for name, column in columns.items()}
        return pa.table({"rows": all_rows, **by_row})

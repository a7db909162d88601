"""Views: transformations of rows before a learner sees them, ``raw`` (none) or ``steady`` (running robust scaling).

The steady view transforms a block of rows into another one. Numbers in dense columns are transformed one by one. All
entries of a sparse row are divided by the same number. One-hot codes do not change. The statistics of the view are
from the rows so far, including the transformed one, and never from targets.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, Self

import numpy as np

from tunefree.compiled.functions import Compiled
from tunefree.core.errors import ModelError
from tunefree.core.numbers import WIDEST, approach, clip, finite, pace
from tunefree.core.rows import Block

NAMES = ("raw", "steady")
OF_COLUMNS = ("centres", "distances", "counts")  # fields with a number for each column; other fields are single numbers
OfColumns = Annotated[np.ndarray, "float64[columns]"]
Single = Annotated[np.ndarray, "float64[1]"]


def mean_size(entries):
    """Mean absolute value of the sparse entries of a row, 0 if it has none."""
    if len(entries) == 0:
        return 0.0
    total = 0.0
    for e in range(len(entries)):
        total += abs(entries[e])
    return finite(total) / len(entries)


class Steady(NamedTuple):
    """Robust scaling: dense numbers minus a running centre, in units of the typical distance from it.

    They are clipped at WIDEST units. The entries of a sparse row are in units of the typical size of entries, and are
    divided by more where their mean size is above WIDEST units. Centre and typical distance are running means of
    clipped numbers, with weights that grow like the square of time. A row a million times too large changes them
    little, and soon has no influence if it is the first.
    """

    centres: OfColumns
    distances: OfColumns  # typical distance of the non-zeros of a column from its centre
    counts: OfColumns  # non-zeros learned of a column
    size: Single  # typical size of the entries of a sparse row
    rounds: Single  # rows learned
    filled: Single  # rows learned that had sparse entries

    @classmethod
    def create(cls, n_columns: int) -> Self:
        """A view that has seen nothing of ``n_columns`` dense columns."""
        return cls(*np.zeros((3, n_columns)), *np.zeros((3, 1)))

    def observe(self, numbers, size):
        """Learn the dense numbers (p,) of a row, and the mean size of its sparse entries, or 0."""
        self.rounds[0] += 1.0
        rate = pace(self.rounds[0])
        for c in range(len(numbers)):
            typical, away = self.distances[c], numbers[c] - self.centres[c]
            widest = WIDEST * typical if typical > 0.0 else abs(away)
            self.centres[c] = finite(self.centres[c] + rate * clip(away, widest))
            if numbers[c] != 0.0:  # zeros are no evidence of the size of the other numbers
                self.counts[c] += 1.0
                distance = abs(numbers[c]) if self.rounds[0] == 1.0 else abs(numbers[c] - self.centres[c])
                self.distances[c] = approach(typical, finite(distance), pace(self.counts[c]), WIDEST)
        if size > 0.0:
            self.filled[0] += 1.0
            self.size[0] = approach(self.size[0], size, pace(self.filled[0]), WIDEST)

    def number(self, column, value):
        """A dense number as the view shows it."""
        typical = self.distances[column]
        return clip((value - self.centres[column]) / typical, WIDEST) if typical > 0.0 else 0.0

    def divisor(self, size):
        """The divisor of the sparse entries of a row with this mean size."""
        return max(self.size[0], size / WIDEST) if self.size[0] > 0.0 else 1.0

    def widened(self, n_columns: int) -> Self:
        """A copy with capacity for ``n_columns`` columns, the last of which are new."""
        wider = self.create(n_columns)
        for old, new in zip(self, wider, strict=True):
            new[: len(old)] = old
        return wider


def _transforming(cls: Any) -> Compiled:
    """The compiled function that writes rows as a view shows them."""
    observe, number, divisor = cls.observe, cls.number, cls.divisor

    def transform_rows(
        view: Any,
        learns: Annotated[np.ndarray, "float64[rows]"],
        numbers: Annotated[np.ndarray, "float64[rows, columns]"],
        pointers: Annotated[np.ndarray, "int64[ends]"],
        entries: Annotated[np.ndarray, "float64[entries]"],
        shown_numbers: Annotated[np.ndarray, "float64[rows, columns]"],
        shown_entries: Annotated[np.ndarray, "float64[entries]"],
    ) -> None:
        """Write how rows are shown; those where ``learns`` is above 0 are observed before."""
        for i in range(len(numbers)):
            size = mean_size(entries[pointers[i] : pointers[i + 1]])
            if learns[i] > 0.0:
                observe(view, numbers[i], size)
            for c in range(numbers.shape[1]):
                shown_numbers[i, c] = number(view, c, numbers[i, c])
            by = divisor(view, size)
            for e in range(pointers[i], pointers[i + 1]):
                shown_entries[e] = entries[e] / by

    return Compiled(transform_rows, f"pool.views.{cls.__name__}", {"view": cls})


transform_rows = _transforming(Steady)


def hidden(X: Block, features: np.ndarray) -> Block:
    """The rows with zeros in the dense columns of these features."""
    if not len(features):
        return X
    numbers = X.numbers.copy()
    numbers[:, features - 1] = 0.0
    return X._replace(numbers=numbers)


def transform(view: Steady, X: Block, learns: np.ndarray) -> Block:
    """The rows transformed by a view; rows with ``learns`` above 0 update its statistics before the transformation.

    A ModelError is raised if rows have another number of dense columns than the view.
    """
    n_columns, n_learned = X.numbers.shape[1], len(view.centres)
    if n_columns != n_learned:
        raise ModelError(f"rows of {n_columns} dense columns, where the model has learned {n_learned}")
    numbers, values = np.empty_like(X.numbers), np.empty_like(X.values)
    transform_rows(view, learns, X.numbers, X.pointers, X.values, numbers, values)
    return X._replace(numbers=numbers, values=values)

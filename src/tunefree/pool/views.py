"""Views: running transformations of rows, such as centring and robust scaling, before a learner sees them.

A view turns a block of rows into another one. Numbers in dense columns are transformed one by one. The
entries of a sparse row are all divided by one number. One-hot codes stay as they are. The statistics of a view are
those of the rows so far, including the one that is transformed; targets are never used.

A view is a record of arrays that are changed in place, whose class has three functions of it: ``observe`` a row, a
dense ``number`` as the view shows it, and the ``divisor`` of the entries of a row. Each class has a compiled function.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple, Self

import numpy as np

from tunefree.compiled.functions import Compiled
from tunefree.core.errors import ModelError
from tunefree.core.numbers import WIDEST, approach, clip, finite, pace
from tunefree.core.rows import Block

WIDEST_LEVEL = 64.0  # numbers in the level view are clipped there, in the unit that all columns share

OF_COLUMNS = ("centres", "distances", "counts")  # fields with a number for each column; others are one number
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


class Centred(NamedTuple):
    """Dense numbers minus the running mean of their column."""

    centres: OfColumns  # mean of each dense column
    rounds: Single  # rows learned

    @classmethod
    def create(cls, n_columns: int) -> Self:
        """A view that has seen nothing of ``n_columns`` dense columns."""
        return cls(np.zeros(n_columns), np.zeros(1))

    def observe(self, numbers, size):
        """Learn the dense numbers (p,) of a row, and the mean size of its sparse entries, or 0."""
        self.rounds[0] += 1.0
        for c in range(len(numbers)):
            self.centres[c] += numbers[c] / self.rounds[0] - self.centres[c] / self.rounds[0]

    def number(self, column, value):
        """A dense number as the view shows it."""
        return finite(value - self.centres[column])

    def divisor(self, size):
        """The divisor of the sparse entries of a row with this mean size."""
        return 1.0


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
        """See :meth:`Centred.observe`."""
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
        """See :meth:`Centred.number`."""
        typical = self.distances[column]
        return clip((value - self.centres[column]) / typical, WIDEST) if typical > 0.0 else 0.0

    def divisor(self, size):
        """See :meth:`Centred.divisor`."""
        return max(self.size[0], size / WIDEST) if self.size[0] > 0.0 else 1.0

    def widened(self, n_columns: int) -> Self:
        """A copy with capacity for ``n_columns`` columns, the last of which are new."""
        wider = self.create(n_columns)
        for old, new in zip(self, wider, strict=True):
            new[: len(old)] = old
        return wider


# the names by which they are compiled
observe_columns: Any = Steady.observe
divisor_of_entries: Any = Steady.divisor


class Level(NamedTuple):
    """Robust scaling with one unit for all dense columns, the root mean square of their typical distances.

    It is for columns that are measured alike, such as pixels, where those that vary little carry little information.
    Fields are those of :class:`Steady`, and the unit.
    """

    centres: OfColumns
    distances: OfColumns
    counts: OfColumns
    size: Single
    rounds: Single
    filled: Single
    unit: Single

    @classmethod
    def create(cls, n_columns: int) -> Self:
        """A view that has seen nothing of ``n_columns`` dense columns."""
        return cls(*Steady.create(n_columns), np.zeros(1))

    def observe(self, numbers, size):
        """See :meth:`Centred.observe`."""
        observe_columns(self, numbers, size)
        largest, total = 0.0, 0.0
        for c in range(len(numbers)):
            largest = max(largest, self.distances[c])
        for c in range(len(numbers)):
            ratio = self.distances[c] / largest if largest > 0.0 else 0.0
            total += ratio * ratio
        self.unit[0] = finite(largest * math.sqrt(total / len(numbers))) if len(numbers) > 0 else 0.0

    def number(self, column, value):
        """See :meth:`Centred.number`."""
        away = finite(value - self.centres[column])
        return clip(away / self.unit[0], WIDEST_LEVEL) if self.unit[0] > 0.0 else 0.0

    def divisor(self, size):
        """See :meth:`Centred.divisor`."""
        return divisor_of_entries(self, size)


ALL: dict[str, Any] = {"centred": Centred, "steady": Steady, "level": Level}


def _transforming(cls: Any) -> Compiled:
    """The compiled function of a class of views."""
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


COMPILED = {cls: _transforming(cls) for cls in ALL.values()}


def all_compiled() -> list[Compiled]:
    """The compiled functions of views."""
    return [*COMPILED.values()]


def transform_rows(view: Any, *arrays: np.ndarray) -> None:
    """Write the numbers and entries of rows as a view transforms them; the arrays go to its compiled function."""
    COMPILED[type(view)](view, *arrays)


def hidden(X: Block, features: np.ndarray) -> Block:
    """The rows with zeros in some dense columns."""
    if not len(features):
        return X
    numbers = X.numbers.copy()
    numbers[:, features - 1] = 0.0
    return X._replace(numbers=numbers)


def create_view(name: str, X: Block) -> Any:
    """A view that has seen nothing, of rows like these."""
    return ALL[name].create(X.numbers.shape[1])


def transform(view: Any, X: Block, learns: np.ndarray) -> Block:
    """The rows in a view; those with ``learns`` above 0 update its statistics before they are transformed.

    A ModelError is raised if rows have another number of dense columns than the view.
    """
    n_columns, n_learned = X.numbers.shape[1], len(view.centres)
    if n_columns != n_learned:
        raise ModelError(f"rows of {n_columns} dense columns, where the model has learned {n_learned}")
    numbers, values = np.empty_like(X.numbers), np.empty_like(X.values)
    transform_rows(view, learns, X.numbers, X.pointers, X.values, numbers, values)
    return X._replace(numbers=numbers, values=values)

"""Views: running transformations of rows, such as centring and robust scaling, before a learner sees them.

A view turns a block of rows into a block of the same kind. Numbers in dense columns are transformed one by one. The
entries of a sparse row are all divided by one number. One-hot codes stay as they are. The statistics of a view are
those of the rows so far, including the one that is transformed; targets are never used.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import compiled
from tunefree.core.errors import ModelError
from tunefree.core.generic import generic
from tunefree.core.numbers import clip, finite
from tunefree.core.rows import parts, with_parts
from tunefree.core.states import filled

WIDEST = 8.0  # numbers in the steady view are clipped there, in units of the typical distance from the centre
WIDEST_LEVEL = 64.0  # likewise in the level view, in the unit that all columns share
HASTE = 3.0  # running means move by HASTE / (t + HASTE - 1) in round t: the influence of one row fades like 1 / t^3


class Centred(NamedTuple):
    """Dense numbers minus the running mean of their column."""

    centres: np.ndarray  # (p,) mean of each dense column, in place
    rounds: np.ndarray  # () rows learned, in place

    @classmethod
    def create(cls, n_columns: int) -> Centred:
        """A view that has seen nothing of ``n_columns`` dense columns."""
        return cls(np.zeros(n_columns), np.zeros(()))


class Steady(NamedTuple):
    """Robust scaling: dense numbers minus a running centre, in units of the typical distance from it.

    They are clipped at WIDEST units. The entries of a sparse row are in units of the typical size of entries, and are
    divided by more where their mean size is above WIDEST units. Centre and typical distance are running means of
    clipped numbers, with weights that grow like the square of time. A row a million times too large changes them
    little, and soon has no influence if it is the first.
    """

    centres: np.ndarray  # (p,) in place
    distances: np.ndarray  # (p,) typical distance of the non-zeros of a column from its centre, in place
    counts: np.ndarray  # (p,) non-zeros learned of a column, in place
    size: np.ndarray  # () typical size of the entries of a sparse row, in place
    rounds: np.ndarray  # () rows learned, in place
    filled: np.ndarray  # () rows learned that had sparse entries, in place

    @classmethod
    def create(cls, n_columns: int) -> Steady:
        """A view that has seen nothing of ``n_columns`` dense columns."""
        columns = np.zeros(n_columns), np.zeros(n_columns), np.zeros(n_columns)
        return cls(*columns, np.zeros(()), np.zeros(()), np.zeros(()))


class Level(NamedTuple):
    """Robust scaling with one unit for all dense columns, the root mean square of their typical distances.

    It is for columns that are measured alike, such as pixels, where those that vary little carry little information.
    """

    steady: Steady
    unit: np.ndarray  # () in place

    @classmethod
    def create(cls, n_columns: int) -> Level:
        """A view that has seen nothing of ``n_columns`` dense columns."""
        return cls(Steady.create(n_columns), np.zeros(()))

    @property
    def centres(self) -> np.ndarray:
        """(p,) of the dense columns."""
        return self.steady.centres


ALL: dict[str, Any] = {"centred": Centred, "steady": Steady, "level": Level}


def check_width(view: Any, n_columns: int) -> None:
    """Whether rows have as many dense columns as the view has seen, which compiled code does not check.

    Raises
    ------
    ModelError
    """
    if len(view.centres) != n_columns:
        raise ModelError(f"rows of {n_columns} dense columns, where the model has learned {len(view.centres)}")


@generic
def meet(view: Any, numbers: np.ndarray, size: float) -> None:
    """Update the statistics by the dense numbers (p,) of a row and the mean size of its sparse entries, or 0."""
    raise TypeError(f"{type(view).__name__} is not a view")


@generic
def number(view: Any, column: int, value: float) -> float:
    """A dense number, transformed."""
    raise TypeError(f"{type(view).__name__} is not a view")


@generic
def divisor(view: Any, size: float) -> float:
    """The number by which the sparse entries of a row are divided, given their mean size."""
    raise TypeError(f"{type(view).__name__} is not a view")


@meet.register(Centred)
def meet_centred(view, numbers, size):
    view.rounds[()] += 1.0
    for c in range(len(numbers)):
        view.centres[c] += numbers[c] / view.rounds[()] - view.centres[c] / view.rounds[()]


@number.register(Centred)
def number_centred(view, column, value):
    return finite(value - view.centres[column])


@divisor.register(Centred)
def divisor_centred(view, size):
    return 1.0


@compiled.inline
def pace(rounds):
    """The weight of the latest value in a running mean."""
    return HASTE / (rounds + HASTE - 1.0)


@meet.register(Steady)
def meet_steady(view, numbers, size):
    view.rounds[()] += 1.0
    rate = pace(view.rounds[()])
    for c in range(len(numbers)):
        typical, away = view.distances[c], numbers[c] - view.centres[c]
        widest = WIDEST * typical if typical > 0.0 else abs(away)
        view.centres[c] = finite(view.centres[c] + rate * clip(away, widest))
        if numbers[c] != 0.0:  # zeros are no evidence of the size of the other numbers
            view.counts[c] += 1.0
            distance = abs(numbers[c]) if view.rounds[()] == 1.0 else abs(numbers[c] - view.centres[c])
            view.distances[c] = approach(typical, finite(distance), pace(view.counts[c]))
    if size > 0.0:
        view.filled[()] += 1.0
        view.size[()] = approach(view.size[()], size, pace(view.filled[()]))


@compiled.inline
def approach(typical, size, rate):
    """The running mean of sizes after one more, which is clipped at WIDEST times the mean before."""
    if typical == 0.0:
        return size
    return typical + rate * (min(size, WIDEST * typical) - typical)


@compiled.inline
def mean_size(entries):
    """Mean absolute value of the sparse entries of a row, 0 if it has none."""
    if len(entries) == 0:
        return 0.0
    total = 0.0
    for e in range(len(entries)):
        total += abs(entries[e])
    return finite(total) / len(entries)


@number.register(Steady)
def number_steady(view, column, value):
    typical = view.distances[column]
    return clip((value - view.centres[column]) / typical, WIDEST) if typical > 0.0 else 0.0


@divisor.register(Steady)
def divisor_steady(view, size):
    return max(view.size[()], size / WIDEST) if view.size[()] > 0.0 else 1.0


@meet.register(Level)
def meet_level(view, numbers, size):
    meet(view.steady, numbers, size)
    largest, total = 0.0, 0.0
    for c in range(len(numbers)):
        largest = max(largest, view.steady.distances[c])
    for c in range(len(numbers)):
        ratio = view.steady.distances[c] / largest if largest > 0.0 else 0.0
        total += ratio * ratio
    view.unit[()] = finite(largest * math.sqrt(total / len(numbers))) if len(numbers) > 0 else 0.0


@number.register(Level)
def number_level(view, column, value):
    away = finite(value - view.steady.centres[column])
    return clip(away / view.unit[()], WIDEST_LEVEL) if view.unit[()] > 0.0 else 0.0


@divisor.register(Level)
def divisor_level(view, size):
    return divisor(view.steady, size)


@compiled.entry
def transform_rows(view, learns, numbers, pointers, entries, seen_numbers, seen_entries):
    for i in range(len(numbers)):
        of_row, seen = entries[pointers[i] : pointers[i + 1]], seen_entries[pointers[i] : pointers[i + 1]]
        size_of_entries = mean_size(of_row)
        if learns[i] > 0.0:
            meet(view, numbers[i], size_of_entries)
        for c in range(numbers.shape[1]):
            seen_numbers[i, c] = number(view, c, numbers[i, c])
        by = divisor(view, size_of_entries)
        for e in range(len(of_row)):
            seen[e] = of_row[e] / by


@singledispatch
def lines(view: Any) -> tuple[np.ndarray, np.ndarray, float]:
    """What a view does where it does not clip: a dense number becomes slope * (number - centre).

    Returns
    -------
    slopes, centres : (p,) arrays
    slope_of_entries : float
        Of the sparse entries of a row, which have no centre.
    """
    raise TypeError(f"{type(view).__name__} is not a view")


@lines.register(Centred)
def lines_of_centred(view: Centred) -> tuple[np.ndarray, np.ndarray, float]:
    return np.ones(len(view.centres)), view.centres, 1.0


@lines.register(Steady)
def lines_of_steady(view: Steady) -> tuple[np.ndarray, np.ndarray, float]:
    return _inverses(view.distances), view.centres, 1.0 / divisor(view, 0.0)


@lines.register(Level)
def lines_of_level(view: Level) -> tuple[np.ndarray, np.ndarray, float]:
    return np.tile(_inverses(view.unit.reshape(1)), len(view.centres)), view.centres, 1.0 / divisor(view.steady, 0.0)


def _inverses(units: np.ndarray) -> np.ndarray:
    """1 over units, 0 for those of nothing."""
    return np.divide(1.0, units, out=np.zeros(len(units)), where=units > 0.0)


def create_view(name: str, X: Any) -> Any:
    """A view that has seen nothing, of rows like these."""
    return ALL[name].create(parts(X).numbers.shape[1])


def restored(name: str, prefix: str, arrays: dict[str, np.ndarray]) -> Any:
    """The view of that name whose arrays were saved under a prefix."""
    centres = (array for key, array in arrays.items() if key.startswith(f"{prefix}.") and key.endswith(".centres"))
    return filled(prefix, ALL[name].create(max(len(array) for array in centres)), arrays, {})


def transform(view: Any, X: Any, learns: np.ndarray) -> Any:
    """The rows in a view; those with ``learns`` above 0 update its statistics before they are transformed."""
    numbers, pointers, entries = parts(X)
    check_width(view, numbers.shape[1])
    shown = np.empty_like(numbers), np.empty_like(entries)
    transform_rows(view, learns, numbers, pointers, entries, *shown)
    return with_parts(X, *shown)

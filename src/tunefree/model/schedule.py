"""When a model that learns is copied: four times in each octave of rows, at the same fractions of every octave."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

CUTS = (256, 304, 362, 431)  # rows, and twice, four times ... as many; each about 2^(1/4) the one before
OCTAVES = 50  # more than there will be
SCORED = 512  # rows of an octave that copies predict, and all rows of shorter ones


def of_octaves(first: Sequence[int]) -> tuple[int, ...]:
    """Numbers of rows at the same fractions of every octave, from those in the first.

    Examples
    --------
    >>> of_octaves((64, 83))[:5]
    (64, 83, 128, 166, 256)
    """
    return tuple(rows << octave for octave in range(OCTAVES) for rows in first)


def between(numbers: tuple[int, ...], start: int, stop: int) -> tuple[int, ...]:
    """Those of ascending numbers that are after ``start``, up to ``stop``.

    Examples
    --------
    >>> between((64, 83, 128, 166), 64, 128)
    (83, 128)
    """
    return numbers[bisect_left(numbers, start + 1) : bisect_left(numbers, stop + 1)]


ROWS = of_octaves(CUTS)
N_CUTS = len(ROWS)


def place(rows: int) -> int:
    """The number of the first cut at or after so many rows, from 0.

    Examples
    --------
    >>> place(256), place(257), place(512), ROWS[place(1000)]
    (0, 1, 4, 1024)
    """
    return bisect_left(ROWS, rows)


def is_cut(rows: int) -> bool:
    """Whether there is a cut after so many rows."""
    return ROWS[place(rows)] == rows


def cuts_between(start: int, stop: int) -> tuple[int, ...]:
    """The cuts after ``start`` up to ``stop``.

    Examples
    --------
    >>> cuts_between(256, 400)
    (304, 362)
    """
    return between(ROWS, start, stop)


def stride(rows: int) -> int:
    """Of rows in the octave that ends here, or goes on, every so manyth is predicted by copies: SCORED an octave.

    Examples
    --------
    >>> stride(1024), stride(1025), stride(2**20)
    (1, 2, 1024)
    """
    return 1 << max(0, (rows - 1).bit_length() - (2 * SCORED - 1).bit_length())

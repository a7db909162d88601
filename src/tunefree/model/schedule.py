"""When a model that learns is copied: eight times in each octave of rows, at the same fractions of every octave."""

from __future__ import annotations

from bisect import bisect_left

CUTS = (64, 70, 76, 83, 91, 99, 108, 117)  # rows, and twice, four times ... as many; each about 2^(1/8) the one before
N_CUTS = 8 * 50  # more than there will be
SCORED = 1024  # rows of an octave that copies predict, and all rows of shorter ones
ROWS = tuple(CUTS[k % 8] << k // 8 for k in range(N_CUTS))


def place(rows: int) -> int:
    """The number of the first cut at or after so many rows, from 0.

    Examples
    --------
    >>> place(64), place(65), place(128), ROWS[place(1000)]
    (0, 1, 8, 1024)
    """
    return bisect_left(ROWS, rows)


def is_cut(rows: int) -> bool:
    """Whether there is a cut after so many rows."""
    return ROWS[place(rows)] == rows


def cuts_between(start: int, stop: int) -> tuple[int, ...]:
    """The cuts after ``start`` up to ``stop``.

    Examples
    --------
    >>> cuts_between(64, 83)
    (70, 76, 83)
    """
    return ROWS[place(start + 1) : place(stop + 1)]


def stride(rows: int) -> int:
    """Of rows in the octave that ends here, or goes on, every so manyth is predicted by copies: SCORED an octave.

    Examples
    --------
    >>> stride(2048), stride(2049), stride(2**20)
    (1, 2, 512)
    """
    return 1 << max(0, (rows - 1).bit_length() - (2 * SCORED - 1).bit_length())

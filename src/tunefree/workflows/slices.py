"""Slices of data by a column's values: categories, or ranges of a number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tunefree.core.errors import DataError
from tunefree.stream.arrays import to_numpy
from tunefree.stream.columns import blank_to_null, decoded, family

MOST_SLICES = 20  # the rarer values are one slice
RANGES = 5  # of equally many rows, of a number with more values
OTHERS = "(other)"


def slices_of(column: str, values: Any) -> list[tuple[str | None, np.ndarray]]:
    """The slices of rows that a column makes, those of most rows first, ranges in their order.

    ``values``: texts that are all numbers count as numbers.
    Returns: what the rows have in common, None for a missing value, and the rows.

    >>> [(name, rows.tolist()) for name, rows in slices_of("job", pa.array(["cook", "clerk", None, "cook"]))]
    [('cook', [0, 3]), ('clerk', [1]), (None, [2])]
    """
    if pa.types.is_nested(values.type) or family(values.type) == "nested":
        raise DataError(f"rows cannot be divided by {values.type}", column=column, remedy="name a column of values")
    plain = blank_to_null(decoded(values))
    numbers = _numbers(plain)
    if numbers is not None and len(np.unique(numbers)) > MOST_SLICES:
        return _ranges(numbers)
    coded = plain.cast(pa.string()).dictionary_encode()
    codes, names = to_numpy(coded.indices, -1), coded.dictionary.to_pylist()
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    order = np.argsort(-counts, kind="stable")
    slices = [(names[k], np.flatnonzero(codes == k)) for k in order[:MOST_SLICES].tolist()]
    if len(order) > MOST_SLICES:
        slices.append((OTHERS, np.flatnonzero(np.isin(codes, order[MOST_SLICES:]))))
    return slices + _missing(codes < 0)


def _numbers(values: Any) -> np.ndarray | None:
    """The values as numbers, NaN where they are missing; None if one is no number."""
    if family(values.type) not in ("number", "string"):
        return None
    try:
        return to_numpy(values.cast(pa.float64(), safe=False), np.nan)
    except pa.ArrowInvalid:
        return None


def _ranges(numbers: np.ndarray) -> list[tuple[str | None, np.ndarray]]:
    here = ~np.isnan(numbers)
    edges = np.unique(np.quantile(numbers[here], np.linspace(0.0, 1.0, RANGES + 1)))
    places = np.clip(np.searchsorted(edges, numbers, "right") - 1, 0, max(len(edges) - 2, 0))
    slices: list[tuple[str | None, np.ndarray]] = []
    for k in range(max(len(edges) - 1, 1)):
        rows = np.flatnonzero(here & (places == k))
        if len(rows):
            slices.append((f"{numbers[rows].min():g} to {numbers[rows].max():g}", rows))
    return slices + _missing(~here)


def _missing(gone: np.ndarray) -> list[tuple[str | None, np.ndarray]]:
    return [(None, np.flatnonzero(gone))] if gone.any() else []

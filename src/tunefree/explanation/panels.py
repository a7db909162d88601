"""Partial dependence of a model: how its margins change with one column, in the mean and from row to row.

In rows of the reference the column takes each value that is drawn, and the rest stays as it is (Friedman: Greedy
function approximation, 2001; the curves of single rows: Goldstein, Kapelner, Bleich, Pitkin: Peeking inside the black
box, 2015).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree.core.rows import Block, n_rows, rows_at, together
from tunefree.explanation.decomposition import Decomposition
from tunefree.explanation.importance import reference_of
from tunefree.explanation.reference import evenly_spaced
from tunefree.stream.layout import CODES, MISSING, NUMBERS, Layout

FINENESS = 24  # numbers of a curve
MOST_ROWS = 100  # in which a column takes all values
INNER = (0.1, 0.9)  # quantiles of the curves of single rows that are drawn
SKEWED = 8.0  # times their median size are so large that the scale is logarithmic
FEW = 12  # different numbers that are drawn one by one
CUT = 0.005  # part of the rows on each side that may lie beyond what is drawn
MOST_BARS = 12  # codes of a part


class Axis(NamedTuple):
    """Values of a part of a column that are drawn."""

    name: str
    values: np.ndarray  # (v,) numbers, or int64 features of codes
    labels: list[str]  # of codes; none of numbers
    shares: np.ndarray  # (v,) part of the rows that have each code; empty for numbers
    column: int  # place among the numbers or the columns of codes of a table
    sample: np.ndarray  # (r,) of the rows of the reference: numbers, NaN where missing; empty for codes
    linear_up_to: float = 0.0  # size from which on numbers are drawn on a logarithmic scale; 0 if on a linear one
    missing: tuple[int, int] | None = None  # the column of codes and the code of a missing number, if any is

    @property
    def is_numeric(self) -> bool:
        """Whether the part is of numbers."""
        return not self.labels


class Dependence(NamedTuple):
    """The margins by the values of a part of a column."""

    term: int  # of the column
    axis: Axis
    mean: np.ndarray  # (v, K) over rows
    low: np.ndarray  # (v, K) quantiles of the curves of single rows, moved to the mean height of the mean
    high: np.ndarray  # (v, K)
    missing: np.ndarray | None  # (K,) mean where the number is missing, if it ever is


def dependence(decomposition: Decomposition, part: int, axis: Axis) -> Dependence:
    """The dependence on a part of a column, at the values of its axis."""
    rows = reference_of(decomposition)
    rows = rows_at(rows, evenly_spaced(n_rows(rows), MOST_ROWS))
    curves = decomposition.margins(together([_with_value(rows, axis, value) for value in axis.values]))
    curves = curves.reshape(len(axis.values), n_rows(rows), -1)
    mean = curves.mean(axis=1)
    level = curves - curves.mean(axis=0) + mean.mean(axis=0)
    low, high = np.quantile(level, INNER, axis=1)
    missing = None
    if axis.missing is not None:
        missing = decomposition.margins(_with_code(_with_number(rows, axis.column, 0.0), *axis.missing)).mean(axis=0)
    column = decomposition.layout.parts[part].column
    return Dependence(decomposition.names.index(column, 1), axis, mean, low, high, missing)


def axis_of(decomposition: Decomposition, part: int) -> Axis | None:
    """The values of a part that are drawn: some numbers, or the most frequent codes; None where there are none.

    Words and hashed features have no axis.
    """
    rows, layout = reference_of(decomposition), decomposition.layout
    name, kind = layout.parts[part].name, layout.parts[part].kind
    if kind == CODES:
        places = [q for q, column in enumerate(rows.code_columns.tolist()) if layout.code_source(column)[1] == part]
        return _axis_of_codes(rows, layout, name, places[0]) if places else None
    places = np.flatnonzero(layout.of_feature[rows.columns] == part).tolist() if kind == NUMBERS else []
    return _axis_of_numbers(rows, layout, part, places[0]) if places else None


def _axis_of_numbers(rows: Block, layout: Layout, part: int, place: int) -> Axis | None:
    missing = None
    known = np.ones(len(rows.numbers), bool)
    for q, column in enumerate(rows.code_columns.tolist()):
        if layout.code_source(column)[1] == part and rows.codes[:, q].any():
            missing, known = (q, int(rows.codes[:, q].max())), rows.codes[:, q] == 0
    sample = np.where(known, rows.numbers[:, place], np.nan)
    if not known.any():
        return None
    threshold = _threshold(sample[known])
    return Axis(
        layout.parts[part].name, _grid(sample[known], threshold), [], np.zeros(0), place, sample, threshold, missing
    )


def _axis_of_codes(rows: Block, layout: Layout, name: str, place: int) -> Axis | None:
    different, counts = np.unique(rows.codes[:, place], return_counts=True)
    often = [j for j in np.argsort(-counts, kind="stable").tolist() if different[j] > 0]
    labels = [layout.label(int(different[j])) for j in often]
    often, labels = often[:MOST_BARS], labels[:MOST_BARS]
    order = _natural(labels)
    often, labels = [often[k] for k in order], [labels[k] for k in order]
    shares = counts[often] / len(rows.codes)
    axis = Axis(name, different[often].astype(np.int64), labels, shares, place, np.empty(0))
    return axis if labels else None


def _natural(labels: list[str]) -> list[int]:
    """The order of labels: by number if they are numbers, else by letters; missing values come last."""
    are_numbers = all(label.removeprefix("-").isdigit() for label in labels if label != MISSING)
    last = [label == MISSING for label in labels]
    keys = [(last[k], int(label) if are_numbers and not last[k] else 0, label) for k, label in enumerate(labels)]
    return sorted(range(len(labels)), key=keys.__getitem__)


def _threshold(values: np.ndarray) -> float:
    """From which size on numbers are drawn on a logarithmic scale; 0 unless some are far larger than most."""
    sizes = np.abs(values[values != 0.0])
    if len(np.unique(values)) <= FEW:
        return 0.0
    low, middle, high = np.quantile(sizes, [0.05, 0.5, 1.0 - CUT])
    return float(low) if high > SKEWED * middle else 0.0


def _grid(values: np.ndarray, threshold: float) -> np.ndarray:
    """Numbers at which a curve is drawn, between the quantiles beyond which few rows lie."""
    different = np.unique(values)
    if len(different) <= FEW:
        return different
    low, high = np.quantile(values, [CUT, 1.0 - CUT], method="nearest")
    low, high = (low, high) if low < high else (different[0], different[-1])
    grid = np.linspace(low, high, FINENESS)
    if threshold > 0.0:
        grid = threshold * np.sinh(np.linspace(np.arcsinh(low / threshold), np.arcsinh(high / threshold), FINENESS))
        grid[[0, -1]] = low, high
    return np.unique(grid)


def _with_value(rows: Block, axis: Axis, value: Any) -> Block:
    """Rows in which a part has one value."""
    if not axis.is_numeric:
        return _with_code(rows, axis.column, value)
    rows = rows if axis.missing is None else _with_code(rows, axis.missing[0], 0)
    return _with_number(rows, axis.column, value)


def _with_number(rows: Block, place: int, value: float) -> Block:
    numbers = rows.numbers.copy()
    numbers[:, place] = value
    return rows._replace(numbers=numbers)


def _with_code(rows: Block, place: int, code: int) -> Block:
    codes = rows.codes.copy()
    codes[:, place] = code
    return rows._replace(codes=codes)

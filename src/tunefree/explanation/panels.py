"""What is drawn of a model: curves of numbers, bars of codes, maps of pairs.

The term of a part depends on this part only. So rows are made in which the part takes the values that are drawn, and
the contributions to their margins are the curve.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tunefree.core.rows import Table, read_only, table
from tunefree.explanation.decomposition import Decomposition
from tunefree.stream.layout import CODES, MISSING, NUMBERS

FINENESS = 200  # numbers of a curve
COARSENESS = 61  # numbers along one side of a map
SKEWED = 8.0  # times their median size are so large that the scale is logarithmic
FEW = 12  # different numbers that are drawn one by one
CUT = 0.005  # part of the sampled rows on each side that may lie beyond what is drawn
MOST_BARS, MOST_ROWS = 10, 8  # codes of a part, alone and in a map
MOST_IN_ORDER = 60  # codes that are numbers, such as months


class Axis(NamedTuple):
    """Values of a part that are drawn."""

    term: int
    name: str
    values: np.ndarray  # (v,) numbers, or int64 features of codes
    labels: list[str]  # of codes; none of numbers
    shares: np.ndarray  # (v,) part of the sampled rows that have each code; empty for numbers
    column: int  # place among the numbers or the columns of codes of a table
    sample: np.ndarray  # (n,) of the sampled rows: numbers (NaN where missing), or places among the values (-1)
    linear_up_to: float = 0.0  # size from which on numbers are drawn on a logarithmic scale; 0 if on a linear one
    missing: tuple[int, int] | None = None  # the column of codes and the code of a missing number, if any is

    @property
    def is_numeric(self) -> bool:
        """Whether the part is of numbers."""
        return not self.labels

    @property
    def in_order(self) -> bool:
        """Whether codes have an order of their own, as months have."""
        return are_numbers(self.labels)


class Curve(NamedTuple):
    """The term of a part."""

    axis: Axis
    heights: np.ndarray  # (v, K)
    knots: np.ndarray  # (m,) within the range that is drawn
    missing: np.ndarray | None  # (K,) where the number is missing, if it ever is


class Map(NamedTuple):
    """The term of a pair; if one of its parts is of numbers, the first one is."""

    term: int
    first: Axis
    second: Axis
    heights: np.ndarray  # (v, w, K), NaN where no sampled row lies between the same knots


def drawable(decomposition: Decomposition, term: int) -> bool:
    """Whether a term can be drawn, which words and hashed features cannot."""
    terms = decomposition.terms
    of = [term] if term < terms.first_pair else terms.of_pair(term - terms.first_pair)
    return all(_place(decomposition, part_term) is not None for part_term in of)


def curve(decomposition: Decomposition, term: int) -> Curve:
    """The curve of a part.

    Parameters
    ----------
    decomposition : Decomposition
        With a sample.
    term : int
        It can be drawn (:func:`drawable`).
    """
    axis = axis_of(decomposition, term, FINENESS, MOST_BARS)
    rows = _rows(decomposition, [(axis, axis.values)])
    heights = decomposition.contributions(rows)[:, term]
    missing = None
    if axis.missing is not None:
        lacking = _with_code(_blank(decomposition, 1), *axis.missing)
        missing = decomposition.contributions(lacking)[0, term]
    knots = decomposition.knots(term) if axis.is_numeric else np.zeros(0)
    inside = knots[(knots >= axis.values.min()) & (knots <= axis.values.max())] if len(knots) else knots
    return Curve(axis, heights, inside, missing)


def map_of(decomposition: Decomposition, term: int) -> Map:
    """The map of a pair; parameters as in :func:`curve`."""
    terms = decomposition.terms
    axes = [axis_of(decomposition, part, COARSENESS, MOST_ROWS) for part in terms.of_pair(term - terms.first_pair)]
    first, second = sorted(axes, key=lambda axis: not axis.is_numeric)
    v, w = len(first.values), len(second.values)
    rows = _rows(decomposition, [(first, np.repeat(first.values, w)), (second, np.tile(second.values, v))])
    heights = decomposition.contributions(rows)[:, term].reshape(v, w, -1)
    cells = [_cells(decomposition, axis) for axis in (first, second)]
    filled = np.zeros([1 + max(of.max() for of in own) for own in cells], bool)
    known = (cells[0][1] >= 0) & (cells[1][1] >= 0)
    filled[cells[0][1][known], cells[1][1][known]] = True
    heights[~filled[np.ix_(cells[0][0], cells[1][0])]] = np.nan
    return Map(term, first, second, heights)


def _cells(decomposition: Decomposition, axis: Axis) -> tuple[np.ndarray, np.ndarray]:
    """Between which coarse knots, or at which codes, the values of an axis and the sampled rows lie; -1 at none."""
    if not axis.is_numeric:
        return np.arange(len(axis.values)), axis.sample
    knots = decomposition.knots(axis.term, coarse=True)[1:-1]
    cells = np.searchsorted(knots, axis.values, "right"), np.searchsorted(knots, axis.sample, "right")
    return cells[0], np.where(np.isnan(axis.sample), -1, cells[1])


def axis_of(decomposition: Decomposition, term: int, fineness: int, most_codes: int) -> Axis:
    """The values of a part that are drawn: so many numbers, or the most frequent codes."""
    rows, layout = decomposition.reference, decomposition.terms.layout
    place = _place(decomposition, term)
    assert place is not None
    part = layout.parts[term - 1]
    if part.kind == CODES:
        return _axis_of_codes(decomposition, term, place, most_codes)
    missing = None
    known = np.ones(len(rows.numbers), bool)
    for q, column in enumerate(rows.code_columns.tolist()):
        if layout.code_source(column)[1] == term - 1 and rows.codes[:, q].any():
            missing, known = (q, int(rows.codes[:, q].max())), rows.codes[:, q] == 0
    sample = np.where(known, rows.numbers[:, place], np.nan)
    threshold = _threshold(sample[known])
    values = _grid(sample[known], decomposition.knots(term), fineness, threshold)
    return Axis(term, part.name, values, [], np.zeros(0), place, sample, threshold, missing)


def _axis_of_codes(decomposition: Decomposition, term: int, place: int, most: int) -> Axis:
    rows, layout = decomposition.reference, decomposition.terms.layout
    different, inverse, counts = np.unique(rows.codes[:, place], return_inverse=True, return_counts=True)
    often = [j for j in np.argsort(-counts, kind="stable").tolist() if different[j] > 0]
    labels = [layout.label(int(different[j])) for j in often]
    most = MOST_IN_ORDER if are_numbers(labels) else most
    often, labels = often[:most], labels[:most]
    order = _natural(labels)
    often, labels = [often[k] for k in order], [labels[k] for k in order]
    place_of = np.full(len(different), -1)
    place_of[often] = np.arange(len(often))
    shares, sample = counts[often] / len(rows.codes), place_of[inverse.reshape(-1)]
    name = layout.parts[term - 1].name
    return Axis(term, name, different[often].astype(np.int64), labels, shares, place, sample)


def are_numbers(labels: list[str]) -> bool:
    """Whether all labels but that of missing values are whole numbers."""
    return all(label.removeprefix("-").isdigit() for label in labels if label != MISSING)


def _natural(labels: list[str]) -> list[int]:
    """The order of labels: by number if they are numbers, else by letters; missing values come last."""
    keys = [int(label) if are_numbers(labels) and label != MISSING else label for label in labels]
    return sorted(range(len(labels)), key=lambda k: (labels[k] == MISSING, 0 if labels[k] == MISSING else keys[k]))


def _threshold(values: np.ndarray) -> float:
    """From which size on numbers are drawn on a logarithmic scale; 0 unless some are far larger than most."""
    sizes = np.abs(values[values != 0.0])
    if len(np.unique(values)) <= FEW:
        return 0.0
    low, middle, high = np.quantile(sizes, [0.05, 0.5, 1.0 - CUT])
    return float(low) if high > SKEWED * middle else 0.0


def _grid(values: np.ndarray, knots: np.ndarray, fineness: int, threshold: float) -> np.ndarray:
    """Numbers at which a curve is drawn, between the quantiles beyond which few rows lie."""
    different = np.unique(values)
    if len(different) <= FEW:
        return different
    low, high = np.quantile(values, [CUT, 1.0 - CUT], method="nearest")
    low, high = (low, high) if low < high else (different[0], different[-1])
    grid = np.linspace(low, high, fineness)
    if threshold > 0.0:
        grid = threshold * np.sinh(np.linspace(np.arcsinh(low / threshold), np.arcsinh(high / threshold), fineness))
        grid[[0, -1]] = low, high
    return np.unique(np.concatenate([grid, knots[(knots > low) & (knots < high)]]))


def _place(decomposition: Decomposition, term: int) -> int | None:
    """The column of a table's numbers or codes that holds a part; None if it cannot be drawn."""
    rows, layout = decomposition.reference, decomposition.terms.layout
    kind = layout.parts[term - 1].kind
    if kind == NUMBERS:
        places = np.flatnonzero(layout.of_feature[rows.columns] == term - 1)
        return int(places[0]) if len(places) else None
    found = [q for q, column in enumerate(rows.code_columns.tolist()) if layout.code_source(column)[1] == term - 1]
    return found[0] if kind == CODES and found else None


def _blank(decomposition: Decomposition, n: int) -> Table:
    """Rows like those of the sample, of which nothing is known."""
    like = decomposition.reference
    numbers, codes = np.zeros((n, like.numbers.shape[1])), np.zeros((n, like.codes.shape[1]))
    return table(numbers, like.columns, codes, None, like.code_columns)._replace(constant=like.constant)


def _rows(decomposition: Decomposition, given: list[tuple[Axis, np.ndarray]]) -> Table:
    """Rows in which parts have these values."""
    rows = _blank(decomposition, len(given[0][1]))
    for axis, values in given:
        if axis.is_numeric:
            numbers = rows.numbers.copy()
            numbers[:, axis.column] = values
            rows = rows._replace(numbers=read_only(numbers, np.float64))
        else:
            rows = _with_code(rows, axis.column, values)
    return rows


def _with_code(rows: Table, column: int, values: np.ndarray | int) -> Table:
    codes = rows.codes.copy()
    codes[:, column] = values
    return rows._replace(codes=read_only(codes, np.int32))

"""Pairs: products of two columns' functions of level 0, so that a surface over two columns can be learned.

A numeric column has a cell for each knot of level 0, and at most two of its cells are not 0 at a number. A column of
codes has a cell for each of its frequent codes, and others that its rare codes share. The functions of a pair are the
products of the cells of both, with consecutive features.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tunefree.additive.curves import interval_of, position
from tunefree.core import compiled

FREQUENT = 24  # codes of a column with a cell of their own
SHARED = 8  # cells that the other codes of a column share


class Sources(NamedTuple):
    """What pairs are made of: the columns with curves, then the columns of codes."""

    sizes: np.ndarray  # (s,) int64: cells of each
    code_columns: np.ndarray  # (s - c,) int64: which columns of codes these are, ascending
    n_frequent: np.ndarray  # (s - c,) int64: codes with a cell of their own


class Pairs(NamedTuple):
    """Pairs of sources whose products are learned."""

    first: np.ndarray  # (m,) int64: a source
    second: np.ndarray  # (m,) int64: another one
    starts: np.ndarray  # (m,) int64: the feature of the first cells of both

    @classmethod
    def create(cls) -> Pairs:
        """No pair."""
        return cls(*(np.zeros(0, np.int64) for _ in cls._fields))

    def with_more(self, first: np.ndarray, second: np.ndarray, sizes: np.ndarray, start: int) -> tuple[Pairs, int]:
        """With more pairs, whose features begin at ``start``; returns the next feature too.

        Examples
        --------
        >>> pairs, stop = Pairs.create().with_more([0, 1], [1, 2], np.array([9, 9, 3]), 10)
        >>> pairs.starts, stop
        (array([10, 91]), 118)
        """
        ends = start + np.cumsum(sizes[first] * sizes[second])
        added = np.array(first), np.array(second), np.array([start, *ends[:-1]][: len(ends)], np.int64)
        return Pairs(*(np.concatenate(both) for both in zip(self, added, strict=True))), int(ends[-1]) if len(
            ends
        ) else start


def sources_of(n_knots: list[int], codes: np.ndarray, code_columns: np.ndarray) -> tuple[Sources, np.ndarray]:
    """The sources of the first rows, and their frequent codes.

    Parameters
    ----------
    n_knots : list of int
        Knots of level 0 of each column with curves.
    codes : (n, q) array
        Of the rows.
    code_columns : (q,) array
        Which column they are of.

    Returns
    -------
    sources : Sources
        Columns that have but one code are none.
    cells : (k, 2) array
        Codes with a cell of their own, and this cell from 1.
    """
    sizes, kept, counts, cells = list(n_knots), [], [], [np.zeros((0, 2), np.int64)]
    for column in np.unique(code_columns):
        own = codes[:, np.flatnonzero(code_columns == column)]
        different, occurrences = np.unique(own[own > 0], return_counts=True)
        if len(different) < 2:
            continue
        often = different[np.argsort(-occurrences, kind="stable")][:FREQUENT]
        kept.append(column)
        counts.append(len(often))
        sizes.append(len(often) + SHARED)
        cells.append(np.column_stack([often, 1 + np.arange(len(often))]))
    of_codes = np.array(kept, np.int64), np.array(counts, np.int64)
    return Sources(np.array(sizes, np.int64), *of_codes), np.concatenate(cells)


@compiled.entry
def meet_codes(place_of, cell_of, n_frequent, code_sources, table, weight, next_place, known):
    """Give each new code and word of rows with weight above 0 a feature, in order, and a code a cell.

    ``code_sources`` (q,) has the place of each column of codes among the sources of codes, -1 if it is none. Writes the
    codes (n, q) that are known when their row comes, 0 for others. Returns the next feature.
    """
    for i in range(len(weight)):
        if weight[i] > 0.0:
            for q in range(table.codes.shape[1]):
                code, source = table.codes[i, q], code_sources[q]
                if code > 0 and place_of[code] == 0:
                    place_of[code] = next_place
                    next_place += 1
                if code > 0 and source >= 0 and cell_of[code] == 0:
                    cell_of[code] = 1 + n_frequent[source] + code % SHARED
            for e in range(table.pointers[i], table.pointers[i + 1]):
                if place_of[table.features[e]] == 0:
                    place_of[table.features[e]] = next_place
                    next_place += 1
        for q in range(table.codes.shape[1]):
            known[i, q] = table.codes[i, q] if place_of[table.codes[i, q]] > 0 else 0
    return next_place


@compiled.inline
def fill_cells(curves, cell_of, code_sources, table, i, cells, heights):
    """Write the cells (s, 2) from 0 of a row and what they are there (s, 2), 0 where there is none."""
    n_curves = len(curves.columns)
    for s in range(len(cells)):
        heights[s, 0] = heights[s, 1] = 0.0
    for c in range(n_curves):
        if curves.counts[c] > 1:
            number = table.numbers[i, curves.columns[c]]
            interval = interval_of(curves.knots[c], curves.counts[c], number)
            t = position(curves.knots[c], interval, number)
            for side in range(2):
                left, right = curves.left[c, interval, side], curves.right[c, interval, side]
                cells[c, side] = curves.cells[c, interval, side] - 1
                heights[c, side] = left + t * (right - left)
    for q in range(table.codes.shape[1]):
        code, source = table.codes[i, q], code_sources[q]
        if source >= 0 and cell_of[code] > 0:
            cells[n_curves + source, 0], heights[n_curves + source, 0] = cell_of[code] - 1, 1.0


@compiled.entry
def write_pairs(curves, sources, pairs, cell_of, code_sources, table, X, pointers, features, values):
    """Write the rows of curves X with the products of pairs behind them; returns the number of entries."""
    cells, heights = np.zeros((len(sources.sizes), 2), np.int64), np.zeros((len(sources.sizes), 2))
    at = 0
    for i in range(len(table.numbers)):
        for e in range(X.pointers[i], X.pointers[i + 1]):
            features[at], values[at] = X.features[e], X.values[e]
            at += 1
        fill_cells(curves, cell_of, code_sources, table, i, cells, heights)
        for p in range(len(pairs.first)):
            first, second = pairs.first[p], pairs.second[p]
            for a in range(2):
                for b in range(2):
                    height = heights[first, a] * heights[second, b]
                    if height != 0.0:
                        place = cells[first, a] * sources.sizes[second] + cells[second, b]
                        features[at], values[at] = pairs.starts[p] + place, height
                        at += 1
        pointers[i + 1] = at
    return at

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
    most: np.ndarray  # (s,) int64: how many of them may be other than 0 in a row, 1 or 2
    code_columns: np.ndarray  # (s - c,) int64: which columns of codes these are, ascending
    n_frequent: np.ndarray  # (s - c,) int64: codes with a cell of their own

    def cells(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """How many cells pairs of sources (m,) have."""
        return self.sizes[first] * self.sizes[second]

    def entries(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """How many cells of pairs of sources (m,) may be other than 0 in a row."""
        return self.most[first] * self.most[second]


class Pairs(NamedTuple):
    """Pairs of sources whose products are learned."""

    first: np.ndarray  # (m,) int64: a source
    second: np.ndarray  # (m,) int64: another one
    starts: np.ndarray  # (m,) int64: the feature of the first cells of both

    @classmethod
    def create(cls) -> Pairs:
        """No pair."""
        return cls(*(np.zeros(0, np.int64) for _ in cls._fields))

    def with_more(self, first: np.ndarray, second: np.ndarray, cells: np.ndarray, start: int) -> tuple[Pairs, int]:
        """With more pairs of so many ``cells`` (m,), whose features begin at ``start``; returns the next feature too.

        Examples
        --------
        >>> pairs, stop = Pairs.create().with_more([0, 1], [1, 2], np.array([81, 27]), 10)
        >>> pairs.starts, stop
        (array([10, 91]), 118)
        """
        edges = start + np.cumsum([0, *cells], dtype=np.int64)
        added = np.array(first), np.array(second), edges[:-1]
        return Pairs(*(np.concatenate(both) for both in zip(self, added, strict=True))), int(edges[-1])


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
    most = [2 if n > 2 else 1 for n in n_knots] + [1] * len(kept)
    return Sources(np.array(sizes, np.int64), np.array(most, np.int64), *of_codes), np.concatenate(cells)


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
def find_positions(curves, table, i, intervals, places):
    """Write in which interval the number of each column of a row is, and where in it."""
    for c in range(len(curves.counts)):
        if curves.counts[c] > 1:
            number = table.numbers[i, c]
            intervals[c] = interval_of(curves.knots[c], curves.counts[c], number)
            places[c] = position(curves.knots[c], intervals[c], number)


@compiled.inline
def fill_cells(curves, sizes, cell_of, code_sources, table, i, intervals, places, counts, cells, heights):
    """Write how many cells of each source (s,) are not 0 in a row, which (s, 2) from 0, and what they are there.

    The other cells of a source are written as 0.
    """
    n_curves = len(curves.counts)
    for s in range(len(counts)):
        counts[s] = 0
        heights[s, 0] = heights[s, 1] = 0.0
    for c in range(n_curves):
        if curves.counts[c] > 1:
            for e in range(curves.starts[c, intervals[c]], curves.starts[c, intervals[c] + 1]):
                part = curves.parts[e]
                height = part.left + places[c] * part.rise
                if part.cell > 0 and height != 0.0:
                    cells[c, counts[c]], heights[c, counts[c]] = part.cell - 1, height
                    counts[c] += 1
    for q in range(table.codes.shape[1]):
        code, source = table.codes[i, q], n_curves + code_sources[q]
        if source >= n_curves and cell_of[code] > 0:
            cell = min(cell_of[code], sizes[source]) - 1  # a file could tell of cells that the column does not have
            cells[source, 0], heights[source, 0], counts[source] = cell, 1.0, 1


@compiled.inline
def write_codes(place_of, table, i, features, values, at):
    """Write the codes and words of a row that have a feature; returns where the next entry is to be."""
    for q in range(table.codes.shape[1]):
        place = place_of[table.codes[i, q]]
        if place > 0:
            features[at], values[at] = place, 1.0
            at += 1
    for e in range(table.pointers[i], table.pointers[i + 1]):
        place = place_of[table.features[e]]
        if place > 0 and table.values[e] != 0.0:
            features[at], values[at] = place, table.values[e]
            at += 1
    return at


@compiled.inline
def write_curves(curves, intervals, places, features, values, at):
    """Write the functions of columns that are not 0 in a row; returns where the next entry is to be."""
    for c in range(len(curves.counts)):
        if curves.counts[c] > 1:
            for e in range(curves.starts[c, intervals[c]], curves.starts[c, intervals[c] + 1]):
                part = curves.parts[e]
                value = part.left + places[c] * part.rise
                if value != 0.0:
                    features[at], values[at] = part.feature, value
                    at += 1
    return at


@compiled.inline
def write_pairs(sources, pairs, cells, heights, features, values, at):
    """Write the products of pairs that are not 0 in a row; returns where the next entry is to be.

    Products of 0 are written too, and overwritten: loops of constant length and no branch take half the time.
    """
    for p in range(len(pairs.first)):
        first, second = pairs.first[p], pairs.second[p]
        for a in range(sources.most[first]):
            start, height = pairs.starts[p] + cells[first, a] * sources.sizes[second], heights[first, a]
            for b in range(sources.most[second]):
                product = height * heights[second, b]
                features[at], values[at] = start + cells[second, b], product
                at += 1 if product != 0.0 else 0
    return at


@compiled.entry
def write_rows(curves, sources, pairs, place_of, cell_of, code_sources, table, pointers, features, values):
    """Write rows of codes, words, curves and pairs as sparse rows; returns the number of their entries.

    ``place_of`` has the feature of each code and word here, 0 if it has none.
    """
    n_sources, n_curves, at = len(sources.sizes), len(curves.counts), 0
    intervals, places = np.zeros(n_curves, np.int64), np.zeros(n_curves)
    counts = np.zeros(n_sources, np.int64)
    cells, heights = np.zeros((n_sources, 2), np.int64), np.zeros((n_sources, 2))
    for i in range(len(table.numbers)):
        find_positions(curves, table, i, intervals, places)
        at = write_codes(place_of, table, i, features, values, at)
        at = write_curves(curves, intervals, places, features, values, at)
        if len(pairs.first) > 0:
            fill_cells(
                curves, sources.sizes, cell_of, code_sources, table, i, intervals, places, counts, cells, heights
            )
            at = write_pairs(sources, pairs, cells, heights, features, values, at)
        pointers[i + 1] = at
    return at

"""The features of an additive model: codes and words, curves of columns, and products of pairs of them.

Each code and word gets a feature when it is first learned; curves and pairs get consecutive ones when they join. So
the number of features grows along the stream, and features once given never change.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tunefree.additive import screening as screens
from tunefree.additive.curves import Curves, Knots, tabulated
from tunefree.additive.knots import first_knots, further_knots
from tunefree.additive.pairs import SHARED, Pairs, Sources, meet_codes, sources_of, write_rows
from tunefree.additive.sample import Sample
from tunefree.additive.screening import Screening
from tunefree.core.errors import ModelError
from tunefree.core.rows import Sparse, Table, read_only, rows_with_weight, sparse
from tunefree.core.states import under
from tunefree.losses.linked import linked

FIRST_INTERVALS = 8  # between the knots of level 0
PAIR_ENTRIES = 256  # non-zeros of a row that pairs may add
MOST_CELLS = 2**22  # features of pairs, times outputs
MOST_WEIGHTS = 2**14  # that pairs change with each row: of a thousand classes few pairs take as long as all else


class Resolution(NamedTuple):
    """How fine features are, and how many."""

    intervals: int = FIRST_INTERVALS  # between the knots of level 0
    pair_entries: int = PAIR_ENTRIES  # non-zeros of a row that pairs may add


USUAL = Resolution()


class AdditiveFeatures:
    """Features of tables whose first rows are known.

    Parameters
    ----------
    table : Table
        The first rows.
    usable : array of int
        Which of them fix the knots and the frequent codes; not empty.
    n_outputs : int
        Margins of the learners, for which there has to be memory.
    resolution : Resolution, optional

    Attributes
    ----------
    n_features : int
        Features so far, the constant included.
    knots : list of Knots
        Of the dense columns.
    sources : Sources
        What pairs are made of.
    pairs : Pairs

    Examples
    --------
    >>> from tunefree.core.rows import table
    >>> rows = table(np.arange(9.0).reshape(-1, 1), [1], np.zeros((9, 0)))
    >>> features = AdditiveFeatures(rows, np.arange(9), 1)
    >>> features.curves(rows).values[:4], features.n_features
    (array([1., 1., 1., 1.]), 10)
    """

    def __init__(self, table: Table, usable: np.ndarray, n_outputs: int, resolution: Resolution = USUAL) -> None:
        self.n_features, self.knots, self.pair_entries = 1, [], resolution.pair_entries
        numbers, codes = table.numbers[usable], table.codes[usable]
        for column in numbers.T:
            self.knots.append(Knots.create(first_knots(column, resolution.intervals), self.n_features))
            self.n_features += self.knots[-1].n_functions
        self.sources, frequent = sources_of([len(own.values) for own in self.knots], codes, table.code_columns)
        self.pairs, self.n_outputs = Pairs.create(), n_outputs
        self.place_of, self.cell_of = np.zeros(2, np.int32), np.zeros(2, np.int32)
        self.reserve(table)
        self.cell_of[frequent[:, 0]] = frequent[:, 1]
        self.sample = Sample(table)
        self._tabulate()

    def _tabulate(self) -> None:
        """Tabulate the functions of all knots."""
        self._tabulated = tabulated(self.knots)

    @cached_property
    def _first(self) -> Curves:
        """The functions of the first knots, which never change."""
        return tabulated([own.of_level_0 for own in self.knots])

    @property
    def n_curves(self) -> int:
        """Columns whose curves are more than a ramp between two values."""
        return sum(len(own.values) > 2 for own in self.knots)

    @property
    def level(self) -> int:
        """The highest level of a knot."""
        return max((int(own.levels.max(initial=0)) for own in self.knots), default=0)

    @property
    def most_entries(self) -> int:
        """Non-zeros a row that pairs may cost: each has a weight for each output."""
        return min(self.pair_entries, MOST_WEIGHTS // self.n_outputs)

    def meet(self, table: Table, weight: np.ndarray) -> Table:
        """Learn which codes and words rows with weight above 0 have, and sample their numbers.

        Returns the rows with the codes that are known when each of them comes. Others may become known by a later row
        with weight above 0, but how many rows are met at a time has to make no difference.
        """
        self.reserve(table)
        known = np.empty_like(table.codes)
        self.n_features = meet_codes(
            self.place_of,
            self.cell_of,
            self.sources.n_frequent,
            self._code_sources(table),
            table,
            weight,
            self.n_features,
            known,
        )
        self.sample.add(rows_with_weight(table, weight))
        return table._replace(codes=read_only(known, np.int32))

    def known_before(self, table: Table, n_features: int) -> Table:
        """The rows without codes that are unknown, or became known when there were so many features or more."""
        self.reserve(table)
        places = self.place_of[table.codes]
        return table._replace(codes=read_only(np.where(places < n_features, table.codes, 0), np.int32))

    def reserve(self, table: Table) -> None:
        """Have room for the codes and words of some rows."""
        highest = 1 + max(int(ids.max(initial=0)) for ids in (table.codes, table.features))
        if highest > len(self.place_of):
            room = np.zeros(max(highest, 2 * len(self.place_of)) - len(self.place_of), np.int32)
            self.place_of, self.cell_of = (np.concatenate([old, room]) for old in (self.place_of, self.cell_of))

    def _code_sources(self, table: Table) -> np.ndarray:
        """The place of each column of codes among the sources of codes, -1 if it is none."""
        known = self.sources.code_columns
        place = np.searchsorted(known, table.code_columns)
        is_known = np.append(known, -1)[place] == table.code_columns
        return np.where(is_known, place, -1)

    def curves(self, table: Table) -> Sparse:
        """Rows of codes, words and curves."""
        return self._written(self._tabulated, table, Pairs.create())

    def first_curves(self, table: Table) -> Sparse:
        """Rows of codes, words and curves on the first knots."""
        return self._written(self._first, table, Pairs.create())

    def with_pairs(self, table: Table) -> Sparse:
        """Rows of codes, words, curves and products of the pairs."""
        return self._written(self._tabulated, table, self.pairs)

    def _written(self, curves: Curves, table: Table, pairs: Pairs) -> Sparse:
        self.reserve(table)
        n, of_pairs = len(table.numbers), int(self.sources.entries(pairs.first, pairs.second).sum())
        of_row = table.codes.shape[1] + curves.most_parts + of_pairs
        most = len(table.features) + n * of_row + 1  # one more for a product of 0 that is overwritten
        written = np.zeros(n + 1, np.int64), np.empty(most, np.int32), np.empty(most)
        used = write_rows(
            curves,
            self.sources,
            pairs,
            self.place_of,
            self.cell_of,
            self._code_sources(table),
            table,
            *written,
        )
        return sparse(written[0], written[1][:used], written[2][:used])._replace(constant=table.constant)

    def refine(self) -> None:
        """Cut intervals between knots where the sample has enough values inside."""
        sampled = self.sample.values
        for column, own in enumerate(self.knots):
            found = further_knots(own.values, sampled[:, column])
            if len(found):
                self.knots[column] = own.with_more(found, self.n_features)
                self.n_features += len(found)
        self._tabulate()

    def screening(self) -> Screening | None:
        """Sums by which pairs are chosen; None, and all pairs are learned, if they are few."""
        made, sources = Screening.create(len(self.sources.sizes), self.n_outputs), self.sources
        n_cells = sources.cells(made.first, made.second).sum() * self.n_outputs
        if sources.entries(made.first, made.second).sum() > self.most_entries or n_cells > MOST_CELLS:
            return made
        self._add_pairs(made.first, made.second)
        return None

    def add_named_pairs(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Learn pairs of dense columns, by their places, and columns of codes, as -1 - their numbers.

        Columns that have no cells are left out: those that are not there, and of codes those with but one code.
        """
        place = {column: column for column in range(len(self.knots))}
        place |= {-1 - code: len(self.knots) + c for c, code in enumerate(self.sources.code_columns.tolist())}
        known = {tuple(sorted((place[a], place[b]))) for a, b in pairs if a in place and b in place and a != b}
        first, second = np.array(sorted(known), np.int64).reshape(-1, 2).T
        self._add_pairs(first, second)

    def screen(self, screening: Screening, objective: Any, table: Table, y: Any, weight: Any, predictions: Any) -> None:
        """Add rows to the sums, of which ``predictions`` (n, K) were made without pairs."""
        screens.screen(
            screening,
            linked(objective),
            self._tabulated,
            self.sources,
            self.cell_of,
            self._code_sources(table),
            table,
            y,
            weight,
            np.ascontiguousarray(predictions),
        )

    def choose_pairs(self, screening: Screening, part: float) -> None:
        """Learn the pairs that pay most, up to a part of what they may cost."""
        taken = self.sources.entries(self.pairs.first, self.pairs.second).sum()
        known = set(zip(self.pairs.first.tolist(), self.pairs.second.tolist(), strict=True))
        costs = self.sources.entries(screening.first, screening.second)
        chosen = screens.best_pairs(screening, known, costs, part * self.most_entries - taken)
        first, second = screening.first[chosen], screening.second[chosen]
        fits = np.cumsum(self.sources.cells(first, second)) <= MOST_CELLS // self.n_outputs - self.n_features
        self._add_pairs(first[fits], second[fits])

    def _add_pairs(self, first: np.ndarray, second: np.ndarray) -> None:
        cells = self.sources.cells(first, second)
        self.pairs, self.n_features = self.pairs.with_more(first, second, cells, self.n_features)

    def save_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :meth:`restore` makes the same features."""
        arrays = {name: np.trim_zeros(getattr(self, name), "b") for name in ("place_of", "cell_of")}
        arrays["knots.counts"] = np.array([len(own.values) for own in self.knots], np.int64)
        for name in Knots._fields:
            joined = [getattr(own, name) for own in self.knots]
            arrays[f"knots.{name}"] = np.concatenate([np.zeros(0, joined[0].dtype if joined else float), *joined])
        for name, state in (("sources", self.sources), ("pairs", self.pairs)):
            arrays |= {f"{name}.{field}": np.asarray(value) for field, value in state._asdict().items()}
        sampled, of_sample = self.sample.save_state()
        arrays |= {f"sample.{name}": array for name, array in sampled.items()}
        header = {name: getattr(self, name) for name in ("n_features", "n_outputs", "pair_entries")}
        return arrays, header | {"sample": of_sample}

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> AdditiveFeatures:
        """The features that were saved."""
        made = cls.__new__(cls)
        made.n_features, made.n_outputs = header["n_features"], header["n_outputs"]
        made.pair_entries = header.get("pair_entries", PAIR_ENTRIES)  # older versions had one number
        saved = arrays["place_of"], arrays["cell_of"]  # without the zeros at their ends
        room = max(2, *map(len, saved))
        made.place_of, made.cell_of = (np.pad(array, (0, room - len(array))) for array in saved)
        edges = np.cumsum(arrays["knots.counts"])[:-1]
        parts = [np.split(arrays[f"knots.{name}"], edges) for name in Knots._fields]
        made.knots = [Knots(*own) for own in zip(*parts, strict=True)] if len(arrays["knots.counts"]) else []
        made.sources = Sources(**{name: array.copy() for name, array in under("sources.", arrays).items()})
        made.pairs = Pairs(**{name: array.copy() for name, array in under("pairs.", arrays).items()})
        made.sample = Sample.restore(under("sample.", arrays), header["sample"])
        made._tabulate()
        return made

    def check(self, n_given: int, n_columns: int | None, n_outputs: int) -> None:
        """Raise a ModelError if what was restored would lead compiled code to places that are not there.

        Parameters
        ----------
        n_given : int
            Features of the rows, the constant included.
        n_columns : int
            Dense columns of the rows.
        n_outputs : int
            Margins of the learners.
        """
        sources, pairs, sizes = self.sources, self.pairs, self.sources.sizes
        of_level_0 = [int(np.count_nonzero(own.levels == 0)) for own in self.knots]
        most = np.array([2 if n > 2 else 1 for n in of_level_0] + [1] * len(sources.code_columns), np.int64)
        known = max(len(self.place_of), len(self.cell_of))
        for holds, problem in (
            (len(self.knots) == n_columns and self.n_outputs == n_outputs, "columns or outputs"),
            (all((np.diff(own.values) > 0).all() for own in self.knots), "knots that ascend"),
            (all(own.features.max(initial=0) < self.n_features for own in self.knots), "features of knots"),
            (self.place_of.max(initial=0) < self.n_features and known <= max(n_given, 2), "features of codes"),
            (len(sources.code_columns) == len(sources.n_frequent) == len(sizes) - len(self.knots), "columns of codes"),
            (np.array_equal(sizes, [*of_level_0, *(sources.n_frequent + SHARED)]), "cells of columns"),
            ((np.diff(sources.code_columns) > 0).all() and np.array_equal(sources.most, most), "sources of pairs"),
        ):
            if not holds:
                raise ModelError(f"the {problem} of additive members do not fit together")
        for of_pair in (pairs.first, pairs.second):
            if len(of_pair) and of_pair.max() >= len(sizes):
                raise ModelError("pairs of additive members are of columns that are not there")
        if (pairs.starts + sources.cells(pairs.first, pairs.second) > self.n_features).any():
            raise ModelError("pairs of additive members have features that are not there")

    def check_screening(self, screening: Screening) -> None:
        """Raise a ModelError if sums by which pairs are chosen are not of the sources there are."""
        made = Screening.create(len(self.sources.sizes), self.n_outputs)
        same = [a.shape == b.shape and a.dtype == b.dtype for a, b in zip(screening, made, strict=True)]
        if not (all(same) and all(np.array_equal(a, b) for a, b in zip(screening[:2], made[:2], strict=True))):
            raise ModelError("the sums of additive members are not of their pairs")

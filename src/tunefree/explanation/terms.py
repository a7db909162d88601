"""The terms of a model: a constant, one for each part of a column, one for each pair of parts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tunefree.additive.features import AdditiveFeatures
from tunefree.stream.layout import Layout

CONSTANT = "(constant)"


class Terms(NamedTuple):
    """Terms in order: the constant, the parts of columns, the pairs."""

    layout: Layout
    of_feature: np.ndarray  # (d,) int64: the term of each feature as given
    of_place: np.ndarray  # (m,) int64: the term of each additive feature; empty if there are none
    sources: np.ndarray  # (s,) int64: the term of the part that each source of pairs is of
    pairs: np.ndarray  # (p, 2) int64: sources
    pair_names: list[str]

    @classmethod
    def of(cls, layout: Layout, additive: AdditiveFeatures | None) -> Terms:
        """The terms of a model with these additive features, if it has any."""
        of_feature = 1 + layout.of_feature
        if additive is None:
            nothing = np.zeros(0, np.int64)
            return cls(layout, of_feature, nothing, nothing, np.zeros((0, 2), np.int64), [])
        parts = [layout.of_feature[1 + column] for column in range(len(additive.knots))]
        named = [layout.code_source(column) for column in additive.sources.code_columns.tolist()]
        names = [layout.parts[part].name for part in parts] + [name for name, _ in named]
        sources = 1 + np.array([*parts, *(part for _, part in named)], np.int64)
        pairs = np.column_stack([additive.pairs.first, additive.pairs.second])
        made = cls(layout, of_feature, np.zeros(additive.n_features, np.int64), sources, pairs, [])
        made._place(additive)
        return made._replace(pair_names=[f"{names[first]} & {names[second]}" for first, second in pairs.tolist()])

    def _place(self, additive: AdditiveFeatures) -> None:
        """Fill in the terms of additive features."""
        place_of = additive.place_of[: len(self.of_feature)]
        known = np.flatnonzero(place_of)
        self.of_place[place_of[known]] = self.of_feature[known]
        for source, own in enumerate(additive.knots):
            self.of_place[own.features[own.features > 0]] = self.sources[source]
        sizes = additive.sources.cells(*self.pairs.T)
        for pair, (start, size) in enumerate(zip(additive.pairs.starts.tolist(), sizes.tolist(), strict=True)):
            self.of_place[start : start + size] = self.first_pair + pair

    @property
    def first_pair(self) -> int:
        """The term of the first pair."""
        return 1 + len(self.layout.parts)

    @property
    def names(self) -> list[str]:
        """Names of all terms."""
        return [CONSTANT, *(part.name for part in self.layout.parts), *self.pair_names]

    def of_pair(self, pair: int) -> tuple[int, int]:
        """The terms of the parts that a pair is of."""
        first, second = self.sources[self.pairs[pair]].tolist()
        return first, second

    def by_column(self) -> tuple[list[str], np.ndarray]:
        """Names with one term for each column, all its parts together, and for each term its number among these."""
        columns = list(dict.fromkeys(part.column for part in self.layout.parts))
        number = {column: 1 + k for k, column in enumerate(columns)}
        of_pairs = 1 + len(columns) + np.arange(len(self.pair_names))
        grouped = [0, *(number[part.column] for part in self.layout.parts), *of_pairs.tolist()]
        return [CONSTANT, *columns, *self.pair_names], np.array(grouped, np.int64)

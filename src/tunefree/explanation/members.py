"""Decomposition of the margins of a pool's members into parts, which are sums over columns.

The margins of a linear member are one part. Contributions to the margin of a tree follow its path
(:mod:`tunefree.generations.trees`), and the corrections that online learners add on its leaves are a separate part.
Averaged trees have mean probabilities that are sums over columns, and the margins are their logarithms: a contribution
to a probability is multiplied by the slope of the secant between the margins of the reference and of the row. The
reference is a set of rows; contributions are relative to their mean over it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.rows import Block, dense, entries_of, n_rows, rows_at, table
from tunefree.generations.columns import TURN, Columns, features_of, is_bundle
from tunefree.generations.generation import Generation
from tunefree.generations.leaves import log_probabilities
from tunefree.generations.linear import Linear, design
from tunefree.generations.trees import Trees, add_paths, node_means
from tunefree.losses.objectives import Objective
from tunefree.pool.model import Model
from tunefree.pool.passes import add_terms
from tunefree.pool.slots import Slot
from tunefree.stream.layout import Layout

CONSTANT = "(constant)"
MOST_ROWS = 1024  # maximum number of rows of a reference
SHORT = 1e-12  # change of a probability, up to which the tangent replaces the secant
MOST_TERM = 1e300  # bound on terms that keeps sums finite, since targets may be near the largest float
MOST_SQUARED = 1e140  # bound on terms that keeps sums of squares finite


class Reference(NamedTuple):
    """Reference rows in the formats of linear members and of trees."""

    rows: Block | None  # None if there are no rows
    matrix: np.ndarray  # (r, c) columns of trees, in the order of their keys; without rows, a single row of NaN

    @classmethod
    def of(cls, model: Model, is_table: bool, rows: Block | None = None) -> Reference:
        """Select at most 1,024 of ``rows``, evenly spaced; by default of the rows that a pool keeps for growing.

        Kept rows have no words. Without a reference value, words are compared to their absence, and numbers of linear
        members to the centre of their column. ``is_table``: whether rows come from a table, not from an array.
        """
        growth = None if model.pool is None else model.pool.members.growth
        columns = Columns() if growth is None else growth.columns
        if rows is None and growth is not None and growth.whole.rows:
            kept = columns.without_forgotten(growth.whole.kept()["columns"])
            kept = kept[evenly_spaced(len(kept))]
            matrix = columns.completed(kept)
            return cls(_block(columns, matrix, model.linear.n_columns == 0, is_table), matrix)
        if rows is None or not n_rows(rows):
            return cls(None, np.full((1, len(columns.keys)), np.nan))
        rows = rows_at(rows, evenly_spaced(n_rows(rows)))
        return cls(rows, columns.matrix(rows))


def evenly_spaced(n: int, most: int = MOST_ROWS) -> np.ndarray:
    """Return the indices of at most ``most`` of n rows, evenly spaced.

    >>> evenly_spaced(9, 3), evenly_spaced(2, 3)
    (array([0, 4, 8]), array([0, 1]))
    """
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))


def _block(columns: Columns, matrix: np.ndarray, is_sparse: bool, is_table: bool) -> Block:
    """Convert rows (r, c) in the order of the columns' keys to a block like the original rows."""
    keys, known = np.array(columns.keys, np.int64), np.nan_to_num(matrix)
    if is_table:
        codes = np.flatnonzero(keys < 0)
        codes = codes[np.argsort(-1 - keys[codes])]
        numbers = np.flatnonzero((keys > 0) & np.isnan(columns.fills))
        categories = known[:, codes] % TURN
        return table(known[:, numbers], keys[numbers], categories, columns.words_of(matrix), -1 - keys[codes])
    return columns.words_of(matrix) if is_sparse else dense(known[:, np.argsort(keys)])


class Part(NamedTuple):
    """A part of a member's margins: the value at the reference, and the contributions of terms."""

    start: np.ndarray  # (k,)
    terms: np.ndarray  # (n, t, k)


class Member(NamedTuple):
    """A member, whose prediction is a function of the values of its parts."""

    place: int  # index in the mixture
    parts: list[int]  # indices among all parts: of the generation as it was grown, and of corrections on leaves
    width: int  # number of classes of the mixture; 0 for numbers
    rows: int  # learned rows, which determine the probability of classes unknown to the member
    n_late: int  # number of classes of its generation, if some appeared after it was grown; else 0

    def predict(self, values: list[np.ndarray]) -> np.ndarray:
        """Return log-probabilities (n, K), or numbers, from the values (n, k) of all parts."""
        margins = self._margins(values)
        return log_probabilities(margins, self.width, self.rows) if self.width else margins

    def _margins(self, values: list[np.ndarray]) -> np.ndarray:
        original, *others = (values[part] for part in self.parts)
        return sum(others, log_probabilities(original, self.n_late, self.rows) if self.n_late else original)

    def pulled_back(self, values: list[np.ndarray], gradient: np.ndarray) -> list[np.ndarray]:
        """Convert derivatives (n, Q, K) in the prediction to derivatives (n, Q, k) in the values of the parts."""
        margin_gradient = _in_margins(self._margins(values), gradient) if self.width else gradient
        born_gradient = _in_margins(values[self.parts[0]], margin_gradient) if self.n_late else margin_gradient
        return [born_gradient, *[margin_gradient] * (len(self.parts) - 1)]


def _in_margins(margins: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Convert derivatives (n, Q, K) in log-probabilities to derivatives in the margins (n, k)."""
    known = margins.shape[1]
    if known == 1:
        second = np.exp(-np.logaddexp(0.0, -margins))[:, :, None]
        return (1.0 - second) * gradient[:, :, 1:2] - second * gradient[:, :, :1]
    shares = np.exp(log_probabilities(margins, known, 0))[:, None]
    return gradient[:, :, :known] - shares * gradient[:, :, :known].sum(axis=2, keepdims=True)


class Terms:
    """The terms of a model: the constant, which comes first, and one term for each column.

    ``part_terms``: index of the term of each part of a column, and 0 for the constant at the end.
    ``feature_terms``: index (d,) of the term of each feature.
    """

    def __init__(self, layout: Layout) -> None:
        columns = list(dict.fromkeys(part.column for part in layout.parts))
        number = {column: 1 + k for k, column in enumerate(columns)}
        self.layout, self.names = layout, [CONSTANT, *columns]
        self.part_terms = np.array([*(number[part.column] for part in layout.parts), 0], np.int64)
        self.feature_terms = self.part_terms[layout.feature_parts]

    def term_indices(self, keys: Iterable[int]) -> np.ndarray:
        """Return the terms (c,) of columns by their keys; for a bundle, the term of its first feature."""
        first = [features_of(key)[0] if is_bundle(key) else key for key in keys]
        return self.part_terms[[self.layout.part_of(key) for key in first]]


class LinearTerms:
    """The terms of the members of a linear group, relative to their means over rows, if there are any."""

    def __init__(self, group: Any, terms: Terms, rows: Any = None) -> None:
        self.group, self.n_terms = group, len(terms.names)
        self.term_of = np.zeros(max(len(terms.feature_terms), group.n_features), np.int64)
        self.term_of[: len(terms.feature_terms)] = terms.feature_terms
        self.means = [np.zeros((self.n_terms, group.n_outputs))] * len(group.members)
        if rows is not None:
            self.means = [(part.terms / max(len(part.terms), 1)).sum(axis=0) for part in self.parts(rows)]

    def parts(self, X: Any) -> list[Part]:
        """Return the margins of rows, one part for each member."""
        by_slot, parts = self.group.meetings.by_slot(self.term_of), []
        for m, seen in enumerate(self.group.present().weighted_rows(X)):
            unit, centre = unit_and_centre(self.group.members[m].objective)
            terms = np.zeros((n_rows(X), self.n_terms, self.group.n_outputs))
            for rows in seen:
                term_of = by_slot if rows.features is None else self.term_of[rows.features]
                add_terms(*rows.read, unit, term_of, entries_of(rows.X), terms)
            terms = np.clip(terms, -MOST_TERM, MOST_TERM)
            start = self.means[m].sum(axis=0) + unit * centre
            if n_rows(X):
                start = start + terms[0, 0] - self.means[m][0]  # the constant is the same in all rows
            terms[:, 0] = 0.0
            terms[:, 1:] -= self.means[m][1:]
            parts.append(Part(start, terms))
        return parts


def unit_and_centre(objective: Objective) -> tuple[float, float]:
    """Return the scale and centre of targets: a margin m predicts the number unit * (m + centre)."""
    return (objective.unit, objective.centre) if objective.task == "regression" else (1.0, 0.0)


class TreeTerms:
    """The terms of a generation of trees as it was grown, and of the corrections of each learner on its leaves."""

    def __init__(self, generation: Generation, terms: Terms, reference: np.ndarray) -> None:
        trees, keys = generation.model, generation.keys.tolist()
        self.trees, self.n_terms, self.term_of = trees, len(terms.names), terms.term_indices(keys)
        self.bundles = [  # index of the column, first feature, and terms of the features
            (place, features_of(key)[0], terms.feature_terms[slice(*features_of(key))])
            for place, key in enumerate(keys)
            if is_bundle(key)
        ]
        self.term_of[[place for place, *_ in self.bundles]] = self.n_terms + np.arange(len(self.bundles))
        scale = 1.0 / max(len(trees.roots), 1) if trees.is_averaged else 1.0
        values = [trees.values.astype(np.float64) * scale]
        offsets = [trees.start * scale]
        for living in generation.living:
            unit, centre = unit_and_centre(living.objective)
            values.append(living.values(trees.n_leaves) - unit * centre)
            offsets.append(np.full(values[-1].shape[1], unit * centre))
        self.ends = np.cumsum([part_values.shape[1] for part_values in values])[:-1]
        self.means = node_means(trees, reference, np.concatenate(values, axis=1))
        roots = self.means[trees.roots].sum(axis=0)
        self.starts = [start + offset for start, offset in zip(np.split(roots, self.ends), offsets, strict=True)]

    def parts(self, columns: np.ndarray) -> list[Part]:
        """Return the parts of rows (n, c)."""
        terms = np.zeros((len(columns), self.n_terms + len(self.bundles), self.means.shape[1]))
        add_paths(self.trees, self.means, columns, self.term_of, terms)
        terms, bundle_terms = terms[:, : self.n_terms], terms[:, self.n_terms :]
        for number, (place, first, term_of) in enumerate(self.bundles):
            _share_out(bundle_terms[:, number], columns[:, place] % TURN - first, term_of, terms)
        split = np.split(terms, self.ends, axis=2)
        return [_margins_of(self.trees, Part(self.starts[0], split[0])), *map(Part, self.starts[1:], split[1:])]


def _share_out(contributions: np.ndarray, category: np.ndarray, term_of: np.ndarray, terms: np.ndarray) -> None:
    """Add the contributions (n, k) of a bundle to the terms (n, t, k) of the feature that each row has in it.

    If a row has no feature of the bundle (NaN), all features share the contribution.
    """
    rows, known = np.flatnonzero(~np.isnan(category)), category[~np.isnan(category)].astype(np.int64)
    terms[rows, term_of[known]] += contributions[rows]
    rows = np.flatnonzero(np.isnan(category))
    shares = np.bincount(term_of, minlength=terms.shape[1]) / len(term_of)
    terms[rows] += contributions[rows, None] * shares[:, None]


def _margins_of(trees: Trees, part: Part) -> Part:
    """Convert a part of the sums of trees to a part of margins."""
    least, is_binary = float(trees.least), len(part.start) == 1 and trees.n_classes > 0
    if not (trees.is_averaged and least > 0.0):
        return part
    part = part._replace(start=np.clip(part.start, least, 1.0 - least if is_binary else np.inf))

    def margins(shares: np.ndarray) -> np.ndarray:
        shares = np.clip(shares, least, 1.0 - least if is_binary else np.inf)
        return np.log(shares) - np.log1p(-shares) if is_binary else np.log(shares)

    start, change = margins(part.start), part.terms.sum(axis=1)
    slopes = np.tile(1.0 / (part.start * (1.0 - part.start) if is_binary else part.start), (len(change), 1))
    np.divide(margins(part.start + change) - start, change, out=slopes, where=np.abs(change) > SHORT)
    return Part(start, part.terms * slopes[:, None])


class LinearModelTerms:
    """The terms of a generation of linear models, with one part for each strength of regularisation."""

    def __init__(self, generation: Generation, terms: Terms, reference: np.ndarray) -> None:
        self.model: Linear = generation.model
        keys, sources = generation.keys.tolist(), self.model.sources
        self.means = design(reference, *self.model[:4]).mean(axis=0)
        self.indicators = np.zeros((len(self.means), len(terms.names)))
        categories = np.nan_to_num(self.model.levels).astype(np.int64) % TURN
        in_bundle = np.array([is_bundle(key) for key in keys], bool)[sources]
        category_terms = terms.feature_terms.take(categories, mode="clip")
        term_of = np.where(in_bundle, category_terms, terms.term_indices(keys)[sources])
        self.indicators[np.arange(1, len(self.means)), term_of] = 1.0

    def parts(self, columns: np.ndarray) -> list[Part]:
        """Return the parts of rows (n, c)."""
        centred, parts = design(columns, *self.model[:4]) - self.means, []
        for weights in self.model.weights:
            weights = np.clip(weights, -MOST_SQUARED, MOST_SQUARED)
            terms = np.einsum("nd,dk,dt->ntk", centred, weights, self.indicators, optimize=True)
            parts.append(Part(self.means @ weights, terms))
        return parts


class PoolTerms:
    """The parts of the members of a pool."""

    def __init__(self, pool: Any, terms: Terms, reference: Reference) -> None:
        members, self.pool = pool.members, pool
        self.linear = LinearTerms(members.linear, terms, reference.rows)
        self.generations: list[tuple[Any, ...]] = []  # clock, kind, age and generation, with its columns and terms
        for clock, kind, age, generation in members.generations():
            columns = members.growth.columns.places(generation.keys)
            terms_class = LinearModelTerms if isinstance(generation.model, Linear) else TreeTerms
            generation_terms = terms_class(generation, terms, np.ascontiguousarray(reference.matrix[:, columns]))
            self.generations.append((clock, kind, age, generation, columns, generation_terms))

    def parts(self, X: Any) -> tuple[list[Part], list[Member]]:
        """Return all parts of rows, and the members, which predict from the parts."""
        members, parts = self.pool.members, self.linear.parts(X)
        width, rows = members.width, self.pool.rows
        mixture_members = [Member(place, [k], width, rows, 0) for k, place in enumerate(members.online_places)]
        matrix = members.growth.columns.matrix(X) if self.generations else np.empty((n_rows(X), 0))
        for clock, kind, age, generation, columns, terms in self.generations:
            new_parts, first = terms.parts(np.ascontiguousarray(matrix[:, columns])), len(parts)
            n_late, is_linear = generation.n_classes if generation.n_late else 0, isinstance(generation.model, Linear)
            for version in range(len(new_parts)):
                used = [first + version] if is_linear or not version else [first, first + version]
                place = members.slots.get(Slot(clock, kind, age, version))
                if place is not None:
                    mixture_members.append(Member(place, used, width, generation.rows, n_late))
            parts += new_parts
        finite = [Part(*(np.clip(numbers, -MOST_SQUARED, MOST_SQUARED) for numbers in part)) for part in parts]
        return finite, mixture_members

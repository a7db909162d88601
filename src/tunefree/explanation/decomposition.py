"""The share-weighted margins of a model as a sum of terms.

f(x) = sum_m share_m * margin_m(x), over the members m whose margins are weighted sums of entries: linear members in
views that transform column by column, and additive members. Kernel members have no such terms, and members with next
to no share are left out; the shares of the others are divided by their sum. A model of classes averages probabilities,
not margins. So f is not what the model predicts, and :mod:`tunefree.explanation.fidelity` measures how near it is.

A term is the sum over the entries of its features of weight * value, minus its mean over a sample of rows that were
learned; the means are in the constant. What pairs of columns tell of one column is counted to this column
(:mod:`tunefree.explanation.main_effects`).
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from tunefree.additive.sample import SAMPLED
from tunefree.core.errors import ModelError
from tunefree.core.numbers import within
from tunefree.core.rows import Table, as_table, n_rows, part, rows_at
from tunefree.explanation.main_effects import MainEffects, cells_of, main_effects
from tunefree.explanation.terms import Terms
from tunefree.losses.objectives import Multinomial, Regression
from tunefree.model.group import MemberGroup
from tunefree.model.model import Model
from tunefree.model.passes import add_terms
from tunefree.stream.layout import Layout

LEAST_SHARE = 1e-3  # of a member that takes part
PIECE = 512  # rows at a time
MOST_NUMBERS = 2**24  # of a piece, and of the terms of the rows of the sample


class _Part(NamedTuple):
    """The members of a group that take part."""

    group: MemberGroup
    members: list[int]
    shares: list[float]  # of the members that take part they add up to 1


class Decomposition:
    """A trained model as a sum of terms.

    Parameters
    ----------
    model : Model
    layout : Layout
        Of the features of its rows.
    rows : block of rows, optional
        The sample over which terms have mean 0. By default the additive members' sample of the rows they learned.
        If there is none, no mean is subtracted.

    Attributes
    ----------
    terms : Terms
    share : float
        Of the members that take part, in predictions.
    n_members : int
        How many take part.
    sample : Table or None
        At most 4096 of the rows of the sample.

    Raises
    ------
    ModelError
        If no member has weights of columns.

    Examples
    --------
    >>> from tunefree.core.rows import dense
    >>> from tunefree.model.targets import Labels
    >>> model, X = Model("classification", "scinol2"), dense([[0.0, 1.0], [1.0, 3.0]] * 50)
    >>> _ = model.learn(X, Labels.of(["no", "yes"] * 50), np.ones(100))
    >>> found = Decomposition(model, Layout.of_array(["a", "b"]))
    >>> margins = found.contributions(X).sum(axis=1)
    >>> bool(np.allclose(margins, model.predict(X)))
    True
    """

    def __init__(self, model: Model, layout: Layout, rows: Any = None) -> None:
        self.model = model
        self._parts, self.share = _parts(model)
        self.n_members = sum(len(own.members) for own in self._parts)
        if model.options.has_generations:
            raise ModelError(
                "models of generations are not explained: trees, and a mixture that learns, are no sums of functions of"
                " columns; train without --learner generations (learner='pool')"
            )
        if not self._parts:
            raise ModelError(
                "no member with weights of columns has a share in predictions, and kernels have no such weights; train"
                " without kernels"
            )
        self._additive = next((own.group.additive for own in self._parts if own.group.additive is not None), None)
        self.terms = Terms.of(layout, self._additive)
        self._n_terms = len(self.terms.names)
        learned = None if self._additive is None else self._additive.sample.rows
        self._effects = [] if learned is None else self._main_effects(learned)
        self._means = np.zeros((self._n_terms, model.n_outputs))
        sample = learned if rows is None else rows
        self.sample: Table | None = None if sample is None else self._thinned(sample)
        if self.sample is not None:
            self._means[1:] = self.contributions(self.sample).mean(axis=0)[1:]

    @property
    def parts(self) -> list[_Part]:
        """The members that take part, by their groups, with their shares, which add up to 1."""
        return self._parts

    @property
    def reference(self) -> Table:
        """The sample, which there has to be.

        Raises
        ------
        ModelError
            If there is none.
        """
        if self.sample is None or not len(self.sample.numbers):
            raise ModelError("the model keeps no sample of rows, without which terms cannot be compared; give rows")
        return self.sample

    def _thinned(self, rows: Any) -> Table:
        """Evenly spaced rows, as many as are needed and as there is memory for."""
        most = int(np.clip(MOST_NUMBERS // (self._n_terms * self.model.n_outputs), 1, SAMPLED))
        return rows_at(as_table(rows), evenly_spaced(n_rows(rows), most))

    def contributions(self, X: Any) -> np.ndarray:
        """What each term contributes to the margins of rows, (n, terms, K).

        Of classes that only differences of margins tell apart (the multinomial log-loss), margins are relative to
        their mean over the classes.
        """
        step = int(np.clip(MOST_NUMBERS // (self._n_terms * self.model.n_outputs), 1, PIECE))
        found = np.zeros((n_rows(X), self._n_terms, self.model.n_outputs))
        for start in range(0, n_rows(X), step):
            self._add(part(X, start, min(start + step, n_rows(X))), found[start : start + step])
        found[:, 1:] -= self._means[1:]
        found[:, 0] += self._means[1:].sum(axis=0)
        return found

    def _add(self, X: Any, found: np.ndarray) -> None:
        """Add the contributions to the margins of a few rows."""
        for group, members, shares in self._parts:
            term_of = self.terms.of_place if group.additive is not None else group.by_slot(self.terms.of_feature)
            for m, share, seen in zip(members, shares, group.weighted_rows(X, members), strict=True):
                unit, offset = unit_and_offset(group.members[m].objective)
                add_terms(seen.weights, seen.units, share * unit, term_of, seen.X, found)
                if seen.further is not None:
                    terms = self.terms.of_feature[seen.further.features]
                    add_terms(*seen.further.read, share * unit, terms, seen.further.X, found)
                found[:, 0] += within(np.asarray(share * offset))
        found[:] = within(found)
        if self._effects:
            self._move(as_table(X), found)
        found[:] = identified(self.model.objective, found)

    @property
    def column_names(self) -> list[str]:
        """Names of the constant, of the columns and of the pairs."""
        return self.terms.by_column()[0]

    def by_column(self, found: np.ndarray) -> np.ndarray:
        """Contributions (n, terms, K) with one term for each column: all its parts together."""
        starts = np.unique(self.terms.by_column()[1], return_index=True)[1]
        return np.add.reduceat(found, starts, axis=1)

    def knots(self, term: int, coarse: bool = False) -> np.ndarray:
        """The knots (m,) of the curve of a part, or the coarse ones of pairs; none if it has none."""
        if self._additive is not None:
            for source, own in enumerate(self._additive.knots):
                if self.terms.sources[source] == term:
                    return own.values[own.levels == 0] if coarse else own.values
        return np.zeros(0)

    def margins(self, X: Any) -> np.ndarray:
        """The model's own margins (n, K), of which the terms are to explain the variance."""
        return identified(self.model.objective, within(self.model.predict(X)))

    def _pair_weights(self) -> list[np.ndarray]:
        """The weights (s, t, K) of each pair, averaged over the members."""
        additive = self._additive
        assert additive is not None
        total = np.zeros((additive.n_features, self.model.n_outputs))
        for group, members, shares in self._parts:
            if group.additive is not None:
                nothing = part(additive.sample.rows, 0, 0)
                for m, share, seen in zip(members, shares, group.weighted_rows(nothing, members), strict=True):
                    factor = np.where(seen.units > 0.0, share * unit_and_offset(group.members[m].objective)[0], 0.0)
                    with np.errstate(over="ignore", invalid="ignore"):
                        own = seen.weights * (factor / np.where(seen.units > 0.0, seen.units, 1.0))[:, None]
                    total += within(own)
        sizes = additive.sources.sizes[self.terms.pairs]
        return [
            total[start : start + s * t].reshape(s, t, -1)
            for start, (s, t) in zip(additive.pairs.starts.tolist(), sizes.tolist(), strict=True)
        ]

    def _cells(self, rows: Table) -> dict[int, Any]:
        """The cells of rows, for each source of pairs."""
        assert self._additive is not None
        return {s: cells_of(self._additive, s, rows) for s in np.unique(self.terms.pairs).tolist()}

    def _main_effects(self, rows: Table) -> list[MainEffects]:
        """What to take from each pair."""
        cells = self._cells(rows)
        weights = zip(self.terms.pairs.tolist(), self._pair_weights(), strict=True)
        return [main_effects(own, cells[first], cells[second]) for (first, second), own in weights]

    def _move(self, rows: Table, found: np.ndarray) -> None:
        """Take main effects from the pairs and add them to the columns."""
        cells = self._cells(rows)
        for pair, effects in enumerate(self._effects):
            for source, term, own in zip(
                self.terms.pairs[pair].tolist(), self.terms.of_pair(pair), effects, strict=True
            ):
                moved = cells[source].of(own)
                found[:, self.terms.first_pair + pair] -= moved
                found[:, term] += moved


def evenly_spaced(n: int, most: int = SAMPLED) -> np.ndarray:
    """The places of at most so many of n rows.

    Examples
    --------
    >>> evenly_spaced(9, 3), evenly_spaced(2, 3)
    (array([0, 4, 8]), array([0, 1]))
    """
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))


def contributions(model: Model, encoder: Any, X: Any) -> tuple[list[str], np.ndarray]:
    """What the constant, each column and each pair of columns contribute to the margins of rows.

    Parameters
    ----------
    model : Model
    encoder : encoder of the rows, or None
        Without one each feature is a column.
    X : block of rows

    Returns
    -------
    names : list of str
    contributions : (n, terms, K) array
    """
    layout = Layout.of_array([f"x{j}" for j in range(model.n_features - 1)])
    found = Decomposition(model, layout if encoder is None else Layout.of_encoder(encoder))
    return found.column_names, found.by_column(found.contributions(X))


def _parts(model: Model) -> tuple[list[_Part], float]:
    """The members that take part, by their groups, and their share in predictions."""
    found, total = [], 0.0
    for group, shares in model.predictive_groups():
        members = np.flatnonzero(shares >= LEAST_SHARE).tolist() if group.has_weights else []
        if members:
            found.append((group, members, shares[members]))
            total += float(shares[members].sum())
    return [_Part(group, members, (shares / total).tolist()) for group, members, shares in found], min(total, 1.0)


@singledispatch
def unit_and_offset(objective: Any) -> tuple[float, float]:
    """The prediction that a learner's margin of 0 stands for, and by how much a margin of 1 is larger, reversed."""
    return 1.0, 0.0


@unit_and_offset.register(Regression)
def unit_and_offset_of_numbers(objective: Regression) -> tuple[float, float]:
    return objective.unit, objective.centre * objective.unit


@singledispatch
def identified(objective: Any, margins: np.ndarray) -> np.ndarray:
    """Margins (..., K) as far as the objective tells them apart."""
    return margins


@identified.register(Multinomial)
def identified_differences(objective: Multinomial, margins: np.ndarray) -> np.ndarray:
    return margins - margins.mean(axis=-1, keepdims=True)

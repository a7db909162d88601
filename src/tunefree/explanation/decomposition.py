"""A model's margins of rows as sums of terms: a constant, and a contribution of each column.

Margins are log-odds (of more than two classes log-probabilities, or other margins, minus their mean over the classes),
or numbers. The constant is the margin where all members predict their mean over the rows of a reference
(:class:`tunefree.explanation.members.Reference`).

Single linear learners: the margin is a sum over columns. A pool: the margins of its members are sums of parts, which
are sums over columns (:mod:`tunefree.explanation.members`), and its mixture is a function of them. Along the line from
the reference's parts to the row's, the derivatives of the mixture are integrated; the integral times what a column adds
to the parts is its contribution (Aumann, Shapley: Values of non-atomic games, 1974; Sundararajan, Taly, Yan: Axiomatic
attribution for deep networks, ICML 2017), by eight points of Gauss and Legendre. What lacks where the mixture is not
smooth, as it clips, is made up by the least change of the derivatives, so that contributions add up to the margin.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.numbers import scaled
from tunefree.core.rows import Block, n_rows, part, rows_at
from tunefree.explanation.members import (
    CONSTANT,
    LinearTerms,
    Member,
    Part,
    PoolTerms,
    Reference,
    Terms,
    unit_and_centre,
)
from tunefree.losses.objectives import Objective
from tunefree.mixing.gradients import Rule
from tunefree.pool.contexts import FOLLOWING, KNOWN, NEW, by_context
from tunefree.pool.model import Model, published
from tunefree.pool.targets import place_of
from tunefree.stream.layout import Layout

MOST_NUMBERS = 2**22  # of what is computed of a few rows
PIECE = 512  # rows at a time
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(8)
POINTS, WEIGHTS = (POINTS + 1.0) / 2.0, WEIGHTS / 2.0  # on the line from 0 to 1


class Decomposition:
    """A trained model as a sum of terms.

    ``layout``: of the features of its rows.
    ``rows``: of the reference. By default those that a pool keeps for growing; where there are none, as with texts and
    single learners, terms are relative to a row of which nothing is known.
    ``reference``: one that was made of the model before, instead of rows.
    ``names``: the constant and the columns.
    Raises a ModelError if the model has kernels only.
    """

    def __init__(self, model: Model, layout: Layout, rows: Any = None, reference: Reference | None = None) -> None:
        if not model.linear.members:
            raise ModelError("models of kernels alone have no terms of columns; explain a pool or a linear learner")
        self.model, self.layout, self.terms = model, layout, Terms(layout)
        self.names, self.pool = self.terms.names, model.pool
        self.reference = reference or Reference.of(model, bool(layout.columns), rows)
        if self.pool is None:
            self._linear = LinearTerms(model.linear, self.terms, self.reference.rows)
            return
        self._rules = [ContextRule.of(self.pool, number) for number in (NEW, KNOWN)]

    @cached_property
    def _pool_terms(self) -> PoolTerms:
        """Terms of the members of a pool; importances do without them."""
        places = sorted({place for rule in self._rules for place in rule.places})
        return PoolTerms(self.pool, places, self.terms, self.reference)

    @property
    def reference_rows(self) -> Block:
        """The rows of the reference, which there have to be."""
        if self.reference.rows is None:
            raise ModelError(
                "the model keeps no rows, over which columns are compared; explain(X) has the contributions to rows X"
            )
        return self.reference.rows

    @cached_property
    def _copy(self) -> Model:
        """A copy of the model, which remembers the rows that it predicts: their targets might come."""
        return published(self.model)

    def margins(self, X: Any) -> np.ndarray:
        """The margins (n, K) that the model has for rows."""
        return identified(self.model.objective, self._copy.predict(X))

    def contributions(self, X: Any) -> np.ndarray:
        """The contribution of each term to the margins of rows, (n, terms, K)."""
        n_parts = 1 if self.pool is None else len(self._pool_terms.used)
        n_terms, n_outputs = len(self.names), self.model.n_outputs
        numbers_per_row = (n_terms * (1 + n_parts) + 4 * n_parts * n_outputs) * n_outputs
        step = int(np.clip(MOST_NUMBERS // numbers_per_row, 1, PIECE))
        function = self._of_learner if self.pool is None else self._of_pool
        pieces = [function(part(X, start, start + step)) for start in range(0, n_rows(X), step)]
        return np.concatenate([np.empty((0, n_terms, n_outputs)), *pieces])

    def _of_learner(self, X: Any) -> np.ndarray:
        (margins,) = self._linear.parts(X)
        margins.terms[:, 0] = margins.start
        return identified(self.model.objective, margins.terms)

    def _of_pool(self, X: Any) -> np.ndarray:
        """Contributions (n, terms, K) to the margins of rows, in the units of the targets."""
        pool: Any = self.pool
        _, contexts = pool.recognised(X, pool.members.matrix(X))

        def context_results(number: int, rows: Any) -> np.ndarray:
            return self._contributions(X if isinstance(rows, slice) else rows_at(X, rows), self._rules[number])

        results = by_context(contexts, context_results)
        if pool.members.predicts_logarithms:
            results[:, 0] += pool.offsets[contexts, None]
            return results
        return scaled(results, pool.unit)

    def _contributions(self, X: Any, rule: ContextRule) -> np.ndarray:
        """Contributions (n, terms, K) to the margins of rows of a context."""
        parts, members = self._pool_terms.parts(X)
        line = Line(rule.rule, rule.places, parts, [member for member in members if member.place in rule.places])
        contributions = np.zeros((n_rows(X), len(self.names), self.model.n_outputs))
        for member_part, derivatives in zip(parts, line.integrals(), strict=True):
            contributions += np.einsum("ntk,nqk->ntq", member_part.terms, derivatives, optimize=True)
        contributions[:, 0] = line.margins_at(0.0)
        return contributions


class ContextRule(NamedTuple):
    """The rule that predicts rows of a context from the members that are awake."""

    places: list[int]  # of these members
    rule: Rule

    @classmethod
    def of(cls, pool: Any, number: int) -> ContextRule:
        """The rule of the context of this number in a pool."""
        context, is_over = pool.predicting(number), pool.has_finished
        is_base, context = context is None, pool.contexts[NEW] if context is None else context
        is_frozen = not is_base and is_over and context.frozen.choice != FOLLOWING
        places = context.frozen.places if is_frozen else list(range(len(pool.members.names)))
        mixture = context.frozen.mixture if is_frozen else context.mixture
        rule = Rule.of(mixture, is_over, is_base or (is_frozen and context.frozen.choice == 1))
        awake = [k for k, place in enumerate(places) if place in pool.members.places_awake]
        return cls([places[k] for k in awake], rule.restricted(awake))


class Line:
    """The lines from the reference to rows, on which members' parts move evenly."""

    def __init__(self, rule: Rule, places: list[int], parts: list[Part], members: list[Member]) -> None:
        self.rule, self.parts, self.members = rule, parts, members
        self.column_of = {place: k for k, place in enumerate(places)}
        self.changes = [part.terms.sum(axis=1) for part in parts]

    def values_at(self, t: float) -> list[np.ndarray]:
        """The values (n, k) of the parts at a place of the lines."""
        return [part.start + t * change for part, change in zip(self.parts, self.changes, strict=True)]

    def predictions(self, values: list[np.ndarray]) -> np.ndarray:
        """The predictions (n, M, K) of the members by the values of the parts."""
        n, width = len(values[0]), max(self.members[0].width, 1)
        predictions = np.full((n, len(self.column_of), width), np.nan)
        for member in self.members:
            predictions[:, self.column_of[member.place]] = member.predict(values)
        return predictions

    def margins_at(self, t: float) -> np.ndarray:
        """The margins (n, Q) of rows at a place of their lines."""
        return self.rule.margins(self.predictions(self.values_at(t)))

    def integrals(self) -> list[np.ndarray]:
        """The derivatives (n, Q, k) of the margins in the values of each part, averaged over the lines.

        They add up to how the margins rise, by the least change of the means (Gonzalez: Time integration and discrete
        Hamiltonian systems, 1996).
        """
        risen = self.margins_at(1.0) - self.margins_at(0.0)
        means = self._means(risen.shape[1])
        used = {place for member in self.members for place in member.parts}
        changes = [change * (place in used) for place, change in enumerate(self.changes)]
        size = sum((change**2).sum(axis=1) for change in changes)
        rest = risen - sum(np.einsum("nqk,nk->nq", *both) for both in zip(means, self.changes, strict=True))
        correction = rest / np.where(size > 0.0, size, 1.0)[:, None]
        return [mean + correction[:, :, None] * change[:, None] for mean, change in zip(means, changes, strict=True)]

    def _means(self, width: int) -> list[np.ndarray]:
        """Means of the derivatives over the lines, by Gauss and Legendre."""
        means = [np.zeros((len(change), width, change.shape[1])) for change in self.changes]
        for point, weight in zip(POINTS, WEIGHTS, strict=True):
            values = self.values_at(point)
            derivatives = self.rule.linearised(self.predictions(values))[1]()
            for member in self.members:
                gradient = derivatives[:, :, self.column_of[member.place]]
                for place, part_gradient in zip(member.parts, member.pulled_back(values, gradient), strict=True):
                    means[place] += weight * part_gradient
        return means


def output_of(classes: list[Any], n_outputs: int, label: Any) -> tuple[int, float]:
    """The margin of a class, and its sign: one margin is for the second of two classes.

    ``classes``: labels in the order of the margins.
    ``label``: or how it is written.

    >>> output_of(["no", "yes"], 1, "no"), output_of([1, 2, 3], 3, "2")
    ((0, -1.0), (1, 1.0))
    """
    if not classes:
        raise ModelError(f"there is no class {label!r}: the model predicts numbers; leave the class out")
    place = place_of(label, classes)
    return (place, 1.0) if n_outputs > 1 else (0, 1.0 if place == 1 else -1.0)


def identified(objective: Objective, margins: np.ndarray) -> np.ndarray:
    """Margins (..., K) up to differences that do not change predictions: a softmax ignores their mean."""
    return margins - margins.mean(axis=-1, keepdims=True) if objective.is_softmax else margins


class Weights(NamedTuple):
    """A linear function of the features."""

    names: list[str]  # of the features, the constant first
    weights: np.ndarray  # (d, K): margin = weights[0] + sum of weights[j] * x_j


def linear_weights(model: Model, names: list[str]) -> Weights:
    """The weights of a model that is one linear learner on rows as they are.

    ``names``: of the features, without the constant.
    """
    if not model.has_weights or model.options.view != "raw":
        raise ModelError(
            "only single linear learners on raw rows have weights of features; explain tells what columns contribute,"
            " and inspect how much they matter"
        )
    weights, units = model.linear.weights(model.n_features)
    unit, centre = unit_and_centre(model.objective)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        relative = np.where(units[:, None] > 0.0, weights / units[:, None], 0.0)
    relative[0] += centre
    return Weights([CONSTANT, *names], scaled(relative, unit)[: 1 + len(names)])

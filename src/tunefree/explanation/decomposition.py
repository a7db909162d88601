"""Decomposition of a model's margins into terms: a constant, and a contribution of each column.

Margins are predicted numbers or log-odds; with more than two classes, log-probabilities or other margins minus their
mean over the classes. The constant is the margin if all members predict their mean over the rows of a reference
(:class:`tunefree.explanation.members.Reference`).

The margin of a single linear learner is a sum over columns. In a pool, the margins of members are sums of parts, which
are sums over columns (:mod:`tunefree.explanation.members`), and the mixture is a function of the parts. Its derivatives
are integrated along the line from the parts of the reference to the parts of the row, by Gauss-Legendre quadrature with
eight points. The contribution of a column is this integral times its contribution to the parts (Aumann, Shapley: Values
of non-atomic games, 1974; Sundararajan, Taly, Yan: Axiomatic attribution for deep networks, ICML 2017). Where clipping
makes the mixture non-smooth, the smallest change of the derivatives makes contributions add up to the margin.
"""

from __future__ import annotations

from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.numbers import scaled
from tunefree.core.rows import Block, n_rows, part, rows_at
from tunefree.explanation.members import (
    MOST_ROWS,
    LinearTerms,
    PoolTerms,
    Reference,
    Terms,
    evenly_spaced,
    unit_and_centre,
)
from tunefree.losses.objectives import Objective
from tunefree.mixing.gradients import Rule
from tunefree.pool.contexts import KNOWN, NEW, by_context, mixing_of, rule_of
from tunefree.pool.model import Model, published
from tunefree.pool.targets import place_of
from tunefree.stream.layout import Layout

MOST_NUMBERS = 2**22  # limit on the size of intermediate arrays
BATCH_ROWS = 512  # maximum number of rows processed at a time
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(8)
POINTS, WEIGHTS = (POINTS + 1.0) / 2.0, WEIGHTS / 2.0  # rescaled to the interval [0, 1]


class Decomposition:
    """A trained model as a sum of terms.

    ``layout``: layout of the features.
    ``rows``: rows of the reference. By default the rows that a pool keeps for growing; if there are none, as with texts
    and single learners, terms are relative to a row without known values.
    ``reference``: an existing reference of the model, instead of rows.
    ``names``: names of the terms, the constant and the columns.
    Raises a ModelError if the model has only kernel learners.
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
        awake, self._rules = {*self.pool.members.places_awake}, list[tuple[Rule, list[int]]]()
        for number in (NEW, KNOWN):
            _, mixed, _ = mixing_of(self.pool, number, self.pool.has_finished)
            places = sorted(awake) if mixed is None else [place for place in mixed if place in awake]
            self._rules.append((rule_of(self.pool, number, places), places))

    @cached_property
    def _pool_terms(self) -> PoolTerms:
        """Terms of the members of a pool; lazy, since importances do not need them."""
        return PoolTerms(self.pool, self.terms, self.reference)

    def reference_rows(self, most: int = MOST_ROWS) -> Block:
        """At most ``most`` rows of the reference, evenly spaced; a ModelError if there are none."""
        rows = self.reference.rows
        if rows is None:
            raise ModelError(
                "the model keeps no rows, over which columns are compared; explain(X) has the contributions to rows X"
            )
        return rows_at(rows, evenly_spaced(n_rows(rows), most))

    @cached_property
    def _copy(self) -> Model:
        """A copy of the model for predictions; the model itself would remember the rows, whose targets might come."""
        return published(self.model)

    def margins(self, X: Any) -> np.ndarray:
        """Return the margins (n, K) of rows."""
        return identified(self.model.objective, self._copy.predict(X))

    def contributions(self, X: Any) -> np.ndarray:
        """Return the contributions (n, terms, K) of terms to the margins of rows."""
        n_parts = 1 if self.pool is None else len({*chain(*(places for _, places in self._rules))})
        n_terms, n_outputs = len(self.names), self.model.n_outputs
        numbers_per_row = (n_terms * (1 + n_parts) + 4 * n_parts * n_outputs) * n_outputs
        step = int(np.clip(MOST_NUMBERS // numbers_per_row, 1, BATCH_ROWS))
        batches = [self._batch_contributions(part(X, start, start + step)) for start in range(0, n_rows(X), step)]
        return np.concatenate([np.empty((0, n_terms, n_outputs)), *batches])

    def _batch_contributions(self, X: Any) -> np.ndarray:
        """Return contributions (n, terms, K) in the units of the targets."""
        pool: Any = self.pool
        if pool is None:
            (margins,) = self._linear.parts(X)
            margins.terms[:, 0] = margins.start
            return identified(self.model.objective, margins.terms)
        _, contexts = pool.recognised(X, pool.members.matrix(X))

        def context_results(number: int, rows: Any) -> np.ndarray:
            return self._context_contributions(X if isinstance(rows, slice) else rows_at(X, rows), number)

        results = by_context(contexts, context_results)
        if pool.members.predicts_logarithms:
            results[:, 0] += pool.offsets[contexts, None]
            return results
        return scaled(results, pool.unit)

    def _context_contributions(self, X: Any, number: int) -> np.ndarray:
        """Return contributions (n, terms, K) for rows of one context, in the units of the mixture.

        Derivatives are averaged over the straight line from the parts of the reference to the parts of each row. Their
        least-norm correction makes contributions add up to the increase of the margins (Gonzalez: Time integration and
        discrete Hamiltonian systems, 1996).
        """
        (parts, members), (rule, places) = self._pool_terms.parts(X), self._rules[number]
        column_of = {place: k for k, place in enumerate(places)}
        members = [member for member in members if member.place in column_of]
        changes = [part.terms.sum(axis=1) for part in parts]

        def at(t: float) -> tuple[list[np.ndarray], np.ndarray]:
            """Return the values (n, k) of the parts, and the predictions (n, M, K) of the members, from 0 to 1."""
            values = [part.start + t * change for part, change in zip(parts, changes, strict=True)]
            predictions = np.full((n_rows(X), len(column_of), max(members[0].width, 1)), np.nan)
            for member in members:
                predictions[:, column_of[member.place]] = member.predict(values)
            return values, predictions

        start, end = (rule.linearised(at(t)[1])[0] for t in (0.0, 1.0))
        used = sorted({index for member in members for index in member.parts})
        means = {index: np.zeros((*start.shape, changes[index].shape[1])) for index in used}
        for point, weight in zip(POINTS, WEIGHTS, strict=True):
            values, predictions = at(point)
            derivatives = rule.linearised(predictions)[1]()
            for member in members:
                gradient = derivatives[:, :, column_of[member.place]]
                for index, part_gradient in zip(member.parts, member.pulled_back(values, gradient), strict=True):
                    means[index] += weight * part_gradient
        size = sum((changes[index] ** 2).sum(axis=1) for index in used)
        rest = end - start - sum(np.einsum("nqk,nk->nq", means[index], changes[index]) for index in used)
        correction = (rest / np.where(size > 0.0, size, 1.0)[:, None])[:, :, None]
        contributions = np.zeros((n_rows(X), len(self.names), self.model.n_outputs))
        for index in used:
            derivatives = means[index] + correction * changes[index][:, None]
            contributions += np.einsum("ntk,nqk->ntq", parts[index].terms, derivatives, optimize=True)
        contributions[:, 0] = start
        return contributions


def output_of(classes: list[Any], n_outputs: int, label: Any) -> tuple[int, float]:
    """Return the index of the margin of a class, and its sign: a single margin is of the second of two classes.

    ``classes``: labels in the order of the margins.
    ``label``: a label, or its string.

    >>> output_of(["no", "yes"], 1, "no"), output_of([1, 2, 3], 3, "2")
    ((0, -1.0), (1, 1.0))
    """
    if not classes:
        raise ModelError(f"there is no class {label!r}: the model predicts numbers; leave the class out")
    index = place_of(label, classes)
    return (index, 1.0) if n_outputs > 1 else (0, 1.0 if index == 1 else -1.0)


def identified(objective: Objective, margins: np.ndarray) -> np.ndarray:
    """Return margins (..., K) with mean 0 for a softmax, which ignores their mean; others are unchanged."""
    return margins - margins.mean(axis=-1, keepdims=True) if objective.is_softmax else margins


def linear_weights(model: Model, n_features: int) -> np.ndarray:
    """Return the weights (d, K) of a single linear learner on raw rows: margin = weights[0] + sum of weights[j] * x_j.

    ``n_features``: d, the number of features with the constant, which comes first.
    """
    if not model.has_weights or model.options.view != "raw":
        raise ModelError(
            "only single linear learners on raw rows have weights of features; explain gives the contributions of"
            " columns, and inspect how much they matter"
        )
    weights, units = model.linear.weights(model.n_features)
    unit, centre = unit_and_centre(model.objective)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        relative = np.where(units[:, None] > 0.0, weights / units[:, None], 0.0)
    relative[0] += centre
    return np.asarray(scaled(relative, unit)[:n_features])

"""The linear function that is nearest to the terms of a model: one weight for each feature, in the feature's own units.

Of linear members weights are known: those of the features as given are those in the member's view, by the slope of the
view where it does not clip. The curves of an additive member, and what its pairs tell of one column, are not linear.
They are replaced by what fits them best over the sample of rows that were learned (least squares): a line for a column
of numbers, and a number for each code. What pairs tell beyond that is in no weight, and a model of classes averages
probabilities rather than margins. So the function is measured against the model's own margins, where there is a sample.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree.core.numbers import within
from tunefree.core.rows import Table, part
from tunefree.explanation.decomposition import Decomposition, identified, unit_and_offset
from tunefree.explanation.fidelity import Fidelity, measured
from tunefree.model.group import MemberGroup
from tunefree.model.model import Model
from tunefree.model.passes import add_terms
from tunefree.model.views import lines
from tunefree.stream.layout import CODES, HASHED, Layout

LARGEST = np.finfo(np.float64).max
STEEPEST = 1e300  # weights, sums of which are finite


class EffectiveWeights(NamedTuple):
    """A linear function of the features."""

    names: list[str]  # of the features, the constant first
    weights: np.ndarray  # (d, K): margin = weights[0] + sum of weights[j] * x_j
    fidelity: Fidelity | None  # to the model's own margins, over its sample of rows; None without a sample


def effective_weights(model: Model, layout: Layout) -> EffectiveWeights:
    """The linear function nearest to the share-weighted margin of a model.

    Parameters
    ----------
    model : Model
    layout : Layout
        Of the features of its rows.

    Returns
    -------
    EffectiveWeights
        Margins are log-odds, or in regression predictions. Of more than two classes that only differences of margins
        tell apart, they are relative to the mean over the classes.

    Raises
    ------
    ModelError
        If no member has weights of columns, as kernels have none.

    Examples
    --------
    >>> from tunefree.core.rows import dense
    >>> X = np.random.default_rng(0).normal(50.0, 10.0, (2000, 1))
    >>> model = Model("regression", "newton", view="steady")
    >>> _ = model.learn(dense(X), 3.0 * X[:, 0] + 7.0, np.ones(2000))
    >>> effective_weights(model, Layout.of_array(["age"])).weights[1].round(1)
    array([2.9])
    """
    found = Decomposition(model, layout)
    n_features = len(layout.of_feature)
    weights = np.zeros((n_features, model.n_outputs))
    with np.errstate(over="ignore", invalid="ignore"):
        for group, members, shares in found.parts:
            for m, share in zip(members, shares, strict=True):
                unit, offset = unit_and_offset(group.members[m].objective)
                own = _of_additive(group, m, n_features) if group.additive else _of_linear(group, m, layout)
                weights = within(weights + within(share * unit * own, STEEPEST), STEEPEST)
                weights[0] = within(weights[0] + share * offset, STEEPEST)
    weights = identified(model.objective, weights)
    if found.sample is None:
        return EffectiveWeights(["(constant)", *layout.names[1:n_features]], weights, None)
    sample, terms = found.sample, found.contributions(found.sample)
    _add_curves(weights, found, terms - _terms_of(weights, found, sample))
    total, fitted = terms.sum(axis=1), _terms_of(weights, found, sample).sum(axis=1)
    weights[0] += (total - fitted).mean(axis=0)
    fitted = _terms_of(weights, found, sample).sum(axis=1)
    fidelity = measured(found.margins(sample), fitted)
    return EffectiveWeights(["(constant)", *layout.names[1:n_features]], weights, fidelity)


def per_unit(weights: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Weights per unit of a feature; 0 for one that was never met."""
    known = units[:, None] > 0.0
    with np.errstate(over="ignore"):
        return within(np.where(known, weights / np.where(known, units[:, None], 1.0), 0.0), LARGEST)


def _of_linear(group: Any, m: int, layout: Layout) -> np.ndarray:
    """Weights (d, K) of the features as given of a linear member, the constant's among them."""
    n_features = len(layout.of_feature)
    own = group.by_feature(per_unit(*group.weights()[m]), n_features)
    view = group.views.get(group.members[m].setting.view)
    if view is None:
        return own
    slopes, centres, slope_of_entries = lines(view)
    p = len(slopes)
    of_parts = [None, *(layout.parts[k].kind for k in layout.of_feature[1:].tolist())]
    is_entry = np.array([kind not in (None, CODES, HASHED) for kind in of_parts])
    is_entry[: p + 1] = False
    own[1 : p + 1] *= slopes[:, None]
    own[is_entry] *= slope_of_entries
    own[0] -= centres @ own[1 : p + 1]
    return own


def _of_additive(group: MemberGroup, m: int, n_features: int) -> np.ndarray:
    """Weights (d, K) of what an additive member takes as given: the constant, codes and words."""
    additive = group.additive
    assert additive is not None
    (seen,) = group.weighted_rows(part(additive.sample.rows, 0, 0), [m])
    places = np.zeros(n_features, np.int64)
    places[: len(additive.place_of)] = additive.place_of[:n_features]
    own = per_unit(seen.weights, seen.units)[places]
    own[1:][places[1:] == 0] = 0.0
    return own


def _terms_of(weights: np.ndarray, found: Decomposition, X: Table) -> np.ndarray:
    """The terms (n, terms, K) of a linear function of the features."""
    terms = np.zeros((len(X.numbers), len(found.terms.names), weights.shape[1]))
    add_terms(weights, np.ones(len(weights)), 1.0, found.terms.of_feature, X, terms)
    return within(terms)


def _add_curves(weights: np.ndarray, found: Decomposition, rest: np.ndarray) -> None:
    """Add what fits the rest of the terms of columns best: a line of a number, and a number for each code."""
    sample, term_of = found.sample, found.terms.of_feature
    assert sample is not None
    held = [(codes, np.unique(codes[codes > 0])) for codes in sample.codes.T]
    missing = {term_of[k]: codes == k for codes, features in held for k in features.tolist()}
    base = {}  # what a line of a number is at 0
    for values, feature in zip(sample.numbers.T, sample.columns.tolist(), strict=True):
        here = ~missing.get(term_of[feature], np.zeros(len(values), bool))
        slope, base[term_of[feature]] = _line(values[here], rest[here, term_of[feature]])
        weights[feature] = within(weights[feature] + slope, STEEPEST)
    for codes, features in held:
        for feature in features.tolist():
            mean = rest[codes == feature, term_of[feature]].mean(axis=0)
            weights[feature] += mean - base.get(term_of[feature], rest[:, term_of[feature]].mean(axis=0))


def _line(values: np.ndarray, heights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slopes (K,), and heights (K,) at 0, of the lines nearest to heights (n, K) over values (n,)."""
    size = np.abs(values).max(initial=0.0)
    relative = values / size if size > 0.0 else values
    away = relative - relative.mean() if len(values) else values
    squares = float(away @ away)
    if not squares > 0.0:
        return np.zeros(heights.shape[1]), heights.mean(axis=0) if len(heights) else np.zeros(heights.shape[1])
    slope = away @ heights / squares
    with np.errstate(over="ignore"):
        return within(slope / size, STEEPEST), heights.mean(axis=0) - slope * relative.mean()

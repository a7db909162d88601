"""Derivatives of the prediction of a mixture with respect to the predictions of its members, in closed form.

Margins are the log-odds of the second of two classes, the log-probabilities of more classes minus their mean over the
classes, or the number. They are continuous in the members' predictions, and smooth except where a value is clipped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tunefree.losses.contract import has_log_link
from tunefree.mixing import classes, numbers
from tunefree.mixing.bases import LEAST
from tunefree.mixing.corrections import UNIT, keep_order, weights_of
from tunefree.mixing.mixture import BASE_ONLY, Mixture
from tunefree.mixing.numbers import Range

Gradient = tuple[np.ndarray, Callable[[], np.ndarray]]


class Rule(NamedTuple):
    """A mixture with fixed weights."""

    base: np.ndarray  # (M,) weights of the members
    top: np.ndarray  # (3,) weights of the base and of the corrections
    corrections: np.ndarray  # (2, F) weights of the features
    known: Range | None  # statistics of the targets; None for classes
    has_begun: bool  # whether corrections have features other than the constant
    is_log: bool  # whether predictions are logarithms of means, see tunefree.mixing.numbers

    @classmethod
    def of(
        cls, mixture: Mixture, is_over: bool, is_base: bool = False, indices: Sequence[int | None] | None = None
    ) -> Rule:
        """The present rule of a mixture, or of its base alone; ``is_over`` as in :meth:`Mixture.predict`.

        It is for the members with these indices, in this order; a member without an index has weight 0.
        """
        top = BASE_ONLY if is_base else mixture.top
        corrections = np.stack([weights_of(state) for state in mixture.corrections])
        for weights in corrections if mixture.keeps_order else ():
            keep_order(weights, mixture.n_members)
        base = mixture.base.means if is_over else mixture.base.weights
        if indices is not None:
            some, is_member = [index or 0 for index in indices], np.array([index is not None for index in indices])
            others = corrections[:, len(base) :]
            corrections = np.concatenate([np.where(is_member, corrections[:, some], 0.0), others], axis=1)
            base = np.where(is_member, base[some], 0.0)
        known = mixture.range if mixture.n_classes == 0 else None
        has_begun = bool(mixture.base.rounds[0] > numbers.BEGUN)
        top_weights = (top.means if is_over else top.weights).copy()
        return cls(base.copy(), top_weights, corrections, known, has_begun, has_log_link(mixture.loss))

    def linearised(self, members: np.ndarray) -> Gradient:
        """The margins (n, Q), and a function for their derivatives (n, Q, M, K) by the members' predictions.

        >>> rule = Rule.of(Mixture(1, 2), True)
        >>> margins, derivatives = rule.linearised(np.log([[[0.2, 0.8]]]))
        >>> margins.round(3), derivatives().round(3)
        (array([[1.386]]), array([[[[-1.,  1.]]]]))
        """
        awake = ~np.isnan(members[:, :, 0])
        members = np.where(awake[:, :, None], members, 0.0)
        weights = np.where(awake, self.base, 0.0)
        total = weights.sum(axis=1, keepdims=True)
        weights = np.divide(weights, total, out=np.zeros(weights.shape), where=total > 0.0)
        return (_linearised_classes if self.known is None else _linearised_numbers)(self, members, awake, weights)


def _linearised_classes(rule: Rule, members: np.ndarray, awake: np.ndarray, weights: np.ndarray) -> Gradient:
    n_members, n_classes = members.shape[1:]
    terms = weights[:, :, None] * np.exp(members) * awake[:, :, None]
    mean, has_awake = terms.sum(axis=1), awake.any(axis=1) & (weights.sum(axis=1) > 0.0)
    base = np.where(has_awake[:, None], np.log(np.maximum(mean, LEAST)), -np.log(n_classes))
    offsets = members - base[:, None]
    clipped, clipped_base = np.clip(offsets, -classes.WIDEST, classes.WIDEST), np.maximum(base, -classes.WIDEST_BASE)
    features = np.concatenate([clipped * awake[:, :, None], clipped_base[:, None]], axis=1)
    features = (features - features.mean(axis=2, keepdims=True)) / UNIT
    dense, biases = rule.corrections[:, : n_members + 1], rule.corrections[:, n_members + 1 :]
    corrected = base[:, None] + np.einsum("ci,nik->nck", dense, features)
    corrected += biases / UNIT if biases.shape[1] else 0.0
    peak = corrected.max(axis=2, keepdims=True)
    corrected -= peak + np.log(np.exp(corrected - peak).sum(axis=2, keepdims=True))
    candidates = np.concatenate([base[:, None], corrected], axis=1)
    parts = rule.top[:, None] / rule.top.sum() * np.exp(candidates)
    mixed = parts.sum(axis=1)
    seeds = np.array([[-1.0, 1.0]]) if n_classes == 2 else np.eye(n_classes) - 1.0 / n_classes

    def derivatives() -> np.ndarray:
        shares = np.divide(parts, mixed[:, None], out=np.zeros(parts.shape), where=(mixed > LEAST)[:, None])
        candidate_slopes = seeds[:, None] * shares[:, None]
        sum_slopes = candidate_slopes[:, :, 1:]
        sum_slopes = sum_slopes - np.exp(corrected)[:, None] * sum_slopes.sum(axis=3, keepdims=True)
        feature_slopes = np.einsum("ci,nqck->nqik", dense, sum_slopes)
        feature_slopes = (feature_slopes - feature_slopes.mean(axis=3, keepdims=True)) / UNIT
        member_slopes = feature_slopes[:, :, :-1] * ((np.abs(offsets) < classes.WIDEST) & awake[:, :, None])[:, None]
        base_slopes = candidate_slopes[:, :, 0] + sum_slopes.sum(axis=2) - member_slopes.sum(axis=2)
        base_slopes += feature_slopes[:, :, -1] * (base > -classes.WIDEST_BASE)[:, None]
        ratios = np.divide(terms, mean[:, None], out=np.zeros(terms.shape), where=(mean > LEAST)[:, None])
        return member_slopes + base_slopes[:, :, None] * ratios[:, None]

    return np.log(np.maximum(mixed, LEAST)) @ seeds.T, derivatives


def _linearised_numbers(rule: Rule, members: np.ndarray, awake: np.ndarray, weights: np.ndarray) -> Gradient:
    assert rule.known is not None
    low, high = map(float, numbers.ends_of(rule.known, rule.is_log))
    mean, unit = (float(number(rule.known, rule.is_log)) for number in (numbers.centre_of, numbers.unit_of))
    predictions = members[:, :, 0]
    is_inside, values = (predictions >= low) & (predictions <= high), np.clip(predictions, low, high)
    has_awake = weights.sum(axis=1) > 0.0
    average, shares = _mean(rule, values, weights)
    base = np.where(has_awake, average, mean)
    scale = 1.0 / unit if unit > 0.0 and rule.has_begun else 0.0
    offsets, base_feature = (values - base[:, None]) * scale * awake, (base - mean) * scale
    is_narrow, is_near = (np.abs(offsets) < numbers.WIDEST) & awake, np.abs(base_feature) < numbers.WIDEST_BASE
    clipped = np.clip(offsets, -numbers.WIDEST, numbers.WIDEST)
    clipped_base = np.clip(base_feature, -numbers.WIDEST_BASE, numbers.WIDEST_BASE)
    features = np.column_stack([clipped, clipped_base, np.full(len(base), 0.0 if rule.is_log else 1.0)])
    corrected = base[:, None] + unit * (features @ rule.corrections.T / UNIT)
    candidates = np.column_stack([base, np.clip(corrected, low, high)])
    mixed, parts = _mean(rule, candidates, np.tile(rule.top, (len(base), 1)))

    def derivatives() -> np.ndarray:
        free = parts[:, 1:] * ((corrected >= low) & (corrected <= high))
        slopes = free @ rule.corrections[:, :-1] * (unit * scale / UNIT)  # by features, in units of the target
        direct = slopes[:, :-1] * is_narrow
        common = parts[:, 0] + free.sum(axis=1) - direct.sum(axis=1) + slopes[:, -1] * is_near
        return ((direct + common[:, None] * shares) * is_inside)[:, None, :, None]

    return mixed[:, None], derivatives


def _mean(rule: Rule, predictions: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted means (n,) of predictions (n, m), and their derivatives (n, m) with respect to the predictions."""
    if not rule.is_log:
        return (weights * predictions).sum(axis=1), weights
    peak = predictions.max(axis=1, keepdims=True, initial=-np.inf, where=weights > 0.0)
    peak = np.where(np.isfinite(peak), peak, 0.0)
    parts = weights * np.exp(np.minimum(predictions - peak, 0.0))
    total = parts.sum(axis=1, keepdims=True)
    shares = np.divide(parts, total, out=np.zeros(parts.shape), where=total > 0.0)
    return (peak + np.log(np.maximum(total, LEAST)))[:, 0], shares

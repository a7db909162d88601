"""Contexts: known rows and new rows, each with a mixture of the same members.

A row is *known* if a generation awake was grown on its observation, or its observation is among the latest learned
ones; else it is *new*. Members may remember the target of a known row, so the two kinds of rows are judged separately:
one mixture learns new rows, and another one learns known rows. A future row is predicted by the mixture of its kind. If
a table has duplicates but future rows are new, duplicates did not mislead their mixture. If a table has few distinct
rows, future rows are known, and their mixture has learned many such rows. Where rows have groups, a row is known if its
group is known.

The context of known rows begins at the first known row, with the weights of members from the context of new rows, but
without its corrections. Until then these weights alone predict known rows: on rows that members remember, corrections
learned from other rows may be wrong with certainty.

A copy of the pool (:mod:`tunefree.pool.snapshot`) predicts rows that come after it was taken, so these rows judge
predictions far ahead. The *frozen mixture* has the same rule as the mixture that follows the stream, but its members
are the generations of all rows as they were born, without later learning. Its weights are constant, too: weights
learned from the rows of earlier copies predict the rows of a copy. The mixture that follows the stream predicts future
rows, unless the loss of the frozen mixture, or of its base alone, is smaller by more than SURE standard errors.

Where a trend goes on or a season begins, a copy that predicts numbers drifts away from members that learn. The drift is
the difference between the scores of the copy and of the stream. One or two copies do not show the direction of the next
drift. So each row has two scores, its own and the one with the opposite drift, and each has half the weight.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tunefree.core.numbers import power_below
from tunefree.core.part import FIXED, LEARNED, Part, argument, array, child, number, zeros
from tunefree.core.schema import COUNT, Number
from tunefree.generations.reservoir import Reservoir
from tunefree.intervals.conformal import SURE as SURE_OF_SCORES
from tunefree.intervals.conformal import SURE_BY_CURVE, quantile, recency, wider
from tunefree.intervals.conformal_record import MOST_SCORES, ConformalRecord, scores_of
from tunefree.intervals.learning_curve import LearningCurve
from tunefree.mixing.bases import Account, CandidateWeights
from tunefree.mixing.gradients import Rule
from tunefree.mixing.mixture import BASE_ONLY, Mixture
from tunefree.pool.groups import starts_of_runs
from tunefree.pool.ledger import LearnedRows
from tunefree.pool.members import Members
from tunefree.pool.weights_record import WeightsRecord

NEW, KNOWN, N_CONTEXTS = 0, 1, 2
SURE = 2.0
MOST_LOSS = 1e145  # the largest loss of a row, so that sums of squares are finite
FOLLOWING, N_CHOICES = 2, 3  # the last choice is the mixture that follows the stream
RUN = 64  # the drift of a copy is the mean difference of scores over so many rows, to average out noise
MOST_WEIGHT = 1e280  # the largest weight relative to the first one, so that sums do not overflow


def by_context(contexts: np.ndarray, mix_context: Callable[[int, Any], np.ndarray]) -> np.ndarray:
    """Results (n, ...) of a function that takes a context number and its rows, in the order of all rows.

    >>> by_context(np.array([0, 1, 0]), lambda number, rows: 10 * number + np.arange(3)[rows])
    array([ 0, 11,  2])
    """
    is_known = contexts == KNOWN
    n_known = int(np.count_nonzero(is_known))
    if n_known in (0, len(contexts)):
        return mix_context(KNOWN if n_known else NEW, slice(None))
    places = np.flatnonzero(~is_known), np.flatnonzero(is_known)
    parts = [mix_context(number, rows) for number, rows in enumerate(places)]
    results = np.empty((len(contexts), *parts[0].shape[1:]), parts[0].dtype)
    for rows, part in zip(places, parts, strict=True):
        results[rows] = part
    return results


def mixing_of(pool: Any, number: int, is_over: bool) -> tuple[Mixture, list[int] | None, bool]:
    """The mixture that predicts rows of a context, positions of its members or None, and whether its base predicts."""
    if number >= len(pool.contexts):  # it has no rows
        return pool.contexts[NEW].mixture, None, True
    context = pool.contexts[number]
    if pool.balance is not None and not context.has_events:  # it does not know the size of the targets
        context = next((other for other in pool.contexts if other.has_events), context)
    if is_over and context.frozen.choice != FOLLOWING:
        return context.frozen.mixture, context.frozen.places, context.frozen.choice != 0
    return context.mixture, None, False


def rule_of(pool: Any, number: int, places: Sequence[int | None]) -> Rule:
    """The rule that predicts future rows of a context, for members at these positions; other members have weight 0."""
    mixture, mixed, is_base = mixing_of(pool, number, pool.has_finished)
    if mixed is not None:
        places = [mixed.index(place) if place in mixed else None for place in places]
    return Rule.of(mixture, pool.has_finished, is_base, places)


class RelativeWeights(Part):
    """Divides each weight by the mean of the weights up to and including it.

    ``unit`` is the largest power of two that is not above the first weight. ``mass`` is the sum of the weights in this
    unit, over ``rows`` rows of a weight above 0.

    >>> RelativeWeights().of(np.array([7.0, 0.0, 21.0]))
    array([1. , 0. , 1.5])
    """

    rows = number(LEARNED, COUNT)
    unit = number(LEARNED, Number(0))
    mass = number(LEARNED, Number(0))

    def __init__(self) -> None:
        self.rows, self.unit, self.mass = 0, 0.0, 0.0

    def of(self, weight: np.ndarray) -> np.ndarray:
        """Relative weights (n,) of the next rows; 0 stays 0.

        They are rounded to single precision, so that constant weights give exactly the same results as no weights.
        """
        if self.unit == 0.0 and (weight > 0.0).any():
            self.unit = float(power_below(weight[weight > 0.0][0]))
        if self.unit > 0.0 and self.mass == self.rows and (weight == self.unit).all():  # all weights so far are equal
            self.rows, self.mass = self.rows + len(weight), self.mass + len(weight)
            return np.ones(len(weight))
        terms = np.empty(len(weight) + 1)
        terms[0], scaled = self.mass, terms[1:]
        with np.errstate(over="ignore"):
            scaled[:] = np.minimum(weight / self.unit, MOST_WEIGHT) if self.unit > 0.0 else weight
        totals, counts = terms.cumsum()[1:], self.rows + (weight > 0.0).cumsum()
        if len(weight):
            self.mass, self.rows = float(totals[-1]), int(counts[-1])
        relative = np.divide(scaled * counts, totals, out=np.zeros(len(weight)), where=totals > 0.0)
        return relative.astype(np.float32).astype(np.float64)

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return min(self.unit * self.mass, MOST_WEIGHT)


def with_opposite_drift(scores: np.ndarray, stream_scores: np.ndarray) -> np.ndarray:
    """Scores (n, 2 C): the scores (n, C) of rows in order, then those with the opposite drift from the stream's scores.

    >>> with_opposite_drift(np.array([[3.0], [5.0]]), np.array([[1.0], [-1.0]]))
    array([[ 3., -5.],
           [ 5., -3.]])
    """
    starts = np.arange(0, len(scores), RUN)
    sizes = np.diff(starts, append=len(scores))
    drifts = np.add.reduceat((scores - stream_scores) / np.repeat(sizes, sizes)[:, None], starts)
    return np.concatenate([scores, scores - 2.0 * np.repeat(drifts, sizes, axis=0)], axis=1)


class FrozenMixture(Part):
    """A mixture of generations as they were born, their positions in the pool, and the losses by which it is chosen.

    ``losses`` are the total losses of the frozen mixture, of its base, and of the copies' mixtures on the same rows.
    ``squares`` are sums of squared differences between the loss of the copies' mixtures on a row and the losses of the
    first two. ``scores`` of rows that copies predicted (:mod:`tunefree.intervals`) have a column for each of the three,
    and three more columns with the opposite drift; their digests are the row numbers.
    """

    places = argument()
    mixture = child(Mixture, LEARNED)
    losses = array("float64", (3,), FIXED, low=0)
    squares = array("float64", (2,), FIXED, low=0)
    scores = child(Reservoir, LEARNED)

    def __init__(self, places: list[int], n_classes: int, loss: Any, keeps_order: bool = False) -> None:
        self.places = places
        self.mixture = Mixture(len(places), n_classes, loss, keeps_order)
        self.losses, self.squares = np.zeros(3), np.zeros(2)
        self.scores = Reservoir(most=MOST_SCORES)

    @property
    def choice(self) -> int:
        """The mixture that predicts future rows: 0 the frozen one, 1 its base, 2 the one that follows the stream."""
        best = int(np.argmin(self.losses[:2]))
        is_sure = self.losses[2] - self.losses[best] > SURE * np.sqrt(self.squares[best])
        return best if is_sure else FOLLOWING

    def reduce(self) -> None:
        """Keep only the scores of the mixture that predicts future rows."""
        super().reduce()
        is_other = np.arange(self.scores.columns.shape[1]) % N_CHOICES != self.choice
        self.scores.columns = np.where(is_other, 0.0, self.scores.columns)

    def quantile(self, level: float, stream_quantile: float, curve: LearningCurve, code: int | None = None) -> float:
        """The quantile of the scores of future rows.

        ``stream_quantile`` is the quantile for rows predicted just before they were learned. It is the result unless
        the scores of rows predicted by copies, as far ahead as future rows, are clearly wider. If another mixture than
        the one that follows the stream is chosen, the result is the quantile of these scores, which the learning curve
        corrects for future rows. With ``code``, only rows of that class count.
        """
        kept = self.scores.kept()
        counts = np.ones(len(kept["targets"]), bool) if code is None else kept["targets"] == code
        numbers = kept["digests"].astype(np.float64)
        weights = (kept["weights"] * recency(numbers))[counts]
        if not len(weights):
            return stream_quantile
        columns = kept["columns"][counts] * curve.factors(numbers[counts])[:, None]
        scores, weights = columns[:, self.choice :: N_CHOICES].ravel(), np.repeat(0.5 * weights, 2)
        if self.choice == FOLLOWING:
            sure = SURE_BY_CURVE if curve.is_known else SURE_OF_SCORES
            sure *= math.sqrt(2.0)  # the two scores of a row are not independent
            return wider(stream_quantile, scores, weights, level, sure)
        copy_quantile = quantile(scores, weights, level)
        return copy_quantile if np.isfinite(copy_quantile) else stream_quantile

    def learn(self, members: Members, rows: Any, counts: bool) -> None:
        """Add the losses of rows, if these are to count, and their scores; then let the mixture learn them in order."""
        predicted, y, weights, numbers, _, *score_arrays = rows
        born_predictions, stream_predictions = np.ascontiguousarray(predicted[:, :-2]), predicted[:, -1:]
        base_predictions = self.mixture.predict(born_predictions, is_base=True)
        candidates = np.stack([self.mixture.predict(born_predictions), base_predictions, predicted[:, -2]], axis=1)
        if counts:
            losses = np.minimum(weights[:, None] * members.losses(candidates, y), MOST_LOSS)
            self.losses = self.losses + losses.sum(axis=0)
            self.squares = self.squares + ((losses[:, 2:] - losses[:, :2]) ** 2).sum(axis=0)
        if len(y):
            scores = scores_of(members.loss, candidates, y, *score_arrays)
            at_once = scores if members.loss is None else scores_of(members.loss, stream_predictions, y, *score_arrays)
            counted = np.ones(len(y)) if members.predicts_logarithms else weights  # weights of counts include exposures
            self.scores.add(with_opposite_drift(scores, at_once), y, counted, numbers, [0.0] * 2 * N_CHOICES)
        self.mixture.learn(born_predictions, y, weights)


class Context(Part):
    """The mixture of the members for new rows or for known rows, and its records.

    ``frozen`` is a mixture of generations as they were born, ``record`` the course of the members' weights and losses
    (only with generations), ``conformal`` the record of the mixture's scores, and ``relative`` scales weights.
    """

    mixture = child(Mixture, LEARNED)
    frozen = child(FrozenMixture, LEARNED)
    record = child(WeightsRecord, LEARNED)
    conformal = child(ConformalRecord, LEARNED)
    relative = child(RelativeWeights, LEARNED)

    def __init__(self, members: Members) -> None:
        self.mixture = Mixture(len(members.names), members.width, members.loss, bool(members.signs))
        self.forget_trees(members)
        self.record = WeightsRecord(len(members.names))
        self.conformal = ConformalRecord(members.loss)
        self.relative = RelativeWeights()

    def forget_trees(self, members: Members) -> None:
        """Reset the frozen mixture."""
        self.frozen = FrozenMixture(members.places_as_born, members.width, members.loss, bool(members.signs))

    def observe(self, rows: LearnedRows) -> None:
        """Record the scores of the mixture on rows, and the losses of the members and the mixture."""
        growth, members = rows.members.growth, rows.members
        columns = ([], []) if growth is None else (growth.columns.keys, growth.columns.fills)
        self.conformal.observe(rows, *columns)
        judged = np.flatnonzero(rows.relative > 0.0)
        if growth is not None and len(judged):
            predictions, y = np.concatenate([rows.predictions, rows.mixed[:, None]], axis=1)[judged], rows.y[judged]
            starts = None if rows.groups is None else starts_of_runs(rows.groups[judged])
            self.record.observe(members.losses(predictions, y), rows.relative[judged], starts)

    def begun(self) -> Context:
        """A new context with the weights of members from this context, without its corrections."""
        context = copy.copy(self)
        context.mixture = self.mixture.copied()
        context.mixture.account, context.mixture.top = zeros(Account), CandidateWeights.create()
        for weights, base_alone in zip(context.mixture.top[:2], BASE_ONLY, strict=False):
            weights[:] = base_alone
        context.frozen, context.conformal = self.frozen.copied(), self.conformal.copied()
        context.record, context.relative = WeightsRecord(self.mixture.n_members), RelativeWeights()
        return context

    def weights(self, is_over: bool) -> np.ndarray:
        """The weights (M,) of the members in the base of the mixture that predicts future rows."""
        weights = self.mixture.base.means if is_over else self.mixture.base.weights
        if is_over and self.frozen.choice != FOLLOWING:
            weights = np.zeros(len(weights))
            weights[self.frozen.places] = self.frozen.mixture.base.means
        return weights

    @property
    def has_events(self) -> bool:
        """Where logarithms are predicted, whether a target above 0 was learned."""
        return bool(self.mixture.range.highest[0] > 0.0)

    def add_class(self) -> None:
        """Add a class to the mixtures."""
        self.mixture.add_class()
        self.frozen.mixture.add_class()

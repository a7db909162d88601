"""The frozen mixture: generations as they were born, mixed by weights that stand still after training.

A copy of the pool (:mod:`tunefree.pool.snapshot`) predicts rows that come after it was taken, so it is judged as far
ahead as it is old. The frozen mixture has the rule of the mixture that follows the stream, and as members the
generations of all rows. It stands still, too: the rows of a copy are predicted by the weights that were learned from
the rows of earlier copies. Rows to come are predicted by the mixture that follows the stream, but by the frozen one, or
by its base alone, where these lose less by more than SURE standard errors.

A copy of numbers drifts where a trend goes on, or a season begins, that those predictions follow which learn: by the
difference of its scores from theirs. Which way the next drift goes one or two copies cannot tell. So each row has two
scores, its own and the one with the opposite drift, and each counts half.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from tunefree.core.part import FIXED, LEARNED, Part, argument, array, child
from tunefree.core.schema import ANY, Limits
from tunefree.generations.reservoir import Reservoir
from tunefree.intervals.conformal import SURE as SURE_OF_SCORES
from tunefree.intervals.conformal import SURE_BY_CURVE, quantile, recency, wider
from tunefree.intervals.conformal_record import MOST_SCORES, scores_of
from tunefree.intervals.learning_curve import LearningCurve
from tunefree.mixing.mixture import Mixture
from tunefree.pool.members import Members

JUDGED = 512  # rows that a copy has learned at least, if its losses are to count
SURE = 2.0
MOST_LOSS = 1e145  # of a row, so that sums of squares are finite
FOLLOWING, N_CHOICES = 2, 3  # choice of the mixture that follows the stream, the last one
RUN = 64  # rows whose mean difference from the scores of the stream is the drift of a copy, not chance


class Predicted(NamedTuple):
    """Rows that a copy has predicted."""

    # Of the M generations and of the mixture of the copy, and of the mixture of the stream.
    predicted: Annotated[np.ndarray, "float64[n, members, outputs]", ANY]
    targets: Annotated[np.ndarray, "float64[n]"]
    weights: Annotated[np.ndarray, "float64[n]"]
    numbers: Annotated[np.ndarray, "uint64[n]"]
    contexts: Annotated[np.ndarray, "uint8[n]", Limits(below=2)]  # see tunefree.pool.contexts
    units: Annotated[np.ndarray, "float64[n]"]
    draws: Annotated[np.ndarray, "float64[n]"]

    def of_context(self, number: int) -> Predicted:
        """The rows of a context."""
        return Predicted(*(array[self.contexts == number] for array in self))


def with_opposite_drift(scores: np.ndarray, stream_scores: np.ndarray) -> np.ndarray:
    """Scores (n, C) of rows in order, and behind them (n, 2 C) those with the opposite drift from (n, 1) of the stream.

    >>> with_opposite_drift(np.array([[3.0], [5.0]]), np.array([[1.0], [-1.0]]))
    array([[ 3., -5.],
           [ 5., -3.]])
    """
    starts = np.arange(0, len(scores), RUN)
    sizes = np.diff(starts, append=len(scores))
    drifts = np.add.reduceat((scores - stream_scores) / np.repeat(sizes, sizes)[:, None], starts)
    return np.concatenate([scores, scores - 2.0 * np.repeat(drifts, sizes, axis=0)], axis=1)


class FrozenMixture(Part):
    """A mixture of generations as they were born, which have places in the pool, and the losses by which it is chosen.

    Total ``losses`` are of the frozen mixture, of its base, and of the copies' mixtures, on the same rows. ``squares``
    are sums of the squares of what the copies' mixtures lost more on a row than the first two. The ``scores`` of rows
    that copies predicted, by their numbers as digests, have a column for each of the three: how far off they are
    (:mod:`tunefree.intervals`). Three more columns are with the opposite drift.
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
        """The mixture that predicts rows to come: 0 the frozen one, 1 its base, 2 the one that follows the stream."""
        best = int(np.argmin(self.losses[:2]))
        is_sure = self.losses[2] - self.losses[best] > SURE * np.sqrt(self.squares[best])
        return best if is_sure else FOLLOWING

    def reduce(self) -> None:
        """Keep only the scores of the mixture that predicts rows to come."""
        super().reduce()
        is_other = np.arange(self.scores.columns.shape[1]) % N_CHOICES != self.choice
        self.scores.columns = np.where(is_other, 0.0, self.scores.columns)

    def quantile(self, level: float, stream_quantile: float, curve: LearningCurve, code: int | None = None) -> float:
        """The quantile of the scores of rows to come.

        It is ``stream_quantile``, that of rows which were predicted just before they were learned, unless rows that
        copies predicted, which are as far ahead as rows to come, were further off. Where another mixture was chosen
        than the one that follows the stream, it is that of these rows. By the curve their scores are those of rows to
        come. ``code`` is of a class whose rows alone count.
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
            sure *= math.sqrt(2.0)  # two scores are evidence of one row
            return wider(stream_quantile, scores, weights, level, sure)
        copy_quantile = quantile(scores, weights, level)
        return copy_quantile if np.isfinite(copy_quantile) else stream_quantile

    def learn(self, members: Members, rows: Predicted, counts: bool) -> None:
        """Learn rows in their order, after they have scores, and judged the mixture if they count."""
        predicted, y, weights, numbers, _, *score_arrays = rows
        born_predictions, stream_predictions = np.ascontiguousarray(predicted[:, :-2]), predicted[:, -1:]
        base_predictions = self.mixture.mean(born_predictions)
        candidates = np.stack([self.mixture.predict(born_predictions), base_predictions, predicted[:, -2]], axis=1)
        if counts:
            losses = np.minimum(weights[:, None] * members.losses(candidates, y), MOST_LOSS)
            self.losses = self.losses + losses.sum(axis=0)
            self.squares = self.squares + ((losses[:, 2:] - losses[:, :2]) ** 2).sum(axis=0)
        if len(y):
            scores = scores_of(members.loss, candidates, y, *score_arrays)
            at_once = scores if members.loss is None else scores_of(members.loss, stream_predictions, y, *score_arrays)
            counted = np.ones(len(y)) if members.predicts_logarithms else weights  # which have exposures in them
            self.scores.add(with_opposite_drift(scores, at_once), y, counted, numbers, [0.0] * 2 * N_CHOICES)
        self.mixture.learn(born_predictions, y, weights)

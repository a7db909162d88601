"""Calibration: probabilities from margins that are not log-odds, such as margins of hinge losses.

Platt: Probabilistic outputs for support vector machines (Advances in large margin classifiers, 2000): a logistic model
of one number, the margin. For several classes, Guo, Pleiss, Sun, Weinberger: On calibration of modern neural networks
(ICML 2017), section 4.2, vector scaling: an a and a b for each class k,

    P(class k) = exp(a_k m_k + b_k) / sum_l exp(a_l m_l + b_l)

Two classes with one margin are the case m_0 = 0.

Here a and b are learned along the stream, from margins predicted before their rows were learned: margins of learned
rows are too large, and would give overconfident probabilities. There is nothing to tune: the margins are transformed by
the steady view, as they may be of any size and increase while a model learns, and ScInOL2 minimises the log-loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, NamedTuple

import numpy as np

from tunefree.core.rows import Block, entries_of, sparse
from tunefree.learners import ALL
from tunefree.learners.scinol import ScInOL2
from tunefree.learners.weights import read
from tunefree.losses.objectives import Objective
from tunefree.pool import passes
from tunefree.pool.views import Steady, transform_rows

LOG_LOSS = Objective("classification")
MOST_PAIRS = 2**17  # the largest number of pairs of rows and classes computed at once


def are_log_odds(learner: str, loss: str | None) -> bool:
    """Whether margins are log-odds: with the logistic loss, unless the traits of a linear learner differ."""
    return (loss or "logistic") == "logistic" and (learner not in ALL or ALL[learner].traits.margins_are_log_odds)


class Calibration(NamedTuple):
    """Calibration of margins to log-odds, for K classes, at least two."""

    view: Steady  # one column for each class
    learner: ScInOL2  # feature 2k + 1 is the margin of class k, and feature 2k + 2 its constant
    offsets: Annotated[np.ndarray, "float64[classes]"]  # added to b: initial log-odds of classes that were added later

    @classmethod
    def create(cls, n_classes: int) -> Calibration:
        """A calibration that has learned no rows."""
        n_classes = max(n_classes, 2)
        return cls(Steady.create(n_classes), ScInOL2(2 * n_classes + 1), np.zeros(n_classes))

    @property
    def n_classes(self) -> int:
        """The number of classes with an a and a b."""
        return len(self.view.centres)


def add_classes(calibration: Calibration, n_classes: int, rows: int) -> Calibration:
    """A calibration of more classes, which begin with odds of 1 to ``rows``; log-odds of others do not change."""
    new = max(n_classes - calibration.n_classes, 0)
    n_features = 2 * (calibration.n_classes + new) + 1
    view = calibration.view.widened(calibration.n_classes + new)
    offsets = np.concatenate([calibration.offsets, np.full(new, -np.log(max(rows, 1)))])
    return Calibration(view, calibration.learner.grown(n_features, 1), offsets)


def learn(calibration: Calibration, margins: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Learn predicted margins (n, 1) or (n, K), with classes (n,) and weights (n,); rows of weight 0 are not learned.

    Returns log-odds (n, K) before each row was learned, up to a constant for each row.
    """
    codes = np.asarray(codes, np.float64)
    predicted = np.empty((len(codes), calibration.n_classes))
    learn_pass = passes.pass_of("learn apart", ScInOL2, has_one_output=True)
    for piece in _pieces(calibration, len(margins)):
        rows = _rows(calibration, margins[piece], weight[piece])
        rows_to_learn = entries_of(rows), codes[piece], passes.numbers_of(weight[piece])
        scratch = np.zeros((2, calibration.n_classes))
        learn_pass(
            calibration.learner, *LOG_LOSS.arrays, *rows_to_learn, calibration.offsets, predicted[piece], scratch
        )
    return predicted


def log_odds(calibration: Calibration | None, margins: np.ndarray) -> np.ndarray:
    """Logarithms (n, K) of probabilities up to a constant for each row; without a calibration, the margins."""
    if calibration is None:
        return margins_of_classes(margins)
    weights, units = read(calibration.learner)
    scores = []
    for piece in _pieces(calibration, len(margins)):
        rows = _rows(calibration, margins[piece], np.zeros(len(margins[piece])))
        scores.append(passes.score(weights, units, rows))
    shifted = np.concatenate(scores or [np.empty((0, 1))]).reshape(-1, calibration.n_classes) + calibration.offsets
    return np.where(np.isneginf(margins_of_classes(margins)), -np.inf, shifted)


def probabilities(log_odds: np.ndarray) -> np.ndarray:
    """Class probabilities (n, K) from log-odds."""
    odds = np.exp(log_odds - log_odds.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def _pieces(calibration: Calibration, n: int) -> Iterator[slice]:
    """Slices of rows, small enough to bound the memory of intermediate arrays."""
    step = max(MOST_PAIRS // calibration.n_classes, 1)
    return (slice(start, start + step) for start in range(0, n, step))


def margins_of_classes(margins: np.ndarray) -> np.ndarray:
    """Margins with one column for each class; the only margin of two classes belongs to class 1."""
    return np.column_stack([np.zeros(len(margins)), margins]) if margins.shape[1] == 1 else margins


def _rows(calibration: Calibration, margins: np.ndarray, learns: np.ndarray) -> Block:
    """One sparse row for each pair of a row and a class: the margin in the view, and 1."""
    numbers = margins_of_classes(margins)
    numbers = np.where(np.isneginf(numbers), 0.0, numbers)
    n, n_classes = numbers.shape
    transformed, nothing = np.empty((n, n_classes)), np.empty(0)
    transform_rows(calibration.view, learns, numbers, np.zeros(n + 1, np.int64), nothing, transformed, nothing)
    pairs = np.stack([transformed, np.ones_like(transformed)], axis=-1)
    features = np.tile(np.arange(1, 2 * n_classes + 1), n)
    return sparse(np.arange(0, pairs.size + 1, 2), features, pairs.reshape(-1), intercept=False)

"""Adaptive prediction sets: the most probable classes, as many as the row needs.

Romano, Sesia, Candes: Classification with valid and adaptive coverage (NeurIPS 2020): with classes in the order of
their probabilities, the score of a class is the total probability of the classes before it, plus a part U of its own
(their eq. 8). A set contains the classes whose scores are at most the quantile. U is uniform; here it is a hash of the
row, so that each prediction of a row gives the same set.

Such sets have many classes of small probabilities. Angelopoulos, Bates, Malik, Jordan: Uncertainty sets for image
classifiers using conformal prediction (ICLR 2021) add a penalty to the score of classes of high ranks (their eq. 4).
Where several classes are probable, ranks are a worse measure than probabilities p. So here the penalty is 1 - p, the
score of the sets that are smallest on average (Sadinle, Lei, Wasserman: Least ambiguous set-valued classifiers with
bounded error levels, JASA 2019). The score is (1 - PENALTY) times the score of Romano et al. plus PENALTY (1 - p).
"""

from __future__ import annotations

import numpy as np

from tunefree.core.rows import Block, n_rows
from tunefree.generations.columns import digests_of_words
from tunefree.generations.reservoir import hashed, hashed_values

PENALTY = 0.1  # with a larger one, sets are smaller, and hard rows are covered less often than others


def class_scores(log_probabilities: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """The score (n, K) of each class of rows, between 0 and 1, with the parts U (n,).

    >>> class_scores(np.log([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]), np.array([0.0, 0.5])).round(2)
    array([[0.66, 0.89, 0.99],
           [0.86, 0.94, 0.38]])
    """
    order = np.argsort(-log_probabilities, axis=1, kind="stable")
    ordered = np.exp(np.take_along_axis(log_probabilities, order, axis=1))
    scores = np.empty_like(ordered)
    adaptive = np.cumsum(ordered, axis=1) - draws[:, None] * ordered
    np.put_along_axis(scores, order, (1.0 - PENALTY) * adaptive + PENALTY * (1.0 - ordered), axis=1)
    return scores


def draws_of(X: Block) -> np.ndarray:
    """A pseudo-random number (n,) between 0 and 1 of each row of a block.

    >>> from tunefree.core.rows import dense
    >>> first, second, third = draws_of(dense(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]])))
    >>> bool(first == third), bool(first == second)
    (True, False)
    """
    bits = hashed_values(X.columns, X.numbers).sum(axis=1, dtype=np.uint64)
    bits += hashed_values(-1 - X.code_columns, X.codes.astype(np.float64)).sum(axis=1, dtype=np.uint64)
    bits += digests_of_words(X)
    draws: np.ndarray = (hashed(bits) >> np.uint64(11)).astype(np.float64) / 2.0**53
    return draws.reshape(n_rows(X))

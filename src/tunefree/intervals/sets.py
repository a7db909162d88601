"""Adaptive prediction sets: the most probable classes, as many as the row needs.

Romano, Sesia, Candes: Classification with valid and adaptive coverage (NeurIPS 2020): with classes in the order of
their probabilities, the score of a class is the probability of those before it and a part U of its own (their eq. 8),
and a set has the classes whose scores are at most the quantile. U is uniform; here it is a hash of the row's
probabilities, so that equal rows have equal sets.
"""

from __future__ import annotations

import numpy as np

from tunefree.generations.reservoir import hashed


def class_scores(log_probabilities: np.ndarray) -> np.ndarray:
    """The score (n, K) of each class of rows, between 0 and 1.

    Examples
    --------
    >>> scores = class_scores(np.log([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]))
    >>> scores.argsort(axis=1).tolist(), bool((scores[:, 0] < 0.7 + 1e-9).all())
    ([[0, 1, 2], [2, 0, 1]], False)
    """
    order = np.argsort(-log_probabilities, axis=1, kind="stable")
    probabilities = np.exp(log_probabilities)
    ordered = np.take_along_axis(probabilities, order, axis=1)
    through = np.cumsum(ordered, axis=1)
    scores = np.empty_like(through)
    np.put_along_axis(scores, order, through - _uniform(probabilities)[:, None] * ordered, axis=1)
    return scores


def _uniform(numbers: np.ndarray) -> np.ndarray:
    """A pseudo-random number (n,) between 0 and 1 of each row."""
    bits = hashed(np.ascontiguousarray(numbers).view(np.uint64))
    places = hashed(np.arange(1, numbers.shape[1] + 1)) | np.uint64(1)
    mixed = hashed((bits * places).sum(axis=1, dtype=np.uint64))
    return (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53

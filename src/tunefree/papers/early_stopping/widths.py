"""The width of a kernel for batch methods: by the median rule, or by a few short trials along a ladder of widths."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import pairwise_distances

PAIRS = 1000  # rows whose distances give the width of a kernel
LEAST, MOST = -2, 6  # log2 of multiples of the median rule's gamma: the ladder's ends


def usual_gamma(distance: str | None, X: Any, y: np.ndarray, keys: np.ndarray, classes: bool) -> float:
    """The width of a kernel, from a thousand of the different rows.

    For a kernel of euclidean distances it is 1 / (2 m^2), with m the median distance of rows with different labels
    (Jaakkola, Diekhans, Haussler 1999), or of any two rows in regression. For one of manhattan distances it is 1 / m.
    For one of dot products it is 1 over the mean square length of rows.

    ``distance``: {"euclidean", "manhattan"} or None; see :class:`tunefree.papers.kernel.kernels.KernelFunction`.
    ``classes``: whether targets are classes.
    """
    _, first = np.unique(keys, return_index=True)
    some = first[:PAIRS]
    block, targets = X[some], y[some]
    if distance is None:
        products = block.multiply(block) if sparse.issparse(block) else np.square(block)
        squares = float(products.sum()) / max(len(some), 1)
        return 1.0 / squares if squares > 0 else 1.0
    distances = pairwise_distances(block, metric=distance)
    apart = distances[targets[:, None] != targets] if classes else distances[np.triu_indices(len(some), 1)]
    middle = float(np.median(apart)) if apart.size else 0.0
    if not middle > 0.0:
        return 1.0
    return 1.0 / middle if distance == "manhattan" else 0.5 / middle**2


def best_gamma(gamma: float, validation_loss: Callable[[float], float]) -> float:
    """The multiple of gamma by a power of two, from a quarter to 64, with the least validation loss.

    Every second one is evaluated, then the neighbours of the best of them. ``gamma`` is that of the median rule.

    Examples
    --------
    >>> asked = []
    >>> best_gamma(1.0, lambda gamma: asked.append(gamma) or abs(gamma - 7.0))
    8.0
    >>> asked
    [0.25, 1.0, 4.0, 16.0, 64.0, 2.0, 8.0]
    """
    loss = cache(lambda exponent: validation_loss(gamma * 2.0**exponent))
    coarse = min(range(LEAST, MOST + 1, 2), key=loss)
    near = [exponent for exponent in (coarse - 1, coarse + 1, coarse) if LEAST <= exponent <= MOST]
    return gamma * 2.0 ** min(near, key=loss)

"""The width of a kernel for batch methods: from distances of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import pairwise_distances

PAIRS = 1000  # rows whose distances give the width of a kernel


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

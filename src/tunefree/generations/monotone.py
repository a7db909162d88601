"""Monotone trees: where a column grows, the value of a row rises, or falls, and never turns.

Where a node is split by such a column, no leaf on the one side has a value beyond a bound, and none on the other side a
value before it (Potharst, Feelders: Classification trees for problems with monotonicity constraints, SIGKDD
Explorations 4, 2002). The bound lies midway between the means of the two sides, or is the mean of both where these are
in the wrong order. So each tree is monotone; sums of trees are to the last bit, as sums are rounded in their order.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from tunefree.compiled.functions import compiled
from tunefree.generations.gradient_trees import Work
from tunefree.generations.trees import COLUMN, LEAF


@compiled
def bound_leaves(
    work: Work,
    signs: Annotated[np.ndarray, "int8[columns]"],
    means: Annotated[np.ndarray, "float64[nodes, 2]"],
    bounds: Annotated[np.ndarray, "float64[nodes, 2]"],
    values: Annotated[np.ndarray, "float64[leaves, 1]"],
) -> None:
    """Move the values of the leaves of a tree to their bounds.

    Means of nodes with their second derivatives, and their bounds, are written.
    """
    nodes, n_nodes = work.nodes, work.sizes[1]
    for v in range(n_nodes - 1, -1, -1):  # children are behind their parents
        left = nodes[v, 1]
        if nodes[v, 0] == LEAF:
            means[v, 0], means[v, 1] = values[left, 0], work.sums[left, 0, 1]
        else:
            total = means[left, 1] + means[left + 1, 1]
            share = means[left, 1] / total if total > 0.0 else 0.5
            means[v, 0], means[v, 1] = share * means[left, 0] + (1.0 - share) * means[left + 1, 0], total
    bounds[0, 0], bounds[0, 1] = -math.inf, math.inf
    for v in range(n_nodes):
        test, left, low, high = nodes[v, 0], nodes[v, 1], bounds[v, 0], bounds[v, 1]
        if test == LEAF:
            values[left, 0] = min(max(values[left, 0], low), high)
            continue
        for child in range(left, left + 2):
            bounds[child, 0], bounds[child, 1] = low, high
        sign = signs[test >> COLUMN]
        if sign != 0:
            before, behind = means[left, 0], means[left + 1, 0]
            middle = 0.5 * before + 0.5 * behind if sign * (behind - before) > 0.0 else means[v, 0]
            middle = min(max(middle, low), high)
            below, above = (left, left + 1) if sign > 0 else (left + 1, left)
            bounds[below, 1], bounds[above, 0] = middle, middle

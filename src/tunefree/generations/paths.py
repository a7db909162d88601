"""The contribution of each column to the values of trees, along the paths of rows.

The value of a node is the mean of the values of the leaves below it over some rows, the reference. A row's values are
those of the root plus, for each test on its way to a leaf, how the value changes there; this counts to the column that
is tested.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from tunefree.compiled.functions import compiled
from tunefree.generations.bins import codes_of
from tunefree.generations.trees import COLUMN, LEAF, Trees, child_of


@compiled
def _write_means(
    nodes: Annotated[np.ndarray, "int32[nodes, 2]"],
    rows: Annotated[np.ndarray, "float64[leaves]"],
    counts: Annotated[np.ndarray, "float64[nodes]"],
    means: Annotated[np.ndarray, "float64[nodes, outputs]"],
) -> None:
    for v in range(len(nodes) - 1, -1, -1):  # children come after their parent
        if nodes[v, 0] == LEAF:
            counts[v] = rows[nodes[v, 1]]
        else:
            left = nodes[v, 1]
            counts[v] = counts[left] + counts[left + 1]
            share = counts[left] / counts[v] if counts[v] > 0.0 else 0.5
            for k in range(means.shape[1]):
                means[v, k] = share * means[left, k] + (1.0 - share) * means[left + 1, k]


@compiled
def _add_paths(
    codes: Annotated[np.ndarray, "uint8[rows, columns]"],
    roots: Annotated[np.ndarray, "int32[trees]"],
    nodes: Annotated[np.ndarray, "int32[nodes, 2]"],
    sets: Annotated[np.ndarray, "uint64[sets, 4]"],
    means: Annotated[np.ndarray, "float64[nodes, outputs]"],
    term_of: Annotated[np.ndarray, "int64[columns]"],
    terms: Annotated[np.ndarray, "float64[rows, terms, outputs]"],
) -> None:
    for t in range(len(roots)):
        for i in range(len(codes)):
            v = np.uint32(roots[t])
            while nodes[v, 0] >= 0:
                test = nodes[v, 0]
                child = child_of(nodes, sets, v, test, codes[i, test >> COLUMN])
                for k in range(means.shape[1]):
                    terms[i, term_of[test >> COLUMN], k] += means[child, k] - means[v, k]
                v = child


def node_means(trees: Trees, reference: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The means (nodes, k) of values (leaves, k) below each node over the rows (r, c) of a reference."""
    leaves, _ = trees.apply(reference)
    rows = np.bincount(leaves.reshape(-1), minlength=trees.n_leaves).astype(np.float64)
    means, at_leaf = np.zeros((len(trees.nodes), values.shape[1])), trees.nodes[:, 0] == LEAF
    means[at_leaf] = values[trees.nodes[at_leaf, 1]]
    _write_means(trees.nodes, rows, np.zeros(len(means)), means)
    return means


def add_paths(trees: Trees, means: np.ndarray, columns: np.ndarray, term_of: np.ndarray, terms: np.ndarray) -> None:
    """Add to ``terms`` (n, t, k) what rows (n, c) have beyond the roots, by the term (c,) of each column."""
    _add_paths(codes_of(trees.bins, columns), trees.roots, trees.nodes, trees.sets, means, term_of, terms)

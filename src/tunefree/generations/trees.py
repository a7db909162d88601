"""Trees as plain arrays, and the walk of rows through them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tunefree.core import compiled
from tunefree.core.errors import ModelError
from tunefree.generations.bins import MISSING, Bins, codes_of

LEAF = -1  # instead of a test
COLUMN, CODE, CODES = 9, 1, 255  # a test is column << COLUMN | code << CODE | (1 where missing goes left)


class Trees(NamedTuple):
    """The trees of one generation."""

    bins: Bins  # of the columns, and of some of them again in another order
    sources: np.ndarray  # (bins,) int64: the column of each
    roots: np.ndarray  # (trees,) int32: the first node of each tree
    nodes: np.ndarray  # (nodes, 2) int32: test, and left child (the right one is next to it); LEAF, and number of leaf
    values: np.ndarray  # (leaves, K) float32: parts of the margins (boosted), or class shares and means (averaged)
    start: np.ndarray  # (K,) float64: the margins to which values are added
    is_averaged: np.ndarray  # () bool: predictions are means of values over trees
    n_classes: np.ndarray  # () int64: 0 for numbers
    least: np.ndarray  # () float64: what a share of a class is at least

    @property
    def n_leaves(self) -> int:
        """Leaves of all trees."""
        return len(self.values)

    @property
    def n_outputs(self) -> int:
        """Margins of a row: one of numbers and of two classes."""
        return self.values.shape[1]


@compiled.inline
def child_of(nodes, node, test, code):
    """The child of a node to which a code leads."""
    goes_left = code <= ((test >> CODE) & CODES) or (code == MISSING and test & 1 == 1)
    return np.uint32(nodes[node, 1]) + np.uint32(0 if goes_left else 1)


@compiled.entry
def _walk(codes, roots, nodes, values, leaves, sums):
    for t in range(len(roots)):
        for i in range(len(codes)):
            v = np.uint32(roots[t])
            test = nodes[v, 0]
            while test >= 0:
                v = child_of(nodes, v, test, codes[i, np.uint32(test) >> COLUMN])
                test = nodes[v, 0]
            leaf = np.uint32(nodes[v, 1])
            leaves[i, t] = leaf
            for k in range(values.shape[1]):
                sums[i, k] += values[leaf, k]


def apply(trees: Trees, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The leaves (n, trees) int32 that rows reach, and their margins (n, K): log-odds, log-probabilities, or numbers.

    Parameters
    ----------
    trees : Trees
    columns : (n, c) array
        NaN is missing.
    """
    leaves = np.empty((len(columns), len(trees.roots)), np.int32)
    sums = np.tile(trees.start, (len(columns), 1))
    _walk(codes_of(trees.bins, columns[:, trees.sources]), trees.roots, trees.nodes, trees.values, leaves, sums)
    return leaves, sums if not trees.is_averaged else _margins(trees, sums)


def _margins(trees: Trees, sums: np.ndarray) -> np.ndarray:
    """Margins of means over trees."""
    means = sums / max(len(trees.roots), 1)
    if trees.n_classes == 0:
        return means
    least = float(trees.least)
    if means.shape[1] == 1:
        shares = np.clip(means, least, 1.0 - least)
        return np.log(shares) - np.log1p(-shares)
    shares = np.maximum(means, least)
    return np.log(shares / shares.sum(axis=1, keepdims=True))


def save_state(trees: Trees) -> dict[str, np.ndarray]:
    """Plain arrays from which :func:`restored` makes the same trees."""
    arrays = {name: np.asarray(array) for name, array in trees._asdict().items() if name != "bins"}
    return arrays | {f"bins.{name}": array for name, array in trees.bins._asdict().items()}


def restored(arrays: dict[str, np.ndarray], n_columns: int) -> Trees:
    """The trees of a file.

    Raises
    ------
    ModelError
        If a walk could leave the arrays, or never end.
    """
    bins = Bins(*(np.ascontiguousarray(arrays[f"bins.{name}"]) for name in Bins._fields))
    fields = {name: np.ascontiguousarray(arrays[name]) for name in Trees._fields if name != "bins"}
    for name in ("is_averaged", "n_classes", "least"):
        fields[name] = fields[name].reshape(())
    trees = Trees(bins, **fields)
    test, target = trees.nodes[:, 0], trees.nodes[:, 1]
    inner = test >= 0
    starts = bins.starts
    is_sound = (
        len(starts) == len(trees.sources) + 1 == len(bins.is_categorical) + 1
        and ((trees.sources >= 0) & (trees.sources < n_columns)).all()
        and (np.diff(starts) >= 0).all()
        and starts[0] == 0
        and starts[-1] == len(bins.points) == len(bins.ranks)
        and (test[inner] >> COLUMN < len(trees.sources)).all()
        and (target[inner] > np.flatnonzero(inner)).all()
        and (target[inner] + 1 < len(test)).all()
        and ((target[~inner] >= 0) & (target[~inner] < len(trees.values))).all()
        and ((trees.roots >= 0) & (trees.roots < len(test))).all()
        and trees.values.shape[1] == len(trees.start)
    )
    if not is_sound:
        raise ModelError("the trees in the file are damaged; train the model anew")
    return trees

"""Randomised trees: at each node some columns, a random cut of each, and the best of these.

Geurts, Ernst, Wehenkel: Extremely randomized trees (Machine Learning 2006), on codes of one byte. Each tree sees half
of the rows. Nodes are split in the order in which they were made, so that the children of one are neighbours.
"""

from __future__ import annotations

import math

import numpy as np

from tunefree.core import compiled
from tunefree.generations.bins import bins_of, codes_of
from tunefree.generations.boosted import joined
from tunefree.generations.problem import Problem, centre_of, scores_of, spread_of
from tunefree.generations.trees import CODE, COLUMN, LEAF, Trees

TREES = 60
ROWS = 0.5  # of the rows, drawn for each tree, from MANY_ROWS on; fewer see all
MANY_ROWS = 2000
MOST_LEAVES = 4096  # of a tree
MOST_VALUES = 2**15  # leaves of a tree times outputs


@compiled.inline
def next_random(state):
    """A number between 0 and 1 (Marsaglia: Xorshift RNGs, 2003)."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return float(x >> np.uint64(11)) / 9007199254740992.0


@compiled.inline
def range_of(of_column, rows, first, last):
    """The least and the largest code of a column in a node."""
    low, high = 255, 0
    for p in range(first, last):
        code = int(of_column[rows[p]])
        low, high = min(low, code), max(high, code)
    return low, high


@compiled.inline
def gain_of(of_column, cut, rows, first, last, targets, weights, total, left):
    """What a cut makes of the impurity: sum_k L_k^2 / L + R_k^2 / R; -1 where all rows are on one side."""
    width = len(total) - 1
    for k in range(width + 1):
        left[k] = 0.0
    n_left = 0
    for p in range(first, last):
        r = rows[p]
        if of_column[r] <= cut:
            n_left += 1
            left[width] += weights[r]
            if width == 1:
                left[0] += weights[r] * targets[r]
            else:
                left[int(targets[r])] += weights[r]
    if n_left == 0 or n_left == last - first:
        return -1.0
    gain, right = 0.0, total[width] - left[width]
    for k in range(width):
        rest = total[k] - left[k]
        gain += left[k] * left[k] / left[width] + (rest * rest / right if right > 0.0 else 0.0)
        if width == 1 and right > 0.0:  # of two classes the other one, whose share is 1 minus this
            gain += (left[width] - left[0]) ** 2 / left[width] + (right - rest) ** 2 / right
    return gain


@compiled.inline
def sum_node(rows, first, last, targets, weights, total):
    """Write the sums (K + 1,) of a node; whether its targets differ."""
    width, differs = len(total) - 1, False
    for k in range(width + 1):
        total[k] = 0.0
    for p in range(first, last):
        r = rows[p]
        total[width] += weights[r]
        if width == 1:
            total[0] += weights[r] * targets[r]
        else:
            total[int(targets[r])] += weights[r]
        differs = differs or targets[r] != targets[rows[first]]
    return differs


@compiled.inline
def draw_split(codes, rows, first, last, targets, weights, tries, order, state, total, left):
    """The best test of so many columns that vary in a node, and its cut; -1 if there is none."""
    best, column, cut, tried = -1.0, -1, 0, 0
    for q in range(len(order)):
        if tries == tried:
            break
        z = q + int(next_random(state) * (len(order) - q))
        order[q], order[z] = order[z], order[q]
        low, high = range_of(codes[order[q]], rows, first, last)
        if low == high:
            continue
        tried += 1
        at = low + int(next_random(state) * (high - low))
        gain = gain_of(codes[order[q]], at, rows, first, last, targets, weights, total, left)
        if gain > best:
            best, column, cut = gain, order[q], at
    return column, cut


@compiled.entry
def grow_tree(codes, targets, weights, rows, least, tries, order, state, spare, first, last, nodes, values, scratch):
    """Grow a tree on rows; writes its nodes, and the mean targets (leaves, K) or class shares of its leaves."""
    first[0], last[0], n_nodes, n_leaves, v = 0, len(rows), 1, 0, 0
    width, room = scratch.shape[1] - 1, len(nodes)
    total, left = scratch[0], scratch[1]
    while v < n_nodes:
        differs = sum_node(rows, first[v], last[v], targets, weights, total)
        column, cut = -1, 0
        if differs and last[v] - first[v] >= least and n_nodes + 2 <= room:
            of_rows = rows, first[v], last[v], targets, weights
            column, cut = draw_split(codes, *of_rows, tries, order, state, total, left)
        if column < 0:
            for k in range(width):
                values[n_leaves, k] = total[k] / total[width]
            nodes[v, 0], nodes[v, 1] = LEAF, n_leaves
            n_leaves += 1
        else:
            end, n_right = first[v], 0
            for p in range(first[v], last[v]):
                r = rows[p]
                if codes[column, r] <= cut:
                    rows[end] = r
                    end += 1
                else:
                    spare[n_right] = r
                    n_right += 1
            for p in range(n_right):
                rows[end + p] = spare[p]
            nodes[v, 0], nodes[v, 1] = column * COLUMN + cut * CODE, n_nodes
            first[n_nodes], last[n_nodes], first[n_nodes + 1], last[n_nodes + 1] = first[v], end, end, last[v]
            n_nodes += 2
        v += 1
    return n_nodes, n_leaves


def grow_randomised(problem: Problem, seed: int) -> Trees:
    """Randomised trees of a problem.

    Examples
    --------
    >>> from tunefree.generations.trees import apply
    >>> x = np.linspace(-1.0, 1.0, 500)[:, None]
    >>> problem = Problem(x, np.array([False]), (x[:, 0] > 0.3) * 1.0, np.ones(500), 2, None)
    >>> (apply(grow_randomised(problem, 0), np.array([[0.0], [0.5]]))[1][:, 0] > 0.0).tolist()
    [False, True]
    """
    n, n_outputs = len(problem.targets), problem.n_outputs
    bins = bins_of(problem.columns, problem.is_categorical, scores_of(problem))
    codes = np.ascontiguousarray(codes_of(bins, problem.columns).T)
    varying = np.flatnonzero(codes.max(axis=1, initial=0) > codes.min(axis=1, initial=255)).astype(np.int64)
    centre = 0.0 if problem.n_classes else centre_of(problem)
    spread = 1.0 if problem.n_classes else spread_of(problem, centre)
    targets = problem.targets if problem.n_classes else np.clip(problem.targets / spread - centre / spread, -1e15, 1e15)
    random = np.random.default_rng([seed, 2])
    tries = len(varying) if problem.n_classes == 0 else max(1, math.isqrt(len(varying)))
    drawn = n if n < MANY_ROWS else int(ROWS * n)
    most_leaves = max(min(MOST_LEAVES, MOST_VALUES // n_outputs, drawn), 1)
    least = max(2, math.ceil(2 * drawn / most_leaves)) if drawn > most_leaves else 2
    room, structures, values = 2 * most_leaves - 1, [], []
    places, work = np.empty((2, room), np.int64), np.empty((2, n_outputs + 1))
    for _ in range(TREES if len(varying) else 0):
        rows = (np.arange(n) if drawn == n else np.sort(random.permutation(n)[:drawn])).astype(np.int32)
        nodes, of_leaves = np.empty((room, 2), np.int32), np.empty((most_leaves, n_outputs))
        state = random.integers(1, 2**63, 1).astype(np.uint64)
        of_tree = rows, least, tries, varying.copy(), state, np.empty_like(rows), *places
        n_nodes, n_leaves = grow_tree(codes, targets, problem.weights, *of_tree, nodes, of_leaves, work)
        structures.append(nodes[:n_nodes].copy())
        means = of_leaves[:n_leaves].astype(np.float32) if problem.n_classes else of_leaves[:n_leaves] * spread + centre
        values.append(means.copy())
    if not structures:
        start = problem.start() if problem.n_classes else np.array([centre])
        return joined(bins, [], [], start, problem.n_classes)
    start, least_share = np.zeros(n_outputs), 1.0 / (2.0 * n + 2.0)
    return joined(bins, structures, values, start, problem.n_classes, is_averaged=True, least=least_share)

"""Randomised trees: at each node some columns, a random cut of each, and the best of these.

Geurts, Ernst, Wehenkel: Extremely randomized trees (Machine Learning 2006), on codes of one byte. Each tree sees half
of the rows. Nodes are split in the order of their numbers, so that the children of one are neighbours.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from tunefree.core.kernels import kernel
from tunefree.core.numbers import scaled
from tunefree.generations.bins import MISSING
from tunefree.generations.boosted import FARTHEST, in_units
from tunefree.generations.draws import next_random
from tunefree.generations.numeric_losses import minimising
from tunefree.generations.problem import Problem, centre_of, spread_of
from tunefree.generations.trees import CODE, COLUMN, LEAF, Trees, joined, with_default
from tunefree.losses import Square
from tunefree.losses.contract import rescaled

TREES = 60
ROWS = 0.5  # of the rows, drawn for each tree, and at least MANY_ROWS
MANY_ROWS = 2**13
PART_OF_NUMBERS = 1.0 / 3.0  # of the columns are tried at a node for numbers, and their square root for classes
LEAST_EVENTS = 8.0  # of a node that is split, with a logarithmic link
PRIOR_EVENTS = 0.25  # of a leaf, at the mean of all, likewise
LEAST_RATE = 1e-9  # of the mean of the targets
LEAST_OF_LOSS = 8  # rows of a node that is split, where a leaf has a quantile: of 2 worse by half, of 20 by a tenth
MOST_LEAVES = 4096  # of a tree
MOST_VALUES = 2**15  # leaves of a tree times outputs


class Work(NamedTuple):
    """Arrays in which one tree after another is grown; rows, targets and weights of a node lie behind each other."""

    rows: Annotated[np.ndarray, "uint32[drawn]"]
    targets: Annotated[np.ndarray, "float32[drawn]"]
    weights: Annotated[np.ndarray, "float32[drawn]"]
    spare_rows: Annotated[np.ndarray, "uint32[drawn]"]
    spare_targets: Annotated[np.ndarray, "float32[drawn]"]
    spare_weights: Annotated[np.ndarray, "float32[drawn]"]
    first: Annotated[np.ndarray, "int64[nodes]"]  # a node has the rows first .. last
    last: Annotated[np.ndarray, "int64[nodes]"]
    totals: Annotated[np.ndarray, "float64[nodes, sums]"]  # K of the classes or the targets by weight, and the weight

    @classmethod
    def create(cls, n: int, n_nodes: int, n_outputs: int) -> Work:
        """Room for trees of so many rows, nodes and outputs."""
        of_rows = [np.empty(n, kind) for kind in (np.uint32, np.float32, np.float32) * 2]
        of_nodes = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64), np.empty((n_nodes, n_outputs + 1))
        return cls(*of_rows, *of_nodes)  # type: ignore[call-arg]


def sum_rows(work, first, last, sums):
    """Write the sums (K + 1,) of some rows."""
    width = len(sums) - 1
    sums[:] = 0.0
    for p in range(first, last):
        sums[width] += work.weights[p]
        if width == 1:
            sums[0] += work.weights[p] * work.targets[p]
        else:
            sums[int(work.targets[p])] += work.weights[p]


def differs(work, node):
    """Whether the targets of a node differ."""
    first = work.first[node]
    p = first + 1
    while p < work.last[node] and work.targets[p] == work.targets[first]:
        p += 1
    return p < work.last[node]


def sum_left(work, of_column, cut, first, last, left):
    """Write the sums (K + 1,) of the rows with codes up to a cut; how many there are. No branch, as in trees."""
    width, n_left, weight = len(left) - 1, np.uint64(0), np.float64(0.0)  # in plain Python, too, sums of doubles
    left[:] = 0.0
    rows, weights, targets = work.rows[first:last], work.weights[first:last], work.targets[first:last]
    if width == 1:
        total = np.float64(0.0)
        for p in range(np.uint64(len(rows))):
            inside = np.uint64(of_column[rows[p]] <= cut)
            w = np.float32(inside) * weights[p]
            n_left += inside
            weight += w
            total += w * targets[p]
        left[0] = total
    else:
        for p in range(np.uint64(len(rows))):
            inside = np.uint64(of_column[rows[p]] <= cut)
            w = np.float32(inside) * weights[p]
            n_left += inside
            weight += w
            left[np.uint64(targets[p])] += w
    left[width] = weight
    return n_left


def gain_of(total, left):
    """What a cut makes of the impurity: sum_k L_k^2 / L + R_k^2 / R over the classes, or for the mean of numbers."""
    width = len(total) - 1
    right, gain = total[width] - left[width], 0.0
    if left[width] <= 0.0 or right <= 0.0:
        return -1.0
    for k in range(width):
        rest = total[k] - left[k]
        gain += left[k] * left[k] / left[width] + rest * rest / right
    return gain


def draw_split(work, node, codes, tries, order, state, left, best_left):
    """The best of the cuts of so many columns that vary in a node, each at the code of a random row; -1 for none."""
    first, last, total = work.first[node], work.last[node], work.totals[node]
    best, column, cut, tried = -1.0, -1, 0, 0
    for q in range(len(order)):
        if tries == tried:
            break
        z = q + int(next_random(state) * (len(order) - q))
        order[q], order[z] = order[z], order[q]
        of_column = codes[order[q]]
        one = int(of_column[work.rows[first + int(next_random(state) * (last - first))]])
        two = int(of_column[work.rows[first + int(next_random(state) * (last - first))]])
        low, high = min(one, two), max(one, two)
        if low == high:
            low, high = range_of(of_column, work.rows, first, last)
            if low == high:
                continue
        tried += 1
        at = low + int(next_random(state) * (high - low))
        n_left = sum_left(work, of_column, at, first, last, left)
        gain = gain_of(total, left) if 0 < n_left < last - first else -1.0
        if gain > best:
            best, column, cut = gain, order[q], at
            for k in range(len(left)):
                best_left[k] = left[k]
    return column, cut


def range_of(of_column, rows, first, last):
    """The least and the largest code of a column in a node."""
    low, high = 255, 0
    for p in range(first, last):
        code = int(of_column[rows[p]])
        low, high = min(low, code), max(high, code)
    return low, high


def partition(work, node, of_column, cut):
    """Move the rows of a node with codes up to a cut before the others, in their order.

    Returns where the others begin, and how many rows have no code. Rows are written to both places, to have no branch.
    """
    end, n_right, n_missing = np.uint64(work.first[node]), np.uint64(0), np.uint64(0)
    for p in range(np.uint64(work.first[node]), np.uint64(work.last[node])):
        r, y, w = work.rows[p], work.targets[p], work.weights[p]
        goes_left = np.uint64(of_column[r] <= cut)
        n_missing += np.uint64(of_column[r] == MISSING)
        work.rows[end], work.targets[end], work.weights[end] = r, y, w
        work.spare_rows[n_right], work.spare_targets[n_right], work.spare_weights[n_right] = r, y, w
        end += goes_left
        n_right += np.uint64(1) - goes_left
    for p in range(n_right):
        work.rows[end + p], work.targets[end + p] = work.spare_rows[p], work.spare_targets[p]
        work.weights[end + p] = work.spare_weights[p]
    return end, n_missing


@kernel
def grow_tree(
    work: Work,
    n: int,
    codes: Annotated[np.ndarray, "uint8[columns, rows]"],
    least: int,
    tries: int,
    order: Annotated[np.ndarray, "int64[varying]"],
    state: Annotated[np.ndarray, "uint64[1]"],
    nodes: Annotated[np.ndarray, "int32[nodes, 2]"],
    values: Annotated[np.ndarray, "float64[leaves, outputs]"],
    scratch: Annotated[np.ndarray, "float64[2, sums]"],
) -> int:
    """Grow a tree on the first n rows of ``work``; writes its nodes, and the mean targets or class shares of leaves.

    Returns how many nodes there are: one less than twice the leaves.
    """
    work.first[0], work.last[0], n_nodes, n_leaves, v = 0, n, 1, 0, 0
    width, best_left = scratch.shape[1] - 1, scratch[1]
    sum_rows(work, 0, n, work.totals[0])
    while v < n_nodes:
        column, cut, total = -1, 0, work.totals[v]
        if work.last[v] - work.first[v] >= least and n_nodes + 2 <= len(nodes) and differs(work, v):
            column, cut = draw_split(work, v, codes, tries, order, state, scratch[0], best_left)
        if column < 0:
            for k in range(width):
                values[n_leaves, k] = total[k] / total[width]
            nodes[v, 0], nodes[v, 1] = LEAF, n_leaves
            n_leaves += 1
        else:
            end, n_missing = partition(work, v, codes[column], cut)
            test = np.int32(column << COLUMN | cut << CODE)
            before = np.uint64(work.first[v])
            test = with_default(test, n_missing, end - before, np.uint64(work.last[v]) - end, work.rows[before])
            nodes[v, 0], nodes[v, 1] = test, n_nodes
            work.first[n_nodes], work.last[n_nodes] = work.first[v], end
            work.first[n_nodes + 1], work.last[n_nodes + 1] = end, work.last[v]
            for k in range(width + 1):
                work.totals[n_nodes, k] = best_left[k]
                work.totals[n_nodes + 1, k] = total[k] - best_left[k]
            n_nodes += 2
        v += 1
    return n_nodes


class Room(NamedTuple):
    """Of a tree."""

    rows: int
    leaves: int
    least: int  # rows of a node that is split


def room_of(n: int, n_outputs: int, loss: Any, fewest: int = 2) -> Room:
    """How large trees on n rows are, where nodes of fewer than ``fewest`` rows are not split.

    Examples
    --------
    >>> room_of(32_000, 1, None), room_of(100, 3, None)
    (Room(rows=16000, leaves=4096, least=8), Room(rows=100, leaves=100, least=2))
    """
    rows = min(n, max(int(ROWS * n), MANY_ROWS))
    leaves = max(min(MOST_LEAVES, MOST_VALUES // n_outputs, rows), 1)
    least = max(fewest, math.ceil(2 * rows / leaves)) if rows > leaves else fewest
    return Room(rows, leaves, least if loss is None else max(least, LEAST_OF_LOSS))


class ScaledTargets(NamedTuple):
    """Targets as trees are grown on them: numbers of spreads from a centre, or what they are relative to their mean."""

    centre: float
    spread: float
    targets: np.ndarray  # (n,)
    loss: Any = None  # whose minimiser a leaf has; None where that is the mean
    dispersion: float = 1.0  # of targets over their mean


def scaled_targets(problem: Problem) -> ScaledTargets:
    """The targets of a problem; numbers of classes as they are."""
    if problem.n_classes:
        return ScaledTargets(0.0, 1.0, problem.targets)
    if problem.has_log_link:
        mean, dispersion = problem.rates
        return ScaledTargets(0.0, mean, np.clip(problem.targets / mean, 0.0, FARTHEST), None, dispersion)
    centre = centre_of(problem)
    spread = spread_of(problem, centre)
    loss = None if isinstance(problem.loss, Square) else rescaled(problem.loss, spread)[0]
    return ScaledTargets(centre, spread, in_units(problem, centre, spread), loss)


def grow_randomised(problem: Problem, seed: int, n_trees: int = TREES, fewest: int = 2) -> Trees:
    """Randomised trees of a problem, whose nodes of fewer than so many rows are not split.

    Examples
    --------
    >>> from tunefree.generations.problem import binned
    >>> from tunefree.generations.trees import apply
    >>> x = np.linspace(-1.0, 1.0, 500)[:, None]
    >>> problem = binned(Problem(x, np.array([False]), (x[:, 0] > 0.3) * 1.0, np.ones(500), 2, None))
    >>> (apply(grow_randomised(problem, 0), np.array([[0.0], [0.5]]))[1][:, 0] > 0.0).tolist()
    [False, True]
    """
    n, n_outputs = len(problem.targets), problem.n_outputs
    bins, codes = problem.binned
    varying = np.flatnonzero(codes.max(axis=1, initial=0) > codes.min(axis=1, initial=255)).astype(np.int64)
    centre, spread, targets, loss, dispersion = scaled_targets(problem)
    room = room_of(n, n_outputs, loss, fewest)
    if problem.has_log_link:
        of_events = min(math.ceil(LEAST_EVENTS * max(dispersion, 1.0)), room.rows // 8)
        room = room._replace(least=max(room.least, of_events))
    random, structures, values = np.random.default_rng([seed, 2]), [], []
    tries = math.ceil(PART_OF_NUMBERS * len(varying)) if problem.n_classes == 0 else max(1, math.isqrt(len(varying)))
    work, scratch = Work.create(room.rows, 2 * room.leaves - 1, n_outputs), np.empty((2, n_outputs + 1))
    for _ in range(n_trees if len(varying) else 0):
        rows = np.arange(n) if room.rows == n else np.sort(random.permutation(n)[: room.rows])
        work.rows[:], work.targets[:], work.weights[:] = rows, targets[rows], problem.weights[rows]
        nodes, of_leaves = np.empty((2 * room.leaves - 1, 2), np.int32), np.empty((room.leaves, n_outputs))
        state = random.integers(1, 2**63, 1).astype(np.uint64)
        of_tree = codes, room.least, tries, varying.copy(), state, nodes, of_leaves, scratch
        n_nodes = grow_tree(work, room.rows, *of_tree)
        if loss is not None:
            of_rows = np.zeros((n, 1)), targets, problem.weights
            minimise, *arguments = minimising(work, loss, nodes[:n_nodes], of_rows, 1.0, of_leaves[:, 0])
            minimise(*arguments)
        structures.append(nodes[:n_nodes].copy())
        if problem.has_log_link:
            sums = work.totals[:n_nodes][nodes[:n_nodes, 0] == LEAF] / dispersion + PRIOR_EVENTS
            of_leaves[: len(sums), 0] = sums[:, 0] / sums[:, 1]
        means = of_leaves[: (n_nodes + 1) // 2]
        values.append(means.astype(np.float32) if problem.n_classes else scaled(means, spread, centre))
    sources = np.arange(len(problem.is_categorical))
    if not structures:
        start = np.array([math.log(spread) if problem.has_log_link else centre])
        start = problem.start() if problem.n_classes else start
        return joined(bins, sources, [], [], start, problem.n_classes)
    least = spread * LEAST_RATE if problem.has_log_link else 1.0 / (2.0 * n + 2.0) if problem.n_classes else 0.0
    return joined(bins, sources, structures, values, np.zeros(n_outputs), problem.n_classes, True, least)

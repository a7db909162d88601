"""Randomised trees: each node tries a random cut of some columns, and takes the best cut.

Geurts, Ernst, Wehenkel: Extremely randomized trees (Machine Learning 2006), on codes of one byte. Each tree is grown on
half of the rows. Nodes are split in the order of their numbers, so that the two children of a node are neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np

from tunefree.compiled.functions import Program, compiled
from tunefree.core.numbers import scaled
from tunefree.core.part import zeros
from tunefree.generations.derivatives import Rows, minimising
from tunefree.generations.kinds import Kind
from tunefree.generations.nodes import (
    BITS,
    default_left,
    draw_rows,
    fields_of,
    next_random,
    partition,
    unit_of,
)
from tunefree.generations.problem import USUAL, Problem, Settings, scaled_targets
from tunefree.generations.trees import CODE, COLUMN, LEAF, Trees, joined

TREES = 60
JUDGED = 1.0 / 3.0  # part of the trees that is grown to compare settings
ROWS = 0.5  # part of the rows drawn for each tree; at least MANY_ROWS, at most MOST_ROWS
MANY_ROWS, MOST_ROWS = 2**13, 2**16
PART_OF_NUMBERS = 1.0 / 3.0  # part of the columns tried at a node for numbers; for classes, it is their square root
LEAST_EVENTS = 8.0  # fewest events of a node that is split, with a logarithmic link
PRIOR_EVENTS = 0.25  # added events of a leaf with the overall mean, likewise
LEAST_RATE = 1e-9  # smallest prediction over the mean of the targets
FEWEST = 2  # rows of a node that is split
LEAST_OF_LOSS = 8  # likewise, if leaves are quantiles: 2 lose half more, 20 a tenth
MOST_LEAVES = 4096  # per tree
MOST_MULTIPLE = 8.0  # largest multiple of a setting that rows may choose
CLASS = 44  # bits below the class number, which is less than 2^20
MOST_VALUES = 2**15  # leaves of a tree times outputs


class Work(NamedTuple):
    """Arrays in which one tree after another is grown; the rows of a node are contiguous."""

    drawn: Annotated[np.ndarray, "uint32[rows]"]  # rows drawn for the tree, then the others
    drawn_codes: Annotated[np.ndarray, "uint8[columns, rows]"]  # codes of the drawn rows, side by side
    drawn_packed: Annotated[np.ndarray, "int64[rows]"]  # integers of the drawn rows, see packed_rows
    rows: Annotated[np.ndarray, "uint32[rows]"]  # indices into the drawn rows; in a leaf, row numbers
    spare: Annotated[np.ndarray, "uint32[rows]"]
    packed: Annotated[np.ndarray, "int64[rows]"]  # integers of the rows of a node
    codes: Annotated[np.ndarray, "uint8[rows]"]  # codes of the rows of a node in one column
    goes_left: Annotated[np.ndarray, "uint8[256]"]  # 1 for codes that go left
    first: Annotated[np.ndarray, "int64[nodes]"]  # a node has the rows first .. last
    last: Annotated[np.ndarray, "int64[nodes]"]
    totals: Annotated[np.ndarray, "int64[nodes, outputs]"]
    sides: Annotated[np.ndarray, "int64[outputs, 2]"]  # sums over the rows of a node above a cut, and up to it
    best_left: Annotated[np.ndarray, "int64[outputs]"]  # sums up to the best cut so far
    size: Annotated[np.ndarray, "int64[1]"]  # nodes of the tree, one less than twice its leaves
    nodes: Annotated[np.ndarray, "int32[nodes, 2]"]  # as in tunefree.generations.trees
    sums: Annotated[np.ndarray, "float64[leaves, sums]"]  # exact: K sums of classes or weighted targets, and the weight


def fields_of_rows(n, has_classes):
    """Numbers of bits below the weight, and below the field before it."""
    low, high = fields_of(n)
    return low, CLASS if has_classes else high


def packed_rows(targets: np.ndarray, weights: np.ndarray, has_classes: bool, random: Any) -> np.ndarray:
    """Integers (n,) with bit fields: the class number or the weighted target, the weight, and 1 in the lowest field."""
    n, draws = len(targets), random.random(len(targets))
    low, high = fields_of_rows(n, has_classes)
    rounded_weights = (weights / unit_of(weights.sum(), high - low, n) + (1.0 - draws)).astype(np.int64)
    packed = (rounded_weights << low) + 1
    if has_classes:
        return packed + (targets.astype(np.int64) << CLASS)
    sizes = weights * targets
    return packed + (
        np.floor(sizes / unit_of(np.abs(sizes).sum(), BITS - 1 - high, n) + draws).astype(np.int64) << high
    )


def draw(work, packed, codes, share, start):
    """Draw about a share of the rows, and lay their codes side by side; returns how many there are."""
    n = np.int64(draw_rows(work.drawn, work.spare, share, start))
    for p in range(np.uint64(n)):
        work.rows[p] = p
        work.drawn_packed[p] = packed[work.drawn[p]]
    for j in range(len(codes)):
        for p in range(np.uint64(n)):
            work.drawn_codes[j, p] = codes[j, work.drawn[p]]
    return n


def gather(work, node):
    """Lay the whole numbers of a node's rows side by side."""
    for p in range(np.uint64(work.first[node]), np.uint64(work.last[node])):
        work.packed[p] = work.drawn_packed[work.rows[p]]


def differs(work, targets, node):
    """Whether the targets of a node differ."""
    rows, drawn = work.rows[work.first[node] : work.last[node]], work.drawn
    p, target = 1, targets[drawn[rows[0]]]
    while p < len(rows) and targets[drawn[rows[p]]] == target:
        p += 1
    return p < len(rows)


def sum_sides(work, node, column_codes, cut):
    """Write the sums of the rows of a node with codes above a cut and up to it; return the sum up to it.

    No branch, as in trees: sums of one output are taken of several rows at a time, others where they belong.
    """
    first, last, sides, total = work.first[node], work.last[node], work.sides, np.int64(0)
    rows, packed = work.rows[first:last], work.packed[first:last]
    sides[:] = 0
    if len(sides) == 1:
        row_codes, highest = work.codes[first:last], np.uint8(cut)
        for p in range(np.uint64(len(rows))):
            row_codes[p] = column_codes[rows[p]]
        for p in range(np.uint64(len(rows))):
            total += packed[p] if row_codes[p] <= highest else 0
        sides[0, 1] = total
    else:
        for p in range(np.uint64(len(rows))):
            place = np.uint64(packed[p]) >> np.uint64(CLASS)
            sides[place, np.uint64(column_codes[rows[p]] <= cut)] += packed[p] & ((1 << CLASS) - 1)
        for k in range(len(sides)):
            total += sides[k, 1]
    return total


def gain_of(total, sides, whole, part, low, high):
    """The score of a cut: sum_k L_k^2 / L + R_k^2 / R over the classes, or for the mean of numbers.

    Of these sums, all rows have ``whole`` together, and those on the left ``part``; -1 where one side has none.
    """
    weight_mask, row_mask = (1 << (high - low)) - 1, (1 << low) - 1
    weight, rest = (part >> low) & weight_mask, ((whole - part) >> low) & weight_mask
    if part & row_mask == 0 or part & row_mask == whole & row_mask or weight == 0 or rest == 0:
        return -1.0
    squares, squares_of_rest, shift = 0.0, 0.0, high if len(total) == 1 else low
    for k in range(len(total)):
        here, there = np.float64(sides[k, 1] >> shift), np.float64((total[k] - sides[k, 1]) >> shift)
        squares += here * here
        squares_of_rest += there * there
    return squares / np.float64(weight) + squares_of_rest / np.float64(rest)


def draw_split(work, node, tries, order, state, low, high):
    """The best of the cuts of so many columns that vary in a node, each at the code of a random row; -1 for none."""
    first, last, total = work.first[node], work.last[node], work.totals[node]
    best, column, cut, tried, whole = -1.0, -1, 0, 0, np.int64(0)
    for k in range(len(total)):
        whole += total[k]
    for q in range(len(order)):
        if tries == tried:
            break
        z = q + int(next_random(state) * (len(order) - q))
        order[q], order[z] = order[z], order[q]
        column_codes = work.drawn_codes[order[q]]
        one = int(column_codes[work.rows[first + int(next_random(state) * (last - first))]])
        two = int(column_codes[work.rows[first + int(next_random(state) * (last - first))]])
        lowest, highest = min(one, two), max(one, two)
        if lowest == highest:
            lowest, highest = range_of(column_codes, work.rows, first, last)
            if lowest == highest:
                continue
        tried += 1
        at = lowest + int(next_random(state) * (highest - lowest))
        part = sum_sides(work, node, column_codes, at)
        gain = gain_of(total, work.sides, whole, part, low, high)
        if gain > best:
            best, column, cut = gain, order[q], at
            for k in range(len(total)):
                work.best_left[k] = work.sides[k, 1]
    return column, cut


def range_of(column_codes, rows, first, last):
    """The least and the largest code of a column in a node."""
    low, high = 255, 0
    for p in range(first, last):
        code = int(column_codes[rows[p]])
        low, high = min(low, code), max(high, code)
    return low, high


def sum_leaf(work, node, leaf, targets, weights):
    """Write exact sums of the rows of a leaf, which are numbered as before the draw."""
    sums, width = work.sums[leaf], work.sums.shape[1] - 1
    sums[:] = 0.0
    for p in range(work.first[node], work.last[node]):
        r = work.drawn[work.rows[p]]
        work.rows[p] = r
        sums[width] += weights[r]
        if width == 1:
            sums[0] += weights[r] * targets[r]
        else:
            sums[np.uint64(targets[r])] += weights[r]


def split(work, node, column, cut, left, right):
    """Split a node, and write its test."""
    for code in range(len(work.goes_left)):
        work.goes_left[code] = code <= cut
    n_missing = partition(work, node, work.drawn_codes[column], left, right)
    n_left, n_right = work.last[left] - work.first[left], work.last[right] - work.first[right]
    is_left = default_left(n_missing, n_left, n_right, work.drawn[work.rows[work.first[node]]])
    work.nodes[node, 0], work.nodes[node, 1] = column << COLUMN | cut << CODE | np.int64(is_left), left
    for k in range(len(work.best_left)):
        work.totals[left, k] = work.best_left[k]
        work.totals[right, k] = work.totals[node, k] - work.best_left[k]


@compiled
def grow_tree(
    work: Work,
    targets: Annotated[np.ndarray, "float64[rows]"],
    weights: Annotated[np.ndarray, "float64[rows]"],
    packed: Annotated[np.ndarray, "int64[rows]"],
    codes: Annotated[np.ndarray, "uint8[columns, rows]"],
    share: float,
    least: int,
    tries: int,
    order: Annotated[np.ndarray, "int64[varying]"],
    state: Annotated[np.ndarray, "uint64[1]"],
) -> None:
    """Grow a tree on about a share of the rows; writes its nodes, how many they are, and the sums of its leaves."""
    next_random(state)
    nodes, total = work.nodes, work.totals[0]
    has_classes = len(total) > 1
    low, high = fields_of_rows(len(targets), has_classes)
    work.first[0], work.last[0] = 0, draw(work, packed, codes, share, state[0])
    total[:], n_nodes, n_leaves, v = 0, 1, 0, 0
    gather(work, 0)
    for p in range(np.uint64(work.last[0])):
        both = work.packed[p]
        if has_classes:
            total[np.uint64(both) >> np.uint64(CLASS)] += both & ((1 << CLASS) - 1)
        else:
            total[0] += both
    while v < n_nodes:
        column, cut = -1, 0
        if work.last[v] - work.first[v] >= least and n_nodes + 2 <= len(nodes) and differs(work, targets, v):
            column, cut = draw_split(work, v, tries, order, state, low, high)
        if column < 0:
            sum_leaf(work, v, n_leaves, targets, weights)
            nodes[v, 0], nodes[v, 1] = LEAF, n_leaves
            n_leaves += 1
        else:
            split(work, v, column, cut, n_nodes, n_nodes + 1)
            gather(work, v)
            n_nodes += 2
        v += 1
    work.size[0] = n_nodes


def rows_of_tree(n: int) -> int:
    """The number of rows drawn for a tree, of n rows."""
    return min(n, max(int(ROWS * n), MANY_ROWS), MOST_ROWS)


def n_tried(n_columns: int, n_classes: int, multiple: float = 1.0) -> int:
    """The number of columns tried at a node.

    >>> n_tried(10, 0), n_tried(10, 2), n_tried(10, 2, 4.0)
    (4, 3, 10)
    """
    n = math.isqrt(n_columns) if n_classes else math.ceil(PART_OF_NUMBERS * n_columns)
    return min(max(round(multiple * n), 1), max(n_columns, 1))


def work_of(settings: Settings, problem: Problem, n: int) -> float:
    """The approximate number of additions for growing trees on n rows of a problem."""
    rows = max(rows_of_tree(n), 2)
    tries = n_tried(len(problem.binned.codes), problem.n_classes, settings.columns)
    return TREES * rows * math.log2(rows) * (4.0 + 2.0 * tries)


def neighbours_of(settings: Settings, problem: Problem) -> list[Settings]:
    """Neighbouring settings that later rows may choose: columns tried at a node, and fewest rows of a node."""
    columns, least, n_columns = settings.columns, settings.least, len(problem.binned.codes)
    tries_all = n_tried(n_columns, problem.n_classes, columns) >= n_columns
    neighbours = {
        settings._replace(columns=2.0 * columns): columns < MOST_MULTIPLE and not tries_all,
        settings._replace(least=2.0 * least): least < MOST_MULTIPLE,
        settings._replace(columns=0.5 * columns): columns > 0.5,
        settings._replace(least=0.5 * least): least > 1.0,
    }
    return [neighbour for neighbour, is_possible in neighbours.items() if is_possible]


def grow_randomised(problem: Problem, seed: int, settings: Settings = USUAL) -> Trees:
    """Randomised trees of a problem."""
    n, n_outputs = len(problem.targets), problem.n_outputs
    bins, codes, _ = problem.binned
    varying = np.flatnonzero(codes.max(axis=1, initial=0) > codes.min(axis=1, initial=255)).astype(np.int64)
    centre, spread, targets, loss, dispersion = scaled_targets(problem)
    n_drawn = rows_of_tree(n)
    most_leaves = max(min(MOST_LEAVES, MOST_VALUES // n_outputs, n_drawn), 1)
    least = max(round(FEWEST * settings.least), 0 if loss is None else LEAST_OF_LOSS)
    if n_drawn > most_leaves:
        least = max(least, math.ceil(2 * n_drawn / most_leaves))
    if problem.has_log_link:
        least = max(least, min(math.ceil(LEAST_EVENTS * max(dispersion, 1.0)), n_drawn // 8))
    random, grown, leaves = np.random.default_rng([seed, 2]), [], [np.empty((0, n_outputs))]
    tries = n_tried(len(varying), problem.n_classes, settings.columns)
    lengths = {"rows": n, "columns": len(codes), "nodes": 2 * most_leaves - 1, "leaves": most_leaves}
    work = zeros(Work, **lengths, outputs=n_outputs, sums=n_outputs + 1)
    state = random.integers(1, 2**63, 1).astype(np.uint64)
    packed = packed_rows(targets, problem.weights, n_outputs > 1, random)
    rows, share = Rows(np.zeros((n, 1)), targets, problem.weights), n_drawn / max(n, 1)
    call = grow_tree, work, targets, problem.weights, packed, codes, share, least, tries, varying, state
    program = Program([call])
    for _ in range(max(round(TREES * settings.trees), 1) if len(varying) else 0):
        program.run()
        nodes = work.nodes[: work.size[0]].copy()
        sums = work.sums[: (len(nodes) + 1) // 2]
        if problem.has_log_link:
            sums = sums / dispersion + PRIOR_EVENTS
        means = sums[:, :-1] / sums[:, -1:]
        if loss is not None:
            minimise, *arguments = minimising(work, loss, nodes, rows, 1.0, means[:, 0])
            minimise(*arguments)
        grown.append(nodes)
        leaves.append(means)
    values = np.concatenate(leaves)
    values = values.astype(np.float32) if problem.n_classes else scaled(values, spread, centre)
    if not grown:
        start = np.array([math.log(spread) if problem.has_log_link else centre])
        start = problem.start() if problem.n_classes else start
        return joined(bins, [], [], values, start, problem.n_classes)
    smallest = spread * LEAST_RATE if problem.has_log_link else 1.0 / (2.0 * n + 2.0) if problem.n_classes else 0.0
    return joined(bins, grown, [], values, np.zeros(n_outputs), problem.n_classes, True, smallest)


def begin_trial(problem: Problem, seed: int, settings: Settings) -> Callable[[float], Trees]:
    """A function that grows a multiple of the usual number of trees."""
    return lambda times: grow_randomised(problem, seed, settings._replace(trees=times))


KIND = Kind(grow_randomised, 0.1, begin_trial, lambda problem: JUDGED, neighbours_of, work_of)

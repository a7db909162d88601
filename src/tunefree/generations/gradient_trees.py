"""A tree on gradients and second derivatives: histograms of codes, one structure for all outputs.

Chen, Guestrin: XGBoost (KDD 2016), equations (6) and (7), with vectors for outputs; leaves are split in the order of
their gain, and of two children the histogram of the larger one is a difference (Ke et al.: LightGBM, NIPS 2017).
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from tunefree.core.kernels import kernel
from tunefree.generations.bins import MISSING, Binned
from tunefree.generations.trees import CODE, CODES, COLUMN, LEAF, with_default

RIDGE = 1e-3  # added to sums of second derivatives
LEAST_GAIN = 1e-9


class Work(NamedTuple):
    """Arrays in which one tree after another is grown."""

    rows: Annotated[np.ndarray, "uint32[rows]"]  # of the tree, those of a node behind each other
    spare: Annotated[np.ndarray, "uint32[rows]"]
    ordered: Annotated[np.ndarray, "float32[rows, parts]"]  # 2 K gradients and second derivatives of a node's rows
    first: Annotated[np.ndarray, "int64[nodes]"]  # a node has rows[first .. last]
    last: Annotated[np.ndarray, "int64[nodes]"]
    totals: Annotated[np.ndarray, "float64[nodes, sums]"]  # 2 K + 1: over a node's rows, and their number
    gains: Annotated[np.ndarray, "float64[nodes]"]  # of its best split; 0 for none
    splits: Annotated[np.ndarray, "int32[nodes]"]  # the test of its best split
    histogram: Annotated[np.ndarray, "int64[nodes]"]  # which histogram is its
    histograms: Annotated[np.ndarray, "float64[histograms, drawn, 256, sums]"]  # one more than leaves

    @classmethod
    def create(cls, n: int, n_columns: int, n_outputs: int, most_leaves: int) -> Work:
        """Room for trees of so many rows, columns drawn, outputs, and leaves."""
        nodes, width = 2 * most_leaves - 1, 2 * n_outputs + 1
        of_rows = np.empty(n, np.uint32), np.empty(n, np.uint32), np.empty((n, 2 * n_outputs), np.float32)
        of_nodes = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64), np.zeros((nodes, width)), np.zeros(nodes)
        histograms = np.zeros((most_leaves + 1, n_columns, 256, width))
        return cls(*of_rows, *of_nodes, np.zeros(nodes, np.int32), np.zeros(nodes, np.int64), histograms)

    @property
    def places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The rows of the tree, and where those of each node lie."""
        return self.rows, self.first, self.last


def gather(work, node, derivatives):
    """Lay the derivatives of a node's rows side by side, and sum them."""
    rows, ordered, total = work.rows[work.first[node] : work.last[node]], work.ordered, work.totals[node]
    total[:] = 0.0
    for p in range(np.uint64(len(rows))):
        for q in range(ordered.shape[1]):
            ordered[p, q] = derivatives[rows[p], q]
            total[q] += ordered[p, q]
    total[ordered.shape[1]] = len(rows)


def fill_two(first, second, of_first, of_second, rows, ordered):
    """Sum up two columns of one output at once: each sum waits for the one before it, so processors do both."""
    for p in range(np.uint64(len(rows))):
        r, gradient, curvature = rows[p], np.float64(ordered[p, 0]), np.float64(ordered[p, 1])
        b, c = of_first[r], of_second[r]
        first[b, 0] += gradient
        first[b, 1] += curvature
        first[b, 2] += 1.0
        second[c, 0] += gradient
        second[c, 1] += curvature
        second[c, 2] += 1.0


def fill_one(sums, of_column, rows, ordered, common):
    """Sum up a column, without the rows of its common code (256: of all rows)."""
    width = ordered.shape[1]
    if width == 2:
        for p in range(np.uint64(len(rows))):
            b = of_column[rows[p]]
            if b != common:
                sums[b, 0] += ordered[p, 0]
                sums[b, 1] += ordered[p, 1]
                sums[b, 2] += 1.0
    else:
        for p in range(np.uint64(len(rows))):
            b = of_column[rows[p]]
            if b != common:
                for q in range(width):
                    sums[b, q] += ordered[p, q]
                sums[b, width] += 1.0


def give_rest(sums, common, n_codes, total):
    """The common code of a column has what the others leave of the total."""
    for q in range(len(total)):
        rest = total[q] - sums[MISSING, q]
        for b in range(n_codes):
            rest -= sums[b, q]
        sums[common, q] = rest


def fill(work, node, place, binned, columns):
    """Fill the histograms of a node: sums of each code of the columns drawn."""
    rows, waiting = work.rows[work.first[node] : work.last[node]], -1
    for f in range(len(columns)):
        j = columns[f]
        sums, of_column, common = work.histograms[place, f], binned.codes[j], binned.common[j]
        sums[: binned.n_codes[j]] = 0.0
        sums[MISSING] = 0.0
        if common <= MISSING:
            fill_one(sums, of_column, rows, work.ordered, common)
            give_rest(sums, common, binned.n_codes[j], work.totals[node])
        elif work.ordered.shape[1] > 2:
            fill_one(sums, of_column, rows, work.ordered, common)
        elif waiting < 0:
            waiting = f
        else:
            other = columns[waiting]
            fill_two(work.histograms[place, waiting], sums, binned.codes[other], of_column, rows, work.ordered)
            waiting = -1
    if waiting >= 0:
        fill_one(work.histograms[place, waiting], binned.codes[columns[waiting]], rows, work.ordered, 256)
    work.histogram[node] = place


def subtract(work, node, place, smaller, n_codes, columns):
    """Histograms of a node are those in a place, of its parent, minus those of its smaller sibling."""
    for f in range(len(columns)):
        of_node, of_sibling = work.histograms[place, f], work.histograms[smaller, f]
        for q in range(of_node.shape[1]):
            of_node[MISSING, q] -= of_sibling[MISSING, q]
        for b in range(n_codes[columns[f]]):
            for q in range(of_node.shape[1]):
                of_node[b, q] -= of_sibling[b, q]
    work.histogram[node] = place


def score(sums, n_outputs):
    """sum_k G_k^2 / (H_k + ridge)."""
    total = 0.0
    for k in range(n_outputs):
        total += sums[2 * k] * sums[2 * k] / (sums[2 * k + 1] + RIDGE)
    return total


def scan_one(sums, n_codes, total, missing_left, least_rows, best):
    """The best score of the cuts of a column of one output above ``best``, and its code; -1 where there is none."""
    gradients, curvatures, rows = total[0], total[1] + 2.0 * RIDGE, total[2]
    g, h, n, cut = 0.0, RIDGE, 0.0, -1
    if missing_left:
        g, h, n = sums[MISSING, 0], sums[MISSING, 1] + RIDGE, sums[MISSING, 2]
    for b in range(n_codes):
        if sums[b, 2] == 0.0:
            continue
        g, h, n = g + sums[b, 0], h + sums[b, 1], n + sums[b, 2]
        if rows - n < least_rows:
            break
        if n >= least_rows:
            right, rest = gradients - g, curvatures - h
            value = (g * g * rest + right * right * h) / (h * rest)  # one division for the two parts
            if value > best:
                best, cut = value, b
    return best, cut


def scan(sums, n_codes, total, missing_left, least_rows, best, left, right):
    """As ``scan_one`` of several outputs."""
    width, cut = len(total), -1
    for q in range(width):
        left[q] = sums[MISSING, q] if missing_left else 0.0
    for b in range(n_codes):
        if sums[b, width - 1] == 0.0:
            continue
        for q in range(width):
            left[q] += sums[b, q]
            right[q] = total[q] - left[q]
        if right[width - 1] < least_rows:
            break
        if left[width - 1] >= least_rows:
            value = score(left, width // 2) + score(right, width // 2)
            if value > best:
                best, cut = value, b
    return best, cut


def find_split(work, node, columns, n_codes, least_rows, scratch):
    """Find the split of a node with the largest gain; ``scratch`` is (2, 2 K + 1)."""
    total, width = work.totals[node], work.totals.shape[1]
    parent = score(total, width // 2)
    best = parent
    if total[width - 1] >= 2 * least_rows:
        for f in range(len(columns)):
            j, sums = columns[f], work.histograms[work.histogram[node], f]
            for side in range(2 if sums[MISSING, width - 1] > 0.0 else 1):
                if width == 3:
                    best, cut = scan_one(sums, n_codes[j], total, side == 1, least_rows, best)
                else:
                    best, cut = scan(sums, n_codes[j], total, side == 1, least_rows, best, scratch[0], scratch[1])
                if cut >= 0:
                    work.splits[node] = j << COLUMN | cut << CODE | side
    work.gains[node] = best - parent


def partition(work, node, codes, left, right):
    """Move the rows of a node that go left before the others, in their order; both are written, to have no branch."""
    test = work.splits[node]
    of_column, cut, missing_left = codes[test >> COLUMN], np.uint8((test >> CODE) & CODES), test & 1 == 1
    n_left, n_right, n_missing = np.uint64(work.first[node]), np.uint64(0), np.uint64(0)
    for p in range(np.uint64(work.first[node]), np.uint64(work.last[node])):
        r = work.rows[p]
        code = of_column[r]
        n_missing += np.uint64(code == MISSING)
        goes_left = (code <= cut) | (missing_left & (code == MISSING))
        work.rows[n_left] = r
        work.spare[n_right] = r
        n_left += np.uint64(goes_left)
        n_right += np.uint64(not goes_left)
    for p in range(n_right):
        work.rows[n_left + p] = work.spare[p]
    before = np.uint64(work.first[node])
    work.splits[node] = with_default(test, n_missing, n_left - before, n_right, work.rows[before])
    work.first[left], work.last[left] = work.first[node], n_left
    work.first[right], work.last[right] = n_left, work.last[node]


@kernel
def grow_tree(
    work: Work,
    n: int,
    binned: Binned,
    columns: Annotated[np.ndarray, "int32[drawn]"],
    derivatives: Annotated[np.ndarray, "float32[rows, parts]"],
    most_leaves: int,
    least_rows: int,
    nodes: Annotated[np.ndarray, "int32[nodes, 2]"],
    scratch: Annotated[np.ndarray, "float64[2, sums]"],
) -> int:
    """Grow a tree on ``work.rows[:n]``; writes its nodes (2 leaves - 1, 2), and returns how many there are.

    A leaf has LEAF and its number as a node, under which ``work`` has its rows and totals.
    """
    work.first[0], work.last[0] = 0, n
    gather(work, 0, derivatives)
    fill(work, 0, 0, binned, columns)
    find_split(work, 0, columns, binned.n_codes, least_rows, scratch)
    n_nodes, places = 1, 1
    nodes[0, 0], nodes[0, 1] = LEAF, 0
    for _ in range(most_leaves - 1):
        best = -1
        for v in range(n_nodes):
            if nodes[v, 0] == LEAF and work.gains[v] > LEAST_GAIN and (best < 0 or work.gains[v] > work.gains[best]):
                best = v
        if best < 0:
            break
        left, right = n_nodes, n_nodes + 1
        partition(work, best, binned.codes, left, right)
        n_left, n_right = work.last[left] - work.first[left], work.last[right] - work.first[right]
        small, large = (left, right) if n_left <= n_right else (right, left)
        gather(work, small, derivatives)
        for q in range(work.totals.shape[1]):
            work.totals[large, q] = work.totals[best, q] - work.totals[small, q]
        fill(work, small, places, binned, columns)
        subtract(work, large, work.histogram[best], places, binned.n_codes, columns)
        places += 1
        nodes[best, 0], nodes[best, 1] = work.splits[best], left
        for v in (left, right):
            nodes[v, 0], nodes[v, 1] = LEAF, v
            find_split(work, v, columns, binned.n_codes, least_rows, scratch)
        n_nodes += 2
    return n_nodes

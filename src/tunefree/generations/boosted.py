"""Boosted trees: gradients and second derivatives, histograms of codes, one structure for all outputs.

Friedman: Greedy function approximation: a gradient boosting machine (Annals of Statistics 2001); Chen, Guestrin:
XGBoost (KDD 2016), equations (6) and (7), with vectors for outputs; leaves are split in the order of their gain, and of
two children the histogram of the larger one is a difference (Ke et al.: LightGBM, NIPS 2017).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import compiled
from tunefree.core.numbers import clip, largest
from tunefree.generations.bins import MISSING, Bins, bins_of, codes_of
from tunefree.generations.bins import joined as joined_bins
from tunefree.generations.problem import Problem, centre_of, scores_of, spread_of
from tunefree.generations.trees import CODE, CODES, COLUMN, LEAF, Trees, child_of
from tunefree.losses import Square
from tunefree.losses.contract import slope

TREES = 100
RATE, RATE_OF_MANY = 0.1, 0.2  # of shrinkage; for more than MANY classes
MANY = 5
FIRST_ORDER = 15  # trees after which categories are ordered by what these leave of their targets, too
ROWS = 0.8  # of the rows, drawn for each tree
COLUMNS = 0.8  # of the columns likewise, and at most WIDEST * sqrt(columns)
WIDEST = 8.0
RIDGE = 1e-3  # added to sums of second derivatives
LONGEST = 8.0  # Newton step of a leaf: longer ones would let rare classes diverge
LEAST_GAIN = 1e-9
BISECTIONS = 40  # of the range of residuals, where a leaf takes the minimiser of the loss


class Settings(NamedTuple):
    """Of the trees of a problem."""

    most_leaves: int
    least_rows: int  # of a leaf
    rate: float


def settings_of(n: int, n_classes: int) -> Settings:
    """Few rows afford small trees only.

    Examples
    --------
    >>> settings_of(100, 2), settings_of(50_000, 7).most_leaves
    (Settings(most_leaves=8, least_rows=5, rate=0.1), 31)
    """
    leaves = 8 if n < 1000 else 16 if n < 8000 else 31
    return Settings(leaves, 5 if n < 1000 else 20, RATE_OF_MANY if n_classes > MANY else RATE)


class Work(NamedTuple):
    """Arrays in which one tree after another is grown."""

    rows: np.ndarray  # (n,) uint32: rows of the tree, those of a node behind each other
    spare: np.ndarray  # (n,) uint32
    ordered: np.ndarray  # (n, 2 K) float32: gradients and second derivatives of a node's rows
    first: np.ndarray  # (nodes,) int64: a node has rows[first .. last]
    last: np.ndarray  # (nodes,) int64
    totals: np.ndarray  # (nodes, 2 K + 1): sums over a node's rows, and their number
    gains: np.ndarray  # (nodes,) of its best split; 0 for none
    splits: np.ndarray  # (nodes,) int32: the test of its best split
    histogram: np.ndarray  # (nodes,) int64: which histogram is its
    histograms: np.ndarray  # (leaves + 1, columns drawn, 256, 2 K + 1)

    @classmethod
    def create(cls, n: int, n_columns: int, n_outputs: int, most_leaves: int) -> Work:
        """Room for trees of so many rows, columns drawn, outputs, and leaves."""
        nodes, width = 2 * most_leaves - 1, 2 * n_outputs + 1
        of_rows = np.empty(n, np.uint32), np.empty(n, np.uint32), np.empty((n, 2 * n_outputs), np.float32)
        of_nodes = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64), np.zeros((nodes, width)), np.zeros(nodes)
        histograms = np.zeros((most_leaves + 1, n_columns, 256, width))
        return cls(*of_rows, *of_nodes, np.zeros(nodes, np.int32), np.zeros(nodes, np.int64), histograms)


@compiled.inline
def fill(work, node, place, codes, columns, n_codes, derivatives):
    """Fill the histograms of a node: sums of each code of the columns drawn."""
    first, width = work.first[node], work.totals.shape[1]
    rows, ordered = work.rows[first : work.last[node]], work.ordered
    n = np.uint64(len(rows))
    for p in range(n):
        for q in range(width - 1):
            ordered[p, q] = derivatives[rows[p], q]
    for f in range(len(columns)):
        sums, of_column = work.histograms[place, f], codes[columns[f]]
        sums[:] = 0.0
        if width == 3:
            for p in range(n):
                b = of_column[rows[p]]
                sums[b, 0] += ordered[p, 0]
                sums[b, 1] += ordered[p, 1]
                sums[b, 2] += 1.0
        else:
            for p in range(n):
                b = of_column[rows[p]]
                for q in range(width - 1):
                    sums[b, q] += ordered[p, q]
                sums[b, width - 1] += 1.0
    work.histogram[node] = place


@compiled.inline
def subtract(work, node, place, smaller, n_columns):
    """Histograms of a node are those in a place, of its parent, minus those of its smaller sibling."""
    for f in range(n_columns):
        for b in range(256):
            for q in range(work.totals.shape[1]):
                work.histograms[place, f, b, q] -= work.histograms[smaller, f, b, q]
    work.histogram[node] = place


@compiled.inline
def score(sums, n_outputs):
    """sum_k G_k^2 / (H_k + ridge)."""
    total = 0.0
    for k in range(n_outputs):
        total += sums[2 * k] * sums[2 * k] / (sums[2 * k + 1] + RIDGE)
    return total


@compiled.inline
def find_split(work, node, columns, n_codes, least_rows, left, right):
    """Find the split of a node with the largest gain; ``left`` and ``right`` (2 K + 1,) are scratch."""
    total, width = work.totals[node], work.totals.shape[1]
    n_outputs, parent = width // 2, 0.0
    parent = score(total, n_outputs)
    work.gains[node] = 0.0
    if total[width - 1] < 2 * least_rows:
        return
    for f in range(len(columns)):
        sums = work.histograms[work.histogram[node], f]
        missing_sides = 2 if sums[MISSING, width - 1] > 0.0 else 1
        for side in range(missing_sides):
            for q in range(width):
                left[q] = sums[MISSING, q] if side == 1 else 0.0
            for b in range(n_codes[columns[f]]):
                if sums[b, width - 1] == 0.0:
                    continue
                for q in range(width):
                    left[q] += sums[b, q]
                    right[q] = total[q] - left[q]
                if right[width - 1] < least_rows:
                    break
                if left[width - 1] < least_rows:
                    continue
                gain = score(left, n_outputs) + score(right, n_outputs) - parent
                if gain > work.gains[node]:
                    work.gains[node] = gain
                    work.splits[node] = columns[f] << COLUMN | b << CODE | side


@compiled.inline
def partition(work, node, codes, left, right):
    """Move the rows of a node that go left before the others, in their order."""
    test = work.splits[node]
    of_column, cut, missing_left = codes[test >> COLUMN], (test >> CODE) & CODES, test & 1 == 1
    n_left, n_right = work.first[node], 0
    for p in range(work.first[node], work.last[node]):
        r = work.rows[p]
        code = of_column[r]
        if code <= cut or (missing_left and code == MISSING):
            work.rows[n_left] = r
            n_left += 1
        else:
            work.spare[n_right] = r
            n_right += 1
    for p in range(n_right):
        work.rows[n_left + p] = work.spare[p]
    work.first[left], work.last[left] = work.first[node], n_left
    work.first[right], work.last[right] = n_left, work.last[node]


@compiled.inline
def add_totals(work, node):
    """Sum the histogram of a node's first column."""
    sums = work.histograms[work.histogram[node], 0]
    for q in range(work.totals.shape[1]):
        work.totals[node, q] = 0.0
        for b in range(256):
            work.totals[node, q] += sums[b, q]


@compiled.entry
def grow_tree(work, n, codes, columns, n_codes, derivatives, most_leaves, least_rows, nodes, scratch):
    """Grow a tree on ``work.rows[:n]``; writes its nodes (2 leaves - 1, 2), and returns how many there are.

    A leaf has LEAF and its own number as a node, under which ``work`` has its rows and totals.
    """
    work.first[0], work.last[0] = 0, n
    fill(work, 0, 0, codes, columns, n_codes, derivatives)
    add_totals(work, 0)
    find_split(work, 0, columns, n_codes, least_rows, scratch[0], scratch[1])
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
        partition(work, best, codes, left, right)
        n_left, n_right = work.last[left] - work.first[left], work.last[right] - work.first[right]
        small, large = (left, right) if n_left <= n_right else (right, left)
        fill(work, small, places, codes, columns, n_codes, derivatives)
        subtract(work, large, work.histogram[best], places, len(columns))
        places += 1
        add_totals(work, small)
        for q in range(work.totals.shape[1]):
            work.totals[large, q] = work.totals[best, q] - work.totals[small, q]
        nodes[best, 0], nodes[best, 1] = work.splits[best], left
        for v in (left, right):
            nodes[v, 0], nodes[v, 1] = LEAF, v
            find_split(work, v, columns, n_codes, least_rows, scratch[0], scratch[1])
        n_nodes += 2
    return n_nodes


@compiled.entry
def write_derivatives_of_classes(margins, targets, weights, derivatives):
    """Write gradients and second derivatives (n, 2 K) of the log-loss."""
    n, n_outputs = margins.shape
    for i in range(n):
        if n_outputs == 1:
            p = 1.0 / (1.0 + math.exp(-margins[i, 0]))
            derivatives[i, 0] = weights[i] * (p - targets[i])
            derivatives[i, 1] = weights[i] * max(p * (1.0 - p), 1e-12)
            continue
        peak, total = largest(margins[i]), 0.0
        for k in range(n_outputs):
            total += math.exp(margins[i, k] - peak)
        for k in range(n_outputs):
            p = math.exp(margins[i, k] - peak) / total
            derivatives[i, 2 * k] = weights[i] * (p - (1.0 if k == targets[i] else 0.0))
            derivatives[i, 2 * k + 1] = weights[i] * max(p * (1.0 - p), 1e-12)


@compiled.entry
def write_derivatives_of_numbers(loss, margins, targets, weights, centre, spread, derivatives):
    """Write slopes of the loss, in units in which they are near 1, and weights for second derivatives."""
    for i in range(len(margins)):
        steep = slope(loss, targets[i], centre + spread * margins[i, 0])
        derivatives[i, 0] = weights[i] * clip(steep, 1e6)
        derivatives[i, 1] = weights[i]


@compiled.entry
def write_residuals(margins, targets, weights, derivatives):
    """Write derivatives of half of the square loss, of targets in units of their spread."""
    for i in range(len(margins)):
        derivatives[i, 0] = weights[i] * clip(margins[i, 0] - targets[i], 1e15)
        derivatives[i, 1] = weights[i]


@compiled.inline
def minimiser(loss, rows, first, last, margins, targets, weights, centre, spread):
    """The step of the margins of some rows at which their loss is least, by bisection."""
    low, high = math.inf, -math.inf
    for p in range(first, last):
        away = (targets[rows[p]] - centre) / spread - margins[rows[p], 0]
        low, high = min(low, away), max(high, away)
    for _ in range(BISECTIONS):
        middle = 0.5 * low + 0.5 * high
        total = 0.0
        for p in range(first, last):
            r = rows[p]
            total += weights[r] * clip(slope(loss, targets[r], centre + spread * (margins[r, 0] + middle)), 1e100)
        if total < 0.0:
            low = middle
        else:
            high = middle
    return 0.5 * low + 0.5 * high


@compiled.entry
def write_leaves(work, nodes, n_nodes, rate, values):
    """Number the leaves of a tree, and write their values (leaves, K): shrunk Newton steps."""
    n_leaves = 0
    for v in range(n_nodes):
        if nodes[v, 0] == LEAF:
            for k in range(values.shape[1]):
                step = -work.totals[v, 2 * k] / (work.totals[v, 2 * k + 1] + RIDGE)
                values[n_leaves, k] = rate * clip(step, LONGEST)
            nodes[v, 1] = n_leaves
            n_leaves += 1
    return n_leaves


@compiled.entry
def write_minimisers(work, loss, nodes, n_nodes, rate, margins, targets, weights, centre, spread, values):
    """As ``write_leaves`` with shrunk minimisers of the loss."""
    n_leaves = 0
    for v in range(n_nodes):
        if nodes[v, 0] == LEAF:
            of_rows = margins, targets, weights, centre, spread
            values[n_leaves, 0] = rate * minimiser(loss, work.rows, work.first[v], work.last[v], *of_rows)
            nodes[v, 1] = n_leaves
            n_leaves += 1
    return n_leaves


@compiled.entry
def add_values(work, codes, nodes, values, is_drawn, margins):
    """Add the values of the leaves that rows reach to their margins; where those drawn for the tree lie is known."""
    for v in range(len(nodes)):
        if nodes[v, 0] == LEAF:
            for p in range(work.first[v], work.last[v]):
                for k in range(margins.shape[1]):
                    margins[work.rows[p], k] += values[nodes[v, 1], k]
    for i in range(len(margins)):
        if not is_drawn[i]:
            v = np.uint32(0)
            while nodes[v, 0] >= 0:
                test = nodes[v, 0]
                v = child_of(nodes, v, test, codes[np.uint32(test) >> COLUMN, i])
            for k in range(margins.shape[1]):
                margins[i, k] += values[nodes[v, 1], k]


class Boosting:
    """The state of growing: codes of the rows, their margins, and the trees so far."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem, self.random = problem, np.random.default_rng([seed, 1])
        n, n_columns = problem.columns.shape
        self.settings = settings_of(n, problem.n_classes)
        self.bins = bins_of(problem.columns, problem.is_categorical, scores_of(problem))
        self.codes = np.ascontiguousarray(codes_of(self.bins, problem.columns).T)
        self.n_codes = self.bins.n_codes
        self.is_square = isinstance(problem.loss, Square)
        self.centre = 0.0 if problem.n_classes else centre_of(problem)
        self.spread = 1.0 if problem.n_classes else spread_of(problem, self.centre)
        self.start = problem.start()
        self.targets = problem.targets
        if self.is_square:
            self.targets = (problem.targets / self.spread) - self.centre / self.spread
        self.margins = np.tile(self.start, (n, 1))
        self._begin()
        self.derivatives = np.empty((n, 2 * len(self.start)), np.float32)

    def _begin(self) -> None:
        """Know which of the columns vary, and how many are drawn for a tree."""
        self.varying = np.flatnonzero(self.n_codes + (self.codes == MISSING).any(axis=1) > 1).astype(np.int32)
        self.n_drawn = int(max(1, min(round(COLUMNS * len(self.varying)), WIDEST * math.sqrt(len(self.varying)))))

    def _order_again(self) -> None:
        """Let trees to come have each category in the order of what the trees so far leave of its targets, too."""
        self._differentiate()
        is_categorical = self.problem.is_categorical
        rest = -self.derivatives[:, 0].astype(np.float64)
        columns = self.problem.columns[:, is_categorical]
        again = bins_of(columns, is_categorical[is_categorical], rest)
        self.bins = joined_bins(self.bins, again)
        self.codes = np.concatenate([self.codes, np.ascontiguousarray(codes_of(again, columns).T)])
        self.n_codes = self.bins.n_codes
        self._begin()

    def grow(self) -> Trees:
        """All trees."""
        if not len(self.varying):
            return self._trees([], [])
        work = Work.create(len(self.margins), self.n_drawn, len(self.start), self.settings.most_leaves)
        structures, values = [], []
        for number in range(TREES):
            if number == FIRST_ORDER and self.problem.is_categorical.any():
                self._order_again()
                work = Work.create(len(self.margins), self.n_drawn, len(self.start), self.settings.most_leaves)
            nodes, of_leaves, is_drawn = self._tree(work)
            if len(nodes) == 1:
                continue
            add_values(work, self.codes, nodes, of_leaves, is_drawn, self.margins)
            structures.append(nodes)
            values.append(of_leaves)
        return self._trees(structures, values)

    def _tree(self, work: Work) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The nodes of the next tree, the values of its leaves, and which rows were drawn for it."""
        self._differentiate()
        n = len(self.margins)
        is_drawn = self.random.random(n, np.float32) < (ROWS if n >= 2 * self.settings.least_rows else 2.0)
        drawn = np.flatnonzero(is_drawn)
        work.rows[: len(drawn)] = drawn
        columns = np.sort(self.random.permutation(self.varying)[: self.n_drawn])
        most, scratch = self.settings.most_leaves, np.empty((2, work.totals.shape[1]))
        nodes = np.empty((2 * most - 1, 2), np.int32)
        of_tree = self.codes, columns, self.n_codes, self.derivatives, most, self.settings.least_rows
        n_nodes = grow_tree(work, len(drawn), *of_tree, nodes, scratch)
        values, rate = np.empty((most, len(self.start)), np.float32), self.settings.rate
        if self.problem.n_classes or self.is_square:
            n_leaves = write_leaves(work, nodes, n_nodes, rate, values)
        else:
            of_rows = self.margins, self.targets, self.problem.weights, self.centre, self.spread
            n_leaves = write_minimisers(work, self.problem.loss, nodes, n_nodes, rate, *of_rows, values)
        return nodes[:n_nodes].copy(), values[:n_leaves].copy(), is_drawn

    def _differentiate(self) -> None:
        of_rows = self.margins, self.targets, self.problem.weights
        if self.problem.n_classes:
            write_derivatives_of_classes(*of_rows, self.derivatives)
        elif self.is_square:
            write_residuals(*of_rows, self.derivatives)
        else:
            write_derivatives_of_numbers(self.problem.loss, *of_rows, self.centre, self.spread, self.derivatives)

    def _trees(self, structures: list[np.ndarray], values: list[np.ndarray]) -> Trees:
        leaves = values if self.problem.n_classes else [of_leaves * self.spread for of_leaves in map(_double, values)]
        start = self.start * self.spread + self.centre if not self.problem.n_classes else self.start
        columns = np.arange(len(self.problem.is_categorical))
        again = columns[self.problem.is_categorical][: len(self.codes) - len(columns)]
        return joined(self.bins, np.concatenate([columns, again]), structures, leaves, start, self.problem.n_classes)


def _double(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float64)


def joined(
    bins: Bins, sources: np.ndarray, structures: list[np.ndarray], values: list[np.ndarray], start: np.ndarray, n_classes: int, **other: Any
) -> Trees:
    """Trees behind each other."""
    roots = np.cumsum([0, *map(len, structures)])[:-1].astype(np.int32)
    first_leaves = np.cumsum([0, *map(len, values)])[:-1]
    nodes = [np.empty((0, 2), np.int32)]
    for root, first, structure in zip(roots, first_leaves, structures, strict=True):
        is_leaf = structure[:, 0] == LEAF
        moved = structure.copy()
        moved[:, 1] += np.where(is_leaf, first, root).astype(np.int32)
        nodes.append(moved)
    leaves = np.concatenate([np.empty((0, len(start)), values[0].dtype if values else np.float32), *values])
    fields = {"is_averaged": False, "least": 0.0} | other
    of_trees = roots, np.concatenate(nodes), leaves, np.asarray(start, np.float64)
    return Trees(bins, sources.astype(np.int64), *of_trees, np.array(fields["is_averaged"]), np.array(n_classes), np.array(fields["least"]))


def grow_boosted(problem: Problem, seed: int) -> Trees:
    """Boosted trees of a problem.

    Examples
    --------
    >>> from tunefree.generations.trees import apply
    >>> x = np.linspace(-1.0, 1.0, 500)[:, None]
    >>> problem = Problem(x, np.array([False]), (x[:, 0] > 0.3) * 1.0, np.ones(500), 2, None)
    >>> (apply(grow_boosted(problem, 0), np.array([[0.0], [0.5]]))[1][:, 0] > 0.0).tolist()
    [False, True]
    """
    return Boosting(problem, seed).grow()

"""Boosted trees: each is grown on the gradients and second derivatives that the ones before it leave.

Friedman: Greedy function approximation: a gradient boosting machine (Annals of Statistics 2001), with trees of
:mod:`tunefree.generations.gradient_trees`. Of many columns, those that the trees before gained by are drawn more often
(Amaratunga, Cabrera, Lee: Enriched random forests, Bioinformatics 2008).
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from tunefree.core.kernels import kernel
from tunefree.core.numbers import clip, largest
from tunefree.generations.bins import MISSING, Binned, bins_of
from tunefree.generations.bins import joined as joined_bins
from tunefree.generations.gradient_trees import RIDGE, Work, grow_tree
from tunefree.generations.numeric_losses import write_derivatives, write_minimisers, write_steps_of_logarithms
from tunefree.generations.problem import Problem, centre_of, scores_of, spread_of
from tunefree.generations.trees import CODE, CODES, COLUMN, LEAF, Trees, joined
from tunefree.losses import Square
from tunefree.losses.contract import rescaled, slope

TREES = 100
RATE, RATE_OF_MANY = 0.1, 0.2  # of shrinkage; for more than MANY classes
MANY = 5
FIRST_ORDER = 15  # trees after which categories are ordered by what these leave of their targets, too
ROWS = 0.8  # of the rows, drawn for each tree
COLUMNS = 0.5  # of the columns likewise, and at most WIDEST * sqrt(columns)
COLUMNS_OF_FEW, FEW = 0.8, 10  # up to so many drawn
WIDEST = 4.0
BEST = 0.5  # of the columns drawn where these are fewer: those that the trees before gained most by
LONGEST = 8.0  # Newton step of a leaf: longer ones would let rare classes diverge
FARTHEST = 1e15  # spreads of a target from the centre, so that single precision has room for sums
MANY_ROWS = 4096  # enough for a mean
RATE_OF_LOGARITHMS = 0.05  # of shrinkage, with a logarithmic link
PRIOR_EVENTS = 20.0  # of a leaf, at the mean that it has already, likewise


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


def settings_of_logarithms(n: int, dispersion: float) -> Settings:
    """Trees are as large as those of so many rows as there are events, such as claims: 1 / dispersion in a row.

    Examples
    --------
    >>> settings_of_logarithms(50_000, 20.0)
    Settings(most_leaves=16, least_rows=400, rate=0.05)
    """
    per_row = min(1.0 / dispersion, 1.0)
    settings = settings_of(int(n * per_row), 0)
    least = max(int(min(settings.least_rows / per_row, n / settings.most_leaves)), settings.least_rows)
    return Settings(settings.most_leaves, least, RATE_OF_LOGARITHMS)


def n_drawn(n_columns: int) -> int:
    """How many columns a tree sees.

    Examples
    --------
    >>> [n_drawn(n) for n in (1, 8, 20, 500)]
    [1, 6, 10, 89]
    """
    n = max(round(COLUMNS * n_columns), min(round(COLUMNS_OF_FEW * n_columns), FEW))
    return max(min(n, int(WIDEST * math.sqrt(n_columns))), 1)


@kernel
def write_derivatives_of_classes(
    margins: Annotated[np.ndarray, "float64[rows, outputs]"],
    targets: Annotated[np.ndarray, "float64[rows]"],
    weights: Annotated[np.ndarray, "float64[rows]"],
    derivatives: Annotated[np.ndarray, "float32[rows, parts]"],
) -> None:
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


@kernel
def write_residuals(
    margins: Annotated[np.ndarray, "float64[rows, outputs]"],
    targets: Annotated[np.ndarray, "float64[rows]"],
    weights: Annotated[np.ndarray, "float64[rows]"],
    derivatives: Annotated[np.ndarray, "float32[rows, parts]"],
) -> None:
    """Write derivatives of half of the square loss, of targets in units of their spread."""
    for i in range(len(margins)):
        derivatives[i, 0] = weights[i] * clip(margins[i, 0] - targets[i], 1e15)
        derivatives[i, 1] = weights[i]


@kernel
def write_leaves(
    totals: Annotated[np.ndarray, "float64[nodes, sums]"],
    nodes: Annotated[np.ndarray, "int32[tree_nodes, 2]"],
    rate: float,
    longest: float,
    values: Annotated[np.ndarray, "float32[leaves, outputs]"],
) -> int:
    """Number the leaves of a tree, and write their values (leaves, K): shrunk Newton steps."""
    n_leaves = 0
    for v in range(len(nodes)):
        if nodes[v, 0] == LEAF:
            for k in range(values.shape[1]):
                step = -totals[v, 2 * k] / (totals[v, 2 * k + 1] + RIDGE)
                values[n_leaves, k] = rate * clip(step, longest)
            nodes[v, 1] = n_leaves
            n_leaves += 1
    return n_leaves


@kernel
def add_values(
    rows: Annotated[np.ndarray, "uint32[rows]"],
    first: Annotated[np.ndarray, "int64[nodes]"],
    last: Annotated[np.ndarray, "int64[nodes]"],
    codes: Annotated[np.ndarray, "uint8[columns, rows]"],
    nodes: Annotated[np.ndarray, "int32[tree_nodes, 2]"],
    values: Annotated[np.ndarray, "float32[leaves, outputs]"],
    is_drawn: Annotated[np.ndarray, "bool[rows]"],
    margins: Annotated[np.ndarray, "float64[rows, outputs]"],
) -> None:
    """Add the values of the leaves that rows reach to their margins; where those drawn for the tree lie is known."""
    for v in range(len(nodes)):
        if nodes[v, 0] == LEAF:
            for p in range(first[v], last[v]):
                for k in range(margins.shape[1]):
                    margins[rows[p], k] += values[nodes[v, 1], k]
    for i in range(len(margins)):
        if not is_drawn[i]:
            node: Any = np.uint32(0)
            while nodes[node, 0] >= 0:
                test = nodes[node, 0]
                code = codes[np.uint32(test) >> COLUMN, i]
                goes_left = code <= ((test >> CODE) & CODES) or (code == MISSING and test & 1 == 1)
                node = np.uint32(nodes[node, 1]) + np.uint32(0 if goes_left else 1)
            for k in range(margins.shape[1]):
                margins[i, k] += values[nodes[node, 1], k]


def balance_of(targets: np.ndarray, weights: np.ndarray, margins: np.ndarray) -> float:
    """What has to be added to logarithms so that their means are as large in total as the targets."""
    with np.errstate(over="ignore"):
        total, predicted = np.sum(weights * targets), np.sum(weights * np.exp(margins[:, 0]))
    return float(np.log(total / predicted)) if 0.0 < total < math.inf and 0.0 < predicted < math.inf else 0.0


def in_units(problem: Problem, centre: float, spread: float) -> np.ndarray:
    """The targets (n,) as numbers of spreads from a centre."""
    return np.clip(problem.targets / spread - centre / spread, -FARTHEST, FARTHEST)


def steepness(loss: Any, targets: np.ndarray) -> float:
    """The mean slope of a loss at 0, without signs; 1 where all are 0."""
    mean = float(np.mean([min(abs(slope(loss, y, 0.0)), 1e100) for y in targets[:MANY_ROWS].tolist()] or [0.0]))
    return mean or 1.0


class Boosting:
    """The state of growing: codes of the rows, their margins, and the trees so far."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem, self.random = problem, np.random.default_rng([seed, 1])
        n = len(problem.columns)
        self.settings = settings_of(n, problem.n_classes)
        self.bins = bins_of(problem.columns, problem.is_categorical, scores_of(problem))
        self.binned = Binned.create(self.bins, problem.columns)
        self.is_square = isinstance(problem.loss, Square)
        self.centre, self.spread, self.steep = 0.0, 1.0, 1.0
        self.start, self.targets, self.loss = problem.start(), problem.targets, problem.loss
        if problem.has_log_link:
            mean, self.steep = problem.rates
            self.centre, self.targets = math.log(mean), np.clip(problem.targets / mean, 0.0, FARTHEST)
            self.settings = settings_of_logarithms(n, self.steep)
        elif not problem.n_classes:
            self.centre = centre_of(problem)
            self.spread = spread_of(problem, self.centre)
            self.targets = in_units(problem, self.centre, self.spread)
            self.loss = rescaled(problem.loss, self.spread)[0]
            self.steep = 1.0 if self.is_square else steepness(self.loss, self.targets)
        self.margins, self.gains = np.tile(self.start, (n, 1)), np.zeros(0)  # of columns, in the trees so far
        self._begin()
        self.derivatives = np.empty((n, 2 * len(self.start)), np.float32)

    def _begin(self) -> None:
        """Know which of the columns vary, and how many are drawn for a tree."""
        has_missing = (self.binned.codes == MISSING).any(axis=1)
        self.varying = np.flatnonzero(self.binned.n_codes + has_missing > 1).astype(np.int32)
        self.n_drawn = n_drawn(len(self.varying))
        self.gains = np.append(self.gains, np.zeros(len(self.binned.codes) - len(self.gains)))

    def _order_again(self) -> None:
        """Let trees to come have each category in the order of what the trees so far leave of its targets, too."""
        self._differentiate()
        is_categorical = self.problem.is_categorical
        rest = -self.derivatives[:, 0].astype(np.float64)
        columns = self.problem.columns[:, is_categorical]
        again = bins_of(columns, is_categorical[is_categorical], rest)
        self.bins = joined_bins(self.bins, again)
        pairs = zip(self.binned, Binned.create(again, columns), strict=True)
        self.binned = Binned(*(np.concatenate(pair) for pair in pairs))
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
            add_values(*work.places, self.binned.codes, nodes, of_leaves, is_drawn, self.margins)
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
        columns = self._columns()
        most, scratch = self.settings.most_leaves, np.empty((2, work.totals.shape[1]))
        nodes = np.empty((2 * most - 1, 2), np.int32)
        of_tree = self.binned, columns, self.derivatives, most, self.settings.least_rows
        n_nodes = grow_tree(work, len(drawn), *of_tree, nodes, scratch)
        splits = np.flatnonzero(nodes[:n_nodes, 0] >= 0)
        np.add.at(self.gains, nodes[splits, 0] >> COLUMN, work.gains[splits])
        values, rate = np.empty((most, len(self.start)), np.float32), self.settings.rate
        if self.problem.n_classes or self.is_square:
            longest = LONGEST if self.problem.n_classes else math.inf
            n_leaves = write_leaves(work.totals, nodes[:n_nodes], rate, longest, values)
        elif self.problem.has_log_link:
            n_leaves = write_steps_of_logarithms(work.totals, nodes[:n_nodes], rate, PRIOR_EVENTS, values)
        else:
            of_rows = self.margins, self.targets, self.problem.weights
            steps = rate * write_minimisers(*work.places, self.loss, nodes[:n_nodes], *of_rows)
            n_leaves, values = len(steps), steps[:, None].astype(np.float32)
        return nodes[:n_nodes].copy(), values[:n_leaves].copy(), is_drawn

    def _columns(self) -> np.ndarray:
        """Columns for the next tree: drawn at random, but for the best of many."""
        gains, n_best = self.gains[self.varying], 0
        if self.n_drawn < COLUMNS * len(self.varying):
            n_best = min(int(BEST * self.n_drawn), int(np.count_nonzero(gains)))
        order = np.argsort(-gains, kind="stable")
        best, others = self.varying[order[:n_best]], np.sort(self.varying[order[n_best:]])
        return np.sort(np.append(best, self.random.permutation(others)[: self.n_drawn - n_best]))

    def _differentiate(self) -> None:
        of_rows = self.margins, self.targets, self.problem.weights
        if self.problem.n_classes:
            write_derivatives_of_classes(*of_rows, self.derivatives)
        elif self.is_square:
            write_residuals(*of_rows, self.derivatives)
        else:
            write_derivatives(self.loss, *of_rows, self.steep, self.derivatives)

    def _trees(self, structures: list[np.ndarray], values: list[np.ndarray]) -> Trees:
        if not self.problem.n_classes:
            values = [of_leaves.astype(np.float64) * self.spread for of_leaves in values]
        start = self.start * self.spread + self.centre if not self.problem.n_classes else self.start
        if self.problem.has_log_link:
            start = start + balance_of(self.targets, self.problem.weights, self.margins)
        columns = np.arange(len(self.problem.is_categorical))
        again = columns[self.problem.is_categorical][: len(self.binned.codes) - len(columns)]
        return joined(self.bins, np.concatenate([columns, again]), structures, values, start, self.problem.n_classes)


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

"""Boosted trees: each is grown on the gradients and second derivatives at the predictions of the earlier ones.

Friedman: Greedy function approximation: a gradient boosting machine (Annals of Statistics 2001), with trees of
:mod:`tunefree.generations.gradient_trees`. Of many columns, those with large gains in earlier trees are drawn more
often (Amaratunga, Cabrera, Lee: Enriched random forests, Bioinformatics 2008).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np

from tunefree.compiled.functions import Call, Program, compiled
from tunefree.generations.derivatives import Rows, differentiating, minimising, write_leaves
from tunefree.generations.gradient_trees import RIDGE, Work, bound_leaves, draw, grow_tree
from tunefree.generations.kinds import Kind
from tunefree.generations.problem import USUAL, Problem, Settings, scaled_targets
from tunefree.generations.trees import LEAF, Trees, add_up, joined, walk_rows

TREES = 100
RATE, RATE_OF_MANY = 0.1, 0.2  # shrinkage rates; the second one is for more than MANY classes
MANY = 5
ROWS = 0.8  # part of the rows drawn for each tree
COLUMNS = 0.5  # part of the columns drawn for each tree, at most WIDEST * sqrt(columns)
COLUMNS_OF_FEW, FEW = 0.8, 10  # likewise, as long as these are no more than FEW
ALL = 4  # number of columns up to which all are drawn, to keep interactions of few columns
WIDEST = 4.0
BEST = 0.5  # part of the drawn columns with the largest gains in earlier trees, if fewer than COLUMNS are drawn
MOST_LEAVES, LEAST_RATE, MOST_TREES = 64.0, 0.25, 16.0  # bounds of the multiples that rows may choose
COARSE, COARSEST = 3.0, 0.3  # factor of the rate when settings are compared, and the largest rate then
JUDGED = 0.75  # part of the trees, divided by this factor, that suffices to compare settings
FEWER_OF_LARGE = 2.0**-0.5  # factor of the number of trees where each has twice the leaves
MOST_CELLS = 2**24  # cells in the histograms of a tree: 128 MiB
MOST_VALUES = 2**21  # leaves of all trees times outputs
LONGEST = 8.0  # longest Newton step of a leaf: longer steps would let rare classes diverge
MANY_ROWS = 4096  # rows that suffice for a mean
RATE_OF_LOGARITHMS = 0.05  # shrinkage rate with a logarithmic link
LONGEST_OF_LOGARITHMS = 2.0  # longest step, likewise
PRIOR_EVENTS = 20.0  # added events of a leaf with its present mean, likewise


class Sizes(NamedTuple):
    """Sizes of the trees of a problem, and their learning rate."""

    most_leaves: int
    least_rows: int  # of a leaf
    rate: float

    def times(self, settings: Settings) -> Sizes:
        """The sizes multiplied by settings."""
        leaves = max(round(settings.leaves * self.most_leaves), 2)
        return Sizes(leaves, max(round(settings.least * self.least_rows), 1), settings.rate * self.rate)


def sizes_of(n: int, n_classes: int) -> Sizes:
    """The sizes of trees on n rows; few rows get small trees."""
    leaves = 8 if n < 1000 else 16 if n < 8000 else 31
    return Sizes(leaves, 5 if n < 1000 else 20, RATE_OF_MANY if n_classes > MANY else RATE)


def sizes_of_logarithms(n: int, dispersion: float) -> Sizes:
    """The sizes of trees with a logarithmic link, by events, such as claims: a row counts as 1 / dispersion events."""
    per_row = min(1.0 / dispersion, 1.0)
    sizes = sizes_of(int(n * per_row), 0)
    least = max(int(min(sizes.least_rows / per_row, n / sizes.most_leaves)), sizes.least_rows)
    return Sizes(sizes.most_leaves, least, RATE_OF_LOGARITHMS)


def n_drawn(n_columns: int, multiple: float = 1.0) -> int:
    """The number of columns drawn for a tree; all if they are few.

    >>> [n_drawn(n) for n in (4, 8, 500)], [n_drawn(n, 2.0) for n in (8, 20, 500)]
    ([4, 6, 89], [8, 20, 178])
    """
    if n_columns <= ALL:
        return n_columns
    n = max(round(COLUMNS * n_columns), min(round(COLUMNS_OF_FEW * n_columns), FEW))
    return min(n_columns, round(multiple * min(n, int(WIDEST * math.sqrt(n_columns)))))


@compiled
def add_values(
    work: Work,
    codes: Annotated[np.ndarray, "uint8[columns, rows]"],
    values: Annotated[np.ndarray, "float64[leaves, outputs]"],
    margins: Annotated[np.ndarray, "float64[rows, outputs]"],
) -> None:
    """Add the values of the leaves that rows reach to their margins; a tree of one leaf is left out.

    Where the rows drawn for the tree lie is known, the others walk.
    """
    nodes, rows, n_nodes = work.nodes, work.rows, work.sizes[1]
    if n_nodes == 1:
        return
    for v in range(n_nodes):
        if nodes[v, 0] == LEAF:
            for p in range(work.first[v], work.last[v]):
                work.leaves[rows[p], 0] = nodes[v, 1]
    walk_rows(codes.T, rows[work.sizes[0] :], work.roots, nodes, work.sets, work.leaves)
    add_up(values, work.leaves, margins)


def balance_of(margins: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> float:
    """The constant added to logarithms of means such that the sum of these means equals the sum of the targets."""
    with np.errstate(over="ignore"):
        total, predicted = np.sum(weights * targets), np.sum(weights * np.exp(margins[:, 0]))
    return float(np.log(total / predicted)) if 0.0 < total < math.inf and 0.0 < predicted < math.inf else 0.0


def steepness(loss: Any, targets: np.ndarray) -> float:
    """The mean absolute slope of a loss at 0; 1 if all slopes are 0."""
    mean = float(np.mean([min(abs(loss.slope(y, 0.0)), 1e100) for y in targets[:MANY_ROWS].tolist()] or [0.0]))
    return mean or 1.0


class Boosting:
    """The state of boosting: codes of the rows, their margins, and the number of trees grown so far."""

    def __init__(self, problem: Problem, seed: int, settings: Settings = USUAL) -> None:
        self.problem, self.n_grown, self.start = problem, 0, problem.start()
        self.bins, codes, exclusive = problem.binned
        n, n_outputs, state = len(problem.columns), len(self.start), np.random.default_rng([seed, 1])
        sizes = sizes_of(n, problem.n_classes)
        self.centre, self.spread, targets, self.loss, dispersion = scaled_targets(problem)
        steep = 0.0 if self.loss is None else steepness(self.loss, targets)
        if problem.has_log_link:
            self.centre, self.spread, self.loss = math.log(self.spread), 1.0, problem.loss
            sizes, steep = sizes_of_logarithms(n, dispersion), dispersion
        most, least, rate = sizes.times(settings)
        self.rows = Rows(np.tile(self.start, (n, 1)), targets, problem.weights)
        varying = np.flatnonzero(codes.max(axis=1) > codes.min(axis=1)).astype(np.int32)
        n_columns = n_drawn(len(varying), settings.columns)
        n_best = int(BEST * n_columns) if n_columns < COLUMNS * len(varying) else 0
        self.work = work = Work.create(n, n_columns, n_outputs, most)
        self.values, gained = np.empty((most, n_outputs)), np.zeros(len(codes))  # gain of each column so far
        signs = np.zeros(len(codes), np.int8) if problem.signs is None else problem.signs
        random = state.integers(1, 2**63, 1).astype(np.uint64)
        columns, nodes = (self.bins.n_codes, self.bins.is_categorical, signs), np.empty((2, len(work.nodes), 2))
        self.program = Program(
            [
                differentiating(problem.n_classes, self.loss, steep, self.rows, work.gradients, work.curvatures),
                (draw, work, ROWS if n >= 2 * least else 1.0, varying, gained, n_best, random),
                (grow_tree, work, codes, *columns, exclusive, least, gained, random),
                self._leaves(rate),
                *([(bound_leaves, work, signs, *nodes, self.values)] if signs.any() else []),
                (add_values, work, codes, self.values, self.rows.margins),
            ]
        )

    def _leaves(self, rate: float) -> Call:
        if self.problem.has_log_link:
            return write_leaves, self.work.sums, rate, PRIOR_EVENTS, LONGEST_OF_LOGARITHMS, self.values
        if self.loss is not None:
            return minimising(self.work, self.loss, self.work.nodes, self.rows, rate, self.values[:, 0])
        longest = LONGEST if self.problem.n_classes else math.inf
        return write_leaves, self.work.sums, rate, RIDGE, longest, self.values

    def grow(self, until: float) -> Trees:
        """Grow the next trees, up to a multiple of TREES in all, and return them."""
        nodes, sets, leaves = [], [], [np.empty((0, len(self.start)))]
        numbers = range(self.n_grown, round(TREES * until))
        for _ in numbers if len(self.work.columns) else ():
            self.program.run()
            n_nodes = int(self.work.sizes[1])
            if n_nodes > 1:
                nodes.append(self.work.nodes[:n_nodes].copy())
                sets.append(self.work.sets.copy())
                leaves.append(self.values[: (n_nodes + 1) // 2].copy())
        self.n_grown, start, values = numbers.stop, self.start, np.concatenate(leaves)
        if self.problem.n_classes:
            return joined(self.bins, nodes, sets, values.astype(np.float32), start, self.problem.n_classes)
        start = start * self.spread + self.centre
        start = start + (balance_of(*self.rows) if self.problem.has_log_link else 0.0)
        return joined(self.bins, nodes, sets, values * self.spread, start, 0)


def work_of(settings: Settings, problem: Problem, n: int) -> float:
    """The approximate number of additions for growing trees on n rows of a problem."""
    sizes = sizes_of(n, problem.n_classes).times(settings)
    n_codes, n_columns = problem.binned.bins.n_codes, n_drawn(len(problem.binned.codes), settings.columns)
    leaves = max(min(sizes.most_leaves, n / sizes.least_rows), 2.0)
    n_filled = n_columns * problem.binned.exclusive.n_filled / max(len(problem.binned.codes), 1)
    additions = n * (8.0 + n_filled * math.log2(leaves) / 4.0) + 8.0 * leaves * n_columns * float(n_codes.mean())
    return TREES * settings.trees * problem.n_outputs * additions


def most_trees(settings: Settings, problem: Problem) -> float:
    """The largest number of trees, as a multiple of the usual number."""
    leaves = sizes_of(len(problem.targets), problem.n_classes).times(settings).most_leaves
    return max(min(MOST_TREES, MOST_VALUES / (TREES * leaves * problem.n_outputs)), 1.0)


def neighbours_of(settings: Settings, problem: Problem) -> list[Settings]:
    """Neighbouring settings that later rows may choose: columns, leaves, and for numbers also the rate."""
    n, n_columns, n_outputs = len(problem.targets), len(problem.binned.codes), problem.n_outputs
    neighbours = []
    if settings.leaves < MOST_LEAVES and sizes_of(n, problem.n_classes).times(settings).most_leaves < n:
        trees = max(settings.trees * FEWER_OF_LARGE, settings.fewest_trees)
        neighbours.append(settings._replace(leaves=2.0 * settings.leaves, trees=trees))
    if settings.leaves > 1.0:  # the larger rate of trials favours small trees, so leaves stay at least as at first
        neighbours.append(settings._replace(leaves=0.5 * settings.leaves))
    if n_drawn(n_columns, 2.0) > n_drawn(n_columns):
        neighbours.append(settings._replace(columns=2.0 if settings.columns == 1.0 else 1.0))
    if not problem.n_classes and settings.rate > LEAST_RATE:
        neighbours.append(settings._replace(rate=0.5 * settings.rate, trees=min(2.0 * settings.trees, MOST_TREES)))

    def has_room(settings: Settings) -> bool:
        cells = sizes_of(n, problem.n_classes).times(settings).most_leaves * n_drawn(n_columns, settings.columns) * 256
        return cells * n_outputs <= MOST_CELLS and settings.trees <= most_trees(settings, problem)

    return [neighbour for neighbour in neighbours if has_room(neighbour)]


def grow_boosted(problem: Problem, seed: int, settings: Settings = USUAL) -> Trees:
    """Boosted trees of a problem."""
    return Boosting(problem, seed, settings).grow(min(settings.trees, most_trees(settings, problem)))


def coarseness(problem: Problem) -> float:
    """The factor by which the learning rate is larger where settings are compared."""
    return min(COARSE, COARSEST / sizes_of(len(problem.targets), problem.n_classes).rate)


def begin_trial(problem: Problem, seed: int, settings: Settings) -> Callable[[float], Trees]:
    """A function that grows trees at a larger rate, which suffice to compare settings."""
    return Boosting(problem, seed, settings._replace(rate=coarseness(problem) * settings.rate)).grow


KIND = Kind(
    grow_boosted,
    0.03,  # three times and a third of this wealth do equally well on eight tables
    begin_trial,
    lambda problem: JUDGED / coarseness(problem),
    neighbours_of,
    work_of,
    most_trees,
    is_monotone=True,
)

"""Trees as plain arrays, the paths of rows through them, and the contributions of columns along the paths.

The value of a node is the mean of the values of the leaves below it over some rows, the reference. The value of a row
is the value of the root plus the change of the value at each test on the path to a leaf. Each change is a contribution
of the tested column.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from tunefree.compiled.functions import Call, compiled
from tunefree.core.errors import ModelError
from tunefree.core.schema import Limits
from tunefree.generations.bins import Bins, codes_of

LEAF = -1  # instead of a test
COLUMN, CODE, CODES = 9, 1, 255  # a test is column << COLUMN | code << CODE | (1 where missing goes left)
SET = CODES << CODE  # instead of a code: the codes of a set go right
WORDS = 4  # of 64 bits, with one bit per code
Roots = Annotated[np.ndarray, "int32[trees]", Limits(0, "nodes")]


class Trees(NamedTuple):
    """The trees of one generation."""

    bins: Bins  # of the columns
    roots: Roots  # the first node of each tree
    # For each node a test and the left child (the right child is next to it), or LEAF and the leaf number.
    nodes: Annotated[np.ndarray, "int32[nodes, 2]"]
    sets: Annotated[np.ndarray, "uint64[sets, 4]"]  # masks of codes that go right, indexed by half the left child
    # Parts of the margins (boosted), or means (averaged); in double precision for numbers.
    values: Annotated[np.ndarray, "float32|float64[leaves, outputs]"]
    start: Annotated[np.ndarray, "float64[outputs]"]  # the margins to which values are added
    is_averaged: Annotated[np.ndarray, "bool[]"]  # predictions are means of values over trees
    n_classes: Annotated[np.ndarray, "int64[]"]  # 0 for numbers
    # Lower bound of the shares of classes, or of means whose logarithm is predicted; 0 for other numbers.
    least: Annotated[np.ndarray, "float64[]"]

    @property
    def n_leaves(self) -> int:
        """The number of leaves of all trees."""
        return len(self.values)

    @property
    def n_outputs(self) -> int:
        """The number of margins of a row: one for numbers and for two classes."""
        return self.values.shape[1]

    @property
    def sources(self) -> np.ndarray:
        """The indices (c,) of the columns that the model takes."""
        return np.arange(len(self.bins.is_categorical))

    def apply(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The leaves (n, trees) int32 that rows (n, c) reach, and their margins (1, n, K).

        Margins are log-odds, log-probabilities, or numbers. NaN is missing.
        """
        codes = codes_of(self.bins, columns)
        leaves = np.empty((len(codes), len(self.roots)), np.int32)
        sums = np.tile(self.start, (len(codes), 1))
        for compiled_function, *arguments in calls_on(self, codes, leaves, sums):
            compiled_function(*arguments)
        means = sums / max(len(self.roots), 1)
        return leaves, (margins_of_means(self, means, self.least) if self.is_averaged else sums)[None]

    def check(self, n_columns: int) -> None:
        """Raise a ModelError if the path of a row with so many columns could leave the arrays, or never end.

        The declarations of roots and of the points of bins already limit these.
        """
        trees, bins = self, self.bins
        test, target, n_classes = trees.nodes[:, 0], trees.nodes[:, -1], int(trees.n_classes)
        inner = test >= 0
        has_set = inner & (test & SET == SET)
        is_sound = (
            len(bins.starts) == n_columns + 1 == len(bins.is_categorical) + 1
            and (test[inner] >> COLUMN < n_columns).all()
            and (target[inner] > np.flatnonzero(inner)).all()
            and (target[inner] + 1 < len(test)).all()
            and ((target[~inner] >= 0) & (target[~inner] < len(trees.values))).all()
            and (target[has_set] >> 1 < len(trees.sets)).all()
            and trees.values.shape[1] == len(trees.start) == (n_classes if n_classes > 2 else 1)
            and (trees.least > 0.0 or not (trees.is_averaged and n_classes))
        )
        if not is_sound:
            raise ModelError("the trees in the file are damaged; train the model anew")


class PackedTrees(NamedTuple):
    """Trees in the form of files: for each node only the values that do not follow from earlier nodes."""

    bins: Bins
    roots: Roots
    is_leaf: Annotated[np.ndarray, "uint8[leaf_bits]"]  # eight nodes per byte
    columns: Annotated[np.ndarray, "int32[tests]"]  # of the tests, one for each inner node
    codes: Annotated[np.ndarray, "uint8[tests]"]
    goes_left: Annotated[np.ndarray, "uint8[test_bits]"]  # for missing values; eight tests per byte
    shifts: Annotated[np.ndarray, "int32[nodes]"]  # children and leaf numbers minus `expected_targets`
    sets: Annotated[np.ndarray, "uint64[sets, 4]"]
    values: Annotated[np.ndarray, "float32|float64[leaves, outputs]"]
    start: Annotated[np.ndarray, "float64[outputs]"]
    is_averaged: Annotated[np.ndarray, "bool[]"]
    n_classes: Annotated[np.ndarray, "int64[]"]
    least: Annotated[np.ndarray, "float64[]"]

    @classmethod
    def of(cls, trees: Trees) -> PackedTrees:
        """Trees in the packed form of files."""
        test, is_leaf = trees.nodes[:, 0], trees.nodes[:, 0] < 0
        tests = test[~is_leaf]
        codes, goes_left = (tests >> CODE & CODES).astype(np.uint8), np.packbits(tests & 1)
        shifts = trees.nodes[:, 1] - expected_targets(is_leaf, trees.roots)
        packed_nodes = np.packbits(is_leaf), tests >> COLUMN, codes, goes_left, shifts
        return cls(trees.bins, trees.roots, *packed_nodes, *trees[3:])

    def trees(self) -> Trees:
        """The trees; arrays that do not fit together raise a ValueError or an IndexError."""
        is_leaf = np.unpackbits(self.is_leaf, count=len(self.shifts)).astype(bool)
        goes_left = np.unpackbits(self.goes_left, count=len(self.columns))
        nodes = np.full((len(self.shifts), 2), LEAF, np.int32)
        nodes[~is_leaf, 0] = self.columns << COLUMN | self.codes.astype(np.int32) << CODE | goes_left
        nodes[:, 1] = expected_targets(is_leaf, self.roots) + self.shifts
        return Trees(self.bins, self.roots, nodes, *self[7:])


def expected_targets(is_leaf: np.ndarray, roots: np.ndarray) -> np.ndarray:
    """The left child (n,) of each node if nodes are split in their order; for leaves, the leaf number.

    >>> expected_targets(np.array([False, True, False, True, True, True]), np.array([0, 5])).tolist()
    [1, 0, 3, 1, 2, 3]
    """
    n_leaves, n_tests = np.cumsum(is_leaf), np.cumsum(~is_leaf)
    trees = np.repeat(roots, np.diff(roots, append=len(is_leaf)))
    before = n_tests[trees] - ~is_leaf[trees]  # tests in earlier trees
    return np.where(is_leaf, n_leaves - 1, trees + 1 + 2 * (n_tests - 1 - before)).astype(np.int32)


def is_in(sets, place, code):
    """1 if a code is in a set, else 0."""
    return np.uint32((sets[place, code >> np.uint8(6)] >> np.uint64(code & np.uint8(63))) & np.uint64(1))


def child_of(nodes, sets, node, test, code):
    """The child of a node to which a code leads.

    There is no branch on the code, which processors would guess wrongly. That on the kind of test they guess. Where
    missing goes left, codes and bound are one more, in one byte: MISSING becomes 0, which is above no bound.
    """
    left, more = np.uint32(nodes[node, 1]), test & np.uint32(1)
    if test & SET == SET:
        return left + is_in(sets, left >> np.uint32(1), code)
    bound = ((test + np.uint32(1)) >> np.uint32(CODE)) & np.uint32(CODES)
    return left + np.uint32(((np.uint32(code) + more) & np.uint32(CODES)) > bound)


def step(nodes, sets, node, codes, i):
    """The next node of row i; a leaf keeps the row."""
    test = nodes[node, 0]
    inner = np.uint32(max(test, np.int32(0)))
    child = child_of(nodes, sets, node, inner, codes[i, inner >> COLUMN])
    return child if test >= 0 else node


def walk_together(codes, order, roots, nodes, sets, leaves, t, p, rows, trees):
    """Eight walks at once, since each waits for memory: of eight rows of an order, or through eight trees.

    They begin at place p of the order, and at tree t. ``rows`` and ``trees`` are 1 and 0, or 0 and 1: what the next
    walk has more.
    """
    i, j, k, m = order[p], order[p + rows], order[p + 2 * rows], order[p + 3 * rows]
    q, r, s, u = order[p + 4 * rows], order[p + 5 * rows], order[p + 6 * rows], order[p + 7 * rows]
    a, b = np.uint32(roots[t]), np.uint32(roots[t + trees])
    c, d = np.uint32(roots[t + 2 * trees]), np.uint32(roots[t + 3 * trees])
    e, f = np.uint32(roots[t + 4 * trees]), np.uint32(roots[t + 5 * trees])
    g, h = np.uint32(roots[t + 6 * trees]), np.uint32(roots[t + 7 * trees])
    while (
        nodes[a, 0] & nodes[b, 0] & nodes[c, 0] & nodes[d, 0] & nodes[e, 0] & nodes[f, 0] & nodes[g, 0] & nodes[h, 0]
    ) >= 0:  # until all are leaves
        a, b = step(nodes, sets, a, codes, i), step(nodes, sets, b, codes, j)
        c, d = step(nodes, sets, c, codes, k), step(nodes, sets, d, codes, m)
        e, f = step(nodes, sets, e, codes, q), step(nodes, sets, f, codes, r)
        g, h = step(nodes, sets, g, codes, s), step(nodes, sets, h, codes, u)
    leaves[i, t], leaves[j, t + trees] = nodes[a, 1], nodes[b, 1]
    leaves[k, t + 2 * trees], leaves[m, t + 3 * trees] = nodes[c, 1], nodes[d, 1]
    leaves[q, t + 4 * trees], leaves[r, t + 5 * trees] = nodes[e, 1], nodes[f, 1]
    leaves[s, t + 6 * trees], leaves[u, t + 7 * trees] = nodes[g, 1], nodes[h, 1]


def walk_rows(codes, order, roots, nodes, sets, leaves):
    """Walk with some rows tree after tree, so that a tree stays in the cache, and write down the leaves.

    Rows beyond the last eight are walked by themselves, through eight trees at a time.
    """
    n, n_trees = len(order), len(roots)
    for t in range(n_trees):
        for p in range(0, n - n % 8, 8):
            walk_together(codes, order, roots, nodes, sets, leaves, t, p, 1, 0)
    for p in range(n - n % 8, n):
        for t in range(0, n_trees - n_trees % 8, 8):
            walk_together(codes, order, roots, nodes, sets, leaves, t, p, 0, 1)
        for t in range(n_trees - n_trees % 8, n_trees):
            v = np.uint32(roots[t])
            while nodes[v, 0] >= 0:
                v = step(nodes, sets, v, codes, order[p])
            leaves[order[p], t] = nodes[v, 1]


@compiled
def walk(
    codes: Annotated[np.ndarray, "uint8[rows, bins]"],
    order: Annotated[np.ndarray, "uint32[rows]"],
    roots: Annotated[np.ndarray, "int32[trees]"],
    nodes: Annotated[np.ndarray, "int32[nodes, 2]"],
    sets: Annotated[np.ndarray, "uint64[sets, 4]"],
    leaves: Annotated[np.ndarray, "int32[rows, trees]"],
) -> None:
    """Write the leaves that rows reach, which are taken in an order."""
    walk_rows(codes, order, roots, nodes, sets, leaves)


def add_up(values, leaves, sums):
    """Add the values of the leaves that rows reach, tree after tree."""
    for i in range(len(leaves)):
        for t in range(leaves.shape[1]):
            leaf = np.uint32(leaves[i, t])
            for k in range(sums.shape[1]):
                sums[i, k] += values[leaf, k]


@compiled
def add_singles(
    values: Annotated[np.ndarray, "float32[leaves, outputs]"],
    leaves: Annotated[np.ndarray, "int32[rows, trees]"],
    sums: Annotated[np.ndarray, "float64[rows, outputs]"],
) -> None:
    """Add the values, in single precision, of the leaves that rows reach."""
    add_up(values, leaves, sums)


@compiled
def add_doubles(
    values: Annotated[np.ndarray, "float64[leaves, outputs]"],
    leaves: Annotated[np.ndarray, "int32[rows, trees]"],
    sums: Annotated[np.ndarray, "float64[rows, outputs]"],
) -> None:
    """Add the values, in double precision, of the leaves that rows reach."""
    add_up(values, leaves, sums)


def calls_on(trees: Trees, codes: np.ndarray, leaves: np.ndarray, sums: np.ndarray) -> list[Call]:
    """The calls that write the leaves (n, trees) that rows reach by their codes, and add values to sums (n, K)."""
    order = np.arange(len(codes), dtype=np.uint32)
    add = add_singles if trees.values.dtype == np.float32 else add_doubles
    return [(walk, codes, order, trees.roots, trees.nodes, trees.sets, leaves), (add, trees.values, leaves, sums)]


def margins_of_means(trees: Trees, means: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Margins (.., K) of means over trees like these; each mean has a lower bound."""
    if trees.n_classes == 0:
        return np.log(np.maximum(means, least)) if trees.least > 0.0 else means
    if means.shape[-1] == 1:
        shares = np.minimum(np.maximum(means, least), 1.0 - least)
        return np.log(shares) - np.log1p(-shares)
    shares = np.maximum(means, least)
    return np.log(shares / shares.sum(axis=-1, keepdims=True))


def joined(
    bins: Bins,
    grown: list[np.ndarray],
    sets: list[np.ndarray],
    values: np.ndarray,
    start: np.ndarray,
    n_classes: int,
    is_averaged: bool = False,
    least: float = 0.0,
) -> Trees:
    """Concatenate trees whose nodes and leaves are numbered tree by tree.

    ``grown`` has the nodes of each tree, and ``sets`` its sets, indexed by half the left child; it is empty if no tree
    has sets. ``values`` are the values of the leaves of all trees.
    """
    lengths = [len(nodes) for nodes in grown]
    starts, nodes = np.cumsum([0, *lengths]), np.concatenate([np.empty((0, 2), np.int32), *grown])
    n_before = np.repeat(starts[:-1], lengths)  # nodes in earlier trees; half of them, rounded up, are leaves
    trees = np.repeat(np.arange(len(lengths)), lengths)
    is_leaf, set_indices = nodes[:, 0] == LEAF, nodes[:, 1] >> 1
    nodes[:, 1] += np.where(is_leaf, (n_before + trees) // 2, n_before).astype(np.int32)
    all_sets = np.zeros((0, WORDS), np.uint64)
    has_set = ~is_leaf & (nodes[:, 0] & SET == SET)
    if has_set.any():
        all_sets = np.zeros((len(nodes) // 2 + 1, WORDS), np.uint64)
        all_sets[nodes[has_set, 1] >> 1] = np.stack(sets)[trees[has_set], set_indices[has_set]]
    all_sets = all_sets if all_sets.any() else all_sets[:0]
    scalars = np.array(is_averaged), np.array(n_classes, np.int64), np.array(least, np.float64)
    roots = starts[:-1].astype(np.int32)
    return Trees(bins, roots, nodes, all_sets, values, np.asarray(start, np.float64), *scalars)


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
    """Add the changes along the paths of rows (n, c) to ``terms`` (n, t, k), by the term (c,) of each column."""
    _add_paths(codes_of(trees.bins, columns), trees.roots, trees.nodes, trees.sets, means, term_of, terms)

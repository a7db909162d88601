"""The trees of all generations as one traversal, in which all trees descend one level at a time.

Each distinct test is evaluated once per row, as a column of ones and zeros. A node stores the column of its test, and
its children are adjacent, so that the next node is the left child plus the result of the test. Nodes are numbered level
by level, so the left child of a node follows from the number of preceding tests. A file thus stores a bit for each
node, which marks leaves, and the column of each inner node, in two bytes if possible.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.export.columns import States
from tunefree.export.graph import BYTE, Graph
from tunefree.generations.bins import codes_of
from tunefree.generations.leaves import FrozenLeaves
from tunefree.generations.trees import CODE, CODES, COLUMN, SET, Trees

FEW_STATES = 256  # for categories with more states, the codes of each generation are looked up first
FEWER = 0.8  # finished trees leave the traversal when at most this share of the trees continues


class Tests:
    """The distinct tests of all trees, numbered in order of first use; test 0, of leaves, has the result 0."""

    def __init__(self, states: States) -> None:
        self.states = states
        self.numbers: dict[Any, int] = {}  # by (column, least number with the result 1)
        self.missing: dict[Any, int] = {}  # by (column, result if present, result if missing)
        # By category (and generation, if it has many states): the tests by their results for all states or codes.
        self.by_state: dict[tuple[int, int | None], dict[bytes, int]] = {}
        self.codes: dict[tuple[int, int | None], np.ndarray] = {}  # codes of the states, with the same keys
        self.n_tests = 1
        self._categories = {column.source: k for k, column in enumerate(states.categories)}
        self._numbers = {source: j for j, source in enumerate(states.sources.tolist())}

    def numbers_of(self, number: int, generation: Any, codes: np.ndarray) -> np.ndarray:
        """The test numbers of all nodes of a generation with these codes (states, c)."""
        trees = generation.model
        tests, inner = np.zeros(len(trees.nodes), np.int64), np.flatnonzero(trees.nodes[:, 0] >= 0)
        test, left = trees.nodes[inner].T
        pairs = np.stack([test, np.where(test & SET == SET, left >> 1, -1)], axis=1)
        different, inverse = np.unique(pairs, axis=0, return_inverse=True)
        keys = [int(key) for key in generation.keys]
        numbers = [self._number_of(number, trees, keys, codes, int(test), int(set_id)) for test, set_id in different]
        tests[inner] = np.array(numbers, np.int64)[inverse.reshape(-1)]
        return tests

    def _number_of(self, number: int, trees: Trees, keys: list[int], codes: np.ndarray, test: int, set_id: int) -> int:
        column, key = test >> COLUMN, keys[test >> COLUMN]
        if key > 0:
            points = trees.bins.points[trees.bins.starts[column] : trees.bins.starts[column + 1]]
            bound = (test >> CODE) & CODES
            return self._number_for(self.numbers, (key - 1, float(points[bound]) if bound < len(points) else np.inf))
        source, state_codes = -1 - key, codes[:, column]
        if source in self._numbers:
            present, missing = goes_right(trees, state_codes[:2], test, set_id).tolist()
            return self._number_for(self.missing, (self._numbers[source], present, missing))
        category = self._categories[source]
        n_states = self.states.categories[category].n_states
        lookup = (category, number if n_states > FEW_STATES else None)
        self.codes[lookup] = state_codes[:n_states]
        tested_codes = np.arange(FEW_STATES, dtype=np.uint8) if n_states > FEW_STATES else state_codes[:n_states]
        answers = goes_right(trees, tested_codes, test, set_id)
        return self._number_for(self.by_state.setdefault(lookup, {}), answers.tobytes())

    def _number_for(self, tests: dict[Any, int], key: Any) -> int:
        if key not in tests:
            tests[key], self.n_tests = self.n_tests, self.n_tests + 1
        return tests[key]

    def add(self, graph: Graph) -> tuple[str, np.ndarray]:
        """The tensor (N, columns) of results, and the column index (tests,) of each test."""
        states, columns, width, tables = self.states, np.zeros(self.n_tests, np.int64), 1, []
        answers = [self._zeros(graph)]
        if self.numbers:
            features, least = (np.array(part) for part in zip(*self.numbers, strict=True))
            numbers = graph.add("Gather", states.numbers, features.astype(np.int64), axis=1)
            answers.append(graph.add("GreaterOrEqual", numbers, least.astype(np.float64)[None]))
            columns[list(self.numbers.values())] = width + np.arange(len(self.numbers))
            width += len(self.numbers)
        for lookup, tests in self.by_state.items():
            columns[list(tests.values())] = width + np.arange(len(tests))
            width += -(-len(tests) // BYTE) * BYTE
            tables.append(self._looked_up(graph, lookup))
        if tables:
            size = np.array([0, width - 1 - len(self.numbers)])
            answers.append(graph.add("Reshape", graph.joined(tables, axis=2), size))
        all_answers = [graph.cast(graph.joined(answers), np.int32)]
        if self.missing:
            features, present, missing = (np.array(part) for part in zip(*self.missing, strict=True))
            are_missing = graph.add("Gather", states.missing, features, axis=1)
            choices = missing[None].astype(np.int32), present[None].astype(np.int32)
            all_answers.append(graph.add("Where", are_missing, *choices))
            columns[list(self.missing.values())] = width + np.arange(len(self.missing))
        return graph.joined(all_answers), columns

    def _zeros(self, graph: Graph) -> str:
        if self.states.numbers is None:
            return graph.add("Less", self.states.categories[0].state, np.int64(0))
        return graph.add("Greater", graph.sliced(self.states.numbers, 0, 1), np.float64(np.inf))

    def _looked_up(self, graph: Graph, lookup: tuple[int, int | None]) -> str:
        """The results (N, 1, tests) for a category, stored as bits."""
        tests, index = self.by_state[lookup], self.states.categories[lookup[0]].state
        if lookup[1] is not None:
            index = graph.cast(graph.add("Gather", self.codes[lookup], index), np.int32)
        answers = np.stack([np.frombuffer(answers, bool) for answers in tests], axis=1)
        return graph.add("Gather", graph.bits(answers), index)


def goes_right(trees: Trees, codes: np.ndarray, test: int, set_id: int) -> np.ndarray:
    """Whether a test sends each code to the right child; see :func:`tunefree.generations.trees.child_of`."""
    codes = codes.astype(np.int64)
    if test & SET == SET:
        bits = (trees.sets[set_id][codes >> 6] >> (codes & 63).astype(np.uint64)) & np.uint64(1)
        return np.asarray(bits > 0)
    bound = ((test + 1) >> CODE) & CODES
    return ((codes + (test & 1)) & CODES) > bound


class Forest:
    """The trees of generations, given the values (states, c) of their columns; averaged generations are last.

    In the order of the file, ``order`` (trees,) are generations of trees, and ``leaves`` (leaves,) leaf numbers.
    """

    def __init__(self, states: States, generations: list[Any], columns: list[np.ndarray]) -> None:
        self.generations = generations
        self.models: list[Trees] = [generation.model for generation in generations]
        self.tests = Tests(states)
        codes = [codes_of(model.bins, values) for model, values in zip(self.models, columns, strict=True)]
        tests = [self.tests.numbers_of(g, *pair) for g, pair in enumerate(zip(generations, codes, strict=True))]
        starts = np.cumsum([0, *(len(model.nodes) for model in self.models)])
        first_leaves = np.cumsum([0, *(model.n_leaves for model in self.models)])
        targets = []
        for model, start, leaf in zip(self.models, starts, first_leaves, strict=False):
            targets.append(model.nodes[:, 1].astype(np.int64) + np.where(model.nodes[:, 0] < 0, leaf, start))
        self._target, test = np.concatenate(targets), np.concatenate(tests)
        self._is_leaf = test == 0
        roots = np.concatenate([model.roots + start for model, start in zip(self.models, starts, strict=False)])
        depths = self._levels(roots)[1]
        order = np.argsort(-depths, kind="stable")
        nodes = np.concatenate(self._levels(roots[order])[0])
        n_trees = [len(model.roots) for model in self.models]
        self.depths, self.order = depths[order], np.repeat(np.arange(len(self.models)), n_trees)[order]
        self.node_tests, self.leaves = test[nodes], self._target[nodes[self._is_leaf[nodes]]]

    def _levels(self, roots: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """The nodes of each level, and the depths (trees,)."""
        levels, depths, trees = [roots], np.zeros(len(roots), np.int64), np.arange(len(roots))
        while len(levels[-1]):
            depths[trees] = len(levels) - 1
            is_inner = ~self._is_leaf[levels[-1]]
            left, trees = self._target[levels[-1][is_inner]], np.repeat(trees[is_inner], 2)
            levels.append(np.stack([left, left + 1], axis=1).reshape(-1))
        return levels, depths

    def walk(self, graph: Graph) -> str:
        """The tensor (N, trees) of the leaves of rows, numbered in the order of the file."""
        answers, columns = self.tests.add(graph)
        n_nodes, n_trees, has_test = len(self.node_tests), len(self.order), self.node_tests > 0
        column_of = np.append(columns[self.node_tests[has_test]], 0)
        small = column_of.astype(np.uint16 if column_of.max() < 2**16 else np.int32)
        is_test = graph.flat_bits(has_test)
        tests_before = graph.add("CumSum", graph.cast(is_test, np.int32), np.int32(0))
        test_index = graph.add("Sub", tests_before, np.int32(1))
        column_of_test = graph.add("Gather", graph.cast(graph.constant(small), np.int32), test_index)
        node_columns = graph.add("Where", is_test, column_of_test, np.int32(0))
        left = graph.add("Add", graph.add("Mul", test_index, np.int32(2)), np.int32(n_trees))
        node_itself = graph.add("Range", np.int32(0), np.int32(n_nodes), np.int32(1))
        next_left = graph.add("Where", is_test, left, node_itself)
        node = graph.add("Add", np.arange(n_trees, dtype=np.int32)[None], graph.sliced(answers, 0, 1))
        finished, n_walking = list[str](), n_trees
        for depth in range(int(self.depths.max(initial=0))):
            n_deeper = int(np.count_nonzero(self.depths > depth))
            if n_deeper <= FEWER * n_walking:
                finished.insert(0, graph.sliced(node, n_deeper, n_walking))
                node, n_walking = graph.sliced(node, 0, n_deeper), n_deeper
            answer = graph.add("GatherElements", answers, graph.add("Gather", node_columns, node), axis=1)
            node = graph.add("Add", graph.add("Gather", next_left, node), answer)
        reached = graph.joined([node, *finished])
        return graph.add("Sub", reached, graph.add("Gather", tests_before, reached))

    def margins(self, graph: Graph) -> list[str]:
        """Predictions (N, generations, K) of the trees, first with the grown leaves, then with each correction."""
        reached = self.walk(graph)
        numbers = np.arange(len(self.models), dtype=np.int32)
        membership = graph.cast(graph.add("Equal", self.order[None].astype(np.int32), numbers[:, None]), np.float64)
        grown = self._grown(graph, self._summed(graph, reached, membership, self._values()))
        corrections = range(max(len(generation.living) for generation in self.generations))
        sums = [self._summed(graph, reached, membership, self._corrections(version)) for version in corrections]
        return [grown, *(graph.add("Add", grown, correction) for correction in sums)]

    def _summed(
        self, graph: Graph, reached: str, membership: str, parts: Iterator[tuple[np.ndarray, float, np.ndarray]]
    ) -> str:
        """Sums (N, generations, K) over trees of values (leaves, K) times a scale, and constants (K,).

        ``membership``: tensor (generations, trees), 1 if a tree belongs to a generation.
        ``parts``: values, scale and constants of each generation.
        """
        values, scales, constants = zip(*parts, strict=True)
        filled = graph.packed(np.concatenate(values)[self.leaves])
        gathered = graph.cast(graph.add("Gather", filled, reached), np.float64)
        scaled = graph.add("Mul", graph.add("MatMul", membership, gathered), np.array(scales)[:, None])
        return graph.add("Add", scaled, np.stack(constants)[None])

    def _values(self) -> Iterator[tuple[np.ndarray, float, np.ndarray]]:
        """Values of leaves in single precision, their scale, and the constants of each generation."""
        for model in self.models:
            n_trees = max(len(model.roots), 1)
            is_double = model.values.dtype == np.float64
            centre = model.values.mean(axis=0) if is_double and model.n_leaves else np.zeros(model.n_outputs)
            deviations = model.values - centre
            scale = float(np.abs(deviations).max(initial=0.0)) if is_double else 1.0
            values, factor = deviations / (scale or 1.0), 1.0 / n_trees if model.is_averaged else 1.0
            yield values.astype(np.float32), scale * factor, (model.start + n_trees * centre) * factor

    def _grown(self, graph: Graph, sums: str) -> str:
        """Predictions from sums of values; see :func:`tunefree.generations.trees.margins_of_means`."""
        averaged = [model for model in self.models if model.is_averaged]
        if not averaged or (averaged[0].n_classes == 0 and not averaged[0].least > 0.0):
            return sums
        n_boosted, n = len(self.models) - len(averaged), len(self.models)
        means, least = graph.sliced(sums, n_boosted, n), np.array([[float(model.least)] for model in averaged])[None]
        shares = graph.add("Max", means, least)
        if averaged[0].n_classes and averaged[0].n_outputs == 1:
            shares = graph.add("Min", shares, 1.0 - least)
            odds = graph.add("Div", shares, graph.add("Sub", np.float64(1.0), shares))
            margins = graph.add("Log", odds)
        elif averaged[0].n_classes:
            total = graph.add("ReduceSum", shares, np.array([2]), keepdims=1)
            margins = graph.add("Log", graph.add("Div", shares, total))
        else:
            margins = graph.add("Log", shares)
        return margins if n_boosted == 0 else graph.joined([graph.sliced(sums, 0, n_boosted), margins])

    def _corrections(self, version: int) -> Iterator[tuple[np.ndarray, float, np.ndarray]]:
        """Values, scale and constants of a learner on the leaves; 0 for generations without this learner."""
        for generation, model in zip(self.generations, self.models, strict=True):
            levels, scale, constant = np.zeros((model.n_leaves, model.n_outputs), np.float16), 0.0, 0.0
            if version < len(generation.living):
                part = generation.living[version]
                levels, scale = _levels(part, levels)
                objective = part.objective
                unit = objective.unit if objective.task == "regression" else 1.0
                scale, constant = scale * unit, objective.centre * unit if objective.task == "regression" else 0.0
            yield levels, scale, np.full(model.n_outputs, constant)


def _levels(part: Any, nothing: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights of leaves relative to the largest, in half precision if exact, and the largest weight."""
    levels, largest = (part.levels, part.largest) if isinstance(part, FrozenLeaves) else part.relative_weights()
    if not len(levels):
        return nothing, 0.0
    halves = levels.astype(np.float16)
    return (halves if (halves == levels).all() else levels.astype(np.float32)), largest


def check_generations(generations: list[Any], n_outputs: int) -> None:
    """Raise a ModelError if a generation lacks a class."""
    for generation in generations:
        if generation.n_late or generation.model.n_outputs != n_outputs:
            problem = f"a class came after a generation of {generation.rows:,} rows was grown, which is not exported"
            raise ModelError(f"{problem}; train with rows of all classes from the start")

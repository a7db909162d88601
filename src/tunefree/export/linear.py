"""Linear members and linear generations as a single matrix product of all features.

Their predictions are sums of a constant, weighted numbers of a view, and a term for each category. Terms and constant
are differences of predictions of the members for rows that cover all states.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core.numbers import CEILING, MOST, WIDEST
from tunefree.core.rows import Block, n_rows
from tunefree.export.columns import States
from tunefree.export.graph import Graph
from tunefree.generations.linear import FARTHEST, Linear, design

NO_COLUMN = -1  # instead of the index of a column of codes


class Sums:
    """Predictions (N, width) that are sums of terms.

    Each prediction has a ``constant``, ``weights`` of features, which are tensors (N, f), terms ``by_state`` of each
    category, and terms ``if_missing`` of the numbers. They are 0 until they are set.
    """

    def __init__(self, states: States, width: int) -> None:
        self.states, self.constant = states, np.zeros(width)
        self.weights = dict[str, np.ndarray]()  # by feature
        self.by_state = [np.zeros((column.n_states, width)) for column in states.categories]
        self.if_missing = np.zeros((states.n_numbers, width))

    def add(self, feature: str, weights: np.ndarray, span: slice) -> None:
        """Add a term to a slice of the predictions: features (N, f) times weights (f, slice)."""
        self.weights.setdefault(feature, np.zeros((len(weights), len(self.constant))))[:, span] = weights

    def tensor(self, graph: Graph) -> str:
        """The predictions."""
        sums: Any = self.constant[None]
        if self.weights:
            matrix = np.concatenate([*self.weights.values()])
            sums = graph.add("Add", graph.add("MatMul", graph.joined([*self.weights]), matrix), sums)
        if self.if_missing.any() and self.states.missing is not None:
            missing = graph.cast(self.states.missing, np.float64)
            sums = graph.add("Add", graph.add("MatMul", missing, self.if_missing), sums)
        if self.states.categories:
            starts = np.cumsum([0, *map(len, self.by_state)])[:-1]
            indices = graph.add("Add", graph.joined([column.state for column in self.states.categories]), starts[None])
            gathered = graph.add("Gather", stored(graph, np.concatenate(self.by_state)), indices)
            sums = graph.add("Add", graph.add("ReduceSum", gathered, np.array([1]), keepdims=0), sums)
        return str(sums)


def stored(graph: Graph, array: np.ndarray) -> str:
    """An array in double precision, stored in single precision relative to its largest number."""
    scale = float(np.abs(array).max(initial=0.0)) or 1.0
    small = graph.cast(graph.constant((array / scale).astype(np.float32)), np.float64)
    return graph.add("Mul", small, np.float64(scale))


def add_members(graph: Graph, sums: Sums, group: Any) -> None:
    """Add the predictions of linear members, member by member, with all outputs of each; they are the first."""
    states = sums.states
    present = group.present()

    def predictions(rows: Block) -> np.ndarray:
        return np.asarray(present.predict(rows).swapaxes(0, 1).reshape(n_rows(rows), -1))

    constant = predictions(states.only(NO_COLUMN, 1))[0]
    span = slice(0, len(constant))
    sums.constant[span] = constant
    for terms, column in zip(sums.by_state, states.categories, strict=True):
        terms[:, span] = predictions(states.only(column.source, column.n_states)) - constant
    for terms, source in zip(sums.if_missing, states.sources.tolist(), strict=True):
        terms[span] = predictions(states.only(source, 2))[1] - constant
    if states.numbers is not None:
        for name in dict.fromkeys(member.setting.view for member in group.members):
            _add_view(graph, sums, present, name)


def _add_view(graph: Graph, sums: Sums, present: Any, name: str) -> None:
    """Add numbers transformed by a view, with the weights of the members with this view."""
    n, n_outputs, numbers = sums.states.n_numbers, present.group.n_outputs, sums.states.numbers
    origin, view = np.zeros(n), present.views.get(name)
    if view is not None:
        origin = np.array([view.number(c, 0.0) for c in range(n)])
        numbers = graph.add("Sub", numbers, view.centres[None])
        numbers = graph.add("Div", numbers, np.where(view.distances > 0.0, view.distances, np.inf)[None])
        numbers = graph.add("Clip", numbers, np.float64(-WIDEST), np.float64(WIDEST))
    for m, member in enumerate(present.group.members):
        if member.setting.view == name:
            read, objective = present.reads[m], present.objectives[m]
            weights = weights_in_units(read, n) * (objective.unit if objective.task == "regression" else 1.0)
            outputs = slice(m * n_outputs, (m + 1) * n_outputs)
            sums.constant[outputs] -= origin @ weights
            sums.add(_bounded(graph, str(numbers), read, n) if view is None else str(numbers), weights, outputs)


def _bounded(graph: Graph, numbers: str, read: Any, n: int) -> str:
    """Numbers clipped to CEILING units of their features."""
    units = np.zeros(n)
    units[: len(read[1]) - 1] = read[1][1 : 1 + n]
    with np.errstate(over="ignore"):
        most = np.minimum(CEILING * units, MOST)[None]
    return graph.add("Max", graph.add("Min", numbers, most), -most)


def weights_in_units(read: Any, n: int) -> np.ndarray:
    """Weights (n, K) for raw values of the first features after the constant; 0 for unknown features."""
    weights, units = np.zeros((n, read[0].shape[1])), np.zeros(n)
    known = min(n, len(read[1]) - 1)
    weights[:known], units[:known] = read[0][1 : 1 + known], read[1][1 : 1 + known]
    with np.errstate(over="ignore"):
        quotients = np.divide(weights, units[:, None], out=np.zeros_like(weights), where=units[:, None] > 0.0)
    return np.clip(quotients, -MOST, MOST)


def add_generation(graph: Graph, sums: Sums, generation: Any, columns: np.ndarray, start: int) -> None:
    """Add the predictions of a linear generation from ``start`` on; ``columns``: its columns in the rows of states."""
    model: Linear = generation.model
    features, states = design(columns, *model[:4]), sums.states
    weights = np.moveaxis(model.weights, 0, 1).reshape(1 + len(model.sources), -1)  # (1 + d, strengths K)
    sources, span = generation.keys[model.sources], slice(start, start + weights.shape[1])

    def terms_of(source: int) -> np.ndarray:
        coded = 1 + np.flatnonzero(sources == -1 - source)
        return features[:, coded] @ weights[coded]

    sums.constant[span] = weights[0]
    for terms, source in zip(sums.if_missing, states.sources.tolist(), strict=True):
        present, missing = terms_of(source)[:2]
        sums.constant[span] += present
        terms[span] = missing - present
    for terms, column in zip(sums.by_state, states.categories, strict=True):
        terms[:, span] = terms_of(column.source)[: column.n_states]
    dense = np.flatnonzero(sources > 0)
    if len(dense):
        numbers = graph.add("Gather", states.numbers, sources[dense] - 1, axis=1)
        deviation = graph.add("Div", graph.add("Sub", numbers, model.means[dense][None]), model.scales[dense][None])
        clipped = graph.add("Clip", deviation, np.float64(-FARTHEST), np.float64(FARTHEST))
        sums.add(clipped, weights[1 + dense], span)

"""Types that groups of members exchange: rows to learn, late losses, families of learners, and weights of features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.part import Part
from tunefree.core.rows import part
from tunefree.learners.weights import ReadWeights

PIECE = 2048  # the largest number of rows that members learn at once, which bounds the memory of predictions


class LabelledRows(NamedTuple):
    """Rows to learn, with their targets."""

    X: Any  # block of rows
    y: np.ndarray  # (n,) targets in the form of the objective, or class indices
    weight: np.ndarray  # (n,) sample weights; a row of weight 0 is predicted but not learned
    groups: np.ndarray | None = None  # (n,) digests of their groups
    mass: np.ndarray | None = None  # (n,) total weights of each row and its duplicates, if all are known in advance
    # Of rows with groups, before any row of their runs is learned:
    is_known: np.ndarray | None = None  # (n,) whether a row of the group was learned
    precedes: np.ndarray | None = None  # (n,) whether no row was learned
    predictions: np.ndarray | None = None  # (n, M, K) by members
    mixed: np.ndarray | None = None  # (n, K) by the mixture

    def part(self, start: int, stop: int) -> LabelledRows:
        """The rows from ``start`` up to ``stop``."""
        arrays: Any = (None if array is None else array[start:stop] for array in self[1:])
        return LabelledRows(part(self.X, start, stop), *arrays)

    def pieces(self) -> Iterator[LabelledRows]:
        """The rows in pieces of at most PIECE rows."""
        return (self.part(start, start + PIECE) for start in range(0, len(self.y), PIECE))


class LateLosses(NamedTuple):
    """Losses of the first rows of a pass, known only once the rows that were kept back are learned."""

    weight: np.ndarray  # (n,), above 0
    row_losses: np.ndarray  # (n,)
    errors: np.ndarray  # (n,)

    def part(self, start: int, stop: int) -> LateLosses:
        """The rows from ``start`` up to ``stop``."""
        return LateLosses(*(array[start:stop] for array in self))


class Family(NamedTuple):
    """The interface of learners that are not linear in features; their members are in a bank."""

    view: str  # the default view
    config_of: Callable[[Any], Any]  # the configuration from a plan, a NamedTuple of JSON values; the default for None
    restored_config: Callable[[dict[str, Any]], Any]  # the configuration from a file
    config_header: dict[str, Any]  # schema of the configuration in files
    settings_of_members: Callable[[str, dict[str, float], str, Any], list[Any]]  # of learner, settings, view and config
    predictor: Callable[[Any, Any, int, int], Any]  # of options, linear members, outputs and classes; has a ``bank``
    predictor_class: type[Part]


class WeightedRows(NamedTuple):
    """Rows in the view of a member, and its weights: margins are sums of weight * x / unit."""

    X: Any  # block of rows, or their entries
    read: ReadWeights
    features: np.ndarray | None = None  # (d,) numbers of features without a slot; None for weights by slot

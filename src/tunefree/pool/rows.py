"""Rows to learn, predictions of rows kept back, and weights of features, which groups of members exchange."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np

from tunefree.core.part import Part
from tunefree.core.rows import part
from tunefree.core.schema import FROM_ZERO

Read = tuple[np.ndarray, np.ndarray]  # weights (d, K) of a member relative to the units (d,) of the features


class ReadWeights(NamedTuple):
    """Weights of a member relative to the units of the features; a unit is 0 where nothing is known."""

    weights: Annotated[np.ndarray, "float64[d, outputs]"]
    units: Annotated[np.ndarray, "float64[d]", FROM_ZERO]


class LabelledRows(NamedTuple):
    """Rows to learn, with their targets."""

    X: Any  # block of rows
    y: np.ndarray  # (n,) targets: as the objective takes them, or numbers of classes
    weight: np.ndarray  # (n,) sample weights; a row of weight 0 is predicted but not learned
    evaluation_weight: np.ndarray  # (n,) with which members are evaluated; 0 for rows learned before
    groups: np.ndarray | None = None  # (n,) digests of their groups
    mass: np.ndarray | None = None  # (n,) total weights of rows and their copies, where all are known before

    def part(self, start: int, stop: int) -> LabelledRows:
        """The rows from ``start`` up to ``stop``."""
        arrays: Any = (None if array is None else array[start:stop] for array in self[1:])
        return LabelledRows(part(self.X, start, stop), *arrays)


class LateLosses(NamedTuple):
    """Losses of the first rows of a pass, which became known when rows that were kept back were learned."""

    weight: np.ndarray  # (n,), above 0
    row_losses: np.ndarray  # (n,)
    errors: np.ndarray  # (n,)

    def part(self, start: int, stop: int) -> LateLosses:
        """The rows from ``start`` up to ``stop``."""
        return LateLosses(*(array[start:stop] for array in self))


class Family(NamedTuple):
    """Learners that are not linear in features, as models need them: their members are in a bank."""

    view: str  # where none is asked for
    config_of: Callable[[Any], Any]  # of a plan: a NamedTuple of what JSON holds; with None, as it is by default
    restored_config: Callable[[dict[str, Any]], Any]
    config_header: dict[str, Any]  # what files hold of it
    settings_of_members: Callable[[str, dict[str, float], str, Any], list[Any]]  # by learner, settings, view and config
    predictor: Callable[[Any, Any, int, int], Any]  # by options, linear members, outputs and classes; it has a ``bank``
    predictor_class: type[Part]


class Further(NamedTuple):
    """Entries of rows whose features have no slot among the weights of a member, and the weights of these."""

    X: Any  # block of rows
    read: Read
    features: np.ndarray  # (d,) of these weights, as in the rows


class WeightedRows(NamedTuple):
    """Rows as a member sees them whose margins are sums of weight * x / unit."""

    X: Any  # block of rows
    weights: np.ndarray  # (d, K)
    units: np.ndarray  # (d,) of the features; 0 for one that was never observed
    further: Further | None = None  # the rest of the sums

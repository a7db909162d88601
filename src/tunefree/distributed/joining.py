"""Joining of the learners of several shards, which began with the same state, by means of their states.

The mean of a coordinate (the statistics of a column or a leaf) is over the shards that learned about it, weighted by
their rows. ScInOL2 has sums over the rows: of gradients (G), of their squares (S^2), and of the gains of its wealth
(eta). It predicts eta G / (2 (S^2 + M^2)) where G is small, so with means of these sums, shards that agree keep their
prediction. If a leaf has few rows in each of many shards, the sums must be added instead, so that its value moves as
far as all of its rows support. Rows that no shard learned decide between means and sums.

Only differences from the common start are sent, and only arrays with differences. Statistics are in units of the
coordinate, powers of two that grow with its largest value. If units differ, shards with smaller units are dropped.

The sums of certificates are added, too: the inequality of :mod:`tunefree.theory.evidence` holds for any predictions of
any rows. In the order of the shards, a row is always predicted before it is learned, as bounds on risks require.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.fields import FEATURE
from tunefree.generations.leaf_learners import LeafScInOL2
from tunefree.learners.newton import Newton, subtract_waiting
from tunefree.learners.scinol import ScInOL2
from tunefree.pool.first_pass import FirstPassRecord
from tunefree.pool.model import Model
from tunefree.pool.targets import RunningMean
from tunefree.pool.views import OF_COLUMNS, Steady
from tunefree.theory.evidence import Evidence
from tunefree.theory.risk import Progressive

OF_FEATURES = "of features"  # prefix of the names of statistics with one value or row for each coordinate
MEAN, SUM = f"{OF_FEATURES}, mean.", f"{OF_FEATURES}, sum."  # prefixes of means and of sums over rows
SUMS = dict.fromkeys(
    (ScInOL2, LeafScInOL2), ("gradients", "squares", "wealth")
)  # fields that are sums, by learner; all other fields are means
INVERSE = f"{MEAN}inverse"  # 1 / unit, which is the same in all shards whose statistics are kept
MOVED_BY_NONE = 1e300  # total weight of earlier targets that keeps the mean of targets constant


class Statistics(NamedTuple):
    """Sums over shards of the changes to the state of one learner, or of one view."""

    shards: int  # number of shards
    weight: float  # rows learned in all shards
    weights: np.ndarray  # (d,) rows learned in the shards that learned about each coordinate
    inverses: np.ndarray  # (d,) 1 / unit of each coordinate; 1 without units
    sums: dict[str, np.ndarray]  # weighted sums of differences, for arrays that changed; maxima of single numbers
    steepest: float  # largest slope of the objective

    def plus(self, other: Statistics) -> Statistics:
        """Return the sums over the shards of both; of a coordinate, only the sums in its larger unit."""
        both = self, other
        inverses = [np.where(s.weights > 0.0, s.inverses, np.inf) for s in both]
        masks = [inverse == np.minimum(*inverses) for inverse in inverses]
        sums = {}
        for name in self.sums | other.sums:
            terms = [(mask, s.sums[name]) for mask, s in zip(masks, both, strict=True) if name in s.sums]
            if not terms[0][1].ndim:
                sums[name] = np.maximum.reduce([term for _, term in terms])
            elif name.startswith(OF_FEATURES):
                sums[name] = sum(_broadcastable(mask, term) * term for mask, term in terms)
            else:
                sums[name] = sum(term for _, term in terms)
        weights = masks[0] * self.weights + masks[1] * other.weights
        totals = self.shards + other.shards, self.weight + other.weight, weights
        inverses_of_sums = np.where(masks[0], self.inverses, other.inverses)
        return Statistics(*totals, inverses_of_sums, sums, max(self.steepest, other.steepest))


def learners(model: Model) -> Iterator[tuple[str, Any, Any]]:
    """Yield the joined learners and views of a pool: name, state, and owner of the objective (None for a view).

    A regression learner without any rows has no unit of targets yet, so it cannot be joined and is left out.
    """
    linear, growth = model.linear, model.pool.members.growth
    for name, view in linear.views.items():
        yield name, view, None
    owners = {f"linear {index}": member for index, member in enumerate(linear.members)}
    for clock, kind, age, generation in [] if growth is None else growth.generations():
        owners |= {f"{kind} of {clock}, {age}, {number}": learner for number, learner in enumerate(generation.living)}
    for name, owner in owners.items():
        if model.task == "classification" or owner.objective.unit > 0.0:
            yield name, owner.state, owner


def begin(model: Model) -> dict[str, dict[str, np.ndarray]]:
    """Prepare the learners of a shard; return copies of their arrays, by the names of learner and array.

    In regression the mean of the targets is kept constant, so that all shards learn differences from the same mean.
    """
    states = {}
    for name, state, owner in learners(model):
        if owner is not None and model.task == "regression":
            owner.objective.mass = MOVED_BY_NONE
        states[name] = {key: array.copy() for key, array in _arrays(state).items()}
    return states


def learned(model: Model, before: dict[str, dict[str, np.ndarray]], rows: int) -> dict[str, Statistics]:
    """Return the changes of the learners of a shard with ``rows`` rows since the arrays in ``before``."""
    statistics = {}
    for name, state, owner in learners(model):
        if isinstance(state, Newton):
            subtract_waiting(state)
        if name in before:
            steepest = 0.0 if owner is None else owner.objective.steepest
            statistics[name] = _statistics(_arrays(state), before[name], steepest, float(rows))
    return statistics


def join(model: Model, total: dict[str, Statistics], rows: int, adds_sums: bool) -> None:
    """Add the changes in all shards, with ``rows`` rows, to the learners of the common start."""
    for name, state, owner in learners(model):
        if name not in total:
            continue
        for key, array in _arrays(state).items():  # views, which are modified in place
            _add(total[name], key, array, adds_sums)
        if owner is not None:
            owner.objective.steepest = total[name].steepest
            if model.task == "regression":
                owner.objective.mass += rows
    linear = model.linear
    for member in linear.members:
        member.rows, member.mass = member.rows + rows, member.mass + rows
    linear.keep(list(range(len(linear.members))))  # keeps all members, and reloads their weights


def _add(statistics: Statistics, key: str, array: np.ndarray, adds_sums: bool) -> None:
    """Add the mean difference of the shards, or its sum, to an array of the common start."""
    is_learned = statistics.weights > 0.0
    if key == INVERSE:
        array[is_learned] = statistics.inverses[is_learned]
    elif key not in statistics.sums:
        return
    elif not array.ndim:
        array[...] = statistics.sums[key]
    elif key.startswith(SUM) and adds_sums:
        array += statistics.sums[key] * (statistics.shards / statistics.weight)  # mean times the number of shards
    elif key.startswith(OF_FEATURES):
        array += statistics.sums[key] / _broadcastable(np.where(is_learned, statistics.weights, 1.0), array)
    else:
        array += statistics.sums[key] / statistics.weight


def _arrays(state: Any) -> dict[str, np.ndarray]:
    """Return views of the arrays of a learner or a view, by name; single numbers have shape ()."""
    if isinstance(state, Steady):
        fields = state._asdict().items()
        return {name: array if name in OF_COLUMNS else array.reshape(()) for name, array in fields}
    numbers = {}
    for field in [field for field in state.fields if field.is_saved]:
        array = state[field.name]
        kind = SUM if field.name in SUMS.get(type(state), ()) else MEAN
        prefix = kind if FEATURE in field.axes[:1] else ""
        numbers[prefix + field.name] = array if field.axes else array.reshape(())
    return numbers


def _broadcastable(factors: np.ndarray, array: np.ndarray) -> np.ndarray:
    """Reshape factors (d,) so that they broadcast with an array (d, ...)."""
    return factors.reshape(-1, *[1] * (array.ndim - 1))


def _statistics(
    arrays: dict[str, np.ndarray], before: dict[str, np.ndarray], steepest: float, weight: float
) -> Statistics:
    n = max([len(array) for name, array in arrays.items() if name.startswith(OF_FEATURES)], default=0)
    has_changed = {name: array != before[name] for name, array in arrays.items()}
    is_learned = np.zeros(n, bool)
    for name, changes in has_changed.items():
        if name.startswith(OF_FEATURES):
            is_learned |= changes.reshape(n, -1).any(axis=1)
    sums = {}
    for name, array in arrays.items():
        if not array.ndim:
            sums[name] = array.copy()
        elif name != INVERSE and has_changed[name].any():
            sums[name] = weight * np.subtract(array, before[name], dtype=np.float64)  # 0 where nothing was learned
    inverses = arrays.get(INVERSE, np.ones(n)).copy()
    return Statistics(1, weight, weight * is_learned, inverses, sums, steepest)


class Proved(NamedTuple):
    """Sums over rows of a record of the first pass."""

    arrays: dict[str, np.ndarray]  # arrays of the evidence, by name
    risks: dict[str, dict[str, Any]]  # progressive losses, by name
    targets: dict[str, float]  # sums of the targets in regression

    def plus(self, other: Proved) -> Proved:
        """Return the sums over the rows of both."""
        risks = {name: _sum_of_risks(risk, other.risks[name]) for name, risk in self.risks.items()}
        targets = {name: value + other.targets[name] for name, value in self.targets.items()}
        return Proved(_sum_of_evidence(self.arrays, other.arrays), risks, targets)


def proved(record: FirstPassRecord, n_features: int, known: RunningMean) -> Proved:
    """Return the sums of a record; ``known`` are the targets at its start, which are subtracted."""
    risks = {name: asdict(risk) for name, risk in record.risks.items()}
    targets = {name: value - getattr(known, name) for name, value in asdict(record.targets).items()}
    return Proved(record.evidence.arrays(n_features), risks, targets)


def add_proved(record: FirstPassRecord, shard_sums: Proved, n_features: int, n_outputs: int) -> None:
    """Add the sums of shards to a record."""
    total = proved(record, n_features, RunningMean()).plus(shard_sums)
    record.evidence = Evidence(n_features, n_outputs).restored(total.arrays)
    record.risks.update({name: Progressive(**risk) for name, risk in total.risks.items()})
    record.targets = RunningMean(**total.targets)


def _sum_of_risks(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    sums = {name: first[name] + second[name] for name in ("rows", "total", "spread")}
    return sums | {"ceiling": first["ceiling"], "unweighted": first["unweighted"] and second["unweighted"]}


def _sum_of_evidence(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Gradients are in units of each feature, powers of two; the larger unit is kept."""
    pair = first, second
    inverses = np.stack([arrays["inverse"] for arrays in pair])
    known = np.where(inverses > 0.0, inverses, np.inf)
    joined = known.min(axis=0)
    joined[np.isinf(joined)] = 0.0
    factors = joined / known  # 0 for unknown features
    sums = {name: first[name] + second[name] for name in first}
    sums["inverse"] = joined
    sums["largest"] = np.maximum(*(factor * arrays["largest"] for factor, arrays in zip(factors, pair, strict=True)))
    sums["gradients"] = sum(factor[:, None] * arrays["gradients"] for factor, arrays in zip(factors, pair, strict=True))
    return sums

"""Evidence over shards: the sums of which certificates are made add up.

The inequality of :mod:`tunefree.theory.evidence` holds for any predictions of any rows, so the sums of all shards bound
the loss of every linear model on all rows that were learned. A shard predicts each of its rows before that is learned,
by what it learned of the sample and of its rows before. So in the order of the shards no row was known to what
predicted it, which is all that the bounds on risks ask for.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from tunefree.model.record import FirstPassRecord
from tunefree.model.targets import RunningMean
from tunefree.theory.evidence import Evidence
from tunefree.theory.risk import Progressive


class Proved(NamedTuple):
    """Sums over rows."""

    arrays: dict[str, np.ndarray]  # of the evidence, by the names of its parts
    risks: dict[str, dict[str, Any]]  # progressive losses, by their names
    targets: dict[str, float]  # in regression

    def plus(self, other: Proved) -> Proved:
        """The sums over the rows of both."""
        risks = {name: _sum_of_risks(risk, other.risks[name]) for name, risk in self.risks.items()}
        targets = {name: value + other.targets[name] for name, value in self.targets.items()}
        return Proved(_sum_of_evidence(self.arrays, other.arrays), risks, targets)


def proved(record: FirstPassRecord, n_features: int, known: RunningMean) -> Proved:
    """What a record has; ``known`` are the targets that it began with."""
    risks = {name: asdict(risk) for name, risk in record.risks.items()}
    targets = {name: value - getattr(known, name) for name, value in asdict(record.targets).items()}
    return Proved(record.evidence.arrays(n_features), risks, targets)


def add(record: FirstPassRecord, of_shards: Proved, n_features: int, n_outputs: int) -> None:
    """Add the sums of shards to a record."""
    total = proved(record, n_features, RunningMean()).plus(of_shards)
    record.evidence = Evidence(n_features, n_outputs).restored(total.arrays)
    record.risks.update({name: Progressive(**risk) for name, risk in total.risks.items()})
    record.targets = RunningMean(**total.targets)


def _sum_of_risks(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    sums = {name: one[name] + other[name] for name in ("rows", "total", "spread")}
    return sums | {"ceiling": one["ceiling"], "unweighted": one["unweighted"] and other["unweighted"]}


def _sum_of_evidence(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Gradients are in units of each feature, powers of two, of which the larger one is kept."""
    both = one, other
    inverses = [arrays["inverse"] for arrays in both]
    known = [inverse > 0.0 for inverse in inverses]
    joined = np.where(known[0] & known[1], np.minimum(*inverses), np.maximum(*inverses))
    factors = [
        np.where(is_known, joined / np.where(is_known, inverse, 1.0), 0.0)
        for is_known, inverse in zip(known, inverses, strict=True)
    ]
    largest = [arrays["largest"] * factor for arrays, factor in zip(both, factors, strict=True)]
    sums = [arrays["gradients"] * factor[:, None] for arrays, factor in zip(both, factors, strict=True)]
    by_feature: dict[str, Any] = {
        "inverse": joined,
        "largest": np.maximum(*largest),
        "gradients": sums[0] + sums[1],
    }
    return by_feature | {name: one[name] + other[name] for name in one if name not in by_feature}

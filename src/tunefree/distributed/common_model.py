"""The model that all shards begin with: it has seen no row, but its views, knots, pairs and units are of all rows.

Members of the second order are left out, as in the estimators' batch phase: exact gradients do the same at less cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tunefree.core.errors import DataError
from tunefree.core.numbers import power_below
from tunefree.distributed.encoded import Encoded, Target, Taste, gathered, merged_view
from tunefree.losses.contract import slope
from tunefree.model.additive_bank import AdditiveBank
from tunefree.model.batch_phase import settings_before
from tunefree.model.group import LabelledRows
from tunefree.model.model import Model
from tunefree.model.pool import settings_of_members
from tunefree.workflows.plan import Plan
from tunefree.workflows.training import sources_of_pairs

ModelState = tuple[dict[str, np.ndarray], dict[str, Any]]


def common_model(plan: Plan, task: str, classes: Sequence[Any], encoder: Any, tastes: Sequence[Taste]) -> Model:
    """The model that all shards begin with.

    Raises
    ------
    DataError, ModelError
        If all targets are the same, or the rows cannot be learned by the pool.
    """
    sample = gathered([own.sample for taste in tastes for own in (taste.early, taste.late)])
    filled = [taste for taste in tastes if taste.view is not None]
    pairs = sources_of_pairs(plan, encoder)
    model = Model(
        task,
        "pool",
        plan.loss,
        classes=classes,
        n_features=encoder.n_features,
        member_settings=settings_before(settings_of_members("pool", {}, "raw")),
        may_prune=False,
        pairs=pairs,
    )
    model.deployment = None
    idle = model.ensemble.idle(sample.X)
    model.prune(idle)
    model.ensemble.linear.views["steady"] = merged_view([own.view for own in filled], [own.learned for own in filled])
    if task == "regression":
        target = Target()
        for taste in tastes:
            target = target.plus(taste.target)
        _fix_target(model, target, sample)
    rows = labelled(model, sample)
    for bank in model.ensemble.banks:
        if isinstance(bank, AdditiveBank):
            bank.prepare(rows, sum(taste.learned for taste in tastes))
    return model


def labelled(model: Model, rows: Encoded) -> LabelledRows:
    """Rows with targets as a model's objective takes them."""
    y = rows.y if model.task == "regression" else model.targets_of(rows.y.astype(np.int64))
    return LabelledRows(rows.X, np.ascontiguousarray(y, np.float64), rows.weight, rows.weight)


def _fix_target(model: Model, target: Target, sample: Encoded) -> None:
    """Let all members measure targets from the same mean, in the same unit, from the first row on."""
    if not target.weight > 0.0 or target.lowest == target.highest:
        raise DataError("the target is the same in all rows", remedy="check its column")
    objective = model.objective
    mean = target.total / target.weight
    unit = power_below(max(target.size / target.weight, 1e-300))
    with np.errstate(over="ignore"):
        spread = float(np.average(np.abs(sample.y / unit - mean / unit), weights=sample.weight))
    spread = max(spread, 1e-300)
    steepness = [abs(slope(objective.loss, y, mean)) for y in sample.y.tolist()]
    bounded = objective.loss.lipschitz < math.inf
    grain = 1.0 if bounded else power_below(max(float(np.mean(steepness)), 1e-300))
    ends = (abs(slope(objective.loss, y, mean)) for y in (target.lowest, target.highest))
    fixed = {
        "unit": unit,
        "centre": mean / unit,
        "spread": spread,
        "margin": 2.0 ** math.ceil(math.log2(spread)),
        "grain": grain,
        "steepest": 1.0 if bounded else max(ends) / grain,
        "mass": 1e300,  # which no shard moves
    }
    for member in model.members:
        member.objective = member.objective._replace(**fixed)


def with_true_mass(model: Model, weight: float) -> None:
    """Let the mean of the targets be as sure as rows of this weight make it, for whoever learns on."""
    if model.task == "regression":
        for member in model.members:
            member.objective = member.objective._replace(mass=weight)

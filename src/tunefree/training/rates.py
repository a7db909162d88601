"""Rows with exposures, as models of counts learn them: rates, with weights that teach what counts would."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core.errors import DataError
from tunefree.losses import loss_of
from tunefree.losses.rates import are_impossible, as_rates, fault_of_targets, has_rates
from tunefree.model_files.plan import Plan
from tunefree.stream.batch import BadRows, Batch
from tunefree.training.targets import target_of


def as_learned(plan: Plan, batch: Batch, y: Any) -> tuple[Batch, Any]:
    """A batch and its targets, as a model of this plan learns them; for other losses as they are.

    Raises
    ------
    DataError
        If the distribution of the loss has no such target.

    Examples
    --------
    >>> import numpy as np
    >>> from tunefree.core.rows import dense
    >>> from tunefree.stream.batch import Position
    >>> two, plan = np.ones(2), Plan(target="claims", loss="poisson", exposure="years")
    >>> batch = Batch(dense(np.zeros((2, 1))), None, two, np.arange(2), None, "x", Position(), exposure=two / 2)
    >>> as_learned(plan, batch, two)[1], as_learned(plan, batch, two)[0].weight
    (array([2., 2.]), array([0.5, 0.5]))
    """
    if not has_rates(plan.loss):
        return batch, y
    loss = loss_of("regression", plan.loss)
    fault = fault_of_targets(loss, y)
    if fault is not None:
        number = int(batch.numbers[fault.row])
        raise DataError(fault.problem, batch.file, number, plan.target, fault.remedy)
    if batch.exposure is None:
        return batch, y
    rates, weight = as_rates(loss, y, batch.weight, batch.exposure)
    return batch._replace(weight=weight), rates


def of_possible_targets(batch: Batch, bad: BadRows) -> Batch:
    """The rows whose target the distribution of the loss has that ``bad`` names; others cannot be used.

    Raises
    ------
    DataError
        If there are others, and bad rows are not skipped.
    """
    if not has_rates(bad.loss) or batch.target is None or not len(batch.weight):
        return batch
    loss, y = loss_of("regression", bad.loss), target_of("regression", batch)
    is_bad = are_impossible(loss, y)
    if not is_bad.any():
        return batch
    for row in np.flatnonzero(is_bad).tolist():
        fault = fault_of_targets(loss, y[row : row + 1])
        assert fault is not None
        bad.report(fault.problem, batch.file, int(batch.numbers[row]), bad.target, fault.remedy)
    return batch.at(np.flatnonzero(~is_bad))

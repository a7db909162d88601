"""Which targets can be learned: those of classes that were named, and those that the distribution of a loss has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tunefree.core.errors import DataError, ModelError
from tunefree.losses import loss_of
from tunefree.losses.rates import are_impossible, as_rates, fault_of_targets, has_rates
from tunefree.model_files.plan import OF_NUMBERS, Plan
from tunefree.stream.batch import BadRows, Batch
from tunefree.training.targets import labels_of, target_of

BOOLEANS = {"true": True, "false": False}


def closed_classes(names: Sequence[str], task: str, target: Any) -> list[Any]:
    """The labels that are named, sorted, each of the type that a target has.

    Parameters
    ----------
    names : sequence of str
        At least two.
    task : {"classification", "regression"}
    target : pyarrow.Array
        Only its type matters.

    Raises
    ------
    ModelError
        If the task is a regression, or a name is no label of this type, or two are the same.

    Examples
    --------
    >>> closed_classes(["2", "1.0"], "classification", pa.array([1, 2]))
    [1, 2]
    >>> closed_classes(["yes", "no"], "classification", pa.array([1, 2]))
    Traceback (most recent call last):
    tunefree.core.errors.ModelError: `classes`: 'yes' is not a label of the target, which holds numbers
    """
    if task == "regression":
        raise ModelError(OF_NUMBERS)
    labels = [_label(name, target.type) for name in names]
    if len(set(labels)) < len(labels):
        raise ModelError(f"`classes={list(names)}`: name each label once")
    return sorted(labels)


def _label(name: str, kind: Any) -> Any:
    """The label of a type that is written so."""
    try:
        if pa.types.is_boolean(kind):
            return BOOLEANS[name.lower()]
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            number = float(name)
            return int(number) if number.is_integer() else number
    except (KeyError, ValueError):
        holds = "truth values" if pa.types.is_boolean(kind) else "numbers"
        raise ModelError(f"`classes`: {name!r} is not a label of the target, which holds {holds}") from None
    return name


def of_usable_targets(batch: Batch, bad: BadRows) -> Batch:
    """The rows whose label is among the classes that ``bad`` names, or whose target the loss that it names can have.

    Raises
    ------
    DataError
        If there are others, and bad rows are not skipped.
    """
    if batch.target is None or not len(batch.weight) or not (bad.classes or has_rates(bad.loss)):
        return batch
    if bad.classes:
        labels, named = labels_of(batch.target), ", ".join(bad.classes)
        known = set(closed_classes(bad.classes, "classification", batch.target))
        is_bad = np.array([label not in known for label in labels.values], bool)[labels.codes]
        for row in np.flatnonzero(is_bad).tolist():
            problem = f"the label {labels.values[labels.codes[row]]!r} is not among the classes {named}"
            remedy = "correct it, or add it to `classes`" if bad.has_options else "correct it"
            bad.report(problem, batch.file, int(batch.numbers[row]), bad.target, remedy)
    else:
        loss, y = loss_of("regression", bad.loss), target_of("regression", batch)
        is_bad = are_impossible(loss, y)
        for row in np.flatnonzero(is_bad).tolist():
            fault = fault_of_targets(loss, y[row : row + 1])
            assert fault is not None
            bad.report(fault.problem, batch.file, int(batch.numbers[row]), bad.target, fault.remedy)
    return batch.at(np.flatnonzero(~is_bad)) if is_bad.any() else batch


def with_rates(plan: Plan, batch: Batch) -> Batch:
    """A batch, whose targets are as a model takes them, as a model of this plan learns them.

    Of losses of counts with exposures these are rates, with weights that teach what counts would.

    Raises
    ------
    DataError
        If the distribution of the loss has no such target.

    Examples
    --------
    >>> import numpy as np
    >>> from tunefree.core.rows import dense
    >>> two, plan = np.ones(2), Plan(target="claims", loss="poisson", exposure="years")
    >>> batch = with_rates(plan, Batch(dense(np.zeros((2, 1))), two, two, exposure=two / 2))
    >>> batch.target, batch.weight
    (array([2., 2.]), array([0.5, 0.5]))
    """
    if not has_rates(plan.loss):
        return batch
    loss = loss_of("regression", plan.loss)
    fault = fault_of_targets(loss, batch.target)
    if fault is not None:
        number = int(batch.numbers[fault.row])
        raise DataError(fault.problem, batch.file, number, plan.target, fault.remedy)
    if batch.exposure is None:
        return batch
    rates, weight = as_rates(loss, batch.target, batch.weight, batch.exposure)
    return batch._replace(weight=weight, target=rates)

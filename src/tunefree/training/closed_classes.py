"""Classes that were named beforehand: a row with another label cannot be used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tunefree.core.errors import ModelError
from tunefree.model_files.plan import OF_NUMBERS
from tunefree.stream.batch import BadRows, Batch
from tunefree.training.targets import labels_of

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


def of_named_classes(batch: Batch, bad: BadRows) -> Batch:
    """The rows whose label is among the classes that ``bad`` names; others cannot be used.

    Raises
    ------
    DataError
        If there are others, and bad rows are not skipped.
    """
    if not bad.classes or batch.target is None or not len(batch.weight):
        return batch
    labels = labels_of(batch.target)
    known = set(closed_classes(bad.classes, "classification", batch.target))
    usable = np.array([label in known for label in labels.values], bool)[labels.codes]
    if usable.all():
        return batch
    for i in np.flatnonzero(~usable).tolist():
        problem = f"the label {labels.values[labels.codes[i]]!r} is not among the classes {', '.join(bad.classes)}"
        remedy = "correct it, or add it to `classes`" if bad.has_options else "correct it"
        bad.report(problem, batch.file, int(batch.numbers[i]), bad.target, remedy)
    return batch.at(np.flatnonzero(usable))

"""Weights of classes: as given, or such that all classes weigh the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from tunefree.core.errors import ModelError, nearest
from tunefree.model_files.plan import Plan
from tunefree.pool.targets import Labels, written
from tunefree.stream.batch import Batch
from tunefree.stream.source import Source
from tunefree.training.reading import begin
from tunefree.training.targets import labels_of

BALANCED = "balanced"
MISSPELT = 0.8  # similarity of labels from which on one is taken for the other, misspelt
OF_NUMBERS = "`class_weight` is for classes, and the target is a number to predict; leave it out"


def weights_by_label(texts: Sequence[str]) -> dict[str, float]:
    """The weights that are written as LABEL=WEIGHT.

    >>> weights_by_label(["yes=5", "a=b=0.5"])
    {'yes': 5.0, 'a=b': 0.5}
    """
    weights: dict[str, float] = {}
    for text in texts:
        label, mark, number = text.rpartition("=")
        try:
            weights[label] = float(number)
        except ValueError:
            mark = ""
        if not mark or not 0.0 <= weights[label] < math.inf:
            raise ModelError(f"`class_weight` is {BALANCED}, or LABEL=WEIGHT with a number of at least 0, not {text!r}")
    return weights


def check(plan: Plan, task: str, classes: Sequence[Any], complete: bool) -> None:
    """Raise a ModelError if weights of classes have no effect; ``complete``: whether no other classes will come."""
    if plan.class_weight and task != "classification":
        raise ModelError(OF_NUMBERS)
    if not plan.class_weight or BALANCED in plan.class_weight:
        return
    texts = list(map(str, classes))
    known = {*texts, *(written(label) for label in classes if not isinstance(label, str))}
    for label in weights_by_label(plan.class_weight):
        is_misspelt = label.isalpha() and get_close_matches(label, texts, 1, MISSPELT)  # 12 is not 112
        if not known & {label, written(label)} and (complete or is_misspelt):
            raise ModelError(f"`class_weight`: there is no class {label!r}; {nearest(label, texts, 'classes')}")


def class_factors(weights: dict[str, float], y: Labels) -> np.ndarray:
    """Factors (n,) of the weights of rows with these labels; 1 for classes that are not named.

    >>> class_factors({"yes": 5.0}, Labels.of(np.array(["no", "yes", "no"])))
    array([1., 5., 1.])
    """
    loose = {written(label): weight for label, weight in weights.items()}
    loose_weights = [1.0 if isinstance(value, str) else loose.get(written(value), 1.0) for value in y.values]
    each = [weights.get(str(value), other) for value, other in zip(y.values, loose_weights, strict=True)]
    return np.array(each)[y.codes]


def weighed(batch: Batch, by_label: dict[str, float]) -> Batch:
    """The batch, whose targets are labels, with the weights of the classes too."""
    return batch._replace(weight=batch.weight * class_factors(by_label, batch.target)) if by_label else batch


def is_balanced(plan: Plan) -> bool:
    """Whether the weights of a plan are to be found by its rows; raises a ModelError if they are written wrongly."""
    if BALANCED not in plan.class_weight:
        weights_by_label(plan.class_weight)
        return False
    if plan.class_weight != (BALANCED,):
        raise ModelError(f"`class_weight` is either {BALANCED} or given label by label, not both")
    return True


def with_weights(plan: Plan, source: Source) -> Plan:
    """The plan, checked, with the weights that "balanced" stands for on a source, which is read once for it.

    >>> from tunefree.stream.source import open_source
    >>> source = open_source({"age": [20.0, 30.0, 40.0], "rich": ["no", "no", "yes"]})
    >>> with_weights(Plan(target="rich", class_weight=("balanced",)), source).class_weight
    ('no=0.75', 'yes=1.5')
    """
    if not is_balanced(plan):
        return plan
    source.check_rewindable("give `class_weight='LABEL=W'`")
    reading = begin(source, plan, plan.bad_rows())
    check(plan, reading.task, reading.classes, complete=False)
    totals: dict[str, float] = {}
    for batch in reading.batches:
        y = labels_of(batch.target)
        for value, weight in zip(y.values, np.bincount(y.codes, batch.weight, len(y.values)), strict=True):
            totals[str(value)] = totals.get(str(value), 0.0) + float(weight)
    return replace(plan, class_weight=balancing(totals))


def balancing(totals: dict[str, float]) -> tuple[str, ...]:
    """Weights with which all classes weigh the same, as LABEL=WEIGHT, from the weights of their rows.

    A class with the share p of the weight of all rows gets 1 / (K p), with K classes, as in scikit-learn.
    """
    kept = {label: total for label, total in sorted(totals.items()) if total > 0.0}
    mean = math.fsum(kept.values()) / len(kept) if kept else 0.0  # `sum` differs from one version of Python to the next
    return tuple(f"{label}={mean / total!r}" for label, total in kept.items())

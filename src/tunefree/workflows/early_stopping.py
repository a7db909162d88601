"""The regularization path of a source: its rows are read into memory, and the subgradient method runs once.

Rows are encoded as for online learning, but without their constant: the estimator adds its own.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from tunefree.core.errors import ModelError
from tunefree.estimators.matrices import matrix
from tunefree.estimators.path import IterativeRegularizationClassifier, IterativeRegularizationRegressor
from tunefree.stream.batch import Batch
from tunefree.stream.source import Source
from tunefree.workflows.plan import EARLY_STOPPING, Plan
from tunefree.workflows.reading import ahead, begin, check_learned
from tunefree.workflows.roles import note_roles
from tunefree.workflows.stopped_model import PathModel, StoppedModel
from tunefree.workflows.targets import target_of


def descend(source: Source, plan: Plan, iterations: int = 500) -> StoppedModel:
    """Read a source and compute its path, which is stopped where rows held out are predicted best.

    Parameters
    ----------
    source : Source
    plan : Plan
        What is to be learned from which rows, and with which kernel; without one it is weights of the features.
    iterations : int, default 500
        Length of the path.

    Returns
    -------
    StoppedModel

    Raises
    ------
    DataError, ModelError
        If a row cannot be used, the plan says how to learn row by row, or the estimator refuses rows or loss.

    Examples
    --------
    >>> from tunefree.stream.source import open_source
    >>> table = {"age": list(range(20, 70)) * 4, "rich": (["no"] * 25 + ["yes"] * 25) * 4}
    >>> found = descend(open_source(table), Plan(target="rich"), iterations=20)
    >>> found.rows, len(found.path), bool(found.path.training_error[-1] < 0.05)
    (200, 20, True)
    """
    if iterations < 1:
        raise ModelError(f"the number of iterations must be at least 1, not {iterations}")
    plan = replace(plan, learner=EARLY_STOPPING)
    bad = plan.bad_rows()
    reading = begin(source, plan, bad)
    note_roles(reading, bad)
    task, classes, encoder, batches, *_ = reading
    read = list(ahead(batches))
    weight = np.concatenate([batch.weight for batch in read])
    chosen: dict[str, Any] = {} if plan.loss is None else {"loss": plan.loss}
    kind: Any = IterativeRegularizationClassifier if task == "classification" else IterativeRegularizationRegressor
    model = PathModel(task, [], kind(kernel=plan.kernel, max_iter=int(iterations), **chosen))
    for label in classes:
        model.add_class(label)
    targets = _targets(model, read)
    check_learned(model, int(np.count_nonzero(weight)), source)
    rows = matrix([batch.rows for batch in read], encoder.n_features)
    model.is_dense = not sparse.issparse(rows)
    started = time.perf_counter()
    try:
        model.estimator.fit(rows, targets, sample_weight=weight)
    except ValueError as error:
        raise ModelError(str(error)) from None
    seconds = time.perf_counter() - started
    return StoppedModel(model, encoder, source.kind, plan, len(weight), bad.count, seconds, bad.tally.oddities())


def _targets(model: PathModel, read: list[Batch]) -> np.ndarray:
    """Numbers, or codes of the classes; new classes are added to the model."""
    found = [target_of(model.task, batch) for batch in read]
    if model.task == "regression":
        return np.concatenate(found)
    coded = []
    for labels in found:
        codes, new = model.codes(labels)
        for _, label in new:
            model.add_class(label)
        coded.append(codes)
    return np.concatenate(coded)

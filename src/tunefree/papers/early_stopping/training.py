"""The regularization path of a source: its rows are read into memory, and the subgradient method runs once.

Rows are encoded as for online learning, but without their constant: the estimator adds its own.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.estimators.model_file import labels_of
from tunefree.model.targets import ScoredModel
from tunefree.model_files.plan import Plan
from tunefree.model_files.progress import Progress
from tunefree.model_files.trained import Trained
from tunefree.papers.early_stopping import EARLY_STOPPING
from tunefree.papers.early_stopping.estimators import (
    IterativeRegularizationClassifier,
    IterativeRegularizationRegressor,
)
from tunefree.papers.early_stopping.path_model import PathModel
from tunefree.papers.early_stopping.preparation import matrix
from tunefree.stream.source import Source
from tunefree.training.reading import ahead, begin, check_learned
from tunefree.training.roles import note_roles
from tunefree.training.targets import target_of


def descend(source: Source, plan: Plan, iterations: int = 500) -> Trained:
    """Read a source and compute its path, which is stopped where rows held out are predicted best.

    ``plan``: what is to be learned from which rows, and with which kernel; without one it is weights of the features.
    Returns: its model is a :class:`tunefree.papers.early_stopping.path_model.PathModel`.
    Raises a DataError or ModelError if a row cannot be used, the plan says how to learn row by row, or the estimator
    refuses rows or loss.

    >>> from tunefree.stream.source import open_source
    >>> table = {"age": list(range(20, 70)) * 4, "rich": (["no"] * 25 + ["yes"] * 25) * 4}
    >>> trained = descend(open_source(table), Plan(target="rich"), iterations=20)
    >>> trained.progress.rows, len(trained.model.path), bool(trained.model.path.training_error[-1] < 0.05)
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
    scored, targets = _coded(task, classes, [target_of(task, batch) for batch in read])
    check_learned(scored, int(np.count_nonzero(weight)), source)
    rows = matrix([batch.rows for batch in read], encoder.n_features)
    chosen: dict[str, Any] = {} if plan.loss is None else {"loss": plan.loss}
    kind: Any = IterativeRegularizationClassifier if task == "classification" else IterativeRegularizationRegressor
    started = time.perf_counter()
    try:
        estimator = kind(kernel=plan.kernel, max_iter=int(iterations), **chosen).fit(
            rows, targets, sample_weight=weight
        )
    except ValueError as error:
        raise ModelError(str(error)) from None
    seconds = time.perf_counter() - started
    if task == "classification":
        estimator.classes_ = labels_of(scored.classes, None)
    progress = Progress(complete=True, number=1, rows=len(weight))
    progress.tally = bad.tally
    estimator._restore(Trained(None, encoder, source.kind, plan, progress))
    return replace(estimator.trained_, model=PathModel(estimator, seconds))


def _coded(task: str, classes: list[Any], targets: list[Any]) -> tuple[ScoredModel, np.ndarray]:
    """What has all labels, sorted where they can be, and the place of each row's label; or numbers."""
    scored = ScoredModel()
    scored.task, scored.classes = task, list(classes)
    if task == "regression":
        return scored, np.concatenate(targets)
    for labels in targets:
        for _, label in scored.codes(labels)[1]:
            scored.check_room_for_a_class()
            scored.classes.append(label)
    with suppress(TypeError):  # labels of several types stay in the order of their first appearance
        scored.classes = sorted(scored.classes)
    return scored, np.concatenate([scored.codes(labels)[0] for labels in targets])

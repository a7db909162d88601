"""Rows that ``fit`` predicts along its pass, and never learns, in the form in which LightGBM takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import DataError
from tunefree.core.rows import Block, n_rows, part
from tunefree.estimators import validation
from tunefree.model_files.progress import POINTS, Evaluated
from tunefree.pool.model import published
from tunefree.pool.targets import RunningMetrics
from tunefree.training.callbacks import Callback, Step

EVERY = 4  # of the points of the history: two in each doubling of the rows


class EvaluationSet(NamedTuple):
    """Rows that are not learned, by the encoder of those that are."""

    name: str
    rows: Block
    y: Any  # as the model takes targets
    weight: np.ndarray


def evaluation_sets(
    estimator: Any, eval_set: Any, eval_names: Any = None, eval_sample_weight: Any = None, eval_exposure: Any = None
) -> list[EvaluationSet]:
    """The sets that arguments of ``fit`` stand for, whose estimator has its columns and classes."""
    pairs = [] if eval_set is None else [eval_set] if isinstance(eval_set, tuple) else eval_set
    if not isinstance(pairs, list) or not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
        raise ValueError("eval_set must be a pair (X, y), or a list of pairs")
    names = [f"valid_{k}" for k in range(len(pairs))] if eval_names is None else list(eval_names)
    if len(names) != len(pairs) or len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"eval_names must be different strings, one for each of the {len(pairs)} sets of eval_set")
    weights = _by_set("eval_sample_weight", eval_sample_weight, len(pairs))
    exposures = _by_set("eval_exposure", eval_exposure, len(pairs))
    sets = []
    for k, (X, y) in enumerate(pairs):
        try:
            rows, y = validation.labelled(estimator, X, y, reset=False, learning=False)
            weight = validation.weights(weights[k], len(y), may_vanish=False)
            y, weight = estimator._evaluated(y, weight, exposures[k])
        except ValueError as error:
            raise DataError(str(error), f"eval_set[{k}]") from None
        sets.append(EvaluationSet(names[k], rows, y, weight))
    return sets


def _by_set(name: str, values: Any, n: int) -> list[Any]:
    """An argument for each of n evaluation sets."""
    values = [None] * n if values is None else values
    if not isinstance(values, list) or len(values) != n:
        raise ValueError(f"{name} must be a list, with an array or None for each of the {n} sets of eval_set")
    return values


class Evaluating(Callback):
    """Evaluates sets at some points of the pass, by a copy of the model: its own would remember the rows."""

    def __init__(self, estimator: Any, sets: list[EvaluationSet], say: Callable[[str], None]) -> None:
        self.estimator, self.sets, self.say = estimator, sets, say
        self.points = POINTS[::EVERY] if sets else ()

    def step(self, trained: Any, step: Step) -> None:
        """Evaluate the sets if a point was reached by these rows."""
        rows = trained.progress.rows
        if any(rows - len(step.row_losses) < point <= rows for point in self.points):
            self.evaluate(trained)

    def evaluate(self, trained: Any) -> None:
        """Record the losses of the sets at this point of the pass, and print them."""
        if not self.sets:
            return
        model = published(trained.model)
        for name, rows, y, weight in self.sets:
            starts = range(0, n_rows(rows), validation.BLOCK)
            blocks = (part(rows, start, start + validation.BLOCK) for start in starts)
            predictions = np.concatenate([model.predict(self.estimator._formed(block)) for block in blocks])
            metrics, rows_learned = RunningMetrics(), trained.progress.progressive[0].rows
            metrics.add(weight, model.losses(y, predictions), model.errors(y, predictions))
            loss, error = metrics.mean_loss(), metrics.mean_error()
            trained.progress.evaluated.append(Evaluated(name, rows_learned, loss, error))
            self.say(f"{rows_learned:,} rows learned, loss of {name} {loss:.6g}")

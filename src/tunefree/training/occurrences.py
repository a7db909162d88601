"""How targets came: their order, where rows of rare classes are, and what weights of classes make of probabilities."""

from __future__ import annotations

import numpy as np

from tunefree.model.targets import FEWEST_ROWS
from tunefree.model_files.progress import Occurrence, Occurrences
from tunefree.model_files.trained import Trained
from tunefree.stream.batch import Origin
from tunefree.training.callbacks import Step


def follow(trained: Trained, step: Step, origin: Origin) -> None:
    """Take note of the targets of rows of the first pass, which were learned: their order, and rows of rare classes.

    Where classes have weights, their probabilities are summed, too, with the weights that rows have without these.

    Parameters
    ----------
    trained : Trained
        Its order and progress are changed.
    step : Step
        Of rows that were read.
    origin : callable
        From a file and the number of a row in it to those that the user knows.
    """
    y, batch = step.learned.target, step.batch
    is_of_classes = trained.model.task == "classification"
    codes = trained.model.codes(y)[0] if is_of_classes else y
    if trained.order is not None:
        trained.order.add(codes)
    if not is_of_classes:
        return
    known = trained.progress.occurrences
    known += [Occurrences() for _ in range(len(known), len(trained.model.classes))]
    for k, count in enumerate(np.bincount(codes, minlength=len(known)).tolist()):
        known[k].rows += count
        if known[k].rows >= FEWEST_ROWS:
            known[k].first = []
        elif count:
            known[k].first += [Occurrence(*origin(batch.file, row)) for row in batch.numbers[codes == k].tolist()]
    if trained.plan.class_weight and trained.model.loss_is_log_loss:
        _sum_probabilities(trained.model.probabilities(step.predictions), codes, batch.weight, known)


def _sum_probabilities(
    probabilities: np.ndarray, codes: np.ndarray, weight: np.ndarray, known: list[Occurrences]
) -> None:
    """Add rows to the sums of classes, row by row, so that they do not depend on where batches are cut."""
    for k, seen in enumerate(known[: probabilities.shape[1]]):
        seen.weight = float(np.append(seen.weight, weight[codes == k]).cumsum()[-1])
        seen.predicted = float(np.append(seen.predicted, weight * probabilities[:, k]).cumsum()[-1])

"""How well a trained model predicts a source with known targets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tunefree.model.targets import RunningMetrics
from tunefree.stream.batch import BadRows
from tunefree.stream.source import Source
from tunefree.workflows.prediction import Predictor, predict
from tunefree.workflows.reading import no_rows
from tunefree.workflows.targets import target_of

CELLS = 1000  # of equal width, in which probabilities of the most probable class are counted
BINS = 15  # of equal mass, into which cells are gathered


class Evaluation(NamedTuple):
    """How a model does on data it has not seen."""

    metrics: RunningMetrics
    squares: float  # weighted sum of squared errors (regression)
    unseen: int  # rows whose label was never seen in training: they count as errors and have no loss
    unseen_weight: float  # sum of their weights
    log_loss: float  # weighted sum of minus the log-probabilities of the classes (classification)
    calibration_error: float  # see Reliability.error (classification)


class Reliability:
    """How often the most probable class is right, by its probability.

    Rows are counted in cells of equal width, so that memory does not grow with their number.
    """

    def __init__(self) -> None:
        self.cells = np.zeros((CELLS, 3))  # weight, weight of rows that are right, weighted sum of probabilities

    def add(self, probabilities: np.ndarray, right: np.ndarray, weight: np.ndarray) -> None:
        """Count rows.

        Parameters
        ----------
        probabilities : (n,) array
            Of the most probable class of each row.
        right : (n,) array of bool
            Whether it is the row's class.
        weight : (n,) array
        """
        cell = np.minimum((probabilities * CELLS).astype(np.int64), CELLS - 1)
        np.add.at(self.cells, cell, np.column_stack([weight, weight * right, weight * probabilities]))

    def error(self) -> float:
        """Expected calibration error of the most probable class, with 15 bins of equal mass.

        In each bin it is the distance between the share of rows that are right and the mean probability; bins count
        by the weight of their rows. A cell is not split: it belongs to the bin in which the middle of its mass lies.

        Examples
        --------
        >>> reliability = Reliability()
        >>> reliability.add(np.full(10, 0.8), np.arange(10) < 7, np.ones(10))
        >>> round(reliability.error(), 6)
        0.1
        """
        mass = self.cells[:, 0]
        if not mass.sum() > 0.0:
            return 0.0
        middles = (np.cumsum(mass) - mass / 2) / mass.sum()
        bins = np.minimum((middles * BINS).astype(np.int64), BINS - 1)
        gaps = np.bincount(bins, self.cells[:, 1] - self.cells[:, 2], BINS)
        return float(np.abs(gaps).sum() / mass.sum())


def evaluate(trained: Predictor, source: Source, bad: BadRows) -> Evaluation:
    """Losses, errors and calibration of a model on a source with known targets.

    Parameters
    ----------
    trained : Trained or StoppedModel
    source : Source
    bad : BadRows
        What happens to rows that cannot be used.

    Returns
    -------
    Evaluation

    Raises
    ------
    DataError
        If there are no rows, or one cannot be used.

    Examples
    --------
    >>> from tunefree import Plan, open_source, train
    >>> source = open_source({"age": [20.0, 60.0] * 100, "rich": ["no", "yes"] * 100})
    >>> evaluate(train(source, Plan(target="rich")), source, BadRows()).metrics.mean_error()
    0.0
    """
    model, reliability = trained.model, Reliability()
    metrics, squares, unseen, unseen_weight, log_loss = RunningMetrics(), 0.0, 0, 0.0, 0.0
    for batch, predictions in predict(trained, source, bad, labelled=True):
        y = target_of(model.task, batch)
        row_losses, errors = model.losses(y, predictions), model.errors(y, predictions)
        is_unseen = np.isnan(row_losses)
        unseen, unseen_weight = unseen + int(is_unseen.sum()), unseen_weight + float(batch.weight[is_unseen].sum())
        metrics.add(batch.weight, np.where(is_unseen, 0.0, row_losses), errors)
        squares += float((batch.weight * np.minimum(errors, 1e150) ** 2).sum())
        if model.task == "classification":
            log_losses, probabilities = model.log_losses(y, predictions), model.probabilities(predictions)
            log_loss += float((batch.weight * np.where(is_unseen, 0.0, log_losses)).sum())
            reliability.add(probabilities.max(axis=1), model.errors(y, probabilities) == 0.0, batch.weight)
    if metrics.rows == 0:
        raise no_rows(source)
    return Evaluation(metrics, squares, unseen, unseen_weight, log_loss, reliability.error())

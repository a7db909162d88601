"""What a trained model predicts of a source, and how well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tunefree.errors import DataError
from tunefree.stream.batch import BadRows, Batch
from tunefree.stream.source import Source
from tunefree.targets import Tally
from tunefree.training import Trained, ahead, encoded, target_of


class Predicted(NamedTuple):
    """Predictions of a batch."""

    batch: Batch
    predictions: np.ndarray  # (n, K) margins, or (n, 1) numbers


def predict(trained: Trained, source: Source, bad: BadRows, labelled: bool = False) -> Iterator[Predicted]:
    """Predict the rows of a source, batch by batch.

    Parameters
    ----------
    trained : Trained
    source : Source
    bad : BadRows
        What happens to rows that cannot be used.
    labelled : bool, default False
        Whether each row must have a target (to be evaluated).
    """
    if source.kind != trained.kind:
        raise DataError(
            f"the model was trained on {trained.kind} data, this is {source.kind}",
            source.name,
            remedy="give data of the same kind, or pass --format",
        )
    types = trained.encoder.types() if source.kind == "table" else None
    linear = trained.model.linear()

    for batch in ahead(encoded(trained.encoder, source.chunks(bad=bad, types=types), bad, False, labelled)):
        yield Predicted(batch, trained.model.predict(batch.rows, linear))


class Evaluation(NamedTuple):
    """How a model does on data it has not seen."""

    tally: Tally
    squares: float  # weighted sum of squared errors (regression)
    unseen: int  # rows whose label was never seen in training: errors, but without a loss
    unseen_weight: float  # sum of their weights


def evaluate(trained: Trained, source: Source, bad: BadRows) -> Evaluation:
    """Loss and error of a model on a labelled source."""
    tally, squares, unseen, unseen_weight = Tally(), 0.0, 0, 0.0
    for batch, predictions in predict(trained, source, bad, labelled=True):
        y = target_of(trained.model, batch)
        suffered, errors = trained.model.losses(y, predictions), trained.model.errors(y, predictions)
        strange = np.isnan(suffered)
        unseen, unseen_weight = unseen + int(strange.sum()), unseen_weight + float(batch.weight[strange].sum())
        tally.add(batch.weight, np.where(strange, 0.0, suffered), errors)
        squares += float((batch.weight * np.minimum(errors, 1e150) ** 2).sum())
    if tally.rows == 0:
        raise DataError("there are no rows", source.name, remedy="check that it is the file you mean")
    return Evaluation(tally, squares, unseen, unseen_weight)

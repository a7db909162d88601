"""Predictions of a model that goes on learning: each row is predicted, and learned after that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tunefree.core.errors import DataError
from tunefree.model_files.trained import Trained, continued
from tunefree.stream.batch import BadRows
from tunefree.stream.formats import TABLE
from tunefree.stream.source import Source
from tunefree.training.reading import ahead, encoded, in_its_notation
from tunefree.training.resuming import check_kind
from tunefree.training.training import learn_batches
from tunefree.workflows.prediction import Predicted


def predict_and_learn(trained: Trained, source: Source, bad: BadRows, kept: Sequence[str] = ()) -> Iterator[Predicted]:
    """Predict the labelled rows of a source, and learn each after it was predicted.

    Parameters
    ----------
    trained : Trained
        Its model and encoder are changed.
    source : Source
    bad : BadRows
        What happens to rows that cannot be used.
    kept : sequence of str
        Columns that batches keep as they were read.

    Yields
    ------
    Predicted

    Raises
    ------
    DataError, ModelError
        As in :func:`tunefree.workflows.prediction.predict`, and if the model is a checkpoint.

    Examples
    --------
    >>> from tunefree import Plan, open_source
    >>> from tunefree.training.training import train
    >>> source = open_source({"age": [20.0, 60.0] * 100, "rich": ["no", "yes"] * 100})
    >>> trained = train(source, Plan(target="rich", learner="scinol2"))
    >>> [len(batch.predictions) for batch in predict_and_learn(trained, source, BadRows())]
    [200]
    """
    check_kind(trained, source)
    if kept and source.kind != TABLE:
        raise DataError(f"{source.kind} text has no columns", source.name, remedy=f"leave out {', '.join(kept)}")
    encoder, chunks = in_its_notation(source, trained.encoder, bad, kept, grows=True)
    going = continued(replace(trained, encoder=encoder))
    batches = encoded(encoder, chunks, bad, True, True, kept, is_live=source.is_live)
    for step in learn_batches(going, ahead(batches)):
        yield Predicted(step.piece.read.batch, step.predictions)

"""Explanations of predictions: the contribution of each column, for each row of a source."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tunefree.core.errors import ModelError
from tunefree.explanation.decomposition import Decomposition, identified, output_of
from tunefree.explanation.dependence import Picture, picture
from tunefree.losses.objectives import chosen
from tunefree.model_files.trained import Trained
from tunefree.stream.batch import BadRows
from tunefree.stream.layout import Layout
from tunefree.stream.source import Source
from tunefree.workflows.prediction import Predicted, apart, identities, labels_of, marked, predict, write_batches

OTHER = "(other)"
COLUMNS = ("row", "tag", "prediction", "class", "margin", OTHER)  # reserved column names of the table


class Explained(NamedTuple):
    """Contributions to the predictions of a batch."""

    classes: np.ndarray  # (n,) index of the class whose margin is explained; 0 in regression
    margins: np.ndarray  # (n,) margins of these classes, or predicted numbers
    contributions: np.ndarray  # (n, terms); each row sums to its margin


def decomposition_of(trained: Trained) -> Decomposition:
    """The terms of a trained model, relative to their means over the rows that it keeps, if it keeps any."""
    return Decomposition(trained.model, Layout.of_encoder(trained.encoder))


def terms_of(trained: Trained) -> Decomposition | None:
    """The terms of a model of any kind; None if it has no terms, or keeps no reference rows."""
    if trained.model.kind == "path":
        return None
    try:
        decomposition = decomposition_of(trained)
    except ModelError:  # the model consists of kernels only
        return None
    return None if decomposition.reference.rows is None else decomposition


def picture_of(trained: Trained, decomposition: Decomposition | None, label: Any = None, **options: Any) -> Picture:
    """The dependence curves of a model; ``options`` are passed to :func:`tunefree.explanation.dependence.picture`."""
    if decomposition is None:
        decomposition_of(trained)  # raises a specific error if there is no decomposition
        raise ModelError("the model keeps no rows that it learned, over which to draw it; CurveDisplay draws it over X")
    return picture(decomposition, target=label, name=trained.plan.target, **options)


class Explainer:
    """Explains the predictions of batches.

    ``label``: the class whose margin is explained; by default the second of two classes, or the predicted one of more
    classes. Raises a ModelError if the class does not exist.
    """

    def __init__(self, trained: Any, decomposition: Decomposition, label: Any = None) -> None:
        self.model, self.decomposition, self.names = trained.model, decomposition, decomposition.names
        classes, n_outputs = self.model.classes, self.model.n_outputs
        self.output = None
        if label is not None or (self.model.task == "classification" and n_outputs == 1):
            self.output = output_of(classes, n_outputs, classes[-1] if label is None else label)

    def of(self, predicted: Predicted) -> Explained:
        """The contributions to the predictions of a batch."""
        predictions, contributions = predicted.predictions, self.decomposition.contributions(predicted.batch.rows)
        n, margins = len(predictions), identified(self.model.objective, predictions)
        if margins.shape[1] > 1:
            classes = chosen(predictions) if self.output is None else np.full(n, self.output[0])
            rows = np.arange(n)
            return Explained(classes, margins[rows, classes], contributions[rows, :, classes])
        sign = 1.0 if self.output is None else self.output[1]
        return Explained(np.full(n, int(sign > 0.0)), sign * margins[:, 0], sign * contributions[:, :, 0])

    def columns(self, explained: Explained, kept: np.ndarray | None = None) -> dict[str, Any]:
        """Columns of the class, the margin and the contributions of terms; terms that are not kept are summed."""
        contributions, others = explained.contributions, np.arange(1, len(self.names))
        kept = others if kept is None else kept
        table = {}
        if self.model.task == "classification":
            table["class"] = labels_of(self.model, explained.classes)
        table |= {"margin": explained.margins, self.names[0]: contributions[:, 0]}
        term_names = apart([self.names[term] for term in kept.tolist()], {*COLUMNS, self.names[0]})
        table |= {name: contributions[:, term] for term, name in zip(kept.tolist(), term_names, strict=True)}
        others = np.setdiff1d(others, kept)
        return table | ({OTHER: contributions[:, others].sum(axis=1)} if len(others) else {})


def write(
    trained: Trained,
    source: Source,
    output: str,
    bad: BadRows,
    label: Any = None,
    top: int | None = None,
    ids: tuple[str, ...] = (),
) -> tuple[int, Decomposition]:
    """Write explanations of a source to a file, see :func:`tunefree.workflows.prediction.write`.

    ``label``: as for :class:`Explainer`.
    ``top``: the number of terms that get a column, by mean absolute contribution; the others are summed. The source is
    then read twice. By default all terms get a column.
    ``ids``: columns of the data that are copied to the front of the table.
    Returns: the number of rows, and the terms.
    Also raises a ModelError if the model consists of kernels only or the class does not exist, and a DataError if
    standard input would be read twice.
    """
    decomposition, kept = decomposition_of(trained), None
    explainer = Explainer(trained, decomposition, label)
    if top is not None and top < len(decomposition.names) - 1:
        source.check_rewindable("leave `top` out")
        total = np.zeros(len(decomposition.names))
        for predicted in predict(trained, source, BadRows(bad.skip)):
            total += np.abs(explainer.of(predicted).contributions).sum(axis=0)
        kept = 1 + np.argsort(-total[1:], kind="stable")[: max(top, 0)]  # term 0 is the constant

    def table_of(predicted: Predicted) -> Any:
        table = marked(trained.model, predicted, bad.skip) | explainer.columns(explainer.of(predicted), kept)
        return pa.record_batch(identities(predicted.batch, ids, set(table)) | table)

    rows = write_batches(map(table_of, predict(trained, source, bad, kept=ids)), output)
    return rows, decomposition

"""Why a model predicts what it does: contributions of columns and of pairs of columns, for each row of a source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tunefree.additive.sample import Sample
from tunefree.core.errors import DataError, ModelError
from tunefree.core.rows import Table, as_table
from tunefree.explanation.decomposition import Decomposition, identified
from tunefree.explanation.fidelity import Fidelity
from tunefree.explanation.picture import Picture, output_of, picture
from tunefree.losses.objectives import chosen
from tunefree.stream.batch import BadRows, Batch
from tunefree.stream.layout import Layout
from tunefree.stream.source import Source, open_source
from tunefree.workflows.prediction import Predicted, Predictor, marks, predict, writer
from tunefree.workflows.reading import no_rows
from tunefree.workflows.training import Trained

OTHER = "(other)"
COLUMNS = ("row", "tag", "prediction", "class", "margin", OTHER)  # of the table, which no term may be called


class Explained(NamedTuple):
    """Contributions to the predictions of a batch."""

    batch: Batch
    predictions: np.ndarray  # (n, K) of the model
    classes: np.ndarray  # (n,) the class of each row whose margin is explained; 0 in regression
    contributions: np.ndarray  # (n, terms) to this margin


class Written(NamedTuple):
    """What was written."""

    rows: int
    fidelity: Fidelity
    decomposition: Decomposition


def decomposition_of(trained: Trained, rows: Table | None = None) -> Decomposition:
    """The terms of a trained model.

    Parameters
    ----------
    trained : Trained
    rows : Table, optional
        Over which terms have mean 0; by default the model's own sample.
    """
    return Decomposition(trained.model, Layout.of_encoder(trained.encoder), rows)


def terms_of(trained: Predictor, data: Any = None) -> Decomposition | None:
    """The terms of a model of any kind; None if it has none that can be compared.

    Parameters
    ----------
    trained : Trained or StoppedModel
    data : str, path, sequence of them, or a table, optional
        Over which terms are compared; by default the model's own sample.

    Raises
    ------
    ModelError
        If there are data, and no member has weights of columns.
    """
    if not isinstance(trained, Trained):
        return None
    if data is not None:
        return decomposition_of(trained, sample_of(trained, open_source(data), BadRows()))
    try:
        found = decomposition_of(trained)
    except ModelError:  # kernels alone
        return None
    return None if found.sample is None else found


def picture_of(trained: Trained, found: Decomposition | None, label: Any = None) -> Picture:
    """What to draw of a model.

    Parameters
    ----------
    trained : Trained
    found : Decomposition, optional
        Its terms.
    label : label, optional
        The class whose margin is drawn.

    Raises
    ------
    ModelError
        If there are no terms to compare.
    """
    if found is None:
        raise ModelError("the model keeps no sample of the rows it learned, over which to draw it; pass --rows DATA")
    return picture(found, target=label, name=trained.plan.target)


def sample_of(trained: Trained, source: Source, bad: BadRows) -> Table:
    """Evenly spaced rows of a source, at most 4096.

    Parameters
    ----------
    trained : Trained
        Its encoder reads the source.
    source : Source
    bad : BadRows

    Raises
    ------
    DataError
        If there are no rows, or one cannot be used.
    """
    sample = None
    for batch, _ in predict(trained, source, bad):
        rows = as_table(batch.rows)
        sample = sample or Sample(rows)
        sample.add(rows)
    if sample is None or not len(sample.values):
        raise no_rows(source)
    return sample.rows


def explain(
    trained: Trained,
    source: Source,
    bad: BadRows,
    label: Any = None,
    found: Decomposition | None = None,
    fidelity: Fidelity | None = None,
) -> Iterator[Explained]:
    """Explain the predictions of the rows of a source, batch by batch.

    Parameters
    ----------
    trained : Trained
    source : Source
    bad : BadRows
        What happens to rows that cannot be used.
    label : label, optional
        The class whose margin is explained. By default the second of two classes, and of more classes the one that is
        predicted.
    found : Decomposition, optional
        The terms of the model, if they are known.
    fidelity : Fidelity, optional
        Counts the rows.

    Yields
    ------
    Explained
        Its terms are ``found.column_names``.

    Raises
    ------
    ModelError
        If no member has weights of columns, or there is no such class.
    DataError
        If the source is of another kind than what the model was trained on, or a row cannot be used.

    Examples
    --------
    >>> from tunefree import Plan, open_source, train
    >>> source = open_source({"age": [20.0, 60.0] * 200, "rich": ["no", "yes"] * 200})
    >>> trained = train(source, Plan(target="rich"))
    >>> decomposition_of(trained).column_names
    ['(constant)', 'age']
    >>> [batch.contributions.shape for batch in explain(trained, source, BadRows())]
    [(400, 2)]
    """
    model, found = trained.model, found or decomposition_of(trained)
    fidelity = fidelity or Fidelity()
    asked = None
    if label is not None or (model.task == "classification" and model.n_outputs == 1):
        asked = output_of(model.classes, model.n_outputs, model.classes[-1] if label is None else label)
    for predicted in predict(trained, source, bad):
        contributions = found.contributions(predicted.batch.rows)
        fidelity.add(identified(model.objective, predicted.predictions), contributions.sum(axis=1))
        yield _of_class(predicted, found.by_column(contributions), asked)


def _of_class(predicted: Predicted, contributions: np.ndarray, asked: tuple[int, float] | None) -> Explained:
    """Contributions to the margin of the class asked for, or of the one that is predicted."""
    batch, predictions = predicted
    n, _, n_outputs = contributions.shape
    if n_outputs > 1:
        classes = chosen(predictions) if asked is None else np.full(n, asked[0])
        return Explained(batch, predictions, classes, contributions[np.arange(n), :, classes])
    sign = 1.0 if asked is None else asked[1]
    return Explained(batch, predictions, np.full(n, int(sign > 0.0)), sign * contributions[:, :, 0])


def write(
    trained: Trained, source: Source, output: str, bad: BadRows, label: Any = None, top: int | None = None
) -> Written:
    """Explain the predictions of a source in a CSV or Parquet file, or as CSV on standard output.

    Parameters
    ----------
    trained, source, bad, label
        As in :func:`explain`.
    output : str
        Name of a file that ends in .csv, .parquet or .pq; ``"-"`` for standard output.
    top : int, optional
        So many terms have a column, those of the largest mean absolute contribution; the others are added up. The
        source is then read twice. By default all have one.

    Returns
    -------
    Written

    Raises
    ------
    DataError, ModelError
        As in :func:`explain`, and if the file cannot be written, or standard input is to be read twice.
    """
    found, fidelity, rows = decomposition_of(trained), Fidelity(), 0
    kept = np.arange(1, len(found.column_names))
    if top is not None and top < len(kept):
        if not source.rewindable:
            raise DataError("standard input can be read only once", remedy="save it to a file, or leave --top out")
        kept = _largest(explain(trained, source, BadRows(bad.skip), label, found), len(found.column_names), top)
    with writer(output) as put:
        for explained in explain(trained, source, bad, label, found, fidelity):
            put(columns(trained, explained, found.column_names, kept, bad.skip))
            rows += len(explained.classes)
    return Written(rows, fidelity, found)


def _largest(batches: Iterator[Explained], n_terms: int, top: int) -> np.ndarray:
    """The terms of the largest mean absolute contribution, in order; the constant is none."""
    total = np.zeros(n_terms)
    for explained in batches:
        total += np.abs(explained.contributions).sum(axis=0)
    return 1 + np.argsort(-total[1:], kind="stable")[: max(top, 0)]


def columns(trained: Trained, explained: Explained, names: list[str], kept: np.ndarray, numbered: bool = False) -> Any:
    """A record batch with predictions, the margins that are explained, and contributions that add up to them.

    Parameters
    ----------
    trained : Trained
    explained : Explained
    names : list of str
        Of its terms.
    kept : (k,) array
        The terms that have a column.
    numbered : bool, default False
        Whether a first column ``row`` has each row's number in its file, counted from 1.

    Returns
    -------
    pyarrow.RecordBatch
    """
    model, contributions, table = trained.model, explained.contributions, marks(explained.batch, numbered)
    if model.task == "regression":
        table["prediction"] = explained.predictions[:, 0]
    else:
        labels = pa.array(model.classes)
        table["prediction"] = labels.take(pa.array(chosen(explained.predictions)))
        table["class"] = labels.take(pa.array(explained.classes))
    table["margin"] = contributions.sum(axis=1)
    table[names[0]] = contributions[:, 0]
    for term, name in zip(kept.tolist(), _apart([names[term] for term in kept.tolist()], names[0]), strict=True):
        table[name] = contributions[:, term]
    others = np.setdiff1d(np.arange(1, len(names)), kept)
    return pa.record_batch(table | ({OTHER: contributions[:, others].sum(axis=1)} if len(others) else {}))


def _apart(names: list[str], constant: str) -> list[str]:
    """Names of columns of the table, all different."""
    taken, made = {*COLUMNS, constant}, []
    for name in names:
        while name in taken:
            name += "'"
        taken.add(name)
        made.append(name)
    return made

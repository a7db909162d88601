"""Predictions of a source, and files of them; a file is written whole or not at all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from tunefree.core.errors import ModelError
from tunefree.core.storage import whole_file
from tunefree.losses.objectives import chosen
from tunefree.model.targets import ScoredModel
from tunefree.stream.batch import BadRows, Batch
from tunefree.stream.source import Source
from tunefree.workflows.plan import Plan
from tunefree.workflows.reading import ahead, encoded, types_of
from tunefree.workflows.resuming import check_kind


class Predictor(Protocol):
    """What a model file of any kind holds, as far as predicting is concerned."""

    model: Any  # a ScoredModel with a predictor()
    encoder: Any
    kind: str  # of the encoder
    plan: Plan


class Predicted(NamedTuple):
    """Predictions of a batch."""

    batch: Batch
    predictions: np.ndarray  # (n, K) margins, or (n, 1) numbers


def predict(trained: Predictor, source: Source, bad: BadRows, labelled: bool = False) -> Iterator[Predicted]:
    """Predict the rows of a source, batch by batch.

    Parameters
    ----------
    trained : Trained or StoppedModel
    source : Source
    bad : BadRows
        What happens to rows that cannot be used.
    labelled : bool, default False
        Whether each row must have a target.

    Yields
    ------
    Predicted

    Raises
    ------
    DataError
        If the source is of another kind than what the model was trained on, or a row cannot be used.
    """
    check_kind(trained, source)
    chunks = source.chunks(bad=bad, types=types_of(source, trained.encoder))
    predicted = trained.model.predictor()
    for batch in ahead(encoded(trained.encoder, chunks, bad, learning=False, labelled=labelled)):
        yield Predicted(batch, predicted(batch.rows))


def columns(model: ScoredModel, predicted: Predicted, numbered: bool = False) -> Any:
    """A record batch with the column ``prediction``, and for classes a column of probabilities each.

    Parameters
    ----------
    model : ScoredModel
    predicted : Predicted
    numbered : bool, default False
        Whether a first column ``row`` has each row's number in its file, counted from 1.

    Returns
    -------
    pyarrow.RecordBatch
    """
    table = marks(predicted.batch, numbered)
    if model.task == "regression":
        return pa.record_batch(table | {"prediction": predicted.predictions[:, 0]})
    classes = pa.array(model.classes)
    table["prediction"] = classes.take(pa.array(chosen(predicted.predictions)))
    values = model.probabilities(predicted.predictions)
    return pa.record_batch(table | {f"probability[{label}]": values[:, k] for k, label in enumerate(model.classes)})


def marks(batch: Batch, numbered: bool) -> dict[str, Any]:
    """Columns that tell which row of its file a prediction is of; parameters as in :func:`columns`."""
    table: dict[str, Any] = {"row": batch.numbers} if numbered else {}
    return table if batch.tags is None else table | {"tag": batch.tags}


def write(trained: Predictor, source: Source, output: str, bad: BadRows) -> int:
    """Predict a source into a CSV or Parquet file, or as CSV to standard output.

    Parameters
    ----------
    trained : Trained or StoppedModel
    source : Source
    output : str
        Name of a file that ends in .csv, .parquet or .pq; ``"-"`` for standard output.
    bad : BadRows
        What happens to rows that cannot be used. If they are skipped, a first column ``row`` numbers the others.

    Returns
    -------
    int
        Number of predictions.

    Raises
    ------
    DataError
        If a row cannot be used.
    ModelError
        If the file cannot be written, or its name ends otherwise. An earlier file of this name is untouched.
    """
    written = 0
    with writer(output) as put:
        for predicted in predict(trained, source, bad):
            put(columns(trained.model, predicted, numbered=bad.skip))
            written += len(predicted.predictions)
    return written


@contextmanager
def writer(output: str) -> Iterator[Callable[[Any], None]]:
    """A function that writes record batches to a file; parameters and errors as in :func:`write`.

    The file has its name only once all are written.
    """
    if output == "-":
        with _batches(sys.stdout.buffer, csv.CSVWriter) as put:
            yield put
        sys.stdout.buffer.flush()
        return
    path = Path(output)
    kinds = {".csv": csv.CSVWriter, ".parquet": parquet.ParquetWriter, ".pq": parquet.ParquetWriter}
    if path.suffix.lower() not in kinds:
        raise ModelError(f"{output}: tables are written as .csv or .parquet; name the file so")
    with whole_file(path) as file, _batches(file, kinds[path.suffix.lower()]) as put:
        yield put


@contextmanager
def _batches(file: Any, kind: Callable[[Any, Any], Any]) -> Iterator[Callable[[Any], None]]:
    """A function that writes record batches with the schema of the first; without any, nothing is written."""
    writers: list[Any] = []

    def put(batch: Any) -> None:
        if not writers:
            writers.append(kind(file, batch.schema))
        writers[0].write_table(pa.Table.from_batches([batch]))

    yield put
    for writer in writers:
        writer.close()

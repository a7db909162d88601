"""Predictions as tables: columns for people and programs, written whole or not at all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

from tunefree.core.errors import ModelError
from tunefree.core.storage import whole_file
from tunefree.losses.objectives import chosen
from tunefree.model.targets import ScoredModel
from tunefree.stream.batch import BadRows
from tunefree.stream.source import Source
from tunefree.workflows.evaluation import Predicted, predict
from tunefree.workflows.training import Predictor


def columns(model: ScoredModel, predicted: Predicted, numbered: bool = False) -> Any:
    """A record batch: ``prediction``; for classes their probabilities too.

    Parameters
    ----------
    model : Judged
    predicted : Predicted
    numbered : bool, default False
        Whether a first column ``row`` tells each row's number in its file, counted from 1.
    """
    table: dict[str, Any] = {"row": predicted.batch.numbers} if numbered else {}
    if predicted.batch.tags is not None:
        table["tag"] = predicted.batch.tags
    if model.task == "regression":
        return pa.record_batch(table | {"prediction": predicted.predictions[:, 0]})
    classes = pa.array(model.classes)
    table["prediction"] = classes.take(pa.array(chosen(predicted.predictions)))
    values = model.probabilities(predicted.predictions)
    return pa.record_batch(table | {f"probability[{label}]": values[:, k] for k, label in enumerate(model.classes)})


def write(trained: Predictor, source: Source, output: str, bad: BadRows) -> int:
    """Predict a source into a CSV or Parquet file, or as CSV to standard output ("-").

    Returns
    -------
    int
        Number of predictions; a row that was skipped has none, and the column ``row`` tells which these are.

    Raises
    ------
    ModelError
        If the file cannot be written or its name ends otherwise; an earlier file stays untouched.
    """
    written = 0
    with _writer(output) as put:
        for predicted in predict(trained, source, bad):
            put(columns(trained.model, predicted, numbered=bad.skip))
            written += len(predicted.predictions)
    return written


@contextmanager
def _writer(output: str) -> Iterator[Callable[[Any], None]]:
    """A function that writes record batches; the file takes its name once all is written."""
    if output == "-":
        with _batches(sys.stdout.buffer, csv.CSVWriter) as put:
            yield put
        sys.stdout.buffer.flush()
        return
    path = Path(output)
    kinds = {".csv": csv.CSVWriter, ".parquet": parquet.ParquetWriter, ".pq": parquet.ParquetWriter}
    if path.suffix.lower() not in kinds:
        raise ModelError(f"{output}: predictions are written as .csv or .parquet; name the file so")
    with whole_file(path) as file, _batches(file, kinds[path.suffix.lower()]) as put:
        yield put


@contextmanager
def _batches(file: Any, kind: Callable[[Any, Any], Any]) -> Iterator[Callable[[Any], None]]:
    """The schema is that of the first batch; nothing predicted, nothing written."""
    writers: list[Any] = []

    def put(batch: Any) -> None:
        if not writers:
            writers.append(kind(file, batch.schema))
        writers[0].write_table(pa.Table.from_batches([batch]))

    yield put
    for writer in writers:
        writer.close()

"""Predictions of a source and weights of a model as tables; files are written atomically."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from tunefree.core.errors import DataError, ModelError
from tunefree.core.numbers import MOST
from tunefree.core.registry import names_in
from tunefree.core.storage import whole_file
from tunefree.explanation.decomposition import linear_weights
from tunefree.losses.objectives import chosen
from tunefree.model_files.trained import Trained, continued
from tunefree.pool.quantiles import class_sets, target_intervals, target_quantiles
from tunefree.pool.targets import ScoredModel
from tunefree.stream.batch import BadRows, Batch
from tunefree.stream.columns import decoded
from tunefree.stream.formats import TABLE
from tunefree.stream.source import Source
from tunefree.training.reading import ahead, encoded, in_its_notation
from tunefree.training.resuming import check_kind
from tunefree.workflows.output_columns import PLAIN, OutputColumns

WRITERS: dict[str, Any] = {".csv": csv.CSVWriter, ".parquet": parquet.ParquetWriter, ".pq": parquet.ParquetWriter}


class Predicted(NamedTuple):
    """Predictions of a batch."""

    batch: Batch
    predictions: np.ndarray  # (n, K) margins, or (n, 1) numbers


def predict(
    trained: Trained,
    source: Source,
    bad: BadRows,
    labelled: bool = False,
    kept: Sequence[str] = (),
    progressive: bool = False,
) -> Iterator[Predicted]:
    """Predict the rows of a source, batch by batch.

    ``labelled``: whether each row must have a target.
    ``kept``: columns that batches keep unchanged, whether or not the model uses them.
    ``progressive``: whether each row is learned after it is predicted, which changes the model and the encoder. Each
    row must then have a target.
    Raises a DataError if the kind of the source differs from the training data, a row cannot be used or a column does
    not exist, and a ModelError if a checkpoint would learn.
    """
    check_kind(trained, source)
    kept = names_in(kept)
    if kept and source.kind != TABLE:
        raise DataError(f"{source.kind} text has no columns", source.name, remedy=f"leave out {', '.join(kept)}")
    encoder = trained.encoder
    if source.kind == TABLE and trained.model.task == "classification":
        encoder = copy(encoder)
        encoder.labels = tuple(map(str, trained.model.classes))
    encoder, chunks = in_its_notation(source, encoder, bad, kept, grows=progressive)
    batches = ahead(encoded(encoder, chunks, bad, progressive, labelled or progressive, kept))
    if not progressive:
        yield from (Predicted(batch, trained.model.predict(batch.rows)) for batch in batches)
        return
    from tunefree.training.training import learn_batches  # predictions do not need it

    for step in learn_batches(continued(replace(trained, encoder=encoder)), batches):
        yield Predicted(step.batch, step.predictions)


def columns(model: ScoredModel, predicted: Predicted, numbered: bool = False, layout: OutputColumns = PLAIN) -> Any:
    """A record batch with the column ``prediction``, and a column of probabilities for each class.

    ``numbered``: whether the first column is ``row``, the row number in the file, counted from 1.
    """
    table = marked(model, predicted, numbered)
    if model.task == "classification":
        values = model.probabilities(predicted.predictions)
        if layout.threshold is not None:
            table["prediction"] = labels_of(model, values[:, 1] >= layout.threshold)
        if layout.top is None:
            table |= {f"probability[{label}]": values[:, k] for k, label in enumerate(model.classes)}
        else:
            order = np.argsort(-values, axis=1, kind="stable")[:, : layout.top]
            for k, codes in enumerate(order.T, 1):
                table[f"class {k}"] = labels_of(model, codes)
                table[f"probability {k}"] = values[np.arange(len(codes)), codes]
    for name, level, row_values in sureness(model, predicted, layout):
        if name == "interval":
            table |= {f"low[{level:g}]": row_values[:, 0], f"high[{level:g}]": row_values[:, 1]}
        elif name == "quantiles":
            table[f"quantile[{level:g}]"] = row_values
        else:
            table[f"set[{level:g}]"] = [json.dumps(labels, ensure_ascii=False) for labels in row_values]
    return pa.record_batch(identities(predicted.batch, layout.ids, {*table}) | table)


def marked(model: ScoredModel, predicted: Predicted, numbered: bool) -> dict[str, Any]:
    """Columns of row numbers if ``numbered``, of tags if rows have them, and of predictions."""
    batch, predictions = predicted
    table: dict[str, Any] = {"row": batch.numbers} if numbered else {}
    if batch.tags is not None:
        table["tag"] = batch.tags
    if model.task == "regression":
        return table | {"prediction": numbers_of(model, predictions, batch)}
    return table | {"prediction": labels_of(model, chosen(predictions))}


def labels_of(model: ScoredModel, codes: np.ndarray) -> Any:
    """The labels of classes as an Arrow array."""
    return as_array(model.classes).take(pa.array(codes.astype(np.int64)))


def as_array(labels: Sequence[Any]) -> Any:
    """Labels as an Arrow array; integers beyond 64 bits become strings.

    >>> [as_array(labels).type for labels in ([1, 2], [2**63, 2**63 + 1], [-1, 2**63])]
    [DataType(int64), DataType(uint64), DataType(string)]
    """
    for type_ in (None, pa.uint64()):
        with suppress(OverflowError):
            return pa.array(labels, type_)
    return pa.array(list(map(str, labels)))


def sureness(model: Any, predicted: Predicted, layout: OutputColumns) -> Iterator[tuple[str, float, Any]]:
    """The uncertainty of predictions in a layout: the name, the level, and the values of the rows.

    Values are intervals (n, 2), quantiles (n,), or a list of label sets with the most probable label first.
    """
    (batch, predictions), exposure = predicted, predicted.batch.exposure
    rows = batch.rows
    if layout.interval:
        bounds = target_intervals(model, rows, predictions, np.array(layout.interval), exposure)
        yield from (("interval", level, bounds[:, k]) for k, level in enumerate(layout.interval))
    if layout.quantiles:
        bounds = target_quantiles(model, rows, predictions, np.array(layout.quantiles), exposure)
        yield from (("quantiles", level, bounds[:, k]) for k, level in enumerate(layout.quantiles))
    if layout.set:
        sets = class_sets(model, rows, predictions, np.array(layout.set), layout.conditional is not None)
        order = np.argsort(-model.probabilities(predictions), axis=1, kind="stable").tolist()
        for level, level_sets in zip(layout.set, np.moveaxis(sets, 1, 0), strict=True):
            pairs = zip(order, level_sets, strict=True)
            yield "set", level, [[model.classes[c] for c in codes if is_in[c]] for codes, is_in in pairs]


def numbers_of(model: ScoredModel, predictions: np.ndarray, batch: Batch) -> np.ndarray:
    """The predicted numbers (n,), multiplied by the exposures of the rows if they have any."""
    numbers, exposure = model.responses(predictions), batch.exposure
    if exposure is None:
        return numbers
    with np.errstate(over="ignore"):
        return np.minimum(numbers * exposure, MOST)


def identities(batch: Batch, ids: Sequence[str], taken: set[str]) -> dict[str, Any]:
    """The columns that a batch has kept unchanged, renamed where a name is taken."""
    arrays = [] if batch.columns is None else [decoded(array) for array in batch.columns.columns]
    return dict(zip(apart(ids, taken), arrays, strict=True))


def apart(names: Sequence[str], taken: set[str]) -> list[str]:
    """Make column names distinct from each other and from the names already taken.

    >>> apart(["age", "margin", "age"], {"margin"})
    ['age', "margin'", "age'"]
    """
    taken, distinct = set(taken), []
    for name in names:
        while name in taken:
            name += "'"
        taken.add(name)
        distinct.append(name)
    return distinct


def write(trained: Trained, source: Source, output: str, bad: BadRows, layout: OutputColumns = PLAIN) -> int:
    """Predict a source into a CSV or Parquet file, or as CSV to standard output.

    ``output``: a file name with the extension .csv, .parquet or .pq; ``"-"`` for standard output.
    ``bad``: the handling of rows that cannot be used. If they are skipped, a column ``row`` has the row numbers.
    Raises a ModelError if the file cannot be written or has another extension; an existing file is then unchanged.
    """
    layout.check(trained.model)
    predictions = predict(trained, source, bad, kept=layout.ids)
    return write_batches((columns(trained.model, predicted, bad.skip, layout) for predicted in predictions), output)


def write_batches(batches: Iterable[Any], output: str) -> int:
    """Write record batches to a file; returns the number of rows. Parameters and errors are as in :func:`write`.

    The file gets its final name once all batches are written.
    """
    is_stream, path = output == "-", Path(output)
    kind = csv.CSVWriter if is_stream else WRITERS.get(path.suffix.lower())
    if kind is None:
        raise ModelError(f"{output}: tables are written as .csv or .parquet; name the file so")
    rows, writer = 0, None
    with nullcontext(sys.stdout.buffer) if is_stream else whole_file(path) as file:
        for batch in batches:
            batch = batch if kind is parquet.ParquetWriter else _without_lists(batch)
            writer = writer or kind(file, batch.schema)  # the first batch defines the schema
            writer.write_table(pa.Table.from_batches([batch]))
            if is_stream:
                file.flush()
            rows += batch.num_rows
        if writer is not None:
            writer.close()
        if is_stream:
            file.flush()
    return rows


def _without_lists(batch: Any) -> Any:
    """A record batch with nested values as JSON strings, because CSV has no nested types."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    for name, array in columns.items():
        if pa.types.is_nested(array.type):
            texts = [None if value is None else json.dumps(value, default=str) for value in array.to_pylist()]
            columns[name] = pa.array(texts)
    return pa.record_batch(columns)


def write_weights(trained: Trained, output: str) -> int:
    """Write the weights of all features, of all classes, to a CSV or Parquet file; returns the number of features.

    The margin is weights[0] + sum of weights[j] * x_j with the raw values x_j; for two classes, the margin of the
    second.
    Raises a ModelError if the model is not a single linear learner on raw rows, or the file cannot be written.
    """
    model, names = trained.model, trained.encoder.names()
    weights = model.linear_weights() if model.kind == "path" else linear_weights(model, len(names))
    labels = model.classes if model.n_outputs > 1 else model.classes[-1:]
    columns = [f"weight[{label}]" for label in labels] if model.task == "classification" else ["weight"]
    table = {"feature": pa.array(names, pa.string())} | dict(zip(columns, weights.T, strict=True))
    return write_batches([pa.record_batch(table)], output)

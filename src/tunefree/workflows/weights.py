"""The weights of a trained model as a table, in the units of the data."""

from __future__ import annotations

import pyarrow as pa

from tunefree.explanation.decomposition import Weights, linear_weights
from tunefree.model_files.trained import Trained
from tunefree.workflows.prediction import writer


def write(trained: Trained, output: str) -> Weights:
    """Write the weights of all features, of all classes, to a CSV or Parquet file.

    The margin is weights[0] + sum of weights[j] * x_j, with x_j as it stands in the data; of two classes it is that of
    the second.

    ``output``: name of a file that ends in .csv, .parquet or .pq; ``"-"`` for CSV on standard output.
    Raises a ModelError if the model is not one linear learner on raw rows, or the file cannot be written.
    """
    model, names = trained.model, trained.encoder.names()[1:]
    weights = model.linear_weights(names) if model.kind == "path" else linear_weights(model, names)
    labels = model.classes if model.n_outputs > 1 else model.classes[-1:]
    columns = [f"weight[{label}]" for label in labels] if model.task == "classification" else ["weight"]
    table = {"feature": pa.array(weights.names, pa.string())} | dict(zip(columns, weights.weights.T, strict=True))
    with writer(output) as put:
        put(pa.record_batch(table))
    return weights

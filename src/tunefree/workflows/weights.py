"""The weights of a trained model as a table, in the units of the data."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tunefree.explanation.weights import Weights, linear_weights
from tunefree.model_files.trained import Trained
from tunefree.workflows.prediction import writer


def weights_of(trained: Trained) -> Weights:
    """A model's weights: margin = weights[0] + sum of weights[j] * x_j, with x_j as it stands in the data.

    Raises a ModelError if the model is not one linear learner on raw rows.
    """
    model, names = trained.model, trained.encoder.names()[1:]
    return model.linear_weights(names) if model.kind == "path" else linear_weights(model, names)


def write(trained: Trained, output: str) -> Weights:
    """Write the weights of all features, of all classes, to a CSV or Parquet file.

    ``output``: name of a file that ends in .csv, .parquet or .pq; ``"-"`` for CSV on standard output.
    Raises a ModelError if the model is not one linear learner on raw rows, or the file cannot be written.

    >>> from tunefree import train
    >>> rows = {"age": [20.0, 60.0] * 200, "rich": ["no", "yes"] * 200}
    >>> trained = train(rows, target="rich", learner="scinol2").trained_
    >>> table(trained.model, weights_of(trained)).column_names
    ['feature', 'weight[yes]']
    """
    weights = weights_of(trained)
    with writer(output) as put:
        put(table(trained.model, weights))
    return weights


def table(model: Any, weights: Weights) -> Any:
    """A record batch with a row for each feature: its name, and its weight for the prediction, or for each class.

    Returns: of two classes there are the weights of the second's margin.
    """
    labels = model.classes if model.n_outputs > 1 else model.classes[-1:]
    names = [f"weight[{label}]" for label in labels] if model.task == "classification" else ["weight"]
    columns = {name: weights.weights[:, k] for k, name in enumerate(names)}
    return pa.record_batch({"feature": pa.array(weights.names, pa.string())} | columns)

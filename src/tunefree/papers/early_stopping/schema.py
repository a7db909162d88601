"""What files of paths hold, checked before anything is made of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.schema import FLOATS, Array, Flag, Mapping, Number
from tunefree.model_files.schema_parts import CLASSES, FINITE, SIZE, TASK
from tunefree.model_files.schemas import ENCODED, ESTIMATOR, FILE, Schema
from tunefree.papers.subgradient import Rows

PATH = FILE | {
    "model": {
        "task": TASK,
        "classes": CLASSES,
        "is_dense": Flag(),
        "stop": Number(1, 2**31, whole=True),
        "theta": SIZE,
        "kappa": SIZE,
        "gamma": Number(0, may_be_none=True),
        "units": Mapping(FINITE),
    },
    "estimator": ESTIMATOR,
}

PATH_ARRAYS = {
    "model.*.indices": Array("int32|int64", ("e",), 0),
    "model.*.pointers": Array("int32|int64", (None,), ascends_to="e"),
    "model.*.data": Array(FLOATS, ("e",)),
    "model.*.shape": Array("int64", (2,), 0),
    "model.*.array": Array(FLOATS, ("n", "d")),
    "model.standards.unit": Array("float64", ("d",), 5e-324),
    "model.standards.centre": Array("float64", ("d",)),
    "model.standards.spread": Array("float64", ("d",), 5e-324),
    "model.calibration.y": Array("float64", ("n",)),
    "model.calibration.weight": Array("float64", ("n",), 0),
    "model.coefficients": Array("float64", ("t", "p", "o")),
    "model.path.iteration": Array("int64", ("t",), 1),
    "model.path.*": Array("float64", ("t",), may_be_infinite=True, may_be_missing=True),
}


def _relate_path(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Sparse rows have as many columns, and pointers, as their shape tells."""
    for name in arrays:
        if name.endswith(".shape"):
            prefix, (n, d) = name.removesuffix(".shape"), arrays[name].tolist()
            indices, pointers = (arrays.get(f"{prefix}.{part}", np.zeros(0)) for part in ("indices", "pointers"))
            if len(pointers) != n + 1 or indices.max(initial=-1) >= d:
                raise ModelError(f"{name} is not that of the rows")


SCHEMA = Schema(PATH, lambda header, arrays: PATH_ARRAYS | ENCODED, lambda header: {}, _relate_path)


def check_parts(trained: Any) -> None:
    """Raise a ModelError if the parts of a path, or those of its encoder, do not fit together."""
    estimator = trained.model.estimator
    fitted = estimator.fitted_path_
    n_features, n_outputs = len(fitted.standards.unit), fitted.goal.n_outputs
    calibration = fitted.calibration or Rows(None, np.zeros(0), np.zeros(0))
    prepared = [rows for rows in (fitted.support, calibration.matrix) if rows is not None]
    n_coefficients = n_features + 1 if fitted.support is None else fitted.support.shape[0]
    for holds, problem in (
        (trained.encoder.n_features == n_features + 1, "the model has not the features of the encoder"),
        ((fitted.support is None) == (fitted.kernel is None), "a kernel and its support go together"),
        (all(rows.shape[1] == n_features for rows in prepared), "there are rows with other columns"),
        (
            fitted.path.coefficients.shape[1:] == (n_coefficients, n_outputs),
            "there are not as many coefficients as features and outputs",
        ),
        (len(fitted.path.coefficients) == len(fitted.path.records), "iterates of the path are missing"),
        (n_outputs == trained.model.n_outputs, "the path has other classes"),
    ):
        if not holds:
            raise ModelError(problem)

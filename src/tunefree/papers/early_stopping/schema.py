"""What files of paths hold, checked before anything is made of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.schema import FINITE, FLOATS, SIZE, Anything, Array, Flag, Mapping, Number, Optional
from tunefree.model_files.schema_parts import CLASSES, NAME, NONE, STEPS, TASK
from tunefree.model_files.schemas import ENCODED, ESTIMATOR, FILE, JOBS, Schema

PATH = FILE | {
    "model": {
        "task": TASK,
        "classes": CLASSES,
        "is_dense": Flag(),
        "descent": {"schedule": STEPS, "stride": Number(1, 2**31, whole=True)},
        "kernel": Anything(),
        "plain": {"n_iter_": Number(1, 2**31, whole=True), "_mass": SIZE, "_kappa": SIZE},
        "units": Mapping(FINITE),
    },
    "estimator": ESTIMATOR
    | {"parameters": {"transformer": Optional(NONE), "gram_bytes": Optional(SIZE), "device": Optional(NAME)} | JOBS},
}

PATH_ARRAYS = {
    "model.*.indices": Array("int32|int64", ("e",), 0),
    "model.*.pointers": Array("int32|int64", (None,), ascends_to="e"),
    "model.*.data": Array(FLOATS, ("e",)),
    "model.*.shape": Array("int64", (2,), 0),
    "model.standards.unit": Array("float64", ("d",), 5e-324),
    "model.standards.centre": Array("float64", ("d",)),
    "model.standards.spread": Array("float64", ("d",), 5e-324),
    "model.descent.t": Array("int64", ("k",), 1),
    "model.descent.mass": Array("float64", ("k",), 0),
    "model.descent.coefficients": Array(FLOATS, ("k", "p", "o")),
    "model.descent.sums": Array(FLOATS, ("k", "p", "o")),
    "model.descent.y": Array(FLOATS, ("n",)),
    "model.descent.weight": Array(FLOATS, ("n",), 0),
    "model.descent.path.iteration": Array("int64", ("n",), 1),
    "model.descent.path.*": Array("float64", ("n",), may_be_infinite=True, may_be_missing=True),
    "model.*": Array("float64|float32|int64"),
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
    path = estimator.fitted_path_
    n_features, n_outputs = len(path.standards.unit), path.targets.n_outputs
    n_iterations, stride = len(path.descent.records), path.descent.stride
    support = None if path.support is None else path.support.shape
    n_coefficients = n_features + 1 if support is None else support[0]
    shapes = {estimator.coefficients_.shape, *(kept.coefficients.shape for kept in path.descent.kept.values())}
    for holds, problem in (
        (trained.encoder.n_features == n_features + 1, "the model has not the features of the encoder"),
        (estimator.n_iter_ <= n_iterations, "the path ends before the iteration at which it is stopped"),
        (sorted(path.descent.kept) == list(range(1, n_iterations + 1, stride)), "iterates of the path are missing"),
        (support is None or support[1] == n_features, "the support has other columns than rows"),
        (
            shapes == {(n_coefficients, n_outputs)},
            "there are not as many coefficients as features and outputs",
        ),
        (n_outputs == trained.model.n_outputs, "the path has other classes"),
    ):
        if not holds:
            raise ModelError(problem)

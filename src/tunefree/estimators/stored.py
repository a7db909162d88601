"""Fitted estimators of iterative regularization as arrays and a header, from which the same are made again.

What comes back predicts, looks back with ``at`` and certifies to the last bit; it is not gone on with. Where its device
is not, the processor computes what the device did, up to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tunefree.core.errors import ModelError
from tunefree.core.states import under
from tunefree.early_stopping.gram import Kernel
from tunefree.early_stopping.subgradient import Path, Problem, Rows
from tunefree.estimators.path import IterativeRegularizationClassifier, IterativeRegularizationRegressor
from tunefree.estimators.preparation import Standards
from tunefree.kernel.backends import at_hand

ESTIMATORS: dict[str, Any] = {
    kind.__name__: kind for kind in (IterativeRegularizationClassifier, IterativeRegularizationRegressor)
}
PLAIN = ("n_features_in_", "n_iter_", "eta_", "theta_", "gamma_", "_mass", "_kappa", "_judges", "_temperature")
UNITS = ("bound", "unit", "centre")  # of targets


def flat(estimator: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and a header of an estimator that was fitted without a transformer.

    Raises
    ------
    ModelError
        With a transformer, which can be anything.
    """
    if estimator.transformer is not None:
        raise ModelError("a transformer cannot be saved; transform the rows before they are fitted and predicted")
    descent, rows = estimator._descent, estimator._support
    arrays, header = descent.save_state()
    arrays = {f"descent.{name}": array for name, array in arrays.items()} | {"coefficients": estimator._coefficients}
    arrays |= {f"standards.{name}": array for name, array in estimator._standards._asdict().items()}
    arrays |= _of_rows("rows", descent.rows if rows is None else rows)
    if (calibrating := getattr(estimator, "_for_calibration", None)) is not None:
        features, held = calibrating
        arrays |= _of_rows("calibrating", features) | {f"calibrating.{k}": v for k, v in held._asdict().items()}
    return arrays, {
        "estimator": type(estimator).__name__,
        "parameters": estimator.get_params(deep=False),
        "descent": header,
        "kernel": None if estimator._kernel is None else estimator._kernel._asdict(),
        "plain": {name: getattr(estimator, name) for name in PLAIN if hasattr(estimator, name)},
        "classes": _of_labels(getattr(estimator, "classes_", None)),
        "units": {name: float(getattr(estimator._targets, name)) for name in UNITS},
    }


def restored(arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Any:
    """The estimator that :func:`flat` wrote down."""
    device = at_hand(header["parameters"].get("device"))
    estimator = ESTIMATORS[header["estimator"]](**header["parameters"] | {"device": device})
    for name, value in header["plain"].items():
        setattr(estimator, name, value)
    if header["classes"] is not None:
        estimator.classes_ = np.array(header["classes"]["labels"], header["classes"]["type"])
    estimator._targets = targets = estimator._saved_targets(header["units"])
    estimator._standards = Standards(**under("standards.", arrays))
    estimator._kernel = None if header["kernel"] is None else Kernel(**header["kernel"])
    rows = _rows("rows", arrays)
    estimator._support = rows if estimator._kernel else None
    space = estimator._space(estimator._kernel, rows, rows[:0]) if header["descent"]["stride"] > 1 else None
    none = Rows(targets.y, targets.y)
    problem = Problem(space, targets.objective, targets.n_outputs, targets.errors, none, none)
    estimator._descent = Path.restore(problem, under("descent.", arrays), header["descent"])
    estimator._coefficients, estimator.path_ = arrays["coefficients"], estimator._path()
    if header["classes"] is not None:
        held, own = _rows("calibrating", arrays), under("calibrating.", arrays)
        estimator._for_calibration = None if held is None else (held, Rows(own["y"], own["weight"]))
    return estimator


def _of_rows(name: str, X: Any) -> dict[str, np.ndarray]:
    """Rows as arrays; nothing of None."""
    if X is None:
        return {}
    if not sparse.issparse(X):
        return {f"{name}.array": X}
    parts = {"data": X.data, "indices": X.indices, "pointers": X.indptr, "shape": np.array(X.shape)}
    return {f"{name}.{part}": array for part, array in parts.items()}


def _rows(name: str, arrays: dict[str, np.ndarray]) -> Any:
    """The rows that :func:`_of_rows` made arrays of."""
    own = under(f"{name}.", arrays)
    if "shape" in own:
        return sparse.csr_array((own["data"], own["indices"], own["pointers"]), shape=tuple(own["shape"].tolist()))
    return own.get("array")


def _of_labels(classes: np.ndarray | None) -> dict[str, Any] | None:
    return None if classes is None else {"labels": classes.tolist(), "type": classes.dtype.str}

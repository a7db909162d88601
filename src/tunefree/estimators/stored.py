"""Fitted estimators of iterative regularization as arrays and a header, from which the same are made again.

What comes back predicts, looks back with ``at`` and certifies to the last bit; it is not gone on with. Where its device
is not, the processor computes what the device did, up to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tunefree.core.errors import ModelError
from tunefree.core.registry import Registry
from tunefree.core.states import under
from tunefree.early_stopping.path import Path
from tunefree.early_stopping.problem import Problem, Rows
from tunefree.early_stopping.spaces import space_of
from tunefree.estimators import path_targets
from tunefree.estimators.fitted_path import FittedPath
from tunefree.estimators.preparation import KERNEL_PARAMS, Standards
from tunefree.kernel.backends import at_hand
from tunefree.kernel.kernels import kernel_of
from tunefree.losses import loss_of

ESTIMATORS = Registry(  # by their places, since they are saved by this file
    "estimator",
    {
        name: f"tunefree.estimators.path:{name}"
        for name in ("IterativeRegularizationClassifier", "IterativeRegularizationRegressor")
    },
)
PLAIN = ("n_features_in_", "n_iter_", "eta_", "theta_", "gamma_")  # attributes of an estimator
FITTED = {"_mass": "mass", "_kappa": "kappa", "_judges": "has_held_out"}  # of its FittedPath, by their names in files
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
    fitted: FittedPath = estimator.fitted_path_
    arrays, header = fitted.descent.save_state()
    arrays = {f"descent.{name}": array for name, array in arrays.items()} | {"coefficients": estimator.coefficients_}
    arrays |= {f"standards.{name}": array for name, array in fitted.standards._asdict().items()}
    arrays |= _of_rows("rows", fitted.descent.rows if fitted.support is None else fitted.support)
    if fitted.calibration is not None:
        features, held = fitted.calibration
        arrays |= _of_rows("calibrating", features) | {f"calibrating.{k}": v for k, v in held._asdict().items()}
    plain = {name: getattr(estimator, name) for name in PLAIN if hasattr(estimator, name)}
    plain |= {name: getattr(fitted, field) for name, field in FITTED.items()}
    if getattr(estimator, "temperature_", None) is not None:
        plain["_temperature"] = estimator.temperature_
    return arrays, {
        "estimator": type(estimator).__name__,
        "parameters": estimator.get_params(deep=False),
        "descent": header,
        "kernel": _of_kernel(estimator),
        "plain": {name: value.item() if isinstance(value, np.generic) else value for name, value in plain.items()},
        "classes": _of_labels(getattr(estimator, "classes_", None)),
        "units": {name: float(getattr(fitted.targets, name)) for name in UNITS},
    }


def of_file(
    estimator: Any, n_features: int, target: str | None
) -> tuple[dict[str, tuple[dict[str, np.ndarray], dict[str, Any]]], dict[str, Any]]:
    """The part of a model file that holds an estimator, and what else the header of the file says.

    Parameters
    ----------
    estimator : IterativeRegularizationClassifier or IterativeRegularizationRegressor
    n_features : int
        Features of the rows that the file's encoder makes, without the constant.
    target : str or None
        Name of the column that the model predicts.
    """
    arrays, header = flat(estimator)
    labels = getattr(estimator, "classes_", np.zeros(0)).tolist()
    task = "classification" if labels else "regression"
    parameters = {name: value for name, value in header["parameters"].items() if _is_plain(value)}
    header |= {
        "parameters": parameters | ({"gamma": estimator.gamma_} if callable(estimator.gamma) else {}),
        "plain": header["plain"] | {"n_features_in_": n_features},
        "classes": _of_labels(np.arange(len(labels)) if labels else None),  # as the workflows have them
    }
    return {"estimator": (arrays, header)}, {
        "kind": "path",
        "plan": {"target": target, "task": task, "loss": estimator.loss},
        "rows": estimator._n_rows,
        "skipped": 0,
        "model": {"task": task, "classes": labels, "is_dense": estimator._is_dense},
    }


def _is_plain(value: Any) -> bool:
    """Whether JSON can hold a parameter; of others, such as random numbers, nothing depends that is saved."""
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_plain(own) for name, own in value.items())
    return value is None or isinstance(value, (bool, int, float, str))


def restored(arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Any:
    """The estimator that :func:`flat` wrote down."""
    device = at_hand(header["parameters"].get("device"))
    estimator = ESTIMATORS[header["estimator"]](**header["parameters"] | {"device": device})
    plain = header["plain"]
    for name in PLAIN:
        if name in plain:
            setattr(estimator, name, plain[name])
    if header["classes"] is not None:
        estimator.classes_ = np.array(header["classes"]["labels"], header["classes"]["type"])
        estimator.temperature_ = plain.get("_temperature")
    estimator.fitted_path_ = _fitted(estimator, arrays, header)
    estimator.coefficients_, estimator.path_ = arrays["coefficients"], estimator.fitted_path_.path()
    return estimator


def _fitted(estimator: Any, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> FittedPath:
    targets, rows = _targets(estimator, header["units"]), _rows("rows", arrays)
    kernel = _kernel(header["kernel"])
    is_recomputed = header["descent"]["stride"] > 1
    space = space_of(kernel, rows, rows[:0], int(estimator.gram_bytes), estimator.device) if is_recomputed else None
    none = Rows(targets.y, targets.y)
    problem = Problem(space, targets.objective, targets.n_outputs, targets.errors, none, none)
    held, own = _rows("calibrating", arrays), under("calibrating.", arrays)
    return FittedPath(
        Path.restore(problem, under("descent.", arrays), header["descent"]),
        targets,
        Standards(**under("standards.", arrays)),
        kernel,
        None if kernel is None else rows,
        calibration=None if held is None else (held, Rows(own["y"], own["weight"])),
        **{field: header["plain"][name] for name, field in FITTED.items()},
    )


def _targets(estimator: Any, units: dict[str, float]) -> path_targets.Targets:
    """No targets, in the units of those that were learned."""
    if hasattr(estimator, "classes_"):
        loss = loss_of("classification", str(estimator.loss))
        return path_targets.of_classes(loss, np.zeros(0, np.int64), len(estimator.classes_))
    return path_targets.in_units(loss_of("regression", str(estimator.loss)), np.zeros(0), np.zeros(0), **units)


def _of_kernel(estimator: Any) -> dict[str, Any] | None:
    """A kernel by scikit-learn's name and parameters."""
    if estimator.kernel is None:
        return None
    settings = KERNEL_PARAMS | dict(estimator.kernel_params or {})
    parameters = {"degree": int(settings["degree"]), "coef0": float(settings["coef0"])}
    return {"name": estimator.kernel, "gamma": estimator.gamma_, **parameters}


def _kernel(saved: dict[str, Any] | None) -> Any:
    return None if saved is None else kernel_of(**saved)


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

"""Exposures of the rows of regressors, as scikit-learn passes them."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.utils import check_array

from tunefree.core.numbers import MOST
from tunefree.losses import loss_of
from tunefree.losses.rates import Fault, as_rates, check_has_rates, fault_of_exposures, fault_of_targets


def checked(exposure: Any, n_rows: int, loss: str) -> np.ndarray | None:
    """Exposures (n,): float64, finite and above 0; None if there are none.

    Raises a ModelError if the loss has no logarithmic link.
    """
    if exposure is None:
        return None
    check_has_rates(loss_of("regression", loss), loss)
    if isinstance(exposure, numbers.Real):
        exposure = np.full(n_rows, exposure, np.float64)
    options: dict[str, Any] = {"dtype": np.float64, "ensure_min_samples": 0, "input_name": "exposure"}
    array = check_array(exposure, ensure_2d=False, ensure_all_finite=False, **options)
    if array.shape != (n_rows,):
        raise ValueError(f"exposure has the shape {array.shape}, and there are {n_rows} rows; give one for each")
    _refuse(fault_of_exposures(array), "exposure")
    return np.ascontiguousarray(array)


def learnable(
    y: np.ndarray, weight: np.ndarray, exposure: Any, loss: str, may_be_zero: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Targets and weights of rows with these exposures, as the model learns them.

    ``may_be_zero`` says that all targets may be 0, since more rows are to come.
    """
    objective = loss_of("regression", loss)
    exposures = checked(exposure, len(y), loss)
    _refuse(fault_of_targets(objective, y), "y")
    if fault_of_targets(objective, np.full(1, -1.0)) is not None and not may_be_zero and not (y[weight > 0] > 0).any():
        raise ValueError(
            f"y: all targets are 0, of which the {loss} loss knows no mean; give rows with a target above 0"
        )
    return (y, weight) if exposures is None else as_rates(objective, y.astype(np.float64), weight, exposures)


def exposed(predictions: np.ndarray, exposure: Any, loss: str) -> np.ndarray:
    """Predicted rates (n,), times the exposures of the rows if there are any."""
    exposures = checked(exposure, len(predictions), loss)
    if exposures is None:
        return predictions
    with np.errstate(over="ignore"):
        return np.minimum(predictions * exposures, MOST)


def _refuse(fault: Fault | None, name: str) -> None:
    if fault is not None:
        raise ValueError(f"{name}[{fault.row}]: {fault.problem}; {fault.remedy}")

"""Fitted estimators of iterative regularization as models of files: arrays and a header make the same estimator again.

What comes back predicts, looks back with ``at`` and certifies to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from tunefree.core.errors import ModelError
from tunefree.core.rows import n_rows, part
from tunefree.core.states import under
from tunefree.estimators import model_file, validation
from tunefree.explanation.weights import Weights
from tunefree.losses import loss_of, objectives
from tunefree.model.targets import ScoredModel
from tunefree.papers.early_stopping.gram import Gram
from tunefree.papers.early_stopping.preparation import LARGEST, Standards, matrix
from tunefree.papers.early_stopping.schema import check_parts
from tunefree.papers.early_stopping.targets import Goal, goal_of_classes, goal_of_numbers, log_odds, probabilities
from tunefree.papers.subgradient import RECORD, Path, Rows

PIECE_BYTES = 2**28  # of rows predicted at a time


class FittedPath(NamedTuple):
    """A path with all that turns rows into margins: enough to predict with any iterate, and to certify."""

    path: Path  # in the method's units
    goal: Goal
    standards: Standards  # of the columns
    kernel: Any  # None for weights of features
    support: Any  # prepared rows that were learned; None without a kernel
    kappa: float  # the largest norm of a row in the space
    calibration: Rows | None  # prepared rows that probabilities are learned from, where the loss needs them

    def records(self) -> np.ndarray:
        """The records of the path, in units of the targets."""
        records = self.path.records.copy()
        for name in RECORD.names or ():
            unit = self.goal.loss_unit if name.endswith("loss") or name == "inner" else self.goal.unit
            if name.endswith(("loss", "error")) or name in ("inner", "norm"):
                with np.errstate(over="ignore"):
                    records[name] = np.clip(records[name] * unit, -LARGEST, LARGEST)
        return records.view(np.recarray)

    def margins(self, coefficients: np.ndarray, features: Any) -> np.ndarray:
        """f(x) (n, K) of prepared rows, in the method's units; ``coefficients`` (p, K) are of any output."""
        if self.kernel is None:
            return np.ascontiguousarray(features @ coefficients[:-1]) + coefficients[-1]
        used = np.flatnonzero(coefficients.any(axis=1))
        return Gram(self.kernel, features, self.support[used]) @ coefficients[used]


@dataclass
class PathModel(ScoredModel):
    """A fitted estimator of iterative regularization, for blocks of rows."""

    estimator: Any

    kind: ClassVar[str] = "path"  # of models, see tunefree.model_files.trained

    @property
    def task(self) -> str:  # type: ignore[override]
        """Classification or regression."""
        return "classification" if hasattr(self.estimator, "classes_") else "regression"

    @property
    def classes(self) -> list[Any]:  # type: ignore[override]
        """The labels, in the order of the outputs."""
        labels: list[Any] = getattr(self.estimator, "classes_", np.zeros(0)).tolist()
        return labels

    @property
    def path(self) -> Any:
        """A record array with losses, errors and norms of each iteration."""
        return self.estimator.path_

    @property
    def stop(self) -> int:
        """The iteration at which the path is stopped."""
        return int(self.estimator.n_iter_)

    @property
    def loss(self) -> str:
        """The name of the loss that is minimised."""
        return str(self.estimator.loss)

    @property
    def n_features(self) -> int:
        """Number of features, the constant included."""
        return len(self.estimator.fitted_path_.standards.unit) + 1

    @property
    def objective(self) -> Any:
        """The objective, from predictions to losses."""
        if self.task == "regression":
            return objectives.regression(loss_of("regression", self.loss))
        return self.estimator.fitted_path_.goal.objective

    @property
    def loss_is_log_loss(self) -> bool:
        """Whether the loss of a class is minus the logarithm of its probability."""
        return self.task == "classification" and self.loss == "logistic"

    @property
    def has_weights(self) -> bool:
        """Whether the features have weights, as they have without a kernel."""
        return self.estimator.kernel is None

    @property
    def n_support(self) -> int:
        """Rows that it is made of, in the space of a kernel."""
        return 0 if self.has_weights else int(self.estimator.coefficients_.any(axis=1).sum())

    def mean_weights(self) -> np.ndarray:
        """Weights (d, K) of the constant and of the standardised features."""
        weights, goal = self.estimator.coefficients_, self.estimator.fitted_path_.goal
        with np.errstate(over="ignore"):
            weights = np.concatenate([weights[-1:] + goal.centre, weights[:-1]]) * goal.unit
        return np.clip(weights, -LARGEST, LARGEST)

    def linear_weights(self, names: list[str]) -> Weights:
        """Weights of the constant and of the features, which have these names, in their own units."""
        if not self.has_weights:
            raise ModelError("an expansion in a kernel has no weights of features")
        coefficients = np.atleast_2d(self.estimator.coef_)
        weights = np.concatenate([np.reshape(self.estimator.intercept_, (1, -1)), coefficients.T])
        return Weights(["(constant)", *names], weights)

    def reduce(self) -> None:
        """There is no smaller model."""
        raise ModelError("the file of a path has what predicts at each iteration; leave `only_for_prediction` out")

    def check_parts(self, trained: Any) -> None:
        """Raise a ModelError if a file's parts do not fit together."""
        check_parts(trained)

    def predict(self, X: Any) -> np.ndarray:
        """Margins (n, K), or in regression the predicted targets (n, 1), of a block of rows."""
        step = max(PIECE_BYTES // (8 * self.n_features), 1)
        edges = [*range(0, n_rows(X), step), n_rows(X)]
        predictions = [np.empty((0, self.n_outputs))]
        for first, last in pairwise(edges):
            rows = matrix([part(X, first, last)], self.n_features, self.estimator._is_dense)
            predictions.append(self.estimator.predictions_of(validation.canonical(rows)))
        return np.concatenate(predictions)

    def log_odds(self, margins: np.ndarray) -> np.ndarray:
        """Logarithms (n, classes) of what is proportional to the probabilities."""
        return log_odds(self.estimator.fitted_path_.goal.loss, margins, self.estimator.temperature_)

    def probabilities(self, margins: np.ndarray) -> np.ndarray:
        """Class probabilities (n, classes) of margins."""
        return probabilities(self.estimator.fitted_path_.goal.loss, margins, self.estimator.temperature_)

    def save_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :func:`restored` makes the same model, with the estimator's parameters."""
        estimator, fitted = self.estimator, self.estimator.fitted_path_
        records, goal, rows = fitted.path.records, fitted.goal, fitted.calibration
        arrays = {f"path.{name}": records[name] for name in RECORD.names or ()}
        arrays |= {"coefficients": fitted.path.coefficients}
        arrays |= {f"standards.{name}": array for name, array in fitted.standards._asdict().items()}
        arrays |= _arrays_of("support", fitted.support)
        if rows is not None:
            arrays |= _arrays_of("calibration", rows.matrix)
            arrays |= {"calibration.y": rows.y, "calibration.weight": rows.weight}
        return arrays, {
            "task": self.task,
            "classes": self.classes,
            "is_dense": bool(estimator._is_dense),
            "stop": self.stop,
            "theta": float(estimator.theta_),
            "kappa": float(fitted.kappa),
            "gamma": None if fitted.kernel is None else float(estimator.gamma_),
            "units": {"bound": float(goal.bound), "unit": float(goal.unit), "centre": float(goal.centre)},
        }


def restored(arrays: dict[str, np.ndarray], header: dict[str, Any]) -> PathModel:
    """The model of a file, from its arrays and the header of the file."""
    saved, model = header["estimator"], header["model"]
    estimator = model_file.unfitted(saved["class"], saved["parameters"])
    estimator._check()
    loss = loss_of(model["task"], str(estimator.loss))
    goal = goal_of_classes(loss, len(model["classes"]))
    if model["task"] == "classification":
        estimator.classes_ = model_file.labels_of(model["classes"], saved)
    else:
        goal = goal_of_numbers(loss, **model["units"])
    records = np.empty(len(arrays["path.iteration"]), RECORD)
    for name in RECORD.names or ():
        records[name] = arrays[f"path.{name}"]
    calibration, held = _rows_of("calibration", arrays), under("calibration.", arrays)
    estimator._is_dense, estimator.theta_ = model["is_dense"], model["theta"]
    estimator.fitted_path_ = FittedPath(
        Path(records, arrays["coefficients"]),
        goal,
        Standards(**under("standards.", arrays)),
        None if model["gamma"] is None else estimator._kernel_at(model["gamma"]),
        _rows_of("support", arrays),
        model["kappa"],
        None if calibration is None else Rows(calibration, held["y"], held["weight"]),
    )
    estimator._stop_at(model["stop"])
    return PathModel(estimator)


def _arrays_of(name: str, X: Any) -> dict[str, np.ndarray]:
    """Rows as arrays; nothing of None."""
    if X is None:
        return {}
    if not sparse.issparse(X):
        return {f"{name}.array": X}
    parts = {"data": X.data, "indices": X.indices, "pointers": X.indptr, "shape": np.array(X.shape)}
    return {f"{name}.{part}": array for part, array in parts.items()}


def _rows_of(name: str, arrays: dict[str, np.ndarray]) -> Any:
    """The rows that :func:`_arrays_of` made arrays of."""
    saved = under(f"{name}.", arrays)
    if "shape" in saved:
        shape = tuple(saved["shape"].tolist())
        return sparse.csr_array((saved["data"], saved["indices"], saved["pointers"]), shape=shape)
    return saved.get("array")

"""Fitted estimators of iterative regularization as models of files: arrays and a header make the same estimator again.

What comes back predicts, looks back with ``at`` and certifies to the last bit; it is not gone on with. Where its device
is not, the processor computes what the device did, up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from tunefree.core.errors import ModelError
from tunefree.core.part import under
from tunefree.core.rows import n_rows, part
from tunefree.estimators import model_file, resources, validation
from tunefree.explanation.weights import Weights
from tunefree.losses import loss_of, objectives
from tunefree.model.targets import ScoredModel
from tunefree.papers.early_stopping import path_targets
from tunefree.papers.early_stopping.path import Path
from tunefree.papers.early_stopping.path_targets import log_odds, probabilities
from tunefree.papers.early_stopping.preparation import LARGEST, Standards, matrix
from tunefree.papers.early_stopping.problem import Problem, Rows
from tunefree.papers.early_stopping.products import expand
from tunefree.papers.early_stopping.schema import check_parts
from tunefree.papers.early_stopping.spaces import Dictionary, space_of
from tunefree.papers.kernel.backends import at_hand
from tunefree.papers.kernel.kernels import kernel_of

PIECE_BYTES = 2**28  # of rows predicted at a time
MOST_SHOWN = 24  # iterations in a table, without the chosen one
PLAIN = ("n_iter_", "eta_", "theta_", "gamma_")  # attributes of an estimator
FITTED = {"_mass": "mass", "_kappa": "kappa", "_judges": "has_held_out"}  # of its FittedPath, by their names in files
UNITS = ("bound", "unit", "centre")  # of targets


class FittedPath(NamedTuple):
    """The whole path with all that turns rows into margins: enough to predict with any iterate, and to certify."""

    descent: Any  # a Descent, or a Path that was saved
    targets: path_targets.Targets  # of no rows
    standards: Standards  # of the columns
    kernel: Any  # None for weights of features
    support: Any  # prepared rows that were learned; None without a kernel
    mass: float  # total weight of the rows learned
    kappa: float  # the largest norm of a row in the space
    has_held_out: bool  # whether rows were held out
    calibration: tuple[Any, Rows] | None  # prepared rows that probabilities are learned from, where the loss needs them

    def path(self) -> np.ndarray:
        """The method's path, in units of the targets."""
        path = self.descent.path
        for name in (path.dtype.names or ())[1:]:
            column = path[name]
            with np.errstate(over="ignore"):
                if name.endswith("loss") or name == "inner":
                    column *= self.targets.loss_unit
                elif name.endswith("error") or name == "norm":
                    column *= self.targets.unit
            np.clip(column, -LARGEST, LARGEST, out=column)
        return path.view(np.recarray)

    def margins(self, coefficients: np.ndarray, features: Any, device: str | None = None) -> np.ndarray:
        """f(x) (n, K) of prepared rows, in the method's units.

        ``coefficients`` (p, K): of an iterate, or of an average.
        ``features`` (n, d): prepared as those that were learned.
        ``device``: where PyTorch computes the kernel.
        """
        if self.kernel is not None:
            return expand(self.kernel, self.support, coefficients, features, device)
        return Dictionary(features[:0], features).held(coefficients)


@dataclass
class PathModel(ScoredModel):
    """A fitted estimator of iterative regularization, for blocks of rows.

    ``seconds``: time of learning; None if the model comes from a file.
    """

    estimator: Any
    seconds: float | None = None

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
    def fitted(self) -> FittedPath:
        """The whole path."""
        path: FittedPath = self.estimator.fitted_path_
        return path

    @property
    def path(self) -> Any:
        """A record array with losses, errors and norms of each iteration."""
        return self.estimator.path_

    @property
    def stop(self) -> int:
        """The iteration at which the path is stopped."""
        return int(self.estimator.n_iter_)

    def shown(self) -> list[int]:
        """Iterations for a table: evenly spaced on a logarithmic scale, and the chosen one."""
        spaced = np.geomspace(1, len(self.path), min(MOST_SHOWN, len(self.path)))
        return sorted({*np.round(spaced).astype(int).tolist(), self.stop})

    def check_parts(self, trained: Any) -> None:
        """Raise a ModelError if a file's parts do not fit together."""
        check_parts(trained)

    def at(self, t: int) -> PathModel:
        """The same path, stopped at iteration t.

        Raises a ModelError if the path has no such iteration.
        """
        if not 1 <= t <= len(self.path):
            raise ModelError(f"there is no iteration {t} to stop at; choose one from 1 to {len(self.path)}")
        return replace(self, estimator=self.estimator.at(t))

    @property
    def loss(self) -> str:
        """The name of the loss that is minimised."""
        return str(self.estimator.loss)

    @property
    def n_features(self) -> int:
        """Number of features, the constant included."""
        return len(self.fitted.standards.unit) + 1

    @property
    def objective(self) -> Any:
        """The objective, from predictions to losses."""
        if self.task == "regression":
            return objectives.regression(loss_of("regression", self.loss))
        return self.fitted.targets.objective

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
        self._check_weights()
        weights, targets = self.estimator.coefficients_, self.fitted.targets
        with np.errstate(over="ignore"):
            weights = np.concatenate([weights[-1:] + targets.centre, weights[:-1]]) * targets.unit
        return np.clip(weights, -LARGEST, LARGEST)

    def linear_weights(self, names: list[str]) -> Weights:
        """Weights of the constant and of the features, which have these names, in their own units."""
        self._check_weights()
        coefficients = np.atleast_2d(self.estimator.coef_)
        weights = np.concatenate([np.reshape(self.estimator.intercept_, (1, -1)), coefficients.T])
        return Weights(["(constant)", *names], weights)

    def _check_weights(self) -> None:
        if not self.has_weights:
            raise ModelError("an expansion in a kernel has no weights of features")

    def reduce(self) -> None:
        """There is no smaller model."""
        raise ModelError("the file of a path has what predicts at each iteration; leave `only_for_prediction` out")

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
        return log_odds(self.fitted.targets.loss, margins, self.estimator.temperature_)

    def probabilities(self, margins: np.ndarray) -> np.ndarray:
        """Class probabilities (n, classes) of margins."""
        return probabilities(self.fitted.targets.loss, margins, self.estimator.temperature_)

    def save_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :func:`restored` makes the same model, with the estimator's parameters.

        Raises a ModelError with a transformer, which can be anything.
        """
        estimator, fitted = self.estimator, self.fitted
        if estimator.transformer is not None:
            raise ModelError("a transformer cannot be saved; transform the rows before they are fitted and predicted")
        arrays, header = fitted.descent.save_state()
        arrays = {f"descent.{name}": array for name, array in arrays.items()}
        arrays |= {"coefficients": estimator.coefficients_}
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
            "task": self.task,
            "classes": self.classes,
            "is_dense": bool(estimator._is_dense),
            "descent": header,
            "kernel": _of_kernel(estimator),
            "plain": {name: value.item() if isinstance(value, np.generic) else value for name, value in plain.items()},
            "units": {name: float(getattr(fitted.targets, name)) for name in UNITS},
        }


def restored(arrays: dict[str, np.ndarray], header: dict[str, Any]) -> PathModel:
    """The model of a file, from its arrays and the header of the file."""
    saved, model = header["estimator"], header["model"]
    device = at_hand(saved["parameters"].get("device"))
    estimator = model_file.unfitted(saved["class"], saved["parameters"] | {"device": device})
    estimator._check()
    resources.threads_of(estimator)  # an error for a number of threads that means nothing
    plain, estimator._is_dense = model["plain"], model["is_dense"]
    for name in PLAIN:
        if name in plain:
            setattr(estimator, name, plain[name])
    if model["task"] == "classification":
        estimator.classes_ = model_file.labels_of(model["classes"], saved)
        estimator.temperature_ = plain.get("_temperature")
    estimator.fitted_path_ = _fitted(estimator, arrays, model)
    estimator.coefficients_, estimator.path_ = arrays["coefficients"], estimator.fitted_path_.path()
    return PathModel(estimator)


def _fitted(estimator: Any, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> FittedPath:
    targets, rows = _targets(estimator, header["units"]), _rows("rows", arrays)
    kernel = None if header["kernel"] is None else kernel_of(**header["kernel"])
    is_recomputed = header["descent"]["stride"] > 1
    space = space_of(kernel, rows, rows[:0], int(estimator.gram_bytes), estimator.device) if is_recomputed else None
    none = Rows(targets.y, targets.y)
    problem = Problem(space, targets.objective, targets.n_outputs, targets.errors, none, none)
    features, held = _rows("calibrating", arrays), under("calibrating.", arrays)
    return FittedPath(
        Path.restore(problem, under("descent.", arrays), header["descent"]),
        targets,
        Standards(**under("standards.", arrays)),
        kernel,
        None if kernel is None else rows,
        calibration=None if features is None else (features, Rows(held["y"], held["weight"])),
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
    parameters = {"degree": int(estimator.degree), "coef0": float(estimator.coef0)}
    return {"name": estimator.kernel, "gamma": estimator.gamma_, **parameters}


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
    saved = under(f"{name}.", arrays)
    if "shape" in saved:
        shape = tuple(saved["shape"].tolist())
        return sparse.csr_array((saved["data"], saved["indices"], saved["pointers"]), shape=shape)
    return saved.get("array")

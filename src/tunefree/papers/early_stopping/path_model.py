"""Fitted estimators of iterative regularization as models of files: arrays and a header make the same estimator again.

A restored model predicts and looks back with ``at`` to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from tunefree.core.errors import ModelError
from tunefree.core.schema import ANY, FINITE, FLOATS, FROM_ZERO, SIZE, Array, Flag, Limits, Mapping, Number
from tunefree.estimators import model_file, validation
from tunefree.losses import loss_of
from tunefree.losses.objectives import Objective
from tunefree.model_files.schemas import CLASSES, ENCODED, ESTIMATOR, FILE, TASK, Kind
from tunefree.papers.early_stopping.gram import Gram
from tunefree.papers.early_stopping.preparation import LARGEST, Standards, matrix
from tunefree.papers.early_stopping.targets import Goal, goal_of_classes, goal_of_numbers, log_odds, probabilities
from tunefree.papers.subgradient import RECORD, Path
from tunefree.pool.targets import ScoredModel
from tunefree.report.document import Fact
from tunefree.report.formats import COUNT, FIGURES, PERCENT, THREE, is_absent
from tunefree.report.learned import facts_of_rows, names_of_losses

COLUMNS = RECORD.names or ()
HEADER = FILE | {
    "model": {
        "task": TASK,
        "classes": CLASSES,
        "is_dense": Flag(),
        "stop": Number(1, 2**31, whole=True),
        "theta": SIZE,
        "gamma": Number(0, may_be_none=True),
        "units": Mapping(FINITE),
    },
    "estimator": ESTIMATOR,
}
ARRAYS = ENCODED | {
    "model.coefficients": Array("float64", ("t", "p", "o")),
    "model.path.iteration": Array("int64", ("t",), Limits(1)),
    **{f"model.path.{name}": Array("float64", ("t",), ANY) for name in COLUMNS if name != "iteration"},
    "model.standards.unit": Array("float64", ("d",), Limits(5e-324)),
    "model.standards.centre": Array("float64", ("d",)),
    "model.standards.spread": Array("float64", ("d",), Limits(5e-324)),
    "model.support.array": Array(FLOATS, ("n", "d")),
    "model.support.data": Array(FLOATS, ("e",)),
    "model.support.indices": Array("int32|int64", ("e",), FROM_ZERO),
    "model.support.pointers": Array("int32|int64", (None,), Limits(ascends_to="e")),
    "model.support.shape": Array("int64", (2,), FROM_ZERO),
}


class FittedPath(NamedTuple):
    """A path with all that turns rows into margins: enough to predict with any iterate."""

    path: Path  # in the method's units
    goal: Goal
    standards: Standards  # of the columns
    kernel: Any  # None for weights of features
    support: Any  # prepared rows that were learned; None without a kernel

    def records(self) -> np.ndarray:
        """The records of the path, in units of the targets."""
        records = self.path.records.copy()
        for name in COLUMNS[2:]:
            unit = self.goal.loss_unit if name.endswith("loss") or name == "inner" else self.goal.unit
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
    pool: ClassVar[None] = None

    def __post_init__(self) -> None:
        estimator = self.estimator
        self.path, self.stop, self.loss = estimator.path_, int(estimator.n_iter_), str(estimator.loss)
        self.goal, self.has_weights = estimator.fitted_path_.goal, estimator.kernel is None
        self.classes = getattr(estimator, "classes_", np.zeros(0)).tolist()
        self.task = "classification" if hasattr(estimator, "classes_") else "regression"
        self.loss_is_log_loss = self.task == "classification" and self.loss == "logistic"
        self.n_features = len(estimator.fitted_path_.standards.unit) + 1  # the constant included
        self.n_support = 0 if self.has_weights else int(estimator.coefficients_.any(axis=1).sum())

    @property
    def objective(self) -> Objective:
        """The objective, from predictions to losses."""
        if self.task == "regression":
            return Objective("regression", loss_of("regression", self.loss))
        return self.goal.objective

    def mean_weights(self) -> np.ndarray:
        """Weights (d, K) of the constant and of the standardised features."""
        weights = self.estimator.coefficients_
        with np.errstate(over="ignore"):
            weights = np.concatenate([weights[-1:] + self.goal.centre, weights[:-1]]) * self.goal.unit
        return np.clip(weights, -LARGEST, LARGEST)

    def linear_weights(self) -> np.ndarray:
        """Weights (d, K) of the constant and of the features in their own units."""
        if not self.has_weights:
            raise ModelError("an expansion in a kernel has no weights of features")
        coefficients = np.atleast_2d(self.estimator.coef_)
        return np.concatenate([np.reshape(self.estimator.intercept_, (1, -1)), coefficients.T])

    def facts(self, trained: Any) -> list[Fact]:
        """The record of a training: rows, where the path is stopped, and losses there."""
        kernel, record = self.estimator.kernel, self.path[self.stop - 1]
        facts = [Fact("task", self.task), Fact("target", trained.plan.target or "the label"), Fact("loss", self.loss)]
        facts += [Fact("learner", "iterative regularization"), Fact("kernel", kernel, lambda name: name or "none")]
        facts += [] if kernel is None else [Fact("gamma", self.estimator.gamma_, THREE)]
        n = len(self.path)
        stopped = Fact("stopped at", self.stop, lambda t: f"iteration {t:,} of {n:,}", "stop")
        facts += [*facts_of_rows(trained), Fact("iterations", n, COUNT), stopped]
        of_error = PERCENT if self.task == "classification" else FIGURES
        loss, error = "log-loss" if self.loss_is_log_loss else "loss", names_of_losses(self)[1][0]
        at_stop = [
            Fact(f"{kind} {name}", float(record[f"{key}_{column}"]), of_value, f"{key}_{column}")
            for kind, key in (("training", "training"), ("held-out", "validation"))
            for name, column, of_value in ((loss, "loss", FIGURES), (error, "error", of_error))
        ]
        known = [fact for fact in at_stop if not is_absent(fact.value)]
        return [*facts, *known, Fact("norm", float(record["norm"]), FIGURES)]

    def reduce(self) -> None:
        """There is no smaller model."""
        raise ModelError("the file of a path has a model for each iteration; leave `only_for_prediction` out")

    def predict(self, X: Any) -> np.ndarray:
        """Margins (n, K), or in regression the predicted targets (n, 1), of a block of rows."""
        rows = validation.canonical(matrix([X], self.n_features, self.estimator._is_dense))
        return np.asarray(self.estimator.predictions_of(rows))

    def _log_odds(self, margins: np.ndarray) -> np.ndarray:
        """Logarithms (n, classes) of numbers proportional to the probabilities."""
        return log_odds(self.goal.loss, margins)

    def probabilities(self, margins: np.ndarray) -> np.ndarray:
        """Class probabilities (n, classes) of margins."""
        return probabilities(self.goal.loss, margins)

    def save_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :func:`restored` makes the same model, with the estimator's parameters."""
        fitted = self.estimator.fitted_path_
        path = fitted.path
        arrays = {"coefficients": path.coefficients, **{f"path.{name}": path.records[name] for name in COLUMNS}}
        arrays |= {f"standards.{name}": array for name, array in fitted.standards._asdict().items()}
        arrays |= _arrays_of(fitted.support)
        return arrays, {
            "task": self.task,
            "classes": self.classes,
            "is_dense": bool(self.estimator._is_dense),
            "stop": self.stop,
            "theta": float(self.estimator.theta_),
            "gamma": None if self.has_weights else float(self.estimator.gamma_),
            "units": {name: float(getattr(self.goal, name)) for name in ("bound", "unit", "centre")},
        }

    def check_parts(self, trained: Any) -> None:
        """Raise a ModelError if a file's parts do not fit together."""
        fitted = self.estimator.fitted_path_
        n_coefficients = self.n_features if self.has_weights else fitted.support.shape[0]
        fits = (
            trained.encoder.n_features == self.n_features,
            self.has_weights or fitted.support.shape[1] == self.n_features - 1,
            fitted.path.coefficients.shape == (len(self.path), n_coefficients, self.n_outputs),
            self.n_outputs == self.goal.n_outputs,
        )
        if not all(fits):
            raise ModelError("the path, its rows and the encoder differ in their numbers of columns or outputs")


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
    for name in COLUMNS:
        records[name] = arrays[f"path.{name}"]
    estimator._is_dense, estimator.theta_ = model["is_dense"], model["theta"]
    estimator.fitted_path_ = FittedPath(
        Path(records, arrays["coefficients"]),
        goal,
        Standards(**under("standards.", arrays)),
        None if estimator.kernel is None else estimator._kernel_at(model["gamma"]),
        None if estimator.kernel is None else _support_of(arrays),
    )
    estimator._stop_at(model["stop"])
    return PathModel(estimator)


def _arrays_of(support: Any) -> dict[str, np.ndarray]:
    """The rows of an expansion as arrays; none without a kernel."""
    if support is None:
        return {}
    if not sparse.issparse(support):
        return {"support.array": support}
    parts = {"data": support.data, "indices": support.indices, "pointers": support.indptr}
    return {f"support.{part}": array for part, array in parts.items()} | {"support.shape": np.array(support.shape)}


def _support_of(arrays: dict[str, np.ndarray]) -> Any:
    """The rows that :func:`_arrays_of` made arrays of."""
    saved = under("support.", arrays)
    if "shape" not in saved:
        return saved.get("array")
    shape, pointers = tuple(saved["shape"].tolist()), saved["pointers"]
    if len(pointers) != shape[0] + 1 or saved["indices"].max(initial=-1) >= shape[1]:
        raise ModelError("the support has not the rows and columns that its shape tells")
    return sparse.csr_array((saved["data"], saved["indices"], pointers), shape=shape)


KIND = Kind(HEADER, lambda *_: (ARRAYS, {}), restored, lambda trained: trained.model.check_parts(trained))


def under(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}

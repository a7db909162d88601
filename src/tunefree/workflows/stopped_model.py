"""A model that was stopped early: an estimator of iterative regularization with its labels, encoder and model file.

The file holds the whole path, so that the model can be stopped at another iteration without learning anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.rows import n_rows, part
from tunefree.estimators import stored
from tunefree.estimators.matrices import matrix
from tunefree.estimators.path_probabilities import log_odds, probabilities
from tunefree.estimators.preparation import LARGEST
from tunefree.losses import loss_of, objectives
from tunefree.model.targets import ScoredModel
from tunefree.stream.source import encoder_of
from tunefree.stream.tally import Reason
from tunefree.workflows import model_files
from tunefree.workflows.plan import Plan

PIECE_BYTES = 2**28  # of rows predicted at a time
MOST_SHOWN = 24  # iterations in a table, without the chosen one


@dataclass
class PathModel(ScoredModel):
    """An estimator of iterative regularization for blocks of rows, with labels of any kind.

    Parameters
    ----------
    task : {"classification", "regression"}
    classes : list
        Labels. The estimator's classes are their positions in this list.
    estimator : IterativeRegularizationClassifier or IterativeRegularizationRegressor
    is_dense : bool, default True
        Whether it takes rows as an array; else as a sparse matrix.
    """

    task: str
    classes: list[Any]
    estimator: Any
    is_dense: bool = True

    @property
    def loss(self) -> str:
        """The name of the loss that is minimised."""
        return str(self.estimator.loss)

    @property
    def n_features(self) -> int:
        """Number of features, the constant included."""
        return int(self.estimator.n_features_in_) + 1

    @property
    def objective(self) -> Any:
        """The objective, from predictions to losses."""
        if self.task == "regression":
            return objectives.regression(loss_of("regression", self.loss))
        return self.estimator.fitted_path_.targets.objective

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
        """Weights (d, K) of the constant and of the standardised features.

        Raises
        ------
        ModelError
            With a kernel.
        """
        if not self.has_weights:
            raise ModelError("an expansion in a kernel has no weights of features")
        weights, targets = self.estimator.coefficients_, self.estimator.fitted_path_.targets
        with np.errstate(over="ignore"):
            weights = np.concatenate([weights[-1:] + targets.centre, weights[:-1]]) * targets.unit
        return np.clip(weights, -LARGEST, LARGEST)

    def add_class(self, label: Any) -> None:
        """Add a class, before anything is learned."""
        self.check_room_for_a_class()
        self.classes.append(label)

    def predictor(self) -> Callable[[Any], np.ndarray]:
        """A function from blocks of rows to predictions."""
        return self.predict

    def predict(self, X: Any) -> np.ndarray:
        """Margins (n, K), or in regression the predicted targets (n, 1), of a block of rows."""
        step = max(PIECE_BYTES // (8 * self.n_features), 1)
        edges = [*range(0, n_rows(X), step), n_rows(X)]
        predict = self.estimator.predict if self.task == "regression" else self.estimator.decision_function
        pieces = [
            predict(matrix([part(X, first, last)], self.n_features, self.is_dense)).reshape(last - first, -1)
            for first, last in pairwise(edges)
        ]
        return np.concatenate([np.empty((0, self.n_outputs)), *pieces])

    def log_odds(self, margins: np.ndarray) -> np.ndarray:
        """Logarithms (n, classes) of what is proportional to the probabilities."""
        return log_odds(self.estimator.fitted_path_.targets.loss, margins, self.estimator.temperature_)

    def probabilities(self, margins: np.ndarray) -> np.ndarray:
        """Class probabilities (n, classes) of margins."""
        return probabilities(self.estimator.fitted_path_.targets.loss, margins, self.estimator.temperature_)


@dataclass
class StoppedModel:
    """A regularization path, stopped at one of its iterations.

    Parameters
    ----------
    model : PathModel
    encoder : encoder of the rows
    kind : str
        Which encoder that is: ``"table"``, or a format of text such as ``"svmlight"``.
    plan : Plan
    rows, skipped : int
        Rows that were read, and rows that could not be used.
    seconds : float, optional
        Time of learning; None if the model comes from a file.
    oddities : list of Reason
        What is odd about columns, and about rows that were used; none if the model comes from a file.
    """

    model: PathModel
    encoder: Any
    kind: str
    plan: Plan
    rows: int
    skipped: int
    seconds: float | None = None
    oddities: list[Reason] = field(default_factory=list)

    file_kind: ClassVar[str] = "path"
    other_kind: ClassVar[str] = (
        "it was learned row by row and has no path; train with `learner='early-stopping'`, or give the data"
    )

    @property
    def estimator(self) -> Any:
        """The fitted estimator."""
        return self.model.estimator

    @property
    def task(self) -> str:
        """Classification or regression."""
        return self.model.task

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

    def at(self, t: int) -> StoppedModel:
        """The same path, stopped at iteration t.

        Parameters
        ----------
        t : int
            From 1 to the length of the path.

        Returns
        -------
        StoppedModel

        Raises
        ------
        ModelError
            If the path has no such iteration.
        """
        if not 1 <= t <= len(self.path):
            raise ModelError(f"there is no iteration {t} to stop at; choose one from 1 to {len(self.path)}")
        return replace(self, model=replace(self.model, estimator=self.estimator.at(t)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model and the whole path to a file."""
        model = {"task": self.task, "classes": self.model.classes, "is_dense": self.model.is_dense}
        header = {"source": self.kind, "plan": self.plan.changed(), "rows": self.rows, "skipped": self.skipped}
        parts = {"estimator": stored.flat(self.estimator), "encoder": self.encoder.state()}
        model_files.save(path, self.file_kind, parts, {**header, "model": model})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> StoppedModel:
        """Read what :meth:`save` wrote."""
        loaded: StoppedModel = model_files.load(path, cls.file_kind)
        return loaded

    @classmethod
    def restore(cls, arrays: dict[str, dict[str, np.ndarray]], header: dict[str, Any]) -> StoppedModel:
        """The model that the parts of a file hold."""
        estimator = stored.restored(arrays["estimator"], header["estimator"])
        encoder = encoder_of(header["source"]).restore(arrays.get("encoder", {}), header["encoder"])
        model = PathModel(**header["model"], estimator=estimator)
        return cls(model, encoder, header["source"], Plan(**header["plan"]), header["rows"], header["skipped"])

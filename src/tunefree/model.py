"""A linear model while it is learned: a learner, an objective, the classes found so far, and what it suffered.

This is what the command line, the streaming fit and the estimators share. It takes rows and raw targets, finds
new classes at the very row where they first appear, and makes room for new features.
"""

from __future__ import annotations

import copy
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tunefree import losses, objectives, passes
from tunefree.errors import DataError, ModelError
from tunefree.learners import ALL, Averaged
from tunefree.learners.contract import grow
from tunefree.rows import n_rows, part

CLASSIFICATION_LOSSES: dict[str, Any] = {
    "logistic": losses.Logistic,
    "hinge": losses.Hinge,
    "smoothed-hinge": losses.SmoothedHinge,
    "squared-hinge": losses.SquaredHinge,
    "exponential": losses.Exponential,
    "square": losses.Square,
}
REGRESSION_LOSSES: dict[str, Any] = {
    "square": losses.Square,
    "absolute": losses.Absolute,
    "power": losses.power_loss,
    "epsilon-insensitive": losses.epsilon_insensitive,
    "huber": losses.huber,
    "quantile": losses.quantile,
}
MANY_CLASSES = 1000


def loss_of(task: str, name: str | None) -> Any:
    """The loss called ``name``, its parameters behind colons: ``logistic``, ``huber:1.5``, ``quantile:0.9``.

    Parameters
    ----------
    task : {"classification", "regression"}
    name : str or None
        None for the logistic loss, or the square loss in regression.

    Raises
    ------
    ModelError
        For a name or parameters that make no loss of this task.

    Examples
    --------
    >>> loss_of("regression", "huber:2").delta
    2.0
    """
    known = REGRESSION_LOSSES if task == "regression" else CLASSIFICATION_LOSSES
    kind, *parameters = (name or next(iter(known))).split(":")
    if kind not in known:
        raise ModelError(f"unknown loss {kind!r} for {task}; choose one of {', '.join(known)}")
    if parameters and isinstance(known[kind], type):
        raise ModelError(f"the {kind} loss has no parameter; write {kind}")
    try:
        return known[kind](*map(float, parameters))
    except (TypeError, ValueError) as error:
        raise ModelError(f"loss {name!r}: {error}") from None


class Labels(NamedTuple):
    """The labels of some rows: distinct values, and which of them each row has."""

    values: list[Any]
    codes: np.ndarray  # (n,) int64

    @classmethod
    def of(cls, y: Any) -> Labels:
        """From an array of labels."""
        values, codes = np.unique(np.asarray(y), return_inverse=True)
        return cls(values.tolist(), codes.reshape(-1).astype(np.int64))


@dataclass
class Tally:
    """Sums over the rows of a stream, each predicted before it was learned."""

    rows: int = 0
    weight: float = 0.0  # sum of sample weights
    loss: float = 0.0  # weighted sum of losses
    errors: float = 0.0  # weighted sum of wrong classes, or of absolute errors in regression

    def add(self, weight: np.ndarray, suffered: np.ndarray, errors: np.ndarray) -> None:
        """Add a batch; sums run row by row, so that they do not depend on where batches are cut."""
        self.rows += len(weight)
        self.weight = _running(self.weight, weight)
        self.loss = _running(self.loss, weight * suffered)
        self.errors = _running(self.errors, weight * errors)

    def mean_loss(self) -> float:
        return self.loss / self.weight if self.weight > 0 else 0.0

    def mean_error(self) -> float:
        return self.errors / self.weight if self.weight > 0 else 0.0


def _running(start: float, terms: np.ndarray) -> float:
    return float(np.minimum(np.cumsum(np.concatenate([[start], terms]))[-1], 1e308))


@dataclass
class Model:
    """A linear model that learns.

    Parameters
    ----------
    task : {"classification", "regression"}
    learner : str, default "scinol2"
        A name in ``learners.ALL``.
    loss : str, optional
        See :func:`loss_of`.
    average : bool, default False
        Predict with the average of the iterates instead of the last one.
    settings : dict
        Parameters of the learner (its ``epsilon``, ``a`` or ``b``).
    classes : list
        Labels known beforehand, in the order of the outputs; others are appended as they appear.
    n_features : int
        Features known beforehand, the constant included.

    Examples
    --------
    >>> from tunefree.rows import dense
    >>> model = Model("classification")
    >>> X = dense(np.array([[0.0], [1.0], [0.0], [1.0]] * 50))
    >>> _ = model.learn(X, Labels.of(["no", "yes", "no", "yes"] * 50), np.ones(200))
    >>> model.classes, model.predict(X)[:2, 0].round()
    (['no', 'yes'], array([-2.,  4.]))
    """

    task: str
    learner: str = "scinol2"
    loss: str | None = None
    average: bool = False
    settings: dict[str, float] = field(default_factory=dict)
    classes: list[Any] = field(default_factory=list)
    n_features: int = 2  # never less: the constant and one more
    tally: Tally = field(default_factory=Tally)
    state: Any = None  # the learner's state, with room for at least n_features
    objective: Any = None

    def __post_init__(self) -> None:
        if self.learner not in ALL:
            raise ModelError(f"unknown learner {self.learner!r}; choose one of {', '.join(ALL)}")
        loss_of(self.task, self.loss)
        self.n_features = max(self.n_features, 2)
        if self.state is None:
            self.state = self._fresh(self.n_features)
            self.objective = self._objective()

    @property
    def n_outputs(self) -> int:
        """Margins of a row: one for regression and up to two classes, else one a class."""
        return len(self.classes) if self.task == "classification" and len(self.classes) > 2 else 1

    def _fresh(self, n_features: int) -> Any:
        try:
            state = ALL[self.learner].create(n_features, self.n_outputs, **self.settings)
        except TypeError:
            raise ModelError(f"{self.learner} has no setting among {', '.join(self.settings)}") from None
        return Averaged.create(state) if self.average else state

    def _objective(self) -> Any:
        loss = loss_of(self.task, self.loss)
        if self.task == "regression":
            return objectives.regression(loss)
        if self.n_outputs == 1:
            return objectives.Binary(loss, 0.0)
        if (self.loss or "logistic") == "logistic":
            return objectives.Multinomial(1.0)
        return objectives.OneAgainstAll(loss, getattr(self.objective, "steepest", 0.0))

    def make_room(self, n_features: int) -> None:
        """Know at least this many features; capacity doubles, so that growing costs little."""
        self.n_features = max(self.n_features, n_features)
        room = len(self.state.coordinates)
        if self.n_features > room:
            self.state = grow(self.state, max(self.n_features, 2 * room), self.n_outputs)

    def learn(self, X: Any, y: Any, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Learn a block of rows in order.

        Parameters
        ----------
        X : block of rows
            Its features are below ``n_features`` (see :meth:`make_room`).
        y : Labels, or (n,) array of numbers in regression
        weight : (n,) array
            Sample weights; a row of weight 0 is predicted but not learned.

        Returns
        -------
        predictions : (n, K) array
            Predictions made before each row was learned: margins for classification.
        suffered : (n,) array
            The loss of each.
        """
        if self.task == "regression":
            return self._pass(X, np.asarray(y, np.float64), weight)
        codes, new = self._codes(y)
        pieces, start = [], 0
        for stop, label in [*new, (n_rows(X), None)]:
            if stop > start:
                pieces.append(self._pass(part(X, start, stop), self._targets(codes[start:stop]), weight[start:stop]))
            if label is not None:
                self.add_class(label)
            start = stop
        suffered = [losses_of_piece for _, losses_of_piece in pieces]
        return _joined([margins for margins, _ in pieces], self.n_outputs), np.concatenate([np.empty(0), *suffered])

    def _pass(self, X: Any, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        predictions, suffered = np.empty((len(y), self.n_outputs)), np.empty(len(y))
        y, weight = np.ascontiguousarray(y), np.ascontiguousarray(weight)
        self.objective = passes.learn(self.state, self.objective, X, y, weight, predictions)
        passes.measure(self.objective, y, predictions, suffered)
        return predictions, suffered

    def _codes(self, y: Labels) -> tuple[np.ndarray, list[tuple[int, Any]]]:
        """The class of each row, and (first row, label) of each class that is new, in order."""
        known = {label: k for k, label in enumerate(self.classes)}
        new = sorted((int(np.argmax(y.codes == i)), i) for i, label in enumerate(y.values) if label not in known)
        known |= {y.values[i]: len(self.classes) + k for k, (_, i) in enumerate(new)}
        numbers = np.array([known[label] for label in y.values], np.int64)
        return numbers[y.codes], [(first, y.values[i]) for first, i in new]

    def _targets(self, codes: np.ndarray) -> np.ndarray:
        """Classes as the objective takes them: -1 and +1 for one output."""
        return np.where(codes == 1, 1.0, -1.0) if self.n_outputs == 1 else codes.astype(np.float64)

    def add_class(self, label: Any) -> None:
        """A class is new: a third one turns one margin into three, in which the old margin is that of class 1."""
        if len(self.classes) >= MANY_CLASSES:
            raise DataError(
                f"the target has more than {MANY_CLASSES} different values",
                remedy="if it is a number, pass --task regression; else group rare classes",
            )
        before = self.n_outputs
        self.classes.append(label)
        if self.n_outputs > before:
            self.state = grow(self.state, len(self.state.coordinates), self.n_outputs, first=1 if before == 1 else 0)
            self.objective = self._objective()

    def errors(self, y: Any, predictions: np.ndarray) -> np.ndarray:
        """1 where a predicted class is wrong, else 0; in regression the absolute error."""
        if self.task == "regression":
            return np.abs(np.clip(np.asarray(y, np.float64) - predictions[:, 0], -1e308, 1e308))
        codes, _ = self._codes(y)
        return (codes != chosen(predictions)).astype(np.float64)

    def linear(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights (d, K) relative to the units (d,) of the features: margin = sum of weight * x / unit."""
        weights, units = np.empty((self.n_features, self.n_outputs)), np.empty(self.n_features)
        passes.read(self.state, weights, units)
        return weights, units

    def predict(self, X: Any, linear: tuple[np.ndarray, np.ndarray] | None = None) -> np.ndarray:
        """Margins (n, K), or in regression the predicted targets (n, 1), of a block of rows."""
        weights, units = linear or self.linear()
        margins = np.empty((n_rows(X), weights.shape[1]))
        passes.score(weights, units, X, margins)
        if self.task == "regression":
            with np.errstate(over="ignore"):
                margins = np.clip((self.objective.centre + margins) * self.objective.unit, -1e308, 1e308)
        return margins

    def losses(self, y: Any, predictions: np.ndarray) -> np.ndarray:
        """The loss of each prediction; NaN for a label that was never seen in training."""
        suffered = np.empty(len(predictions))
        if self.task == "regression":
            passes.measure(self.objective, np.asarray(y, np.float64), np.ascontiguousarray(predictions), suffered)
            return suffered
        codes, _ = self._codes(y)
        known = codes < len(self.classes)
        targets = self._targets(np.where(known, codes, 0))
        passes.measure(self.objective, targets, np.ascontiguousarray(predictions), suffered)
        return np.where(known, suffered, np.nan)

    def probabilities(self, margins: np.ndarray) -> np.ndarray:
        """Class probabilities (n, classes) of margins under the logistic loss."""
        if self.n_outputs == 1:
            margins = np.column_stack([np.zeros(len(margins)), margins[:, 0]])
        odds = np.exp(margins - margins.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)

    def save_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :meth:`restore` makes the same model, to the last bit."""
        arrays, scalars = _flatten("learner", self.state, self.n_features)
        objective = {name: value for name, value in self.objective._asdict().items() if name != "loss"}
        header = {
            name: getattr(self, name)
            for name in ("task", "learner", "loss", "average", "settings", "classes", "n_features")
        }
        return arrays, header | {"scalars": scalars, "objective": objective, "tally": asdict(self.tally)}

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Model:
        """The model that :meth:`save_state` wrote down."""
        header = dict(header)
        scalars, objective = header.pop("scalars"), header.pop("objective")
        model = cls(**{**header, "tally": Tally(**header["tally"])})
        model.state = _filled("learner", model.state, arrays, scalars)
        model.objective = model.objective._replace(**objective)
        return model

    def __getstate__(self) -> dict[str, Any]:
        return dict(zip(("arrays", "header"), self.save_state(), strict=True))

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.__dict__.update(Model.restore(**copy.deepcopy(saved)).__dict__)


def _flatten(prefix: str, state: Any, n_features: int) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """The arrays (those of the features cut to the features known) and the scalars of a state, by dotted name."""
    arrays: dict[str, np.ndarray] = {}
    scalars: dict[str, float] = {}
    for name, value in state._asdict().items():
        key = f"{prefix}.{name}"
        if hasattr(value, "_asdict"):
            inner = _flatten(key, value, n_features)
            arrays, scalars = arrays | inner[0], scalars | inner[1]
        elif name == "outputs":
            continue
        elif isinstance(value, np.ndarray):
            for field in value.dtype.names or ():
                arrays[f"{key}.{field}"] = np.asarray(value[field][:n_features])
            if value.dtype.names is None:
                arrays[key] = value
        else:
            scalars[key] = float(value)
    return arrays, scalars


def _filled(prefix: str, blank: Any, arrays: dict[str, np.ndarray], scalars: dict[str, float]) -> Any:
    """A fresh state with the arrays and scalars that :func:`_flatten` gave."""
    fields = {}
    for name, value in blank._asdict().items():
        key = f"{prefix}.{name}"
        fields[name] = value
        if hasattr(value, "_asdict"):
            fields[name] = _filled(key, value, arrays, scalars)
        elif key in arrays:
            value[...] = arrays[key]
        elif isinstance(value, np.ndarray) and value.dtype.names:
            for field in value.dtype.names:
                value[field][: len(arrays[f"{key}.{field}"])] = arrays[f"{key}.{field}"]
        elif key in scalars:
            fields[name] = scalars[key]
    return type(blank)(**fields)


def chosen(margins: np.ndarray) -> np.ndarray:
    """The class with the largest margin; with one margin, class 1 where it is positive."""
    return (margins[:, 0] > 0).astype(np.int64) if margins.shape[1] == 1 else margins.argmax(axis=1)


def _joined(pieces: list[np.ndarray], n_outputs: int) -> np.ndarray:
    """Margins of pieces with ever more outputs; a class not yet known has the margin of a class never chosen."""
    joined = [np.full((len(piece), n_outputs), -np.inf) for piece in pieces]
    for wide, piece in zip(joined, pieces, strict=True):
        if piece.shape[1] == n_outputs:
            wide[:] = piece
        elif piece.shape[1] == 1:
            wide[:, 0], wide[:, 1] = 0.0, piece[:, 0]
        else:
            wide[:, : piece.shape[1]] = piece
    return np.concatenate(joined) if joined else np.empty((0, n_outputs))

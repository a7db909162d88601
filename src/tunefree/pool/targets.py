"""Targets and scores: labels and their codes, running metrics of a stream, and the losses of a model's predictions."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import DataError, ModelError, nearest
from tunefree.core.numbers import MOST
from tunefree.core.schema import Size
from tunefree.losses.objectives import chosen, measured
from tunefree.pool import calibration

MANY_CLASSES = 1000
FEWEST_ROWS = 3  # a class with fewer rows is rare
MANY_ROWS = 1000  # with up to so many rows no class is rare
LONGEST_LABEL = 2**16  # letters
MOST_SUMMED = 1e308  # the upper limit of sums of losses and errors


class Labels(NamedTuple):
    """The labels of some rows: distinct values, and the index of the value of each row."""

    values: list[Any]
    codes: np.ndarray  # (n,) int64

    @classmethod
    def of(cls, y: Any) -> Labels:
        """The labels of an array, with a code for each row."""
        if len(y) == 1:
            return cls(np.asarray(y).tolist(), np.zeros(1, np.int64))
        values, codes = np.unique(np.asarray(y), return_inverse=True)
        return cls(values.tolist(), codes.reshape(-1).astype(np.int64))


def check_lengths(labels: Labels, file: str | None = None, numbers: np.ndarray | None = None) -> None:
    """Raise a DataError, with the file and the row number, if a label is too long."""
    lengths = [len(label) if isinstance(label, str) else 0 for label in labels.values]
    longest = max(lengths, default=0)
    if longest > LONGEST_LABEL:
        first = int(np.argmax(labels.codes == lengths.index(longest)))
        problem = f"the label has {longest:,} letters, more than {LONGEST_LABEL:,}"
        remedy = "name the column of the target, or check its quotes"
        raise DataError(problem, file, None if numbers is None else int(numbers[first]), remedy=remedy)


def written(label: Any) -> Any:
    """The normal form of a label, the same for 1, "1" and "1.0", and for True and "true".

    >>> written(1) == written("1.0"), written(True) == written("true"), written("a")
    (True, True, 'a')
    """
    text = str(label).strip().lower()
    try:
        return float(text)
    except ValueError:
        return text


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or pandas.NA; comparisons with pandas.NA are neither true nor false.

    >>> is_missing(None), is_missing(np.float64("nan")), is_missing("nan")
    (True, True, False)
    """
    if value is None or type(value) in (int, float, bool, str):
        return value is None or value != value
    differs = value != value
    return type(differs).__name__ == "NAType" or (isinstance(differs, (bool, np.bool_)) and bool(differs))


def label_of_row(label: Any) -> Any:
    """The label of a single row; NumPy numbers and strings become Python values.

    A DataError is raised if the label is missing, too long, or not hashable.
    """
    if any(map(is_missing, label if isinstance(label, tuple) else [label])):
        raise DataError(f"the label {label!r} is missing", remedy="leave the row out")
    if not isinstance(label, Hashable):
        raise DataError(f"the label {label!r} is of type {type(label).__name__}", remedy="pass a string or a number")
    plain = label.item() if isinstance(label, (np.bool_, np.number, np.str_)) else label
    check_lengths(Labels([plain], np.zeros(1, np.int64)))
    return plain


def target_of_row(target: Any) -> float:
    """The target of a single row; a DataError is raised if it is not a finite number."""
    try:
        number = float(target)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"the target {target!r} is no finite number", remedy="leave the row out, or correct it")
    return number


def place_of(label: Any, labels: Sequence[Any]) -> int:
    """The index of a label in ``labels``, or of the label that is written like it.

    If it is missing, a ModelError proposes the nearest label.

    >>> place_of("1.0", [0, 1]), place_of("no", ["yes", "no"])
    (1, 1)
    """
    for is_same in (
        lambda known: known == label or str(known) == str(label),
        lambda known: not isinstance(known, str) and written(known) == written(label),
    ):
        if (index := next((k for k, known in enumerate(labels) if is_same(known)), None)) is not None:
            return index
    known = [written(other) if isinstance(other, bool) and isinstance(label, str) else other for other in labels]
    raise ModelError(f"there is no class {label!r}; {nearest(label, known, 'classes')}")


@dataclass
class RunningMetrics:
    """Sums over the rows of a stream, each predicted before it was learned."""

    rows: int = 0
    weight: Size = 0.0  # sum of sample weights
    loss: Size = 0.0  # weighted sum of losses
    errors: Size = 0.0  # weighted sum of wrong classes, or of absolute errors in regression

    def add(self, weight: np.ndarray, row_losses: np.ndarray, errors: np.ndarray) -> None:
        """Add a batch; sums run row by row, so that they do not depend on where batches are cut.

        Rows whose loss is NaN were not predicted: they count in ``rows`` but not in the sums.
        """
        self.rows += len(weight)
        predicted = ~np.isnan(row_losses)
        if not predicted.all():
            weight, row_losses, errors = weight[predicted], row_losses[predicted], errors[predicted]
        self.weight = running_sum(self.weight, weight)
        with np.errstate(over="ignore"):
            self.loss = running_sum(self.loss, weight * row_losses)
            self.errors = running_sum(self.errors, weight * errors)

    def mean_loss(self) -> float:
        return self.loss / self.weight if self.weight > 0 else 0.0

    def mean_error(self) -> float:
        return self.errors / self.weight if self.weight > 0 else 0.0


@dataclass
class RunningMean:
    """The mean of the targets of a stream, in regression."""

    weight: Size = 0.0  # sum of sample weights
    total: float = 0.0  # weighted sum of targets

    def add(self, weight: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Add a batch; returns the mean (n,) of the targets before each row, NaN before the first one.

        >>> RunningMean().add(np.array([1.0, 1.0, 3.0]), np.array([1900.0, 2000.0, 1990.0]))
        array([  nan, 1900., 1950.])
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            weights = np.cumsum(np.concatenate([[self.weight], weight]))
            totals = np.clip(np.cumsum(np.concatenate([[self.total], weight * targets])), -1e308, 1e308)
            self.weight, self.total = float(weights[-1]), float(totals[-1])
            return np.where(weights[:-1] > 0.0, totals[:-1] / weights[:-1], np.nan)


def running_sum(start: float, terms: np.ndarray) -> float:
    """The sum of ``start`` and the terms, added one by one, so that it does not depend on the batches of rows."""
    if not len(terms):
        return start
    if len(terms) == 1:
        return min(start + float(terms[0]), MOST_SUMMED)
    terms = terms.astype(np.float64)  # a copy
    with np.errstate(over="ignore"):
        terms[0] += start
        return float(np.minimum(np.cumsum(terms)[-1], MOST_SUMMED))


def check_room(n_classes: int) -> None:
    """Raise a DataError if a model of ``n_classes`` classes cannot have another one."""
    if n_classes >= MANY_CLASSES:
        raise DataError(
            f"the target has more than {MANY_CLASSES} different values",
            remedy="if it is a number, pass `task='regression'`; else group rare classes",
        )


class ScoredModel:
    """A model whose predictions can be scored against known targets.

    Subclasses have ``task``, ``classes`` (labels in the order of the outputs), ``objective`` (which computes losses of
    predictions) and a conversion of margins to log-odds. Columns may be ``monotone``.
    """

    task: str
    classes: list[Any]
    monotone: Sequence[Any] = ()

    @property
    def objective(self) -> Any:
        """The objective, which computes predictions and losses from margins and targets."""
        raise NotImplementedError

    def _log_odds(self, margins: np.ndarray) -> np.ndarray:
        """Logarithms (n, classes) of probabilities up to a constant for each row."""
        raise NotImplementedError

    @property
    def n_outputs(self) -> int:
        """The number of margins of a row: one for regression and up to two classes, else one for each class."""
        return len(self.classes) if self.task == "classification" and len(self.classes) > 2 else 1

    def codes(self, y: Labels) -> tuple[np.ndarray, list[tuple[int, Any]]]:
        """The class index of each row, and (first row, label) of each new class, in order of first rows."""
        known = {label: k for k, label in enumerate(self.classes)}
        if all(label in known for label in y.values):
            return np.array([known[label] for label in y.values], np.int64)[y.codes], []
        check_lengths(y)
        new = sorted((int(np.argmax(y.codes == i)), i) for i, label in enumerate(y.values) if label not in known)
        known |= {y.values[i]: len(self.classes) + k for k, (_, i) in enumerate(new)}
        numbers = np.array([known[label] for label in y.values], np.int64)
        return numbers[y.codes], [(first, y.values[i]) for first, i in new]

    def targets_of(self, codes: np.ndarray) -> np.ndarray:
        """Class indices in the form of the objective: -1 and +1 for one output."""
        return np.where(codes == 1, 1.0, -1.0) if self.n_outputs == 1 else codes.astype(np.float64)

    def errors(self, y: Any, predictions: np.ndarray) -> np.ndarray:
        """1 where the predicted class is wrong, else 0; in regression the absolute error."""
        if self.task == "regression":
            with np.errstate(over="ignore"):
                return np.minimum(np.abs(np.asarray(y, np.float64) - self.responses(predictions)), MOST)
        return (self.codes(y)[0] != chosen(predictions)).astype(np.float64)

    def responses(self, predictions: np.ndarray) -> np.ndarray:
        """Predicted targets (n,) from predictions (n, 1), see :func:`tunefree.losses.contract.response`."""
        numbers: np.ndarray = self.objective.loss.response(predictions[:, 0])
        return numbers

    def losses(self, y: Any, predictions: np.ndarray) -> np.ndarray:
        """The loss of each prediction; NaN for a label that did not occur in training."""
        if self.task == "regression":
            return measured(self.objective, np.asarray(y, np.float64), predictions)
        codes, known = self._known_codes(y)
        return np.where(known, measured(self.objective, self.targets_of(codes), predictions), np.nan)

    def log_losses(self, y: Labels, margins: np.ndarray) -> np.ndarray:
        """Minus the logarithm of the probability of each label; NaN for a label that did not occur in training."""
        codes, known = self._known_codes(y)
        return np.where(
            known, measured(calibration.LOG_LOSS, codes.astype(np.float64), self._log_odds(margins)), np.nan
        )

    def probabilities(self, margins: np.ndarray) -> np.ndarray:
        """Class probabilities (n, classes) from margins; a single class has probability 1."""
        if len(self.classes) == 1:
            return np.ones((len(margins), 1))
        return calibration.probabilities(self._log_odds(margins))

    def _known_codes(self, y: Labels) -> tuple[np.ndarray, np.ndarray]:
        """The class index of each row, 0 for unknown labels; and a mask of rows with known labels."""
        codes, _ = self.codes(y)
        return np.where(codes < len(self.classes), codes, 0), codes < len(self.classes)


def join_margins(pieces: list[np.ndarray], n_outputs: int) -> np.ndarray:
    """Concatenate margins of successive pieces, padded to ``n_outputs`` columns.

    A class that was not yet known has margin -inf. A single margin becomes the margin of class 1, with margin 0 for
    class 0.
    """
    if len(pieces) == 1 and pieces[0].shape[1] == n_outputs:
        return pieces[0].copy()
    joined = [np.full((len(piece), n_outputs), -np.inf) for piece in pieces]
    for wide, piece in zip(joined, pieces, strict=True):
        known = calibration.margins_of_classes(piece) if n_outputs > 1 else piece
        wide[:, : known.shape[1]] = known
    return np.concatenate(joined) if joined else np.empty((0, n_outputs))

"""Prediction from a model file with only NumPy and llvmlite, without importing scikit-learn or Arrow.

>>> import tempfile, pathlib, tunefree
>>> people = {"age": [20.0, 60.0] * 100, "job": ["cook", "clerk"] * 100, "rich": ["no", "yes"] * 100}
>>> with tempfile.TemporaryDirectory() as folder:
...     path = pathlib.Path(folder) / "people.model"
...     tunefree.train(people, target="rich").save(path, only_for_prediction=True)
...     model = load(path)
>>> model.predict([{"age": 61, "job": "clerk"}, {"age": None, "job": "cook"}]).tolist()
['yes', 'no']
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tunefree.core.errors import DataError
from tunefree.core.numbers import MOST
from tunefree.core.threads import Turn
from tunefree.losses.objectives import chosen
from tunefree.model_files import trained as model_files
from tunefree.stream.plain import PlainEncoder


class Predictor:
    """A trained model that only predicts, returned by :func:`load`.

    Rows are a mapping of columns such as ``{"age": [39, 50]}``, a sequence of mappings such as ``[{"age": 39}]``, or a
    two-dimensional array with the columns of the training in their order. A missing value is None or NaN.

    Attributes
    ----------
    classes_ : ndarray
        Class labels, in the order of probabilities. Only for classifiers.
    """

    def __init__(self, trained: Any) -> None:
        self._model, self._encoder, self._turn = trained.model, trained.encoder, Turn()
        if self._model.task == "classification":
            labels = self._model.classes
            self._labels = np.array(labels, None if len({*map(type, labels)}) == 1 else object)
            self._order = np.argsort(self._labels) if self._labels.dtype != object else np.arange(len(labels))
            self.classes_ = self._labels[self._order]

    def predict(self, rows: Any, exposure: Any = None) -> np.ndarray:
        """Predict the label, or number, of each row; ``exposure`` (n,) are exposures of the rows, for rates."""
        margins = self._margins(rows)
        if self._model.task == "classification":
            labels: np.ndarray = self._labels[chosen(margins)]
            return labels
        numbers: np.ndarray = self._model.responses(margins)
        return numbers if exposure is None else np.minimum(numbers * _checked(exposure, len(numbers)), MOST)

    def predict_proba(self, rows: Any) -> np.ndarray:
        """Predict class probabilities of shape (n, n_classes), in the order of ``classes_``."""
        if self._model.task != "classification":
            raise AttributeError("a model of numbers has no probabilities")
        probabilities: np.ndarray = self._model.probabilities(self._margins(rows))[:, self._order]
        return probabilities

    def _margins(self, rows: Any) -> np.ndarray:
        block = self._encoder.encode(rows)
        with self._turn:
            margins: np.ndarray = self._model.predict(block)
        return margins


def load(path: str | os.PathLike[str]) -> Predictor:
    """Read a model file whose columns are numbers, categories and booleans.

    Raises
    ------
    ModelError
        If the file cannot be read, or the model has text, lists, dates, times or hashed features; use
        :func:`tunefree.load` for these.
    """
    return Predictor(model_files.load(path, "linear", PlainEncoder))


def _checked(exposure: Any, n: int) -> np.ndarray:
    exposures = np.asarray(exposure, np.float64)
    if exposures.shape != (n,) or not (np.isfinite(exposures) & (exposures > 0.0)).all():
        raise DataError("exposures are not one finite number above 0 for each row")
    return exposures

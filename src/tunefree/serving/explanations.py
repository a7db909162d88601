"""Explanations of rows that are asked for one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tunefree.serving.journal import Row
from tunefree.serving.learner import Learner, Published
from tunefree.serving.rows import Reader
from tunefree.stream.batch import Refused
from tunefree.workflows.explanation import Explainer, decomposition_of
from tunefree.workflows.prediction import Predicted


class Explanations:
    """Explains predictions, between learning: what contributions are relative to are rows that the model keeps.

    Parameters
    ----------
    learner : Learner
    reader : Reader
        Of the thread that learns.
    """

    def __init__(self, learner: Learner, reader: Reader) -> None:
        self._learner, self._reader = learner, reader
        self._published: Published | None = None
        self._decomposition: Any = None

    def of(self, rows: list[Row], label: Any = None) -> list[Row]:
        """The class, its margin, and what each column contributes to that, of each row.

        Parameters
        ----------
        rows : list of dict
        label : label, optional
            The class to explain; by default the second of two, and of more the one that is predicted.

        Raises
        ------
        DataError, ModelError
            If a row cannot be used, there is no such class, or the model has kernels alone.
        """
        self._learner.settle()
        if self._published is not self._learner.published:
            published = self._learner.published
            trained = replace(self._learner.trained, model=published.model, encoder=published.encoder)
            self._decomposition, self._trained, self._published = decomposition_of(trained), trained, published
        model, encoder = self._trained.model, self._trained.encoder
        batch, _ = self._reader.batch(encoder, rows, Refused(target=encoder.target))
        predicted = Predicted(batch, model.predict(batch.rows))
        explained = Explainer(self._trained, self._decomposition, label).of(predicted)
        names, classes = self._decomposition.names, model.classes
        answers: list[Row] = []
        for k, margin in enumerate(explained.margins.tolist()):
            of_class = {} if model.task == "regression" else {"class": classes[int(explained.classes[k])]}
            contributions = dict(zip(names, explained.contributions[k].tolist(), strict=True))
            answers.append({**of_class, "margin": margin, "contributions": contributions})
        return answers

"""Explanations of a model in operation, in a thread of their own, one request after the other.

Learning is asked for a copy of the model, as it is asked for those that predict: only where one of these is newer, so
that explanations take no more of its time than predictions do.
"""

from __future__ import annotations

import copy
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from tunefree.core import threads
from tunefree.explanation.decomposition import Decomposition
from tunefree.explanation.members import Reference
from tunefree.model_files.trained import Trained
from tunefree.pool.model import published
from tunefree.serving.journal import Row
from tunefree.serving.learner import Due, Learner, begun
from tunefree.serving.rows import Reader
from tunefree.stream.batch import Refused
from tunefree.stream.layout import Layout
from tunefree.workflows import explanation
from tunefree.workflows.prediction import Predicted


class Explainer:
    """Explains what the model predicts that was published last."""

    def __init__(self, learner: Learner, reader: Reader) -> None:
        self._learner, self._reader = learner, reader
        self._thread = ThreadPoolExecutor(1, "tunefree-explaining", threads.lower_priority)
        # The model that predicted when the latest copy was made, that copy, and its terms.
        self._latest: tuple[weakref.ref[Any], Trained, Decomposition] | None = None

    def submit(self, rows: list[Row], label: Any = None) -> Future[list[Row]]:
        """Let rows be explained."""
        due = Due(lambda: self._explain(rows, label), begun())
        self._thread.submit(due.do)
        return due.answer

    def close(self) -> None:
        """Explain what was submitted."""
        self._thread.shutdown()

    def _explain(self, rows: list[Row], label: Any) -> list[Row]:
        if self._latest is None or self._latest[0]() is not self._learner.published.model:
            self._latest = None  # which has the memory that the next one needs
            since, trained, reference = self._learner.between(self._copied)
            terms = Decomposition(trained.model, Layout.of_encoder(trained.encoder), reference=reference)
            self._latest = since, trained, terms
        _, trained, terms = self._latest
        model = trained.model
        batch, _ = self._reader.batch(trained, rows, Refused(target=trained.encoder.target))
        explained = explanation.Explainer(trained, terms, label).of(Predicted(batch, model.predict(batch.rows)))
        answers: list[Row] = []
        for k, margin in enumerate(explained.margins.tolist()):
            class_entry = {} if model.task == "regression" else {"class": model.classes[int(explained.classes[k])]}
            contributions = dict(zip(terms.names, explained.contributions[k].tolist(), strict=True))
            answers.append({**class_entry, "margin": margin, "contributions": contributions})
        return answers

    def _copied(self) -> tuple[weakref.ref[Any], Trained, Reference]:
        """The model as it is now; contributions are relative to the rows of the reference."""
        self._learner.settle()
        trained = self._learner.trained
        apart = replace(trained, model=published(trained.model), encoder=copy.deepcopy(trained.encoder))
        return weakref.ref(self._learner.published.model), apart, Reference.of(trained.model, True)

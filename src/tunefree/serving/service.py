"""A model in operation: it predicts, learns, and is saved as it learns; :mod:`tunefree.serving.http` serves it."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tunefree.core import threads
from tunefree.core.errors import ModelError
from tunefree.explanation.decomposition import Decomposition
from tunefree.explanation.members import Reference
from tunefree.model_files.trained import Trained, continued
from tunefree.serving.events import Counts
from tunefree.serving.journal import Row, StoreError
from tunefree.serving.learner import Learner, Published, Request
from tunefree.serving.predictor import Predictor
from tunefree.serving.rows import Reader
from tunefree.serving.settings import Admission, Keeping, is_store
from tunefree.serving.store import Store
from tunefree.stream.batch import Refused
from tunefree.stream.formats import TABLE
from tunefree.stream.layout import Layout
from tunefree.workflows import explanation
from tunefree.workflows.output_columns import PLAIN, OutputColumns
from tunefree.workflows.prediction import Predicted


class Service:
    """A model that predicts and learns rows, which are dicts as JSON has them.

    What is learned is the stream that the model was trained on, continued. Rows that are predicted with an id wait for
    their label. Methods may be called by several threads; predictions wait neither for learning nor for saving, and
    know what was learned up to a short time before (:meth:`settle`). They raise a DataError if a row cannot be used, a
    StoreError if rows cannot be written down, of which none is learned then, and a ModelError if something is asked for
    that the model or the store does not have.

    Parameters
    ----------
    model : Trained, optional
        A model of tables; by default the one in the folder.
    folder : path, optional
        The store of the model (:mod:`tunefree.serving.store`), which is made if it is not there; nothing is saved by
        default. A store that began with this model goes on from where it was.
    admission : Admission
        Which rows are taken.
    keeping : Keeping
        What is kept, how long, and when it is saved.

    Raises
    ------
    ModelError
        If the model is not one of tables or is a checkpoint, or the folder is that of another model, or is in use.

    Examples
    --------
    >>> from tunefree.stream.source import open_source
    >>> from tunefree.model_files.plan import Plan
    >>> from tunefree.training.training import train
    >>> table = {"age": [20.0, 60.0] * 100, "rich": ["no", "yes"] * 100}
    >>> with Service(train(open_source(table), Plan(target="rich"))) as service:
    ...     [answer] = service.predict([{"age": 25.0, "id": "a"}])
    ...     answer["id"], answer["prediction"], service.label([{"id": "a", "rich": "no"}])
    ('a', 'no', {'learned': 1, 'unknown': []})
    """

    def __init__(
        self,
        model: Trained | None = None,
        folder: str | Path | None = None,
        admission: Admission = Admission(),  # noqa: B008 - immutable
        keeping: Keeping = Keeping(),  # noqa: B008 - immutable
    ) -> None:
        self.admission, self.counts = admission, Counts()
        if model is not None:
            check_serves(model)
        place = None if folder is None else Path(folder)
        self.store = Store(place, model, keeping.durability, keeping.keep_versions)
        try:
            current = model if place is None else self.store.current()
            assert current is not None
            check_serves(current)
            encoder, name = current.encoder, admission.id
            if name in (encoder.target, encoder.weight, encoder.group):
                problem = f"`id={name!r}`: {name!r} is the target, the weight or the group of the model"
                raise ModelError(f"{problem}; name another")
            learns, predicts, explains = self._readers = [Reader(admission) for _ in range(3)]  # of a thread each
            self.learner = Learner(self.store, current, learns, keeping, self.counts)
            self.explainer = Explainer(self.learner, explains)
            self.predictor = Predictor(self.learner, predicts, keeping, self.counts)
        except BaseException:
            self.store.close()
            raise

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Predict and learn the submitted rows, save, and release the store."""
        self.explainer.close()
        self.learner.close()
        self.store.close()

    def predict(self, rows: list[Row], layout: OutputColumns = PLAIN) -> list[Row]:
        """The prediction of each row, with the probabilities of classes, its id, and the columns that were ignored.

        ``layout`` has the intervals, quantiles and sets that are added.
        """
        return self.predictor.predict(rows, layout)

    def learn(self, rows: list[Row], request: str | None = None) -> Row:
        """Learn rows with their targets, all of them or, if one cannot be used, none.

        Under the name of a ``request`` they are learned once, however often they are sent. The answer has the number of
        rows, ``learned``, and ``repeated`` if they had been learned before.
        """
        return self.learner.submit(Request(rows, name=request)).result()

    def label(self, labels: list[Row], request: str | None = None) -> Row:
        """Learn the rows that were predicted under these ids; each label is a dict with an id and a target.

        The answer is that of :meth:`learn`, with the ids that do not wait as ``unknown``.
        """
        return self.learner.submit(Request(labels, True, request)).result()

    def explain(self, rows: list[Row], label: Any = None) -> list[Row]:
        """For each row the class, its margin, and the contributions of columns to the margin.

        The class is ``label``; by default the second of two, and of more the one that is predicted.
        """
        return self.explainer.submit(rows, label).result()

    def problems(self) -> list[str]:
        """Problems that prevent learning or saving."""
        return [problem for problem in (self.learner.broken, self.learner.failure) if problem is not None]

    def settle(self) -> None:
        """Wait until predictions know all that was learned."""
        self.learner.between(self.learner.settle)

    def save(self) -> None:
        """Save a version now, if rows were learned since the last."""

        def save() -> None:
            if self.learner.unsaved:
                self.learner.save("it was asked for")
            if self.learner.failure is not None:
                raise StoreError(self.learner.failure)

        self.learner.between(save)

    def roll_back(self, number: int) -> int:
        """Go on from an earlier version, without later learning; returns its new number."""
        return self.learner.between(lambda: self._take(self.store.load(number), f"rolled back to version {number}"))

    def take(self, name: str) -> int:
        """Go on with a model file of the store's folder ``incoming``; returns the number of its version."""
        return self.learner.between(lambda: self._take(self.store.incoming(name), f"the incoming model {name}"))

    def _take(self, model: Trained, reason: str) -> int:
        check_serves(model)
        number = self.learner.replace(model, reason)
        self.predictor.odd.comparison = None
        return number

    def state(self) -> Row:
        """The state of the model, the rows learned, and the losses of these rows before they were learned."""
        learner, published = self.learner, self.learner.published
        model, metrics = published.model, learner.trained.progress.progressive[0]
        return {
            "version": self.store.versions[-1].number,
            "task": model.task,
            "target": published.encoder.target,
            "columns": [column.name for column in published.encoder.columns],
            "classes": model.classes if model.task == "classification" else None,
            "rows": metrics.rows,
            "rows_published": published.rows,
            "progressive_loss": metrics.mean_loss(),
            "recent_loss": learner.recent,
            "drift_count": learner.n_rises,
            "drifts": published.drifts,
            "oddities": self.predictor.oddities(),
            "values_ignored": sum(reader.n_ignored for reader in self._readers),
            "learn_queue": learner.n_queued,
            "predict_queue": self.predictor.n_queued,
            "unsaved": learner.unsaved,
            "save_failure": learner.failure,
            "learn_failure": learner.broken,
            "waiting": self.store.journal.n_rows["waiting"],
        }


class Explainer:
    """Explains predictions of the latest published model, in a thread, one request after the other.

    Learning is asked for a copy of the model, as it is asked for those that predict: only where one of these is newer,
    so that explanations take no more of its time than predictions do.
    """

    def __init__(self, learner: Learner, reader: Reader) -> None:
        self._learner, self._reader = learner, reader
        self._thread = ThreadPoolExecutor(1, "tunefree-explaining", threads.lower_priority)
        # The number of the publication when the latest copy was made, that copy, and its terms.
        self._latest: tuple[int, Published, Decomposition] | None = None

    def submit(self, rows: list[Row], label: Any = None) -> Future[list[Row]]:
        """Submit rows to be explained."""
        return self._thread.submit(self._explain, rows, label)

    def close(self) -> None:
        """Explain the submitted rows, and end."""
        self._thread.shutdown()

    def _explain(self, rows: list[Row], label: Any) -> list[Row]:
        if self._latest is None or self._latest[0] != self._learner.n_published:
            self._latest = None  # which has the memory that the next one needs
            number, copied, reference = self._learner.between(self._copied)
            terms = Decomposition(copied.model, Layout.of_encoder(copied.encoder), reference=reference)
            self._latest = number, copied, terms
        _, copied, terms = self._latest
        model: Any = copied.model
        batch, _ = self._reader.batch(copied, rows, Refused(target=copied.encoder.target))
        explained = explanation.Explainer(copied, terms, label).of(Predicted(batch, model.predict(batch.rows)))
        answers: list[Row] = []
        for k, margin in enumerate(explained.margins.tolist()):
            class_entry = {} if model.task == "regression" else {"class": model.classes[int(explained.classes[k])]}
            contributions = dict(zip(terms.names, explained.contributions[k].tolist(), strict=True))
            answers.append({**class_entry, "margin": margin, "contributions": contributions})
        return answers

    def _copied(self) -> tuple[int, Published, Reference]:
        """The model as it is now; contributions are relative to the rows of the reference."""
        learner = self._learner
        learner.settle()
        return learner.n_published, learner.copied(), Reference.of(learner.trained.model, True)


def check_serves(trained: Trained) -> None:
    """Raise an error if a model cannot be served."""
    if trained.kind != TABLE:
        raise ModelError(f"the model was trained on {trained.kind} text; rows of JSON are for models of tables")
    if trained.model.predictor.only_predicts:
        raise ModelError("this model only predicts; serve the model that it was made of")
    continued(trained)


def opened(path: Path, output: Path | None) -> tuple[Trained | None, Path | None]:
    """The model and the store that are meant by a model file or a store, and an output, which is checked first."""
    if is_store(path):
        if output is not None and output.resolve() != path.resolve():
            raise ModelError(f"{path}: is a store, which is served as it is; leave `output` out")
        return None, path
    if str(output) == "-":
        raise ModelError("-: this is not written to standard output; name a folder")
    is_other = output is not None and output.exists() and not is_store(output)
    if output is not None and is_other and (not output.is_dir() or any(output.iterdir())):
        raise ModelError(f"{output}: is something else than a store; name a folder that is empty, or a new one")
    return Trained.load(path), output

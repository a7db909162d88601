"""A model in operation: it predicts, learns, and is saved as it learns; :mod:`tunefree.serving.http` serves it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tunefree.core.errors import ModelError
from tunefree.core.storage import check_writable
from tunefree.model_files.trained import Trained, continued
from tunefree.serving.explaining import Explainer
from tunefree.serving.journal import Row, StoreError
from tunefree.serving.learner import Learner, Tell
from tunefree.serving.predictor import Predictor
from tunefree.serving.requests import Counts, Request
from tunefree.serving.rows import Reader
from tunefree.serving.settings import Admission, Keeping, is_store
from tunefree.serving.store import Store
from tunefree.stream.batch import Refused
from tunefree.stream.formats import TABLE
from tunefree.stream.notation import ColumnTypes
from tunefree.workflows.output_columns import PLAIN, OutputColumns


def _silent(event: str, **said: Any) -> None:
    """Say nothing."""


class Service:
    """A model that predicts and learns rows, which are dicts as JSON has them.

    What is learned is the stream that the model was trained on, continued. Rows that are predicted with an id wait for
    their label. Methods may be called by several threads; predictions wait neither for learning nor for saving, and
    know what was learned up to a short time before (:meth:`settle`).

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
    column_types : ColumnTypes, optional
        How strings of rows write numbers and dates; by default as the file of training did.
    tell : function, optional
        Called with the name of an event, and keywords that say more.

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
        column_types: ColumnTypes = ColumnTypes(),  # noqa: B008 - an immutable tuple
        tell: Tell = _silent,
    ) -> None:
        self.admission, self.tell, self.counts = admission, tell, Counts()
        self._keeping = keeping
        if model is not None:
            check_serves(model)
        place = None if folder is None else Path(folder)
        self.store = Store(place, model, keeping.durability, keeping.keep_versions)
        try:
            current = model if place is None else self.store.current()
            assert current is not None
            check_serves(current)
            _check_id(current, admission.id)
            self.odd = Refused(target=current.encoder.target)  # what was odd about rows that were predicted
            self._readers = readers = [Reader(admission) for _ in range(3)]  # of threads that learn, predict, explain
            self.learner = Learner(self.store, current, readers[0], keeping, column_types, self.counts, tell)
            self.explainer = Explainer(self.learner, readers[2])
            of_predictor = self.store.journal, keeping, self.counts, self.odd, tell
            self.predictor = Predictor(lambda: self.learner.published, readers[1], *of_predictor)
        except BaseException:
            self.store.close()
            raise

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Predict and learn what was submitted, save it, and let others write the store."""
        self.explainer.close()
        self.learner.close()
        self.store.close()

    def predict(self, rows: list[Row], layout: OutputColumns = PLAIN) -> list[Row]:
        """The prediction of each row, with the probabilities of classes, its id, and the columns that were ignored.

        Parameters
        ----------
        rows : list of dict
        layout : OutputColumns, optional
            Intervals, quantiles and sets that are added to answers.

        Raises
        ------
        DataError
            If a row cannot be used.
        ModelError
            If the model has no such intervals, or too little evidence for them.
        """
        return self.predictor.predict(rows, layout)

    def learn(self, rows: list[Row], request: str | None = None) -> Row:
        """Learn rows with their targets, all of them or, if one cannot be used, none.

        Parameters
        ----------
        rows : list of dict
        request : str, optional
            A name, under which these rows are learned once, however often they are sent.

        Returns
        -------
        dict
            ``learned``, the number of rows, and ``repeated`` if they had been learned before.

        Raises
        ------
        DataError
            If a row cannot be used.
        StoreError
            If the rows cannot be written down; none was learned then.
        """
        return self.learner.submit(Request(rows, name=request)).result()

    def label(self, labels: list[Row], request: str | None = None) -> Row:
        """Learn the rows that were predicted under these ids; each label is a dict with an id and a target.

        Parameters and errors are those of :meth:`learn`; ``unknown`` in the answer are the ids that do not wait.
        """
        return self.learner.submit(Request(labels, True, request)).result()

    def explain(self, rows: list[Row], label: Any = None) -> list[Row]:
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
        return self.explainer.submit(rows, label).result()

    def problems(self) -> list[str]:
        """What keeps it from learning or saving."""
        return [problem for problem in (self.learner.broken, self.learner.failure) if problem is not None]

    def settle(self) -> None:
        """Wait until predictions know all that was learned."""
        self.learner.between(self.learner.settle)

    def save(self) -> None:
        """Save a version now, if rows were learned since the last.

        Raises
        ------
        StoreError
            If it cannot be saved.
        """

        def save() -> None:
            if self.learner.unsaved:
                self.learner.save("it was asked for")
            if self.learner.failure is not None:
                raise StoreError(self.learner.failure)

        self.learner.between(save)

    def roll_back(self, number: int) -> int:
        """Go on from an earlier version, without what was learned since; returns the number that it has now.

        Raises
        ------
        ModelError
            If that version is not kept.
        """
        return self.learner.between(lambda: self._take(self.store.load(number), f"rolled back to version {number}"))

    def take(self, name: str) -> int:
        """Go on with a model file of the store's folder ``incoming``; returns the number of its version.

        Raises
        ------
        ModelError
            If it cannot be read, or is not for the same rows.
        """
        return self.learner.between(lambda: self._take(self.store.incoming(name), f"the incoming model {name}"))

    def _take(self, model: Trained, reason: str) -> int:
        """Go on with another model, while nothing is learned; returns the number of its version."""
        check_serves(model)
        number = self.learner.replace(model, reason)
        self.odd.comparison = None
        return number

    def state(self) -> Row:
        """What the model is, what it has learned, and how well: losses are those of rows before they were learned."""
        published, trained = self.learner.published, self.learner.trained
        model, version = published.model, self.store.versions[-1]
        metrics = trained.progress.progressive[0]
        return {
            "version": version.number,
            "task": model.task,
            "target": published.encoder.target,
            "columns": [column.name for column in published.encoder.columns],
            "classes": model.classes if model.task == "classification" else None,
            "rows": metrics.rows,
            "rows_published": published.rows,
            "progressive_loss": metrics.mean_loss(),
            "recent_loss": self.learner.recent,
            "drift_count": self.learner.n_rises,
            "drift_row": published.drifts[-1]["row"] if published.drifts else None,
            "drift_time": self.learner.rose_at,
            "drifts": published.drifts,
            "oddities": self.predictor.oddities(),
            "ignored_columns": dict(sum((reader.ignored() for reader in self._readers), Counter[str]())),
            "learn_queue": self.learner.n_queued,
            "predict_queue": self.predictor.n_queued,
            "learned": self.counts.learned,
            "unsaved": self.learner.unsaved,
            "save_failure": self.learner.failure,
            "learn_failure": self.learner.broken,
            "waiting": self.store.journal.n_waiting,
            "most_waiting": self._keeping.remember,
            "dropped_for_size": self.counts.dropped_for_size,
            "dropped_for_age": self.counts.dropped_for_age,
        }


def check_serves(trained: Trained) -> None:
    """Raise an error if a model cannot be served."""
    if trained.kind != TABLE:
        raise ModelError(f"the model was trained on {trained.kind} text; rows of JSON are for models of tables")
    if trained.model.only_predicts:
        raise ModelError("what learning needs was left out of this model; serve the one before")
    continued(trained)


def _check_id(trained: Trained, name: str) -> None:
    """Raise an error if the id of rows has the name of something that the model takes for another."""
    encoder = trained.encoder
    if name in (encoder.target, encoder.weight, encoder.group):
        raise ModelError(f"`id={name!r}`: {name!r} is the target, the weight or the group of the model; name another")


def _check_folder(output: Path) -> None:
    """Raise an error if there cannot be a store, before anything is read."""
    if str(output) == "-":
        raise ModelError("-: this is not written to standard output; name a folder")
    if not output.exists():
        check_writable(output)
    elif not output.is_dir() or (any(output.iterdir()) and not is_store(output)):
        raise ModelError(f"{output}: is something else than a store; name a folder that is empty, or a new one")


def opened(path: Path, output: Path | None) -> tuple[Trained | None, Path | None]:
    """The model and the store that are meant by a model file or a store, and an output."""
    if is_store(path):
        if output is not None and output.resolve() != path.resolve():
            raise ModelError(f"{path}: is a store, which is served as it is; leave `output` out")
        return None, path
    if output is not None:
        _check_folder(output)
    return Trained.load(path), output

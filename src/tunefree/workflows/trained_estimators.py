"""Trained models as scikit-learn estimators: :func:`load`, and :func:`train` for tables, arrays and files."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from tunefree.core.errors import DataError, DataWarning, ModelError
from tunefree.core.parameters import naming
from tunefree.core.rows import sparse as sparse_rows
from tunefree.estimators import tables, validation
from tunefree.estimators.notebook import ShownInNotebooks
from tunefree.losses.objectives import chosen
from tunefree.stream.batch import Lines, Position, Refused
from tunefree.stream.formats import TABLE
from tunefree.stream.source import Source, open_source
from tunefree.stream.svmlight import SvmlightEncoder
from tunefree.workflows import explanation, model_files, training
from tunefree.workflows.doubts import doubts_of_columns
from tunefree.workflows.early_stopping import descend
from tunefree.workflows.plan import EARLY_STOPPING, ROW_BY_ROW, Plan, plan_of
from tunefree.workflows.rare_classes import rare_classes


class TrainedEstimator(ShownInNotebooks, BaseEstimator):
    """A trained model that predicts as an estimator of scikit-learn does.

    Its ``fit`` changes nothing, and ``clone`` returns the same model, so it can be the last step of a pipeline, and be
    calibrated, scored and displayed.

    Parameters
    ----------
    trained : Trained or StoppedModel
        As a model file holds it.
    """

    def __init__(self, trained: Any) -> None:
        self.trained = trained
        if trained.kind == TABLE:
            self._encoder, self._as_array = trained.encoder, False  # where rows are encoded
            self.feature_names_in_ = np.array([column.name for column in trained.encoder.columns], object)
            self.n_features_in_ = len(self.feature_names_in_)

    def fit(self, X: Any = None, y: Any = None, **options: Any) -> Any:
        """Change nothing: the model is trained.

        Parameters
        ----------
        X, y, **options
            Not used.

        Returns
        -------
        self
        """
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, as `tunefree train` does.

        Parameters
        ----------
        path : path

        Raises
        ------
        ModelError
            If the file cannot be written; an earlier one of this name is untouched.
        """
        self.trained.save(path)

    def report(self, test: Any = None) -> Any:
        """What is known of the model as a page of HTML.

        Parameters
        ----------
        test : path, sequence of paths, table or Source, optional
            Data with known targets, on which it is judged.

        Returns
        -------
        tunefree.report.page.Page
            It has ``html``, is written by ``save(path)``, and is shown in notebooks.

        Raises
        ------
        ModelError
            If the model was stopped early: only models that learned row by row keep what reports show.
        """
        if not hasattr(self.trained, "report"):
            raise ModelError(f"there is no report: {training.Trained.other_kind}")
        return self.trained.report(test)

    def history(self) -> Any:
        """Progressive losses along the stream, as a table whose ``to_pandas()`` is a data frame.

        Returns
        -------
        pyarrow.Table
            ``rows``, and over the rows so far the means ``loss`` and ``error`` (absolute error in regression).

        Raises
        ------
        ModelError
            If the model was stopped early: it has no losses along the stream.
        """
        if not hasattr(self.trained, "report"):
            raise ModelError(f"there is no history: {training.Trained.other_kind}")
        return self.progress.history()

    def explain(self, X: Any) -> tuple[list[str], np.ndarray]:
        """Contributions of the columns to the predictions of rows, which add up to these.

        Parameters
        ----------
        X : {table, array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        names : list of str
        contributions : ndarray of shape (n_samples, n_terms) or (n_samples, n_terms, n_classes)
            To what ``decision_function`` gives, of more than two classes minus the mean over them; or to numbers.

        Raises
        ------
        ModelError
            If the model was stopped early, or has kernels alone.

        Examples
        --------
        >>> model = train({"age": [20.0, 60.0] * 100, "rich": ["no", "yes"] * 100}, target="rich", learner="scinol2")
        >>> names, contributions = model.explain([[19.0]])
        >>> names, bool(np.allclose(contributions.sum(axis=1), model.decision_function([[19.0]])))
        (['(constant)', 'age'], True)
        """
        if not isinstance(self.trained, training.Trained):
            raise ModelError(f"there is no explanation: {training.Trained.other_kind}")
        decomposition = explanation.decomposition_of(self.trained)
        contributions = self._in_order(decomposition.contributions(self._rows(X)))
        return decomposition.names, contributions[:, :, 0] if contributions.shape[2] == 1 else contributions

    def _in_order(self, margins: np.ndarray) -> np.ndarray:
        """Margins (..., K) in the order of the estimator's classes."""
        return margins

    @property
    def progressive_loss_(self) -> float:
        """The mean loss of the rows, each predicted before it was learned."""
        return float(self.progress.progressive[0].mean_loss())

    @property
    def certificate_(self) -> Any:
        """Lower bounds on the loss of every linear model on the rows of the first pass; feature 0 is the constant."""
        return self.model.certificate()

    def __getattr__(self, name: str) -> Any:
        problem = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name == "partial_fit":
            problem += (
                ": it does not learn; go on by `tunefree train DATA --from MODEL`, or pickle the estimator instead"
            )
        elif name.endswith("_") and not name.startswith("_"):
            problem += ": a model file keeps what predicts; pickle the estimator to keep all that it knows"
        raise AttributeError(problem)

    def _html_repr(self) -> str:
        """The report, where there is one."""
        found: str = self.report()._repr_html_() if hasattr(self.trained, "report") else super()._html_repr()
        return found

    def _learned_html(self) -> str:
        return ""

    @property
    def model(self) -> Any:
        """The model."""
        return self.trained.model

    @property
    def encoder(self) -> Any:
        """The encoder of rows."""
        return self.trained.encoder

    @property
    def kind(self) -> str:
        """The kind of rows: ``"table"``, or a format of text."""
        return str(self.trained.kind)

    @property
    def plan(self) -> Plan:
        """The plan of the training."""
        plan: Plan = self.trained.plan
        return plan

    @property
    def progress(self) -> Any:
        """How the training went."""
        return self.trained.progress

    @naming("tunefree.train")
    def _rows(self, X: Any) -> Any:
        """A block of the model's rows."""
        if self.kind != TABLE and _are_lines(X):
            return _of_lines(self.encoder, X)
        if isinstance(self.encoder, SvmlightEncoder):
            return _numbered(self.encoder, X)
        if self.kind != TABLE:
            remedy = "pass its lines as strings, or predict files of it with `tunefree predict`"
            raise DataError(f"the model reads {self.kind} text", tables.NAME, remedy=remedy)
        if not tables.has_columns(X):
            X = _named(X, self.feature_names_in_.tolist())
        return validation.block(tables.encode(self, X, learning=False), intercept=True)

    def _predictions(self, X: Any) -> np.ndarray:
        found: np.ndarray = self.model.predict(self._rows(X))
        return found

    def __repr__(self, *args: Any, **options: Any) -> str:
        return f"{type(self).__name__}(target={self.plan.target!r}, learner={self.plan.learner!r})"

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Any:
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class TrainedClassifier(ClassifierMixin, TrainedEstimator):
    """A trained classifier; see :class:`TrainedEstimator`.

    Parameters
    ----------
    trained : Trained or StoppedModel

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted where they can be.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The columns of a model of tables, which are found by these names.
    """

    def __init__(self, trained: Any) -> None:
        super().__init__(trained)
        labels = trained.model.classes
        try:
            self._order = sorted(range(len(labels)), key=lambda k: labels[k])
        except TypeError:  # labels of several types
            self._order = list(range(len(labels)))
        found = [labels[k] for k in self._order]
        same = len({type(label) for label in found}) == 1
        self.classes_ = np.array(found) if same else np.array(found, object)

    def decision_function(self, X: Any) -> np.ndarray:
        """Margins of the rows: (n_samples,) for the second of two classes, else (n_samples, n_classes).

        Parameters
        ----------
        X : {table, array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray
        """
        margins = self._in_order(self._predictions(X))
        return margins if margins.shape[1] > 1 else margins[:, 0]

    def _in_order(self, margins: np.ndarray) -> np.ndarray:
        if margins.shape[-1] > 1:
            return margins[..., self._order]
        return -margins if self._order == [1, 0] else margins

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class with the largest margin for each row.

        Parameters
        ----------
        X : {table, array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        places = np.argsort(self._order)
        return self.classes_[places[chosen(self._predictions(X))]]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, in the order of ``classes_``.

        Parameters
        ----------
        X : {table, array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        found: np.ndarray = self.model.probabilities(self._predictions(X))[:, self._order]
        return found

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the class probabilities.

        Parameters
        ----------
        X : {table, array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


class TrainedRegressor(RegressorMixin, TrainedEstimator):
    """A trained regressor; see :class:`TrainedEstimator`.

    Parameters
    ----------
    trained : Trained or StoppedModel
    """

    def predict(self, X: Any) -> np.ndarray:
        """Predict the target of each row.

        Parameters
        ----------
        X : {table, array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._predictions(X)[:, 0]


def estimator_of(trained: Any) -> TrainedClassifier | TrainedRegressor:
    """A trained model as an estimator.

    Parameters
    ----------
    trained : Trained or StoppedModel
    """
    return TrainedClassifier(trained) if trained.model.task == "classification" else TrainedRegressor(trained)


def load(path: str | os.PathLike[str]) -> TrainedClassifier | TrainedRegressor:
    """Read a model file that `tunefree train`, an estimator's ``save`` or :func:`train` wrote.

    Parameters
    ----------
    path : path

    Returns
    -------
    TrainedClassifier or TrainedRegressor
        It predicts, and goes into the tools of scikit-learn.

    Raises
    ------
    ModelError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> table = {"age": [20.0, 60.0] * 100, "rich": ["no", "yes"] * 100}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "people.model"
    ...     train(table, target="rich").save(path)
    ...     model = load(path)
    >>> model.classes_.tolist(), model.predict([[19.0], [61.0]]).tolist()
    (['no', 'yes'], ['no', 'yes'])
    """
    return estimator_of(model_files.load(path))


def train(
    data: Any,
    plan: Plan | None = None,
    watcher: training.Watcher | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 0,
    resume: bool = False,
    memory_limit: str | None = None,
    **options: Any,
) -> TrainedClassifier | TrainedRegressor:
    """Learn a model from a table or from files, as `tunefree train` does.

    Parameters
    ----------
    data : Source, table, path, or sequence of paths
        What :func:`tunefree.open_source` takes or returns.
    plan : Plan, optional
        What is to be learned, and how.
    watcher, checkpoint, checkpoint_every, resume, memory_limit
        As in :func:`tunefree.workflows.training.train`.
    **options
        Fields of the plan, such as ``target="income"``, instead of a plan.

    Returns
    -------
    TrainedClassifier or TrainedRegressor
        It predicts, and goes into the tools of scikit-learn; ``save`` writes a model file.

    Raises
    ------
    DataError, ModelError
        If a row cannot be used, the target has one class only, or there is no such option.

    Warns
    -----
    DataWarning
        For each class of fewer than three rows, where there are more than a thousand and ``classes`` are not given; and
        for whatever is odd about rows that are used.

    Examples
    --------
    >>> table = {"age": [20.0, 60.0] * 100, "rich": ["no", "yes"] * 100}
    >>> train(table, target="rich").predict({"age": [19, 61]}).tolist()
    ['no', 'yes']
    """
    if plan is not None and options:
        raise ModelError(f"pass a plan, or {', '.join(sorted(options))}, not both")
    plan = plan or plan_of(options)
    source = data if isinstance(data, Source) else open_source(data)
    on_the_way: dict[str, Any] = {"checkpoint": checkpoint, "checkpoint_every": checkpoint_every, "resume": resume}
    on_the_way |= {"watcher": watcher, "memory_limit": memory_limit}
    if plan.learner == EARLY_STOPPING:
        for name in [name for name, value in on_the_way.items() if value]:
            raise ModelError(f"`{name}` {ROW_BY_ROW.says}; leave it out, or {ROW_BY_ROW.remedy}")
        return estimator_of(descend(source, plan))
    trained = training.train(source, plan, **on_the_way)
    for line in [*rare_classes(trained), *map(str, trained.progress.oddities), *map(str, doubts_of_columns(trained))]:
        warnings.warn(line, DataWarning, stacklevel=2)
    return estimator_of(trained)


def _named(X: Any, names: list[str]) -> dict[str, Any]:
    """The columns of an array by the names of those of a model."""
    array = X.toarray() if sparse.issparse(X) else np.asarray(X)
    if array.ndim != 2 or array.shape[1] != len(names):
        problem = (
            f"an array of shape {array.shape}, where the model has the {len(names)} columns {', '.join(names[:12])}"
        )
        raise DataError(problem, tables.NAME, remedy="give all of them, in this order, or a table")
    return dict(zip(names, array.T, strict=True))


def _are_lines(X: Any) -> bool:
    """Whether X is a sequence of strings."""
    if sparse.issparse(X) or isinstance(X, str) or tables.has_columns(X):
        return False
    return np.ndim(X) == 1 and len(X) > 0 and all(isinstance(line, str) for line in X)


def _of_lines(encoder: Any, X: Any) -> Any:
    """The rows of lines of text."""
    lines = [line.rstrip("\r\n") for line in X]
    for row, line in enumerate(lines, 1):
        if not line.strip() or "\n" in line:
            raise DataError("each string must be one line of text, and not empty", tables.NAME, row)
    text = np.frombuffer("\n".join(lines).encode(), np.uint8)
    return encoder.encode(Lines(text, tables.NAME, 1, Position()), False, Refused(), False).rows


def _numbered(encoder: SvmlightEncoder, X: Any) -> Any:
    """Sparse rows of a matrix whose column j is index j + 1 of svmlight text; unknown indices are left out."""
    matrix = validation.canonical(sparse.csr_array(X, dtype=np.float64))
    ids = encoder.ids_of(matrix.indices)
    known = ids > 0
    pointers = np.append(0, np.cumsum(known))[matrix.indptr]
    return sparse_rows(pointers, ids[known], matrix.data[known])

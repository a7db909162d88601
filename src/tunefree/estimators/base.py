"""Base class of the estimators: it validates arguments; :class:`tunefree.pool.model.Model` learns and predicts."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, check_random_state

from tunefree.core import threads
from tunefree.core.errors import DataError, ModelError
from tunefree.core.parameters import check, parameter
from tunefree.core.registry import load
from tunefree.core.rows import Block, n_rows, part, rows_at
from tunefree.core.signals import deferred
from tunefree.estimators import tables, validation
from tunefree.estimators.model_file import Saving
from tunefree.estimators.parameters import documented, estimator, shared
from tunefree.explanation.decomposition import Decomposition
from tunefree.explanation.importance import importance
from tunefree.losses import loss_of
from tunefree.model_files.plan import Plan
from tunefree.model_files.progress import IN_MEMORY
from tunefree.model_files.trained import Trained, continued, ended
from tunefree.pool.model import Model
from tunefree.pool.options import special_about
from tunefree.stream.batch import Batch
from tunefree.stream.frames import read_frame
from tunefree.stream.layout import Layout
from tunefree.theory.evidence import Certificate
from tunefree.training.callbacks import Callback, checked
from tunefree.training.one_pass import blank, end, one_pass
from tunefree.training.rises import drifts_of

MOST_NUMBERS = 2**28  # limit on the size of the array that ``explain`` returns


@estimator
class OnlineEstimator(Saving, BaseEstimator):
    """The base class of classifiers and regressors that learn row by row.

    :class:`OnlineClassifierBase` and :class:`OnlineRegressorBase` define targets and predictions. Their subclasses
    choose the learner.

    Attributes
    ----------
    t_ : int
        Number of rounds so far. One row is learned in each round.
    n_iter_ : int
        Number of passes of the latest ``fit``.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only when X has feature names that are all strings.
    """

    _task: ClassVar[str]
    # Values for estimators without these parameters:
    average = False
    monotone = None
    view = "raw"
    shuffle: bool = parameter(
        True,
        "Whether ``fit`` shuffles the rows; of their order, the model then depends only on the order in which "
        "categories first appear. With False, the rows are learned in their order, as by ``partial_fit``.",
    )
    random_state: Any = shared("random_state", 0)
    warm_start: bool = shared("warm_start", False)
    categorical: Any = shared("categorical")
    text: Any = shared("text")

    def _learner(self) -> tuple[str, dict[str, float]]:
        """Return the learner's name in ``learners.ALL`` and its validated settings."""
        raise NotImplementedError

    def _config(self) -> Any:
        """Return further configuration of a learner that is not linear."""
        return None

    def _check_parameters(self) -> None:
        check(self)
        loss_of(self._task, self.loss)
        self._learner()

    def _learn(self, X: Any, y: Any, sample_weight: Any, callbacks: Any, is_stream: bool = False, **roles: Any) -> Self:
        """Validate rows and learn them, in the passes of ``fit`` or in their order as the next rows of a stream.

        ``roles``: the classes, the groups and the exposures of the rows, by the names of arguments of ``fit``.
        """
        callbacks = checked(callbacks)
        self._check_parameters()
        with deferred(), self._turn():  # a signal must not interrupt an update of the model
            before = self.__dict__.get("_learned")
            is_continued = before is not None and (is_stream or bool(self.warm_start))
            try:
                if is_continued:
                    self._learned.model.check_learns()
                X, y = validation.labelled(self, X, y, not is_continued, stream=is_stream)
                weight = validation.weights(sample_weight, len(y), may_vanish=is_stream)
                group = validation.group_digests(roles.get("groups"), len(y), may_be_one=is_stream)
                y, weight = self._prepared_targets(y, weight, is_continued, is_stream, **roles)
                self._check_unchanged()
                tables.name_columns(self, group=roles.get("groups"), exposure=roles.get("exposure"))
                self._learn_validated(callbacks, is_stream, X, y, weight, group)
            except BaseException as error:
                # A new model that has learned nothing is removed: it would keep the columns of the refused rows.
                is_refused = isinstance(error, ValueError) and self.__dict__.get("t_") == 0
                if not is_continued and (is_refused or self.__dict__.get("_learned") is before):
                    self.__dict__.pop("_learned", None)
                raise
        return self

    def _prepared_targets(
        self, y: np.ndarray, weight: np.ndarray, is_continued: bool, is_stream: bool, **roles: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return targets and weights in the form that the model learns; start a new model unless ``is_continued``."""
        raise NotImplementedError

    def _learn_validated(self, callbacks: Sequence[Callback], is_stream: bool, *rows: Any) -> None:
        self._continue()
        for callback in callbacks:
            callback.begin(self._learned, None)
        X, y, weight, group = rows
        if is_stream:
            self.n_iter_ = 1
            self._pass(X, y, validation.rounds_in_order(weight, group), callbacks)
        else:
            for rounds in self._passes(X, y, weight, group):
                is_over = self._pass(X, y, rounds, callbacks)
                self._learned.progress.end_pass()
                if is_over:
                    break
            self._end()
        for callback in callbacks:
            callback.end(self._learned)

    def _passes(self, X: Block, y: np.ndarray, weight: np.ndarray, group: Any) -> Iterator[validation.Rounds]:
        """Yield the rounds of each pass of ``fit``."""
        random, rounds = check_random_state(self.random_state), validation.rounds_in_order(weight)
        if self.shuffle:
            digests = validation.digests(X, tables.keys_of(self))
            rounds = validation.spread(digests + validation.target_digests(y), weight)
        for _ in range(int(self.passes)):
            yield validation.shuffled(rounds, weight, random) if self.shuffle else rounds

    def _pass(self, X: Any, y: Any, rounds: validation.Rounds, callbacks: Sequence[Callback]) -> bool:
        """Learn the rows of the rounds in the current pass; return whether a callback ended the pass."""
        model, encoder = self._learned.model, self._encoder
        if encoder is not None:
            model.reserve(encoder.n_features)
        before = self._learned.progress.rows
        self._learned.progress.note_data(IN_MEMORY)
        cuts = sorted({point - before for callback in callbacks for point in callback.points})
        try:
            return one_pass(self._learned, self._batches(X, y, rounds, cuts), callbacks)
        finally:
            self.t_ += self._learned.progress.rows - before

    def _batches(self, X: Any, y: Any, rounds: validation.Rounds, cuts: Sequence[int]) -> Iterator[Batch]:
        """Yield the rows of the rounds in batches of some thousand, split at ``cuts`` but never within a group."""
        n = len(rounds.row)
        in_order = n == n_rows(X) and bool((np.diff(rounds.row) == 1).all())
        ends = np.arange(1, n + 1) if rounds.group is None else np.append(np.flatnonzero(np.diff(rounds.group)) + 1, n)
        start = 0
        while start < n:
            cut = next((cut for cut in cuts if cut > start), n)
            stop = int(ends[np.searchsorted(ends, min(start + validation.BLOCK, cut, n))])
            row, weight, counts, group, mass = rounds.at(slice(start, stop))
            block = part(X, start, stop) if in_order else rows_at(X, row)
            others: dict[str, Any] = {"counts": counts, "groups": group, "mass": mass}
            yield Batch(block, self._targets(y, row), weight, **others)
            start = stop

    def _end(self) -> None:
        """Finish the training after the passes so far."""
        self.n_iter_ = self._learned.progress.number
        self._learned = replace(self._learned, plan=self._plan())
        end(self._learned)

    def _plan(self) -> Plan:
        """Return the plan of a training that would learn this model."""
        plan, closed = self._learned.plan, getattr(self, "_closed", None)
        classes = plan.classes if closed is None or len(closed) < 2 else tuple(map(str, closed.tolist()))
        return replace(plan, passes=max(int(self.n_iter_), 1), classes=classes)

    def _targets(self, y: Any, row: np.ndarray) -> Any:
        """Return the targets of the rows with these indices, in the form that the model takes."""
        raise NotImplementedError

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Lock the model, and limit the number of threads to ``n_jobs``."""
        n_jobs = getattr(self, "n_jobs", None)
        if n_jobs == 0:
            raise ValueError("`n_jobs` must be a number of threads, -1 for as many as there are processors, not 0")
        n_threads = partial(effective_n_jobs, n_jobs)  # a partial, since the call reads system files
        with self._lock(), threads.at_most(n_threads) if hasattr(self, "n_jobs") else nullcontext():
            yield

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        memo[id(self)] = copied = type(self).__new__(type(self))
        with self._lock():
            copied.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return copied

    def __getstate__(self) -> dict[str, Any]:
        return copy.deepcopy(self).__dict__  # a copy, since other threads may learn while this is pickled

    def _begin(self, classes: list[Any]) -> None:
        """Start with a new model that has seen no row."""
        learner, settings = self._learner()
        n_features, dimension = tables.n_features(self), special_about(learner).dimension
        if dimension is not None and self._encoder is None:  # an encoder adds features along the stream
            settings = {dimension: float(n_features + self.fit_intercept), **settings}
        model = Model(
            self._task,
            learner,
            self.loss,
            bool(self.average),
            classes=classes,
            n_features=n_features + 1,
            settings=settings,
            view=str(self.view),
            config=self._config(),
            monotone=tables.monotone_of(self),
        )
        monotone: Any = {constraint.name: constraint.sign for constraint in model.monotone}
        plan = Plan(task=self._task, learner=model.options.learner, loss=model.options.loss, monotone=monotone)
        self.t_, self.n_iter_ = 0, 0
        self._learned = blank(model, plan=plan)

    def _check_unchanged(self) -> None:
        """Raise a ModelError if a parameter has changed since the current model was created."""
        options = self._learned.model.options
        for name, value, before in (
            ("learner", self._learner()[0], options.learner),
            ("loss", loss_of(self._task, self.loss), loss_of(self._task, options.loss)),
            ("average", bool(self.average), options.average),
            ("monotone", tuple(tables.monotone_of(self)), options.monotone),
        ):
            if value != before:
                problem = f"`{name}` differs from its value when the present model began"
                raise ModelError(f"{problem}; set it back, or begin another one by `fit` without `warm_start`")

    def _continue(self) -> None:
        """Continue with the first pass of a training that has ended, or was interrupted in a later pass."""
        if self._learned.progress.complete or self._learned.progress.number:
            trained = continued(ended(self._learned))
            progress = replace(trained.progress, class_rows=[])  # records of rows of files are not continued
            self._learned = replace(trained, progress=progress, order=None, rises=None, samples=None)

    def _predictions(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        with self._turn():
            return self._by_blocks(validation.features(self, X), self._learned.model.predict)

    def _by_blocks(self, X: Block, compute: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
        """Apply ``compute`` to blocks of some thousand rows, and to the same rows of further arrays."""
        results = []
        for start in range(0, n_rows(X), validation.BLOCK):
            stop = start + validation.BLOCK
            results.append(compute(part(X, start, stop), *(array[start:stop] for array in arrays)))
        return np.concatenate(results)

    @property
    def progressive_loss_(self) -> float:
        """Progressive validation loss: the mean loss of the rows, each predicted before it is learned.

        In regression the first row is not included.
        """
        check_is_fitted(self)
        metrics = self._learned.progress.progressive[0]
        return float(metrics.mean_loss()) if metrics.weight > 0.0 else math.nan

    @property
    def certificate_(self) -> Certificate:
        """Lower bounds on the loss of every linear model on the rows of the first pass; feature 0 is the constant."""
        check_is_fitted(self)
        if self._learned.model.predictor.only_predicts:
            raise AttributeError("a model that only predicts has no certificate_: load the whole one")
        certificate: Certificate = self._learned.model.certificate()
        return certificate

    @documented
    def explain(self, X: Any, as_shap: bool = False) -> Any:
        """Contributions of the columns to the predictions of rows; they add up to the prediction.

        The explained quantity is the log-odds of a classifier, the prediction of a regressor, and the logarithm of the
        prediction with a loss of counts or amounts. The contribution of a column includes all its codes and words. It
        is relative to the mean over the rows kept for growing trees. Models without such rows, as for sparse texts and
        single learners, are explained relative to a row without any known value.

        Parameters
        ----------
        as_shap : bool, default=False
            Whether to return a ``shap.Explanation`` for the plots of shap, with the constant as base values.

        Returns
        -------
        pyarrow.Table, or shap.Explanation of shape (n_samples, n_features) or (n_samples, n_features, n_classes)
            The columns are ``(constant)`` and the columns of X; there is one row for each row of X. With two classes,
            log-odds are of the second. With more, there is one row for each row of X and each class, named in a
            first column ``(class)``, for the log-probability of the class minus the mean over all classes.

        Raises
        ------
        ModelError, ValueError
            If the estimator has only kernel learners; if the contributions take more than 2 GiB.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from tunefree import TuneFreeRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> model = TuneFreeRegressor().fit(X, y)
        >>> contributions = model.explain(X[:5])
        >>> contributions.column_names[:4], contributions.num_rows
        (['(constant)', 'age', 'sex', 'bmi'], 5)
        >>> bool(np.allclose(contributions.to_pandas().sum(axis=1), model.predict(X[:5]), rtol=1e-9))
        True
        """
        with self._lock():
            decomposition, rows = decomposition_of(self), X
            X = validation.features(self, X)
            names, n_outputs = decomposition.names, decomposition.model.n_outputs
            if n_rows(X) * len(names) * n_outputs > MOST_NUMBERS:
                raise ValueError(f"contributions of {n_rows(X)} rows take more than 2 GiB; explain fewer at a time")
            contributions = decomposition.contributions(X)
            if hasattr(self, "_sorted"):
                contributions = self._sorted(contributions)
        if as_shap:
            return _as_shap(contributions, names[1:], rows, getattr(self, "classes_", None))
        term_columns = [pa.array(contributions[:, term].reshape(-1)) for term in range(len(names))]
        if n_outputs == 1:
            return pa.table(term_columns, names)
        labels = np.tile(self.classes_, len(contributions))
        return pa.table([pa.array(labels.tolist()), *term_columns], ["(class)", *names])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features, in the order of ``coef_``; ``input_features`` is ignored."""
        check_is_fitted(self)
        return np.array(tables.feature_names(self), object)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Permutation importances of the columns, of shape (n_features_in_,), with sum 1.

        The importance of a column is the increase of the mean loss when the column is permuted, measured on rows that
        the trees have not learned; negative values become 0. Single linear learners, which keep no rows, have none.
        """
        try:
            ranked = importance(decomposition_of(self))
        except ModelError as error:
            raise AttributeError(str(error)) from None
        total = np.zeros(self.n_features_in_)
        in_table = ranked.terms <= len(total)
        total[ranked.terms[in_table] - 1] = np.maximum(ranked.sizes[in_table], 0.0)
        return total / total.sum() if total.sum() > 0.0 else total

    def report(self, test: Any = None, train: Any = None, *, cost: Any = None, class_: Any = None) -> Any:
        """Create the HTML report that `tunefree report` writes.

        Parameters
        ----------
        test : path, sequence of paths, table or Source, optional
            Data with known targets, on which the model is evaluated.
        train : as ``test``, optional
            Rows that the model has learned. Peers are fitted on them, too; without them the only peer is a constant.
        cost : str or dict, optional
            Costs of mistakes, such as ``"fp=1,fn=5"`` or ``{"fp": 1, "fn": 5}``, to evaluate decisions.
        class_ : optional
            The positive class of decisions; by default the second of two classes.

        Returns
        -------
        tunefree.report.page.Page
            ``html`` is its source, and ``save(path)`` writes it to a file. Notebooks show it.

        Examples
        --------
        >>> from tunefree import ScInOLClassifier
        >>> page = ScInOLClassifier().fit({"age": [20.0, 60.0] * 100}, ["no", "yes"] * 100).report()
        >>> "scinol2" in page.html
        True
        """
        if len(getattr(train, "shape", ())) == 1:
            raise DataError("a column is not a table of rows", "train", remedy="pass one table that has the target")
        report = load("tunefree.report.page:report")  # lazily, since the package of reports imports estimators
        return report(self.trained_, test, train, cost, class_)

    @property
    def drifts_(self) -> list[dict[str, Any]]:
        """Rises of the loss along the stream, and the columns that changed most there; at most 64.

        A sequential test of level 0.001 for the whole stream detects them; it assumes independent rows, and restarts
        after each rise. Available for models of :func:`tunefree.train`, until ``fit`` or ``partial_fit`` is called.

        Returns
        -------
        list of dict
            Each has ``row``, ``file``, ``row_in_file``, ``time`` (from the first column of dates, or None), ``loss`` on
            the next ``rows`` rows, ``loss_before`` on the previous ``rows_before`` rows, ``rows_compared``,
            ``columns_compared`` and ``changed``: columns whose values, or whose relation to the target, differ most.

        Examples
        --------
        >>> import tunefree
        >>> model = tunefree.train({"age": [20.0, 60.0] * 100, "rich": ["no", "yes"] * 100}, target="rich")
        >>> model.drifts_
        []
        """
        check_is_fitted(self)
        trained = self._learned
        if trained.rises is None:
            raise AttributeError(
                "there is no drifts_: only `tunefree.train` follows losses in the order of the rows, as in"
                " `tunefree.train(table, target=..., shuffle=False)`; fit() may learn them in an order of its own"
            )
        return drifts_of(trained)

    def history(self) -> Any:
        """Progressive losses of the first pass along the stream, as a table.

        Returns
        -------
        pyarrow.Table
            ``rows`` is the number of rows so far; ``loss`` and ``error`` (absolute error in regression) are means over
            these rows. For each ``eval_set`` of ``fit``, ``valid_0_loss`` and ``valid_0_error`` are the means of the
            model at that point over the set; the last row is of the finished model.

        Examples
        --------
        >>> from tunefree import ScInOLRegressor
        >>> ScInOLRegressor(passes=1).fit([[0.0], [1.0]] * 50, [0.0, 1.0] * 50).history()["rows"].to_pylist()
        [64, 70, 76, 83, 91, 99, 100]
        """
        check_is_fitted(self)
        return self._learned.progress.history()

    def _record(self) -> Trained:
        if self._learned.progress.complete:
            return self._learned
        return ended(replace(self._learned, plan=self._plan()), max(self.n_iter_, 1))

    def _restore(self, trained: Trained) -> None:
        super()._restore(trained)
        fitted = (trained.estimator or {}).get("fitted") or {}
        self._learned = trained
        self.t_ = fitted.get("rounds", trained.progress.progressive[0].rows)
        self.n_iter_ = fitted.get("passes", trained.progress.number)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learned")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _as_shap(contributions: np.ndarray, names: list[str], X: Any, classes: Any) -> Any:
    """Return contributions (n, 1 + d, K) as a ``shap.Explanation``, with the values of the columns."""
    try:
        from shap import Explanation
    except ImportError:
        raise ImportError("as_shap needs shap, which is not installed; pip install shap") from None
    data: Any = None  # remains None for lines of text
    if tables.has_columns(X):
        table = pa.concat_tables([pa.table(chunk.data) for chunk in read_frame(X)])
        nothing = [None] * len(table)
        data = np.array(
            [table[name].to_pylist() if name in table.column_names else nothing for name in names], object
        ).T
        with suppress(TypeError, ValueError):  # not all columns are numeric
            data = data.astype(np.float64)
    elif sparse.issparse(X):
        data = X.toarray()
    elif np.ndim(X) == 2:
        data = np.asarray(X)
    if contributions.shape[2] == 1:
        return Explanation(contributions[:, 1:, 0], contributions[:, 0, 0], data, feature_names=names)
    outputs = list(map(str, classes))
    return Explanation(contributions[:, 1:], contributions[:, 0], data, feature_names=names, output_names=outputs)


def decomposition_of(estimator: Any, X: Any = None) -> Decomposition:
    """Return the terms of a fitted estimator relative to means over X, by default over the rows it keeps."""
    if not isinstance(estimator, OnlineEstimator):
        raise ModelError(f"{type(estimator).__name__} is not explained; use an estimator that learns online")
    check_is_fitted(estimator)
    model: Any = estimator._learned.model
    rows = None if X is None else validation.features(estimator, X)
    encoder = estimator._encoder
    layout = Layout.of_array(tables.feature_names(estimator)) if encoder is None else Layout.of_encoder(encoder)
    return Decomposition(model, layout, rows)

"""The pool as scikit-learn estimators, which learn in one pass and have no hyperparameters to tune."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
import pyarrow as pa
from sklearn.utils.validation import check_is_fitted, check_random_state

from tunefree.core.errors import DataError, warn
from tunefree.core.parameters import require
from tunefree.core.rows import Block, n_rows
from tunefree.estimators import tables, validation
from tunefree.estimators.base import OnlineEstimator
from tunefree.estimators.classifier import OnlineClassifierBase, check_closed
from tunefree.estimators.parameters import documented, estimator, loss_of_task, shared
from tunefree.estimators.regressor import OnlineRegressorBase
from tunefree.intervals.conformal import checked_parts
from tunefree.learners import POOL
from tunefree.model_files.progress import POINTS, Evaluated
from tunefree.pool.model import published
from tunefree.pool.quantiles import class_sets, target_intervals, target_quantiles
from tunefree.pool.targets import RunningMetrics
from tunefree.pool.weights_record import EstimatedLoss, estimated_loss
from tunefree.stream.encoder import TableEncoder
from tunefree.training.callbacks import Callback, Step, checked
from tunefree.workflows.findings import leaks_of

HISTORY_STEP = 4  # every fourth point of the history, so two per doubling of the rows


class EvaluationSets(Callback):
    """Evaluates the evaluation sets of ``fit`` along the pass.

    The arguments have the form of LightGBM's. With ``verbose`` a line is printed at each point. Predictions are made by
    a copy of the model, because the model itself would remember the rows.
    """

    def __init__(self, estimator: Any, eval_set: Any, names: Any, weights: Any, exposures: Any = None) -> None:
        self.estimator, self.verbose, self.start = estimator, bool(estimator.verbose), time.perf_counter()
        pairs = [] if eval_set is None else [eval_set] if isinstance(eval_set, tuple) else eval_set
        if not isinstance(pairs, list) or not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
            raise ValueError("eval_set must be a pair (X, y), or a list of pairs")
        names = [f"valid_{k}" for k in range(len(pairs))] if names is None else list(names)
        if len(names) != len(pairs) or len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"eval_names must be different strings, one for each of the {len(pairs)} sets of eval_set")
        weights = _per_set("eval_sample_weight", weights, len(pairs))
        exposures = _per_set("eval_exposure", exposures, len(pairs))
        self.arguments = list(zip(names, pairs, weights, exposures, strict=True))
        self.points = POINTS[::HISTORY_STEP] if pairs or self.verbose else ()

    def begin(self, trained: Any, source: None) -> None:
        """Encode the sets, whose columns and classes the estimator now knows."""
        self.sets: dict[str, tuple[Block, Any, np.ndarray]] = {}  # name -> rows, targets and weights
        for k, (name, (X, y), sample_weight, exposure) in enumerate(self.arguments):
            try:
                rows, y = validation.labelled(self.estimator, X, y, reset=False, learning=False)
                weight = validation.weights(sample_weight, len(y), may_vanish=False)
                self.sets[name] = rows, *self.estimator._evaluated(y, weight, exposure)
            except ValueError as error:
                raise DataError(str(error), f"eval_set[{k}]") from None

    def step(self, trained: Any, step: Step) -> None:
        """Evaluate the sets if these rows reached a point of the history."""
        rows = trained.progress.rows
        if any(rows - len(step.row_losses) < point <= rows for point in self.points):
            self.end(trained)

    def end(self, trained: Any) -> None:
        """Record the current losses of the sets."""
        rows_learned = trained.progress.progressive[0].rows
        model: Any = published(trained.model) if self.sets else None
        line = f"{rows_learned:,} rows learned, progressive loss {self.estimator.progressive_loss_:.6g}"
        for name, (rows, y, weight) in self.sets.items():
            predictions, metrics = self.estimator._by_blocks(rows, model.predict), RunningMetrics()
            metrics.add(weight, model.losses(y, predictions), model.errors(y, predictions))
            trained.progress.evaluated.append(Evaluated(name, rows_learned, metrics.mean_loss(), metrics.mean_error()))
            line += f", loss of {name} {metrics.mean_loss():.6g}"
        if self.verbose:
            seconds = time.perf_counter() - self.start
            print(f"[{type(self.estimator).__name__}] {seconds:7.1f} s  {line}", flush=True)


def _per_set(name: str, values: Any, n: int) -> list[Any]:
    """Return the values of an argument for n evaluation sets."""
    values = [None] * n if values is None else values
    if not isinstance(values, list) or len(values) != n:
        raise ValueError(f"{name} must be a list, with an array or None for each of the {n} sets of eval_set")
    return values


@estimator
class PoolEstimator(OnlineEstimator):
    """Base class of :class:`TuneFreeClassifier` and :class:`TuneFreeRegressor`.

    The model is a mixture of members. All members predict a row before they learn it. There are two kinds of members:

    - Generations are models that are grown on the rows so far: boosted trees [1]_, randomised trees [2]_, and on few
      rows logistic or ridge regression. New generations are grown as rows arrive, and the two newest of each kind
      predict. Online learners [3]_ correct the values of the leaves of their trees after each row.
    - A few online linear learners on standardised columns, the only members for sparse rows of many features.

    The mixture is a weighted mean of the members' probabilities [4]_, or in regression of their predictions [5]_. Its
    weights follow the members' losses. Corrections learn weights of the members' differences from this mean. Each row
    is predicted before it is learned, so its losses are evidence of the quality of the members. No rows are held out,
    and training takes one pass. ``fit`` shuffles the rows and ends the pass with generations grown on all of them;
    ``partial_fit`` continues the pass in the order in which rows arrive.

    Attributes
    ----------
    t_ : int
        Number of rows learned so far, whatever their weights.
    n_iter_ : int
        Number of passes of the latest ``fit``, which is 1.

    References
    ----------
    .. [1] J. H. Friedman. Greedy function approximation: a gradient boosting machine. Annals of Statistics 29, 2001.
    .. [2] P. Geurts, D. Ernst, L. Wehenkel. Extremely randomized trees. Machine Learning 63, 2006.
    .. [3] M. Kempka, W. Kotlowski, M. K. Warmuth. Adaptive scale-invariant online algorithms for learning linear
       models. ICML 2019.
    .. [4] L. Orseau, T. Lattimore, S. Legg. Soft-Bayes: Prod for mixtures of experts with log-loss. ALT 2017.
    .. [5] V. Vovk. Aggregating strategies. COLT 1990.
    """

    monotone: Any = shared("monotone")
    n_jobs: int | None = shared("n_jobs", -1)
    verbose: bool = shared("verbose", False)

    def _learner(self) -> tuple[str, dict[str, float]]:
        return POOL, {}

    def _passes(self, X: Block, y: np.ndarray, weight: np.ndarray, group: Any) -> Iterator[validation.Rounds]:
        rounds, random = validation.rounds_in_order(weight, group), check_random_state(self.random_state)
        if self.shuffle:
            rounds = validation.drawn(validation.digests(X, tables.keys_of(self)), y, rounds, random)
        yield rounds

    def _end(self) -> None:
        super()._end()
        for line in self._learned.model.pool.unseen:
            warn(line)
        encoder = tables.encoder_of(self)
        for finding in leaks_of(replace(self._learned, encoder=encoder)) if isinstance(encoder, TableEncoder) else ():
            warn(str(finding._replace(remedy="leave it out of X")))

    def _by_level(
        self, name: str, levels: Any, X: Any, compute: Callable[..., np.ndarray], exposure: Any = None
    ) -> np.ndarray:
        """Apply ``compute`` to the model, rows, predictions and levels (c,): (n, c, ...), or (n, ...) for one level."""
        checked = checked_parts(name, levels)
        check_is_fitted(self)

        def block_results(block: Block, *exposures: np.ndarray) -> np.ndarray:
            model = self._learned.model
            return compute(model, block, model.predict(block), checked, *exposures)

        with self._turn():
            X = validation.features(self, X)
            exposures = [] if exposure is None else [self._checked_exposures(exposure, n_rows(X))]
            results = self._by_blocks(X, block_results, *exposures)
        return results[:, 0] if np.ndim(levels) == 0 else results

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @property
    def estimated_loss_(self) -> EstimatedLoss:
        """Estimate of the mean loss on new rows from the same distribution: ``loss`` and its ``standard_error``.

        ``progressive_loss_`` averages over all rows, and the early rows were predicted by a model that had learned
        little. This estimate is the end of a learning curve fitted to the progressive losses; if rows have groups, to
        the losses of new groups. It is not available for texts, fewer than 34 rows, or targets beyond 1e70.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from tunefree import TuneFreeClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = TuneFreeClassifier(random_state=0).fit(X, y)
        >>> model.progressive_loss_ > model.estimated_loss_.loss > 0.0
        True
        """
        check_is_fitted(self)
        estimate: EstimatedLoss | None = estimated_loss(self._learned.model.pool)
        if estimate is None:
            raise AttributeError("there is too little evidence to estimate the loss; the progressive loss is known")
        return estimate

    @property
    def selection_(self) -> pa.Table:
        """The predicting members in the order of their weights, with the losses that determined the weights.

        A ``pyarrow.Table`` with one row for each member: its name ``member``; its ``weight`` in the base mixture, of
        sum 1; its mean progressive ``loss`` (NaN if no row was evidence); the ``standard_error`` of this mean, over
        groups if there are any; and the number of ``rows`` that were evidence.
        """
        check_is_fitted(self)
        selection = self._learned.model.pool.selection()
        statistics = {"loss": selection.losses, "standard_error": selection.standard_errors, "rows": selection.rows}
        return pa.table({"member": selection.members, "weight": selection.weights, **statistics})


@estimator
class TuneFreeClassifier(PoolEstimator, OnlineClassifierBase):
    """A classifier without hyperparameters to tune: a mixture of trees that learn online and linear online learners.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from tunefree import TuneFreeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = TuneFreeClassifier().fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.95
    True

    Incremental learning, with a class that appears later:

    >>> model = TuneFreeClassifier().partial_fit([[0.0], [1.0]], ["no", "yes"])
    >>> model.partial_fit([[2.0]], ["perhaps"]).classes_.tolist()
    ['no', 'perhaps', 'yes']
    """

    loss = "logistic"

    @documented
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        classes: Any = None,
        groups: Any = None,
        callbacks: Any = None,
        *,
        eval_set: Any = None,
        eval_names: Any = None,
        eval_sample_weight: Any = None,
    ) -> Self:
        """Fit the model by one pass over the rows; with ``warm_start``, continue from the current model.

        Unless ``classes`` is given, a warning reports classes of fewer than three rows among more than a thousand. NaN
        in an array is a missing value. Give rows weights instead of copies: copies are predicted as known rows, and
        make ``progressive_loss_`` too small.
        """
        evaluation = EvaluationSets(self, eval_set, eval_names, eval_sample_weight)
        return self._learn(X, y, sample_weight, [evaluation, *checked(callbacks)], groups=groups, classes=classes)

    def _evaluated(self, y: np.ndarray, weight: np.ndarray, exposure: Any) -> tuple[Any, np.ndarray]:
        """Return targets and weights of an evaluation set, in the form that the model takes."""
        validation.class_labels(y)
        check_closed(y, self.classes_)
        return self._targets(np.searchsorted(self.classes_, y), np.arange(len(y))), weight

    @documented
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, groups: Any = None, callbacks: Any = None
    ) -> Self:
        """Continue the pass with the given rows, in their order.

        If the first call gives all ``classes``, the model does not depend on how rows are divided into calls. Each call
        has an overhead, larger than the time to learn a row: pass some hundred rows at a time for speed.
        """
        return self._learn(X, y, sample_weight, callbacks, is_stream=True, groups=groups, classes=classes)

    @documented
    def predict_set(
        self, X: Any, coverage: Any = 0.9, *, conditional: str | None = None, as_labels: bool = False
    ) -> Any:
        """Predict a set of classes for each row that contains the true class with the given probability.

        Sets are adaptive: they have the most probable classes, and more classes for harder rows. If the coverage is
        below the accuracy of the most probable class, some sets are empty.

        Parameters
        ----------
        conditional : {"class"}, optional
            With ``"class"``, the coverage holds for the rows of each class; this needs enough rows of each class.
        as_labels : bool, default=False
            Whether to return labels instead of a mask.

        Returns
        -------
        ndarray of bool of shape (n_samples, n_classes), with several coverages (n_samples, n_coverages, n_classes)
            Mask of the classes in each set, in the order of ``classes_``. With ``as_labels`` a list with an array of
            labels for each row, or with several coverages a list of arrays.

        Raises
        ------
        ModelError
            If there is too little evidence for a coverage. The message states how much is needed.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from tunefree import TuneFreeClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = TuneFreeClassifier().fit(X, y)
        >>> model.predict_set(X[:1], coverage=0.95, as_labels=True)
        [array([0])]
        >>> model.predict_set(X, coverage=[0.8, 0.9]).shape
        (150, 2, 3)
        """
        if conditional not in (None, "class"):
            raise ValueError(f"conditional must be None or 'class', not {conditional!r}")
        require("as_labels", bool, as_labels)
        by_class = conditional == "class"
        sets = self._sorted(self._by_level("coverage", coverage, X, partial(class_sets, by_class=by_class)))
        if not as_labels:
            return sets
        if np.ndim(coverage) == 0:
            return [self.classes_[in_set] for in_set in sets]
        return [[self.classes_[in_set] for in_set in in_sets] for in_sets in sets]


@estimator
class TuneFreeRegressor(PoolEstimator, OnlineRegressorBase):
    """A regressor without hyperparameters to tune: a mixture of trees that learn online and linear online learners.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tunefree import TuneFreeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TuneFreeRegressor().fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.45
    True
    """

    loss: str = loss_of_task("regression", "square")

    @documented
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        exposure: Any = None,
        callbacks: Any = None,
        *,
        eval_set: Any = None,
        eval_names: Any = None,
        eval_sample_weight: Any = None,
        eval_exposure: Any = None,
    ) -> Self:
        """Fit the model by one pass over the rows; with ``warm_start``, continue from the current model.

        NaN in an array is a missing value. Give rows weights instead of copies: copies are predicted as known rows, and
        make ``progressive_loss_`` too small.
        """
        if exposure is not None and eval_set is not None and eval_exposure is None:
            raise ValueError("the rows to learn have exposures, and the rows of eval_set have none; pass eval_exposure")
        evaluation = EvaluationSets(self, eval_set, eval_names, eval_sample_weight, eval_exposure)
        return self._learn(X, y, sample_weight, [evaluation, *checked(callbacks)], groups=groups, exposure=exposure)

    def _evaluated(self, y: np.ndarray, weight: np.ndarray, exposure: Any) -> tuple[Any, np.ndarray]:
        """Return targets and weights of an evaluation set, in the form that the model takes."""
        y, weight = self._rates(y, weight, exposure, may_be_zero=True)
        return y.astype(np.float64), weight

    @documented
    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, exposure: Any = None, callbacks: Any = None
    ) -> Self:
        """Continue the pass with the given rows, in their order.

        Each call has an overhead, larger than the time to learn a row: pass some hundred rows at a time for speed.
        """
        return self._learn(X, y, sample_weight, callbacks, is_stream=True, groups=groups, exposure=exposure)

    @documented
    def predict(self, X: Any, quantiles: Any = None, exposure: Any = None) -> np.ndarray:
        """Predict the target of each row, or its quantiles; with a loss of counts or amounts, the mean of the target.

        Without exposures, predictions are rates, and quantiles are for an exposure of 1.

        Parameters
        ----------
        quantiles : float or array-like of shape (n_quantiles,), optional
            Levels between 0 and 1. For rows from the distribution of the training rows, the target is below the
            quantile of level 0.9 in nine of ten rows.

        Returns
        -------
        ndarray of shape (n_samples,), with several quantiles (n_samples, n_quantiles)

        Raises
        ------
        ModelError
            If there is too little evidence for a level. The message states how much is needed.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from tunefree import TuneFreeRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> low, middle, high = TuneFreeRegressor().fit(X, y).predict(X[:1], quantiles=[0.1, 0.5, 0.9])[0]
        >>> bool(low < middle < high)
        True
        """
        if quantiles is None:
            return super().predict(X, exposure=exposure)
        return self._by_level("quantiles", quantiles, X, target_quantiles, exposure)

    @documented
    def predict_interval(self, X: Any, coverage: Any = 0.9, exposure: Any = None) -> np.ndarray:
        """Predict an interval for the target of each row that contains the target with the given probability.

        The ends are conformal quantiles: as many targets are below an interval as above it. The width depends on the
        row; without exposures, an exposure of 1 is assumed. After ``fit``, the coverage holds for rows from the
        distribution of the training rows. During ``partial_fit``, it holds along the stream: intervals become wider
        when too few targets were covered, and narrower when too many were.

        Returns
        -------
        ndarray of shape (n_samples, 2), with several coverages (n_samples, n_coverages, 2)
            Lower and upper ends. In a stream, they may be infinite after too many targets were not covered.

        Raises
        ------
        ModelError
            If there is too little evidence for a coverage. The message states how much is needed.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from tunefree import TuneFreeRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> low, high = TuneFreeRegressor().fit(X[:300], y[:300]).predict_interval(X[300:], coverage=0.8).T
        >>> bool(0.7 < ((low <= y[300:]) & (y[300:] <= high)).mean() < 0.9)
        True
        """
        return self._by_level("coverage", coverage, X, target_intervals, exposure)

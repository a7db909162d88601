"""Online estimators: they validate, and leave learning to :class:`tunefree.pool.model.Model`."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tunefree.core import threads
from tunefree.core.errors import ModelError
from tunefree.core.parameters import check, parameter
from tunefree.core.rows import Block, n_rows, part
from tunefree.core.signals import deferred
from tunefree.estimators import tables, validation
from tunefree.estimators.inspection import Inspected
from tunefree.estimators.parameters import estimator, shared
from tunefree.losses import loss_of
from tunefree.model_files.plan import Plan
from tunefree.model_files.progress import IN_MEMORY
from tunefree.model_files.trained import Trained, continued, ended
from tunefree.pool.model import Model
from tunefree.pool.options import special_about
from tunefree.stream.batch import Batch
from tunefree.theory.evidence import Certificate
from tunefree.training.callbacks import Callback, Step, checked
from tunefree.training.one_pass import blank, end, one_pass


class _Rounds(Callback):
    """Counts the rounds of an estimator."""

    def __init__(self, estimator: OnlineEstimator) -> None:
        self.estimator = estimator

    def step(self, trained: Trained, step: Step) -> None:
        self.estimator.t_ += len(step.row_losses)


@estimator
class OnlineEstimator(Inspected, BaseEstimator):
    """The base class of classifiers and regressors that learn row by row.

    :class:`OnlineClassifierBase` and :class:`OnlineRegressorBase` say what targets and predictions are; their
    subclasses name a learner.

    Attributes
    ----------
    t_ : int
        Number of rounds so far, in each of which a row is learned.
    n_iter_ : int
        Number of passes of the latest ``fit``.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only when X has feature names that are all strings.
    """

    _task: ClassVar[str]
    # Of estimators that have no such parameter:
    average = False
    fit_intercept = True  # in regression there always is a constant
    monotone = None
    view = "raw"
    shuffle: bool = parameter(
        True,
        "Whether ``fit`` draws the order of the rows; the model then depends only on the weighted set of rows. With "
        "False the rows are learned in the order in which they stand, as by ``partial_fit``.",
    )
    random_state: Any = shared("random_state", 0)
    warm_start: bool = shared("warm_start", False)
    categorical: Any = shared("categorical")
    text: Any = shared("text")

    def _learner(self) -> tuple[str, dict[str, float]]:
        """The learner's name in ``learners.ALL`` and its settings, checked."""
        raise NotImplementedError

    def _config(self) -> Any:
        """The configuration of a learner that is not linear, beside its settings."""
        return None

    def _check_parameters(self) -> None:
        check(self)
        loss_of(self._task, self.loss)
        self._learner()

    def _learn(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        callbacks: Any,
        learn: Callable[..., None] | None = None,
        groups: Any = None,
        **roles: Any,
    ) -> Self:
        """Check rows, and learn them by ``learn``, or where it is None in their order, as the rows of a stream."""
        self._check_parameters()
        is_stream = learn is None
        with self._learning(callbacks, is_stream) as again:
            if again:
                self._learned.model.check_learns()
            X, y = validation.labelled(self, X, y, not again, stream=is_stream)
            weight = validation.weights(sample_weight, len(y), may_vanish=is_stream)
            group = validation.group_digests(groups, len(y), may_be_one=is_stream)
            y, weight = self._learnable(y, weight, again, is_stream, **roles)
            self._check_unchanged()
            tables.name_columns(self, not again, group=groups, exposure=roles.get("exposure"))
            self._watched(callbacks or (), learn or self._stream, X, y, weight, group)
        return self

    def _learnable(
        self, y: np.ndarray, weight: np.ndarray, again: bool, is_stream: bool, **roles: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Targets and weights of rows as they are learned, by a model that begins unless it goes on (``again``)."""
        raise NotImplementedError

    def _stream(self, X: Any, y: np.ndarray, weight: np.ndarray, group: Any, *callbacks: Callback) -> None:
        """A pass over rows in their order, after which more may come."""
        self.n_iter_ = 1
        self._pass(X, y, validation.rounds_in_order(weight, group), *callbacks)

    def _watched(self, callbacks: Sequence[Callback], learn: Callable[..., Any], *rows: Any) -> None:
        """Let rows be learned by a function that takes callbacks, too, which are told of the beginning and the end."""
        self._go_on()
        for callback in callbacks:
            callback.begin(self._learned, None)
        learn(*rows, *callbacks)
        for callback in callbacks:
            callback.end(self._learned)

    def _pass(self, X: Any, y: Any, rounds: validation.Rounds, *callbacks: Callback) -> bool:
        """Learn the rounds' rows in a pass, which begins or goes on; whether a callback ended it."""
        model, encoder = self._learned.model, self._encoder
        if encoder is not None:
            model.reserve(encoder.n_features)
        before = self._learned.progress.rows
        self._learned.progress.note_data(IN_MEMORY)
        cuts = sorted({point - before for callback in callbacks for point in callback.points})
        return one_pass(self._learned, self._batches(X, y, rounds, cuts), (_Rounds(self), *callbacks))

    def _batches(self, X: Any, y: Any, rounds: validation.Rounds, cuts: Sequence[int]) -> Iterator[Batch]:
        """The rounds' rows, some thousand at a time, and cut after so many."""
        for place, block in validation.blocks(X, rounds, cuts):
            round_rows = rounds.at(place)
            others: dict[str, Any] = {"counts": round_rows.counts, "groups": round_rows.group, "mass": round_rows.mass}
            yield Batch(self._formed(block), self._targets(y, round_rows.row), round_rows.weight, **others)

    def _formed(self, block: Block) -> Block:
        """Rows in the form in which the model first saw rows, as views tell dense from sparse."""
        model = self._learned.model
        n_columns = (model.linear if model.predictor.bank is None else model.predictor.bank).n_columns
        is_sparse = None if n_columns is None else n_columns == 0
        return validation.in_form(block, self.fit_intercept, is_sparse, tables.n_features(self))

    def _passes(self, X: Any, y: np.ndarray, weight: np.ndarray, group: None, *callbacks: Callback) -> None:
        random = validation.generator(self.random_state)
        rounds = validation.rounds_in_order(weight)
        if self.shuffle:
            digests = validation.digests(X, tables.keys_of(self))
            rounds = validation.spread(digests + validation.target_digests(y), weight)
        self._know_rounds(len(rounds.row) * int(self.passes))
        for _ in range(int(self.passes)):
            pass_rounds = validation.shuffled(rounds, weight, random) if self.shuffle else rounds
            is_over = self._pass(X, y, pass_rounds, *callbacks)
            self._learned.progress.end_pass()
            if is_over:
                break
        self._end(self._learned.progress.number)

    def _know_rounds(self, rounds: int) -> None:
        """Take note of the number of rounds, before the first; most learners do not use it."""

    def _end(self, passes: int) -> None:
        """End the training, after ``passes`` passes."""
        self.n_iter_ = passes
        self._learned = replace(self._learned, plan=self._plan())
        end(self._learned)

    def _plan(self) -> Plan:
        """The plan of a training that would learn this model."""
        plan, closed = self._learned.plan, getattr(self, "_closed", None)
        classes = plan.classes if closed is None or len(closed) < 2 else tuple(map(str, closed.tolist()))
        return replace(plan, passes=max(int(self.n_iter_), 1), classes=classes)

    def _targets(self, y: Any, row: np.ndarray) -> Any:
        """The targets of some rows, as the model takes them."""
        raise NotImplementedError

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Use the model while no other thread does, by as many threads as ``n_jobs`` asks for, or processors."""
        n_jobs = getattr(self, "n_jobs", None)
        if n_jobs == 0:
            raise ValueError("`n_jobs` must be a number of threads, -1 for as many as there are processors, not 0")
        n_threads = partial(effective_n_jobs, n_jobs)  # reads files of the system when called
        with self._alone(), threads.at_most(n_threads) if hasattr(self, "n_jobs") else nullcontext():
            yield

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        memo[id(self)] = copied = type(self).__new__(type(self))
        with self._alone():
            copied.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return copied

    def __getstate__(self) -> dict[str, Any]:
        return copy.deepcopy(self).__dict__  # pickling goes on after this, while other threads may learn

    @contextmanager
    def _learning(self, callbacks: Any, is_stream: bool) -> Iterator[bool]:
        """Learn in turn, while no signal leaves the estimator in the middle of rows; whether the present model goes on.

        An error before a new model learns leaves none: its columns would belong to the refused rows.
        """
        checked(callbacks)
        with deferred(), self._turn():
            before = self.__dict__.get("_learned")
            again = self._started() and (is_stream or bool(self.warm_start))
            try:
                yield again
            except BaseException as error:
                is_refused = isinstance(error, ValueError) and self.__dict__.get("t_") == 0
                if not again and (is_refused or self.__dict__.get("_learned") is before):
                    self.__dict__.pop("_learned", None)
                raise

    def _started(self) -> bool:
        return hasattr(self, "_learned")

    def _begin(self, classes: list[Any]) -> None:
        """Begin with a model that has seen no row."""
        learner, settings = self._learner()
        n_features, dimension = tables.n_features(self), special_about(learner).dimension
        if dimension is not None and self._encoder is None:  # else features are found along the stream
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
        monotone: Any = {one.name: one.sign for one in model.monotone}
        plan = Plan(task=self._task, learner=model.options.learner, loss=model.options.loss, monotone=monotone)
        self.t_, self.n_iter_ = 0, 0
        self._learned = blank(model, plan=plan)

    def _check_unchanged(self) -> None:
        """Raise an error if a parameter was set that the present model did not begin with."""
        options = self._learned.model.options
        for name, value, before in (
            ("learner", self._learner()[0], options.learner),
            ("loss", loss_of(self._task, self.loss), loss_of(self._task, options.loss)),
            ("average", bool(self.average), options.average),
            ("monotone", tuple(tables.monotone_of(self)), options.monotone),
        ):
            if value != before:
                problem = f"`{name}` differs from what the present model began with"
                raise ModelError(f"{problem}; set it back, or begin another one by `fit` without `warm_start`")

    def _go_on(self) -> None:
        """Go on with the first pass of a training that has ended, or was interrupted in a further pass."""
        if self._learned.progress.complete or self._learned.progress.number:
            trained = continued(ended(self._learned))
            progress = replace(trained.progress, class_rows=[])  # what was noted of rows of a file is not gone on with
            self._learned = replace(trained, progress=progress, order=None, rises=None, samples=None)

    def _block_results(self, X: Any, compute: Callable[..., np.ndarray], exposures_of: Any = None) -> np.ndarray:
        """Results of a function of the model, blocks of rows, and their exposures if there is a function of these."""
        check_is_fitted(self)
        with self._turn():
            X, model = validation.features(self, X), self._learned.model
            exposures, results = None if exposures_of is None else exposures_of(n_rows(X)), []
            for start in range(0, n_rows(X), validation.BLOCK):
                stop = start + validation.BLOCK
                exposed = [] if exposures is None else [exposures[start:stop]]
                results.append(compute(model, self._formed(part(X, start, stop)), *exposed))
            return np.concatenate(results)

    def _predictions(self, X: Any) -> np.ndarray:
        return self._block_results(X, lambda model, block: model.predict(block))

    @property
    def progressive_loss_(self) -> float:
        """Progressive validation loss: the mean loss of the rows, each predicted before it is learned.

        In regression it begins after the first row.
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
        return self._started()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

"""The pool as scikit-learn estimators: one pass is the whole training, and nothing has to be chosen."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted

from tunefree.core.parameters import check
from tunefree.estimators import validation
from tunefree.estimators.base import OnlineClassifierBase, OnlineEstimator
from tunefree.estimators.fit_display import FitDisplay
from tunefree.estimators.intervals import Intervals, PredictionSets
from tunefree.estimators.model_file import WholeOnly
from tunefree.estimators.parameters import check_effect, documented, estimator, loss_of_task, shared
from tunefree.estimators.regressor import OnlineRegressorBase
from tunefree.losses import loss_of
from tunefree.model.kernel_bank import KernelConfig
from tunefree.model_files.plan import check_kernel
from tunefree.pool.model import are_many


@estimator
class Pooled(OnlineEstimator):
    """What the two estimators share.

    Members predict each row together, and then learn it. There are two kinds of them:

    - *Generations* are models that are grown on the rows so far: boosted trees [1]_, randomised trees [2]_, and on few
      rows logistic or ridge regression. New ones are grown while rows come, and the two newest of each kind predict.
      Their trees go on learning: online learners [3]_ correct the values of their leaves, row by row.
    - A few *online linear learners* on standardised columns. On sparse rows of many features there are no others.

    The members are mixed by rules that learn, too: a mean of their probabilities [4]_, or in regression of their
    predictions [5]_, whose weights follow their losses, and corrections that learn weights of the members' differences
    from it. Each row was predicted before it was learned, so it tells how good each member is. No rows are held out,
    and one pass is the whole training. ``fit`` draws an order of the rows, and ends the pass with generations of all of
    them; ``partial_fit`` goes on with the pass, in the order in which rows come.

    Attributes
    ----------
    t_ : int
        Number of rows learned so far; copies are one row.
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
    .. [6] F. Orabona. Simultaneous model selection and optimization through parameter-free stochastic learning.
       NIPS 2014.
    """

    kernel: str | None = shared(
        "kernel",
        None,
        "On two views of the rows, learned by PiSTOL [6]_. Time and memory then grow with the number of rows of small "
        "margin.",
    )
    max_support: int | None = shared("max_support")
    device: str | None = shared("device")
    n_jobs: int | None = shared("n_jobs", -1)
    verbose: bool = shared("verbose", False)

    def _learner(self) -> tuple[str, dict[str, float]]:
        return "pool" if self.kernel is None else "kernel-pool", {}

    def _kernel_config(self) -> KernelConfig:
        return KernelConfig(self.kernel or "rbf", device=self.device, max_support=self.max_support)

    def _check_parameters(self) -> None:
        check(self)
        if self.kernel is not None:
            check_kernel(self.kernel)
        check_effect(self)
        loss_of(self._task, self.loss)

    def _pass_of(self, groups: Any, y: Any) -> Any:
        """The function that learns the rows of a ``fit``, which are of these groups."""
        group = None if groups is None else validation.group_digests(groups, _num_samples(y), may_be_one=False)
        return partial(self._one_pass, group)

    def _one_pass(self, group: np.ndarray | None, X: Any, y: np.ndarray, weight: np.ndarray) -> None:
        """A pass over the rows, and its end."""
        self._go_on()
        if self.shuffle:
            rounds = validation.merged(X, y, weight, group)
            rounds = validation.drawn(rounds, check_random_state(self.random_state))
        else:
            rounds = validation.as_given(weight, group)
        with FitDisplay(type(self).__name__, bool(self.verbose)) as display:
            display.begins(f"a pass over {len(rounds.row):,} rows", len(rounds.row))
            self._pass(X, y, rounds, lambda trained, step: display.advance(len(step.row_losses)))
            self._learned.progress.end_pass()
            self._end(1)
            display.say(f"a pass over {len(rounds.row):,} rows, progressive loss {self.progressive_loss_:.6g}")
        self._warn_of_repeats(int(np.count_nonzero(weight)) - len(rounds.row), group is not None)

    def _warn_of_repeats(self, n_merged: int, has_groups: bool) -> None:
        """Warn where many rows repeat; those that were merged with a copy did, too."""
        repeats, rows = (count + n_merged for count in self._learned.model.repeats())
        if not are_many(repeats, rows):
            return
        problem = f"{repeats:,} of {rows:,} rows repeat earlier ones, or are of earlier groups, and are no evidence"
        remedy = "keep the rows of a group together" if has_groups else "if rows belong to one subject, pass groups="
        warnings.warn(f"{problem}; {remedy}", stacklevel=5)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @property
    def selection_(self) -> dict[str, np.ndarray]:
        """The members that predict, those with the largest weights first, and what they were judged by.

        Arrays of one entry a member: ``member``, its name; ``weight`` in the mean that the mixture corrects, of sum 1;
        ``loss``, the mean of the rows that were evidence, each predicted before it was learned (NaN if there was none);
        its ``standard_error``, which is of groups if there are any; and the number of these ``rows``.
        """
        check_is_fitted(self)
        selection = self._learned.model.selection()
        return {
            "member": np.array(selection.members, object),
            "weight": selection.weights,
            "loss": selection.losses,
            "standard_error": selection.standard_errors,
            "rows": selection.rows,
        }


@estimator
class TuneFreeClassifier(Pooled, PredictionSets, OnlineClassifierBase):
    """A classifier with nothing to tune: trees that go on learning and online learners, mixed.

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

    loss = "logistic"  # of probabilities

    @documented
    def fit(self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None, groups: Any = None) -> Self:
        """Fit the model by one pass (with ``warm_start``, go on with that of the present model).

        A class of fewer than three rows, where there are more than a thousand, is reported by a warning, unless the
        classes are named. So is a twentieth of the rows or more that repeat earlier ones. In an array, NaN is a missing
        value. A row of weight 2 is two copies of it.
        """
        return self._fit(X, y, sample_weight, classes, self._pass_of(groups, y))

    @WholeOnly
    @documented
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Go on with the pass over the given rows, in their order.

        Where the first call names the classes, the model does not depend on how rows are divided into calls. The calls
        around the learning of one row take longer than that: pass some hundred rows at a time where rows come fast.
        """
        return self._update(X, y, classes, sample_weight, groups)


@estimator
class TuneFreeRegressor(Pooled, Intervals, OnlineRegressorBase):
    """A regressor with nothing to tune: trees that go on learning and online learners, mixed.

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
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, exposure: Any = None) -> Self:
        """Fit the model by one pass (with ``warm_start``, go on with that of the present model).

        A twentieth of the rows or more that repeat earlier ones are reported by a warning. In an array, NaN is a
        missing value. A row of weight 2 is two copies of it.
        """
        return self._fit(X, y, sample_weight, self._pass_of(groups, y), exposure)

    @WholeOnly
    @documented
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, exposure: Any = None) -> Self:
        """Go on with the pass over the given rows, in their order.

        The calls around the learning of one row take longer than that: pass some hundred rows at a time where rows come
        fast.
        """
        return self._update(X, y, sample_weight, groups, exposure)

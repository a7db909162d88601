"""Learners in a kernel's space in scikit-learn's manner: PiSTOL, and regularised stochastic gradient descent."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tunefree.core.parameters import parameter
from tunefree.estimators import validation
from tunefree.estimators.base import OnlineClassifierBase
from tunefree.estimators.linear import SingleLearner
from tunefree.estimators.parameters import estimator, loss_of_task, shared
from tunefree.estimators.regressor import OnlineRegressorBase
from tunefree.losses import loss_of
from tunefree.papers.kernel import feature_expansion
from tunefree.papers.kernel.family import FOLLOW_THE_LEADER
from tunefree.papers.kernel.kernel_bank import KernelConfig
from tunefree.papers.kernel.kernel_certificates import KernelCertificate, certificate_of
from tunefree.papers.kernel.kernels import kernel_of
from tunefree.papers.kernel.parameters import check_effect
from tunefree.papers.kernel.regularized_sgd import BY_THEOREM, LEAST_OFFSET, TUNED
from tunefree.papers.linear_estimators import PRESETS, fix_stakes, in_units_of_slopes
from tunefree.papers.pistol_risk import pistol_parameter
from tunefree.theory.bounds import Bound, no_bound

GAMMAS = ("ladder", "median")
OFFSETS = {"auto": BY_THEOREM, "tuned": TUNED}


@estimator
class KernelEstimator(SingleLearner):
    """Estimators that learn functions of a kernel's space.

    Attributes
    ----------
    n_support_ : int
        Number of support points.
    """

    fit_intercept = True  # kernels take no notice of the constant
    kernel: Any = parameter(
        "rbf",
        "A callable takes two arrays of rows and returns the matrix of their kernel values.",
        types="{'rbf', 'laplacian', 'poly', 'linear', 'precomputed'} or callable",
    )
    gamma: float | str = parameter(
        "ladder",
        "gamma of the kernel. ``'median'``: 1 / (2 m^2), with m the median distance between rows of different classes; "
        "in regression, of rows whose targets lie on different sides of their median. ``'ladder'``: that times powers "
        "of two from a quarter to 64. For the polynomial kernel the default is 1.",
        choices=GAMMAS,
        above=0,
    )
    degree: int = shared("degree", 3)
    coef0: float = shared("coef0", 1.0)
    view: str = shared(
        "view", "steady", "It is fixed after the first 1024 rows, which are kept until then, and then learned."
    )
    passes: int = parameter(
        1,
        "Number of passes over the rows in ``fit``. Passes after the first change the coefficients of support points; "
        "the papers' theorems are of one pass.",
        low=1,
    )
    average: bool = parameter(
        True, "Whether to predict with the average of the iterates of the last pass instead of the last iterate."
    )
    precision: str = shared("precision", "single")
    max_support: int | None = shared("max_support", None, "For the kernels rbf and laplacian.")
    device: str | None = shared("device")
    n_jobs: int | None = shared("n_jobs", -1)

    def _has_ladder_of_widths(self) -> bool:
        return isinstance(self.gamma, str) and self.gamma == "ladder" and kernel_of(self.kernel, 1.0).is_ladder

    def _config(self) -> KernelConfig:
        gamma = 0.0 if self.gamma in GAMMAS else float(self.gamma)
        return KernelConfig(
            self.kernel,
            gamma,
            self.degree,
            float(self.coef0),
            self.precision == "double",
            self.device,
            max_support=self.max_support,
        )

    def _view(self) -> str:
        return "raw" if self.kernel == "precomputed" else self.view

    def _check_parameters(self) -> None:
        super()._check_parameters()
        kernel = kernel_of(self.kernel, 1.0, self.degree, float(self.coef0))
        check_effect(self)
        if self.max_support is not None:
            feature_expansion.check(kernel, self.max_support)

    def _passes(self, X: Any, y: np.ndarray, weight: np.ndarray) -> None:
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} matrix."
            )
        super()._passes(self._placed(X, np.arange(len(y))), y, weight)

    def _prepared(self, X: Any) -> Any:
        return self._placed(X, np.full(X.shape[0], -1))

    def _placed(self, X: Any, places: np.ndarray) -> Any:
        """Rows of a matrix made beforehand know their place in it; other rows are as they are."""
        return np.column_stack([places, X]) if self.kernel == "precomputed" else X

    def _pass(self, X: Any, y: Any, rounds: validation.Rounds, *observers: Any) -> None:
        if self.kernel == "precomputed" and X.shape[1] == self.n_features_in_:
            raise ValueError(
                "partial_fit cannot learn from a precomputed matrix: its rows are of other rows than these"
            )
        super()._pass(X, y, rounds, *observers)

    @property
    def gamma_(self) -> float:
        """gamma of the kernel, or that of the median heuristic, multiples of which form the grid."""
        check_is_fitted(self)
        return self._learned.model.banks[0].gamma

    @property
    def n_support_(self) -> int:
        """Number of support points."""
        check_is_fitted(self)
        return self._learned.model.n_support

    @property
    def certificates_(self) -> list[KernelCertificate]:
        """For each bandwidth lower bounds on the loss of every function of its kernel's space, on the first pass.

        Rows learned after a second pass, or once functions have gone on in Fourier features, are not counted.
        """
        check_is_fitted(self)
        bank = self._learned.model.banks[0]
        certificates = [certificate_of(member, bank.gamma_of(member)) for member in bank.members]
        return [certificate for certificate in certificates if certificate is not None]

    def bound(self, norm: float) -> Bound:
        """The bound of the learner's own theorem on the regret of the first pass, against every function of a norm.

        Parameters
        ----------
        norm : float
            In the kernel's space.

        Returns
        -------
        tunefree.theory.bounds.Bound
            Its ``value``, in units of the total loss, is None where no theorem applies; ``reason`` then says why.
        """
        certificates, model = self.certificates_, self._learned.model
        if len(model.members) > 1:
            return no_bound("theorems are of one learner: pass gamma as a number")
        if not certificates:
            return no_bound("the theorem is of PiSTOL and of losses with a Lipschitz constant")
        if model.record.is_over:
            return no_bound("the theorem is of one pass, and rows were learned again: pass passes=1")
        value = certificates[0].theorem(norm)
        if value == math.inf:
            return no_bound("the theorem assumes a of at least 2.25 L and a b that does not grow")
        return Bound(value, "Orabona 2014, Theorem 1, with a growing norm of the rows")

    @property
    def widths_(self) -> list[dict[str, float]]:
        """gamma of each bandwidth and its weight (share) in predictions."""
        check_is_fitted(self)
        model = self._learned.model
        rows = zip(model.members, model.shares_by_member().values(), strict=True)
        return [{"gamma": self.gamma_ * member.setting.settings["width"], "share": share} for member, share in rows]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = isinstance(self.kernel, str) and self.kernel != "precomputed"
        return tags


@estimator
class KernelPiSTOL(KernelEstimator):
    """The parameters of the paper.

    References
    ----------
    .. [1] F. Orabona. Simultaneous model selection and optimization through parameter-free stochastic learning.
       NIPS 2014.
    """

    preset: str = parameter(
        "practice",
        "Values of ``a`` and ``b``. ``'practice'``: those of the paper's experiments, a = 0.125 L and "
        "b = sqrt(2 a L T) for the T rounds of a ``fit``, L the Lipschitz constant of the loss; where rows come in a "
        "stream, to ``partial_fit``, T is not known, and b = sqrt(2 a L t) after t rounds. ``'theory'``: the ``a`` "
        "with the least bound of the theorem after 10,000 rounds against a function of norm 1, 3.09 L, and b = L.",
        choices=PRESETS,
    )
    a: float | None = parameter(
        None, "Parameter a of the paper, by default the preset's; the theorem requires 2.25 L.", above=0
    )
    b: float | None = parameter(
        None,
        "Parameter b of the paper, by default the preset's; in regression in units of the target's mean absolute "
        "deviation.",
        above=0,
    )

    def _learner(self) -> tuple[str, dict[str, float]]:
        settings = {"a": pistol_parameter(), "b": 1.0} if self.preset == "theory" else {"a": 0.125}
        settings |= in_units_of_slopes(loss_of(self._task, self.loss), a=self.a, b=self.b)
        return "kernel-pistol", settings | ({} if self._has_ladder_of_widths() else {"width": 1.0})

    def _know_rounds(self, rounds: int) -> None:
        if self.preset == "practice" and self.b is None and self.t_ == 0:
            fix_stakes(self._learned.model.banks[0].members, rounds)


@estimator
class KernelPiSTOLClassifier(KernelPiSTOL, OnlineClassifierBase):
    """A kernel classifier with nothing to tune: PiSTOL with a grid of bandwidths.

    PiSTOL is an online learner in a reproducing kernel Hilbert space that adapts to the unknown norm of the best
    function [1]_, so no regularisation parameter C is needed. Learners with gamma from a quarter to 64 times that of
    the median heuristic share their matrix products, and their probabilities are averaged with Bayesian weights. Time
    and memory grow with the number of rows of small margin.

    The default is what the paper's experiments run: the average of one pass, with ``a`` and ``b`` outside the
    conditions of its theorems. With ``preset="theory"`` each learner's predictions in the first pass have the regret
    bound of Theorem 1 against every function of its kernel's space, for losses with a Lipschitz constant:
    ``certificates_[i].theorem(norm)``, and :meth:`bound` where there is one width.
    Lower bounds on the loss of every function on the rows of the first pass hold for both presets: ``certificates_``.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from tunefree import KernelPiSTOLClassifier
    >>> X, y = make_moons(400, noise=0.2, random_state=0)
    >>> model = KernelPiSTOLClassifier().fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.9
    True
    """

    loss: str = loss_of_task(
        "classification",
        "smoothed-hinge",
        "The default is that of the paper, with which few rows become support points.",
    )


@estimator
class KernelPiSTOLRegressor(KernelPiSTOL, OnlineRegressorBase):
    """A kernel regressor with nothing to tune: PiSTOL with a grid of bandwidths.

    PiSTOL is an online learner in a reproducing kernel Hilbert space that adapts to the unknown norm of the best
    function [1]_. Learners with gamma from a quarter to 64 times that of the median heuristic share their matrix
    products, and their predictions are averaged with exponential weights. The paper's theorem covers no preset: it does
    not allow for stakes that follow the spread of the targets. ``certificates_`` has lower bounds on the loss of every
    function.

    Examples
    --------
    >>> import numpy as np
    >>> from tunefree import KernelPiSTOLRegressor
    >>> X = np.linspace(-3, 3, 600)[:, None]
    >>> y = np.sin(2 * X[:, 0])
    >>> model = KernelPiSTOLRegressor(passes=5).fit(X, y)
    >>> model.score(X, y) > 0.98
    True
    """

    loss: str = loss_of_task("regression", "absolute")


@estimator
class KernelSGDClassifier(KernelEstimator, OnlineClassifierBase):
    """Regularised SGD with kernels, with exponential convergence of the classification error under low noise.

    Stochastic gradient descent on the loss plus (lambda / 2) ||f||^2 in a kernel's space, with rates
    2 / (lambda (gamma + t)) and a weighted average of the iterates: Algorithm 1 of [1]_. In one pass over independent
    rows, its expected classification error converges exponentially fast to that of the Bayes rule, under the conditions
    of [1]_: class probabilities are bounded away from 1/2, and lambda is small enough. Several values of lambda share
    their kernel values; the one with the least progressive loss in the first pass predicts. The theorems hold for one
    pass; further passes approach the minimum of the regularised empirical risk. Iterates are averaged with weights
    gamma + t - 1.

    References
    ----------
    .. [1] A. Nitanda, T. Suzuki. Stochastic gradient descent with exponential convergence rates of expected
       classification errors. AISTATS 2019.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from tunefree import KernelSGDClassifier
    >>> X, y = make_moons(400, noise=0.2, random_state=0)
    >>> model = KernelSGDClassifier(gamma="ladder").fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.93
    True
    """

    loss: str = loss_of_task("classification", "logistic")
    penalty: float | str = parameter(
        "ladder",
        "lambda. ``'ladder'``: 0.1, 0.01, 0.001 and 0.0001, as in the paper's experiments.",
        choices=("ladder",),
        above=0,
    )
    offset: float | str = parameter(
        "auto",
        "gamma of the rates. ``'auto'`` is the least that the theorems allow: the first rate is then about "
        "1 / (H k(x, x)), with H the smoothness of the loss. ``'tuned'`` selects one of seven first rates for each "
        "lambda, by the progressive loss on the first 1000 rows; so does ``'auto'`` for the hinge loss, which is not "
        "smooth.",
        choices=tuple(OFFSETS),
        low=LEAST_OFFSET,
    )
    radius: float | None = parameter(
        None,
        "Radius of the ball onto which f is projected after each step. By default there is no projection for losses "
        "with bounded slopes. For the others the radius is sqrt(2 / lambda), an upper bound on the norm of a "
        "minimiser, and at most 3 / sqrt(max k(x, x)) for the exponential loss.",
        above=0,
    )
    gamma: float | str = parameter(
        "median",
        "gamma of the kernel. ``'median'``: 1 / (2 m^2), with m the median distance between rows of different classes. "
        "``'ladder'``: that times powers of two from a quarter to 64, each with every lambda; the pair with the least "
        "progressive loss predicts. For the polynomial kernel the default is 1.",
        choices=GAMMAS,
        above=0,
    )

    def _learner(self) -> tuple[str, dict[str, float]]:
        settings = {} if self.penalty == "ladder" else {"penalty": float(self.penalty)}
        if not self._has_ladder_of_widths():
            settings["width"] = 1.0
        settings["offset"] = OFFSETS[self.offset] if isinstance(self.offset, str) else float(self.offset)
        return FOLLOW_THE_LEADER, settings | ({} if self.radius is None else {"radius": float(self.radius)})

    def _leader(self) -> int:
        return self._learned.model.leader

    @property
    def penalty_(self) -> float:
        """lambda of the function that predicts."""
        check_is_fitted(self)
        return float(self._learned.model.members[self._leader()].setting.settings["penalty"])

    @property
    def offset_(self) -> float:
        """gamma in the rates of the function that predicts; not a number before the first 1024 rows of a stream."""
        return float(self.penalties_[self._leader()]["offset"])

    @property
    def penalties_(self) -> list[dict[str, float]]:
        """What was chosen from: each lambda, its gamma and offset, and its mean progressive loss."""
        check_is_fitted(self)
        candidates = []
        for member in self._learned.model.members:
            state, offset = member.state, member.state.settings["offset"]
            weight = state.counted_weight[0]
            loss = float(state.counted_loss[0] / weight) if weight > 0.0 else math.nan
            offset = offset if offset >= LEAST_OFFSET else math.nan
            penalty, gamma = member.setting.settings["penalty"], self._gamma_of(member)
            candidates.append({"penalty": float(penalty), "gamma": gamma, "offset": offset, "loss": loss})
        return candidates

    def _gamma_of(self, member: Any) -> float:
        return float(self._learned.model.banks[0].gamma * member.setting.settings["width"])

    @property
    def gamma_(self) -> float:
        """gamma of the kernel of the function that predicts."""
        check_is_fitted(self)
        return self._gamma_of(self._learned.model.members[self._leader()])

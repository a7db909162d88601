"""Estimators of the papers' compiled learners: ScInOL, PiSTOL with linear functions and in a kernel's space, and
regularised stochastic gradient descent in a kernel's space."""

from __future__ import annotations

import copy
import math
from typing import Any

from sklearn.utils.validation import check_is_fitted

from tunefree.core.parameters import parameter
from tunefree.estimators.base import OnlineClassifierBase
from tunefree.estimators.linear import LinearClassifier, LinearRegressor, SingleLearner
from tunefree.estimators.parameters import estimator, loss_of_task, shared
from tunefree.estimators.regressor import OnlineRegressorBase
from tunefree.losses import loss_of
from tunefree.papers.kernel.family import FOLLOW_THE_LEADER
from tunefree.papers.kernel.kernel_bank import KernelConfig
from tunefree.papers.kernel.kernel_certificates import KernelCertificate, certificate_of
from tunefree.papers.kernel.kernels import kernel_of
from tunefree.papers.kernel.parameters import check_effect
from tunefree.papers.kernel.regularized_sgd import BY_THEOREM, LEAST_OFFSET, TUNED
from tunefree.papers.pistol_risk import pistol_parameter
from tunefree.theory.bounds import Bound, no_bound

PRESETS = ("theory", "practice")
GAMMAS = ("ladder", "median")
OFFSETS = {"auto": BY_THEOREM, "tuned": TUNED}


@estimator
class ScInOL(SingleLearner):
    """The parameters of the paper.

    References
    ----------
    .. [1] M. Kempka, W. Kotlowski, M. K. Warmuth. Adaptive scale-invariant online algorithms for learning linear
       models. ICML 2019.
    """

    variant: int = parameter(
        2,
        "Algorithm 1 or 2 of the paper. The second bets a fraction of its wealth and has the lower loss on most data.",
        low=1,
        high=2,
    )
    epsilon: float = parameter(
        1.0,
        "Initial wealth of each weight, in units of the mean absolute deviation of the target; results depend on it "
        "little.",
        above=0,
    )

    def _learner(self) -> tuple[str, dict[str, float]]:
        return f"scinol{self.variant}", {"epsilon": float(self.epsilon)}


@estimator
class ScInOLClassifier(ScInOL, LinearClassifier):
    """A linear classifier with nothing to tune: the scale-invariant online learner ScInOL.

    For losses with a Lipschitz constant (``"logistic"``, ``"hinge"``, ``"smoothed-hinge"``) its predictions of the rows
    in the first pass, each before it is learned, have a regret bound against every fixed linear model that does not
    depend on the scale of the features [1]_: :func:`tunefree.theory.bounds.paper_bound`. So it needs neither a learning
    rate nor feature scaling. The cost is a few multiplications for each nonzero value.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from tunefree import ScInOLClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = ScInOLClassifier().fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.9
    True
    """


@estimator
class ScInOLRegressor(ScInOL, LinearRegressor):
    """A linear regressor with nothing to tune: the scale-invariant online learner ScInOL.

    It is an online learner whose predictions do not depend on the scale of the features [1]_. So it needs neither a
    learning rate nor feature scaling. The cost is a few multiplications for each nonzero value. The paper's theorems
    are of targets as they are, for losses with a Lipschitz constant (``"absolute"``, ``"huber:1"``,
    ``"quantile:0.5"``). Here targets are relative to their running mean, which the theorems do not cover.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tunefree import ScInOLRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ScInOLRegressor().fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.4
    True
    """


@estimator
class Stakes(SingleLearner):
    """The parameters of PiSTOL, in units of the Lipschitz constant of the loss.

    References
    ----------
    .. [1] F. Orabona. Simultaneous model selection and optimization through parameter-free stochastic learning.
       NIPS 2014.
    """

    a: float | None = parameter(
        None, "Parameter a of the paper, by default the preset's; the theorem requires 2.25 L.", above=0
    )
    b: float | None = parameter(
        None,
        "Parameter b of the paper, the initial stake, by default the preset's; in regression in units of the target's "
        "mean absolute deviation.",
        above=0,
    )

    def _stakes(self, a: float, b: float) -> dict[str, float]:
        """The settings a and b of the learner, which takes them over the Lipschitz constant."""
        loss = loss_of(self._task, self.loss)
        lipschitz = loss.lipschitz if loss.lipschitz < math.inf else 1.0
        named = {name: value / lipschitz for name, value in (("a", self.a), ("b", self.b)) if value is not None}
        return {"a": a, "b": b} | named

    def _know_rounds(self, rounds: int) -> None:
        """Let b be sqrt(2 a L T) for T rounds, as in the paper's experiments, where it would grow with the rounds."""
        for member in self._learned.model.members:
            if self.t_ == 0 and member.state["b"][0] == 0.0:
                member.state["b"][0] = math.sqrt(2.0 * float(member.state["a"][0]) * rounds)


@estimator
class PiSTOL(Stakes):
    """The parameters of the learners of linear functions."""

    preset: str = parameter(
        "theory",
        "Values of ``a`` and ``b``. ``'theory'``: the ``a`` with the least bound of Theorem 1 of [1]_ after 10,000 "
        "rounds against a model of norm 1, 3.09 L (:func:`tunefree.papers.pistol_risk.pistol_parameter`), and b = L, "
        "L the Lipschitz constant of the loss. ``'practice'``: with one copy those of the paper's experiments, "
        "a = 0.125 L and b = sqrt(2 a L T) for the T rounds of a ``fit``, outside the theorem (where rows come in a "
        "stream, to ``partial_fit``, T is not known, and b = sqrt(2 a L t) after t rounds); with one copy for each "
        "feature, which the paper has no experiments with, a = 2.25 L and b = L. There the theorem's bound is finite "
        "in theory and beyond all numbers (exp(1652)).",
        choices=PRESETS,
    )
    coordinate: bool = parameter(
        True,
        "Whether to run one copy of the algorithm for each feature, which makes it invariant to the scale of each "
        "feature. With False one copy learns all features; it is invariant to rotations and to the scale of the data "
        "as a whole.",
    )

    def _learner(self) -> tuple[str, dict[str, float]]:
        if self.preset == "theory":
            settings = self._stakes(pistol_parameter(), 1.0)
        else:
            settings = self._stakes(2.25, 1.0) if self.coordinate else self._stakes(0.125, 0.0)
        return "coordinate-pistol" if self.coordinate else "pistol", settings


@estimator
class PiSTOLClassifier(PiSTOL, LinearClassifier):
    """A linear classifier with nothing to tune: PiSTOL.

    It is an online learner that adapts to the unknown norm of the best linear model [1]_, so neither a learning rate
    nor a regularisation parameter needs tuning. With the preset ``"theory"`` its predictions of the rows in the first
    pass, each before it is learned, have a finite regret bound against every fixed linear model:
    :func:`tunefree.theory.bounds.paper_bound`, for losses with a Lipschitz constant. ``"practice"`` often learns
    faster, and has no such bound.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from tunefree import PiSTOLClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PiSTOLClassifier().fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.9
    True
    """


@estimator
class PiSTOLRegressor(PiSTOL, LinearRegressor):
    """A linear regressor with nothing to tune: PiSTOL.

    It is an online learner that adapts to the unknown norm of the best linear model [1]_, so neither a learning rate
    nor a regularisation parameter needs tuning. The paper's theorem does not cover numbers whose spread is not known
    beforehand, which is what the learner's stake follows here; lower bounds on the loss of every linear model on the
    rows of the first pass are in ``certificate_``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tunefree import PiSTOLRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = PiSTOLRegressor(passes=10).fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.4
    True
    """


@estimator
class KernelEstimator(SingleLearner):
    """Estimators that learn functions of a kernel's space.

    Attributes
    ----------
    n_support_ : int
        Number of support points.
    """

    fit_intercept = True  # kernels take no notice of the constant
    kernel: str = parameter(
        "rbf", "``'rbf'``, ``'laplacian'``, ``'poly'``, ``'linear'``, or the name of a kernel that was registered."
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
    n_jobs: int | None = shared("n_jobs", -1)

    def _has_ladder_of_widths(self) -> bool:
        return isinstance(self.gamma, str) and self.gamma == "ladder" and kernel_of(self.kernel, 1.0).is_ladder

    def _config(self) -> KernelConfig:
        gamma = 0.0 if self.gamma in GAMMAS else float(self.gamma)
        return KernelConfig(self.kernel, gamma, self.degree, float(self.coef0))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        kernel_of(self.kernel, 1.0, self.degree, float(self.coef0))
        check_effect(self)

    @property
    def progressive_loss_(self) -> float:
        """Progressive validation loss: the mean loss of the rows, each predicted before it is learned.

        In regression it begins after the first row. While the first 1,024 rows of a stream are kept back, it is that of
        a model that has learned the rows so far, with its view and its kernel fixed by them.
        """
        check_is_fitted(self)
        if not self._learned.model.banks[0].waiting:
            return super().progressive_loss_
        settled = copy.deepcopy(self)
        settled._learned.model.freeze()
        settled._learned.progress.add_late(settled._learned.model.take_late_losses())
        return settled.progressive_loss_

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

        Rows learned after the first pass are not counted.
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
        if model.record.is_over:
            return no_bound("the theorem is of one pass, and rows were learned again: pass passes=1")
        if not certificates:
            return no_bound("the theorem is of PiSTOL, of classes, and of losses with a Lipschitz constant")
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


@estimator
class KernelPiSTOL(KernelEstimator, Stakes):
    """The parameters of the learners in a kernel's space."""

    preset: str = parameter(
        "practice",
        "Values of ``a`` and ``b``. ``'practice'``: those of the paper's experiments, a = 0.125 L and "
        "b = sqrt(2 a L T) for the T rounds of a ``fit``, L the Lipschitz constant of the loss; where rows come in a "
        "stream, to ``partial_fit``, T is not known, and b = sqrt(2 a L t) after t rounds. ``'theory'``: the ``a`` "
        "with the least bound of the theorem after 10,000 rounds against a function of norm 1, 3.09 L, and b = L.",
        choices=PRESETS,
    )

    def _learner(self) -> tuple[str, dict[str, float]]:
        settings = self._stakes(pistol_parameter(), 1.0) if self.preset == "theory" else self._stakes(0.125, 0.0)
        return "kernel-pistol", settings | ({} if self._has_ladder_of_widths() else {"width": 1.0})


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
            offset, evidence = member.state.settings["offset"], member.evidence
            loss = float(evidence.loss[0] / evidence.weight[0]) if evidence.weight[0] > 0.0 else math.nan
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

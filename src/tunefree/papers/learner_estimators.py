"""Estimators with the papers' compiled learners: ScInOL, PiSTOL and kernel PiSTOL."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from tunefree.core import machine
from tunefree.core.errors import ModelError
from tunefree.core.parameters import parameter
from tunefree.core.rows import Block, n_rows, part
from tunefree.estimators import validation
from tunefree.estimators.classifier import OnlineClassifierBase
from tunefree.estimators.linear import LinearClassifier, LinearRegressor, SingleLearner
from tunefree.estimators.parameters import estimator, loss_of_task, shared
from tunefree.losses import loss_of
from tunefree.papers.kernel.kernel_bank import KernelConfig
from tunefree.papers.kernel.kernel_certificates import KernelCertificate
from tunefree.papers.kernel.kernels import COEF0, DEGREE, check_effect, kernel_of
from tunefree.papers.pistol_risk import pistol_parameter
from tunefree.theory.bounds import Bound, no_bound
from tunefree.training.one_pass import late_losses
from tunefree.workflows.certification import theorem_of

PRESETS = ("theory", "practice")
GAMMAS = ("ladder", "median")
GROWTH_FACTOR = 2  # arrays of points exist twice while they grow


def support_bytes(X: Block, n: int, functions: int, n_outputs: int) -> int:
    """Return the bytes of ``n`` support points like the rows of a block, with coefficients and lags of the functions.

    >>> from tunefree.core.rows import dense
    >>> support_bytes(dense([[0.0] * 100]), 10**6, 9, 1)
    2688000000
    """
    point = 12 * (X.numbers.shape[1] + len(X.values) / max(n_rows(X), 1))
    return int(GROWTH_FACTOR * n * (point + 16 * functions * n_outputs))


def check_memory(bank: Any, X: Any, n: int) -> None:
    """Raise a ModelError if the memory cannot hold ``n`` rows like the rows of a block as support points."""
    most, bytes_needed = machine.memory(), support_bytes(X, n, len(bank.members), bank.n_outputs)
    if most and bytes_needed > most:
        raise ModelError(
            f"{n:,} rows may all become support points, which take {bytes_needed / 2**30:.1f} GiB of memory; this "
            f"machine has {most / 2**30:.1f}: learn fewer rows, or without kernels"
        )


@estimator
class ScInOL(SingleLearner):
    """Base class of the ScInOL estimators, with the parameters of the paper.

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
        "Initial wealth of each weight, in units of the mean absolute deviation of the target; it has little effect on "
        "results.",
        above=0,
    )

    def _learner(self) -> tuple[str, dict[str, float]]:
        return f"scinol{self.variant}", {"epsilon": float(self.epsilon)}


class RegretBounded:
    """Mixin of linear classifiers whose learner has a regret bound."""

    _learned: Any
    n_features_in_: int
    classes_: np.ndarray

    def bound(self, coef: ArrayLike, intercept: ArrayLike = 0.0) -> Bound:
        """Return the bound of the learner's theorem on the regret of the first pass, against fixed weights.

        It uses the exact quantities of the proof, so it may be far below the printed right-hand side, which the results
        of ``tunefree.papers.play`` have, and may be negative.

        Parameters
        ----------
        coef : array of shape (n_features,), or (n_classes, n_features) for more than two classes
            Weights of the columns, in the form of ``coef_``.
        intercept : float, or array of shape (n_classes,)

        Returns
        -------
        tunefree.theory.bounds.Bound
            Its ``value``, in units of the total loss, is None if no theorem applies; ``reason`` is then the reason.
        """
        check_is_fitted(self)
        model = self._learned.model
        rows = np.atleast_2d(np.asarray(coef, np.float64))
        if rows.shape != (model.n_outputs, self.n_features_in_):
            raise ValueError(
                f"coef must have shape {(model.n_outputs, self.n_features_in_)}, as coef_, not {rows.shape}"
            )
        order = [self.classes_.tolist().index(label) for label in model.classes]
        weights = np.r_[np.broadcast_to(intercept, (1, model.n_outputs)), rows.T]
        weights = weights[:, order] if model.n_outputs > 1 else -weights if order == [1, 0] else weights
        return theorem_of(self._learned, weights)


@estimator
class ScInOLClassifier(ScInOL, RegretBounded, LinearClassifier):
    """A linear classifier without hyperparameters to tune: the scale-invariant online learner ScInOL.

    It needs neither a learning rate nor feature scaling. For losses with a Lipschitz constant (``"logistic"``,
    ``"hinge"``, ``"smoothed-hinge"``), its progressive predictions in the first pass have a regret bound against every
    fixed linear model, which does not depend on the scale of the features [1]_:
    :func:`tunefree.theory.bounds.paper_bound`. The cost is a few multiplications for each nonzero value.

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
    """A linear regressor without hyperparameters to tune: the scale-invariant online learner ScInOL.

    Its predictions do not depend on the scale of the features [1]_, so it needs neither a learning rate nor feature
    scaling. The cost is a few multiplications for each nonzero value. The paper's theorems hold for losses with a
    Lipschitz constant (``"absolute"``, ``"huber:1"``, ``"quantile:0.5"``) and uncentred targets. This estimator learns
    targets relative to their running mean, which the theorems do not cover.

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
class PiSTOLEstimator(SingleLearner):
    """Base class of the PiSTOL estimators, with the parameters of the paper.

    References
    ----------
    .. [1] F. Orabona. Simultaneous model selection and optimization through parameter-free stochastic learning.
       NIPS 2014.
    """

    a: float | None = parameter(
        None, "Parameter a of the paper, by default the preset's; the theorem requires 2.25 L.", above=0
    )
    b: float | None = parameter(None, "Parameter b of the paper, the initial stake, by default the preset's.", above=0)

    def _stakes(self, a: float, b: float) -> dict[str, float]:
        """Return the settings a and b of the learner, in units of the Lipschitz constant of the loss."""
        loss = loss_of(self._task, self.loss)
        lipschitz = loss.lipschitz if loss.lipschitz < math.inf else 1.0
        scaled = {name: value / lipschitz for name, value in (("a", self.a), ("b", self.b)) if value is not None}
        return {"a": a, "b": b} | scaled

    def _passes(self, X: Block, y: np.ndarray, weight: np.ndarray, group: None) -> Iterator[validation.Rounds]:
        """Set b to sqrt(2 a L T) for T rounds, as in the paper's experiments, if it would grow with the rounds."""
        for rounds in super()._passes(X, y, weight, group):
            model, n_rounds = self._learned.model, len(rounds.row) * int(self.passes)
            for member in model.linear.members or model.predictor.bank.members:
                if self.t_ == 0 and member.state["b"][0] == 0.0:
                    member.state["b"][0] = math.sqrt(2.0 * float(member.state["a"][0]) * n_rounds)
            yield rounds


@estimator
class PiSTOLClassifier(PiSTOLEstimator, RegretBounded, LinearClassifier):
    """A linear classifier without hyperparameters to tune: the online learner PiSTOL.

    It adapts to the unknown norm of the best linear model [1]_, so neither a learning rate nor a regularisation
    parameter needs tuning. With the preset ``"theory"`` and a loss with a Lipschitz constant, its progressive
    predictions in the first pass have a finite regret bound against every fixed linear model:
    :func:`tunefree.theory.bounds.paper_bound`. ``"practice"`` often learns faster, and has no such bound.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from tunefree import PiSTOLClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PiSTOLClassifier().fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.9
    True
    """

    preset: str = parameter(
        "theory",
        "Values of ``a`` and ``b``; L is the Lipschitz constant of the loss. ``'theory'``: a = 3.09 L, which minimises "
        "the bound of Theorem 1 of [1]_ after 10,000 rounds against a model of norm 1 "
        "(:func:`tunefree.papers.pistol_risk.pistol_parameter`), and b = L. ``'practice'`` with one copy: the values "
        "of the paper's experiments, which are outside the theorem, a = 0.125 L and b = sqrt(2 a L T) for the T rounds "
        "of ``fit``; in ``partial_fit`` T is not known, and b = sqrt(2 a L t) after t rounds. ``'practice'`` with one "
        "copy for each feature, for which the paper has no experiments: a = 2.25 L and b = L, with which the bound of "
        "the theorem overflows (exp(1652)).",
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
class KernelPiSTOLClassifier(PiSTOLEstimator, OnlineClassifierBase):
    """A kernel classifier without hyperparameters to tune: PiSTOL with a grid of bandwidths.

    PiSTOL is an online learner in a reproducing kernel Hilbert space that adapts to the unknown norm of the best
    function [1]_, so no regularisation parameter C is needed. The values of gamma are a quarter to 64 times the value
    of the median heuristic. Probabilities of the learners are averaged with Bayesian weights. Time and memory grow with
    the number of rows of small margin.

    The default is the setting of the paper's experiments: the average of one pass, with ``a`` and ``b`` outside the
    conditions of the theorems. With ``preset="theory"`` and a loss with a Lipschitz constant, the predictions of each
    learner in the first pass have the regret bound of Theorem 1 against every function of its kernel's space:
    ``certificates_[i].theorem(norm)``, or :meth:`bound` with a single gamma. For both presets, ``certificates_`` has
    lower bounds on the loss of every function on the rows of the first pass.

    Attributes
    ----------
    n_support_ : int
        Number of support points.

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
        "The default is the paper's loss, with which few rows become support points.",
    )
    preset: str = parameter(
        "practice",
        "Values of ``a`` and ``b``; L is the Lipschitz constant of the loss. ``'practice'``: the values of the paper's "
        "experiments, a = 0.125 L and b = sqrt(2 a L T) for the T rounds of ``fit``; in ``partial_fit`` T is not "
        "known, and b = sqrt(2 a L t) after t rounds. ``'theory'``: a = 3.09 L, which minimises the bound of the "
        "theorem after 10,000 rounds against a function of norm 1, and b = L.",
        choices=PRESETS,
    )
    fit_intercept = True  # kernels ignore the constant
    kernel: str = parameter(
        "rbf", "``'rbf'``, ``'laplacian'``, ``'poly'``, ``'linear'``, or the name of a kernel that was registered."
    )
    gamma: float | str = parameter(
        "ladder",
        "gamma of the kernel. ``'median'``: 1 / (2 m^2), with m the median distance between rows of different classes. "
        "``'ladder'``: that times powers of two from a quarter to 64. For the polynomial kernel the default is 1.",
        choices=GAMMAS,
        above=0,
    )
    degree: int = parameter(3, DEGREE, low=1)
    coef0: float = parameter(1.0, COEF0, low=0)
    view: str = shared("view", "steady", "It is fixed after the first 1024 rows, which are buffered until then.")
    passes: int = parameter(
        1,
        "Number of passes over the rows in ``fit``. Passes after the first change the coefficients of support points; "
        "the papers' theorems hold for one pass.",
        low=1,
    )
    average: bool = parameter(
        True, "Whether to predict with the average of the iterates of the last pass instead of the last iterate."
    )
    n_jobs: int | None = shared("n_jobs", -1)

    def _learner(self) -> tuple[str, dict[str, float]]:
        settings = self._stakes(pistol_parameter(), 1.0) if self.preset == "theory" else self._stakes(0.125, 0.0)
        has_ladder = self.gamma == "ladder" and kernel_of(self.kernel, 1.0).is_ladder
        return "kernel-pistol", settings if has_ladder else settings | {"width": 1.0}

    def _config(self) -> KernelConfig:
        gamma = 0.0 if self.gamma in GAMMAS else float(self.gamma)
        return KernelConfig(self.kernel, gamma, self.degree, float(self.coef0))

    def _passes(self, X: Block, y: np.ndarray, weight: np.ndarray, group: None) -> Iterator[validation.Rounds]:
        sample = part(X, 0, validation.BLOCK)._replace(constant=0.0)
        check_memory(self._learned.model.predictor.bank, sample, n_rows(X))
        yield from super()._passes(X, y, weight, group)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        kernel_of(self.kernel, 1.0, self.degree, float(self.coef0))
        check_effect(self)

    @property
    def progressive_loss_(self) -> float:
        """Progressive validation loss: the mean loss of the rows, each predicted before it is learned.

        The first 1,024 rows of a stream are buffered. Until then, this is the loss of a copy of the model whose view
        and kernel are fixed by the rows so far.
        """
        check_is_fitted(self)
        if not self._learned.model.predictor.bank.waiting:
            return super().progressive_loss_
        settled = copy.deepcopy(self)
        settled._learned.model.freeze()
        settled._learned.progress.add_late(late_losses(settled._learned.model))
        return settled.progressive_loss_

    @property
    def gamma_(self) -> float:
        """gamma of the kernel; for a grid, the value of the median heuristic, on which the grid is based."""
        check_is_fitted(self)
        return self._learned.model.predictor.bank.gamma

    @property
    def n_support_(self) -> int:
        """Number of support points."""
        check_is_fitted(self)
        return int(self._learned.model.predictor.bank.n_support)

    @property
    def certificates_(self) -> list[KernelCertificate]:
        """Lower bounds, for each bandwidth, on the loss of every function of the kernel's space on the first pass.

        Rows learned after the first pass are not counted.
        """
        check_is_fitted(self)
        return [certificate for _, certificate in self._learned.model.predictor.bank.certificates()]

    def bound(self, norm: float) -> Bound:
        """Return the bound of the learner's theorem on the regret of the first pass, against functions of a norm.

        Parameters
        ----------
        norm : float
            Norm of the functions in the kernel's space.

        Returns
        -------
        tunefree.theory.bounds.Bound
            Its ``value``, in units of the total loss, is None if no theorem applies; ``reason`` is then the reason.
        """
        certificates, model = self.certificates_, self._learned.model
        if len(model.predictor.bank.members) > 1:
            return no_bound("theorems are of one learner: pass gamma as a number")
        if model.record.is_over:
            return no_bound("the theorem is of one pass, and rows were learned again: pass passes=1")
        if model.predictor.bank.waiting:
            return no_bound("the first rows of a stream are buffered, and none is learned yet")
        if not certificates:
            return no_bound("the theorem is of losses with a Lipschitz constant")
        value = certificates[0].theorem(norm)
        if value == math.inf:
            return no_bound("the theorem assumes a of at least 2.25 L and a b that does not grow")
        return Bound(value, "Orabona 2014, Theorem 1, with a growing norm of the rows")

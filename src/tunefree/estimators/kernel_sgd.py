"""Regularised stochastic gradient descent in a kernel's space, in scikit-learn's manner."""

from __future__ import annotations

import math
from typing import Any

from sklearn.utils.validation import check_is_fitted

from tunefree.core.parameters import parameter
from tunefree.estimators.base import OnlineClassifierBase
from tunefree.estimators.kernel import GAMMAS, KernelEstimator
from tunefree.estimators.parameters import estimator, loss_of_task
from tunefree.kernel.regularized_sgd import BY_THEOREM, LEAST_OFFSET, TUNED
from tunefree.model.pool import FOLLOW_THE_LEADER

OFFSETS = {"auto": BY_THEOREM, "tuned": TUNED}


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
        return float(self._learned.model.kernel_banks[0].gamma * member.setting.settings["width"])

    @property
    def gamma_(self) -> float:
        """gamma of the kernel of the function that predicts."""
        check_is_fitted(self)
        return self._gamma_of(self._learned.model.members[self._leader()])

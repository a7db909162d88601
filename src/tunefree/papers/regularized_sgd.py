"""Stochastic gradient descent on a regularised loss, and its average.

Nitanda, Suzuki: Stochastic gradient descent with exponential convergence rates of expected classification errors
(AISTATS 2019), Algorithm 1, for the expected loss plus (lambda / 2) ||g||^2:

    g_{t+1} = g_t - eta_t (l'(g_t(x_t), y_t) k(x_t, .) + lambda g_t),        eta_t = 2 / (lambda (gamma + t)),
    average of g_1 .. g_{T+1} with weights alpha_t = 2 (gamma + t - 1) / ((2 gamma + T) (T + 1)).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tunefree.papers.algorithm import Stream
from tunefree.papers.spaces import KernelAlgorithm, Weights, space_of
from tunefree.theory.bounds import Bound, no_bound


class RegularizedSGD(KernelAlgorithm):
    """SGD (``result.weights``) and averaged SGD (``result.average``).

    Parameters
    ----------
    penalty : float, default 0.001
        lambda.
    offset : float, default 3
        gamma, at least 3, so that eta_1 <= 1 / (2 lambda). The least value for the theorems is
        :func:`tunefree.papers.sgd_rates.least_offset`.
    start : array (d,) or (d, K), or array (n,) or (n, K), optional
        g_1, by default 0: weights with the linear kernel, else coefficients of ``start_rows``.
    start_rows : array (n, d), optional
    **kernel
        As for :class:`tunefree.papers.spaces.KernelAlgorithm`; ``gamma`` is the parameter of the kernel.

    Examples
    --------
    >>> from tunefree.papers import play
    >>> X, y = [[1.0], [1.0], [-1.0]], [1, 1, -1]
    >>> result = play(RegularizedSGD(penalty=0.5), X, y)
    >>> result.weights.round(4).tolist(), result.average.round(4).tolist()
    ([[0.6373]], [[0.4908]])
    >>> play(RegularizedSGD(penalty=0.5, start=[1.0]), X, y).predictions.round(4).tolist()
    [1.0, 0.7689, -0.7147]
    """

    parameters = ("penalty", "offset", "kernel", "gamma")
    averages_last = True

    def __init__(
        self, penalty: float = 1e-3, offset: float = 3.0, start: Any = None, start_rows: Any = None, **kernel: Any
    ) -> None:
        super().__init__(**kernel)
        if not (penalty > 0.0 and offset >= 3.0):
            raise ValueError(f"the penalty must be above 0 and the offset at least 3, not {penalty} and {offset}")
        self.penalty, self.offset, self.start, self.start_rows = penalty, offset, start, start_rows

    def begin(self, stream: Stream) -> None:
        super().begin(stream)
        self.scale, self.first = 1.0, None
        if self.start is None:
            return
        start = np.asarray(self.start, np.float64)
        start = start[:, None] if start.ndim == 1 else start
        if isinstance(self.f, Weights):
            self.f.coefficients += start
        else:
            rows = np.asarray(self.start_rows, np.float64)
            self.first = space_of(self, stream._replace(rounds=len(rows)))
            for row, coefficients in zip(rows, start, strict=True):
                self.first.add(row, coefficients)

    def predict(self, x: np.ndarray) -> np.ndarray:
        # The weights do not include the part of g_t that is on ``start_rows``.
        return super().predict(x) if self.first is None else self.scale * (self.f.at(x) + self.first.at(x))

    def update(self, x: np.ndarray, slope: np.ndarray) -> None:
        self.t += 1
        rate = 2.0 / (self.penalty * (self.offset + self.t))  # eta_t
        self.scale *= 1.0 - rate * self.penalty
        self.f.add(x, -rate * slope / self.scale)

    def share(self, t: int) -> float:
        """Return alpha_t, up to a common factor."""
        return self.offset + t - 1.0

    def bound(self, result: Any, comparator: Any) -> Bound:
        return no_bound(
            "Theorems 1 and 2 bound the expected classification error, not the regret: "
            "see tunefree.papers.sgd_rates.ExponentialRate"
        )


class OnlineRegularized(KernelAlgorithm):
    """Online regularised learning: Lin, Rosasco, Zhou 2016, (15), of Ying, Zhou 2006 and Ye, Zhou 2007.

    f_{t+1} = (1 - eta_t lambda_t) f_t [+ eta_t y_t k(x_t, .) if y_t f_t(x_t) <= 1] for the hinge loss; other losses use
    their slopes. eta_t = eta t^-theta and lambda_t = penalty t^-kappa.

    Parameters
    ----------
    eta, theta, penalty, kappa : float
    **kernel
        As for :class:`tunefree.papers.spaces.KernelAlgorithm`.

    Examples
    --------
    >>> from tunefree.papers import play
    >>> play(OnlineRegularized(eta=0.5, penalty=0.1), [[1.0], [1.0]], [1, 1], loss="hinge").predictions.tolist()
    [0.0, 0.49999999999999994]
    """

    parameters = ("eta", "theta", "penalty", "kappa", "kernel", "gamma")

    def __init__(
        self,
        eta: float = 1.0,
        theta: float = 0.5,
        penalty: float = 0.01,
        kappa: float = 0.25,
        **kernel: Any,
    ) -> None:
        super().__init__(**kernel)
        if not (eta > 0.0 and penalty >= 0.0 and eta * penalty < 1.0):
            raise ValueError(f"eta must be above 0, and eta times the penalty below 1, not {eta} and {penalty}")
        self.eta, self.theta, self.penalty, self.kappa = eta, theta, penalty, kappa

    def begin(self, stream: Stream) -> None:
        super().begin(stream)
        self.decay = 0.0

    @property
    def scale(self) -> float:  # type: ignore[override]
        """The product of all factors 1 - eta_t lambda_t."""
        return math.exp(-self.decay)

    def update(self, x: np.ndarray, slope: np.ndarray) -> None:
        self.t += 1
        rate = self.eta * self.t**-self.theta
        self.decay -= math.log1p(-rate * self.penalty * self.t**-self.kappa)
        self.f.add(x, -rate * slope * math.exp(self.decay))

"""Online gradient descent with one rate, with a rate for each coordinate, and with the best rates in hindsight.

Zinkevich: Online convex programming and generalized infinitesimal gradient ascent (ICML 2003), with eta_t = eta /
sqrt(t), which is SGD in the experiments of Kempka, Kotlowski, Warmuth (ICML 2019). Their (2) has a fixed rate for each
coordinate, their Appendix A proves a bound for arbitrary fixed rates, and the oracle's rates of (4) minimise it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tunefree.papers.algorithm import Algorithm, Stream, over
from tunefree.theory.bounds import Bound, no_bound

PAPER = "Kempka, Kotlowski, Warmuth 2019"


class GradientDescent(Algorithm):
    """Base class of algorithms that update stored weights by steps."""

    def begin(self, stream: Stream) -> None:
        self.weights, self.t = np.zeros((stream.n_features, stream.n_outputs)), 0

    def predict(self, x: np.ndarray) -> np.ndarray:
        return x @ self.weights

    def update(self, x: np.ndarray, slope: np.ndarray) -> None:
        self.t += 1
        self.weights = self.weights - self.step(np.outer(x, slope))

    def step(self, gradient: np.ndarray) -> np.ndarray:
        """Return the step (d, K) for a gradient (d, K)."""
        raise NotImplementedError


class OGD(GradientDescent):
    """w_{t+1} = w_t - eta / sqrt(t) gradient_t.

    Examples
    --------
    >>> from tunefree.papers import play
    >>> play(OGD(eta=0.5), [[1.0], [1.0]], [1, 1]).predictions.tolist()
    [0.0, 0.25]
    """

    parameters = ("eta",)

    def __init__(self, eta: float = 1.0) -> None:
        self.eta = eta

    def step(self, gradient: np.ndarray) -> np.ndarray:
        return self.eta / math.sqrt(self.t) * gradient

    def bound(self, result: Any, comparator: Any) -> Bound:
        return no_bound("the bound of rates eta / sqrt(t) assumes weights in a bounded set; see FixedRates")


class FixedRates(GradientDescent):
    """w_{t+1,i} = w_{t,i} - eta_i gradient_{t,i} (2).

    Parameters
    ----------
    eta : float, or array (d,) or (d, K)

    Examples
    --------
    >>> from tunefree.papers import play
    >>> result = play(FixedRates(0.5), [[1.0], [1.0]], [1, 1])
    >>> print(result.bound([1.0]))
    at most 1.11042 (Kempka, Kotlowski, Warmuth 2019, Appendix A)
    """

    parameters = ("eta",)

    def __init__(self, eta: Any = 0.1) -> None:
        self.eta = eta

    def begin(self, stream: Stream) -> None:
        super().begin(stream)
        self.rates = self._rates(self.weights.shape)

    def step(self, gradient: np.ndarray) -> np.ndarray:
        return self.rates * gradient

    def bound(self, result: Any, comparator: Any) -> Bound:
        """sum_i u_i^2 / (2 eta_i) + eta_i / 2 sum_t gradient_{t,i}^2; infinite if eta_i = 0 and u_i is not 0."""
        u, eta = comparator.weights, self._rates(comparator.weights.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            comparator_terms = np.where(u == 0.0, 0.0, u**2 / (2.0 * eta))
        return Bound(float((comparator_terms + 0.5 * eta * gradient_norms(result) ** 2).sum()), f"{PAPER}, Appendix A")

    def _rates(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return the rates eta_i, broadcast to (d, K)."""
        rates = np.asarray(self.eta, np.float64)
        return np.broadcast_to(rates[:, None] if rates.ndim == 1 else rates, shape)


def gradient_norms(result: Any) -> np.ndarray:
    """Return S_{T,i} = sqrt(sum_t (g_t x_{t,i})^2), (d, K)."""
    return np.sqrt((result.X**2).T @ result.slopes.reshape(result.rounds, -1) ** 2)


def oracle(result: Any, u: Any) -> FixedRates:
    """Return gradient descent with the rates eta_i = |u_i| / S_{T,i}, with S_{T,i} from a previous run.

    A run with these rates has other gradients. If runs are repeated, each with the rates from the previous run, the
    rates converge, and the bound of Appendix A becomes (4), sum_i |u_i| S_{T,i}.

    Examples
    --------
    >>> from tunefree.papers import play
    >>> X, y = [[1.0], [1.0], [1.0]], [1, 1, -1]
    >>> oracle(play(FixedRates(0.5), X, y), [1.0])
    FixedRates(eta=array([[1.1042684]]))
    """
    norms = gradient_norms(result)
    return FixedRates(over(np.abs(np.reshape(np.asarray(u, np.float64), norms.shape)), norms))

"""ScInOL1 and ScInOL2, the scale-invariant online learners.

Kempka, Kotlowski, Warmuth: Adaptive scale-invariant online algorithms for learning linear models (ICML 2019),
Algorithms 1 and 2; Algorithms 3 and 4 (Appendix G) have K outputs and K weights for each feature. The paper assumes
slopes of at most 1. Here slopes are divided by the Lipschitz constant of the loss, and bounds are multiplied by it.

S_{t,i} and M_{t,i} are stored instead of their squares, which could overflow or underflow.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tunefree.papers.algorithm import Algorithm, Stream, over
from tunefree.theory.bounds import Bound, no_bound

PAPER = "Kempka, Kotlowski, Warmuth 2019"


class ScInOL(Algorithm):
    """Base class of both algorithms, with statistics for each feature and output."""

    parameters = ("epsilon",)

    def __init__(self, epsilon: float = 1.0) -> None:
        self.epsilon = epsilon

    def begin(self, stream: Stream) -> None:
        shape = stream.n_features, stream.n_outputs
        self.lipschitz = stream.lipschitz if stream.lipschitz < math.inf else 1.0
        self.S, self.G, self.M = np.zeros(shape), np.zeros(shape), np.zeros((shape[0], 1))
        self.t = 0

    @property
    def spread(self) -> np.ndarray:
        """S_hat_{t,i} = sqrt(S_{t-1,i}^2 + M_{t,i}^2)."""
        return np.hypot(self.S, self.M)

    def observe(self, x: np.ndarray) -> None:
        """M_{t,i} = max(M_{t-1,i}, |x_{t,i}|)."""
        self.t += 1
        self.M = np.maximum(self.M, np.abs(x)[:, None])

    def add(self, x: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """G_{t,i} = G_{t-1,i} - g_t x_{t,i},  S_{t,i}^2 = S_{t-1,i}^2 + (g_t x_{t,i})^2; returns g_t x_{t,i}."""
        gradient = np.outer(x, slope / self.lipschitz)
        self.G, self.S = self.G - gradient, np.hypot(self.S, gradient)
        return gradient

    theorem: str  # number of the theorem in section 3, and in G for several outputs

    def bound(self, result: Any, comparator: Any) -> Bound:
        """Theorem 3.1 or 3.2, and G.1 or G.2 for several outputs."""
        if not result.stream.lipschitz < math.inf:
            return no_bound("the theorems assume a loss with a Lipschitz constant")
        section = "3" if result.stream.n_outputs == 1 else "G"
        value = result.stream.lipschitz * self.bound_of_theorem(result, comparator)
        return Bound(value, f"{PAPER}, Theorem {section}.{self.theorem}")

    def bound_of_theorem(self, result: Any, comparator: Any) -> float:
        """Return the bound for slopes of at most 1."""
        raise NotImplementedError


class ScInOL1(ScInOL):
    """Scale-invariant online learner 1 (Algorithms 1 and 3).

    Examples
    --------
    >>> from tunefree.papers import play
    >>> result = play(ScInOL1(), [[1.0, 0.0], [1.0, 2.0], [-1.0, 1.0]], [1, 1, -1])
    >>> print(result.bound([1.0, 0.0]))
    at most 9.90975 (Kempka, Kotlowski, Warmuth 2019, Theorem 3.1)
    """

    theorem = "1"

    def begin(self, stream: Stream) -> None:
        super().begin(stream)
        self.beta = np.full((stream.n_features, stream.n_outputs), self.epsilon)

    def predict(self, x: np.ndarray) -> np.ndarray:
        self.observe(x)
        # beta_{t,i} = min(beta_{t-1,i}, epsilon (S_{t-1,i}^2 + M_{t,i}^2) / (x_{t,i}^2 t))
        nonzero = x != 0
        with np.errstate(over="ignore"):
            limit = self.epsilon * (self.spread[nonzero] / x[nonzero, None]) ** 2 / self.t
        self.beta[nonzero] = np.minimum(self.beta[nonzero], limit)
        return x @ self.weights

    @property
    def weights(self) -> np.ndarray:
        """w_{t,i} = beta_{t,i} sgn(theta_{t,i}) (exp(|theta_{t,i}| / 2) - 1) / (2 S_hat), theta = G / S_hat."""
        theta = over(self.G, self.spread)
        return over(self.beta * np.sign(theta) * np.expm1(np.abs(theta) / 2.0), 2.0 * self.spread)

    def update(self, x: np.ndarray, slope: np.ndarray) -> None:
        self.add(x, slope)

    def bound_of_theorem(self, result: Any, comparator: Any) -> float:
        return scinol1_bound(comparator.weights, spreads_of(result), result.rounds, self.epsilon)


class ScInOL2(ScInOL):
    """Scale-invariant online learner 2 (Algorithms 2 and 4).

    Examples
    --------
    >>> from tunefree.papers import play
    >>> result = play(ScInOL2(), [[1.0, 0.0], [1.0, 2.0], [-1.0, 1.0]], [1, 1, -1])
    >>> print(result.bound([1.0, 0.0]))
    at most 4.15783 (Kempka, Kotlowski, Warmuth 2019, Theorem 3.2)
    """

    theorem = "2"

    def begin(self, stream: Stream) -> None:
        super().begin(stream)
        self.eta = np.full((stream.n_features, stream.n_outputs), self.epsilon)

    def predict(self, x: np.ndarray) -> np.ndarray:
        self.observe(x)
        return x @ self.weights

    @property
    def weights(self) -> np.ndarray:
        """w_{t,i} = sgn(theta_{t,i}) min(|theta_{t,i}|, 1) eta_{t-1,i} / (2 S_hat), theta = G / S_hat."""
        theta = over(self.G, self.spread)
        return over(np.sign(theta) * np.minimum(np.abs(theta), 1.0) * self.eta, 2.0 * self.spread)

    def update(self, x: np.ndarray, slope: np.ndarray) -> None:
        weights = self.weights
        # eta_{t,i} = eta_{t-1,i} - g_t x_{t,i} w_{t,i}
        self.eta = self.eta - self.add(x, slope) * weights

    def bound_of_theorem(self, result: Any, comparator: Any) -> float:
        X = np.abs(result.X)
        first = X[(X != 0).argmax(axis=0), np.arange(X.shape[1])]  # |x_{tau_i, i}|
        return scinol2_bound(comparator.weights, spreads_of(result), first[:, None], self.epsilon)


def spreads_of(result: Any) -> np.ndarray:
    """Return S_hat_{T,i} = sqrt(S_{T,i}^2 + M_{T,i}^2) of a result, (d, K)."""
    slopes = result.slopes.reshape(result.rounds, -1) / result.stream.lipschitz
    return np.sqrt((result.X**2).T @ slopes**2 + (np.abs(result.X).max(axis=0) ** 2)[:, None])


def scinol1_bound(weights: ArrayLike, scales: ArrayLike, rounds: int, epsilon: float = 1.0) -> float:
    """Theorem 3.1: sum_i 2 |u_i| S_i ln(1 + 2 |u_i| S_i T / epsilon) + epsilon (1 + ln T), for slopes of at most 1.

    Parameters
    ----------
    weights, scales : arrays of the same shape
        u, and S_hat_i = sqrt(S_i^2 + M_i^2) after the last round.
    rounds : int
        T.
    epsilon : float, default 1

    Examples
    --------
    >>> round(scinol1_bound([0.0], [3.0], 100), 3)
    5.605
    """
    reach = 2.0 * np.abs(np.asarray(weights, np.float64)) * np.asarray(scales, np.float64)
    return float((reach * np.log1p(reach * rounds / epsilon) + epsilon * (1.0 + math.log(rounds))).sum())


def scinol2_bound(weights: ArrayLike, scales: ArrayLike, first: ArrayLike, epsilon: float = 1.0) -> float:
    """Theorem 3.2: sum_i epsilon + 2 |u_i| S_i (ln(3 |u_i| S_i^3 / (epsilon first_i^2)) - 1), for slopes of at most 1.

    Parameters
    ----------
    weights, scales, epsilon
        As in :func:`scinol1_bound`.
    first : array that can be broadcast to their shape
        First nonzero absolute value of each feature.

    Examples
    --------
    >>> scinol2_bound([0.0, 0.0], [3.0, 1.0], [1.0, 1.0])
    2.0
    """
    u, s = np.abs(np.asarray(weights, np.float64)), np.asarray(scales, np.float64)
    used = (u > 0) & (s > 0)
    # Logarithms of the factors are added, since their product could overflow or underflow.
    logs = math.log(3.0 / epsilon) + np.log(u[used]) + 3.0 * np.log(s[used])
    logs -= 2.0 * np.log(np.broadcast_to(np.asarray(first, np.float64), u.shape)[used])
    return float(u.size * epsilon + (2.0 * u[used] * s[used] * (logs - 1.0)).sum())

"""CoCoB, continuous coin betting: Orabona, Tommasi: Training deep networks without learning rates through coin betting
(NIPS 2017), Algorithm 1 (COCOB) and Algorithm 2 (COCOB-Backprop), with initial weights of 0.

Each coordinate bets on c = -g x_i.
"""

from __future__ import annotations

import math

import numpy as np

from tunefree.papers.algorithm import Algorithm, Stream, over


class CoCoB(Algorithm):
    """COCOB-Backprop (Algorithm 2): w_i = theta_i (L_i + R_i) / (L_i max(A_i + L_i, alpha L_i)).

    Examples
    --------
    >>> from tunefree.papers import play
    >>> play(CoCoB(alpha=100.0), [[1.0], [2.0]], [1, 1]).predictions.tolist()
    [0.0, 0.02]
    """

    parameters = ("alpha",)

    def __init__(self, alpha: float = 100.0) -> None:
        self.alpha = alpha

    def begin(self, stream: Stream) -> None:
        shape = stream.n_features, stream.n_outputs
        self.L = np.full(shape, 1e-8)  # the largest |c|
        self.A, self.R, self.theta, self.weights = (np.zeros(shape) for _ in range(4))

    def predict(self, x: np.ndarray) -> np.ndarray:
        return x @ self.weights

    def update(self, x: np.ndarray, slope: np.ndarray) -> None:
        c = -np.outer(x, slope)
        self.L, self.A = np.maximum(self.L, np.abs(c)), self.A + np.abs(c)
        self.R, self.theta = np.maximum(self.R + c * self.weights, 0.0), self.theta + c
        share = self.theta / np.maximum(self.A + self.L, self.alpha * self.L)
        self.weights = share * ((self.L + self.R) / self.L)


class CoCoBOriginal(Algorithm):
    """COCOB (Algorithm 1): w_i = (L_i + R_i) (2 sigmoid(2 theta_i / (A_i + L_i)) - 1) / L_i.

    The paper assumes a known bound L_i on |c|. Here it is the Lipschitz constant of the loss times the largest |x_i|.

    Examples
    --------
    >>> from tunefree.papers import play
    >>> play(CoCoBOriginal(), [[1.0], [1.0]], [1, 1]).predictions.round(4).tolist()
    [0.0, 0.3215]
    """

    parameters = ()

    def begin(self, stream: Stream) -> None:
        shape = stream.n_features, stream.n_outputs
        if not stream.lipschitz < math.inf:
            raise ValueError("COCOB assumes slopes of known bound, and this loss has none; use CoCoB, or another loss")
        self.lipschitz = stream.lipschitz
        self.L = np.zeros((stream.n_features, 1))
        self.A, self.R, self.theta = (np.zeros(shape) for _ in range(3))

    @property
    def weights(self) -> np.ndarray:
        """The weights (d, K), by 2 sigmoid(2 z) - 1 = tanh(z)."""
        return over(self.L + self.R, self.L) * np.tanh(over(self.theta, self.A + self.L))

    def predict(self, x: np.ndarray) -> np.ndarray:
        self.L = np.maximum(self.L, self.lipschitz * np.abs(x)[:, None])
        return x @ self.weights

    def update(self, x: np.ndarray, slope: np.ndarray) -> None:
        c, weights = -np.outer(x, slope), self.weights
        self.theta, self.A, self.R = self.theta + c, self.A + np.abs(c), self.R + c * weights

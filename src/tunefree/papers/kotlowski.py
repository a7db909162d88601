"""Algorithm 1 of Kotlowski: Scale-invariant unconstrained online learning (ALT 2017), in the coordinate-wise form that
is called Alg1-K17 in the experiments of Kempka, Kotlowski, Warmuth 2019."""

from __future__ import annotations

import math

import numpy as np

from tunefree.papers.algorithm import Algorithm, Stream, over


class Kotlowski(Algorithm):
    """w_i = epsilon / (t d) h_i / (alpha S_i^2) exp((h_i^2 + x_i^2) / (2 alpha S_i^2)).

    S_i^2 is the sum of x_i^2 up to x_t. h_i is minus the sum of gradients, whose slopes are divided by the Lipschitz
    constant of the loss. The weights depend on the current row x; after it is learned, they have x_i = 0.

    Examples
    --------
    >>> from tunefree.papers import play
    >>> play(Kotlowski(), [[1.0], [1.0]], [1, 1]).predictions.round(4).tolist()
    [0.0, 0.1467]
    """

    parameters = ("alpha", "epsilon")

    def __init__(self, alpha: float = 9.0 / 8.0, epsilon: float = 1.0) -> None:
        self.alpha, self.epsilon = alpha, epsilon

    def begin(self, stream: Stream) -> None:
        self.lipschitz = stream.lipschitz if stream.lipschitz < math.inf else 1.0
        self.h, self.S = np.zeros((stream.n_features, stream.n_outputs)), np.zeros((stream.n_features, 1))
        self.x, self.t = np.zeros(stream.n_features), 0

    @property
    def weights(self) -> np.ndarray:
        """The weights for the current row, from its prediction until it is learned."""
        squares = over(self.h, self.S) ** 2 + over(self.x[:, None], self.S) ** 2
        bets = over(over(self.h, self.S), self.alpha * self.S) * np.exp(squares / (2.0 * self.alpha))
        return self.epsilon / (max(self.t, 1) * len(self.h)) * bets

    def predict(self, x: np.ndarray) -> np.ndarray:
        self.t += 1
        self.x, self.S = x, np.hypot(self.S, x[:, None])
        return x @ self.weights

    def update(self, x: np.ndarray, slope: np.ndarray) -> None:
        self.h = self.h - np.outer(x, slope / self.lipschitz)
        self.x = np.zeros(len(x))

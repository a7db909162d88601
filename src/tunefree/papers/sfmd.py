"""SFMD, scale-free mirror descent: Orabona, Crammer, Cesa-Bianchi: A generalized online mirror descent with
applications to classification and regression (Machine Learning 99, 2015), as Kempka, Kotlowski, Warmuth 2019 run it."""

from __future__ import annotations

import math

import numpy as np

from tunefree.papers.algorithm import Algorithm, Stream, over


class SFMD(Algorithm):
    """w_i = eta G_i / (sqrt(d) M_i^2 sqrt(S_i)), with S_i = 1 + sum_t (g_t x_i)^2 / M_i^2, with M_i of round t.

    d is the number of features, without an intercept, which the paper does not have.

    Examples
    --------
    >>> from tunefree.papers import play
    >>> play(SFMD(), [[1.0], [2.0]], [1, 1]).predictions.round(4).tolist()
    [0.0, 0.2236]
    """

    parameters = ("eta",)

    def __init__(self, eta: float = 1.0) -> None:
        self.eta = eta

    def begin(self, stream: Stream) -> None:
        self.G, self.M = np.zeros((stream.n_features, stream.n_outputs)), np.zeros((stream.n_features, 1))
        self.S = np.ones_like(self.G)

    @property
    def weights(self) -> np.ndarray:
        """The weights (d, K) from the statistics so far."""
        return over(over(self.eta * self.G, self.M), math.sqrt(len(self.G)) * self.M * np.sqrt(self.S))

    def predict(self, x: np.ndarray) -> np.ndarray:
        self.M = np.maximum(self.M, np.abs(x)[:, None])
        return x @ self.weights

    def update(self, x: np.ndarray, slope: np.ndarray) -> None:
        gradient = np.outer(x, slope)
        self.G, self.S = self.G - gradient, self.S + over(gradient, self.M) ** 2

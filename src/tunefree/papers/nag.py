"""NAG, normalized adaptive gradient descent: Ross, Mineiro, Langford: Normalized online learning (UAI 2013)."""

from __future__ import annotations

import numpy as np

from tunefree.papers.algorithm import Stream, over
from tunefree.papers.gradient_descent import GradientDescent


class NAG(GradientDescent):
    """With s_i the largest |x_i| so far, N = sum_t sum_i x_i^2 / s_i^2 and G_i the sum of squared gradients,

    w_i <- w_i - eta sqrt(t / N) g_i / (s_i sqrt(G_i)); where s_i grows, w_i shrinks by the ratio of the two.

    Examples
    --------
    >>> from tunefree.papers import play
    >>> play(NAG(eta=0.5), [[1.0], [2.0]], [1, 1]).predictions.tolist()
    [0.0, 0.5]
    """

    parameters = ("eta",)

    def __init__(self, eta: float = 0.5) -> None:
        self.eta = eta

    def begin(self, stream: Stream) -> None:
        super().begin(stream)
        self.s, self.N, self.norms = np.zeros((stream.n_features, 1)), 0.0, np.zeros_like(self.weights)

    def predict(self, x: np.ndarray) -> np.ndarray:
        s = np.maximum(self.s, np.abs(x)[:, None])
        self.weights = self.weights * over(self.s, s)  # where |x_i| > s_i: w_i <- w_i s_i / |x_i|, s_i <- |x_i|
        self.s = s
        self.N += float((over(x, s[:, 0]) ** 2).sum())
        return super().predict(x)

    def step(self, gradient: np.ndarray) -> np.ndarray:
        self.norms = np.hypot(self.norms, gradient)  # sqrt(G_i)
        return over(self.eta * np.sqrt(over(self.t, self.N)) * over(gradient, self.s), self.norms)

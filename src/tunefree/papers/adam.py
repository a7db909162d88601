"""Adam: Kingma, Ba: Adam: a method for stochastic optimization (ICLR 2015), Algorithm 1. Every weight changes in each
round, even if its gradient is 0."""

from __future__ import annotations

import numpy as np

from tunefree.papers.algorithm import Stream
from tunefree.papers.gradient_descent import GradientDescent


class Adam(GradientDescent):
    """w_i <- w_i - eta (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon).

    Examples
    --------
    >>> from tunefree.papers import play
    >>> play(Adam(eta=0.5), [[1.0], [1.0]], [1, 1]).predictions.round(6).tolist()
    [0.0, 0.5]
    """

    parameters = ("eta", "beta1", "beta2", "epsilon")

    def __init__(self, eta: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8) -> None:
        self.eta, self.beta1, self.beta2, self.epsilon = eta, beta1, beta2, epsilon

    def begin(self, stream: Stream) -> None:
        super().begin(stream)
        self.m, self.v = np.zeros_like(self.weights), np.zeros_like(self.weights)

    def step(self, gradient: np.ndarray) -> np.ndarray:
        self.m = self.beta1 * self.m + (1.0 - self.beta1) * gradient
        self.v = self.beta2 * self.v + (1.0 - self.beta2) * gradient**2
        mean, square = self.m / (1.0 - self.beta1**self.t), self.v / (1.0 - self.beta2**self.t)
        return self.eta * mean / (np.sqrt(square) + self.epsilon)

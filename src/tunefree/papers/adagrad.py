"""AdaGrad with diagonal matrices: Duchi, Hazan, Singer: Adaptive subgradient methods for online learning and stochastic
optimization (JMLR 2011), Figure 1."""

from __future__ import annotations

import numpy as np

from tunefree.papers.algorithm import Stream, over
from tunefree.papers.gradient_descent import GradientDescent


class AdaGrad(GradientDescent):
    """w_i <- w_i - eta g_i / sqrt(sum g_i^2).

    Examples
    --------
    >>> from tunefree.papers import play
    >>> play(AdaGrad(eta=0.5), [[1.0], [1.0]], [1, 1]).predictions.tolist()
    [0.0, 0.5]
    """

    parameters = ("eta",)

    def __init__(self, eta: float = 0.5) -> None:
        self.eta = eta

    def begin(self, stream: Stream) -> None:
        super().begin(stream)
        self.norms = np.zeros_like(self.weights)  # sqrt(sum g_i^2)

    def step(self, gradient: np.ndarray) -> np.ndarray:
        self.norms = np.hypot(self.norms, gradient)
        return self.eta * over(gradient, self.norms)

"""Averaged stochastic gradient descent: Orabona 2014, Algorithm 1, for any kernel.

The paper prints the step as + eta y l'(y y^), but descent needs the opposite sign, minus the slope.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.papers.spaces import KernelAlgorithm
from tunefree.theory.bounds import Bound, no_bound


class AveragedSGD(KernelAlgorithm):
    """f_{t+1} = f_t - eta s_t k(x_t, .). The output is the average of f_1 .. f_T, ``result.average``.

    Parameters
    ----------
    eta : float, default 0.1
        The learning rate; at most 1/4 for (3).
    **kernel
        As for :class:`tunefree.papers.spaces.KernelAlgorithm`.

    Examples
    --------
    >>> from tunefree.papers import play
    >>> result = play(AveragedSGD(eta=0.25), [[0.5], [1.0]], [1, 1], loss="square")
    >>> result.weights.tolist(), result.average.tolist()
    ([[0.625]], [[0.125]])
    >>> print(result.bound([1.0]))
    at most 4.25 (Orabona 2014, (3), summed over rounds)
    """

    parameters = ("eta", "kernel", "gamma")

    def __init__(self, eta: float = 0.1, **kernel: Any) -> None:
        super().__init__(**kernel)
        self.eta = eta

    def update(self, x: np.ndarray, slope: np.ndarray) -> None:
        self.f.add(x, -self.eta * slope)

    def bound(self, result: Any, comparator: Any) -> Bound:
        """(3) before the expectation is taken: sum_t l_t(f_t) - l_t(h) <= ||h||^2 / eta + 4 eta sum_t l_t(h).

        (3) replaces the mean of l_t(h) by 1, an upper bound for the best function.
        """
        if getattr(result.loss, "name", "") != "square" or result.stream.n_outputs > 1:
            return no_bound("(3) is of the square loss")
        if not 0.0 < self.eta <= 0.25:
            return no_bound(f"(3) assumes a rate of at most 1/4, not {self.eta:g}")
        if result.sizes.max() > 1.0 + 1e-12:
            return no_bound(f"(3) assumes ||k(x, .)|| <= 1, and the largest is {result.sizes.max():.6g}")
        value = float((comparator.norms**2).sum()) / self.eta + 4.0 * self.eta * float(comparator.losses.sum())
        return Bound(value, "Orabona 2014, (3), summed over rounds")

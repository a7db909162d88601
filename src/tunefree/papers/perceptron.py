"""The kernel perceptron: Orabona 2014, Algorithm 2.

It uses only the sign of a slope: for a loss that does not increase in y f(x), the label is the sign of minus the slope.
sign(0) is not a label, so a margin of 0 is a mistake.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tunefree.papers.pistol_risk import perceptron_mistakes
from tunefree.papers.spaces import KernelAlgorithm
from tunefree.theory.bounds import Bound, no_bound


class Perceptron(KernelAlgorithm):
    """f_{t+1} = f_t + y_t 1(sign(f_t(x_t)) != y_t) k(x_t, .).

    It has the parameters of :class:`tunefree.papers.spaces.KernelAlgorithm`.

    Examples
    --------
    >>> from tunefree.papers import play
    >>> result = play(Perceptron(), [[1.0], [2.0], [-1.0]], [1, 1, -1], loss="hinge")
    >>> result.mistakes, str(result.bound([1.0]))
    (1, 'at most 4 (Orabona 2014, (5), on the number of mistakes)')
    """

    parameters = ("kernel", "gamma")

    def predict(self, x: np.ndarray) -> np.ndarray:
        self.margin = super().predict(x)
        return self.margin

    def update(self, x: np.ndarray, slope: np.ndarray) -> None:
        label = -np.sign(slope)
        self.f.add(x, np.where(label * self.margin <= 0.0, label, 0.0))

    def bound(self, result: Any, comparator: Any) -> Bound:
        """(5), on ``result.mistakes``, with the comparator's hinge losses, and its norm times the largest row norm."""
        if result.stream.n_outputs > 1 or set(np.unique(result.y)) - {-1.0, 1.0}:
            return no_bound("(5) is of two classes")
        hinge = float(np.maximum(1.0 - result.y * comparator.predictions[:, 0], 0.0).sum())
        norm = math.sqrt(float((comparator.norms**2).sum())) * result.sizes.max()
        return Bound(perceptron_mistakes(float(norm), hinge), "Orabona 2014, (5), on the number of mistakes")

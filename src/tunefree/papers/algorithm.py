"""What an algorithm of the papers is: it predicts a row, receives the slope of the loss there, and learns from it.

The protocol of the papers: in round t a learner receives x_t and predicts y^_t; it then suffers the loss l_t(y^_t), and
receives a subgradient s_t of l_t at y^_t. Its regret against u is the sum of l_t(y^_t) - l_t(u x_t).

An algorithm is any object with :meth:`Algorithm.begin`, :meth:`~Algorithm.predict`, :meth:`~Algorithm.update` and
``weights``. It need not be a subclass of :class:`Algorithm`, which adds defaults.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree.theory.bounds import Bound, no_bound


class Stream(NamedTuple):
    """What is known before the first round."""

    n_features: int  # d
    n_outputs: int  # K: 1, or the number of classes where there are more than two
    rounds: int  # T; only algorithms that the papers give it to may use it
    lipschitz: float  # L: bound on the absolute slopes; infinite where there is none


class Algorithm:
    """An algorithm: its parameters are set when it is made, its state by :meth:`begin`.

    Examples
    --------
    A learner of one's own, here with a fixed rate:

    >>> from tunefree.papers import play
    >>> class FixedRate(Algorithm):
    ...     def begin(self, stream):
    ...         self.weights = np.zeros((stream.n_features, stream.n_outputs))
    ...     def predict(self, x):
    ...         return x @ self.weights
    ...     def update(self, x, slope):
    ...         self.weights -= 0.1 * np.outer(x, slope)
    >>> result = play(FixedRate(), [[1.0], [2.0], [-1.0]], [1, 1, -1])
    >>> result.predictions.round(3).tolist()
    [0.0, 0.1, -0.145]
    """

    weights: Any  # (d, K) of the function that made the latest prediction, or that would make the next one
    kernel: Any = None  # where a function is sum_t c_t k(x_t, .), its weights are (T, K) coefficients c_t

    def begin(self, stream: Stream) -> None:
        """Forget everything but the parameters."""
        raise NotImplementedError

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Predict a row (d,): K numbers."""
        raise NotImplementedError

    def update(self, x: np.ndarray, slope: np.ndarray) -> None:
        """Learn from the slopes (K,) of the loss at the prediction just made for the row."""
        raise NotImplementedError

    def share(self, t: int) -> float:
        """The weight of f_t, t = 1 .. T + 1, in the average; by default the average is (f_1 + .. + f_T) / T."""
        return 1.0

    averages_last = False  # whether f_{T+1} is a part of the average

    def bound(self, result: Any, comparator: Any) -> Bound:
        """The bound of the algorithm's theorem on the regret against a comparator; by default there is none."""
        return no_bound(f"no theorem of the papers bounds the regret of {type(self).__name__}")

    def __repr__(self) -> str:
        names = getattr(type(self), "parameters", ())
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def over(numerator: Any, denominator: Any) -> np.ndarray:
    """A quotient where 0/0 and c/0 are 0: nothing is known of a feature that was 0 so far.

    Examples
    --------
    >>> over(np.array([0.0, 3.0]), np.array([0.0, 2.0])).tolist()
    [0.0, 1.5]
    """
    shape = np.broadcast_shapes(np.shape(numerator), np.shape(denominator))
    return np.divide(numerator, denominator, out=np.zeros(shape), where=np.broadcast_to(denominator, shape) != 0)

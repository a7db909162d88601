"""The interface of the papers' algorithms.

In round t a learner receives x_t and predicts y^_t. It then suffers the loss l_t(y^_t), and receives a subgradient s_t
of l_t at y^_t. Its regret against u is the sum of l_t(y^_t) - l_t(u x_t).

An algorithm is any object with :meth:`Algorithm.begin`, :meth:`~Algorithm.predict`, :meth:`~Algorithm.update` and
``weights``. It need not be a subclass of :class:`Algorithm`, which provides defaults.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree.theory.bounds import Bound, no_bound


class Stream(NamedTuple):
    """Properties of the stream that are known before the first round."""

    n_features: int  # d
    n_outputs: int  # K: 1, or the number of classes if there are more than two
    rounds: int  # T; for algorithms whose paper assumes that T is known
    lipschitz: float  # L: bound on the absolute slopes; infinite without one


class Algorithm:
    """Base class of algorithms: ``__init__`` sets the parameters, :meth:`begin` the state.

    Examples
    --------
    A custom algorithm, here with a fixed learning rate:

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

    weights: Any  # (d, K) weights of the latest prediction, or after an update of the next prediction
    kernel: Any = None  # with a kernel, ``weights`` are the coefficients c_t (T, K) of sum_t c_t k(x_t, .)

    def begin(self, stream: Stream) -> None:
        """Reset the state; parameters are kept."""
        raise NotImplementedError

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Return predictions (K,) for a row (d,)."""
        raise NotImplementedError

    def update(self, x: np.ndarray, slope: np.ndarray) -> None:
        """Learn from a row, given the slopes (K,) of the loss at its prediction."""
        raise NotImplementedError

    def share(self, t: int) -> float:
        """Return the weight of f_t, t = 1 .. T + 1, in the average, which by default is (f_1 + .. + f_T) / T."""
        return 1.0

    averages_last = False  # whether the average includes f_{T+1}

    def bound(self, result: Any, comparator: Any) -> Bound:
        """Return the theorem's bound on the regret against a comparator; by default there is none."""
        return no_bound(f"no theorem of the papers bounds the regret of {type(self).__name__}")

    def __repr__(self) -> str:
        names = getattr(type(self), "parameters", ())
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def over(numerator: Any, denominator: Any) -> np.ndarray:
    """Divide, with 0 for division by 0, which occurs for features that were always 0.

    Examples
    --------
    >>> over(np.array([0.0, 3.0]), np.array([0.0, 2.0])).tolist()
    [0.0, 1.5]
    """
    shape = np.broadcast_shapes(np.shape(numerator), np.shape(denominator))
    return np.divide(numerator, denominator, out=np.zeros(shape), where=np.broadcast_to(denominator, shape) != 0)

"""What grows generations, by the name of their kind."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tunefree.generations.boosted import grow_boosted
from tunefree.generations.linear import Linear, grow_linear
from tunefree.generations.problem import Problem, binned
from tunefree.generations.randomised import grow_randomised
from tunefree.generations.trees import Trees

KINDS: dict[str, Callable[[Problem, int], Trees | Linear | None]] = {
    "boosted": grow_boosted,
    "randomised": grow_randomised,
    "linear": grow_linear,
}
LEAST_WEIGHT = 1e-30  # over the largest, so that it is above 0 in single precision


def grow(kind: str, problem: Problem, seed: int) -> Trees | Linear | None:
    """A model of a problem, of a kind in ``KINDS``; None where the kind is not for such rows.

    The same model comes of the same problem and seed, whatever the number of threads.
    """
    return KINDS[kind](problem if problem.binned else prepared(problem), seed)


def prepared(problem: Problem) -> Problem:
    """A problem as growers get it: weights with mean 1, and codes of the columns."""
    return binned(problem._replace(weights=relative(problem.weights)))


def relative(weights: np.ndarray) -> np.ndarray:
    """Weights above 0 with mean 1, of whatever scale they were.

    Examples
    --------
    >>> relative(np.array([1e300, 3e300]))
    array([0.5, 1.5])
    """
    shares = np.maximum(weights / weights.max(initial=0.0), LEAST_WEIGHT)
    return shares / shares.mean() if len(shares) else shares

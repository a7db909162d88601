"""Limited-memory BFGS: a quasi-Newton method for smooth functions of many variables.

Nocedal: Updating quasi-Newton matrices with limited storage (Mathematics of Computation 1980). The direction is that
of the two-loop recursion over the latest pairs of steps and changes of the gradient, with the inverse Hessian begun at
s'y / y'y times the identity. Steps are shortened until the function falls enough (Armijo 1966). The caller stops, and
sees every iterate, so that stopping early can be its decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

MEMORY = 10  # pairs that are kept
ENOUGH = 1e-4  # part of the fall that the gradient promises
SHORTEST = 0.1  # factors by which a step is shortened
LONGEST = 0.5
MOST_SHORTENED = 20  # times, before the search ends
CURVED = 1e-10  # least cosine of the angle between a step and a change of the gradient

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]
Pair = tuple[np.ndarray, np.ndarray, float]  # a step, the change of the gradient, and their product


def iterates(function: Function, start: np.ndarray, first_step: float) -> Iterator[np.ndarray]:
    """The points after each step, until no step makes the function smaller.

    Parameters
    ----------
    function : function of a (d,) array
        Returns its value and its gradient.
    start : (d,) array
    first_step : float
        Length of the first step, in lengths of the gradient.

    Examples
    --------
    >>> def function(x):
    ...     return float(((x - 3.0) ** 2 * [1.0, 100.0]).sum()), 2.0 * (x - 3.0) * [1.0, 100.0]
    >>> *_, last = iterates(function, np.zeros(2), first_step=0.1)
    >>> last.round(6)
    array([3., 3.])
    """
    point = start
    value, gradient = function(point)
    pairs: list[Pair] = []
    while True:
        direction = _direction(gradient, pairs, first_step)
        fall = float(gradient @ direction)
        if not fall < 0.0:
            return
        found = _shortened(function, point, value, direction, fall)
        if found is None:
            if not pairs:
                return
            pairs = []  # curvature that misleads: once more along the gradient
            continue
        next_point, value, next_gradient = found
        step, change = next_point - point, next_gradient - gradient
        product = float(step @ change)
        if product > CURVED * float(np.linalg.norm(step)) * float(np.linalg.norm(change)):
            pairs = [*pairs[1 - MEMORY :], (step, change, product)]
        point, gradient = next_point, next_gradient
        yield point


def _direction(
    gradient: np.ndarray, pairs: list[tuple[np.ndarray, np.ndarray, float]], first_step: float
) -> np.ndarray:
    """Minus the gradient times the inverse Hessian that the pairs tell of."""
    direction = -gradient
    parts = []
    for step, change, product in reversed(pairs):
        parts.append(float(step @ direction) / product)
        direction -= parts[-1] * change
    if pairs:
        _, change, product = pairs[-1]
        direction *= product / float(change @ change)
    else:
        direction *= first_step
    for (step, change, product), part in zip(pairs, reversed(parts), strict=True):
        direction += (part - float(change @ direction) / product) * step
    return direction


def _shortened(
    function: Function, point: np.ndarray, value: float, direction: np.ndarray, fall: float
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """The point after the longest of some steps that makes the function small enough, with value and gradient."""
    length = 1.0
    for _ in range(MOST_SHORTENED):
        next_point = point + length * direction
        next_value, gradient = function(next_point)
        if next_value <= value + ENOUGH * length * fall:
            return next_point, next_value, gradient
        beyond = next_value - value - length * fall  # of a parabola its least point
        best = -0.5 * length * fall / beyond if np.isfinite(beyond) else 0.0
        length *= min(max(best, SHORTEST), LONGEST)
    return None

"""Growth of the slopes of a loss: the assumptions of Lin, Rosasco, Zhou.

Iterative regularization for learning with convex loss functions (JMLR 17, 2016), Assumption 1. With all targets in
[-b, b] (b = 1 for labels), (4) requires q and c_q with

    |V'_-(y, a)| <= c_q (1 + |a|^q),                                                                            (4)

and |V|_0 = sup_y V(y, 0) must be finite. For q = 0, c_0 is the Lipschitz constant: (4) would allow half of it, but (21)
of the paper bounds slopes by c_0 itself. Custom losses can be added by ``growth.register`` and
``variance_exponent.register``.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any, NamedTuple

from tunefree.core.numbers import finite, raised
from tunefree.losses.classification import SquaredHinge
from tunefree.losses.regression import Power, Square


class Growth(NamedTuple):
    """q and c_q of (4)."""

    power: float  # q; infinite if no power bounds the slopes
    constant: float  # c_q; infinite if q is infinite


@singledispatch
def growth(loss: Any, bound: float) -> Growth:
    """Return q and c_q, for targets in [-bound, bound]; 0 and the Lipschitz constant if there is one.

    Examples
    --------
    >>> from tunefree.losses import Hinge
    >>> growth(Hinge(), 1.0), growth(Square(), 3.0)
    (Growth(power=0.0, constant=1.0), Growth(power=1.0, constant=6.0))
    """
    return Growth(0.0, loss.lipschitz) if loss.lipschitz < math.inf else Growth(math.inf, math.inf)


@growth.register(Square)
@growth.register(SquaredHinge)
def _of_squares(loss: Any, bound: float) -> Growth:
    return Growth(1.0, 2.0 * max(1.0, bound))


@growth.register
def _of_power(loss: Power, bound: float) -> Growth:
    q = loss.power - 1.0
    # |a - y|^q <= 2^(q-1) (|a|^q + |y|^q) by convexity for q >= 1, and without the factor for q <= 1.
    largest = max(1.0, raised(bound, q)) if q > 0.0 else 1.0
    return Growth(q, finite(loss.power * 2.0 ** max(q - 1.0, 0.0) * largest))


def at_zero(loss: Any, bound: float = 1.0) -> float:
    """Return |V|_0, the largest loss of the prediction 0, for targets in [-bound, bound].

    Examples
    --------
    >>> at_zero(Square(), bound=3.0)
    9.0
    """
    return float(max(loss.value(bound, 0.0), loss.value(-bound, 0.0)))


@singledispatch
def variance_exponent(loss: Any) -> float:
    """Return tau of (5), if implied by the loss alone: 1 for the square loss, else 0."""
    return 0.0


@variance_exponent.register
def _of_square(loss: Square) -> float:
    return 1.0


@variance_exponent.register
def _of_a_power(loss: Power) -> float:
    return 1.0 if loss.power == 2.0 and loss.epsilon == 0.0 else 0.0

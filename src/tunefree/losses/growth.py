"""How losses grow: the constants that the theory of early stopping asks for, and losses in other units.

Lin, Rosasco, Zhou: Iterative regularization for learning with convex loss functions (JMLR 17, 2016), Assumption 1.
With all targets in [-b, b] (b = 1 for labels), (4) asks for a q and a c_q with

    |V'_-(y, a)| <= c_q (1 + |a|^q),                                                                            (4)

and |V|_0 = sup_y V(y, 0) has to be finite. Where q = 0, c_0 is the Lipschitz constant: (4) would allow half of it, but
(21) of the paper bounds slopes by c_0 itself.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tunefree import losses
from tunefree.core.generic import generic
from tunefree.core.numbers import finite, raised
from tunefree.losses import value


class Growth(NamedTuple):
    """q and c_q of (4); both infinite where no power bounds the slopes."""

    power: float
    constant: float


@generic
def growth(loss: Any, bound: float) -> Growth:
    """q and c_q of a loss, for targets in [-bound, bound]."""
    raise TypeError(f"{type(loss).__name__} is not a loss")


def at_zero(loss: Any, bound: float = 1.0) -> float:
    """|V|_0: the largest loss of the prediction 0, for targets in [-bound, bound].

    Examples
    --------
    >>> from tunefree.losses import Hinge, Square
    >>> at_zero(Hinge()), at_zero(Square(), bound=3.0)
    (1.0, 9.0)
    """
    return max(value(loss, bound, 0.0), value(loss, -bound, 0.0))


for lipschitz in (
    losses.Logistic,
    losses.Hinge,
    losses.SmoothedHinge,
    losses.Absolute,
    losses.Huber,
    losses.Quantile,
):

    @growth.register(lipschitz)
    def growth_of_lipschitz_losses(loss, bound):
        return Growth(0.0, loss.lipschitz)


@growth.register(losses.SquaredHinge)
def growth_squared_hinge(loss, bound):
    return Growth(1.0, 2.0 * max(1.0, bound))


@growth.register(losses.Exponential)
def growth_exponential(loss, bound):
    return Growth(math.inf, math.inf)


@growth.register(losses.Square)
def growth_square(loss, bound):
    return Growth(1.0, 2.0 * max(1.0, bound))


for power_like in (losses.Power, losses.EpsilonInsensitive):

    @growth.register(power_like)
    def growth_power(loss, bound):
        q = loss.power - 1.0
        # |a - y|^q <= 2^(q-1) (|a|^q + |y|^q) by convexity for q >= 1, and without the factor for q <= 1.
        largest = max(1.0, raised(bound, q)) if q > 0.0 else 1.0
        return Growth(q, finite(loss.power * 2.0 ** max(q - 1.0, 0.0) * largest))


@generic
def rescaled(loss: Any, unit: float) -> Any:
    """The loss V' and the factor c with V(y, p) = c V'(y / unit, p / unit)."""
    raise TypeError(f"{type(loss).__name__} is not a loss of numbers")


for by_length in (losses.Absolute, losses.Quantile):

    @rescaled.register(by_length)
    def rescaled_by_length(loss, unit):
        return loss, unit


@rescaled.register(losses.Square)
def rescaled_square(loss, unit):
    return loss, raised(unit, 2.0)


@rescaled.register(losses.Power)
def rescaled_power(loss, unit):
    return loss, raised(unit, loss.power)


@rescaled.register(losses.EpsilonInsensitive)
def rescaled_epsilon_insensitive(loss, unit):
    factor = raised(unit, loss.power)
    return loss._replace(epsilon=finite(loss.epsilon / factor) if factor > 0.0 else finite(math.inf)), factor


@rescaled.register(losses.Huber)
def rescaled_huber(loss, unit):
    delta = finite(loss.delta / unit)
    return loss._replace(delta=delta, lipschitz=delta), raised(unit, 2.0)

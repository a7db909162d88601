"""What a loss is: functions of a target and a prediction, and the constants that theory asks for.

A loss V is a NamedTuple. Two of its fields are constants: ``lipschitz`` bounds the absolute slope, ``smoothness`` is
the Lipschitz constant of the slope; each is infinite if there is no such number. The other fields are the loss's
parameters. Losses are convex and at least 0. Classification losses take targets -1 and +1.

The functions here choose their body by the class of the loss. The bodies of ``value``, ``slope``, ``curvature`` and
``left_slope`` are cases in compiled loops (:mod:`tunefree.losses.switch`); they take one target and one prediction, and
are finite for all finite arguments. Where the true number cannot be represented (an exponential, the square of 1e200),
the largest finite one stands in.

Growth: Lin, Rosasco, Zhou: Iterative regularization for learning with convex loss functions (JMLR 17, 2016),
Assumption 1. With all targets in [-b, b] (b = 1 for labels), (4) asks for a q and a c_q with

    |V'_-(y, a)| <= c_q (1 + |a|^q),                                                                            (4)

and |V|_0 = sup_y V(y, 0) has to be finite. Where q = 0, c_0 is the Lipschitz constant: (4) would allow half of it, but
(21) of the paper bounds slopes by c_0 itself.

Links: Zhang: Statistical behavior and consistency of classification methods based on convex risk minimization (2004).
With V(y, h) = phi(y h) and mu the probability of the label +1,

    h*(mu) = argmin_h mu phi(h) + (1 - mu) phi(-h).
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any, NamedTuple


@singledispatch
def value(loss: Any, y: float, prediction: float) -> float:
    """The loss of a prediction.

    Examples
    --------
    >>> from tunefree.losses import Hinge
    >>> value(Hinge(), 1.0, 0.25)
    0.75
    """
    raise TypeError(f"{type(loss).__name__} is not a loss: no value is registered for it")


@singledispatch
def slope(loss: Any, y: float, prediction: float) -> float:
    """A subgradient of the loss in the prediction.

    Examples
    --------
    >>> from tunefree.losses import Square
    >>> slope(Square(), 1.0, 0.25)
    -1.5
    """
    raise TypeError(f"{type(loss).__name__} is not a loss: no slope is registered for it")


@singledispatch
def curvature(loss: Any, y: float, prediction: float) -> float:
    """The second derivative of the loss in the prediction; 0 where there is none, as at kinks.

    Examples
    --------
    >>> from tunefree.losses import Logistic
    >>> curvature(Logistic(), 1.0, 0.0)
    0.25
    """
    raise TypeError(f"{type(loss).__name__} is not a loss: no curvature is registered for it")


@singledispatch
def left_slope(loss: Any, y: float, prediction: float) -> float:
    """The left derivative of the loss in the prediction; the slope, unless the loss has a body of its own.

    Examples
    --------
    >>> from tunefree.losses import Absolute
    >>> slope(Absolute(), 1.0, 1.0), left_slope(Absolute(), 1.0, 1.0)
    (0.0, -1.0)
    """
    return slope(loss, y, prediction)


class Growth(NamedTuple):
    """q and c_q of (4)."""

    power: float  # q; infinite if no power bounds the slopes
    constant: float  # c_q; infinite if q is


@singledispatch
def growth(loss: Any, bound: float) -> Growth:
    """q and c_q of a loss, for targets in [-bound, bound]; 0 and the Lipschitz constant where there is one.

    Examples
    --------
    >>> from tunefree.losses import Hinge, Square
    >>> growth(Hinge(), 1.0), growth(Square(), 3.0)
    (Growth(power=0.0, constant=1.0), Growth(power=1.0, constant=6.0))
    """
    if not hasattr(loss, "lipschitz"):
        raise TypeError(f"{type(loss).__name__} is not a loss")
    return Growth(0.0, loss.lipschitz) if loss.lipschitz < math.inf else Growth(math.inf, math.inf)


def at_zero(loss: Any, bound: float = 1.0) -> float:
    """|V|_0: the largest loss of the prediction 0, for targets in [-bound, bound].

    Examples
    --------
    >>> from tunefree.losses import Hinge, Square
    >>> at_zero(Hinge()), at_zero(Square(), bound=3.0)
    (1.0, 9.0)
    """
    return max(value(loss, bound, 0.0), value(loss, -bound, 0.0))


@singledispatch
def variance_exponent(loss: Any) -> float:
    """tau of (5) in Lin, Rosasco, Zhou 2016, as far as the loss alone implies it: 0, unless the loss says more.

    Examples
    --------
    >>> from tunefree.losses import Hinge, Square
    >>> variance_exponent(Hinge()), variance_exponent(Square())
    (0.0, 1.0)
    """
    return 0.0


@singledispatch
def rescaled(loss: Any, unit: float) -> tuple[Any, float]:
    """The loss V' and the factor c with V(y, p) = c V'(y / unit, p / unit).

    Examples
    --------
    >>> from tunefree.losses import huber
    >>> rescaled(huber(3.0), 2.0)
    (Huber(delta=1.5, lipschitz=1.5, smoothness=1.0), 4.0)
    """
    raise TypeError(f"{type(loss).__name__} is not a regression loss")


@singledispatch
def response(loss: Any, predictions: Any) -> Any:
    """The targets that predictions of numbers (an array) stand for: themselves, unless the loss has another link.

    Examples
    --------
    >>> from tunefree.losses import Square, poisson
    >>> response(Square(), 2.0), response(poisson(), 0.0)
    (2.0, np.float64(1.0))
    """
    return predictions


@singledispatch
def prediction_of(loss: Any, targets: Any) -> Any:
    """The predictions that stand for targets (an array), as :func:`response` undoes it.

    Examples
    --------
    >>> from tunefree.losses import Square, poisson
    >>> prediction_of(Square(), 2.0), prediction_of(poisson(), 1.0)
    (2.0, np.float64(0.0))
    """
    return targets


@singledispatch
def has_log_link(loss: Any) -> bool:
    """Whether predictions of numbers are logarithms of means; such a loss has the power of the variance as ``power``.

    Examples
    --------
    >>> from tunefree.losses import Square, poisson
    >>> has_log_link(Square()), has_log_link(poisson())
    (False, True)
    """
    return False


@singledispatch
def link(loss: Any, probability: float) -> float:
    """h*(mu), for a probability between 0 and 1; infinite at 0 and 1 for some losses.

    Examples
    --------
    >>> from tunefree.losses import Square
    >>> link(Square(), 0.75)
    0.5
    """
    raise TypeError(f"the {type(loss).__name__} loss has no link function")


@singledispatch
def inverse_link(loss: Any, predictions: Any) -> Any:
    """The probabilities of predictions (an array); 0 or 1 beyond the range of h*.

    Examples
    --------
    >>> from tunefree.losses import Square
    >>> inverse_link(Square(), [-2.0, 0.0, 0.5])
    array([0.  , 0.5 , 0.75])
    """
    raise TypeError(f"the link function of the {type(loss).__name__} loss has no inverse")


def has_inverse_link(loss: Any) -> bool:
    """Whether probabilities can be computed from predictions.

    Examples
    --------
    >>> from tunefree.losses import Hinge, Logistic
    >>> has_inverse_link(Logistic()), has_inverse_link(Hinge())
    (True, False)
    """
    return inverse_link.dispatch(type(loss)) is not inverse_link.dispatch(object)

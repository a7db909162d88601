"""Half the unit deviances of counts, amounts and rates, with a logarithmic link.

Jorgensen: Exponential dispersion models (JRSS B 49, 1987). With a power p from 1 to 2 of the variance function V(mu) =
mu^p and the mean mu = exp(eta) of a prediction eta, half the unit deviance is

    int_mu^y (y - t) t^-p dt,

which is convex in eta and 0 where mu = y. p = 1 is the Poisson and p = 2 the gamma distribution; in between are
Tweedie's compound Poisson distributions, for amounts that are often 0. With q = p - 1, r = 2 - p and z = eta - ln y it
is y^r (g(r, z) - g(-q, z)), where g(a, z) = (e^az - 1) / a and g(0, z) = z.

Its derivatives in eta are mu^r - y mu^-q, and r mu^r + q y mu^-q. For a mean e mu, where e is the exposure of a row, it
is e^r times the deviance of the rate y / e with the mean mu. So a known exposure only changes targets and weights.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.numbers import LARGEST_EXPONENT, MOST, finite
from tunefree.losses.contract import loss_class

LEAST = 2.0**-1022  # replacement of targets <= 0 where the deviance of 0 is infinite


@loss_class
class Tweedie(NamedTuple):
    """Half the unit deviance of a power of the variance; made by :func:`poisson`, :func:`gamma` and :func:`tweedie`."""

    power: float  # p, from 1 to 2
    lipschitz: float = math.inf
    smoothness: float = math.inf

    @property
    def has_log_link(loss) -> bool:
        return True

    def value(loss, y, prediction):
        q, r, target = loss.power - 1.0, 2.0 - loss.power, target_in_domain(loss, y)
        if target == 0.0:
            return finite(power_of_e(r * prediction) / r)
        z = finite(prediction - math.log(target))
        if abs(z) <= 1.0:
            return finite(max(growth_of(r, z) - growth_of(-q, z), 0.0) * target**r)
        # For larger |z| there is no cancellation, and each term is a power of the mean or of the target.
        rise = finite(power_of_e(r * prediction) - target**r) / r if r > 0.0 else z
        fall = (times_power_of_e(target, -q * prediction) - target**r) / q if q > 0.0 else -finite(target * z)
        return finite(max(finite(rise) + finite(fall), 0.0))

    def slope(loss, y, prediction):
        q, r, target = loss.power - 1.0, 2.0 - loss.power, target_in_domain(loss, y)
        return power_of_e(r * prediction) - times_power_of_e(target, -q * prediction)

    def curvature(loss, y, prediction):
        q, r, target = loss.power - 1.0, 2.0 - loss.power, target_in_domain(loss, y)
        return finite(r * power_of_e(r * prediction) + q * times_power_of_e(target, -q * prediction))

    def response(loss, predictions):
        return np.exp(np.clip(predictions, -LARGEST_EXPONENT, LARGEST_EXPONENT))

    def prediction_of(loss, targets):
        return np.where(targets > 0.0, np.log(np.maximum(targets, LEAST)), 0.0)[()]

    def rescaled(loss, unit):
        raise ModelError(
            "losses with a logarithmic link (poisson, gamma, tweedie) are learned row by row; use TuneFreeRegressor or "
            "OnlineRegressor, or the square loss"
        )


def poisson() -> Tweedie:
    """The loss for counts whose variance equals their mean.

    Examples
    --------
    >>> poisson().value(1.0, 0.0), round(poisson().slope(3.0, 0.0), 9), poisson().curvature(3.0, 0.0)
    (0.0, -2.0, 1.0)
    """
    return Tweedie(1.0)


def gamma() -> Tweedie:
    """The loss for positive amounts whose standard deviation is proportional to their mean.

    Examples
    --------
    >>> round(gamma().value(2.0, 0.0), 6)
    0.306853
    """
    return Tweedie(2.0)


def tweedie(power: float = 1.5) -> Tweedie:
    """The loss for amounts that are often 0.

    Parameters
    ----------
    power : float, default 1.5
        Between 1 and 2.

    Examples
    --------
    >>> tweedie().value(0.0, 0.0)
    2.0
    """
    if not 1.0 < power < 2.0:
        raise ValueError(f"the power must lie between 1 (which is poisson) and 2 (which is gamma), not {power}")
    return Tweedie(power)


def power_of_e(exponent):
    """exp, or the largest finite number."""
    return math.exp(exponent) if exponent < LARGEST_EXPONENT else MOST


def growth_of(a, z):
    """g(a, z)."""
    return math.expm1(a * z) / a if a != 0.0 else z


def target_in_domain(loss, y):
    """The target, clipped to the support of the distribution."""
    return max(y, LEAST if loss.power == 2.0 else 0.0)


def times_power_of_e(factor, exponent):
    """factor exp(exponent) for a factor of at least 0, or the largest finite number."""
    if factor <= 0.0:
        return 0.0
    return finite(power_of_e(exponent) * factor) if exponent < 0.0 else power_of_e(exponent + math.log(factor))

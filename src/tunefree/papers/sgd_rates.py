"""Exponential convergence of regularised SGD to the Bayes rule under a strong low-noise condition.

Nitanda, Suzuki: Stochastic gradient descent with exponential convergence rates of expected classification errors
(AISTATS 2019), Theorems 1 and 2, Corollary 1. Steps are eta_t = 2 / (lambda (gamma + t)); the average has the weights
2 (gamma + t - 1) / ((2 gamma + T) (T + 1)). The paper's symbols:

    lambda        regularization, small enough for the theorems to hold
    gamma         offset of the time index
    M             bound on the absolute slope of the loss
    R             bound on sqrt(k(x, x))
    L             smoothness of the expected loss as a functional: the smoothness of the loss, times R^2
    sigma^2       bound on the variance of the stochastic gradient
    m             m(delta), see tunefree.papers.links.low_noise_margin
"""

from __future__ import annotations

import math
from typing import NamedTuple


def least_offset(regularization: float, smoothness: float, averaged: bool = False) -> float:
    """Return the least gamma for the theorems: eta_1 <= min(1 / (L + lambda), 1 / (2 lambda)), with 1 / L if averaged.

    Parameters
    ----------
    regularization, smoothness : float
        lambda and L.
    averaged : bool, default False
        Whether the average of the iterates is used (Theorem 2).

    Examples
    --------
    >>> round(least_offset(0.01, smoothness=0.25), 9), round(least_offset(0.01, smoothness=0.25, averaged=True), 9)
    (51.0, 49.0)
    """
    _positive(regularization=regularization, smoothness=smoothness)
    steep = smoothness if averaged else smoothness + regularization
    return max(2.0 * steep / regularization, 4.0) - 1.0


def variance_constant(
    regularization: float, offset: float, smoothness: float, variance: float, initial_gap: float
) -> float:
    """Return nu of Theorem 1, max(2 (L + lambda) sigma^2 / lambda^2, (1 + gamma) (L_lambda(g_1) - L_lambda(g_lambda))).

    Parameters
    ----------
    regularization, offset, smoothness, variance : float
        lambda, gamma, L and sigma^2.
    initial_gap : float
        L_lambda(g_1) - L_lambda(g_lambda).

    Examples
    --------
    >>> [variance_constant(0.5, offset=3.0, smoothness=0.5, variance=1.0, initial_gap=gap) for gap in (0.5, 4.0)]
    [8.0, 16.0]
    """
    _positive(regularization=regularization, smoothness=smoothness)
    return max(2.0 * (smoothness + regularization) * variance / regularization**2, (1.0 + offset) * initial_gap)


class ExponentialRate(NamedTuple):
    """The rate of Theorem 1, for the last iterate, or of Theorem 2, for the average.

    Corollary 1 is Theorem 2 for the logistic loss and a Gaussian kernel: M = R = 1, and the margin
    ``low_noise_margin(Logistic(), delta)`` of :mod:`tunefree.papers.links`.

    Parameters
    ----------
    regularization, offset, margin : float
        lambda, gamma and m(delta).
    kernel_bound, slope_bound : float, default 1
        R and M.
    averaged : bool, default False
        Whether the average of the iterates is used (Theorem 2).

    Examples
    --------
    >>> rate = ExponentialRate(0.5, 3.0, 1.0)
    >>> round(rate.bound(100_000), 6), rate.threshold(nu=8.0)
    (0.008806, 509)
    >>> rate.bound(rate.rounds(0.01)) <= 0.01 < rate.bound(rate.rounds(0.01) - 1)
    True
    >>> rate._replace(averaged=True).threshold(initial_distance=1.0)
    4602

    For the logistic loss, lambda = 0.01 and a variance of 1, the theorem needs millions of rounds:

    >>> nu = variance_constant(0.01, 51.0, smoothness=0.25, variance=1.0, initial_gap=0.69)
    >>> ExponentialRate(0.01, 51.0, 1.0).threshold(nu=nu)
    16639949
    """

    regularization: float
    offset: float
    margin: float
    kernel_bound: float = 1.0
    slope_bound: float = 1.0
    averaged: bool = False

    def threshold(self, *, nu: float | None = None, initial_distance: float | None = None) -> int:
        """Return the least number of rounds T for which the bound holds.

        Parameters
        ----------
        nu : float
            :func:`variance_constant`; Theorem 1 needs it.
        initial_distance : float
            ||g_1 - g_lambda||; Theorem 2 needs it.

        Raises
        ------
        ValueError
            If the number that the theorem needs is missing.
        """
        self._check()
        offset, reach = self.offset, 32.0 * self.kernel_bound**2 / self.margin**2
        if not self.averaged:
            if nu is None:
                raise ValueError("Theorem 1 needs nu, see variance_constant")
            return max(math.ceil(reach * nu / self.regularization - offset), 1)
        if initial_distance is None:
            raise ValueError("Theorem 2 needs initial_distance, the norm of the minimiser if g_1 is 0")
        noise = (self.slope_bound * self.kernel_bound / self.regularization) ** 2
        by_noise = reach * 36.0 * noise - 2.0 * offset
        # (2 gamma + T) (T + 1) >= reach gamma (gamma - 1) ||g_1 - g_lambda||^2, solved for T.
        needed = reach * max(offset * (offset - 1.0), 0.0) * initial_distance**2
        half = 0.5 * (2.0 * offset + 1.0)
        by_start = -half + math.sqrt(max(half * half - 2.0 * offset + needed, 0.0))
        return max(math.ceil(max(by_noise, by_start)), 1)

    def bound(self, rounds: float) -> float:
        """Return the bound (4), or (5) for the average, on the expected excess classification error after T rounds."""
        return 2.0 * math.exp(-self._per_round() * ((2.0 if self.averaged else 1.0) * self.offset + rounds))

    def rounds(self, error: float) -> int:
        """Return the least T for which the bound is at most an error, as in (6), ignoring the threshold."""
        _positive(error=error)
        before = (2.0 if self.averaged else 1.0) * self.offset
        return max(math.ceil(math.log(2.0 / error) / self._per_round() - before), 1)

    def _per_round(self) -> float:
        self._check()
        slope_scale = self.slope_bound * self.kernel_bound * self.kernel_bound
        return (self.margin * self.regularization / slope_scale) ** 2 / ((2.0**10 if self.averaged else 2.0**9) * 9.0)

    def _check(self) -> None:
        numbers = self._asdict()
        _positive(**{name: numbers[name] for name in ("regularization", "margin", "kernel_bound", "slope_bound")})


def sgd_penalty(margin: float, norm: float, room: float, kernel_bound: float = 1.0) -> tuple[float, float]:
    """Proposition 1 for finite dimensions: return a lambda that is small enough for the theorems.

    Parameters
    ----------
    margin : float
        m(delta).
    norm : float
        Norm of the Bayes rule g_* of the expected loss.
    room : float
        Lower bound on the excess expected loss, over g_*, of functions at distance m(delta) / (2 R) or more from g_*.
        With strong convexity of modulus mu around g_*, mu (m(delta) / (2 R))^2 / 2 is one.
    kernel_bound : float, default 1
        R.

    Returns
    -------
    penalty, distance : float
        lambda = 2 room / ||g_*||^2, and m(delta) / (2 R), a bound on ||g_lambda - g_*||.

    Examples
    --------
    >>> sgd_penalty(margin=1.0, norm=2.0, room=0.01)
    (0.005, 0.5)
    """
    _positive(margin=margin, norm=norm, room=room, kernel_bound=kernel_bound)
    return 2.0 * room / norm**2, margin / (2.0 * kernel_bound)


def _positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if not (number > 0 and math.isfinite(number)):
            raise ValueError(f"{name} must be a number above 0, not {number}")

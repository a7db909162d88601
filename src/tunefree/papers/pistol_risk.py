"""Further bounds of Orabona 2014 on PiSTOL and its peers, with explicit constants for finite T.

Simultaneous model selection and optimization through parameter-free stochastic learning (NIPS 2014): (3), (4), (5),
Lemma 1, Corollaries 1 and 2, Theorems 2 and 3. The paper prints orders; the constants are taken from the proofs. All
assume k(x, x) <= 1. Labels are -1 and +1, and losses are functions of y f(x).

Theorem 2 differs from the paper in two ways. Its proof exchanges a minimum over h and a maximum, and minimises over
gamma in two ranges as if each were all positive numbers. Neither is valid in general. Here the sum in the proof is
minimised directly, which needs neither step and has the rates of the theorem. The bound on ||h|| in the logarithm needs
an argument of at least e, which is enforced.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tunefree.papers.pistol_bound import pistol_overhead


def pistol_bound(norm: float, slopes: float, rounds: int, a: float, b: float = 1.0) -> float:
    """Return the regret bound of PiSTOL (Orabona 2014, Theorem 1) for L = 1 and ||x_t|| <= 1, with phi as in its proof.

    Parameters
    ----------
    norm : float
        Norm of the comparator.
    slopes : float
        Sum of the absolute slopes, over the rounds 1 to T - 1 in the printed theorem, or over all T rounds in its
        proof, which bounds the regret by alpha_T.
    rounds : int
        T.
    a : float
        Above 2.2495; at 2.25 phi is exp(1652). :func:`pistol_parameter` returns the value with the least bound.
    b : float, default 1

    Examples
    --------
    >>> round(pistol_bound(1.0, 50.0, 100, a=4.0), 1)
    40.2
    """
    spread = math.sqrt(2.0 * a * (1.0 + slopes) * math.log1p(norm * math.sqrt(a * rounds) / b))
    return norm * spread + float(pistol_overhead(rounds, a, b))


def pistol_parameter(norm: float = 1.0, rounds: int = 10_000, b: float = 1.0) -> float:
    """Return the a that minimises the bound of Theorem 1 of Orabona 2014, for L = 1, ||x_t|| <= 1 and slopes of 1.

    Parameters
    ----------
    norm : float, default 1
        Norm of the comparator.
    rounds : int, default 10000
        T.
    b : float, default 1

    Examples
    --------
    >>> round(pistol_parameter(), 2), round(pistol_parameter(rounds=100), 2)
    (3.09, 3.69)
    """
    low, high = math.log(2.25), math.log(1e6)
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    for _ in range(100):  # golden-section search: the bound has one minimum
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        bounds = [pistol_bound(norm, rounds - 1.0, rounds, math.exp(log_a), b) for log_a in (left, right)]
        low, high = (low, right) if bounds[0] <= bounds[1] else (left, high)
    return math.exp((low + high) / 2.0)


class Constants(NamedTuple):
    """Constants of the loss and of PiSTOL in the theorems."""

    lipschitz: float  # L
    smoothness: float  # H; may be infinite if not needed
    at_zero: float  # loss of the prediction 0
    a: float  # at least 2.25 L
    b: float


def constants_of(loss: Any, a: float, b: float = 1.0) -> Constants:
    """Return the constants for a classification loss.

    Parameters
    ----------
    loss : loss
        A loss with a Lipschitz constant.
    a : float
        In units of the Lipschitz constant, such as :func:`pistol_parameter`.
    b : float, default 1

    Examples
    --------
    >>> from tunefree.losses import SmoothedHinge
    >>> constants_of(SmoothedHinge(), a=4.0)
    Constants(lipschitz=2.0, smoothness=2.0, at_zero=1.0, a=8.0, b=1.0)
    """
    if not loss.lipschitz < math.inf:
        raise ValueError(f"the {type(loss).__name__} loss has no Lipschitz constant, which PiSTOL's theorems ask for")
    return Constants(loss.lipschitz, loss.smoothness, loss.value(1.0, 0.0), a * loss.lipschitz, b)


def averaged_sgd_excess(norm: float, rounds: float, eta: float | None = None) -> float:
    """(3) and (4): bound on the expected risk of averaged SGD for the square loss, minus the risk of a function h.

    Parameters
    ----------
    norm : float
        ||h||.
    rounds : float
        T.
    eta : float, optional
        Learning rate, at most 1/4; the bound is ||h||^2 / (eta T) + 4 eta. By default the minimiser of the bound, which
        gives (4), 4 ||h|| / sqrt(T), if the best rate ||h|| / (2 sqrt(T)) is at most 1/4.

    Examples
    --------
    >>> averaged_sgd_excess(1.0, 100, eta=0.25), averaged_sgd_excess(1.0, 100)
    (1.04, 0.4)
    """
    if eta is None:
        eta = min(0.5 * norm / math.sqrt(rounds), 0.25)
        if eta == 0.0:
            return 0.0
    if not 0.0 < eta <= 0.25:
        raise ValueError(f"(3) holds for rates above 0 and at most 1/4, not {eta}")
    return norm * norm / (eta * rounds) + 4.0 * eta


def perceptron_mistakes(norm: float, hinge_loss: float) -> float:
    """(5): bound on the number of mistakes of the Perceptron.

    Parameters
    ----------
    norm : float
        ||h||, times the largest norm of a row.
    hinge_loss : float
        Sum of the hinge losses of h on the rows.

    Examples
    --------
    >>> perceptron_mistakes(2.0, 9.0)
    19.0
    """
    return hinge_loss + norm * norm + norm * math.sqrt(hinge_loss)


def excess_error_bound(excess_risk: float, loss: Any, alpha: float = 0.0, noise: float = 1.0) -> float:
    """Lemma 1: bound on the excess classification error from the excess risk.

    Parameters
    ----------
    excess_risk : float
        Expected risk minus the least risk of all functions.
    loss : loss
        Twice differentiable at 0. The paper also assumes a smallest zero at 1, which is not needed. If psi of Bartlett,
        Jordan, McAuliffe 2006 is at least theta^2 / 2, as for the logistic loss, 8 suffices instead of 32 / C.
    alpha : float, default 0
        q / (q + 1), with Tsybakov's noise exponent q; 0 is no assumption.
    noise : float, default 1
        c_alpha of (8); 1 holds for alpha = 0.

    Returns
    -------
    bound : float
        (32 c_alpha / C times the excess risk)^(1 / (2 - alpha)), C = min(-l'(0), l'(0)^2 / l''(0)).

    Examples
    --------
    >>> from tunefree.losses import Logistic
    >>> round(excess_error_bound(0.001, Logistic()), 6)
    0.252982
    """
    steep, bend = -loss.slope(1.0, 0.0), loss.curvature(1.0, 0.0)
    if not (steep > 0.0 and bend > 0.0):
        raise ValueError(f"Lemma 1 asks for a loss that falls and bends at 0, which {type(loss).__name__} does not")
    constant = min(steep, steep * steep / bend)
    return (32.0 * noise / constant * max(excess_risk, 0.0)) ** (1.0 / (2.0 - alpha))


def smooth_regret_bound(norm: float, loss: float, rounds: float, constants: Constants) -> float:
    """Corollary 1: regret bound of PiSTOL for a smooth loss, against a function h.

    Corollary 2 is this bound divided by T, with T times the risk of h as its total loss. It bounds the expected risk of
    PiSTOL's average minus the risk of h.

    Parameters
    ----------
    norm : float
        ||h||.
    loss : float
        Total loss of h.
    rounds : float
        T.
    constants : Constants

    Examples
    --------
    >>> from tunefree.losses import SmoothedHinge
    >>> constants = constants_of(SmoothedHinge(), a=4.0)
    >>> [round(smooth_regret_bound(1.0, loss, 1000, constants), 3) for loss in (0.0, 500.0)]
    [465.682, 477.597]
    """
    overhead, least = _overhead(rounds, constants), constants.lipschitz**2 / (4.0 * constants.smoothness)
    inside = norm * math.sqrt(constants.a * constants.lipschitz * rounds) / constants.b + 1.0
    reach = norm * rounds**0.25 * _spread(constants, inside)
    return overhead + reach * max((2.0 * reach) ** (1.0 / 3.0), (2.0 * (loss + overhead + least)) ** 0.25)


def excess_risk_bound(
    rounds: float, optimal_risk: float, beta: float, source_norm: float, constants: Constants
) -> float:
    """Theorem 2: bound on the expected excess risk of PiSTOL's average, for a smooth loss.

    Parameters
    ----------
    rounds : float
        T.
    optimal_risk : float
        E, the least risk over all functions.
    beta : float
        Above 0 and at most 1/2: the minimiser of the risk is L_K^beta(g).
    source_norm : float
        Norm of g in the space of square integrable functions.
    constants : Constants

    Returns
    -------
    bound : float
        It has the rate of :func:`excess_risk_rate`, up to logarithms.

    Examples
    --------
    >>> from tunefree.losses import SmoothedHinge
    >>> constants = constants_of(SmoothedHinge(), a=4.0)
    >>> round(excess_risk_bound(1e4, 0.0, 0.5, 1.0, constants), 6)
    0.148748
    """
    if not 0.0 < beta <= 0.5:
        raise ValueError(f"beta must be above 0 and at most 1/2, not {beta}")
    overhead, half = _overhead(rounds, constants), constants.smoothness / 2.0
    rest = overhead + constants.lipschitz**2 / (4.0 * constants.smoothness)  # B
    spread = _spread(constants, _inside(rounds, constants))  # C
    gammas = np.geomspace(1e-18, 1e18, 1441)
    # E + max(X, Y) <= (1 + gamma/2) excess + kappa ||h||^2 + noise / kappa^2 + gamma / 2 (E + B / T), and the least of
    # the first two over h is at most near kappa^(2 beta) by Lemmas 10 and 12.
    near = (half * (1.0 + gammas / 2.0)) ** (1.0 - 2.0 * beta) * source_norm**2
    noise = np.maximum(8.0 / 27.0, 1.0 / (16.0 * gammas)) * spread**4 / rounds**2
    kappa = (noise / (beta * near)) ** (1.0 / (2.0 * beta + 2.0)) if source_norm > 0.0 else np.ones_like(gammas)
    sums = near * kappa ** (2.0 * beta) + (noise / kappa**2 if source_norm > 0.0 else 0.0)
    return overhead / rounds + float((sums + gammas / 2.0 * (optimal_risk + rest / rounds)).min())


def excess_risk_rate(rounds: ArrayLike, optimal_risk: float, beta: float) -> np.ndarray:
    """Theorem 2 without constants and logarithms.

    Parameters
    ----------
    rounds : float or array
        T.
    optimal_risk : float
        E.
    beta : float
        Above 0 and at most 1/2. The term that the paper adds above 1/3 is never the largest: all three are equal at one
        risk, and it grows with the risk, but no faster than the first.

    Examples
    --------
    >>> excess_risk_rate(1e6, 0.01, 0.5).round(5).tolist(), excess_risk_rate(1e6, 0.01, 0.25).round(5).tolist()
    (0.00032, 0.00464)
    """
    T = np.asarray(rounds, np.float64)
    risk = optimal_risk + 1.0 / T
    first = risk ** (beta / (2.0 * beta + 1.0)) * T ** (-2.0 * beta / (2.0 * beta + 1.0))
    return np.maximum(first, T ** (-2.0 * beta / (beta + 1.0)))


def lipschitz_excess_risk_bound(rounds: float, beta: float, approximation: float, constants: Constants) -> float:
    """Theorem 3: bound on the expected excess risk of PiSTOL's average, for a Lipschitz loss.

    Parameters
    ----------
    rounds : float
        T.
    beta : float
        Exponent of the approximation error in the mean of absolute differences (10), above 0 and at most 1.
    approximation : float
        C of (10).
    constants : Constants

    Examples
    --------
    >>> from tunefree.losses import Logistic
    >>> round(lipschitz_excess_risk_bound(1e6, 0.5, 1.0, constants_of(Logistic(), a=4.0)), 6)
    0.05942
    """
    if not 0.0 < beta <= 1.0:
        raise ValueError(f"beta must be above 0 and at most 1, not {beta}")
    lipschitz = constants.lipschitz
    squared = 2.0 * constants.a * lipschitz * math.log(_inside(rounds, constants))  # D^2
    bound = approximation ** (1.0 / (1.0 + beta)) * (2.0 * lipschitz) ** ((1.0 - beta) / (1.0 + beta))
    return bound * (squared / rounds) ** (beta / (1.0 + beta)) + _overhead(rounds, constants) / rounds


def _overhead(rounds: float, constants: Constants) -> float:
    """Return b phi(L / a) ln(1 + T), infinite on overflow."""
    if not (constants.b > 0.0 and rounds >= 1.0):
        raise ValueError(f"b must be above 0 and T at least 1, not {constants.b} and {rounds}")
    return float(pistol_overhead(rounds, constants.a / constants.lipschitz, constants.b))


def _inside(rounds: float, constants: Constants) -> float:
    """Return the argument of the logarithm with the bound on the norm, see (30)."""
    first = constants.at_zero * rounds / (math.sqrt(2.0) * constants.b)
    return max(first + _overhead(rounds, constants) / constants.b + 2.0, math.e)


def _spread(constants: Constants, inside: float) -> float:
    """Return C of the proofs of Corollary 1 and Theorem 2: sqrt(2 a sqrt(4 H) ln(..))."""
    return math.sqrt(2.0 * constants.a * math.sqrt(4.0 * constants.smoothness) * math.log(inside))

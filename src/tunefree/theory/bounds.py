"""The papers' regret bounds, evaluated from the state of a learner.

Orabona 2014 (Theorem 1, Appendix A); Kempka, Kotlowski, Warmuth 2019 (Theorems 3.1 and 3.2, here 1 and 2). All assume
slopes (subgradients of the loss at the prediction) of at most 1 in absolute value. A loss with Lipschitz constant L
must first be divided by L.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tunefree.core.generic import generic
from tunefree.core.numbers import LARGEST
from tunefree.learners.averaged import Averaged
from tunefree.learners.pistol import CoordinatePiSTOL, PiSTOL
from tunefree.learners.scinol import ScInOL1, ScInOL2


def scinol1_bound(weights: ArrayLike, scales: ArrayLike, rounds: int, epsilon: float = 1.0) -> float:
    """Regret bound of ScInOL1 (Kempka, Kotlowski, Warmuth 2019, Theorem 1).

    Parameters
    ----------
    weights : (d,) array
        The comparator u.
    scales : (d,) array
        S_hat_i = sqrt(S_i^2 + M_i^2) after the last round.
    rounds : int
        T.
    epsilon : float, default 1
        Initial wealth of each coordinate.

    Returns
    -------
    bound : float
        sum_i 2 |u_i| S_i ln(1 + 2 |u_i| S_i T / epsilon) + epsilon (1 + ln T), in units of the loss.

    Examples
    --------
    >>> round(scinol1_bound([0.0], [3.0], 100), 3)
    5.605
    """
    reach = 2.0 * np.abs(np.asarray(weights, np.float64)) * np.asarray(scales, np.float64)
    return float((reach * np.log1p(reach * rounds / epsilon) + epsilon * (1.0 + math.log(rounds))).sum())


def scinol2_bound(weights: ArrayLike, scales: ArrayLike, first: ArrayLike, epsilon: float = 1.0) -> float:
    """Regret bound of ScInOL2 (Kempka, Kotlowski, Warmuth 2019, Theorem 2).

    Parameters
    ----------
    weights, scales, epsilon
        As in :func:`scinol1_bound`.
    first : (d,) array
        Absolute value of each feature in the first round in which it is not 0.

    Returns
    -------
    bound : float
        d epsilon + sum_i 2 |u_i| S_i (ln(3 |u_i| S_i^3 / (epsilon first_i^2)) - 1).

    Examples
    --------
    >>> scinol2_bound([0.0, 0.0], [3.0, 1.0], [1.0, 1.0])
    2.0
    """
    u, s = np.abs(np.asarray(weights, np.float64)), np.asarray(scales, np.float64)
    used = (u > 0) & (s > 0)
    # Logarithms of the factors are added, since their product could overflow or underflow.
    logs = math.log(3.0 / epsilon) + np.log(u[used]) + 3.0 * np.log(s[used])
    logs -= 2.0 * np.log(np.asarray(first, np.float64)[used])
    return float(len(u) * epsilon + (2.0 * u[used] * s[used] * (logs - 1.0)).sum())


def pistol_bound(norm: float, slopes: float, rounds: int, a: float = 2.25, b: float = 1.0) -> float:
    """Regret bound of PiSTOL (Orabona 2014, Theorem 1) for L = 1 and ||x_t|| <= 1, with phi as in its proof.

    Parameters
    ----------
    norm : float
        Norm of the comparator.
    slopes : float
        Sum of the absolute slopes of all rounds but the last.
    rounds : int
        T.
    a : float, default 2.25
        At least 2.25.
    b : float, default 1

    Returns
    -------
    bound : float

    Examples
    --------
    >>> round(pistol_bound(1.0, 50.0, 100, a=4.0), 1)
    40.2
    """
    spread = math.sqrt(2.0 * a * (1.0 + slopes) * math.log1p(norm * math.sqrt(a * rounds) / b))
    log_rest = math.log(b) + log_phi(1.0 / a) + math.log(math.log1p(rounds))
    return norm * spread + (math.exp(log_rest) if log_rest < 709.0 else math.inf)


def log_phi(x: float) -> float:
    """Logarithm of phi(x) in the regret bound of PiSTOL, for x = L / a <= 4/9; phi itself overflows at a = 2.25 L.

    The formula is misprinted in both published versions of the paper. Equations (18) and (19) of the proof give
    phi(x) = (x / 2) n exp((x / 2) n / D), with n = e^{x/2} (x + 1) + 2 and D = 1 - x e^{x/2} - x.

    Parameters
    ----------
    x : float
        L / a.

    Returns
    -------
    log_phi : float
        Infinite if D <= 0.

    Examples
    --------
    >>> round(log_phi(1 / 4), 2), round(log_phi(1 / 2.25))
    (0.06, 1652)
    """
    n = math.exp(x / 2.0) * (x + 1.0) + 2.0
    room = 1.0 - x * math.exp(x / 2.0) - x
    if room <= 0.0:
        return math.inf
    return math.log(x / 2.0 * n) + x / 2.0 * n / room


def paper_bound(state: Any, weights: ArrayLike, first: ArrayLike | None = None) -> float:
    """Bound on a learner's regret against fixed weights, from the learner's own theorem and its state.

    The bound holds for classification with a Lipschitz loss. Its unit is the loss divided by its Lipschitz constant.
    The bound is infinite in regression: there the initial wealth follows the targets, which the theorems do not cover.
    Nor do they cover a third class that first appears during the stream, since this changes the number of outputs.
    The theorem depends on the learner:

    ScInOL1
        Theorem 1, with 1 / beta_T,i instead of T / epsilon and the conjugate of Lemma C.1 instead of its bound.
        Features that were never seen contribute nothing.
    ScInOL2
        Theorem 2 if ``first`` is given. The learner does not store it. Without it, the quantity that the theorem
        bounds is returned, which is never larger: sum_i epsilon - eta_i + u_i G_i.
    PiSTOL
        Theorem 1. M may grow. Then alpha grows in the same round, which lowers the potential, so the proof holds with
        ln(1 + A_T / M_1), A_T = sum |s_t| ||x_t||, in place of ln(1 + T). M_1, the norm of the first row, is replaced
        by a lower bound: the power of two next below the largest absolute value in that row. The sample weight of that
        row must be at least 1.
    CoordinatePiSTOL
        Theorem 1 for each coordinate, with M_1 from ``first``; infinite without it.

    Parameters
    ----------
    state : learner
    weights : (d, K) array, or (d,) for one output
        The comparator, in the data's units; the weight of the constant feature comes first.
    first : (d,) array, optional
        Absolute value of each feature, times the sample weight, in the first round in which it was not 0.

    Returns
    -------
    bound : float

    Examples
    --------
    >>> paper_bound(ScInOL2.create(2, epsilon=1.0), [0.0, 3.0])
    0.0
    """
    u = np.asarray(weights, np.float64).reshape(state.coordinates.shape)
    with np.errstate(all="ignore"):
        bound = _own_bound(state, u, None if first is None else np.asarray(first, np.float64)[:, None])
    return bound if math.isfinite(bound) else math.inf


@generic
def _own_bound(state: Any, u: np.ndarray, first: np.ndarray | None) -> float:
    raise TypeError(f"{type(state).__name__} has no regret bound")


@_own_bound.register(Averaged)
def _bound_of_iterates(state, u, first):
    return _own_bound(state.learner, u, first)


@_own_bound.register(ScInOL1)
def _bound_of_scinol1(state, u, first):
    seen, own = state.features.inverse > 0.0, state.coordinates[state.features.inverse > 0.0]
    if not _has_assumed_wealth(own):
        return math.inf
    reach, stakes = 2.0 * _scaled(state, u) * _spread(state)[seen], own.stakes
    conjugate = (reach + stakes) * np.log1p(reach / stakes) - reach
    terms = conjugate + state.epsilon * (1.0 + math.log(max(state.rounds[()], 1.0)))
    return float(terms[own.wealth_scale > 0.0].sum())


@_own_bound.register(ScInOL2)
def _bound_of_scinol2(state, u, first):
    seen, own = state.features.inverse > 0.0, state.coordinates[state.features.inverse > 0.0]
    if not _has_assumed_wealth(own):
        return math.inf
    if first is None:
        linear = np.sign(u[seen]) * _scaled(state, u) * own.gradients
        return float((state.epsilon * own.wealth_scale - own.wealth + linear).sum())
    scales = _spread(state)[seen] / state.features.inverse[seen, None]
    columns = range(u.shape[1])
    return sum(scinol2_bound(u[seen, k], scales[:, k], first[seen, 0], state.epsilon) for k in columns)


def _has_assumed_wealth(own):
    """Whether every coordinate had the initial wealth that the theorems assume (a wealth scale of 1), or never learned.

    The latter are coordinates of a class that appeared after the last row with their feature.
    """
    return bool(((own.wealth_scale == 1.0) | ((own.wealth_scale == 0.0) & (own.squares == 0.0))).all())


def _spread(state):
    """S_hat_i / unit_i."""
    return np.sqrt(state.coordinates.squares + state.features.largest[:, None] ** 2)


def _scaled(state, u):
    """|u_i| unit_i for each feature that was seen."""
    seen = state.features.inverse > 0.0
    return np.minimum(np.abs(u[seen]) / state.features.inverse[seen, None], LARGEST)


@_own_bound.register(PiSTOL)
def _bound_of_pistol(state, u, first):
    if state.margin[()] != 1.0:
        return math.inf
    largest, slopes = state.largest[()], state.slopes[0]
    norms = np.sqrt(((u * state.unit[()]) ** 2).sum(0))
    return float(_potential(state, norms * largest, slopes / largest, slopes).sum()) if largest > 0.0 else 0.0


@_own_bound.register(CoordinatePiSTOL)
def _bound_of_coordinate_pistol(state, u, first):
    if state.margin[()] != 1.0 or first is None:
        return math.inf
    seen = state.features.largest > 0.0
    largest, slopes = state.features.largest[seen, None], state.coordinates.slopes[seen]
    return float(_potential(state, np.abs(u[seen]) * largest, slopes, slopes * (largest / first[seen])).sum())


def _potential(state, norms, slopes, growth):
    """Lemma 3 and (20) of the proof: ``norms`` ||u|| M, ``slopes`` A_T / M, ``growth`` A_T / M_1."""
    alpha = state.a * (1.0 + slopes)
    overhead = math.log(state.b) + log_phi(1.0 / state.a) + np.log(np.log1p(growth))
    return norms * np.sqrt(2.0 * alpha * np.log1p(np.sqrt(alpha) * norms / state.b)) + np.exp(overhead)

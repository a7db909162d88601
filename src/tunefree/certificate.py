"""The papers' regret bounds: how much better any fixed weights could have been, from what a learner kept.

All assume slopes of at most 1 in absolute value; for a loss with Lipschitz constant L divide it by L first.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike


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

    Returns
    -------
    float
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
    float
        d epsilon + sum_i 2 |u_i| S_i (ln(3 |u_i| S_i^3 / (epsilon first_i^2)) - 1).

    Examples
    --------
    >>> scinol2_bound([0.0, 0.0], [3.0, 1.0], [1.0, 1.0])
    2.0
    """
    u, s = np.abs(np.asarray(weights, np.float64)), np.asarray(scales, np.float64)
    used = (u > 0) & (s > 0)
    # Logarithms of the factors: their product could leave the range of numbers.
    logs = math.log(3.0 / epsilon) + np.log(u[used]) + 3.0 * np.log(s[used])
    logs -= 2.0 * np.log(np.asarray(first, np.float64)[used])
    return float(len(u) * epsilon + (2.0 * u[used] * s[used] * (logs - 1.0)).sum())


def pistol_bound(norm: float, slopes: float, rounds: int, a: float = 2.25, b: float = 1.0) -> float:
    """Regret bound of PiSTOL (Orabona 2014, Theorem 1, with phi as its proof has it) for L = 1 and ||x_t|| <= 1.

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

    Examples
    --------
    >>> round(pistol_bound(1.0, 50.0, 100, a=4.0), 1)
    40.2
    """
    spread = math.sqrt(2.0 * a * (1.0 + slopes) * math.log1p(norm * math.sqrt(a * rounds) / b))
    log_rest = math.log(b) + log_phi(1.0 / a) + math.log(math.log1p(rounds))
    return norm * spread + (math.exp(log_rest) if log_rest < 709.0 else math.inf)


def log_phi(x: float) -> float:
    """Logarithm of phi(x), x = L / a <= 4/9, of PiSTOL's bound; phi itself overflows at a = 2.25 L.

    Both printings of the paper are garbled. From (18) and (19) of the proof, with n = e^{x/2} (x + 1) + 2 and
    D = 1 - x e^{x/2} - x, it is phi(x) = (x / 2) n exp((x / 2) n / D).

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

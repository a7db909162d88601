"""The regret bound of PiSTOL (Orabona 2014, Theorem 1 and Appendix A), for a growing norm of the rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def growing_pistol_bound(norm: ArrayLike, slopes: ArrayLike, growth: ArrayLike, a: float, b: float = 1.0) -> np.ndarray:
    """Return the regret bound of PiSTOL with M_t = max ||x_s||, s <= t, instead of the bound 1 on the norm of rows.

    alpha_{t-1} = a M_t (M_t + A_{t-1}), where A_t is the sum of |s| ||x||. When M grows, alpha grows, which lowers the
    potential b exp(||g||^2 / (2 alpha)). A round adds to it at most b phi ln((M_t + A_t) / (M_t + A_{t-1})), which is
    largest if M_t = M_1, so all rounds add at most b phi ln(1 + A_T / M_1). Lemma 3 of the paper completes the proof.

    Parameters
    ----------
    norm : float or array
        ||u|| M_T.
    slopes : float or array
        A_T / M_T.
    growth : float or array
        A_T / M_1, where M_1 is the norm of the first learned row.
    a : float
        Above 2.2495; at 2.25 phi is exp(1652). ``a`` and ``b`` are in units of the Lipschitz constant.
    b : float, default 1

    Examples
    --------
    >>> round(float(growing_pistol_bound(1.0, 50.0, 50.0, a=4.0)), 1)
    37.5
    """
    norm, alpha = np.asarray(norm, np.float64), a * (1.0 + np.asarray(slopes, np.float64))
    return norm * np.sqrt(2.0 * alpha * np.log1p(np.sqrt(alpha) * norm / b)) + pistol_overhead(growth, a, b)


def pistol_regret(state: Any, norms: ArrayLike) -> float:
    """Sum :func:`growing_pistol_bound` over the outputs of a PiSTOL state; norms are in the units of its rows."""
    largest, slopes = state.largest[0], state["slopes"]
    if largest == 0.0:
        return 0.0
    norms, growth = np.asarray(norms, np.float64) * largest, slopes / state.first[0]
    return float(growing_pistol_bound(norms, slopes / largest, growth, state.a[0], state.b[0]).sum())


def pistol_overhead(growth: ArrayLike, a: float, b: float) -> np.ndarray:
    """Return b phi(1 / a) ln(1 + growth), the bound on the regret against the function 0; infinite on overflow.

    Examples
    --------
    >>> round(float(pistol_overhead(100.0, 4.0, 1.0)), 2), pistol_overhead([1.0], 4.0, 0.0).tolist()
    (4.92, [inf])
    """
    if not b > 0.0:
        return np.full(np.shape(growth), math.inf)
    with np.errstate(divide="ignore", over="ignore"):
        logs = math.log(b) + log_phi(1.0 / a) + np.log(np.log1p(np.asarray(growth, np.float64)))
        return np.exp(logs)


def log_phi(x: float) -> float:
    """Return ln phi(x) of the regret bound of PiSTOL, for x = L / a <= 4/9; phi(x) overflows at a = 2.25 L.

    Both published versions of the paper misprint the formula. Equations (18) and (19) of the proof give
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
    >>> round(log_phi(1 / 4), 2), round(log_phi(1 / 2.25)), log_phi(0.45)
    (0.06, 1652, inf)
    """
    n = math.exp(x / 2.0) * (x + 1.0) + 2.0
    room = 1.0 - x * math.exp(x / 2.0) - x
    if room <= 0.0:
        return math.inf
    return math.log(x / 2.0 * n) + x / 2.0 * n / room

"""What the theorems of the papers say of a learner, from the state that it has after one pass.

Orabona 2014 (Theorem 1, Appendix A); Kempka, Kotlowski, Warmuth 2019 (Theorems 3.1 and 3.2). All assume slopes
(subgradients of the loss at the prediction) of at most 1 in absolute value. A loss with Lipschitz constant L must first
be divided by L. The bounds as they are printed, from the rows of a stream, are those of :mod:`tunefree.papers`.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tunefree.core.numbers import LARGEST
from tunefree.learners.pistol import CoordinatePiSTOL, PiSTOL
from tunefree.learners.scinol import ScInOL1, ScInOL2
from tunefree.losses.objectives import Objective


class Bound(NamedTuple):
    """The right-hand side of a theorem, for one stream and one comparator.

    Examples
    --------
    >>> str(Bound(2.5, "Theorem 1", "||x_t|| <= 1"))
    'at most 2.5 (Theorem 1; assumes ||x_t|| <= 1)'
    >>> str(no_bound("no theorem bounds the regret of Adam"))
    'no bound: no theorem bounds the regret of Adam'
    """

    value: float | None  # None where no theorem applies
    theorem: str = ""  # the paper and the number of the statement
    assumes: str = ""  # what the statement assumes, as far as it is not checked
    reason: str = ""  # why no theorem applies

    def __str__(self) -> str:
        if self.value is None:
            return f"no bound: {self.reason}"
        return f"at most {self.value:.6g} ({self.theorem}{'; assumes ' * bool(self.assumes)}{self.assumes})"


def no_bound(reason: str) -> Bound:
    """A bound that does not exist, and why."""
    return Bound(None, reason=reason)


def growing_pistol_bound(norm: ArrayLike, slopes: ArrayLike, growth: ArrayLike, a: float, b: float = 1.0) -> np.ndarray:
    """Regret bound of PiSTOL where the norm of the rows grows: M_t = max ||x_s||, s <= t, in the place of 1.

    M_t enters alpha_{t-1} = a M_t (M_t + A_{t-1}), A_t the sum of |s| ||x||. Where M grows, so does alpha, which lowers
    the potential b exp(||g||^2 / (2 alpha)). A round adds to it at most b phi ln((M_t + A_t) / (M_t + A_{t-1})), which
    is largest with M_1 for M_t, so all of them add b phi ln(1 + A_T / M_1). Lemma 3 of the paper does the rest.

    Parameters
    ----------
    norm : float or array
        ||u|| M_T.
    slopes : float or array
        A_T / M_T.
    growth : float or array
        A_T / M_1, M_1 that of the first row learned.
    a : float
        In units of the Lipschitz constant, as b. Above 2.2495; at 2.25 phi is exp(1652).
    b : float, default 1

    Examples
    --------
    >>> round(float(growing_pistol_bound(1.0, 50.0, 50.0, a=4.0)), 1)
    37.5
    """
    norm, alpha = np.asarray(norm, np.float64), a * (1.0 + np.asarray(slopes, np.float64))
    return norm * np.sqrt(2.0 * alpha * np.log1p(np.sqrt(alpha) * norm / b)) + pistol_overhead(growth, a, b)


def pistol_overhead(growth: ArrayLike, a: float, b: float) -> np.ndarray:
    """b phi(1 / a) ln(1 + growth), infinite where it overflows: what PiSTOL may lose against the function 0.

    Examples
    --------
    >>> round(float(pistol_overhead(100.0, 4.0, 1.0)), 2)
    4.92
    """
    if not b > 0.0:
        return np.full(np.shape(growth), math.inf)
    with np.errstate(divide="ignore", over="ignore"):
        logs = math.log(b) + log_phi(1.0 / a) + np.log(np.log1p(np.asarray(growth, np.float64)))
        return np.exp(logs)


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


def paper_bound(state: Any, objective: Objective, weights: ArrayLike) -> float:
    """Bound on a learner's regret against fixed weights, from the learner's own theorem and its state.

    It is of all rounds that the state has learned: after several passes of all of them together, not of the first.
    The theorem of the learner:

    ScInOL1
        Theorem 3.1, with 1 / beta_T,i instead of T / epsilon and the conjugate of Lemma C.1 instead of its bound.
        Features that were never seen contribute nothing.
    ScInOL2
        The quantity that Theorem 3.2 bounds, which is never larger: sum_i epsilon - eta_i + u_i G_i.
    PiSTOL
        Theorem 1. M may grow. Then alpha grows in the same round, which lowers the potential, so the proof holds with
        ln(1 + A_T / M_1), A_T = sum |s_t| ||x_t||, in place of ln(1 + T); M_1 is that of the first row learned.
    CoordinatePiSTOL
        Theorem 1 for each coordinate.

    Parameters
    ----------
    state : learner
    objective : objective
    weights : (d, K) array, or (d,) for one output
        The comparator, in the data's units; the weight of the constant feature comes first.

    Returns
    -------
    bound : float
        In units of the loss. Infinite where no theorem covers the learner and the objective: for losses without a
        Lipschitz constant, of which slopes are clipped, and for numbers, of which margins are relative to a running
        centre.

    Examples
    --------
    >>> from tunefree.losses import Logistic
    >>> from tunefree.losses.objectives import Objective
    >>> paper_bound(ScInOL2(2, epsilon=1.0), Objective("classification", Logistic()), [0.0, 3.0])
    0.0
    """
    lipschitz = getattr(objective.loss, "lipschitz", 1.0)  # 1 for the log-loss of a softmax
    if lipschitz == math.inf or objective.task == "regression":
        return math.inf
    u = np.asarray(weights, np.float64).reshape(state.n_features, state.n_outputs)
    with np.errstate(all="ignore"):
        bound = lipschitz * _bound_of_learner(state, u)
    return bound if math.isfinite(bound) else math.inf


@singledispatch
def _bound_of_learner(state: Any, u: np.ndarray) -> float:
    raise TypeError(f"{type(state).__name__} has no regret bound")


@_bound_of_learner.register(ScInOL1)
def _bound_of_scinol1(state, u):
    seen = state.inverse > 0.0
    reach, stakes = 2.0 * _scaled(state, u) * _spread(state)[seen], state["stakes"][seen]
    conjugate = (reach + stakes) * np.log1p(reach / stakes) - reach
    terms = conjugate + state.epsilon[0] * (1.0 + math.log(max(state.rounds[0], 1.0)))
    return float(terms[state["stake_scale"][seen] > 0.0].sum())


@_bound_of_learner.register(ScInOL2)
def _bound_of_scinol2(state, u):
    seen = state.inverse > 0.0
    linear = np.sign(u[seen]) * _scaled(state, u) * state["gradients"][seen]
    return float((state.epsilon[0] * state["wealth_scale"][seen, None] - state["wealth"][seen] + linear).sum())


def _spread(state):
    """S_hat_i / unit_i."""
    return np.sqrt(state["squares"] + state.largest[:, None] ** 2)


def _scaled(state, u):
    """|u_i| unit_i for each feature that was seen."""
    seen = state.inverse > 0.0
    return np.minimum(np.abs(u[seen]) / state.inverse[seen, None], LARGEST)


@_bound_of_learner.register(PiSTOL)
def _bound_of_pistol(state, u):
    largest, slopes = state.largest[0], state["slopes"]
    if largest == 0.0:
        return 0.0
    norms = np.sqrt(((u * state.unit[0]) ** 2).sum(0))
    bounds = growing_pistol_bound(norms * largest, slopes / largest, slopes / state.first[0], state.a[0], state.b[0])
    return float(bounds.sum())


@_bound_of_learner.register(CoordinatePiSTOL)
def _bound_of_coordinate_pistol(state, u):
    seen = state.largest > 0.0
    largest, slopes = state.largest[seen, None], state["slopes"][seen]
    growth = slopes * (largest / state.first[seen, None])
    return float(growing_pistol_bound(np.abs(u[seen]) * largest, slopes, growth, state.a[0], state.b[0]).sum())

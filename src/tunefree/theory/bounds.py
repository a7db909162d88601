"""The papers' regret bounds, evaluated from the state of a learner.

Orabona 2014 (Theorem 1, Appendix A); Kempka, Kotlowski, Warmuth 2019 (Theorems 3.1 and 3.2, and for gradient descent
(4) and Appendix A). But for the latter all assume slopes (subgradients of the loss at the prediction) of at most 1 in
absolute value. A loss with Lipschitz constant L must first be divided by L.

They are bounds on the regret of one learner in one pass. :func:`paper_bound` decides by the objective whether they
cover what was learned.
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
from tunefree.losses.contract import has_log_link
from tunefree.losses.kinds import arrays_of
from tunefree.losses.objectives import Multinomial, Regression, regression
from tunefree.losses.regression import observe, prediction_of


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


def scinol1_bound(weights: ArrayLike, scales: ArrayLike, rounds: int, epsilon: float = 1.0) -> float:
    """Regret bound of ScInOL1 (Kempka, Kotlowski, Warmuth 2019, Theorem 3.1).

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
    """Regret bound of ScInOL2 (Kempka, Kotlowski, Warmuth 2019, Theorem 3.2).

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


def pistol_bound(norm: float, slopes: float, rounds: int, a: float, b: float = 1.0) -> float:
    """Regret bound of PiSTOL (Orabona 2014, Theorem 1) for L = 1 and ||x_t|| <= 1, with phi as in its proof.

    Parameters
    ----------
    norm : float
        Norm of the comparator.
    slopes : float
        Sum of the absolute slopes: of the rounds 1 to T - 1, as the theorem is printed, or of all T rounds, as its
        proof has it, which bounds the regret by alpha_T.
    rounds : int
        T.
    a : float
        Above 2.2495; at 2.25 phi is exp(1652). :func:`pistol_parameter` is the value with the least bound.
    b : float, default 1

    Examples
    --------
    >>> round(pistol_bound(1.0, 50.0, 100, a=4.0), 1)
    40.2
    """
    spread = math.sqrt(2.0 * a * (1.0 + slopes) * math.log1p(norm * math.sqrt(a * rounds) / b))
    return norm * spread + float(_overhead(rounds, a, b))


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
    a, b : float
        As in :func:`pistol_bound`.

    Examples
    --------
    >>> bool(growing_pistol_bound(1.0, 50.0, 50.0, a=4.0) < pistol_bound(1.0, 50.0, 100, a=4.0))
    True
    """
    norm, alpha = np.asarray(norm, np.float64), a * (1.0 + np.asarray(slopes, np.float64))
    return norm * np.sqrt(2.0 * alpha * np.log1p(np.sqrt(alpha) * norm / b)) + _overhead(growth, a, b)


def _overhead(growth: ArrayLike, a: float, b: float) -> np.ndarray:
    """b phi(1 / a) ln(1 + growth), infinite where it overflows."""
    if not b > 0.0:
        return np.full(np.shape(growth), math.inf)
    with np.errstate(divide="ignore", over="ignore"):
        logs = math.log(b) + log_phi(1.0 / a) + np.log(np.log1p(np.asarray(growth, np.float64)))
        return np.exp(logs)


def pistol_parameter(norm: float = 1.0, rounds: int = 10_000, b: float = 1.0) -> float:
    """The a with the least bound of Theorem 1 of Orabona 2014, for L = 1, ||x_t|| <= 1 and slopes of 1.

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
    for _ in range(100):  # golden section: the bound has one minimum
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        bounds = [pistol_bound(norm, rounds - 1.0, rounds, math.exp(log_a), b) for log_a in (left, right)]
        low, high = (low, right) if bounds[0] <= bounds[1] else (left, high)
    return math.exp((low + high) / 2.0)


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


def paper_bound(
    state: Any, objective: Any, weights: ArrayLike, *, first: ArrayLike | None = None, drift: float | None = None
) -> float:
    """Bound on a learner's regret against fixed weights, from the learner's own theorem and its state.

    It is of all rounds that the state has learned: after several passes of all of them together, not of the first. The
    learner's theorem bounds the regret of its margins. What the objective adds to that:

    Classes
        If the one margin m = u_1 x - u_0 x of two classes became that of class 1, and the learner of class 0 began
        anew, it lacks u_0 x in the rounds before, whose linearised loss is u_0 times the sum of the gradients of all
        classes: this is added. (After the change the gradients of a round add up to 0.) The package's models let a
        class that comes late begin with more than that
        (:meth:`tunefree.model.members.Member.add_outputs`); for these the bound is not used.
    Numbers
        Margins are relative to the running centre c_t of the targets, and a learner's initial wealth follows their
        spread. Slopes are taken at c_t + margin, while c_{t-1} + margin is what was predicted. With ``drift``, the
        sum of h (|c_t - c_T| + |c_t - c_{t-1}|), convexity gives

            regret <= L sum h s (margin - (u x - c_T)) + L drift,

        and the learner's wealth is exactly what the first sum has left of the wealth that was handed out. Without
        ``drift`` the bound is infinite. It is infinite for all learners but ScInOL2, whose theorems assume an initial
        wealth that does not grow.

    It is infinite for losses without a Lipschitz constant, of which slopes are clipped. The theorem of the learner:

    ScInOL1
        Theorem 3.1, with 1 / beta_T,i instead of T / epsilon and the conjugate of Lemma C.1 instead of its bound.
        Features that were never seen contribute nothing.
    ScInOL2
        Theorem 3.2 if ``first`` is given. The learner does not store it. Without it, the quantity that the theorem
        bounds is returned, which is never larger: sum_i epsilon - eta_i + u_i G_i.
    PiSTOL
        Theorem 1. M may grow. Then alpha grows in the same round, which lowers the potential, so the proof holds with
        ln(1 + A_T / M_1), A_T = sum |s_t| ||x_t||, in place of ln(1 + T); M_1 is that of the first row learned.
    CoordinatePiSTOL
        Theorem 1 for each coordinate.

    Parameters
    ----------
    state : learner
    objective : objective
        As it is after the last round.
    weights : (d, K) array, or (d,) for one output
        The comparator, in the data's units; the weight of the constant feature comes first.
    first : (d,) array, optional
        Absolute value of each feature, times the sample weight, in the first round in which it was not 0.
    drift : float, optional
        For numbers: :func:`drift_of_centre` of the targets, in their order.

    Returns
    -------
    bound : float
        In units of the loss; infinite where no theorem covers the learner and the objective.

    Examples
    --------
    >>> from tunefree.losses import Logistic, objectives
    >>> paper_bound(ScInOL2(2, epsilon=1.0), objectives.Binary(Logistic(), 0.0), [0.0, 3.0])
    0.0
    """
    lipschitz = getattr(getattr(objective, "loss", None), "lipschitz", 1.0)  # 1 for the multinomial loss
    if lipschitz == math.inf:
        return math.inf
    u = np.asarray(weights, np.float64).reshape(state.n_features, state.n_outputs)
    with np.errstate(all="ignore"):
        if isinstance(objective, Regression):
            bound = lipschitz * _bound_for_numbers(objective, state, u, drift)
        else:
            begun = None if first is None else np.asarray(first, np.float64)[:, None]
            bound = lipschitz * _bound_of_learner(state, u, begun)
            if isinstance(objective, Multinomial):
                bound += float(-u[:, 0] @ _gradients(state).sum(axis=1))
    return bound if math.isfinite(bound) else math.inf


def fixed_rates_bound(weights: ArrayLike, gradient_norms: ArrayLike, rates: ArrayLike) -> float:
    """Regret bound of gradient descent with a fixed rate for each coordinate (Kempka, Kotlowski, Warmuth 2019,
    Appendix A).

    Parameters
    ----------
    weights : array
        The comparator u.
    gradient_norms : array of the same shape
        S_i = sqrt(sum_t (g_t x_{t,i})^2) after the last round.
    rates : array of the same shape
        eta_i, above 0.

    Returns
    -------
    bound : float
        sum_i u_i^2 / (2 eta_i) + eta_i S_i^2 / 2; a coordinate of rate 0 adds nothing where u_i is 0, else it is
        infinite.

    Examples
    --------
    >>> fixed_rates_bound([3.0, -1.0], [2.0, 4.0], [1.5, 0.25])
    10.0
    """
    u, norms, eta = (np.asarray(array, np.float64) for array in (weights, gradient_norms, rates))
    away = np.divide(u**2, 2.0 * eta, out=np.where(u == 0.0, 0.0, math.inf) * np.ones(eta.shape), where=eta > 0.0)
    return float((away + 0.5 * eta * norms**2).sum())


def oracle_bound(weights: ArrayLike, gradient_norms: ArrayLike) -> float:
    """Regret bound of gradient descent with the best rate for each coordinate (Kempka, Kotlowski, Warmuth 2019, (4)).

    The rates are ``oracle_rates``, known in hindsight only.

    Parameters
    ----------
    weights : (d,) array
        The comparator u.
    gradient_norms : (d,) array
        S_i = sqrt(sum_t (g_t x_{t,i})^2) after the last round, of the run with these rates.

    Returns
    -------
    bound : float
        sum_i |u_i| S_i, in units of the loss.

    Examples
    --------
    >>> oracle_bound([3.0, -1.0], [2.0, 4.0])
    10.0
    """
    return float((np.abs(np.asarray(weights, np.float64)) * np.asarray(gradient_norms, np.float64)).sum())


def drift_of_centre(loss: Any, targets: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """How far the running centre of targets strays: sum of h (|c_t - c_T| + |c_t - c_{t-1}|), where c_0 = 0.

    It is what learning targets relative to their running centre adds to a regret bound in :func:`paper_bound`. For
    independent targets of standard deviation sigma it grows like sigma sqrt(T).

    Parameters
    ----------
    loss : loss
        It decides how much outliers move the centre, see :mod:`tunefree.losses.regression`.
    targets : (T,) array
        In the order in which they were learned.
    sample_weight : (T,) array, optional
        h; by default 1.

    Examples
    --------
    >>> from tunefree.losses import Absolute
    >>> drift_of_centre(Absolute(), [2.0, 4.0])
    4.0
    """
    y = np.asarray(targets, np.float64)
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    y, weight = y[weight > 0.0], weight[weight > 0.0]
    if not len(y):
        return 0.0
    numbers, centres = arrays_of(regression(loss)).numbers, np.zeros(len(y))
    for t, (target, share) in enumerate(zip(y.tolist(), weight.tolist(), strict=True)):
        observe(numbers, target, share)
        centres[t] = prediction_of(numbers, 0.0)
    steps = np.abs(np.diff(centres, prepend=0.0))
    return float((weight * (np.abs(centres - centres[-1]) + steps)).sum())


def _bound_for_numbers(objective: Any, state: Any, u: np.ndarray, drift: float | None) -> float:
    if drift is None or not drift >= 0.0 or has_log_link(objective.loss):  # slopes are those of capped margins
        return math.inf
    if objective.unit == 0.0:  # no target but 0, which is predicted
        return float(drift)
    relative = u / objective.unit
    relative[0] -= objective.centre
    return objective.unit * _left_of_wealth(state, relative) + float(drift)


@singledispatch
def _bound_of_learner(state: Any, u: np.ndarray, first: np.ndarray | None) -> float:
    raise TypeError(f"{type(state).__name__} has no regret bound")


def _gradients(state: Any) -> np.ndarray:
    """Minus the sums of gradients (d, K), in the data's units."""
    if isinstance(state, PiSTOL):
        return state["gradients"] * state.unit[0]
    if isinstance(state, CoordinatePiSTOL):
        return state["gradients"] * state.largest[:, None]
    seen = state.inverse[:, None] > 0.0
    return np.where(seen, state["gradients"] / state.inverse[:, None], 0.0)


@_bound_of_learner.register(ScInOL1)
def _bound_of_scinol1(state, u, first):
    seen = state.inverse > 0.0
    reach, stakes = 2.0 * _scaled(state, u) * _spread(state)[seen], state["stakes"][seen]
    conjugate = (reach + stakes) * np.log1p(reach / stakes) - reach
    terms = conjugate + state.epsilon[0] * (1.0 + math.log(max(state.rounds[0], 1.0)))
    return float(terms[state["stake_scale"][seen] > 0.0].sum())


@_bound_of_learner.register(ScInOL2)
def _bound_of_scinol2(state, u, first):
    if first is None:
        return _left_of_wealth(state, u)
    seen = state.inverse > 0.0
    scales = _spread(state)[seen] / state.inverse[seen, None]
    columns = range(u.shape[1])
    return sum(scinol2_bound(u[seen, k], scales[:, k], first[seen, 0], state.epsilon[0]) for k in columns)


def _left_of_wealth(state, u):
    """The linearised regret of the margins against u, which the wealth of ScInOL2 determines; infinite for others."""
    if not isinstance(state, ScInOL2):
        return math.inf
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
def _bound_of_pistol(state, u, first):
    largest, slopes = state.largest[0], state["slopes"]
    if largest == 0.0:
        return 0.0
    norms = np.sqrt(((u * state.unit[0]) ** 2).sum(0))
    bounds = growing_pistol_bound(norms * largest, slopes / largest, slopes / state.first[0], state.a[0], state.b[0])
    return float(bounds.sum())


@_bound_of_learner.register(CoordinatePiSTOL)
def _bound_of_coordinate_pistol(state, u, first):
    seen = state.largest > 0.0
    largest, slopes = state.largest[seen, None], state["slopes"][seen]
    growth = slopes * (largest / state.first[seen, None])
    return float(growing_pistol_bound(np.abs(u[seen]) * largest, slopes, growth, state.a[0], state.b[0]).sum())

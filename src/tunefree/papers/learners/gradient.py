"""Gradient descent with rates that somebody has to choose: what the learners without rates are compared with.

Online gradient descent, w <- w - eta_t g x with eta_t = eta / sqrt(t): Zinkevich: Online convex programming and
generalized infinitesimal gradient ascent (ICML 2003).
A fixed rate for each coordinate, w_i <- w_i - eta_i g x_i, and the rates that are best in hindsight: Kempka, Kotlowski,
Warmuth: Adaptive scale-invariant online algorithms for learning linear models (ICML 2019), Section 2, bound (4).
Averaged stochastic gradient descent, one fixed rate and the mean of the iterates: Orabona: Simultaneous model selection
and optimization through parameter-free stochastic learning (NIPS 2014), Algorithm 1, which prints the step with the
opposite sign: the direction of descent is minus the slope.

Rates are in units of ``scale.margin``, and slopes relative to the Lipschitz constant of the loss. Where a loss of
classes has none, as the square loss, for which (3) of the last paper is stated, slopes are taken as they come. Of
numbers they are relative to the steepest so far, and clipped there. None of these learners is invariant to the scale of
the features. Weights and steps stop at the ceiling, where gradient descent diverges.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from tunefree.core.errors import ModelError
from tunefree.core.fields import per_coordinate, setting, single
from tunefree.core.numbers import CEILING, bounded
from tunefree.learners.averaging import averaged
from tunefree.learners.contract import Traits
from tunefree.learners.plain import PlainLearner, write_margins


class GradientDescent(PlainLearner):
    """Online gradient descent with the rate eta / sqrt(t) in round t.

    Its setting is ``eta``, the first rate, by default 1.
    """

    rounds = single("t")
    stride = single("see stride_of, of the latest round")
    eta = setting(1.0, "first rate, in units of scale.margin")
    traits = Traits(rate="eta", takes_slopes_as_they_come=True)

    def predict(state, row, scale, margins):
        state.stride[0] = stride_of(scale)
        write_margins(state, row, margins)

    def update(state, row, gradient, curvature):
        state.rounds[0] += 1.0
        rate = state.eta[0] / math.sqrt(state.rounds[0]) * state.stride[0]
        for e in range(len(row.indices)):
            j, value = row.indices[e], row.values[e]
            if value != 0.0:
                for k in range(len(gradient)):
                    step = bounded(bounded(rate * gradient[k]) * value)
                    state.weights[j, k] = bounded(state.weights[j, k] - step)


class CoordinateGradientDescent(PlainLearner):
    """Gradient descent with a fixed rate for each coordinate.

    Its settings are ``rates``, an array (d,) or (d, K) of the rates that are known beforehand, the constant's first,
    and ``eta``, the rate of all others, by default 0.1. There is capacity for at least the features that ``rates`` has.
    """

    rates = per_coordinate("eta_i, in units of scale.margin, which nothing changes")
    stride = single("see stride_of, of the latest round")
    eta = setting(0.1, "eta_i of features yet to come")
    traits = Traits(rate="eta", takes_slopes_as_they_come=True)

    def __init__(self, n_features: int, n_outputs: int = 1, rates: ArrayLike | None = None, **settings: float) -> None:
        known = _checked_rates([] if rates is None else rates, n_outputs)
        super().__init__(max(n_features, len(known)), n_outputs, **settings)
        self.rates[:] = self.eta[0]
        self["rates"][: len(known)] = known

    def predict(state, row, scale, margins):
        state.stride[0] = stride_of(scale)
        write_margins(state, row, margins)

    def update(state, row, gradient, curvature):
        for e in range(len(row.indices)):
            j, value = row.indices[e], row.values[e]
            if value != 0.0:
                for k in range(len(gradient)):
                    step = bounded(state.rates[j, k] * bounded(state.stride[0] * gradient[k]) * value)
                    state.weights[j, k] = bounded(state.weights[j, k] - step)


class AveragedSGD(averaged(CoordinateGradientDescent)):  # type: ignore[misc]
    """Averaged stochastic gradient descent: the mean of the iterates of gradient descent with a fixed rate.

    Its setting is ``eta``, the rate, by default 0.1; the paper's (3) holds up to 1/4.
    """

    # A fixed rate makes margins of 1e9 of features scaled by 2^20. Where two such margins cancel, the slope is a
    # rounding error.
    traits = Traits(rate="eta", takes_slopes_as_they_come=True, well_conditioned=False)


def stride_of(scale):
    """The step, in units of the margin, that a slope of 1 stands for: over the bound on slopes of unweighted rows.

    Slopes that nothing bounds are steps as they are.
    """
    if scale.slope >= CEILING * scale.weight:
        return scale.margin
    return bounded(scale.weight / scale.slope) * scale.margin if scale.slope > 0.0 else 0.0


def oracle_rates(weights: ArrayLike, gradient_norms: ArrayLike) -> np.ndarray:
    """The rates with which gradient descent has the least bound on its regret, known in hindsight only.

    Minimises sum_i u_i^2 / (2 eta_i) + eta_i S_i^2 / 2 and so gives bound (4) of Kempka, Kotlowski, Warmuth 2019,
    sum_i |u_i| S_i.

    Parameters
    ----------
    weights : array
        The comparator u.
    gradient_norms : array of the same shape
        S_i = sqrt(sum_t (g_t x_{t,i})^2) after the last round.

    Returns
    -------
    array
        eta_i = |u_i| / S_i; 0 where S_i is 0, where no rate makes a difference.

    Examples
    --------
    >>> oracle_rates([3.0, -1.0, 0.0], [2.0, 4.0, 0.0])
    array([1.5 , 0.25, 0.  ])
    """
    sizes, norms = np.broadcast_arrays(np.abs(np.asarray(weights, np.float64)), np.asarray(gradient_norms, np.float64))
    with np.errstate(over="ignore"):
        rates = np.divide(sizes, norms, out=np.zeros(sizes.shape), where=norms > 0.0)
    return np.minimum(rates, CEILING)


def _checked_rates(rates: ArrayLike, n_outputs: int) -> np.ndarray:
    """Rates (d, K) from rates (d,) or (d, K)."""
    array = np.asarray(rates, np.float64)
    columns = array[:, None] if array.ndim == 1 else array
    if columns.ndim != 2 or columns.shape[1] not in (1, n_outputs):
        raise ModelError(
            f"rates have shape {array.shape}; give one a feature, the constant's first, or one a feature and output "
            f"(of {n_outputs})"
        )
    if not (columns >= 0.0).all() or not np.isfinite(columns).all():
        raise ModelError("a rate is negative or not a finite number; rates must be numbers of at least 0")
    return np.minimum(columns, CEILING)

"""What every learner in a kernel's space obeys, and the loop over rows that teaches one.

A learner's function is f_t = factor_t * sum_i c_i k(x_i, .), one for each output. In a round it sees the value of the
sum at the row, and answers with the coefficient of the row itself. Shrinking, and PiSTOL's exponential, are the factor,
so no round touches earlier coefficients. States are NamedTuples of arrays that change in place, as for linear learners
(:mod:`tunefree.learners.contract`).

A learner has a class method ``create(n_outputs, **settings)``, and bodies for :func:`begin_round`, :func:`factor` and
:func:`coefficient`. The other functions have defaults.

The weighted average of f_1, f_2, .. costs a number a coefficient: with W_t the sum of the factors (times the rounds'
weights) up to round t, coefficient c of round s contributes c (W_T - W_s), so that of x_i is c_i W_T less the sum of
its c W_s, its lag.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import compiled
from tunefree.core.generic import generic, generic_with_default
from tunefree.core.numbers import bounded, finite
from tunefree.learners.contract import Scale
from tunefree.losses.kinds import arrays_of
from tunefree.losses.loops import Loop
from tunefree.losses.regression import Regression


@generic
def begin_round(state: Any, own: float, scale: Scale) -> None:
    """A row comes, of which ``own`` is the kernel value with itself; nothing is known yet of its target."""
    raise TypeError(f"{type(state).__name__} is not a kernel learner")


@generic
def factor(state: Any, k: int) -> float:
    """What the sum for output ``k`` is multiplied by."""
    raise TypeError(f"{type(state).__name__} is not a kernel learner")


@generic
def coefficient(state: Any, k: int, gradient: float, value: float, own: float) -> float:
    """Learn from the gradient in margin ``k`` at a row where the sum has a value; returns the row's coefficient."""
    raise TypeError(f"{type(state).__name__} is not a kernel learner")


@generic_with_default
def share(state):
    """The weight of the present function in the average, a row's weight apart; all the same by default."""
    return 1.0


@generic_with_default
def share_to_come(state):
    """The weight in the average of the function after the last round; by default 0, which leaves it out."""
    return 0.0


@generic_with_default
def heeded(state, objective):
    """The objective as the learner wants it, with slopes clipped at the steepest before or not; by default as it is."""
    return objective


@generic_with_default
def with_kernel_bound(state, objective, largest, average):
    """The state once the largest k(x, x) of the first rows is known, and whether averages are asked for.

    By default a learner does not ask for them.
    """
    return state


@generic_with_default
def give_up(state):
    """Factors (K,) so small that they are to be taken into the coefficients; the state then has them no more.

    None, the default, if there are none.
    """
    return


def astray_by(objective: Any) -> float:
    """The Lipschitz constant that slopes were divided by, if they are not those at the predictions, or else infinity.

    In regression slopes are taken at the margin plus the mean that includes the target, see the objective.
    """
    return objective.loss.lipschitz if isinstance(objective, Regression) else math.inf


class Record(NamedTuple):
    """What a learner's certificate is made of; all in place, over the rows counted.

    No row is counted once ``norms`` are set: the learner's sums are then not those of the rows counted any more.
    """

    loss: np.ndarray  # () sum of h l
    inner: np.ndarray  # () sum of h s f, s the slopes of the loss as it is
    squares: np.ndarray  # () sum of h |s|^2 / (2 smoothness)
    weight: np.ndarray  # () sum of h
    rounds: np.ndarray  # ()
    norms: np.ndarray  # (K,) squared norms of the sums of slopes when the pass was over; -1 before
    deviation: np.ndarray  # () sum of h |s - s'| ||k(x, .)||, s' the slopes that the learner was given
    paths: np.ndarray  # (K,) sums of h |s'| ||k(x, .)|| over the Lipschitz constant when the pass was over; -1 before

    @classmethod
    def create(cls, n_outputs: int) -> Record:
        """Of no rows."""
        loss, inner, squares, weight, rounds, deviation = (np.zeros(()) for _ in range(6))
        norms, paths = np.full(n_outputs, -1.0), np.full(n_outputs, -1.0)
        return cls(loss, inner, squares, weight, rounds, norms, deviation, paths)


class Average(NamedTuple):
    """The clocks of a learner's average."""

    clocks: np.ndarray  # (K,) W: sum of factors times shares times weights, in place
    shares: np.ndarray  # () sum of shares times weights, in place
    rounds: np.ndarray  # () since the average began, in place
    growth: float  # by how much a round counts more than the one before, in units of the first

    @classmethod
    def create(cls, n_outputs: int, growth: float = 0.0) -> Average:
        """Of no rounds."""
        return cls(np.zeros(n_outputs), np.zeros(()), np.zeros(()), growth)


@Loop
def _learn_rows(functions):
    scale_of, respond, differentiate = functions.scale_of, functions.respond, functions.differentiate
    loss_at, true_slope = functions.loss_at, functions.true_slope

    def rows(
        state,
        average,
        record,
        codes,
        numbers,
        constants,
        values,
        known,
        first,
        y,
        weight,
        evaluation_weight,
        coefficients,
        lags,
        predictions,
    ):
        n_outputs = len(coefficients)
        gradient, curvature = np.empty(n_outputs), np.empty(n_outputs)
        margins, sums = np.empty(n_outputs), np.empty(n_outputs)
        for i in range(len(y)):
            t, own = first + i, values[first + i, first + i]
            begin_round(state, own, scale_of(numbers, weight[i]))
            for k in range(n_outputs):
                sums[k] = known[t, k]
                for u in range(t):
                    sums[k] += coefficients[k, u] * values[t, u]
                margins[k] = bounded(sums[k] * factor(state, k))
            respond(codes, numbers, n_outputs, margins, predictions[i])
            if weight[i] > 0.0:
                differentiate(codes, numbers, y[i], weight[i], n_outputs, margins, gradient, curvature)
                part = bounded(share(state) * weight[i] * (1.0 + average.growth * average.rounds[()]))
                average.shares[()] = bounded(average.shares[()] + part)
                average.rounds[()] += 1.0
                for k in range(n_outputs):
                    average.clocks[k] = bounded(average.clocks[k] + factor(state, k) * part)
                    coefficients[k, t] = coefficient(state, k, gradient[k], sums[k], own)
                    lags[k, t] = coefficients[k, t] * average.clocks[k]
                if evaluation_weight[i] > 0.0 and record.norms.min() < 0.0:
                    slope_learned = gradient[0] / weight[i]
                    true_slope(codes, numbers, y[i], n_outputs, predictions[i], gradient)
                    loss = loss_at(codes, numbers, y[i], n_outputs, predictions[i])
                    note(record, constants, evaluation_weight[i], predictions[i], loss, gradient, slope_learned, own)

    return rows


def learn_rows(state: Any, average: Average, record: Any, objective: Any, *block: Any) -> Any:
    """Learn the rows of a block; returns the objective after them.

    Parameters
    ----------
    state, average, record : of the learner, change in place
    objective : objective
    *block
        ``values`` (BLOCK, BLOCK) of the kernel and ``known`` (BLOCK, K), the sums over the support; ``first``, the
        place of the first row in the block; targets, weights and evaluation weights (n,); ``coefficients`` and ``lags``
        (K, BLOCK), which are written; ``predictions`` (n, K), which are written.
    """
    arrays, constants = arrays_of(objective), (objective.smoothness, astray_by(objective))
    _learn_rows(state, average, record, *arrays, constants, *block)
    return arrays.restored(objective)


@compiled.inline
def note(record, constants, weight, predictions, loss, slopes, slope_learned, own):
    """Gather what certificates are made of; the learner's slope in the first margin was another in regression."""
    smooth, lipschitz = constants
    astray = abs(slopes[0] - slope_learned * lipschitz) if lipschitz < math.inf else 0.0
    record.deviation[()] = finite(record.deviation[()] + weight * astray * math.sqrt(own))
    inner, squares = 0.0, 0.0
    for k in range(len(predictions)):
        inner += slopes[k] * predictions[k]
        squares += slopes[k] * slopes[k]
    record.loss[()] = finite(record.loss[()] + weight * loss)
    record.inner[()] = finite(record.inner[()] + weight * inner)
    record.squares[()] = finite(record.squares[()] + weight * squares / (2.0 * smooth))
    record.weight[()] += weight
    record.rounds[()] += 1.0

"""What every learner in a kernel's space obeys, and the loop over rows that teaches one.

A learner's function is f_t = factor_t * sum_i c_i k(x_i, .), one for each output. In a round it sees the value of the
sum at the row, and answers with the coefficient of the row itself. Shrinking, and PiSTOL's exponential, are the factor,
so no round touches earlier coefficients. States are NamedTuples of arrays that change in place, as for linear learners
(:mod:`tunefree.learners.contract`).

A learner has a class method ``create(n_outputs, **settings)``, and bodies for :func:`begin_round`, :func:`factor` and
:func:`coefficient`, which are plain functions that are compiled. The other functions have defaults. The annotations of
its fields are ``PerOutput``, ``Single`` or ``float``.

The weighted average of f_1, f_2, .. costs a number a coefficient: with W_t the sum of the factors (times the rounds'
weights) up to round t, coefficient c of round s contributes c (W_T - W_s), so that of x_i is c_i W_T less the sum of
its c W_s, its lag.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Annotated, Any, NamedTuple

import numpy as np

from tunefree.core.kernels import Kernel
from tunefree.core.numbers import bounded, finite
from tunefree.kernel.learners import ALL
from tunefree.learners.contract import Scale
from tunefree.losses.kinds import arrays_of
from tunefree.losses.loops import Loop
from tunefree.losses.regression import Regression


@singledispatch
def begin_round(state: Any, squared_norm: float, scale: Scale) -> None:
    """A row x comes, of which k(x, x) is the squared norm; nothing is known yet of its target."""
    raise TypeError(f"{type(state).__name__} is not a kernel learner")


@singledispatch
def factor(state: Any, k: int) -> float:
    """What the sum for output ``k`` is multiplied by."""
    raise TypeError(f"{type(state).__name__} is not a kernel learner")


@singledispatch
def coefficient(state: Any, k: int, gradient: float, value: float, squared_norm: float) -> float:
    """Learn from the gradient in margin ``k`` at a row where the sum has a value; returns the row's coefficient."""
    raise TypeError(f"{type(state).__name__} is not a kernel learner")


@singledispatch
def share(state):
    """The weight of the present function in the average, a row's weight apart; all the same by default."""
    return 1.0


@singledispatch
def share_to_come(state):
    """The weight in the average of the function after the last round; by default 0, which leaves it out."""
    return 0.0


@singledispatch
def with_kernel_bound(state, objective, largest, average):
    """The state once the largest k(x, x) of the first rows is known, and whether averages are asked for.

    By default a learner does not ask for them.
    """
    return state


@singledispatch
def small_factors(state):
    """Factors (K,) so small that they are to be taken into the coefficients; the state then has them no more.

    None, the default, if there are none.
    """
    return


def lipschitz_of_shifted_slopes(objective: Any) -> float:
    """The Lipschitz constant that slopes were divided by, if they are not those at the predictions, or else infinity.

    In regression slopes are taken at the margin plus the mean that includes the target, see the objective.
    """
    return objective.loss.lipschitz if isinstance(objective, Regression) else math.inf


PerOutput = Annotated[np.ndarray, "float64[outputs]"]
Single = Annotated[np.ndarray, "float64[]"]


class Record(NamedTuple):
    """What a learner's certificate is made of; all in place, over the rows counted.

    No row is counted once ``norms`` are set: the learner's sums are then not those of the rows counted any more.
    """

    loss: Single  # sum of h l
    inner: Single  # sum of h s f, s the slopes of the loss as it is
    squares: Single  # sum of h |s|^2 / (2 smoothness)
    weight: Single  # sum of h
    rounds: Single
    norms: PerOutput  # squared norms of the sums of slopes when the pass was over; -1 before
    deviation: Single  # sum of h |s - s'| ||k(x, .)||, s' the slopes that the learner was given
    paths: PerOutput  # sums of h |s'| ||k(x, .)|| over the Lipschitz constant when the pass was over; -1 before

    @classmethod
    def create(cls, n_outputs: int) -> Record:
        """Of no rows."""
        loss, inner, squares, weight, rounds, deviation = (np.zeros(()) for _ in range(6))
        norms, paths = np.full(n_outputs, -1.0), np.full(n_outputs, -1.0)
        return cls(loss, inner, squares, weight, rounds, norms, deviation, paths)


class Average(NamedTuple):
    """The clocks of a learner's average."""

    clocks: PerOutput  # W: sum of factors times shares times weights, in place
    shares: Single  # sum of shares times weights, in place
    rounds: Single  # since the average began, in place
    growth: float  # by how much a round counts more than the one before, in units of the first

    @classmethod
    def create(cls, n_outputs: int, growth: float = 0.0) -> Average:
        """Of no rounds."""
        return cls(np.zeros(n_outputs), np.zeros(()), np.zeros(()), growth)


class Constants(NamedTuple):
    """What counting rows takes."""

    smoothness: float  # of the objective
    lipschitz: float  # see lipschitz_of_shifted_slopes
    is_counted: bool  # whether rows are


@Loop
def learning_of(learner, functions):
    """The loop over the rows of a block that a learner predicts and learns."""
    begin, predict, answer = begin_round.dispatch(learner), predicting_of(learner), answering_of(learner)
    scale_of, respond, differentiate = functions.scale_of, functions.respond, functions.differentiate
    count = counting_of(functions)

    def learn(
        state: Any,
        average: Average,
        record: Record,
        codes: Annotated[np.ndarray, "int64[2]"],
        numbers: Annotated[np.ndarray, "float64[facts]"],
        constants: Constants,
        values: Annotated[np.ndarray, "float64[block, block]"],
        known: Annotated[np.ndarray, "float64[block, outputs]"],
        first: int,
        targets: Annotated[np.ndarray, "float64[rows]"],
        weights: Annotated[np.ndarray, "float64[rows]"],
        evaluation_weights: Annotated[np.ndarray, "float64[rows]"],
        coefficients: Annotated[np.ndarray, "float64[outputs, block]"],
        lags: Annotated[np.ndarray, "float64[outputs, block]"],
        predictions: Annotated[np.ndarray, "float64[rows, outputs]"],
        scratch: Annotated[np.ndarray, "float64[4, outputs]"],
    ) -> None:
        n_outputs = len(coefficients)
        gradient, curvature, margins, sums = scratch[0], scratch[1], scratch[2], scratch[3]
        for i in range(len(targets)):
            t, y, weight = first + i, targets[i], weights[i]
            begin(state, values[t, t], scale_of(numbers, weight))
            predict(state, t, values[t], known[t], coefficients, sums, margins)
            respond(codes, numbers, n_outputs, margins, predictions[i])
            if weight > 0.0:
                differentiate(codes, numbers, y, weight, n_outputs, margins, gradient, curvature)
                answer(state, average, t, weight, gradient, sums, values[t, t], coefficients, lags)
                if constants.is_counted and evaluation_weights[i] > 0.0:
                    slope = gradient[0] / weight  # that was learned
                    of_row = evaluation_weights[i], predictions[i], slope, values[t, t], gradient
                    count(record, constants, codes, numbers, y, *of_row)

    return learn


def predicting_of(learner):
    """The function that writes the sums (K,) and margins (K,) at row t of a block."""
    factor_of = factor.dispatch(learner)

    def predict(state, t, values, known, coefficients, sums, margins):
        for k in range(len(sums)):
            total = known[k]
            for u in range(t):
                total += coefficients[k, u] * values[u]
            sums[k] = total
            margins[k] = bounded(total * factor_of(state, k))

    return predict


def answering_of(learner):
    """The function that writes coefficients and lags of row t, by the gradient there."""
    factor_of, share_of, coefficient_of = (
        factor.dispatch(learner),
        share.dispatch(learner),
        coefficient.dispatch(learner),
    )

    def answer(state, average, t, weight, gradient, sums, squared_norm, coefficients, lags):
        part = bounded(share_of(state) * weight * (1.0 + average.growth * average.rounds[()]))
        average.shares[()] = bounded(average.shares[()] + part)
        average.rounds[()] += 1.0
        for k in range(len(sums)):
            average.clocks[k] = bounded(average.clocks[k] + factor_of(state, k) * part)
            coefficients[k, t] = coefficient_of(state, k, gradient[k], sums[k], squared_norm)
            lags[k, t] = coefficients[k, t] * average.clocks[k]

    return answer


def counting_of(functions):
    """The function that adds a row to the record; ``slopes`` are written, those of the loss as it is."""
    true_slope, loss_at = functions.true_slope, functions.loss_at

    def count(record, constants, codes, numbers, y, weight, predictions, slope_learned, squared_norm, slopes):
        n_outputs = len(predictions)
        true_slope(codes, numbers, y, n_outputs, predictions, slopes)
        loss, lipschitz = loss_at(codes, numbers, y, n_outputs, predictions), constants.lipschitz
        deviation = abs(slopes[0] - slope_learned * lipschitz) if lipschitz < math.inf else 0.0
        record.deviation[()] = finite(record.deviation[()] + weight * deviation * math.sqrt(squared_norm))
        add_to(record, constants.smoothness, weight, predictions, loss, slopes)

    return count


def add_to(record, smoothness, weight, predictions, loss, slopes):
    """Gather what certificates are made of: predictions (K,), their loss and its slopes (K,)."""
    inner, squares = 0.0, 0.0
    for k in range(len(predictions)):
        inner += slopes[k] * predictions[k]
        squares += slopes[k] * slopes[k]
    record.loss[()] = finite(record.loss[()] + weight * loss)
    record.inner[()] = finite(record.inner[()] + weight * inner)
    record.squares[()] = finite(record.squares[()] + weight * squares / (2.0 * smoothness))
    record.weight[()] += weight
    record.rounds[()] += 1.0


def learning(learner: type) -> Kernel:
    """The kernel of a learner, for all losses that have a name by now."""
    name = f"learn.{learner.__module__}.{learner.__name__}".replace("tunefree.", "")
    return learning_of.kernel(learner, name=name, states={"state": learner})


def learn_rows(
    state: Any,
    average: Average,
    record: Record,
    objective: Any,
    values: np.ndarray,
    known: np.ndarray,
    first: int,
    targets: np.ndarray,
    weights: np.ndarray,
    evaluation_weights: np.ndarray,
    coefficients: np.ndarray,
    lags: np.ndarray,
    predictions: np.ndarray,
) -> Any:
    """Learn the rows of a block; returns the objective after them.

    Parameters
    ----------
    state, average, record
        Of the learner, change in place.
    objective : objective
    values : (BLOCK, BLOCK) array
        Of the kernel.
    known : (BLOCK, K) array
        The sums over the support.
    first : int
        The place of the first row in the block.
    targets, weights, evaluation_weights : (n,) arrays
    coefficients, lags : (K, BLOCK) arrays
        Of the rows, are written.
    predictions : (n, K) array
        Are written.
    """
    arrays, is_counted = arrays_of(objective), bool(record.norms.min() < 0.0)
    constants = Constants(float(objective.smoothness), lipschitz_of_shifted_slopes(objective), is_counted)
    of_rows = [np.ascontiguousarray(array, np.float64) for array in (targets, weights, evaluation_weights)]
    sums, scratch = np.ascontiguousarray(known), np.empty((4, len(coefficients)))
    written = coefficients, lags, predictions, scratch
    learning(type(state))(state, average, record, *arrays, constants, values, sums, first, *of_rows, *written)
    return arrays.restored(objective)


def all_kernels() -> list[Kernel]:
    """The kernels of the learners of the package."""
    return [learning(ALL[name]) for name in ALL]

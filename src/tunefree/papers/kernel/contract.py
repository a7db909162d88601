"""What every learner in a kernel's space obeys, and the loop over rows that trains one.

A learner's function is f_t = factor_t * sum_i c_i k(x_i, .), one for each output. In a round it sees the value of the
sum at the row, and answers with the coefficient of the row itself. Shrinking, and PiSTOL's exponential, are the factor,
so no round touches earlier coefficients.

A learner is a class that declares its fields, and a few plain functions, as for linear learners
(:mod:`tunefree.learners.contract`): they are compiled, and in Python they are methods of the state. It has no features:
the coefficients belong to the expansion (:mod:`tunefree.papers.kernel.expansion`), which several learners share.

The weighted average of f_1, f_2, .. costs a number a coefficient: with W_t the sum of the factors (times the rounds'
weights) up to round t, coefficient c of round s contributes c (W_T - W_s), so that of x_i is c_i W_T less the sum of
its c W_s, its lag.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from tunefree.core.fields import State, per_output, setting, single
from tunefree.core.kernels import Kernel
from tunefree.core.numbers import bounded
from tunefree.learners import ALL
from tunefree.learners.contract import Traits
from tunefree.losses.kinds import Functions
from tunefree.losses.loops import Loop
from tunefree.papers.kernel import NAMES

SMALLEST = math.log(1e2)  # a factor of which minus the logarithm is larger goes into the coefficients


class KernelLearner(State):
    """A learner: its fields, its traits, and the functions that follow.

    Parameters
    ----------
    n_features : int
        0.
    n_outputs : int
    **settings : float
        Fields that are settings, where they differ from their default.

    Examples
    --------
    >>> class FixedRate(KernelLearner):
    ...     eta = setting(0.5, "step size")
    ...     def coefficient(state, k, gradient, value, squared_norm):
    ...         return -state.eta[0] * gradient
    >>> float(FixedRate(0, eta=0.25).coefficient(0, -2.0, 0.0, 1.0))
    0.5
    """

    traits: ClassVar[Traits] = Traits()
    family: ClassVar[str] = "tunefree.papers.kernel.family:FAMILY"

    average_clocks = per_output("W: sum of factors times shares times weights")
    average_shares = single("sum of shares times weights since the average began")
    average_rounds = single("rounds since the average began")
    growth = setting(0.0, "by how much a round counts more in the average than the one before, in units of the first")

    gradient = per_output("of the round", is_saved=False)
    curvature = per_output("of the round", is_saved=False)
    margins = per_output("of the round", is_saved=False)
    sums = per_output("values of the sum in the round", is_saved=False)

    def begin_round(state, squared_norm, scale):
        """A row x comes, of which k(x, x) is the squared norm; nothing is known yet of its target."""

    def factor(state, k):
        """What the sum for output ``k`` is multiplied by; by default nothing."""
        return 1.0

    def coefficient(state, k, gradient, value, squared_norm):
        """Learn from the gradient in margin ``k`` at a row where the sum has a value; returns the row's coefficient."""
        raise NotImplementedError

    def share(state):
        """The weight of the present function in the average, a row's weight apart; all the same by default."""
        return 1.0

    def share_to_come(self) -> float:
        """The weight in the average of the function after the last round; by default 0, which leaves it out."""
        return 0.0

    def with_kernel_bound(self, objective: Any, largest: float, is_averaged: bool) -> Self:
        """The state once the largest k(x, x) of the first rows is known, and whether averages predict.

        By default a learner does not ask for them.
        """
        return self

    def with_settings(self, **settings: float) -> Self:
        """The same state with other settings."""
        other = copy.deepcopy(self)
        for name, value in settings.items():
            other[name][0] = value
        return other

    def take_small_factors(self) -> np.ndarray | None:
        """Factors (K,) so small that they are to be taken into the coefficients; the state then has them no more.

        None, the default, if there are none.
        """
        return None

    def restart_average(self) -> None:
        """Average from here on."""
        self.average_shares[0] = self.average_rounds[0] = 0.0

    def with_outputs(self, n_outputs: int, copies: bool) -> Self:
        """The same learner with more outputs.

        Where one output becomes several, it is that of class 1; whether that of class 0 ``copies`` it.
        """
        wider = self.grown(self.n_features, n_outputs, 1 if self.n_outputs == 1 < n_outputs else 0)
        if copies:
            for field in self.fields:
                if field.axes:
                    wider[field.name][0] = wider[field.name][1]
        return wider


def factors_of(decay: np.ndarray) -> np.ndarray | None:
    """The factors exp(-decay) (K,) once one of them is small, else None; the decays are then 0."""
    if decay.max() <= SMALLEST:
        return None
    factors = np.exp(-decay)
    decay[:] = 0.0
    return factors


def learning_of(learner: type[KernelLearner], functions: Functions) -> Callable[..., None]:
    """The loop over the rows of a block that a learner predicts and learns."""
    begin, predict, answer = learner.begin_round, predicting_of(learner), answering_of(learner)
    scale_of, respond, differentiate = functions.scale_of, functions.respond, functions.differentiate

    def learn(
        state: Any,
        codes: Annotated[np.ndarray, "int64[2]"],
        numbers: Annotated[np.ndarray, "float64[facts]"],
        values: Annotated[np.ndarray, "float64[block, block]"],
        known: Annotated[np.ndarray, "float64[block, outputs]"],
        first: int,
        targets: Annotated[np.ndarray, "float64[rows]"],
        weights: Annotated[np.ndarray, "float64[rows]"],
        coefficients: Annotated[np.ndarray, "float64[outputs, block]"],
        lags: Annotated[np.ndarray, "float64[outputs, block]"],
        predictions: Annotated[np.ndarray, "float64[rows, outputs]"],
    ) -> None:
        """Learn the rows of a block from the ``first`` on; writes coefficients, lags and predictions.

        ``values`` are those of the kernel, and ``known`` the sums over the support.
        """
        n_outputs, gradient, margins = len(coefficients), state.gradient, state.margins
        for i in range(len(targets)):
            t, y, weight = first + i, targets[i], weights[i]
            begin(state, values[t, t], scale_of(numbers, weight))
            predict(state, t, values[t], known[t], coefficients)
            respond(codes, numbers, n_outputs, margins, predictions[i])
            if weight > 0.0:
                differentiate(codes, numbers, y, weight, n_outputs, margins, gradient, state.curvature)
                answer(state, t, weight, values[t, t], coefficients, lags)

    return learn


def predicting_of(learner: type[KernelLearner]) -> Callable[..., None]:
    """The function that writes the sums (K,) and margins (K,) at row t of a block."""
    factor = learner.factor

    def predict(state, t, values, known, coefficients):
        for k in range(len(coefficients)):
            total = known[k]
            for u in range(t):
                total += coefficients[k, u] * values[u]
            state.sums[k] = total
            state.margins[k] = bounded(total * factor(state, k))

    return predict


def answering_of(learner: type[KernelLearner]) -> Callable[..., None]:
    """The function that writes coefficients and lags of row t, by the gradient there."""
    factor, share, coefficient = learner.factor, learner.share, learner.coefficient

    def answer(state, t, weight, squared_norm, coefficients, lags):
        part = bounded(share(state) * weight * (1.0 + state.growth[0] * state.average_rounds[0]))
        state.average_shares[0] = bounded(state.average_shares[0] + part)
        state.average_rounds[0] += 1.0
        for k in range(len(coefficients)):
            state.average_clocks[k] = bounded(state.average_clocks[k] + factor(state, k) * part)
            coefficients[k, t] = coefficient(state, k, state.gradient[k], state.sums[k], squared_norm)
            lags[k, t] = coefficients[k, t] * state.average_clocks[k]

    return answer


LEARNING = Loop(learning_of)


def learning(learner: type[KernelLearner], has_one_output: bool) -> Kernel:
    """The kernel of a learner, of one output or of several, for all losses that have a name by now."""
    kind = f"{learner.__module__}.{learner.__name__}".removeprefix("tunefree.")
    name = f"learn.{kind}.{'one' if has_one_output else 'several'}"
    lengths = {"padded": 1, "outputs": 1} if has_one_output else {}
    return LEARNING.kernel(learner, name=name, states={"state": learner}, lengths=lengths)


def all_kernels() -> list[Kernel]:
    """The kernels of the learners of the package."""
    return [learning(ALL[name], has_one_output) for name in NAMES for has_one_output in (True, False)]

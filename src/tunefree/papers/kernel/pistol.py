"""PiSTOL in a kernel's space.

Orabona: Simultaneous model selection and optimization through parameter-free stochastic learning (NIPS 2014),
Algorithm 3.

    f_t = g_{t-1} (b / alpha_{t-1}) exp(||g_{t-1}||^2 / (2 alpha_{t-1}))
    g_t = g_{t-1} - s_t k(x_t, .),   alpha_t = alpha_{t-1} + a |s_t| ||k(x_t, .)||,   alpha_0 = a L

One value g_{t-1}(x_t) gives both the prediction and the norm, ||g_t||^2 = ||g_{t-1}||^2 - 2 s_t g_{t-1}(x_t) +
s_t^2 k(x_t, x_t). The paper assumes k(x, x) <= 1; here M = max bound_t ||k(x_t, .)|| takes the place of L, as for the
linear learner (:mod:`tunefree.papers.learners.pistol`), and slopes come divided by the loss's Lipschitz constant: a and
b are the paper's a / L and b / L.

The paper's experiments set b = sqrt(2 a L T) for T rounds. Where T is not known b grows as sqrt(2 a L t): that only
multiplies f_t by a slowly growing number.

The coefficients of g belong to the expansion (:mod:`tunefree.papers.kernel.expansion`), which several learners share;
f_t is g times a factor, so that no round touches earlier coefficients. The average of f_1, f_2, .. costs a number a
coefficient: with W_t the sum of the factors times sample weights up to round t, coefficient c of round s contributes
c (W_T - W_s), so that of x_i is c_i W_T less the sum of its c W_s, its lag.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from tunefree.compiled.functions import Compiled
from tunefree.core.fields import State, per_output, setting, single
from tunefree.core.numbers import CEILING, LARGEST, bounded
from tunefree.learners.contract import Traits
from tunefree.losses.functions import Functions, Loop
from tunefree.papers.learners.pistol import factor_of


class KernelPiSTOL(State):
    """PiSTOL (Algorithm 3), a copy for each output; the defaults are the paper's in its experiments, where L = 2.

    Parameters
    ----------
    n_features : int
        0: the coefficients are not of features.
    n_outputs : int
    **settings : float
        Fields that are settings, where they differ from their default.
    """

    traits: ClassVar[Traits] = Traits()
    family: ClassVar[str] = "tunefree.papers.kernel.family:FAMILY"

    norms = per_output("||g||^2")
    slopes = per_output("sum of |s| ||k(x, .)||")
    largest = single("M")
    first = single("M after the first row that was learned; 0 before it")
    rounds = single("t")
    margin = single("scale.margin of the latest round", start=1.0)
    a = setting(0.125, "the theory asks for at least 2.25")
    b = setting(0.0, "in units of scale.margin; 0 for one that grows with the rounds")

    average_clocks = per_output("W: sum of factors times weights")
    average_weight = single("sum of weights since the average began")

    gradient = per_output("of the round", is_saved=False)
    curvature = per_output("of the round", is_saved=False)
    margins = per_output("of the round", is_saved=False)
    sums = per_output("g_{t-1}(x_t) in the round", is_saved=False)

    def begin_round(state, squared_norm, scale):
        """A row x comes, of which k(x, x) is the squared norm; nothing is known yet of its target."""
        state.margin[0] = scale.margin
        if scale.weight > 0.0:
            state.rounds[0] += 1.0
            size = min(scale.slope * math.sqrt(squared_norm), CEILING)
            if state.largest[0] == 0.0:
                state.first[0] = size
            state.largest[0] = max(state.largest[0], size)

    def coefficient(state, k, gradient, value, squared_norm):
        """Learn from the gradient in margin ``k`` at a row where g has a value; returns the row's coefficient."""
        change = gradient * (gradient * squared_norm - 2.0 * value)
        state.norms[k] = min(max(state.norms[k] + change, 0.0), LARGEST)
        state.slopes[k] = min(state.slopes[k] + abs(gradient) * math.sqrt(squared_norm), CEILING)
        return bounded(-gradient)

    def with_outputs(self, n_outputs: int, copies: bool) -> Self:
        """The same learner with more outputs.

        Where one output becomes several, it becomes the output of class 1; ``copies``: the output of class 0 is a copy.
        """
        wider = self.grown(self.n_features, n_outputs, 1 if self.n_outputs == 1 < n_outputs else 0)
        if copies:
            for field in self.fields:
                if field.axes:
                    wider[field.name][0] = wider[field.name][1]
        return wider


def write_margins(state, values, known, coefficients, t):
    """Write g_{t-1}(x_t) and f_t(x_t) at row t of a block, from the rows before in it and sums over the support."""
    for k in range(len(coefficients)):
        total = known[k]
        for u in range(t):
            total += coefficients[k, u] * values[u]
        state.sums[k], state.margins[k] = total, bounded(total * factor_of(state, k))


@Loop
def learning_of(functions: Functions) -> Callable[..., None]:
    """The loop over the rows of a block that a learner predicts and learns."""
    begin, coefficient = KernelPiSTOL.begin_round, KernelPiSTOL.coefficient
    scale_of, respond, differentiate = functions.scale_of, functions.respond, functions.differentiate

    def learn(
        state: Any,
        codes: Annotated[np.ndarray, "int64[2]"],
        numbers: Annotated[np.ndarray, "float64[facts]"],
        values: Annotated[np.ndarray, "float64[rows, block]"],
        known: Annotated[np.ndarray, "float64[rows, outputs]"],
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
        n_outputs, margins = len(coefficients), state.margins
        for i in range(len(targets)):
            t, y, weight = first + i, targets[i], weights[i]
            begin(state, values[i, t], scale_of(numbers, weight))
            write_margins(state, values[i], known[i], coefficients, t)
            respond(codes, numbers, n_outputs, margins, predictions[i])
            if weight > 0.0:
                differentiate(codes, numbers, y, weight, n_outputs, margins, state.gradient, state.curvature)
                state.average_weight[0] = bounded(state.average_weight[0] + weight)
                for k in range(n_outputs):
                    clock = bounded(state.average_clocks[k] + factor_of(state, k) * weight)
                    state.average_clocks[k] = clock
                    coefficients[k, t] = coefficient(state, k, state.gradient[k], state.sums[k], values[i, t])
                    lags[k, t] = coefficients[k, t] * clock

    return learn


def learning(has_one_output: bool) -> Compiled:
    """The compiled function of the loop, of one output or of several, for all losses that have a name by now."""
    lengths = {"padded": 1, "outputs": 1} if has_one_output else {}
    name = f"learn.papers.kernel.pistol.{'one' if has_one_output else 'several'}"
    return learning_of.compiled(name=name, states={"state": KernelPiSTOL}, lengths=lengths)


def all_compiled() -> list[Compiled]:
    """The compiled functions of this module."""
    return [learning(has_one_output) for has_one_output in (True, False)]

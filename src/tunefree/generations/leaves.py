"""Living leaves: online learners add corrections, which start at zero, on the leaves that a row reaches.

The prediction is the prediction of the trees plus the sum of the weights of the row's leaves, one in each tree. Nothing
is replayed: a learner gets each row after the growth of the trees once. Numbers are learned as residuals of the trees.
Margins of classes, and logarithms that are predicted, start at the prediction of the trees.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Annotated, Any

import numpy as np

from tunefree.compiled.functions import Call, Compiled
from tunefree.compiled.prefetching import LARGE
from tunefree.core.fields import FEATURE, OUTPUT, padded
from tunefree.core.numbers import LARGEST, MOST
from tunefree.core.part import FIXED, LEARNED, Part, array, child, number
from tunefree.core.schema import Number, Text
from tunefree.generations.leaf_learners import LEARNERS, LeafLearner
from tunefree.learners.contract import Scale
from tunefree.learners.weights import read, reading
from tunefree.losses import loss_of
from tunefree.losses.contract import has_log_link
from tunefree.losses.functions import Functions, Loop
from tunefree.losses.numbers import MARGIN_OF_LOGARITHMS
from tunefree.losses.objectives import Objective

RATE = 2.0  # step size of NAG, which follows changes


@Loop
def following_of(learner: type[LeafLearner], functions: Functions) -> Callable[..., None]:
    """The loop in which a learner on leaves predicts and learns rows."""
    predict, update, fetch = learner.predict, learner.update, learner.fetch
    scale_of, respond, differentiate = functions.scale_of, functions.respond, functions.differentiate

    def follow(
        state: Any,
        codes: Annotated[np.ndarray, "int64[2]"],
        numbers: Annotated[np.ndarray, "float64[facts]"],
        is_large: bool,
        leaves: Annotated[np.ndarray, "uint32[rows, trees]"],
        offsets: Annotated[np.ndarray, "float64[rows, outputs]"],
        targets: Annotated[np.ndarray, "float64[rows]"],
        weights: Annotated[np.ndarray, "float64[rows]"],
        predictions: Annotated[np.ndarray, "float64[rows, outputs]"],
        scratch: Annotated[np.ndarray, "float64[3, padded]"],
    ) -> None:
        margins, gradient, curvature, n_outputs = scratch[0], scratch[1], scratch[2], offsets.shape[1]
        for i in range(len(targets)):
            if is_large and i + 1 < len(targets):
                for t in range(leaves.shape[1]):
                    fetch(state, leaves[i + 1, t])
            # a row that is only predicted does not change the state
            scale = scale_of(numbers, weights[i]) if weights[i] > 0.0 else Scale(0.0, 0.0, 0.0)
            predict(state, leaves[i], scale, margins)
            for k in range(n_outputs):
                margins[k] += offsets[i, k]
            respond(codes, numbers, n_outputs, margins, predictions[i])
            if weights[i] > 0.0:
                differentiate(codes, numbers, targets[i], weights[i], n_outputs, margins, gradient, curvature)
                update(state, leaves[i], gradient, curvature)

    return follow


def following(learner: type[LeafLearner], has_one_output: bool) -> Compiled:
    """The compiled function of a learner on leaves, for all losses registered so far."""
    name = f"generations.leaves.follow.{learner.__name__}.{'one' if has_one_output else 'several'}"
    lengths = {"padded": 1, "outputs": 1} if has_one_output else {}
    return following_of.compiled(learner, name=name, states={"state": learner}, lengths=lengths)


def all_compiled() -> list[Compiled]:
    """The compiled functions of the learners on leaves."""
    kinds: Any = product((following, reading), LEARNERS.values(), (True, False))
    return [compiled(learner, has_one_output) for compiled, learner, has_one_output in kinds]


def log_probabilities(margins: np.ndarray, n_classes: int, rows: int) -> np.ndarray:
    """Log-probabilities (n, n_classes) of margins: one for two classes, or one for each class known to the member.

    The probability of an unknown class is 1 / (rows + n_classes), with the number of rows learned by the member.

    >>> np.exp(log_probabilities(np.array([[0.0]]), 3, 7)).round(3)
    array([[0.45, 0.45, 0.1 ]])
    """
    if margins.shape[1] == 1:
        with np.errstate(invalid="ignore"):  # NaN of a sleeping member stays NaN
            logs = np.concatenate([np.logaddexp(0.0, margins), np.logaddexp(0.0, -margins)], axis=1)
            np.negative(logs, out=logs)
    else:
        logs = margins - margins.max(axis=1, keepdims=True)
        logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    missing = n_classes - logs.shape[1]
    if missing > 0:
        unknown = 1.0 / (rows + n_classes)
        rest = np.full((len(logs), missing), np.log(unknown))
        logs = np.concatenate([logs + np.log1p(-missing * unknown), rest], axis=1)
    return logs


class LivingLeaves(Part):
    """A learner, with settings, on the leaves of some trees; learning changes its objective."""

    learner = number(FIXED, Text(tuple(LEARNERS)))
    objective = child(Objective, LEARNED)
    state = child(lambda header, *_: LEARNERS[header["learner"]], LEARNED, axes={FEATURE: "leaves", OUTPUT: "outputs"})

    def __init__(
        self, learner: str, settings: dict[str, float], n_leaves: int, n_outputs: int, objective: Objective
    ) -> None:
        self.objective, self.learner = objective, learner
        self.state = LEARNERS[learner](n_leaves, n_outputs, **settings)

    @property
    def predicts_rest(self) -> bool:
        """Whether targets are replaced by the residuals of the trees."""
        return self.objective.task == "regression" and not has_log_link(self.objective.loss)

    def values(self, n_leaves: int) -> np.ndarray:
        """The correction (n_leaves, K) of each leaf alone."""
        leaves, zeros = np.arange(n_leaves, dtype=np.int32)[:, None], np.zeros(n_leaves)
        offsets, corrections = np.zeros((2, n_leaves, self.state.n_outputs))
        follow, *arguments = self.call_on(leaves, offsets, zeros, zeros, corrections)
        follow(*arguments)
        return corrections

    def call_on(self, leaves: np.ndarray, *rows: np.ndarray) -> Call:
        """The call that predicts and learns rows: offsets (n, K), targets and weights (n,), and predictions (n, K)."""
        codes, scratch = leaves.view(np.uint32), np.zeros((3, padded(self.state.n_outputs)))
        follow = following(type(self.state), self.state.n_outputs == 1)
        is_large = self.state.nbytes > LARGE
        return follow, self.state, *self.objective.arrays, is_large, codes, *rows, scratch

    def relative_weights(self) -> tuple[np.ndarray, float]:
        """The weights of leaves (n_leaves, K) relative to the largest, empty if all are 0; and the largest."""
        weights, units = read(self.state)
        weights = np.divide(weights, units[:, None], out=np.zeros_like(weights), where=units[:, None] > 0.0)
        largest = float(np.abs(weights).max(initial=0.0))
        return weights / largest if largest > 0.0 else weights[:0], largest

    def frozen(self) -> FrozenLeaves:
        """A copy of the leaves that no longer learns."""
        levels, largest = self.relative_weights()
        return FrozenLeaves(self.objective.copied(), levels.astype(np.float16), largest)

    def add_class(self, n_classes: int) -> None:
        """Add an output, whose weights start at 0."""
        n_before = self.state.n_outputs
        first = 1 if n_before == 1 else 0
        self.state = self.state.with_outputs(n_classes, first, mirrors=first == 1)
        self.objective = objective_of(n_classes, None)


def finite_sum(margins: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Sums of margins, clipped to the range of finite numbers."""
    with np.errstate(over="ignore"):
        return np.clip(margins + others, -MOST, MOST)


class FrozenLeaves(Part):
    """Fixed weights of leaves: levels (n_leaves, K) relative to the largest weight, empty if all weights are 0."""

    objective = child(Objective, FIXED)
    levels = array("float32|float16", ("leaves", "outputs"), FIXED)
    largest = number(FIXED, Number(0))

    def __init__(self, objective: Objective, levels: np.ndarray, largest: float) -> None:
        self.objective, self.levels, self.largest = objective, levels.astype(np.float32), largest

    def values(self, n_leaves: int) -> np.ndarray:
        """The correction (n_leaves, K) of each leaf alone."""
        sums = np.zeros((n_leaves, self.levels.shape[1]))
        sums[: len(self.levels)] = self.levels
        return self.objective.predictions_of(sums * self.largest)

    def corrected(self, margins: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """Predictions (n, K): the margins of the trees, corrected by the sums of the weights of leaves."""
        return finite_sum(margins, self.objective.predictions_of(sums * self.largest))

    def frozen(self) -> FrozenLeaves:
        """These leaves, which are frozen already."""
        return self


def objective_of(n_classes: int, loss: Any) -> Objective:
    """The objective of a task: classes have log-loss, numbers (``n_classes`` 0) the loss given.

    With a logarithmic link nothing is added to the margins.
    """
    if n_classes > 0:
        return Objective("classification", loss_of("classification", None) if n_classes <= 2 else None)
    objective = Objective("regression", loss)
    if has_log_link(loss):
        objective.unit, objective.margin, objective.mass = 1.0, MARGIN_OF_LOGARITHMS / 16.0, LARGEST
    return objective


def learners_of(wealth: float) -> list[tuple[str, dict[str, float]]]:
    """The learners on leaves, with their settings, for an initial wealth per unit of margin; none if it is 0."""
    return [("scinol2", {"epsilon": wealth}), ("nag", {"eta": RATE})] if wealth > 0.0 else []

"""Kinds of objectives as numbered cases of a switch, over the switches of the losses.

Loops over rows take an objective as two arrays (:mod:`tunefree.losses.places`). The plain functions that they call, of
:func:`functions_over`, have kinds of objectives and losses as cases. So a loop is compiled once for all of them. A loss
that gets a name later is one more case, for which loops are compiled again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np

from tunefree.compiled.functions import Compiled
from tunefree.core.numbers import clip, finite
from tunefree.core.part import LEARNED, Part, argument, number, scratch
from tunefree.core.schema import Mapping, Number
from tunefree.losses.contract import has_log_link
from tunefree.losses.labels import Binary, OneAgainstAll
from tunefree.losses.multinomial import (
    Multinomial,
    differentiate_multinomial,
    multinomial_loss,
    write_multinomial_slopes,
)
from tunefree.losses.places import (
    IS_LOG,
    KIND,
    LARGEST_SLOPE,
    LIPSCHITZ,
    LOSS,
    MARGIN,
    N_NUMBERS,
    PLACES,
    STEEPEST,
    in_lipschitz_constants,
    scale_of,
    slope_bound,
)
from tunefree.losses.regression import Regression, in_grains, number_in_link, observe, prediction_of
from tunefree.losses.switch import loss_classes, number_of, switch

KINDS: Any = (Binary, OneAgainstAll, Multinomial, Regression)
BINARY, ONE_AGAINST_ALL, MULTINOMIAL, REGRESSION = range(len(KINDS))


class Arrays(NamedTuple):
    """An objective as loops over rows take it."""

    codes: np.ndarray  # (2,) int64: the numbers of its kind and of its loss
    numbers: np.ndarray  # changed in place

    def restored(self, objective: Any) -> Any:
        """The objective that these are the arrays of, with the numbers as they are now."""
        places, numbers = _places_of(objective._fields), self.numbers.tolist()
        return objective._replace(**{name: numbers[place] for name, place in places})


@cache
def _places_of(fields: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """Those of the fields of an objective that have places among its numbers, and these places."""
    return tuple((name, place) for name, place in PLACES.items() if name in fields)


def arrays_of(objective: Any) -> Arrays:
    """An objective as two arrays.

    Examples
    --------
    >>> from tunefree.losses import huber
    >>> arrays_of(Binary(huber(0.5), 0.25)).codes
    array([0, 9])
    """
    numbers = np.zeros(N_NUMBERS + len(objective.loss or ()))
    numbers[MARGIN] = numbers[LIPSCHITZ] = 1.0
    for name, place in _places_of(objective._fields):
        numbers[place] = getattr(objective, name)
    code = 0
    if objective.loss is not None:
        code = number_of(objective.loss)
        numbers[LIPSCHITZ], numbers[N_NUMBERS:] = objective.loss.lipschitz, objective.loss
        numbers[IS_LOG] = has_log_link(objective.loss)
    return Arrays(np.array([KINDS.index(type(objective)), code]), numbers)


def numbers_of(objective: Any) -> dict[str, float]:
    """The numbers of an objective, without its loss."""
    return {name: value for name, value in objective._asdict().items() if name != "loss"}


def _take_over(part: Any, numbers: dict[str, float]) -> None:
    part.objective = part.objective._replace(**numbers)


def objective_numbers() -> Any:
    """A field of a part: the numbers of its attribute ``objective``, which has its loss from elsewhere."""
    return number(LEARNED, Mapping(Number()), lambda part: numbers_of(part.objective), _take_over)


class HasObjective(Part):
    """What learns with an objective, which it keeps as arrays that loops over rows change."""

    _objective = argument()  # whose numbers may have changed since
    arrays: Any = scratch(lambda part: arrays_of(part._objective))
    objective_numbers = objective_numbers()

    @property
    def objective(self) -> Any:
        """As it is now."""
        return self.arrays.restored(self._objective)

    @objective.setter
    def objective(self, objective: Any) -> None:
        arrays, self._objective = arrays_of(objective), objective
        if "arrays" in vars(self) and len(self.arrays.numbers) == len(arrays.numbers):
            for before, array in zip(self.arrays, arrays, strict=True):
                before[:] = array  # where they are, since programs have their addresses
        else:
            self.arrays = arrays


def respond(codes, numbers, n_outputs, margins, predictions):
    """Write the predictions (K,) that margins (K,) stand for."""
    for k in range(n_outputs):
        predictions[k] = prediction_of(numbers, margins[k]) if codes[KIND] == REGRESSION else margins[k]


class Functions(NamedTuple):
    """Plain functions of an objective's arrays that have all losses as cases; K is ``n_outputs``.

    Arrays of an output may be longer than K, and what lies beyond is neither read nor written.
    """

    scale_of: Any  # (numbers, weight): what is known of a round of this sample weight before its target
    respond: Any  # (codes, numbers, K, margins, predictions): write the predictions, of which the loss is a function,
    #   that a learner's margins stand for
    differentiate: Any  # (codes, numbers, y, weight, K, margins, gradient, curvatures): write the last two, in which
    #   the derivatives are multiplied by the sample weight and divided by the loss's Lipschitz constant, if it has one;
    #   no part of the gradient is larger than the slope of scale_of
    loss_at: Any  # (codes, numbers, y, K, predictions): the loss
    true_slope: Any  # (codes, numbers, y, K, predictions, slopes): write a subgradient of loss_at, neither divided by
    #   the Lipschitz constant nor clipped nor multiplied by the sample weight
    left_slope: Any  # (codes, numbers, y, K, predictions, slopes): write the left derivative in each prediction
    value_of: Any  # (loss, numbers, y, prediction): the value of the loss of a number
    slope_of: Any  # of the same: its slope
    curvature_of: Any  # of the same: its curvature


@cache
def functions_over(classes: tuple[type, ...]) -> Functions:
    """The functions of objectives over some classes of losses."""
    value, slope, curvature, left_slope = (
        switch(name, classes) for name in ("value", "slope", "curvature", "left_slope")
    )
    slopes = writer_of_slopes(slope), writer_of_slopes(left_slope)
    of_objectives = differentiator(slope, curvature), loss_function(value), *slopes
    return Functions(scale_of, respond, *of_objectives, value, slope, curvature)


@cache
def compiled_over(classes: tuple[type, ...]) -> tuple[Compiled, ...]:
    """Those of these functions that have all losses as cases, as compiled functions: loops over rows call their machine
    code."""
    functions = functions_over(classes)
    names = "differentiate", "loss_at", "true_slope", "left_slope", "value_of", "slope_of", "curvature_of"
    return tuple(Compiled(getattr(functions, name), f"losses.{name}") for name in names)


def all_compiled() -> list[Compiled]:
    """The compiled functions of the losses of the package."""
    return [*compiled_over(loss_classes())]


def differentiator(slope: Callable[..., float], curvature: Callable[..., float]) -> Callable[..., None]:
    """:attr:`Functions.differentiate` from the switches over losses."""

    def differentiate(
        codes: Annotated[np.ndarray, "int64[2]"],
        numbers: Annotated[np.ndarray, "float64[facts]"],
        y: float,
        weight: float,
        n_outputs: int,
        margins: Annotated[np.ndarray, "float64[outputs]"],
        gradient: Annotated[np.ndarray, "float64[outputs]"],
        curvatures: Annotated[np.ndarray, "float64[outputs]"],
    ) -> None:
        kind, loss = codes[KIND], codes[LOSS]
        if kind == MULTINOMIAL:
            differentiate_multinomial(y, weight, n_outputs, margins, gradient, curvatures)
            return
        if kind == REGRESSION:
            observe(numbers, y, weight)
        bound, steepest = slope_bound(numbers), numbers[STEEPEST]  # the bound of a round is that of earlier rounds
        for k in range(n_outputs):
            target = target_of(kind, y, k)
            prediction = number_in_link(numbers, margins[k]) if kind == REGRESSION else margins[k]
            steepness = in_lipschitz_constants(numbers, slope(loss, numbers, target, prediction))
            bend = in_lipschitz_constants(numbers, curvature(loss, numbers, target, prediction))
            if kind == REGRESSION:
                steepness, bend = in_grains(numbers, steepness, bend)
            gradient[k] = clip(weight * clip(steepness, bound), LARGEST_SLOPE)
            curvatures[k] = weight * bend if kind == BINARY else clip(weight * bend, LARGEST_SLOPE)
            steepest = max(steepest, abs(steepness))
        numbers[STEEPEST] = steepest

    return differentiate


def target_of(kind, y, k):
    """The target of the loss of margin k: y, or a label where a class is held against all others."""
    if kind == ONE_AGAINST_ALL:
        return 1.0 if k == y else -1.0
    return y


def loss_function(value: Callable[..., float]) -> Callable[..., float]:
    """:attr:`Functions.loss_at` from the switch over losses."""

    def loss_at(
        codes: Annotated[np.ndarray, "int64[2]"],
        numbers: Annotated[np.ndarray, "float64[facts]"],
        y: float,
        n_outputs: int,
        predictions: Annotated[np.ndarray, "float64[outputs]"],
    ) -> float:
        kind, loss = codes[KIND], codes[LOSS]
        if kind == MULTINOMIAL:
            return multinomial_loss(y, n_outputs, predictions)
        total = 0.0
        for k in range(n_outputs):
            total += value(loss, numbers, target_of(kind, y, k), predictions[k])
        return finite(total)

    return loss_at


def writer_of_slopes(slope: Callable[..., float]) -> Callable[..., None]:
    """:attr:`Functions.true_slope`, or the left one, from the switch over losses."""

    def write_slopes(
        codes: Annotated[np.ndarray, "int64[2]"],
        numbers: Annotated[np.ndarray, "float64[facts]"],
        y: float,
        n_outputs: int,
        predictions: Annotated[np.ndarray, "float64[outputs]"],
        slopes: Annotated[np.ndarray, "float64[slopes]"],
    ) -> None:
        kind, loss = codes[KIND], codes[LOSS]
        if kind == MULTINOMIAL:
            write_multinomial_slopes(y, n_outputs, predictions, slopes)
            return
        for k in range(n_outputs):
            slopes[k] = slope(loss, numbers, target_of(kind, y, k), predictions[k])

    return write_slopes

"""Loops over rows, and the functions of objectives that they call, with all losses as numbered cases.

A function of the losses is a chain of plain functions, each of which handles the number of one loss
(:func:`tunefree.losses.number_of`) and delegates other numbers to the next. So a loop over rows is compiled once for
all losses. Registering another loss adds a case, for which loops are recompiled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np

from tunefree.compiled.functions import Compiled
from tunefree.core.errors import ModelError
from tunefree.core.numbers import clip, finite
from tunefree.losses import loss_classes
from tunefree.losses.classification import differentiate_multinomial, multinomial_loss, write_multinomial_slopes
from tunefree.losses.numbers import (
    IS_REGRESSION,
    LARGEST_SLOPE,
    LOSS,
    N_NUMBERS,
    SOFTMAX,
    STEEPEST,
    in_grains,
    in_lipschitz_constants,
    number_in_link,
    observe,
    prediction_of,
    scale_of,
    slope_bound,
)


class Functions(NamedTuple):
    """Plain functions of an objective's arrays, with all losses as cases; K is ``n_outputs``.

    Arrays over outputs may be longer than K; the remainder is neither read nor written.
    """

    scale_of: Any  # (numbers, weight): the scale of a round with this sample weight, before its target is known
    respond: Any  # (codes, numbers, K, margins, predictions): convert the margins of a learner to predictions, the
    #   arguments of the loss
    differentiate: Any  # (codes, numbers, y, weight, K, margins, gradient, curvatures): write derivatives,
    #   multiplied by the sample weight and divided by the loss's Lipschitz constant, if it has one;
    #   no element of the gradient is larger than the slope of scale_of
    loss_at: Any  # (codes, numbers, y, K, predictions): the loss
    true_slope: Any  # (codes, numbers, y, K, predictions, slopes): write a subgradient of loss_at, neither divided by
    #   the Lipschitz constant nor clipped nor multiplied by the sample weight
    value_of: Any  # (loss, numbers, y, prediction): the value of the loss of a number
    slope_of: Any  # (loss, numbers, y, prediction): the slope
    curvature_of: Any  # (loss, numbers, y, prediction): the curvature


@cache
def functions_over(classes: tuple[type, ...]) -> Functions:
    """The functions of objectives for some classes of losses."""
    value, slope, curvature = (
        switch(classes, [body_of(name, cls) for cls in classes]) for name in ("value", "slope", "curvature")
    )
    derivatives = differentiator(slope, curvature)
    return Functions(
        scale_of, respond, derivatives, loss_function(value), writer_of_slopes(slope), value, slope, curvature
    )


@cache
def compiled_over(classes: tuple[type, ...]) -> tuple[Compiled, ...]:
    """The functions with all losses as cases, as compiled functions that compiled loops over rows call."""
    functions = functions_over(classes)
    names = "differentiate", "loss_at", "true_slope", "value_of", "slope_of", "curvature_of"
    return tuple(Compiled(getattr(functions, name), f"losses.{name}") for name in names)


def all_compiled() -> list[Compiled]:
    """The compiled functions of the losses of the package."""
    return [*compiled_over(loss_classes())]


def switch(classes: Sequence[type], bodies: Sequence[Callable[..., float]]) -> Callable[..., float]:
    """A plain function of (loss number, numbers, y, prediction) from the functions ``bodies`` of the losses."""
    chain: Callable[..., float] = no_loss
    for number, (cls, body) in reversed([*enumerate(zip(classes, bodies, strict=True))]):
        chain = case(number, cls, body, chain)
    return chain


def case(number: int, cls: Any, body: Callable[..., float], others: Callable[..., float]) -> Callable[..., float]:
    """A plain function that calls ``body`` for the loss with this number, and ``others`` for other numbers."""
    fields = fields_up_to(len(cls._fields))

    def this_or_other(
        loss: int, numbers: Annotated[np.ndarray, "float64[facts]"], y: float, prediction: float
    ) -> float:
        if loss == number:
            return body(cls(*fields(numbers)), y, prediction)
        return others(loss, numbers, y, prediction)

    return this_or_other


def no_loss(loss, numbers, y, prediction):
    """The branch after the last case: no loss has such a number."""
    return math.nan


def body_of(name: str, cls: type) -> Callable[..., float]:
    """The function of a loss class with this name in the contract."""
    body: Callable[..., float] | None = getattr(cls, name, None)
    if body is None:
        raise ModelError(f"the {cls.__name__} loss has no {name}")
    return body


@cache
def fields_up_to(count: int) -> Callable[[np.ndarray], tuple[float, ...]]:
    """A plain function that returns the first fields of a loss as a tuple, from the numbers of the objective.

    Compiled code only has tuples of fixed length, so each function adds a field to the tuple of the previous one.
    """
    if count == 0:
        return lambda numbers: ()
    place, earlier = N_NUMBERS + count - 1, fields_up_to(count - 1)

    def fields(numbers):
        return (*earlier(numbers), numbers[place])

    return fields


def target_of(y, n_outputs, k):
    """The target of the loss of margin k: y, or a label where one of several classes is held against all others."""
    if n_outputs > 1:
        return 1.0 if k == y else -1.0
    return y


def respond(codes, numbers, n_outputs, margins, predictions):
    """Write the predictions (K,) of margins (K,): numbers, or margins of classes."""
    for k in range(n_outputs):
        predictions[k] = prediction_of(numbers, margins[k]) if codes[IS_REGRESSION] else margins[k]


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
        is_regression, loss = codes[IS_REGRESSION], codes[LOSS]
        if loss == SOFTMAX:
            differentiate_multinomial(y, weight, n_outputs, margins, gradient, curvatures)
            return
        if is_regression:
            observe(numbers, y, weight)
        bound, steepest = slope_bound(numbers), numbers[STEEPEST]  # the bound depends on earlier rounds only
        for k in range(n_outputs):
            target = target_of(y, n_outputs, k)
            prediction = number_in_link(numbers, margins[k]) if is_regression else margins[k]
            steepness = in_lipschitz_constants(numbers, slope(loss, numbers, target, prediction))
            bend = in_lipschitz_constants(numbers, curvature(loss, numbers, target, prediction))
            if is_regression:
                steepness, bend = in_grains(numbers, steepness, bend)
            gradient[k] = clip(weight * clip(steepness, bound), LARGEST_SLOPE)
            curvatures[k] = clip(weight * bend, LARGEST_SLOPE)
            steepest = max(steepest, abs(steepness))
        numbers[STEEPEST] = steepest

    return differentiate


def loss_function(value: Callable[..., float]) -> Callable[..., float]:
    """:attr:`Functions.loss_at` from the switch over losses."""

    def loss_at(
        codes: Annotated[np.ndarray, "int64[2]"],
        numbers: Annotated[np.ndarray, "float64[facts]"],
        y: float,
        n_outputs: int,
        predictions: Annotated[np.ndarray, "float64[outputs]"],
    ) -> float:
        if codes[LOSS] == SOFTMAX:
            return multinomial_loss(y, n_outputs, predictions)
        total = 0.0
        for k in range(n_outputs):
            total += value(codes[LOSS], numbers, target_of(y, n_outputs, k), predictions[k])
        return finite(total)

    return loss_at


def writer_of_slopes(slope: Callable[..., float]) -> Callable[..., None]:
    """:attr:`Functions.true_slope` from the switch over losses."""

    def write_slopes(
        codes: Annotated[np.ndarray, "int64[2]"],
        numbers: Annotated[np.ndarray, "float64[facts]"],
        y: float,
        n_outputs: int,
        predictions: Annotated[np.ndarray, "float64[outputs]"],
        slopes: Annotated[np.ndarray, "float64[slopes]"],
    ) -> None:
        if codes[LOSS] == SOFTMAX:
            write_multinomial_slopes(y, n_outputs, predictions, slopes)
            return
        for k in range(n_outputs):
            slopes[k] = slope(codes[LOSS], numbers, target_of(y, n_outputs, k), predictions[k])

    return write_slopes


class Loop:
    """A loop over rows, compiled with all losses as cases; it is recompiled when a loss is registered.

    ``make`` creates the loop, a plain function with the annotations of a compiled function, from parts, such as the
    class of a learner, and finally the :class:`Functions`. :func:`tunefree.losses.objectives.measured` is an example.
    """

    def __init__(self, make: Callable[..., Callable[..., Any]]) -> None:
        self.make = make
        self._compiled: dict[tuple[Any, ...], Compiled] = {}

    def compiled(
        self,
        *parts: Any,
        name: str = "",
        states: Mapping[str, type[Any]] | None = None,
        lengths: Mapping[str, int] | None = None,
    ) -> Compiled:
        """The compiled function for some parts, see :class:`tunefree.compiled.functions.Compiled`."""
        key = loss_classes(), parts, tuple((lengths or {}).items())
        if key not in self._compiled:
            loop = self.make(*parts, functions_over(key[0]))
            self._compiled[key] = Compiled(loop, name, states, lengths, compiled_over(key[0]))
        return self._compiled[key]

    def __call__(self, *values: Any) -> Any:
        """Run a loop that has no parts."""
        return self.compiled()(*values)

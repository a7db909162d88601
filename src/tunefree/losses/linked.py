"""An objective as passes take it: numbers in an array, and the addresses of its functions.

Passes are so compiled once for all objectives; see :mod:`tunefree.core.addresses`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from tunefree.core import compiled
from tunefree.core.addresses import (
    COUNT,
    NOTHING,
    NUMBER,
    POINTER,
    addressed,
    array,
    classes_of,
    numbers_of,
    store,
    with_numbers,
)
from tunefree.learners.contract import Scale
from tunefree.losses.objectives import (
    differentiate,
    loss_at,
    respond,
    scale,
    true_slope,
)


class Linked(NamedTuple):
    """An objective; each function of objectives that is named here calls that of the objective linked."""

    numbers: np.ndarray  # all numbers in the objective, in place
    scale: Any  # the address of this function for the objective's class, as of the others
    differentiate: Any
    respond: Any
    loss_at: Any
    true_slope: Any


def _scale_of(restored: Any) -> Any:
    def scale_of(numbers, weight):
        return scale(restored(numbers), weight)

    return scale_of


def _differentiate_of(restored: Any) -> Any:
    def differentiate_of(numbers, y, weight, margins, gradient, curvature, n):
        found = array(margins, n), array(gradient, n), array(curvature, n)
        store(numbers, differentiate(restored(numbers), y, weight, *found))

    return differentiate_of


def _respond_of(restored: Any) -> Any:
    def respond_of(numbers, margins, n):
        respond(restored(numbers), array(margins, n))

    return respond_of


def _loss_of(restored: Any) -> Any:
    def loss_of(numbers, y, predictions, n):
        return loss_at(restored(numbers), y, array(predictions, n))

    return loss_of


def _true_slope_of(restored: Any) -> Any:
    def true_slope_of(numbers, y, predictions, slopes, n):
        true_slope(restored(numbers), y, array(predictions, n), array(slopes, n))

    return true_slope_of


_SCALE = types.NamedUniTuple(NUMBER, len(Scale._fields), Scale)
find_scale, call_scale = addressed(_scale_of, _SCALE, NUMBER)
find_differentiate, call_differentiate = addressed(
    _differentiate_of, NOTHING, NUMBER, NUMBER, POINTER, POINTER, POINTER, COUNT
)
find_respond, call_respond = addressed(_respond_of, NOTHING, POINTER, COUNT)
find_loss, call_loss = addressed(_loss_of, NUMBER, NUMBER, POINTER, COUNT)
find_true_slope, call_true_slope = addressed(_true_slope_of, NOTHING, NUMBER, POINTER, POINTER, COUNT)


@compiled.entry
def find_all(objective):
    return (
        find_scale(objective),
        find_differentiate(objective),
        find_respond(objective),
        find_loss(objective),
        find_true_slope(objective),
    )


_found: dict[Any, tuple[Any, ...]] = {}


def linked(objective: Any) -> Linked:
    """An objective for a pass; what the pass changes of it is in ``numbers``, see :func:`unlinked`.

    Examples
    --------
    >>> from tunefree.losses import Logistic, objectives
    >>> linked(objectives.Binary(Logistic(), 0.5)).numbers
    array([1.  , 0.25, 0.5 ])
    """
    numbers = np.array(numbers_of(objective), np.float64)
    if not compiled.IS_ON:  # then functions take the place of addresses, and hold the objective itself
        return Linked(numbers, *find_all(objective))
    classes = classes_of(objective)
    if classes not in _found:
        _found[classes] = find_all(objective)
    return Linked(numbers, *_found[classes])


def unlinked(objective: Any, after: Linked) -> Any:
    """The objective as a pass left it."""
    return with_numbers(objective, after.numbers)


@compiled.inline
def write_prediction(objective, margins, prediction):
    """The prediction (K,) that margins (K,), which stay as they are, stand for."""
    for k in range(len(margins)):
        prediction[k] = margins[k]
    respond(objective, prediction)


@scale.register(Linked)
def scale_linked(objective, weight):
    return call_scale(objective.scale, objective.numbers, (weight,))


@differentiate.register(Linked)
def differentiate_linked(objective, y, weight, margins, gradient, curvature):
    found = y, weight, margins, gradient, curvature, len(margins)
    call_differentiate(objective.differentiate, objective.numbers, found)
    return objective


@respond.register(Linked)
def respond_linked(objective, margins):
    call_respond(objective.respond, objective.numbers, (margins, len(margins)))


@loss_at.register(Linked)
def loss_at_linked(objective, y, predictions):
    return call_loss(objective.loss_at, objective.numbers, (y, predictions, len(predictions)))


@true_slope.register(Linked)
def true_slope_linked(objective, y, predictions, slopes):
    call_true_slope(objective.true_slope, objective.numbers, (y, predictions, slopes, len(slopes)))

"""Losses as numbered cases of a switch, so that a loop over rows is compiled once for all of them.

The number of a loss is the place of its class in the registry. A function of the losses becomes a chain of plain
functions, each of which answers for one number and else asks the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.losses import LOSSES
from tunefree.losses.contract import Loss
from tunefree.losses.places import N_NUMBERS


def loss_classes() -> tuple[type, ...]:
    """The classes of all losses that have a name, in the order of their numbers.

    Examples
    --------
    >>> [cls.__name__ for cls in loss_classes()][:3]
    ['Logistic', 'Hinge', 'SmoothedHinge']
    """
    return _classes_of(LOSSES.objects())


@cache
def _classes_of(factories: tuple[Callable[[], Any], ...]) -> tuple[type, ...]:
    return tuple(dict.fromkeys(type(factory()) for factory in factories))


def number_of(loss: Any) -> int:
    """The number of a loss.

    Raises
    ------
    ModelError
        If it has no name.

    Examples
    --------
    >>> from tunefree.losses import Hinge
    >>> number_of(Hinge())
    1
    """
    classes = loss_classes()
    if type(loss) not in classes:
        name = type(loss).__name__
        raise ModelError(f"{name} is not among the losses; give it a name with tunefree.losses.register")
    return classes.index(type(loss))


@cache
def fields_up_to(count: int) -> Callable[[np.ndarray], tuple[float, ...]]:
    """A plain function from the numbers of an objective to the first fields of its loss, as a tuple.

    Examples
    --------
    >>> fields_up_to(2)([0.0] * N_NUMBERS + [5.0, 6.0, 7.0])
    (5.0, 6.0)
    """
    if count == 0:
        return lambda numbers: ()
    place, earlier = N_NUMBERS + count - 1, fields_up_to(count - 1)

    def fields(numbers):
        return (*earlier(numbers), numbers[place])

    return fields


def body_of(name: str, cls: type) -> Callable[..., float]:
    """The function of a class of loss that has a name in the contract."""
    body: Callable[..., float] | None = getattr(cls, name, None)
    if body not in (None, getattr(Loss, name)):
        return body
    if name == "left_slope":
        return body_of("slope", cls)
    raise ModelError(f"the {cls.__name__} loss has no {name}")


def no_loss(loss, numbers, y, prediction):
    """What is after the last case: no loss has such a number."""
    return math.nan


def switch(name: str, classes: Sequence[type]) -> Callable[..., float]:
    """A function of the contract as a plain function (loss, numbers, y, prediction) of the number of a loss.

    It is called ``value``, ``slope``, ``curvature`` or ``left_slope``.

    Examples
    --------
    >>> numbers = [0.0] * N_NUMBERS + [0.5, 0.5, 1.0]  # the fields of a loss of Huber's
    >>> switch("value", loss_classes())(9, numbers, 0.0, 2.0)
    0.875
    """
    chain: Callable[..., float] = no_loss
    for number, cls in reversed([*enumerate(classes)]):
        chain = case(number, cls, body_of(name, cls), chain)
    return chain


def case(number: int, cls: Any, body: Callable[..., float], others: Callable[..., float]) -> Callable[..., float]:
    """A plain function that calls a body with the loss if it has a number, and else others."""
    fields = fields_up_to(len(cls._fields))

    def this_or_other(
        loss: int, numbers: Annotated[np.ndarray, "float64[facts]"], y: float, prediction: float
    ) -> float:
        if loss == number:
            return body(cls(*fields(numbers)), y, prediction)
        return others(loss, numbers, y, prediction)

    return this_or_other

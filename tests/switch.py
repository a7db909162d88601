"""One objective that stands for several: what is compiled for it serves them all.

Each pair of a learner and an objective is compiled on its own, which takes longer than most tests. A test that runs
many objectives runs this one, which calls, by a number, the same functions of the package. It is an objective from
outside the package, as a user may add.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tunefree import losses
from tunefree.core import code_cache
from tunefree.losses import curvature, objectives, slope, value


class AnyOf(NamedTuple):
    """A loss chosen by its number when it runs."""

    number: int  # which of the fields that follow
    lipschitz: float  # of the loss chosen
    smoothness: float  # of the loss chosen
    first: Any
    second: Any
    third: Any
    fourth: Any


@value.register(AnyOf)
def value_any(loss, y, prediction):
    if loss.number == 0:
        return value(loss.first, y, prediction)
    if loss.number == 1:
        return value(loss.second, y, prediction)
    if loss.number == 2:
        return value(loss.third, y, prediction)
    return value(loss.fourth, y, prediction)


@slope.register(AnyOf)
def slope_any(loss, y, prediction):
    if loss.number == 0:
        return slope(loss.first, y, prediction)
    if loss.number == 1:
        return slope(loss.second, y, prediction)
    if loss.number == 2:
        return slope(loss.third, y, prediction)
    return slope(loss.fourth, y, prediction)


@curvature.register(AnyOf)
def curvature_any(loss, y, prediction):
    if loss.number == 0:
        return curvature(loss.first, y, prediction)
    if loss.number == 1:
        return curvature(loss.second, y, prediction)
    if loss.number == 2:
        return curvature(loss.third, y, prediction)
    return curvature(loss.fourth, y, prediction)


class Several(NamedTuple):
    """An objective of K margins, chosen by its number when it runs."""

    number: int  # which of the fields that follow
    against: objectives.OneAgainstAll
    multinomial: objectives.Multinomial

    task = "classification"


@objectives.scale.register(Several)
def scale_several(objective, weight):
    if objective.number == 0:
        return objectives.scale(objective.against, weight)
    return objectives.scale(objective.multinomial, weight)


@objectives.differentiate.register(Several)
def differentiate_several(objective, y, weight, margins, gradient, curvature):
    against = objective.against
    if objective.number == 0:
        against = objectives.differentiate(against, y, weight, margins, gradient, curvature)
    else:
        objectives.differentiate(objective.multinomial, y, weight, margins, gradient, curvature)
    return Several(objective.number, against, objective.multinomial)


@objectives.respond.register(Several)
def respond_several(objective, margins):
    pass


@objectives.loss_at.register(Several)
def loss_at_several(objective, y, predictions):
    if objective.number == 0:
        return objectives.loss_at(objective.against, y, predictions)
    return objectives.loss_at(objective.multinomial, y, predictions)


OF_LABELS = (losses.Logistic(), losses.SmoothedHinge(), losses.Hinge(), losses.Square())
OF_NUMBERS = (losses.Square(), losses.Absolute(), losses.huber(1.0), losses.power_loss(1.5))


def _any_of(loss: Any, choices: tuple[Any, ...]) -> Any:
    """The loss as one of the choices; as it is if it is none of them."""
    kinds = [type(choice) for choice in choices]
    if type(loss) not in kinds:
        return loss
    number = kinds.index(type(loss))
    return AnyOf(number, loss.lipschitz, loss.smoothness, *choices[:number], loss, *choices[number + 1 :])


def switched(objective: Any) -> Any:
    """An objective that computes what the given one does, of a type that it shares with others."""
    if isinstance(objective, objectives.Binary):
        return objective._replace(loss=_any_of(objective.loss, OF_LABELS))
    if isinstance(objective, objectives.Regression):
        return objective._replace(loss=_any_of(objective.loss, OF_NUMBERS))
    if isinstance(objective, objectives.OneAgainstAll):
        return Several(0, objective._replace(loss=_any_of(objective.loss, OF_LABELS)), objectives.Multinomial(1.0))
    if isinstance(objective, objectives.Multinomial):
        return Several(1, objectives.OneAgainstAll(_any_of(OF_LABELS[0], OF_LABELS), 0.0), objective)
    return objective


for kind in (AnyOf, Several):
    code_cache.cached_by(kind, __file__)

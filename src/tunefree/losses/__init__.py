"""Losses of one prediction: one loss (or close family) a file, chosen by name.

A loss is a NamedTuple of its parameters, including ``lipschitz`` and ``smoothness``. :mod:`tunefree.losses.contract`
defines the functions of a loss, and ``docs/extending/loss.md`` shows how to add one. A loss is imported at first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, NamedTuple

from tunefree.core.errors import ModelError, alike
from tunefree.core.registry import Registry, UnknownNameError

TASKS = ("classification", "regression")
LOSSES = Registry("loss", {})


class Usage(NamedTuple):
    """The metadata of a loss, available before its module is imported."""

    tasks: tuple[str, ...]  # supported tasks
    parameters: tuple[str, ...]  # their names, in the order after colons


_USAGES: dict[str, Usage] = {}
# Names of losses in other packages, such as scikit-learn, LightGBM, XGBoost and CatBoost, with the nearest loss here.
_OTHERS = {"power": "absolute-power:P, which is |error|^P, or tweedie:P"}
_OTHERS |= dict.fromkeys(("mae", "l1", "mean_absolute_error", "absolute_error", "regression_l1"), "absolute")
_OTHERS |= dict.fromkeys(
    ("mse", "rmse", "l2", "squared_error", "mean_squared_error", "root_mean_squared_error", "regression", "reg"),
    "square",
)
_OTHERS |= dict.fromkeys(
    ("logloss", "log_loss", "binary", "multiclass", "cross_entropy", "crossentropy", "multiclassova"), "logistic"
)
_OTHERS |= {"pinball": "quantile:TAU", "mape": "absolute", "fair": "huber", "count": "poisson"}
# Modules whose losses are attributes of this one. No module may be named like a loss: importing it sets an attribute.
_FILES = ("tunefree.losses.classification", "tunefree.losses.regression", "tunefree.losses.deviances")


def register(name: str, factory: Any, *tasks: str, parameters: Sequence[str] = ()) -> None:
    """Register a loss under a name, for the command line, plans and estimators.

    Parameters
    ----------
    name : str
        The first loss of a task is its default.
    factory : callable or str
        Creates the loss from its parameters: a NamedTuple class or a function, or its location
        ``"package.module:attribute"``. All parameters are numbers and have defaults.
    *tasks : {"classification", "regression"}
        The tasks that the loss supports.
    parameters : sequence of str
        Names of the parameters, which follow the name after colons: ``huber:1.5``.

    Raises
    ------
    ModelError
        If the name is taken by another loss or has a colon, or if a task is missing or unknown.

    Examples
    --------
    The loss of the command line's ``--loss rounded-huber:2``:

    >>> from tunefree.losses import huber
    >>> register("rounded-huber", huber, "regression", parameters=["DELTA"])
    >>> loss_of("regression", "rounded-huber:2").delta
    2.0
    """
    if ":" in name:
        raise ModelError(f"a loss's parameters stand behind colons; choose another name than {name!r}")
    if not tasks or not set(tasks) <= set(TASKS):
        raise ModelError(f"a loss serves for {' or '.join(TASKS)}, or for both; {name!r} for {tasks}")
    LOSSES.register(name, factory)
    _USAGES[name] = Usage(tasks, tuple(parameters))


register("logistic", "tunefree.losses.classification:Logistic", "classification")
register("hinge", "tunefree.losses.classification:Hinge", "classification")
register("smoothed-hinge", "tunefree.losses.classification:SmoothedHinge", "classification")
register("squared-hinge", "tunefree.losses.classification:SquaredHinge", "classification")
register("exponential", "tunefree.losses.classification:Exponential", "classification")
register("square", "tunefree.losses.regression:Square", "classification", "regression")
register("absolute", "tunefree.losses.regression:Absolute", "regression")
register("absolute-power", "tunefree.losses.regression:power_loss", "regression", parameters=["P"])
register(
    "epsilon-insensitive", "tunefree.losses.regression:epsilon_insensitive", "regression", parameters=["EPSILON", "P"]
)
register("huber", "tunefree.losses.regression:huber", "regression", parameters=["DELTA"])
register("quantile", "tunefree.losses.regression:quantile", "regression", parameters=["TAU"])
register("poisson", "tunefree.losses.deviances:poisson", "regression")
register("gamma", "tunefree.losses.deviances:gamma", "regression")
register("tweedie", "tunefree.losses.deviances:tweedie", "regression", parameters=["POWER"])


def names(task: str) -> list[str]:
    """The names of a task's losses, the default first, without importing them."""
    return [name for name in LOSSES if task in _USAGES[name].tasks]


def usage(task: str) -> list[str]:
    """The names of a task's losses with their parameters, in the notation of the command line.

    >>> usage("regression")[:3]
    ['square', 'absolute', 'absolute-power:P']
    """
    return [":".join([name, *_USAGES[name].parameters]) for name in names(task)]


def kind_of(name: str | None, task: str = "regression") -> str:
    """The name of a loss without its parameters; for None, the task's default loss.

    >>> kind_of("quantile:0.9"), kind_of(None)
    ('quantile', 'square')
    """
    return (name or names(task)[0]).partition(":")[0]


@lru_cache(64)
def loss_of(task: str, name: str | None) -> Any:
    """The loss called ``name``, with parameters after colons: ``logistic``, ``huber:1.5``, ``quantile:0.9``.

    Parameters
    ----------
    task : {"classification", "regression"}
    name : str or None
        None for the task's default: the logistic loss in classification, the square loss in regression.

    Raises
    ------
    ModelError
        If the name or the parameters are invalid for this task.

    Examples
    --------
    >>> loss_of("regression", "huber:2").delta
    2.0
    """
    known = names(task)
    kind, *parameters = (name or known[0]).split(":")
    if kind not in known:
        plain = kind.lower().removesuffix("_loss").removesuffix("_deviance")
        hint = _OTHERS.get(plain) or (plain if plain in LOSSES else alike(plain, known))
        fits_task = hint is None or hint.partition(":")[0] in known
        remedy = "" if hint is None else f"did you mean {hint}{'' if fits_task else ', which is of another `task`'}? "
        raise UnknownNameError(f"unknown loss {kind!r} for {task}; {remedy}choose one of {', '.join(known)}")
    if kind == "quantile" and not parameters:
        remedy = "write quantile:TAU, such as quantile:0.5 for the median"
        raise ModelError(f"loss {name!r}: its level is missing; {remedy}")
    expected = _USAGES[kind].parameters
    if len(parameters) > len(expected):
        raise ModelError(f"loss {name!r} has too many parameters; write {':'.join([kind, *expected])}")
    try:
        loss = LOSSES[kind](*map(float, parameters))
    except (TypeError, ValueError) as error:
        raise ModelError(f"loss {name!r}: {error}") from None
    if not hasattr(loss, "has_log_link"):
        remedy = "put @loss_class of tunefree.losses.contract before the class"
        raise ModelError(f"{type(loss).__name__} has not the functions of all losses; {remedy}")
    return loss


def loss_classes() -> tuple[type, ...]:
    """The classes of all registered losses, in the order of their numbers.

    >>> [cls.__name__ for cls in loss_classes()][:3]
    ['Logistic', 'Hinge', 'SmoothedHinge']
    """
    return _classes_of(tuple(LOSSES))


@cache
def _classes_of(names: tuple[str, ...]) -> tuple[type, ...]:
    return tuple(dict.fromkeys(type(LOSSES[name]()) for name in names))


def number_of(loss: Any) -> int:
    """The number of a loss: the index of its class among the registered losses."""
    classes = loss_classes()
    if type(loss) not in classes:
        name = type(loss).__name__
        raise ModelError(f"{name} is not among the losses; give it a name with tunefree.losses.register")
    return classes.index(type(loss))


def __getattr__(name: str) -> Any:
    for module in () if name.startswith("_") else map(import_module, _FILES):
        if getattr(loss := getattr(module, name, None), "__module__", None) == module.__name__:
            return loss
    raise AttributeError(f"module 'tunefree.losses' has no attribute {name!r}")

"""The online learners, one algorithm (or family) a file, and ``ALL``, the registry of their names.

A name costs nothing: a learner's file, and Numba with it, is loaded when the learner is first asked for, as
``ALL["scinol2"]`` or as ``learners.ScInOL2``. What a learner is made of is described in
:mod:`tunefree.learners.contract`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tunefree.core.registry import Registry, load

_PLACES = {
    "scinol2": "tunefree.learners.scinol:ScInOL2",
    "nag": "tunefree.learners.nag:NAG",
    "cocob": "tunefree.learners.cocob:CoCoB",
    "newton": "tunefree.learners.newton:Newton",
    "adagrad": "tunefree.learners.adagrad:AdaGrad",
}
ALL = Registry("learner", _PLACES, "tunefree.learners")

_NOT_LEARNERS_BY_NAME = (
    "tunefree.learners.averaging:Averaged",
    "tunefree.learners.averaging:averaged",
)
_WHERE = {place.partition(":")[2]: place.partition(":")[0] for place in (*_PLACES.values(), *_NOT_LEARNERS_BY_NAME)}


def family_of(name: str) -> Any:
    """What models have to know of a learner that is not linear in features; None for linear ones.

    Its class names its family, a :class:`tunefree.model.group.Family`, in ``family``.
    """
    if name in _PLACES or name not in ALL:
        return None
    place = getattr(ALL[name], "family", None)
    return None if place is None else load(place)


def register(name: str, learner: Any) -> None:
    """Make a learner known by a name, in this process: to models, estimators and comparisons.

    Parameters
    ----------
    name : str
        A name that is not taken.
    learner : class, or str
        A class that obeys :mod:`tunefree.learners.contract`, or its place ``"package.module:Class"``.

    Raises
    ------
    ModelError
        If the name is taken by another learner.

    Examples
    --------
    >>> register("nag", "my_package.nag:NAG")
    Traceback (most recent call last):
    tunefree.core.errors.ModelError: there is a learner 'nag' already; choose another name
    """
    ALL.register(name, learner)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'tunefree.learners' has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return ["ALL", "family_of", "register", *_WHERE]

"""The online learners, one algorithm (or family) a file, and ``ALL``, the registry of their names.

A name costs nothing: a learner's file, and NumPy with it, is loaded when the learner is first asked for, as
``ALL["scinol2"]``. What a learner is made of is described in :mod:`tunefree.learners.contract`.
"""

from __future__ import annotations

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
register = ALL.register  # in this process: models, estimators and comparisons then know the learner by its name


def family_of(name: str) -> Any:
    """The family of a learner that is not linear in features; None for linear learners.

    Its class names its family, a :class:`tunefree.pool.rows.Family`, in ``family``.
    """
    if name in _PLACES or name not in ALL:
        return None
    place = getattr(ALL[name], "family", None)
    return None if place is None else load(place)

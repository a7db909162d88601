"""The online learners, one algorithm (or family) a file, and ``ALL``, the registry of their names.

Learners are loaded lazily: the first access, such as ``ALL["scinol2"]``, imports the file of the learner, and NumPy.
:mod:`tunefree.learners.contract` describes the interface of a learner.
"""

from __future__ import annotations

from typing import Any

from tunefree.core.registry import Registry, load

POOL = "pool"  # in place of a learner: all linear learners of the pool, and its trees
_PATHS = {
    "scinol2": "tunefree.learners.scinol:ScInOL2",
    "nag": "tunefree.learners.nag:NAG",
    "cocob": "tunefree.learners.cocob:CoCoB",
    "newton": "tunefree.learners.newton:Newton",
    "adagrad": "tunefree.learners.adagrad:AdaGrad",
}
ALL = Registry("learner", _PATHS, "tunefree.learners")
register = ALL.register  # for this process: models, estimators and comparisons find the learner by its name


def family_of(name: str) -> Any:
    """The family of a learner that is not linear in features; None for linear learners and for the pool.

    The attribute ``family`` of its class is the name of a :class:`tunefree.pool.rows.Family`.
    """
    if name == POOL or name in _PATHS or name not in ALL:
        return None
    family = getattr(ALL[name], "family", None)
    return None if family is None else load(family)

"""The members of a model: those of the pool, or one learner, with kernels of every width."""

from __future__ import annotations

from typing import Any

from tunefree.core.errors import ModelError
from tunefree.kernel import kernels
from tunefree.kernel import learners as kernel
from tunefree.learners import ALL
from tunefree.learners.contract import Traits, traits_of
from tunefree.losses import loss_of
from tunefree.model import views
from tunefree.model.members import Setting

# The linear members of the pool (see tunefree.pool), some of them for tables or for texts alone.
OF_TABLES: tuple[Setting, ...] = (Setting("nag", {"eta": 0.5}, "steady"), Setting("nag", {"eta": 10.0}, "steady"))
OF_TEXTS: tuple[Setting, ...] = (
    Setting("adagrad", {"eta": 0.02}, "steady"),
    Setting("adagrad", {"eta": 0.1}, "steady"),
)
MEMBERS: tuple[Setting, ...] = (
    Setting("newton", {"variance": 1.0}, "steady"),
    Setting("scinol2", {"epsilon": 1.0}, "steady"),
    Setting("cocob", {"alpha": 100.0}, "raw"),
    Setting("nag", {"eta": 2.0}, "steady"),
    *OF_TABLES,
    *OF_TEXTS,
)
POOL = "pool"
WIDTHS = tuple(2.0**exponent for exponent in range(-2, 7))  # times the median rule's gamma
FOLLOW_THE_LEADER = "kernel-regularized-sgd"  # of several, the one with the least progressive loss predicts alone
PENALTIES = (0.1, 0.01, 0.001, 0.0001)  # lambda in the experiments of Nitanda, Suzuki 2019


def is_kernel(learner: str) -> bool:
    """Whether a learner of this name learns a function of a kernel's space."""
    return learner in kernel.ALL


def special_about(learner: str) -> Traits:
    """What is special about a learner of this name; nothing is about a pool."""
    if learner == POOL:
        return Traits()
    return traits_of(kernel.ALL[learner] if is_kernel(learner) else ALL[learner])


def usual_view(learner: str) -> str:
    """The view of a learner where none is asked for; kernels compare features, so these have to be of like size."""
    return "steady" if is_kernel(learner) else "raw"


def can_replay(setting: Setting) -> bool:
    """Whether a linear member can learn features later than they are met."""
    return traits_of(ALL[setting.learner]).can_replay


def settings_of_members(learner: str, settings: dict[str, float], view: str, named: Any = "rbf") -> list[Setting]:
    """The members of a model whose learner has this name.

    Parameters
    ----------
    learner, settings, view
        As in :class:`tunefree.model.model.Model`.
    named : str or callable, default "rbf"
        The kernel; not all have widths.

    Examples
    --------
    >>> len(settings_of_members("pool", {}, "raw")), len(settings_of_members("kernel-pistol", {}, "steady"))
    (8, 9)
    """
    if learner == POOL:
        return list(MEMBERS)
    of_members = [settings]
    if learner == FOLLOW_THE_LEADER and "penalty" not in settings:
        of_members = [{**settings, "penalty": penalty} for penalty in PENALTIES]
    if is_kernel(learner) and "width" not in settings:
        return [member for parameters in of_members for member in at_every_width(learner, parameters, view, named)]
    return [Setting(learner, parameters, view) for parameters in of_members]


def at_every_width(learner: str, settings: dict[str, float], view: str, named: Any) -> list[Setting]:
    """A kernel learner, once for each width that the kernel has."""
    widths = WIDTHS if kernels.kernel_of(named, 1.0).is_ladder else (1.0,)
    return [Setting(learner, {**settings, "width": width}, view) for width in widths]


def check_settings(task: str, learner: str, loss: str | None, average: bool, settings: Any, view: str) -> None:
    """Whether these can be combined.

    Raises
    ------
    ModelError
    """
    loss_of(task, loss)
    known = [POOL, *ALL, *kernel.ALL]
    if learner not in known:
        raise ModelError(f"unknown learner {learner!r}; choose one of {', '.join(known)}")
    if view not in ("raw", *views.ALL):
        raise ModelError(f"unknown view {view!r}; choose one of {', '.join(('raw', *views.ALL))}")
    if learner == POOL:
        if task == "classification" and (loss or "logistic") != "logistic":
            raise ModelError(f"the pool learns probabilities, with the logistic loss; name a learner for {loss}")
        if average or settings or view != "raw":
            raise ModelError("the pool chooses settings, views and averages by itself; name a learner to choose them")
    if special_about(learner).classifies_only and task == "regression":
        raise ModelError(f"{learner} learns classes only; name another learner for regression")

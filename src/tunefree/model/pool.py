"""The members of a model: one learner, the pool, kernels of every width, or all of them."""

from __future__ import annotations

from typing import Any

from tunefree.core.errors import ModelError
from tunefree.kernel import kernels
from tunefree.kernel import learners as kernel
from tunefree.learners import ALL
from tunefree.learners.contract import Traits, traits_of
from tunefree.losses import loss_of
from tunefree.model import additive_bank, views
from tunefree.model.feature_bank import VIEWS as KERNEL_FEATURE_VIEWS
from tunefree.model.members import Setting

# The linear members of the pool (see tunefree.pool), some of them for tables or for texts alone.
OF_TABLES: tuple[Setting, ...] = (
    Setting("nag", {"eta": 0.5}, "steady"),
    Setting("nag", {"eta": 10.0}, "steady"),
)
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
VIEWS = (*KERNEL_FEATURE_VIEWS, *additive_bank.VIEWS)  # of banks, which keep their first rows back
POOLS = ("pool", "kernel-pool")
WIDTHS = tuple(2.0**exponent for exponent in range(-2, 7))  # times the median rule's gamma
KERNEL_VIEWS = ("steady", "level")
FOLLOW_THE_LEADER = "kernel-regularized-sgd"  # of several, the one with the least progressive loss predicts alone
PENALTIES = (0.1, 0.01, 0.001, 0.0001)  # lambda in the experiments of Nitanda, Suzuki 2019


def is_kernel(learner: str) -> bool:
    """Whether a learner of this name learns a function of a kernel's space."""
    return learner in kernel.ALL


def special_about(learner: str) -> Traits:
    """What is special about a learner of this name; nothing is about a pool."""
    if learner in POOLS:
        return Traits()
    return traits_of(kernel.ALL[learner] if is_kernel(learner) else ALL[learner])


def usual_view(learner: str) -> str:
    """The view of a learner where none is asked for; kernels compare features, so these have to be of like size."""
    return "steady" if is_kernel(learner) else "raw"


def waits(setting: Setting) -> bool:
    """Whether a member belongs to a bank, which keeps its first rows back until its kernel is fixed."""
    return is_kernel(setting.learner) or setting.view in VIEWS


def can_replay(setting: Setting) -> bool:
    """Whether a linear member can learn features later than they are met; one that stands still learns nothing."""
    return setting.learner not in ALL or traits_of(ALL[setting.learner]).can_replay


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
    >>> len(settings_of_members("pool", {}, "raw")), len(settings_of_members("kernel-pool", {}, "raw"))
    (8, 26)
    """
    if learner == "pool":
        return list(MEMBERS)
    if learner == "kernel-pool":
        of_kernels = [at_every_width("kernel-pistol", {"growth": 1.0}, seen, named) for seen in KERNEL_VIEWS]
        return [*MEMBERS, *(setting for settings in of_kernels for setting in settings)]
    found = [Setting(learner, settings, view)]
    if learner == FOLLOW_THE_LEADER and "penalty" not in settings:
        found = [Setting(learner, {**settings, "penalty": penalty}, view) for penalty in PENALTIES]
    if is_kernel(learner) and "width" not in settings:
        found = [at_width for own in found for at_width in at_every_width(learner, own.settings, view, named)]
    return found


def at_every_width(learner: str, settings: dict[str, float], view: str, named: Any) -> list[Setting]:
    """A kernel learner, once for each width that the kernel has."""
    widths = WIDTHS if kernels.is_ladder(kernels.kernel_of(named, 1.0)) else (1.0,)
    return [Setting(learner, {**settings, "width": width}, view) for width in widths]


def check_settings(task: str, learner: str, loss: str | None, average: bool, settings: Any, view: str) -> None:
    """Whether these can be combined.

    Raises
    ------
    ModelError
    """
    loss_of(task, loss)
    known = [*POOLS, *ALL, *kernel.ALL]
    if learner not in known:
        raise ModelError(f"unknown learner {learner!r}; choose one of {', '.join(known)}")
    if view not in ("raw", *views.ALL, *VIEWS):
        raise ModelError(f"unknown view {view!r}; choose one of {', '.join(('raw', *views.ALL, *VIEWS))}")
    special = special_about(learner)
    if view in VIEWS and is_kernel(learner):
        raise ModelError(f"{learner} has a kernel of its own; the view {view} is for a linear learner")
    if view in VIEWS and special.quadratic_cost:
        raise ModelError(f"{learner} cannot afford as many features as {view} has; name another learner for it")
    if learner in POOLS:
        if task == "classification" and (loss or "logistic") != "logistic":
            raise ModelError(f"the pool learns probabilities, with the logistic loss; name a learner for {loss}")
        if average or settings or view != "raw":
            raise ModelError("the pool chooses settings, views and averages by itself; name a learner to choose them")
    if special.classifies_only and task == "regression":
        raise ModelError(f"{learner} learns classes only; name another learner for regression")

"""Who learns in a model: one learner, the pool, kernels of every width, or all of them."""

from __future__ import annotations

from typing import Any

from tunefree import views
from tunefree.errors import ModelError
from tunefree.kernel import kernels
from tunefree.kernel import learners as kernel
from tunefree.learners import ALL
from tunefree.pool import MEMBERS, Setting
from tunefree.targets import loss_of

POOLS = ("pool", "kernel-pool")
WIDTHS = tuple(2.0**exponent for exponent in range(-2, 7))  # times the median rule's gamma
KERNEL_VIEWS = ("steady", "level")


def is_kernel(learner: str) -> bool:
    """Whether a learner of this name lives in a kernel's space."""
    return learner in kernel.ALL


def roster_of(learner: str, settings: dict[str, float], view: str, named: Any = "rbf") -> list[Setting]:
    """The members that a choice of learner, and of a kernel, stands for.

    Examples
    --------
    >>> len(roster_of("pool", {}, "raw")), len(roster_of("kernel-pool", {}, "raw"))
    (12, 30)
    """
    if learner == "pool":
        return list(MEMBERS)
    if learner == "kernel-pool":
        of_kernels = [ladder("kernel-pistol", {"growth": 1.0}, seen, named) for seen in KERNEL_VIEWS]
        return [*MEMBERS, *(setting for settings in of_kernels for setting in settings)]
    if is_kernel(learner) and "width" not in settings:
        return ladder(learner, settings, view, named)
    return [Setting(learner, settings, view)]


def ladder(learner: str, settings: dict[str, float], view: str, named: Any) -> list[Setting]:
    """A kernel learner at every width that the kernel has."""
    widths = WIDTHS if kernels.is_ladder(kernels.kernel_of(named, 1.0)) else (1.0,)
    return [Setting(learner, {**settings, "width": width}, view) for width in widths]


def check_choice(task: str, learner: str, loss: str | None, average: bool, settings: Any, view: str) -> None:
    """Whether these go together."""
    loss_of(task, loss)
    known = [*POOLS, *ALL, *kernel.ALL]
    if learner not in known:
        raise ModelError(f"unknown learner {learner!r}; choose one of {', '.join(known)}")
    if view not in ("raw", *views.ALL):
        raise ModelError(f"unknown view {view!r}; choose one of {', '.join(('raw', *views.ALL))}")
    if learner in POOLS:
        if task == "classification" and (loss or "logistic") != "logistic":
            raise ModelError(f"the pool learns probabilities, with the logistic loss; name a learner for {loss}")
        if average or settings or view != "raw":
            raise ModelError("the pool chooses settings, views and averages by itself; name a learner to choose them")
    if learner in ("perceptron", "kernel-perceptron") and task == "regression":
        raise ModelError("the perceptron learns classes only; name another learner for regression")

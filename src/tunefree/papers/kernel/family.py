"""What models have to know of learners in a kernel's space: who learns, and of which class their banks are."""

from __future__ import annotations

from typing import Any

from tunefree.core.schema import FINITE, SIZE, Number, Text
from tunefree.papers.kernel.kernel_bank import KernelBank, KernelConfig
from tunefree.papers.kernel.kernels import check_kernel, kernel_of
from tunefree.papers.kernel.predictor import Kernels
from tunefree.pool.linear_group import LinearGroup
from tunefree.pool.linear_members import Setting
from tunefree.pool.options import ModelOptions
from tunefree.pool.rows import Family

WIDTHS = tuple(2.0**exponent for exponent in range(-2, 7))  # times the median rule's gamma

CONFIG = {
    "name": Text(),
    "gamma": SIZE,
    "degree": Number(1, 100, whole=True),
    "constant": FINITE,
}


def config_of(plan: Any) -> KernelConfig:
    """The kernel that a plan names, or the usual one."""
    if plan is None:
        return KernelConfig()
    if plan.kernel is not None:
        check_kernel(plan.kernel)
    return KernelConfig(plan.kernel or "rbf")


def settings_of_members(
    learner: str, settings: dict[str, float], view: str, config: KernelConfig | None = None
) -> list[Setting]:
    """The members of a model whose learner has this name: one for each width, if none is chosen.

    Examples
    --------
    >>> len(settings_of_members("kernel-pistol", {}, "steady"))
    9
    """
    if "width" in settings:
        return [Setting(learner, settings, view)]
    widths = WIDTHS if kernel_of((config or KernelConfig()).name, 1.0).is_ladder else (1.0,)
    return [Setting(learner, {**settings, "width": width}, view) for width in widths]


def predictor(options: ModelOptions, linear: LinearGroup, n_outputs: int, n_classes: int) -> Kernels:
    """All members in a bank; in a mixture they predict with averages, and of classes they predict log-odds."""
    classes = n_classes if options.is_mixed and options.task == "classification" else None
    members, objective, averages = list(options.member_settings), options.objective(n_outputs), options.average
    bank = KernelBank(members, options.config, objective, n_outputs, classes, averages or options.is_mixed)
    return Kernels(options, linear, bank, n_classes)


FAMILY = Family(
    view="steady",  # kernels compare features, so these have to be of like size
    config_of=config_of,
    restored_config=lambda saved: KernelConfig(**saved),
    config_header=CONFIG,
    settings_of_members=settings_of_members,
    predictor=predictor,
    predictor_class=Kernels,
)

"""What models have to know of learners in a kernel's space: who learns, and what files hold of them."""

from __future__ import annotations

from typing import Any

from tunefree.core.fields import FEATURE, OUTPUT
from tunefree.core.part import arrays_of
from tunefree.core.rows import Block
from tunefree.core.schema import FINITE, SIZE, Array, Flag, Mapping, Number, Optional, Sequence, Text
from tunefree.learners import ALL
from tunefree.model.group import Family
from tunefree.model.members import Setting
from tunefree.model.options import ModelOptions
from tunefree.model_files.schema_parts import MOST_FEATURES
from tunefree.papers.kernel.kernel_bank import KernelBank, KernelConfig
from tunefree.papers.kernel.kernels import check_kernel, kernel_of
from tunefree.pool.members import MOST_MEMBERS
from tunefree.theory.evidence import Evidence

WIDTHS = tuple(2.0**exponent for exponent in range(-2, 7))  # times the median rule's gamma

CONFIG = {
    "name": Text(),
    "gamma": SIZE,
    "degree": Number(1, 100, whole=True),
    "constant": FINITE,
}
BANK = {
    "gamma": SIZE,
    "frozen": Flag(),
    "n_columns": Number(0, MOST_FEATURES, whole=True, may_be_none=True),
    "members": Sequence({"objective": Mapping(Number())}, MOST_MEMBERS),
    "waiting": Optional(Flag()),
}

POINTS = {
    "pointers": Array("int64", ("n+1",), ascends_to="e"),
    "features": Array("int32", ("e",), 0, "D"),
    "values": Array("float64", ("e",)),
    "norms": Array("float64", ("n",)),
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


def banks(options: ModelOptions, n_outputs: int, n_classes: int) -> list[KernelBank]:
    """The bank of all members; in a mixture they predict with averages, and of classes they predict log-odds."""
    classes = n_classes if options.is_mixed and options.task == "classification" else None
    of_bank = options.config, options.objective(n_outputs), n_outputs, classes
    return [KernelBank(list(options.member_settings), *of_bank, options.average or options.is_mixed)]


def bank_arrays(prefix: str, bank: dict[str, Any], learners: set[str], arrays: Any) -> dict[str, Array]:
    """The arrays of a bank of these learners, whose rows and points its header, and the names of arrays, tell."""
    declared: dict[str, Array] = {}
    if "waiting" in bank:
        declared |= arrays_of(f"{prefix}.waiting.X", Block, {})
    for points in (f"{prefix}.expansion.support", f"{prefix}.expansion.open"):
        declared |= {f"{points}.{name}": array for name, array in POINTS.items()}
    for learner in learners:
        declared |= arrays_of(f"{prefix}.#.state", ALL[learner], {OUTPUT: "K"})
    declared |= arrays_of(f"{prefix}.#.evidence", Evidence, {FEATURE: 1, OUTPUT: "K"})
    return declared


FAMILY = Family(
    view="steady",  # kernels compare features, so these have to be of like size
    config_of=config_of,
    restored_config=lambda saved: KernelConfig(**saved),
    config_header=CONFIG,
    settings_of_members=settings_of_members,
    banks=banks,
    bank_header=BANK,
    bank_arrays=bank_arrays,
)

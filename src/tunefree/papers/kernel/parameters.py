"""Parameters of estimators that choose a kernel: which of them have an effect."""

from __future__ import annotations

from functools import partial
from typing import Any

from tunefree.core.parameters import refuse
from tunefree.papers.kernel.kernels import kernel_of

DEGREE = "Exponent of the polynomial kernel (gamma x.z + coef0)^degree."
COEF0 = "Constant of the polynomial kernel (gamma x.z + coef0)^degree."
OF_KERNELS = ("gamma", "degree", "coef0", "precision")


def check_effect(group: Any) -> None:
    """Raise an error for a parameter of a kernel that has no effect with the kernel of a group, or without one."""
    if group.kernel is None:
        refuse(group, OF_KERNELS, "has no effect without a kernel; pass `kernel='rbf'`, or leave it out")
        return
    of_kernel, usual = partial(kernel_of, group.kernel), dict.fromkeys(("gamma", "degree", "coef0"), 1)
    idle = [name for name in usual if of_kernel(**usual) == of_kernel(**usual | {name: 2})]
    refuse(group, idle, f"has no effect with `kernel={group.kernel!r}`; leave it out")

"""The learners in a kernel's space, by their names."""

from __future__ import annotations

from typing import Any

from tunefree.kernel.contract import end_round, share
from tunefree.kernel.perceptron import KernelPerceptron
from tunefree.kernel.pistol import KernelPiSTOL
from tunefree.kernel.sgd import KernelSGD, RegularizedKernelSGD

ALL: dict[str, Any] = {
    "kernel-pistol": KernelPiSTOL,
    "kernel-sgd": KernelSGD,
    "kernel-regularized-sgd": RegularizedKernelSGD,
    "kernel-perceptron": KernelPerceptron,
}

for plain in (KernelPiSTOL, KernelSGD, KernelPerceptron):

    @share.register(plain)
    def share_equally(state):
        return 1.0

    @end_round.register(plain)
    def end_round_as_it_is(state):
        pass

"""The learners in a kernel's space, by their names."""

from __future__ import annotations

from typing import Any

from tunefree.kernel.contract import end_round, give_up, heeded, share, share_to_come, with_kernel_bound
from tunefree.kernel.perceptron import KernelPerceptron
from tunefree.kernel.pistol import KernelPiSTOL
from tunefree.kernel.sgd import KernelSGD, RegularizedKernelSGD

ALL: dict[str, Any] = {
    "kernel-pistol": KernelPiSTOL,
    "kernel-sgd": KernelSGD,
    "kernel-regularized-sgd": RegularizedKernelSGD,
    "kernel-perceptron": KernelPerceptron,
}

for as_it_is in (KernelPiSTOL, KernelSGD, KernelPerceptron):

    @share.register(as_it_is)
    def share_equally(state):
        return 1.0

    @share_to_come.register(as_it_is)
    def share_of_nothing(state):
        return 0.0

    @end_round.register(as_it_is)
    def end_round_as_it_is(state):
        pass

    @heeded.register(as_it_is)
    def heeded_as_it_is(state, objective):
        return objective

    @with_kernel_bound.register(as_it_is)
    def with_kernel_bound_as_it_is(state, objective, largest, average):
        return state

    @give_up.register(as_it_is)
    def give_up_nothing(state):
        return None

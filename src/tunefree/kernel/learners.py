"""The learners in a kernel's space, by their names. A learner's file is loaded when it is first asked for."""

from __future__ import annotations

from tunefree.core.registry import Registry

ALL = Registry(
    "kernel learner",
    {
        "kernel-pistol": "tunefree.kernel.pistol:KernelPiSTOL",
        "kernel-sgd": "tunefree.kernel.sgd:KernelSGD",
        "kernel-regularized-sgd": "tunefree.kernel.regularized_sgd:RegularizedKernelSGD",
        "kernel-online-regularized": "tunefree.kernel.online_regularized:OnlineRegularized",
        "kernel-perceptron": "tunefree.kernel.perceptron:KernelPerceptron",
    },
)

"""The learners in a kernel's space, by their names. A learner's file is loaded when it is first asked for."""

from __future__ import annotations

from tunefree.core.registry import Registry

ALL = Registry(
    "kernel learner",
    {
        "kernel-pistol": "tunefree.papers.kernel.pistol:KernelPiSTOL",
        "kernel-sgd": "tunefree.papers.kernel.sgd:KernelSGD",
        "kernel-regularized-sgd": "tunefree.papers.kernel.regularized_sgd:RegularizedKernelSGD",
        "kernel-online-regularized": "tunefree.papers.kernel.online_regularized:OnlineRegularized",
        "kernel-perceptron": "tunefree.papers.kernel.perceptron:KernelPerceptron",
    },
)

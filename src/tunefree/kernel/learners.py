"""The learners in a kernel's space, by their names. A learner's file is loaded when it is first asked for."""

from __future__ import annotations

from typing import Any

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


def register(name: str, learner: Any) -> None:
    """Add a learner.

    Parameters
    ----------
    name : str
        A name that is not taken.
    learner : class, or str
        A class that has bodies for the functions of :mod:`tunefree.kernel.contract`, or its place
        ``"package.module:Class"``.

    Raises
    ------
    ModelError
        If the name is taken by another learner.

    Examples
    --------
    >>> register("kernel-sgd", "my_package.sgd:MySGD")
    Traceback (most recent call last):
    tunefree.core.errors.ModelError: there is a kernel learner 'kernel-sgd' already; choose another name
    """
    ALL.register(name, learner)

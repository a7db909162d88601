"""Compiled linear learners that papers compare with; found by their names through entry points."""

from __future__ import annotations

from tunefree.core.kernels import Kernel

NAMES = ("sfmd", "kotlowski", "ogd", "adam", "perceptron")


def all_kernels() -> list[Kernel]:
    """The kernels of these learners, and of the averages of their iterates."""
    from tunefree.learners import ALL, reading
    from tunefree.model import passes

    learners = [ALL[name] for name in NAMES]
    return [*passes.kernels_of(learners), *reading.kernels_of(learners)]

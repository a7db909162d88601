"""Compiled linear learners of the papers, and those that they compare with; entry points name them."""

from __future__ import annotations

from tunefree.compiled.functions import Compiled


def all_compiled() -> list[Compiled]:
    """The kernels of these learners, and of the averages of their iterates."""
    from tunefree.learners import ALL
    from tunefree.pool import passes

    return passes.compiled_of(ALL[name] for name in ("kotlowski", "ogd", "adam"))

"""Compiled loops over rows that call the functions of an objective."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tunefree.core import compiled
from tunefree.core.code_cache import is_of_the_package
from tunefree.losses.kinds import Functions, functions_over
from tunefree.losses.switch import loss_classes


class Loop:
    """A loop that is compiled once for all objectives and all losses, anew when a loss gets a name.

    Parameters
    ----------
    make : function
        From the functions of objectives to the loop, a plain function.
    """

    def __init__(self, make: Callable[[Functions], Callable[..., Any]]) -> None:
        self._make = make
        self._compiled: dict[tuple[type, ...], Callable[..., Any]] = {}

    @property
    def py_func(self) -> Callable[..., Any]:
        """The loop as Python."""
        return self._make(functions_over(loss_classes()))

    def __call__(self, *arguments: Any) -> Any:
        """Run the loop."""
        classes = loss_classes()
        if classes not in self._compiled:
            parts = map(compiled.part_of, functions_over(classes))
            loop, is_cached = self._make(Functions(*parts)), all(map(is_of_the_package, classes))
            self._compiled[classes] = compiled.entry(loop, is_cached)
        return self._compiled[classes](*arguments)

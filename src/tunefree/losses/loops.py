"""Loops over rows that call the functions of an objective: compiled functions for all losses that have a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tunefree.compiled.functions import Compiled
from tunefree.losses import loss_classes
from tunefree.losses.functions import compiled_over, functions_over


class Loop:
    """A loop over rows, whose compiled functions have all losses as cases; they are made anew when a loss gets a name.

    Parameters
    ----------
    make : function
        From parts that the loop is made for, such as a learner's class, and the functions of objectives
        (:class:`tunefree.losses.functions.Functions`), which come last, to the loop: a plain function whose annotations
        are those of a compiled function.

    Examples
    --------
    >>> from typing import Annotated
    >>> import numpy as np
    >>> from tunefree.losses import Hinge
    >>> from tunefree.losses.objectives import Objective
    >>> @Loop
    ... def loss_of(functions):
    ...     loss_at = functions.loss_at
    ...     def loss(
    ...         codes: Annotated[np.ndarray, "int64[2]"],
    ...         numbers: Annotated[np.ndarray, "float64[facts]"],
    ...         margins: Annotated[np.ndarray, "float64[1]"],
    ...     ) -> float:
    ...         return loss_at(codes, numbers, 1.0, 1, margins)
    ...     return loss
    >>> objective = Objective("classification", Hinge())
    >>> loss_of(*objective.arrays, np.array([0.25]))
    0.75
    """

    def __init__(self, make: Callable[..., Callable[..., Any]]) -> None:
        self.make = make
        self._compiled: dict[tuple[Any, ...], Compiled] = {}

    def compiled(
        self,
        *parts: Any,
        name: str = "",
        states: Mapping[str, type[Any]] | None = None,
        lengths: Mapping[str, int] | None = None,
    ) -> Compiled:
        """The compiled function for some parts, see :class:`tunefree.compiled.functions.Compiled`.

        Parameters
        ----------
        *parts
            What the loop is made for.
        name : str, optional
            No other compiled function has it; by default that of the loop with its module.
        states : mapping of str to class
        lengths : mapping of str to int
        """
        key = loss_classes(), parts, tuple((lengths or {}).items())
        if key not in self._compiled:
            loop = self.make(*parts, functions_over(key[0]))
            self._compiled[key] = Compiled(loop, name, states, lengths, compiled_over(key[0]))
        return self._compiled[key]

    def __call__(self, *values: Any) -> Any:
        """Run the loop, if it is made for nothing but the losses."""
        return self.compiled()(*values)

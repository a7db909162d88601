"""Loops over rows that call the functions of an objective: kernels for all losses that have a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tunefree.core.kernels import Kernel
from tunefree.losses.kinds import functions_over, kernels_over
from tunefree.losses.switch import loss_classes


class Loop:
    """A loop over rows, whose kernels have all losses as cases; they are made anew when a loss gets a name.

    Parameters
    ----------
    make : function
        From parts that the loop is made for, such as a learner's class, and the functions of objectives
        (:class:`tunefree.losses.kinds.Functions`), which come last, to the loop: a plain function whose annotations
        are those of a kernel.

    Examples
    --------
    >>> from typing import Annotated
    >>> import numpy as np
    >>> from tunefree.losses import Hinge
    >>> from tunefree.losses.kinds import arrays_of
    >>> from tunefree.losses.labels import Binary
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
    >>> loss_of(*arrays_of(Binary(Hinge(), 0.0)), np.array([0.25]))
    0.75
    """

    def __init__(self, make: Callable[..., Callable[..., Any]]) -> None:
        self.make = make
        self._kernels: dict[tuple[Any, ...], Kernel] = {}

    def kernel(
        self,
        *parts: Any,
        name: str = "",
        states: Mapping[str, type[Any]] | None = None,
        lengths: Mapping[str, int] | None = None,
    ) -> Kernel:
        """The kernel for some parts, see :class:`tunefree.core.kernels.Kernel`.

        Parameters
        ----------
        *parts
            What the loop is made for.
        name : str, optional
            No other kernel has it; by default that of the loop with its module.
        states : mapping of str to class
        lengths : mapping of str to int
        """
        key = loss_classes(), parts, tuple((lengths or {}).items())
        if key not in self._kernels:
            loop = self.make(*parts, functions_over(key[0]))
            self._kernels[key] = Kernel(loop, name, states, lengths, kernels_over(key[0]))
        return self._kernels[key]

    def __call__(self, *values: Any) -> Any:
        """Run the loop, if it is made for nothing but the losses."""
        return self.kernel()(*values)

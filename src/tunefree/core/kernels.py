"""Kernels: plain functions over arrays with declared axes, which run as machine code or as they stand.

Called, a kernel checks its arguments in Python (:mod:`tunefree.core.arguments`): compiled code never sees an array of
another type, layout or length than declared (:mod:`tunefree.core.declarations`). It is compiled the first time that it
is called (:mod:`tunefree.core.loading`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from tunefree.core.declarations import Declaration

IS_COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")  # else kernels run as they stand
CHECKS_BOUNDS = os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")


class Kernel(Declaration):
    """A plain function that is compiled when it is first called.

    Parameters
    ----------
    function, name, states, lengths, parts
        As of :class:`tunefree.core.declarations.Declaration`.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as declared.

    Examples
    --------
    >>> from typing import Annotated
    >>> import numpy as np
    >>> @kernel
    ... def double(numbers: Annotated[np.ndarray, "float64[n]"], factor: float) -> None:
    ...     for i in range(len(numbers)):
    ...         numbers[i] *= factor
    >>> numbers = np.arange(3.0)
    >>> double(numbers, 2.0)
    >>> numbers
    array([0., 2., 4.])
    >>> double(np.arange(3), 2.0)
    Traceback (most recent call last):
    TypeError: numbers must be a contiguous array float64[n], not int64[3]
    """

    _compiled: Callable[..., Any] | None = None

    def __call__(self, *values: Any) -> Any:
        if not IS_COMPILED:
            return self.function(*values)
        if self._compiled is None:
            self._compiled = self._loaded()
        return self._compiled(*values)

    def _loaded(self) -> Callable[..., Any]:
        from tunefree.core import arguments, loading

        if CHECKS_BOUNDS:
            return loading.with_checked_bounds(self)
        if self.code is None:  # numbers overflow as in compiled code
            return np.errstate(all="ignore")(self.function)
        return arguments.caller(self, self.code)

    @cached_property
    def code(self) -> Any:
        """Its machine code (:class:`tunefree.core.loading.Code`); None where it runs otherwise."""
        from tunefree.core import loading

        return loading.load(self) if IS_COMPILED and not CHECKS_BOUNDS else None


def kernel(function: Callable[..., Any]) -> Kernel:
    """Declare a kernel, see :class:`Kernel`."""
    return Kernel(function)

"""Compiled functions: plain functions over arrays with declared axes, which run as machine code or as they stand.

Called, a compiled function checks its arguments in Python (:mod:`tunefree.compiled.arguments`): compiled code never
sees an array of another type, layout or length than declared (:mod:`tunefree.compiled.declarations`). It is compiled
the first time that it is called (:mod:`tunefree.compiled.loading`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from tunefree.compiled.declarations import Declaration

IS_COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")  # else compiled functions run as they stand
CHECKS_BOUNDS = os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")


class Compiled(Declaration):
    """A plain function that is compiled when it is first called.

    Parameters
    ----------
    function, name, states, lengths, parts
        As of :class:`tunefree.compiled.declarations.Declaration`.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as declared.

    Examples
    --------
    >>> from typing import Annotated
    >>> import numpy as np
    >>> @compiled
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
        from tunefree.compiled import arguments, loading

        if CHECKS_BOUNDS:
            return loading.with_checked_bounds(self)
        if self.code is None:  # numbers overflow as in compiled code
            return np.errstate(all="ignore")(self.function)
        return arguments.caller(self, self.code)

    @cached_property
    def code(self) -> Any:
        """Its machine code (:class:`tunefree.compiled.loading.Code`); None where it runs otherwise."""
        from tunefree.compiled import loading

        return loading.load(self) if IS_COMPILED and not CHECKS_BOUNDS else None


def compiled(function: Callable[..., Any]) -> Compiled:
    """Declare a compiled function, see :class:`Compiled`."""
    return Compiled(function)

"""Functions that pick their body by the class of their first argument.

The same call works in Python (through :func:`functools.singledispatch`) and inside code compiled by Numba
(through :func:`numba.extending.overload`), so a learner reads the same, runs the same and can be debugged
uncompiled. Unlike jitted functions passed as arguments, this keeps Numba's on-disk cache working in new processes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch, wraps
from typing import Any

from tunefree.core import code_cache, compiled


def generic(declaration: Callable[..., Any]) -> Any:
    """Turn a declaration into a function whose bodies are added with ``@name.register(Class)``.

    Parameters
    ----------
    declaration : function
        Its signature and docstring are those of the generic function; its body runs, in Python, for classes
        without a body of their own, and normally raises ``TypeError``.

    Returns
    -------
    function
        Dispatches on the class of its first argument, which must be a NamedTuple.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> class Circle(NamedTuple):
    ...     radius: float
    >>> @generic
    ... def area(shape): raise TypeError
    >>> @area.register(Circle)
    ... def area_of_circle(shape): return 3.0 * shape.radius**2
    >>> area(Circle(2.0))
    12.0
    """
    return _dispatched(declaration, None)


def generic_apart(declaration: Callable[..., Any]) -> Any:
    """Like :func:`generic`, where nobody passes arrays that overlap: loops over them are compiled to vectors."""
    return _dispatched(declaration, None, apart=True)


def generic_with_default(declaration: Callable[..., Any]) -> Any:
    """Like :func:`generic`, but the declaration is itself the body for classes without one, in compiled code too.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> class Circle(NamedTuple):
    ...     radius: float
    >>> @generic_with_default
    ... def corners(shape): return 0
    >>> corners(Circle(2.0))
    0
    """
    return _dispatched(declaration, declaration)


def _dispatched(declaration: Callable[..., Any], default: Callable[..., Any] | None, apart: bool = False) -> Any:
    in_python = singledispatch(declaration)
    bodies: dict[type, Callable[..., Any]] = {}

    @wraps(declaration)
    def function(*arguments: Any) -> Any:
        return in_python(*arguments)

    def register(cls: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def add(body: Callable[..., Any]) -> Callable[..., Any]:
            bodies[cls] = in_python.register(cls, body)
            code_cache.registered(cls, body)
            return body

        return add

    function.register = register  # type: ignore[attr-defined]
    compiled.dispatch(function, bodies, default, apart)
    return function

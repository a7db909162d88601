"""Kernels: plain functions over arrays with declared axes, which run as machine code or as they stand.

Called, a kernel checks its arguments in Python, once a call: compiled code never sees an array of another type, layout
or length than declared (:mod:`tunefree.core.declarations`). It is compiled the first time that it is called
(:mod:`tunefree.core.loading`).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.declarations import Argument, Declaration
from tunefree.core.fields import LANES, State

IS_COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")  # else kernels run as they stand
CHECKS_BOUNDS = os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")
_C_TYPES: dict[str, Any] = {"int64": ctypes.c_int64, "float64": ctypes.c_double, "bool": ctypes.c_int64, "": None}


class Kernel(Declaration):
    """A plain function that is compiled when it is first called.

    Parameters
    ----------
    function, name, states, lengths
        As of :class:`tunefree.core.declarations.Declaration`.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as declared.

    Examples
    --------
    >>> from typing import Annotated
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
            from tunefree.core import loading

            self._compiled = loading.with_checked_bounds(self) if CHECKS_BOUNDS else Caller(self, loading.load(self))
        return self._compiled(*values)


def kernel(function: Callable[..., Any]) -> Kernel:
    """Declare a kernel, see :class:`Kernel`."""
    return Kernel(function)


class Caller:
    """A kernel in machine code, with the checks that compiled code relies on.

    Parameters
    ----------
    kernel : Declaration
    code : object
        With the ``address`` of the machine code, which lives as long as it.
    """

    def __init__(self, kernel: Declaration, code: Any) -> None:
        self.kernel, self.code = kernel, code
        arguments = [_C_TYPES[a.dtype] if a.axes is None else ctypes.c_void_p for a in kernel.arguments]
        types: list[Any] = [*arguments, *[ctypes.c_int64] * len(kernel.axes)]
        self.entry = ctypes.CFUNCTYPE(_C_TYPES[kernel.result], *types)(code.address)
        self.parameters = [
            (p.name, p.kind, [_checked(argument) for argument in p.arguments]) for p in kernel.parameters
        ]
        self.axes, self.has_several_outputs = kernel.axes, "padded" in kernel.axes
        axes = [axis for argument in kernel.arguments for axis in argument.axes or ()]
        self.lengths = kernel.lengths | {axis: int(axis) for axis in axes if axis.isdecimal()}

    def __call__(self, *values: Any) -> Any:
        lengths, numbers = self.lengths.copy(), []
        for (name, kind, arguments), value in zip(self.parameters, values, strict=True):
            if kind is None:
                numbers.append(_number(arguments[0], value, lengths))
            elif type(value) is not kind:
                raise TypeError(f"{name} must be {kind.__name__}, not {type(value).__name__}")
            elif isinstance(value, State):  # of which type and layout of arrays are those of its class
                for argument, block in zip(arguments, value.blocks, strict=True):
                    _check_lengths(argument, block.shape, lengths)
                numbers += addresses_of(value)
            else:
                numbers += map(_number, arguments, value, [lengths] * len(value))
        if self.has_several_outputs and lengths["padded"] % LANES:
            raise ValueError(f"{self.kernel.name} is for several outputs: their padded number is a multiple of {LANES}")
        return self.entry(*numbers, *[lengths[axis] for axis in self.axes])


class _Checked(NamedTuple):
    """An argument, with what values are compared to."""

    name: str
    dtype: Any
    axes: tuple[str, ...] | None


def _checked(argument: Argument) -> _Checked:
    return _Checked(argument.name, np.dtype(argument.dtype), argument.axes)


def _number(argument: _Checked, value: Any, lengths: dict[str, int]) -> Any:
    """A number, or where an array begins if its type, its layout and its lengths are those declared."""
    name, dtype, axes = argument
    if axes is None:
        return value
    shape = value.shape
    if value.dtype != dtype or len(shape) != len(axes) or not value.flags.c_contiguous:
        problem = f"must be a contiguous array {dtype}[{', '.join(axes)}]"
        raise TypeError(f"{name} {problem}, not {value.dtype}[{', '.join(map(str, shape))}]")
    _check_lengths(argument, shape, lengths)
    return address_of(value)


def _check_lengths(argument: _Checked, shape: tuple[int, ...], lengths: dict[str, int]) -> None:
    """Whether an array has along each axis the length of the arrays before."""
    for axis, length in zip(argument.axes or (), shape, strict=False):
        if lengths.setdefault(axis, length) != length:
            raise ValueError(f"{argument.name} has {length} {axis}, not {lengths[axis]}")


def addresses_of(state: State) -> list[int]:
    """Where the blocks of a state begin, which it keeps: none is ever replaced."""
    if state.addresses is None:
        state.addresses = [address_of(block) for block in state.blocks]
    return state.addresses


def address_of(array: np.ndarray) -> int:
    """Where an array begins; four times as fast as what NumPy offers, which also serves read-only arrays."""
    try:
        return ctypes.addressof((ctypes.c_char * 0).from_buffer(array))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return int(array.ctypes.data)

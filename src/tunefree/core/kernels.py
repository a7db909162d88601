"""Kernels: plain functions over arrays with declared axes, which run as machine code or as they stand.

Called, a kernel checks its arguments in Python, once a call: compiled code never sees an array of another type, layout
or length than declared (:mod:`tunefree.core.declarations`). It is compiled the first time that it is called
(:mod:`tunefree.core.loading`).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from tunefree.core.declarations import Argument, Declaration, Parameter
from tunefree.core.fields import LANES, State, padded

IS_COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")  # else kernels run as they stand
CHECKS_BOUNDS = os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")
_C_TYPES: dict[str, Any] = {"int64": ctypes.c_int64, "float64": ctypes.c_double, "bool": ctypes.c_int64, "": None}


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
        self.axes, self.parameters = kernel.axes, kernel.parameters
        self.has_several_outputs = "padded" in kernel.axes
        self.dtypes = {a.name: np.dtype(a.dtype) for a in kernel.arguments}

    def __call__(self, *values: Any) -> Any:
        lengths, numbers = dict(self.kernel.lengths), []
        for parameter, value in zip(self.parameters, values, strict=True):
            if parameter.kind is None:
                numbers.append(self._number(parameter.arguments[0], value, lengths))
            elif not isinstance(value, parameter.kind):
                raise TypeError(f"{parameter.name} must be {parameter.kind.__name__}, not {type(value).__name__}")
            elif isinstance(value, State):
                numbers += _addresses_of(parameter, value, lengths)
            else:
                numbers += map(self._number, parameter.arguments, value, [lengths] * len(value))
        if self.has_several_outputs and lengths["padded"] % LANES:
            raise ValueError(f"{self.kernel.name} is for several outputs: their padded number is a multiple of {LANES}")
        return self.entry(*numbers, *[lengths[axis] for axis in self.axes])

    def _number(self, argument: Argument, value: Any, lengths: dict[str, int]) -> Any:
        """A number, or where an array begins if its type, its layout and its lengths are those declared."""
        if argument.axes is None:
            return value
        shape = value.shape
        if (
            value.dtype != self.dtypes[argument.name]
            or len(shape) != len(argument.axes)
            or not value.flags.c_contiguous
        ):
            axes, lengths_of_value = ", ".join(argument.axes), ", ".join(map(str, shape))
            problem = f"must be a contiguous array {argument.dtype}[{axes}], not {value.dtype}[{lengths_of_value}]"
            raise TypeError(f"{argument.name} {problem}")
        for axis, length in zip(argument.axes, shape, strict=True):
            if length != lengths.setdefault(axis, int(axis) if axis.isdecimal() else length):
                raise ValueError(f"{argument.name} has {length} {axis}, not {lengths[axis]}")
        return address_of(value)


def _addresses_of(parameter: Parameter, state: State, lengths: dict[str, int]) -> list[int]:
    """Where the blocks of a state begin, whose types and layout are those of its class."""
    outputs = padded(state.n_outputs)
    if lengths.setdefault("padded", outputs) != outputs:
        raise ValueError(f"{parameter.name} has {outputs} outputs with padding, not {lengths['padded']}")
    blocks = state.blocks
    for argument, block in zip(parameter.arguments, blocks, strict=True):
        for axis, length in zip(argument.axes or (), block.shape, strict=True):
            if not axis.isdecimal() and lengths.setdefault(axis, length) != length:
                raise ValueError(f"{argument.name} has {length} {axis}, not {lengths[axis]}")
    return [address_of(block) for block in blocks]


def address_of(array: np.ndarray) -> int:
    """Where an array begins; four times as fast as what NumPy offers, which also serves read-only arrays."""
    try:
        return ctypes.addressof((ctypes.c_char * 0).from_buffer(array))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return int(array.ctypes.data)

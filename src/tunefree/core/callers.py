"""Calls of machine code, with the checks of arguments that it relies on.

The checks follow from the declaration of a kernel (:mod:`tunefree.core.declarations`) and are written out as a function
of Python, which takes a third of the time of a loop over the declaration.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tunefree.core.declarations import Argument, Declaration
from tunefree.core.fields import LANES, State

_C_TYPES: dict[str, Any] = {"int64": ctypes.c_int64, "float64": ctypes.c_double, "bool": ctypes.c_int64, "": None}
_NOTHING = ctypes.c_char * 0  # whose address is that of the buffer it is made from


def caller(kernel: Declaration, code: Any) -> Callable[..., Any]:
    """A kernel in machine code, with the checks that it relies on.

    Parameters
    ----------
    kernel : Declaration
    code : object
        With the ``address`` of the machine code, which lives as long as it.
    """
    arguments = [_C_TYPES[a.dtype] if a.axes is None else ctypes.c_void_p for a in kernel.arguments]
    types: list[Any] = [*arguments, *[ctypes.c_int64] * len(kernel.axes)]
    entry: Any = ctypes.CFUNCTYPE(_C_TYPES[kernel.result], *types)(code.address)
    entry.code = code
    return checked(kernel, entry)


def checked(kernel: Declaration, entry: Callable[..., Any]) -> Callable[..., Any]:
    """A function that checks the arguments of a kernel, and calls another one as the machine code is called."""
    scope: dict[str, Any] = {f"_{dtype}": np.dtype(dtype) for dtype in {a.dtype for a in kernel.arguments if a.axes}}
    scope |= {f"_class_of_{p.name}": p.kind for p in kernel.parameters if p.kind is not None}
    scope |= {"_entry": entry, "_wrong": wrong, "_addresses_of": addresses_of, "_address_of": address_of}
    exec(caller_source(kernel), scope)
    call: Callable[..., Any] = scope["call"]
    return call


def caller_source(kernel: Declaration) -> str:
    """The source of a function that checks arguments and calls machine code: written out for a kernel, it is fast.

    Examples
    --------
    >>> from typing import Annotated
    >>> from tunefree.core.kernels import kernel
    >>> @kernel
    ... def double(numbers: Annotated[np.ndarray, "float64[n]"], factor: float) -> None:
    ...     pass
    >>> print(caller_source(double))
    def call(numbers, factor):
        if numbers.dtype != _float64 or numbers.ndim != 1 or not numbers.flags.c_contiguous:
            raise _wrong('numbers', 'float64', ('n',), numbers)
        length_n = numbers.shape[0]
        return _entry(_address_of(numbers), factor, length_n)
    """
    lengths = {axis: str(length) for axis, length in kernel.lengths.items()}
    lines, numbers = [f"def call({', '.join(parameter.name for parameter in kernel.parameters)}):"], []
    for name, kind, arguments in kernel.parameters:
        if kind is not None:
            message = f"{name} must be {kind.__name__}, not "
            lines.append(f"if type({name}) is not _class_of_{name}:")
            lines.append(f"    raise TypeError({message!r} + type({name}).__name__)")
        if kind is not None and issubclass(kind, State):
            lines += _checks_of_state(name, arguments, lengths)
            numbers.append(f"*_addresses_of({name})")
            continue
        if kind is not None:
            lines += [f"{argument.name} = {name}[{place}]" for place, argument in enumerate(arguments)]
        for argument in arguments:
            lines += _checks_of(argument, lengths) if argument.axes is not None else []
            numbers.append(f"_address_of({argument.name})" if argument.axes is not None else argument.name)
    if "padded" in kernel.axes:
        message = f"{kernel.name} is for several outputs: their padded number is a multiple of {LANES}"
        lines += [f"if {lengths['padded']} % {LANES}:", f"    raise ValueError({message!r})"]
    lines.append(f"return _entry({', '.join([*numbers, *[lengths[axis] for axis in kernel.axes]])})")
    return "\n    ".join(lines)


def _checks_of(argument: Argument, lengths: dict[str, str]) -> list[str]:
    """Lines that check an array, and name the lengths of axes that have no name yet."""
    name, dtype, axes = argument.name, argument.dtype, argument.axes or ()
    first = {axis: place for place, axis in enumerate(axes) if axis not in lengths and not axis.isdecimal()}
    lengths |= {axis: f"length_{axis}" for axis in first}
    shape = f"({''.join(lengths.get(axis, axis) + ', ' for axis in axes)})"
    description = f"{name!r}, {dtype!r}, {axes!r}, {name}"
    if not first:
        return [
            f"if {name}.dtype != _{dtype} or {name}.shape != {shape} or not {name}.flags.c_contiguous:",
            f"    raise _wrong({description}, {shape})",
        ]
    lines = [
        f"if {name}.dtype != _{dtype} or {name}.ndim != {len(axes)} or not {name}.flags.c_contiguous:",
        f"    raise _wrong({description})",
        *[f"length_{axis} = {name}.shape[{place}]" for axis, place in first.items()],
    ]
    if len(first) < len(axes):
        lines += [f"if {name}.shape != {shape}:", f"    raise _wrong({description}, {shape})"]
    return lines


def _checks_of_state(name: str, arguments: Sequence[Argument], lengths: dict[str, str]) -> list[str]:
    """Lines that check lengths of a state, once each: its arrays fit together, and are of its class's types."""
    lines = []
    axes = {axis: (block, place) for block, a in enumerate(arguments) for place, axis in enumerate(a.axes or ())}
    for axis, (block, place) in axes.items():
        length = f"{name}.blocks[{block}].shape[{place}]"
        if axis in lengths:
            message = f"{name} has %d {axis}, not %d"
            lines += [f"if {length} != {lengths[axis]}:"]
            lines += [f"    raise ValueError({message!r} % ({length}, {lengths[axis]}))"]
        elif not axis.isdecimal():
            lengths[axis] = f"length_{axis}"
            lines.append(f"length_{axis} = {length}")
    return lines


def wrong(name: str, dtype: str, axes: tuple[str, ...], array: Any, shape: tuple[int, ...] = ()) -> Exception:
    """What is wrong with an array that should have a type, axes, and a shape."""
    if array.dtype != np.dtype(dtype) or array.ndim != len(axes) or not array.flags.c_contiguous:
        problem = f"must be a contiguous array {dtype}[{', '.join(axes)}]"
        return TypeError(f"{name} {problem}, not {array.dtype}[{', '.join(map(str, array.shape))}]")
    differing = (place for place, length in enumerate(array.shape) if length != shape[place])
    place = next(differing)
    return ValueError(f"{name} has {array.shape[place]} {axes[place]}, not {shape[place]}")


def addresses_of(state: State) -> list[int]:
    """Where the arrays of a state begin, which it keeps: none is ever replaced."""
    if state.addresses is None:
        state.addresses = [address_of(block) for block in state.blocks]
    return state.addresses


def address_of(array: np.ndarray) -> int:
    """Where an array begins; four times as fast as what NumPy offers, which also serves read-only arrays."""
    try:
        return ctypes.addressof(_NOTHING.from_buffer(array))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return int(array.ctypes.data)

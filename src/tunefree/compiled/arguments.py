"""The table of words that machine code takes, made of arguments that are checked first.

The checks follow from the declaration of a compiled function (:mod:`tunefree.compiled.declarations`). They compare
lists: types, numbers of axes and lengths of all arrays at once. Which argument is wrong is looked for where a
comparison fails.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from tunefree.compiled.declarations import Argument, Declaration, Parameter
from tunefree.core.fields import LANES, State

WORDS = {"int64": "q", "float64": "d", "bool": "?7x", "": "q"}  # of a table; an address has no type
_RESULTS: dict[str, Any] = {"int64": ctypes.c_int64, "float64": ctypes.c_double, "bool": ctypes.c_int64}
_nothing_at = (ctypes.c_char * 0).from_buffer  # whose address is that of the array it is made from
_dtype, _shape = attrgetter("dtype"), attrgetter("shape")


def caller(declaration: Declaration, code: Any) -> Callable[..., Any]:
    """A function that checks the arguments of a compiled function and calls its machine code.

    Parameters
    ----------
    declaration : Declaration
    code : object
        With the ``address`` of the machine code, which lives as long as it.
    """
    entry: Any = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(code.address)
    entry.code, table_of = code, tables(declaration)
    if not declaration.result:
        return lambda *values: entry(table_of(*values))
    kind = _RESULTS[declaration.result]

    def call(*values: Any) -> Any:
        result = kind()
        entry(table_of(*values) + struct.pack("<q", ctypes.addressof(result)))
        return result.value

    return call


def tables(declaration: Declaration) -> Callable[..., bytes]:
    """A function that checks the arguments of a compiled function and returns their words, see
    :attr:`Declaration.words`.

    Examples
    --------
    >>> from typing import Annotated
    >>> from tunefree.compiled.functions import compiled
    >>> @compiled
    ... def double(numbers: Annotated[np.ndarray, "float64[n]"], factor: float) -> None:
    ...     pass
    >>> numbers = np.arange(3.0)
    >>> struct.unpack("<qqd", tables(double)(numbers, 2.0)) == (numbers.ctypes.data, 3, 2.0)
    True
    """
    parameters = declaration.parameters
    arrays = [a for p in parameters if not p.is_state for a in p.arguments if a.axes]
    classes = {place: parameter.kind for place, parameter in enumerate(parameters) if parameter.kind is not None}
    kinds, classes_of = [*classes.values()], _picker([*classes])
    dtypes, ranks = [np.dtype(array.dtype) for array in arrays], [len(array.axes or ()) for array in arrays]
    records, states, arrays_of, numbers_of = _places(parameters)
    constants, repeated, first, axes, padded = _lengths(declaration)
    pack = struct.Struct("<" + "".join(WORDS[word.dtype] for word in declaration.words)).pack

    def table_of(*values: Any) -> bytes:
        if len(values) != len(parameters) or [*map(type, classes_of(values))] != kinds:
            raise problem(declaration, values)
        flat = list(values)
        for place in records:
            flat[place : place + 1] = flat[place]
        addresses: list[int] = []
        lengths: list[int] = []
        for place in states:
            memory = memory_of(flat[place])
            addresses += memory[0]
            lengths += memory[1]
        others = arrays_of(flat)
        shapes = [*map(_shape, others)]
        lengths += chain(*shapes, constants)
        if [*map(_dtype, others)] != dtypes or [*map(len, shapes)] != ranks or repeated(lengths) != first(lengths):
            raise problem(declaration, values)
        if padded is not None and lengths[padded] % LANES:
            raise problem(declaration, values)
        try:
            words = *addresses, *_addresses_of(others), *axes(lengths)
            try:
                return pack(*words, *numbers_of(flat))
            except struct.error:  # perhaps a number of 64 bits without a sign, such as a seed
                return pack(*words, *map(_signed, numbers_of(flat)))
        except (ValueError, struct.error):  # not contiguous, or no numbers
            raise problem(declaration, values) from None

    return table_of


def _signed(number: Any) -> Any:
    """The integer of 64 bits whose highest one is a sign, of one without a sign."""
    return number - (1 << 64) if isinstance(number, int) and number >> 63 == 1 else number


def _places(parameters: Sequence[Parameter]) -> tuple[list[int], list[int], Any, Any]:
    """The places of records, the last one first; those of states once records are taken apart; and functions that then
    pick the arrays and the numbers."""
    records: list[int] = []
    states: list[int] = []
    arrays: list[int] = []
    numbers: list[int] = []
    for place, parameter in enumerate(parameters):
        start = len(states) + len(arrays) + len(numbers)
        if parameter.is_state:
            states.append(start)
            continue
        if parameter.kind is not None:
            records.insert(0, place)
        for k, argument in enumerate(parameter.arguments, start):
            (numbers if argument.axes is None else arrays).append(k)
    return records, states, _picker(arrays), _picker(numbers)


def _lengths(declaration: Declaration) -> tuple[list[int], Any, Any, Any, int | None]:
    """How lengths are compared: further ones, which are known; functions of all lengths that return those of axes
    which had been there before, those they must be, and one of each axis; and where the padded one is."""
    names = [axis for array in declaration.arrays for axis in array.axes or ()]
    known = {**declaration.lengths, **{axis: int(axis) for axis in names if axis.isdecimal()}}
    first = {axis: len(names) + k for k, axis in enumerate(known)}
    repeated = []
    for place, axis in enumerate(names):
        if first.setdefault(axis, place) != place:
            repeated.append((place, first[axis]))
    pickers = [_picker(places) for places in ([p for p, _ in repeated], [q for _, q in repeated])]
    padded = first["padded"] if "padded" in declaration.axes else None
    return [*known.values()], pickers[0], pickers[1], _picker([first[axis] for axis in declaration.axes]), padded


def _picker(places: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """A function that returns the items at some places."""
    if len(places) > 1:
        return itemgetter(*places)
    return (lambda items: (items[places[0]],)) if places else (lambda items: ())


def problem(declaration: Declaration, values: Sequence[Any]) -> Exception:
    """The error of arguments that are not as declared."""
    if len(values) != len(declaration.parameters):
        return TypeError(f"{declaration.name} takes {len(declaration.parameters)} arguments, not {len(values)}")
    lengths = dict(declaration.lengths)
    for parameter, value in zip(declaration.parameters, values, strict=True):
        if parameter.kind is not None and type(value) is not parameter.kind:
            return TypeError(f"{parameter.name} must be {parameter.kind.__name__}, not {type(value).__name__}")
        parts = value.blocks if parameter.is_state else (value,) if parameter.kind is None else value
        for argument, part in zip(parameter.arguments, parts, strict=True):
            if error := _problem_of(argument, part, lengths):
                return error
    return ValueError(f"{declaration.name} is for several outputs: their padded number is a multiple of {LANES}")


def _problem_of(argument: Argument, value: Any, lengths: dict[str, int]) -> Exception | None:
    """The error of a number, or of an array, whose lengths are added to those known."""
    name, dtype, axes = argument.name, argument.dtype, argument.axes
    if axes is None:
        try:
            struct.pack("<" + WORDS[dtype], _signed(value))
        except struct.error:
            return TypeError(f"{name} must be {dtype}, not {value!r}")
        return None
    if value.dtype != np.dtype(dtype) or value.ndim != len(axes) or not value.flags.c_contiguous:
        declared = f"must be a contiguous array {dtype}[{', '.join(axes)}]"
        return TypeError(f"{name} {declared}, not {value.dtype}[{', '.join(map(str, value.shape))}]")
    for axis, length in zip(axes, value.shape, strict=True):
        expected = int(axis) if axis.isdecimal() else lengths.setdefault(axis, length)
        if length != expected:
            return ValueError(f"{name} has {length} {axis}, not {expected}")
    return None


def memory_of(state: State) -> tuple[list[int], list[int]]:
    """Where the blocks of a state begin, and their lengths, which it keeps: none is ever replaced."""
    if state.memory is None:
        state.memory = _addresses_of(state.blocks), [*chain(*map(_shape, state.blocks))]
    return state.memory


def _addresses_of(arrays: Sequence[np.ndarray]) -> list[int]:
    """Where arrays begin; four times as fast as what NumPy offers, which also serves read-only arrays."""
    try:
        return [*map(ctypes.addressof, map(_nothing_at, arrays))]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        if not all(array.flags.c_contiguous for array in arrays):
            raise ValueError("an array is not contiguous") from None
        return [int(array.ctypes.data) for array in arrays]

"""Compiled functions: plain functions over arrays with declared axes, which run as machine code or as Python.

Each call checks the arguments, so that arrays passed to compiled code have the declared dtype, layout and lengths
(:mod:`tunefree.compiled.declarations`). The machine code (:mod:`tunefree.compiled.loading`) takes a table of words:
addresses, lengths and scalars.

For a single row, checks and addresses often take longer than the compiled function. A :class:`Program` of calls on
fixed arrays prepares them once. For each call its table contains the address of the compiled function, the number of
words, and the words; a function in machine code executes the calls in order.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Sequence
from functools import cache, cached_property, lru_cache, partial
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from tunefree.compiled.declarations import Declaration
from tunefree.core.fields import LANES

IS_COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")  # else compiled functions run as Python
CHECKS_BOUNDS = os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")
WORDS = {"int64": "q", "float64": "d", "bool": "?7x", "": "q"}  # struct formats of words; addresses have no dtype
_RESULTS: dict[str, Any] = {"int64": ctypes.c_int64, "float64": ctypes.c_double, "bool": ctypes.c_int64}
_nothing_at = (ctypes.c_char * 0).from_buffer  # a ctypes object at the address of an array
_dtype, _shape = attrgetter("dtype"), attrgetter("shape")
MOST_KNOWN = 256  # number of cached argument shapes per compiled function


class Compiled(Declaration):
    """A plain function that is compiled at its first call; its arguments must be as declared.

    The parameters are described in :class:`tunefree.compiled.declarations.Declaration`.

    >>> from typing import Annotated
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

    def __call__(self, *values: Any) -> Any:
        return self._compiled(*values) if IS_COMPILED else self.function(*values)

    @cached_property
    def _compiled(self) -> Callable[..., Any]:
        from tunefree.compiled import loading

        if CHECKS_BOUNDS:
            check, compute = self.table_of, loading.with_checked_bounds(self)

            def checked(*values: Any) -> Any:
                check(*values)
                return compute(*map(_signed, values))

            return checked
        if self.code is None:  # overflow is silent, as in compiled code
            return np.errstate(all="ignore")(self.function)
        entry, table_of = self.code, self.table_of
        if not self.result:
            return lambda *values: entry(table_of(*values))
        kind = _RESULTS[self.result]

        def call(*values: Any) -> Any:
            result = kind()
            entry(table_of(*values) + struct.pack("<q", ctypes.addressof(result)))
            return result.value

        return call

    @cached_property
    def code(self) -> Any:
        """The machine code (:func:`tunefree.compiled.loading.load`); None if the function runs as Python."""
        from tunefree.compiled import loading

        return loading.load(self) if IS_COMPILED and not CHECKS_BOUNDS else None

    @cached_property
    def table_of(self) -> Callable[..., bytes]:
        """A function that checks the arguments and packs them into words, see :attr:`Declaration.words`."""
        n_parameters = len(self.parameters)
        records = [(k, p.kind, p.is_state, p.name) for k, p in enumerate(self.parameters) if p.kind is not None]
        arguments = [argument for p in self.parameters if not p.is_state for argument in p.arguments]
        arrays_of = _picker([k for k, argument in enumerate(arguments) if argument.axes is not None])
        numbers_of = _picker([k for k, argument in enumerate(arguments) if argument.axes is None])
        pack = struct.Struct("<" + "".join(WORDS[word.dtype] for word in self.words)).pack
        lengths_of = lru_cache(MOST_KNOWN)(partial(checked_lengths, self))

        def table_of(*values: Any) -> bytes:
            if len(values) != n_parameters:
                raise TypeError(f"{self.name} takes {n_parameters} arguments, not {len(values)}")
            addresses, state_shapes, flat, start = list[int](), list[Any](), list[Any](), 0
            for k, kind, is_state, name in records:
                value = values[k]
                if type(value) is not kind:
                    raise TypeError(f"{name} must be {kind.__name__}, not {type(value).__name__}")
                flat += values[start:k]
                start = k + 1
                if is_state:
                    if value.memory is None:  # cached, as blocks are never replaced
                        value.memory = _addresses_of(value.blocks), [*map(_shape, value.blocks)]
                    addresses += value.memory[0]
                    state_shapes += value.memory[1]
                else:
                    flat += value
            flat += values[start:]
            arrays, numbers = arrays_of(flat), numbers_of(flat)
            lengths = lengths_of((*state_shapes, *map(_shape, arrays)), (*map(_dtype, arrays),))
            try:
                words = *addresses, *_addresses_of(arrays), *lengths
                try:
                    return pack(*words, *numbers)
                except struct.error:  # possibly an unsigned 64-bit integer, such as a seed
                    return pack(*words, *map(_signed, numbers))
            except (ValueError, struct.error):
                raise problem(self, arrays, numbers) from None

        return table_of


def compiled(function: Callable[..., Any]) -> Compiled:
    """Decorator that declares a compiled function, see :class:`Compiled`."""
    return Compiled(function)


def _picker(indices: list[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """A function that returns the elements of a sequence at some indices."""
    if len(indices) > 1:
        return itemgetter(*indices)
    return (lambda values: (values[indices[0]],)) if indices else (lambda values: ())


def _signed(number: Any) -> Any:
    """The signed 64-bit integer with the bits of an unsigned one; other values unchanged."""
    return number - (1 << 64) if isinstance(number, int) and number >> 63 == 1 else number


def checked_lengths(declaration: Declaration, shapes: tuple[Any, ...], dtypes: tuple[Any, ...]) -> list[int]:
    """The lengths of axes; an error if arrays are not as declared. Shapes of states come first, without dtypes."""
    lengths, arrays = dict(declaration.lengths), declaration.arrays
    dtypes = *(np.dtype(array.dtype) for array in arrays[: len(arrays) - len(dtypes)]), *dtypes
    for (name, expected, axes), shape, dtype in zip(arrays, shapes, dtypes, strict=True):
        if dtype != np.dtype(expected) or len(shape) != len(axes or ()):
            raise TypeError(f"{_declared(name, expected, axes)}, not {dtype}[{', '.join(map(str, shape))}]")
        for axis, length in zip(axes or (), shape, strict=True):
            expected_length = int(axis) if axis.isdecimal() else lengths.setdefault(axis, length)
            if length != expected_length:
                raise ValueError(f"{name} has {length} {axis}, not {expected_length}")
    if "padded" in declaration.axes and lengths["padded"] % LANES:
        raise ValueError(f"{declaration.name} is for several outputs: their padded number is a multiple of {LANES}")
    return [lengths[axis] for axis in declaration.axes]


def _declared(name: str, dtype: str, axes: Any) -> str:
    return f"{name} must be a contiguous array {dtype}[{', '.join(axes)}]"


def problem(declaration: Declaration, arrays: Sequence[np.ndarray], numbers: Sequence[Any]) -> TypeError:
    """The error for an array that is not contiguous, or a scalar of a wrong type."""
    for argument, array in zip(reversed(declaration.arrays), reversed(arrays), strict=False):
        if not array.flags.c_contiguous:
            return TypeError(f"{_declared(*argument)}, not {array.dtype}[{', '.join(map(str, array.shape))}]")
    scalars = [f"{name} ({dtype})" for name, dtype, axes in declaration.arguments if axes is None]
    return TypeError(f"{declaration.name} takes the numbers {', '.join(scalars)}, not {', '.join(map(repr, numbers))}")


def _addresses_of(arrays: Sequence[np.ndarray]) -> list[int]:
    """The addresses of arrays; ctypes is four times as fast as NumPy, but does not support read-only arrays."""
    try:
        return [*map(ctypes.addressof, map(_nothing_at, arrays))]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        if not all(array.flags.c_contiguous for array in arrays):
            raise ValueError("an array is not contiguous") from None
        return [int(array.ctypes.data) for array in arrays]


Call = tuple[Any, ...]  # a compiled function and its arguments
RUNNER = """
define void @run(ptr %table) {
start:
  br label %next
next:
  %place = phi ptr [%table, %start], [%end, %call]
  %kernel = load ptr, ptr %place
  %is_end = icmp eq ptr %kernel, null
  br i1 %is_end, label %stop, label %call
call:
  %at = getelementptr i64, ptr %place, i64 1
  %count = load i64, ptr %at
  %words = getelementptr i64, ptr %place, i64 2
  call void %kernel(ptr %words)
  %end = getelementptr i64, ptr %words, i64 %count
  br label %next
stop:
  ret void
}
"""


class Program:
    """A sequence of calls of compiled functions without results, on fixed arrays.

    The contents of the arrays may change between runs; scalars are fixed. Arguments are checked once.

    >>> from typing import Annotated
    >>> @compiled
    ... def add(step: float, numbers: Annotated[np.ndarray, "float64[n]"], times: int) -> None:
    ...     for i in range(len(numbers)):
    ...         numbers[i] += step * times
    >>> numbers = np.zeros(2)
    >>> program = Program([(add, 0.5, numbers, 2), (add, 1.0, numbers[:1], 1)])
    >>> program.run()
    >>> program.run()
    >>> numbers
    array([4., 2.])
    """

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = list(calls)  # keeps the arrays alive
        self.run: Callable[[], None] = self._run_one_by_one
        if returning := [declaration.name for declaration, *_ in self._calls if declaration.result]:
            raise TypeError(f"{returning[0]} returns a number, which a program has no place for")
        if self._calls and all(declaration.code is not None for declaration, *_ in self._calls):
            self._table = b"".join(_words(*call) for call in self._calls) + bytes(8)
            self.run = partial(_runner(), self._table)

    def _run_one_by_one(self) -> None:
        for declaration, *values in self._calls:
            declaration(*values)


def _words(declaration: Compiled, *values: Any) -> bytes:
    """The words of a call: the address of the compiled function, the number of its words, and the words."""
    words = declaration.table_of(*values)
    return struct.pack("<qq", declaration.code.address, len(words) // 8) + words


@cache
def _runner() -> Callable[[bytes], None]:
    """A function that executes the calls of a table, which ends with a zero word."""
    from tunefree.compiled import loading

    runner: Callable[[bytes], None] = loading.linked([loading.machine_code(RUNNER)], "run")
    return runner

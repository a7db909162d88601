"""Compiled functions: plain functions over arrays with declared axes, which run as machine code or as they stand.

Called, a compiled function checks its arguments: compiled code never sees an array of another type, layout or length
than declared (:mod:`tunefree.compiled.declarations`). It is compiled the first time that it is called
(:mod:`tunefree.compiled.loading`). Its machine code takes a table of words: addresses, lengths and numbers. The checks
compare lists: types, numbers of axes and lengths of all arrays at once. Which argument is wrong is looked for where a
comparison fails.

Checks and addresses take longer than many a compiled function takes for one row. A program of calls on arrays that stay
where they are makes them once. Its table has for each call the address of the compiled function, the number of its
words, and these. A function in machine code makes the calls one after the other. It is the same for all programs, since
each compiled function loads its words from the table.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from tunefree.compiled.declarations import Argument, Declaration, Parameter
from tunefree.core.fields import LANES, State

IS_COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")  # else compiled functions run as they stand
CHECKS_BOUNDS = os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")
WORDS = {"int64": "q", "float64": "d", "bool": "?7x", "": "q"}  # of a table; an address has no type
_RESULTS: dict[str, Any] = {"int64": ctypes.c_int64, "float64": ctypes.c_double, "bool": ctypes.c_int64}
_nothing_at = (ctypes.c_char * 0).from_buffer  # whose address is that of the array it is made from
_dtype, _shape = attrgetter("dtype"), attrgetter("shape")


class Compiled(Declaration):
    """A plain function that is compiled when it is first called; its arguments must be as declared.

    Its parameters are those of :class:`tunefree.compiled.declarations.Declaration`.

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

    _compiled: Callable[..., Any] | None = None

    def __call__(self, *values: Any) -> Any:
        if not IS_COMPILED:
            return self.function(*values)
        if self._compiled is None:
            self._compiled = self._loaded()
        return self._compiled(*values)

    def _loaded(self) -> Callable[..., Any]:
        from tunefree.compiled import loading

        if CHECKS_BOUNDS:
            return loading.with_checked_bounds(self)
        if self.code is None:  # numbers overflow as in compiled code
            return np.errstate(all="ignore")(self.function)
        entry, table_of = entry_of(self.code), self.table_of
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
        """Its machine code (:class:`tunefree.compiled.loading.Code`); None where it runs otherwise."""
        from tunefree.compiled import loading

        return loading.load(self) if IS_COMPILED and not CHECKS_BOUNDS else None

    @cached_property
    def table_of(self) -> Callable[..., bytes]:
        """A function that checks the arguments and returns their words, see :attr:`Declaration.words`."""
        return tables(self)


def compiled(function: Callable[..., Any]) -> Compiled:
    """Declare a compiled function, see :class:`Compiled`."""
    return Compiled(function)


def entry_of(code: Any) -> Any:
    """The function of a table that machine code is, which lives as long as it."""
    entry: Any = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(code.address)
    entry.code = code
    return entry


def tables(declaration: Declaration) -> Callable[..., bytes]:
    """:attr:`Compiled.table_of` of a declaration."""
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


Call = tuple[Any, ...]  # a compiled function, and its arguments
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
    """Some calls of compiled functions that return nothing, in their order, on the arrays that they are made with.

    What is in the arrays may change between runs; numbers are those given here. Arguments are checked as by each call.

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
        self._calls = list(calls)  # which keep the arrays
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
    """The words of a call: the address of the compiled function, how many follow, and those that it takes."""
    words = declaration.table_of(*values)
    return struct.pack("<qq", declaration.code.address, len(words) // 8) + words


@cache
def _runner() -> Callable[[bytes], None]:
    """A function that makes the calls of a table, which ends with a word that is zero."""
    from tunefree.compiled import loading

    runner: Callable[[bytes], None] = entry_of(loading.linked([loading.machine_code(RUNNER)], "run"))
    return runner

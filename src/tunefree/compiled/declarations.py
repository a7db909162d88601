"""Declarations of compiled functions: their arguments, the axes of arrays, and a digest of their sources.

The annotations of a compiled function declare its arguments: arrays, ``Annotated[np.ndarray, "float64[rows,
columns]"]``, whose axes of the same name have the same length; scalars, ``int``, ``float`` and ``bool``; and records,
NamedTuples of such arrays or scalars. The classes of arguments that are states (:mod:`tunefree.core.fields`) are passed
to the declaration. The axis ``padded`` is the axis of padded outputs, with a length that is a multiple of LANES; a
compiled function for one output declares the length 1. A compiled function never raises, never allocates, and returns
nothing or a number.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import linecache
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.fields import BLOCKS, DTYPE, FEATURE, LANES, OUTPUT, State

EDITION = "4"  # increase it when the exporter or loader changes the generated code
# Decorators, the header, and the lines up to the next line with the same indentation.
_FUNCTION = re.compile(r"(?:[ \t]*@.*\n)*([ \t]*)def .*\n(?:(?:\1[ \t)].*|[ \t]*)\n)*")
_NUMBERS = {int: "int64", float: "float64", bool: "bool"}


class Argument(NamedTuple):
    """An argument of compiled code: an array with named axes, or a scalar."""

    name: str
    dtype: str
    axes: tuple[str, ...] | None  # None for a scalar


class Parameter(NamedTuple):
    """A parameter of the Python function, and the corresponding arguments of compiled code."""

    name: str
    kind: Any  # the class of a state or a record; None for an array or a scalar
    arguments: tuple[Argument, ...]

    @property
    def is_state(self) -> bool:
        """Whether it is a state; its arguments are then the blocks of the state."""
        return isinstance(self.kind, type) and issubclass(self.kind, State)


class Declaration:
    """A Python function to be compiled, with its declared arguments.

    ``name`` is unique. ``states`` maps parameters to the classes of states, and of records without an annotation.
    ``lengths`` are the lengths of axes that are known at compile time. ``parts`` are compiled functions of arrays and
    scalars that this function calls as separate machine code; other functions are compiled into it.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        name: str = "",
        states: Mapping[str, type[Any]] | None = None,
        lengths: Mapping[str, int] | None = None,
        parts: Sequence[Declaration] = (),
    ) -> None:
        self.function, self.states, self.lengths = function, dict(states or {}), dict(lengths or {})
        self._possible_parts = tuple(parts)
        self.name = name or f"{function.__module__.removeprefix('tunefree.')}.{function.__name__}"
        functools.update_wrapper(self, function)  # type: ignore[arg-type]

    @functools.cached_property
    def parameters(self) -> list[Parameter]:
        """The parameters of the function."""
        hints = typing.get_type_hints(self.function, include_extras=True)
        hints.pop("return", None)
        names = inspect.signature(self.function).parameters
        return [_parameter(name, self.states.get(name, hints.get(name))) for name in names]

    @functools.cached_property
    def result(self) -> str:
        """The dtype of the result; empty if there is no result."""
        hint = typing.get_type_hints(self.function).get("return", type(None))
        return _NUMBERS.get(hint, "")

    @property
    def arguments(self) -> list[Argument]:
        """The arrays and scalars that correspond to the parameters."""
        return [argument for parameter in self.parameters for argument in parameter.arguments]

    @property
    def arrays(self) -> list[Argument]:
        """The arguments that are arrays, the arrays of states first."""
        parameters = sorted(self.parameters, key=lambda parameter: not parameter.is_state)
        return [argument for p in parameters for argument in p.arguments if argument.axes is not None]

    @property
    def words(self) -> list[Argument]:
        """The words that compiled code takes: addresses (without a dtype), lengths of axes, and scalars."""
        addresses = [Argument(array.name, "", None) for array in self.arrays]
        lengths = [Argument(f"length_{axis}", "int64", None) for axis in self.axes]
        return [*addresses, *lengths, *[argument for argument in self.arguments if argument.axes is None]]

    @property
    def axes(self) -> list[str]:
        """The axes whose lengths are passed to compiled code."""
        axes = dict.fromkeys(axis for argument in self.arguments for axis in argument.axes or ())
        return [axis for axis in axes if not axis.isdecimal() and axis not in self.lengths]

    @functools.cached_property
    def parts(self) -> tuple[Declaration, ...]:
        """The compiled functions that this one calls as separate machine code."""
        functions = functions_of(self.function, frozenset(part.function for part in self._possible_parts))
        return tuple(part for part in self._possible_parts if part.function in functions)

    @functools.cached_property
    def digest(self) -> str:
        """A digest of the sources, the key of bitcode and machine code."""
        parts = [EDITION, str(LANES), repr(self.arguments), repr(self.lengths), self.result]
        state_classes = [cls for cls in self.states.values() if issubclass(cls, State)]
        parts += [repr([(field.name, field.axes) for field in cls.fields]) for cls in state_classes]
        parts += [repr((part.name, part.arguments)) for part in self.parts]
        functions = functions_of(self.function)
        sources = [source for function in functions for source in (source_of(function), *constants_of(function))]
        return hashlib.sha256("\0".join([*parts, *dict.fromkeys(sources)]).encode()).hexdigest()


def _parameter(name: str, hint: Any) -> Parameter:
    if isinstance(hint, type) and issubclass(hint, State):
        return Parameter(name, hint, tuple(_arguments_of_state(name, hint)))
    if hasattr(hint, "_fields"):
        fields = typing.get_type_hints(hint, include_extras=True)
        return Parameter(name, hint, tuple(_argument(f"{name}_{field}", fields[field]) for field in hint._fields))
    return Parameter(name, None, (_argument(name, hint),))


def _argument(name: str, hint: Any) -> Argument:
    if hint in _NUMBERS:
        return Argument(name, _NUMBERS[hint], None)
    if not hasattr(hint, "__metadata__"):
        raise TypeError(f"the annotation of {name} must be a number, or an Annotated array with its type and axes")
    dtype, *axes = re.findall(r"\w+", hint.__metadata__[0])
    return Argument(name, dtype, tuple(axes))


def _arguments_of_state(name: str, cls: type[State]) -> list[Argument]:
    """The blocks of a state; the axes of features and further axes are specific to this parameter."""
    axis_names = {FEATURE: f"{name}_features", OUTPUT: "padded"}
    arguments = []
    for block, axes in BLOCKS.items():
        shape = [axis_names[axis] for axis in axes]
        shape.insert(1 if axes[:1] == (FEATURE,) else 0, str([other for other, _ in cls.places.values()].count(block)))
        dtype = np.dtype(cls.dtypes.get(block, DTYPE)).name
        arguments.append(Argument(f"{name}_{block}", dtype, tuple(shape)))
    for field in [field for field in cls.fields if field.name in cls.alone]:
        lengths = [f"{name}_features" if axis == FEATURE else f"{name}_{axis}" for axis in field.axes]
        arguments.append(Argument(f"{name}_{field.name}", "float64", tuple(lengths)))
    return arguments


def globals_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The objects that a function refers to by name: called functions, and constants."""
    code, scope = function.__code__, function.__globals__
    variables = {name: scope[name] for name in names_in(code) if name in scope}
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    return dict(sorted((variables | {name: cell.cell_contents for name, cell in cells}).items()))


def names_in(code: CodeType) -> set[str]:
    """The names in a function and in its comprehensions, which are separate functions before Python 3.12."""
    inner = [names_in(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)


@functools.cache
def functions_of(
    function: Callable[..., Any], ends: frozenset[Callable[..., Any]] = frozenset()
) -> dict[Callable[..., Any], None]:
    """A function and all functions that it calls, in order of reference, without the callees of ``ends``."""
    functions = {function: None}
    if function not in ends:
        for value in map(plain, globals_of(function).values()):
            if is_plain(value):
                functions |= functions_of(value, ends)
    return functions


@functools.cache
def source_of(function: Callable[..., Any]) -> str:
    """The source lines of a function without comments; parsing would take ten times as long."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    match = _FUNCTION.match("".join(lines))
    source = inspect.getsource(function) if match is None else match[0]  # a lambda does not match
    return "\n".join(filter(None, (re.sub(r"\s*(#.*)?$", "", line) for line in source.splitlines())))


def constants_of(function: Callable[..., Any]) -> list[str]:
    """The constants that a function reads."""
    constants = []
    for name, value in globals_of(function).items():
        if isinstance(value, int | float | str | tuple) or getattr(value, "_fields", None):
            constants.append(f"{name} = {getattr(value, '_fields', value)!r}")
        elif isinstance(value, np.generic | np.ndarray):
            constants.append(f"{name} = {value.dtype} {value.tolist()!r}")
    return constants


def plain(value: Any) -> Any:
    """The plain function inside a wrapper."""
    return getattr(value, "py_func", getattr(value, "function", value) if isinstance(value, Declaration) else value)


def is_plain(value: Any) -> bool:
    """Whether a value is a plain function, not a single-dispatch function."""
    return isinstance(value, FunctionType) and not hasattr(value, "register")

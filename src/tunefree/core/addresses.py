"""Functions that compiled code calls by their address, so that one compilation serves all classes of an argument.

A pass is compiled for each class of learner it is called with, which takes seconds, and would be compiled again for
each class of objective. A function that is called once a row costs next to nothing more if it is called by its address.
So passes are compiled for the learners alone, and reach the functions of an objective by address; the numbers in the
objective lie in an array. Numba caches this on disk like all other code: addresses are found when code is loaded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic, overload

POINTER = types.CPointer(types.float64)  # an array, by where it begins: no references have to be counted
NUMBER, COUNT, NOTHING = types.float64, types.int64, types.void


def numbers_of(value: Any) -> list[float]:
    """The numbers in nested tuples, in order.

    Examples
    --------
    >>> numbers_of((1.0, (), (2.0, 3.0)))
    [1.0, 2.0, 3.0]
    """
    return [number for part in value for number in numbers_of(part)] if isinstance(value, tuple) else [float(value)]


def with_numbers(value: Any, numbers: np.ndarray) -> Any:
    """The same nested NamedTuples with other numbers.

    Examples
    --------
    >>> from tunefree.losses import Logistic, objectives
    >>> with_numbers(objectives.Binary(Logistic(), 0.5), np.array([1.0, 0.25, 3.0])).steepest
    3.0
    """
    remaining = iter(numbers.tolist())

    def filled(part: Any) -> Any:
        return type(part)(*map(filled, part)) if isinstance(part, tuple) else type(part)(next(remaining))

    return filled(value)


def classes_of(value: Any) -> Any:
    """The classes of nested tuples and of the numbers in them: what compiled code differs by."""
    return (type(value), *map(classes_of, value)) if isinstance(value, tuple) else type(value)


def array(numbers: Any, length: int) -> Any:
    """The array whose beginning a function was called with; uncompiled functions get the array itself."""
    return numbers


@overload(array)
def _array(numbers, length):
    return lambda numbers, length: carray(numbers, (length,))


def store(numbers: Any, value: Any) -> None:
    """Write the numbers in nested tuples to an array, or to where one begins."""
    numbers[:] = numbers_of(value)


@overload(store)
def _store(numbers, value):
    return lambda numbers, value: _store_compiled(numbers, value)  # type: ignore[call-arg]


def _parts(kind: Any) -> Any:
    """The types in that of a tuple; None of a number."""
    return kind.types if isinstance(kind, types.BaseTuple) else None  # type: ignore[attr-defined]


def _leaves(kind: Any) -> int:
    parts = _parts(kind)
    return 1 if parts is None else sum(_leaves(part) for part in parts)


def _place(builder: Any, numbers: Any, at: int) -> Any:
    return builder.gep(numbers, [ir.Constant(ir.IntType(64), at)])


def _load(context: Any, builder: Any, numbers: Any, kind: Any, at: int) -> Any:
    if _parts(kind) is None:
        return context.cast(builder, builder.load(_place(builder, numbers, at)), types.float64, kind)
    parts = []
    for part in _parts(kind):
        parts.append(_load(context, builder, numbers, part, at))
        at += _leaves(part)
    return context.make_tuple(builder, kind, parts)


def _write(context: Any, builder: Any, numbers: Any, value: Any, kind: Any, at: int) -> None:
    if _parts(kind) is None:
        builder.store(context.cast(builder, value, kind, types.float64), _place(builder, numbers, at))
        return
    for index, part in enumerate(_parts(kind)):
        _write(context, builder, numbers, builder.extract_value(value, index), part, at)
        at += _leaves(part)


def _restorer(kind: Any) -> Any:
    """In compiled code: from where numbers begin to the nested tuples of a type that hold them."""

    @intrinsic
    def restored(typing: Any, numbers: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return _load(context, builder, arguments[0], kind, 0)

        return kind(POINTER), generate

    return restored


@intrinsic
def _store_compiled(typing: Any, numbers: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _write(context, builder, arguments[0], arguments[1], signature.args[1], 0)
        return context.get_dummy_value()

    return types.void(POINTER, value), generate


def _named(kind: Any) -> str:
    """A type with the classes of its tuples, in words."""
    cls = getattr(kind, "instance_class", None)
    parts = ", ".join(map(_named, _parts(kind) or ()))
    return f"{cls.__module__}.{cls.__qualname__}({parts})" if cls else f"({parts})" if parts else repr(kind)


def _named_for(kind: Any, body: Any) -> Any:
    """The body of a function for a type, with a name that no other has.

    By name alone a process takes one function for another that it loaded from disk before: the numbers that Numba puts
    into names are counted anew in each process that compiles.
    """
    body.__qualname__ += "_" + hashlib.blake2b(_named(kind).encode(), digest_size=8).hexdigest()
    return body


def _passed(context: Any, builder: Any, value: Any, kind: Any, wanted: Any) -> Any:
    """A value as a function by address takes it."""
    if isinstance(kind, types.Array):
        return context.make_array(kind)(context, builder, value).data
    return context.cast(builder, value, kind, wanted)


def addressed(body_of: Callable[[Any], Any], result: Any, *arguments: Any) -> tuple[Any, Any]:
    """How to find the address of a function made for a class of values, and how to call it, in compiled code.

    Parameters
    ----------
    body_of : function
        Is given a function from numbers to the value that holds them. Returns the function to be called, whose first
        argument are the numbers.
    result, *arguments : types
        Those of the function, in this module: ``POINTER`` for an array without gaps, else ``NUMBER``, ``COUNT``,
        ``NOTHING`` or a type of Numba's. The numbers are left out.

    Returns
    -------
    find(value), call(address, numbers, arguments)
        Uncompiled, the function takes the place of its address.
    """
    signature = result(POINTER, *arguments)

    @intrinsic
    def address_of(typing: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, _: Any, __: Any) -> Any:
            made = context.compile_subroutine(builder, _named_for(value, body_of(_restorer(value))), signature)
            return builder.ptrtoint(context.declare_function(builder.module, made.fndesc), ir.IntType(64))

        return types.int64(value), generate

    @intrinsic
    def call_compiled(typing: Any, address: Any, numbers: Any, given: Any) -> Any:
        kinds = (numbers, *given.types)
        if any(isinstance(kind, types.Array) and kind.layout != "C" for kind in kinds):
            raise numba.TypingError("an array with gaps cannot be passed by where it begins")

        def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
            parts = [values[1], *(builder.extract_value(values[2], index) for index in range(len(given)))]
            passed = [_passed(context, builder, *part) for part in zip(parts, kinds, signature.args, strict=True)]
            pointer = context.call_conv.get_function_type(signature.return_type, signature.args).as_pointer()
            where = builder.inttoptr(values[0], pointer)
            called = context.call_conv.call_function(builder, where, signature.return_type, signature.args, passed)
            return called[1]

        return signature.return_type(address, numbers, given), generate

    def find(value: Any) -> Any:
        return body_of(lambda numbers: with_numbers(value, numbers))

    def call(address: Any, numbers: Any, given: Any) -> Any:
        return address(numbers, *given)

    found: Any = address_of
    called: Any = call_compiled
    overload(find)(lambda value: lambda value: found(value))
    overload(call)(lambda address, numbers, given: lambda address, numbers, given: called(address, numbers, given))
    return find, call

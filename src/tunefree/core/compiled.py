"""The one place that knows Numba: how functions are compiled, cached and dispatched in compiled code."""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Callable
from functools import cache
from types import CellType, FunctionType
from typing import Any

import numba
import numpy as np
from numba.core import cpu, options
from numba.cpython.unsafe.numbers import trailing_zeros as count_trailing_zeros
from numba.extending import overload

from tunefree.core.code_cache import CodeCache, is_of_the_package
from tunefree.core.code_parts import OF_A_PART, Part

# No fast-math: sums keep the order of the paper, so the same input gives the same bytes.
_OPTIONS: Any = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
# Numba 0.60 to 0.68 can tell LLVM that arguments do not overlap, but has no option for it.
cpu.CPUTargetOptions.noalias = options.TargetOptions.Mapping("noalias")
IS_ON = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]  # whether anything is compiled
_ANY_ORDER: Any = {"reassoc", "nsz", "contract"}


def entry(function: Callable[..., Any], is_cached: bool = True) -> Callable[..., Any]:
    """Compile an entry point: a function called from Python, cached on disk (:mod:`tunefree.core.code_cache`)."""
    return _cached(function) if is_cached else numba.njit(**_OPTIONS)(function)


def summing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile an entry point whose sums may be taken in any order: in as many parts as the processor adds at a time.

    The order is fixed when it is compiled, so the same input gives the same bytes on the same machine.
    """
    return _cached(function, fastmath=_ANY_ORDER)


def _cached(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    made: Any = numba.njit(**options, **_OPTIONS)(function)
    if is_of_the_package(function):  # what others are made from is unknown
        with contextlib.suppress(RuntimeError):  # no folder to write to (a read-only installation without a home)
            made._cache = CodeCache(function)
    return made


def inline(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a helper that is called only from compiled code; it becomes a part of the entry points that use it."""
    return Part(function, _OPTIONS) if IS_ON else function


@cache
def part_of(function: Any) -> Any:
    """A plain function as a part of compiled code, together with the plain functions that it calls.

    Plain are functions that nothing else says how to compile.
    """
    variables = inspect.getclosurevars(function)
    called = {**variables.globals, **variables.nonlocals}
    is_plain = {name: isinstance(value, FunctionType) and not vars(value) for name, value in called.items()}
    parts = {name: part_of(value) for name, value in called.items() if is_plain[name]}
    names = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    cells = tuple(CellType(parts.get(name, cell.cell_contents)) for name, cell in names)
    return inline(FunctionType(function.__code__, function.__globals__ | parts, function.__name__, None, cells))


def dispatch(
    function: Callable[..., Any],
    bodies: dict[type, Callable[..., Any]],
    default: Callable[..., Any] | None,
    apart: bool = False,
) -> None:
    """Let compiled code call ``function``, with the body registered for the NamedTuple class of its first argument.

    A class without a body has the default one, if there is one. ``apart`` promises that arrays among the arguments do
    not overlap, so that loops over them are compiled to vectors.
    """

    @overload(function, strict=False, jit_options=_OPTIONS | OF_A_PART | {"forceinline": True, "noalias": apart})
    def in_compiled_code(first: Any, *rest: Any) -> Callable[..., Any] | None:
        return bodies.get(getattr(first, "instance_class", None), default)  # type: ignore[arg-type]


def trailing_zeros(word: Any) -> Any:
    """How many zero bits lie below the lowest one that is set; in compiled code one instruction."""
    return (int(word) & -int(word)).bit_length() - 1


@overload(trailing_zeros)
def _trailing_zeros(word):
    return lambda word: count_trailing_zeros(word)  # type: ignore[call-arg]


def exponential(power: Any) -> Any:
    """exp(power) for a power of at most 0; in single precision a polynomial that processors run many at a time."""
    return np.exp(power)


# 2^f for 0 <= f <= 1, the best polynomial of degree 6: its error is a tenth of the rounding of single precision
_POWERS_OF_TWO = (1.0, 0.6931472, 0.2402266, 0.055502538, 0.009630109, 0.001298158, 0.000195426)
_LEAST_EXPONENT = np.float32(-125.0)


@overload(exponential, jit_options=_OPTIONS | {"forceinline": True, "fastmath": _ANY_ORDER})
def _exponential(power):
    if power != numba.float32:
        return lambda power: math.exp(power)
    c0, c1, c2, c3, c4, c5, c6 = (np.float32(c) for c in _POWERS_OF_TWO)

    def in_single_precision(power):
        z = max(power * np.float32(1.4426950408889634), _LEAST_EXPONENT)
        whole = np.int32(z) - np.int32(1)  # truncated towards 0: below z
        f = z - np.float32(whole)
        series = c0 + f * (c1 + f * (c2 + f * (c3 + f * (c4 + f * (c5 + f * c6)))))
        return series * np.int32((whole + np.int32(127)) << np.int32(23)).view(np.float32)

    return in_single_precision

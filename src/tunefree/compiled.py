"""The one place that knows Numba: how functions are compiled, cached and dispatched in compiled code."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.cpython.unsafe.numbers import trailing_zeros as count_trailing_zeros
from numba.extending import overload

# No fast-math: sums keep the order of the paper, so the same input gives the same bytes.
_OPTIONS: Any = {"nogil": True, "error_model": "numpy"}


@cache
def source_key() -> str:
    """Digest of every source file of the package, part of the key under which compiled code is cached.

    Numba looks only at the file of the entry function when it decides whether its cache is still valid; a change in
    a learner or a loss would otherwise go unnoticed.
    """
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def entry(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile an entry point: a function called from Python, cached on disk.

    Numba names the files of its cache by the function's qualified name, and reads their index only if it knows all
    classes in it. Here the name holds :func:`source_key`: code made from other sources is never looked at.
    """
    function.__qualname__ = f"{function.__name__}_{source_key()}"
    try:
        return numba.njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # nowhere to write a cache (a read-only installation without a home): compile each time
        return numba.njit(**_OPTIONS)(function)


def inline(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a helper that is called only from compiled code; it becomes a part of the entry points that use it."""
    return numba.njit(**_OPTIONS)(function)


def dispatch(function: Callable[..., Any], bodies: dict[type, Callable[..., Any]]) -> None:
    """Let compiled code call ``function``, with the body registered for the NamedTuple class of its first argument."""

    @overload(function, strict=False, jit_options=_OPTIONS | {"forceinline": True})
    def in_compiled_code(first: Any, *rest: Any) -> Callable[..., Any] | None:
        return bodies.get(getattr(first, "instance_class", None))  # type: ignore[arg-type]


def trailing_zeros(word: Any) -> Any:
    """How many zero bits lie below the lowest one that is set; in compiled code one instruction."""
    return (int(word) & -int(word)).bit_length() - 1


@overload(trailing_zeros)
def _trailing_zeros(word):
    return lambda word: count_trailing_zeros(word)  # type: ignore[call-arg]

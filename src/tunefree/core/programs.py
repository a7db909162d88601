"""Calls of kernels on arrays that stay where they are: checked once, and then run together as often as is needed.

A call of a kernel checks its arguments, finds the addresses of its arrays and hands them over one by one, which takes
longer than many a kernel takes for one row. Here that is done once for some calls, and the addresses are kept in a
table. A function in machine code reads the table and makes the calls one after the other. It depends on the kernels
alone, not on the arrays, so it is compiled once for all programs of the same kernels.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from tunefree.core.kernels import Kernel

Call = tuple[Any, ...]  # a kernel, and its arguments
_FLOAT, _WORD = "double", "i64"  # types of LLVM: an address is a word, too


class Program:
    """Some calls of kernels, in their order, on the arrays that they are made with.

    Parameters
    ----------
    calls : sequence of (Kernel, *arguments)
        Kernels that return nothing. What is in the arrays may change between runs; numbers are those given here.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as its kernel declares it.

    Examples
    --------
    >>> from typing import Annotated
    >>> from tunefree.core.kernels import kernel
    >>> @kernel
    ... def add(numbers: Annotated[np.ndarray, "float64[n]"], step: float) -> None:
    ...     for i in range(len(numbers)):
    ...         numbers[i] += step
    >>> numbers = np.zeros(2)
    >>> program = Program([(add, numbers, 1.0), (add, numbers[:1], 0.5)])
    >>> program.run()
    >>> program.run()
    >>> numbers
    array([3., 2.])
    """

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = list(calls)  # which keep the arrays
        codes = [kernel.code for kernel, *_ in self._calls]
        self.run: Callable[[], None] = self._run_one_by_one
        if codes and None not in codes:
            types = tuple(_types_of(kernel) for kernel, *_ in self._calls)
            arguments = [_checking(kernel)(*values) for kernel, *values in self._calls]
            words = [
                _word(argument, kind)
                for of_call in zip(arguments, types, strict=True)
                for argument, kind in zip(*of_call, strict=True)
            ]
            self._table, self._codes = np.array(words, np.int64), codes
            self.run = partial(_runner(types, tuple(code.address for code in codes)), self._table.ctypes.data)

    def _run_one_by_one(self) -> None:
        for kernel, *values in self._calls:
            kernel(*values)


@cache
def _checking(kernel: Kernel) -> Callable[..., tuple[Any, ...]]:
    """A function that checks the arguments of a kernel, and returns what machine code takes."""
    from tunefree.core import callers

    return callers.checked(kernel, lambda *values: values)


def _types_of(kernel: Kernel) -> tuple[str, ...]:
    """The types of what machine code takes."""
    of_arguments = [_FLOAT if a.axes is None and a.dtype == "float64" else _WORD for a in kernel.arguments]
    return (*of_arguments, *[_WORD] * len(kernel.axes))


def _word(value: Any, kind: str) -> int:
    """A number or an address as 64 bits."""
    return int(np.float64(value).view(np.int64)) if kind == _FLOAT else int(value)


@cache
def _runner(types: tuple[tuple[str, ...], ...], addresses: tuple[int, ...]) -> Callable[[int], None]:
    """A function that makes calls of machine code at some addresses, whose arguments lie in a table at an address."""
    import llvmlite.binding as llvm

    from tunefree.core import loading

    module, machine = llvm.parse_assembly(runner_text(types)), loading.host()
    engine = llvm.create_mcjit_compiler(module, machine)
    for number, address in enumerate(addresses):
        engine.add_global_mapping(module.get_function(f"kernel{number}"), address)
    engine.finalize_object()
    entry: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(engine.get_function_address("run"))
    entry.engine = engine  # which keeps the code
    return entry


def runner_text(types: tuple[tuple[str, ...], ...]) -> str:
    """LLVM text of a function that calls kernels, each of which takes arguments of some types.

    Examples
    --------
    >>> print(runner_text((("i64",),)))
    declare void @kernel0(i64)
    define void @run(ptr %table) {
      %place0.0 = getelementptr i64, ptr %table, i64 0
      %word0.0 = load i64, ptr %place0.0
      call void @kernel0(i64 %word0.0)
      ret void
    }
    """
    declared, lines, place = [], [], 0
    for number, of_call in enumerate(types):
        declared.append(f"declare void @kernel{number}({', '.join(of_call)})")
        passed = []
        for k, kind in enumerate(of_call):
            name = f"{number}.{k}"
            lines.append(f"  %place{name} = getelementptr i64, ptr %table, i64 {place}")
            lines.append(f"  %word{name} = load {kind}, ptr %place{name}")
            passed.append(f"{kind} %word{name}")
            place += 1
        lines.append(f"  call void @kernel{number}({', '.join(passed)})")
    return "\n".join([*declared, "define void @run(ptr %table) {", *lines, "  ret void", "}"])

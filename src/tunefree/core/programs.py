"""Calls of kernels on arrays that stay where they are: checked once, and then run together as often as is needed.

A call of a kernel checks its arguments, finds the addresses of its arrays and hands them over one by one, which takes
longer than many a kernel takes for one row. Here that is done once for some calls. A table has for each the address of
the kernel, the number of its arguments, and these. A function in machine code reads the table and makes the calls one
after the other. It is the same for all programs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from tunefree.core.kernels import Kernel

Call = tuple[Any, ...]  # a kernel, and its arguments
SIZES = (12, 24, 48, 96)  # numbers of arguments that are handed over: addresses, whole numbers, lengths of axes, and as
#   many zeros as it takes, which no kernel looks at


class Program:
    """Some calls of kernels, in their order, on the arrays that they are made with.

    Parameters
    ----------
    calls : sequence of (Kernel, *arguments)
        Kernels that take no fractions but in arrays, and return nothing. What is in the arrays may change between runs.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as its kernel declares it.

    Examples
    --------
    >>> from typing import Annotated
    >>> from tunefree.core.kernels import kernel
    >>> @kernel
    ... def add(numbers: Annotated[np.ndarray, "float64[n]"], step: int) -> None:
    ...     for i in range(len(numbers)):
    ...         numbers[i] += step
    >>> numbers = np.zeros(2)
    >>> program = Program([(add, numbers, 2), (add, numbers[:1], 1)])
    >>> program.run()
    >>> program.run()
    >>> numbers
    array([6., 4.])
    """

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = list(calls)  # which keep the arrays
        codes = [kernel.code for kernel, *_ in self._calls]
        self.run: Callable[[], None] = self._run_one_by_one
        if codes and None not in codes:
            words = []
            for code, (kernel, *values) in zip(codes, self._calls, strict=True):
                arguments = _checking(kernel)(*values)
                size = next(size for size in SIZES if size >= len(arguments))
                words += [code.address, size, *arguments, *[0] * (size - len(arguments))]
            self._table = np.array([*words, 0, 0], np.int64)
            self.run = partial(_runner(), self._table.ctypes.data)

    def _run_one_by_one(self) -> None:
        for kernel, *values in self._calls:
            kernel(*values)


@cache
def _checking(kernel: Kernel) -> Callable[..., tuple[Any, ...]]:
    """A function that checks the arguments of a kernel, and returns what machine code takes."""
    from tunefree.core import callers

    if any(argument.axes is None and argument.dtype == "float64" for argument in kernel.arguments):
        raise TypeError(f"{kernel.name} takes a fraction, which programs do not hand over; put it into an array")

    return callers.checked(kernel, lambda *values: values)


@cache
def _runner() -> Callable[[int], None]:
    """A function that makes the calls of a table at an address."""
    import llvmlite.binding as llvm

    from tunefree.core import loading

    module, machine = llvm.parse_assembly(runner_text(SIZES)), loading.host()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    entry: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(engine.get_function_address("run"))
    entry.engine = engine  # which keeps the code
    return entry


def runner_text(sizes: Sequence[int]) -> str:
    """LLVM text of a function that makes the calls of a table, each of one of these numbers of arguments; else it ends.

    Examples
    --------
    >>> print(runner_text([1]))
    define void @run(ptr %table) {
    start:
      br label %next
    next:
      %place = phi ptr [%table, %start], [%end1, %call1]
      %address = load i64, ptr %place
      %kernel = inttoptr i64 %address to ptr
      %at = getelementptr i64, ptr %place, i64 1
      %count = load i64, ptr %at
      switch i64 %count, label %stop [i64 1, label %call1]
    call1:
      %place1.0 = getelementptr i64, ptr %place, i64 2
      %word1.0 = load i64, ptr %place1.0
      call void %kernel(i64 %word1.0)
      %end1 = getelementptr i64, ptr %place, i64 3
      br label %next
    stop:
      ret void
    }
    """
    lines = ["define void @run(ptr %table) {", "start:", "  br label %next", "next:"]
    ends = [f"[%end{count}, %call{count}]" for count in sizes]
    lines.append(f"  %place = phi ptr {', '.join(['[%table, %start]', *ends])}")
    lines += ["  %address = load i64, ptr %place", "  %kernel = inttoptr i64 %address to ptr"]
    lines += ["  %at = getelementptr i64, ptr %place, i64 1", "  %count = load i64, ptr %at"]
    cases = " ".join(f"i64 {count}, label %call{count}" for count in sizes)
    lines.append(f"  switch i64 %count, label %stop [{cases}]")
    for count in sizes:
        lines.append(f"call{count}:")
        for k in range(count):
            lines.append(f"  %place{count}.{k} = getelementptr i64, ptr %place, i64 {2 + k}")
            lines.append(f"  %word{count}.{k} = load i64, ptr %place{count}.{k}")
        passed = ", ".join(f"i64 %word{count}.{k}" for k in range(count))
        lines += [f"  call void %kernel({passed})", f"  %end{count} = getelementptr i64, ptr %place, i64 {2 + count}"]
        lines.append("  br label %next")
    return "\n".join([*lines, "stop:", "  ret void", "}"])

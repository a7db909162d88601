"""Calls of kernels on arrays that stay where they are: checked once, and then run together as often as is needed.

A call of a kernel checks its arguments, finds the addresses of its arrays and hands them over one by one, which takes
longer than many a kernel takes for one row. Here that is done once for some calls. A table has for each the address of
the kernel, the number of its arguments, and these. A function in machine code reads the table and makes the calls one
after the other. It is the same for all programs: processors hand over fractions in other registers than addresses and
whole numbers, so that their order among these does not matter, and a kernel does not look at what it does not take.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from tunefree.core.kernels import Kernel

Call = tuple[Any, ...]  # a kernel, and its arguments
SIZES = (12, 24, 48, 96)  # numbers of words that are handed over: addresses, whole numbers, lengths of axes, and zeros
FRACTIONS = 4  # that are handed over before these


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
        codes = [kernel.code for kernel, *_ in self._calls]
        self.run: Callable[[], None] = self._run_one_by_one
        if codes and None not in codes and sys.platform != "win32":  # where places, not kinds, decide on registers
            words = []
            for code, (kernel, *values) in zip(codes, self._calls, strict=True):
                fractions, arguments = _sorted(kernel, _checking(kernel)(*values))
                size = next(size for size in SIZES if size >= len(arguments))
                words += [code.address, size, *fractions, *arguments, *[0] * (size - len(arguments))]
            self._table = np.array([*words, 0, 0], np.int64)
            self.run = partial(_runner(), self._table.ctypes.data)

    def _run_one_by_one(self) -> None:
        for kernel, *values in self._calls:
            kernel(*values)


@cache
def _checking(kernel: Kernel) -> Callable[..., tuple[Any, ...]]:
    """A function that checks the arguments of a kernel, and returns what machine code takes."""
    from tunefree.core import callers

    return callers.checked(kernel, lambda *values: values)


def _sorted(kernel: Kernel, values: tuple[Any, ...]) -> tuple[list[int], list[Any]]:
    """The bits of the fractions among the values that machine code takes, and the others."""
    lengths = values[len(kernel.arguments) :]
    is_fraction = [argument.axes is None and argument.dtype == "float64" for argument in kernel.arguments]
    pairs = list(zip(values, is_fraction, strict=False))
    fractions = [float(value) for value, is_one in pairs if is_one]
    if len(fractions) > FRACTIONS:
        raise TypeError(f"{kernel.name} takes {len(fractions)} fractions, and programs hand over {FRACTIONS} at most")
    bits = np.array(fractions + [0.0] * (FRACTIONS - len(fractions))).view(np.int64).tolist()
    return bits, [*(value for value, is_one in pairs if not is_one), *lengths]


@cache
def _runner() -> Callable[[int], None]:
    """A function that makes the calls of a table at an address."""
    import llvmlite.binding as llvm

    from tunefree.core import loading

    module, machine = llvm.parse_assembly(runner_text(SIZES, FRACTIONS)), loading.host()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    entry: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(engine.get_function_address("run"))
    entry.engine = engine  # which keeps the code
    return entry


def runner_text(sizes: Sequence[int], n_fractions: int) -> str:
    """LLVM text of a function that makes the calls of a table, each of one of these numbers of words; else it ends.

    Examples
    --------
    >>> print(runner_text([1], 1))
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
      %value1.0 = load double, ptr %place1.0
      %place1.1 = getelementptr i64, ptr %place, i64 3
      %value1.1 = load i64, ptr %place1.1
      call void %kernel(double %value1.0, i64 %value1.1)
      %end1 = getelementptr i64, ptr %place, i64 4
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
        kinds = ["double"] * n_fractions + ["i64"] * count
        lines.append(f"call{count}:")
        for k, kind in enumerate(kinds):
            lines.append(f"  %place{count}.{k} = getelementptr i64, ptr %place, i64 {2 + k}")
            lines.append(f"  %value{count}.{k} = load {kind}, ptr %place{count}.{k}")
        passed = ", ".join(f"{kind} %value{count}.{k}" for k, kind in enumerate(kinds))
        lines += [
            f"  call void %kernel({passed})",
            f"  %end{count} = getelementptr i64, ptr %place, i64 {2 + len(kinds)}",
        ]
        lines.append("  br label %next")
    return "\n".join([*lines, "stop:", "  ret void", "}"])

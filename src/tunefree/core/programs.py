"""Calls of kernels on arrays that stay where they are: checked once, and then run together as often as is needed.

A call of a kernel checks its arguments and finds the addresses of its arrays, which takes longer than many a kernel
takes for one row. Here that is done once for some calls. A table has for each the address of the kernel, the number of
its words, and these. A function in machine code makes the calls one after the other. It is the same for all programs,
since each kernel loads its words from the table.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from tunefree.core.kernels import Kernel

Call = tuple[Any, ...]  # a kernel, and its arguments
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
    """Some calls of kernels, in their order, on the arrays that they are made with.

    Parameters
    ----------
    calls : sequence of (Kernel, *arguments)
        Kernels that return nothing. What is in the arrays may change between runs; numbers are those given here.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as its kernel declares it, or a kernel returns a number.

    Examples
    --------
    >>> from typing import Annotated
    >>> import numpy as np
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
        self.run: Callable[[], None] = self._run_one_by_one
        if returning := [kernel.name for kernel, *_ in self._calls if kernel.result]:
            raise TypeError(f"{returning[0]} returns a number, which a program has no place for")
        if self._calls and all(kernel.code is not None for kernel, *_ in self._calls):
            self._table = b"".join(_words(*call) for call in self._calls) + bytes(8)
            self.run = partial(_runner(), self._table)

    def _run_one_by_one(self) -> None:
        for kernel, *values in self._calls:
            kernel(*values)


def _words(kernel: Kernel, *values: Any) -> bytes:
    """The words of a call: the address of the kernel, how many follow, and those that it takes."""
    words = _table_of(kernel)(*values)
    return struct.pack("<qq", kernel.code.address, len(words) // 8) + words


@cache
def _table_of(kernel: Kernel) -> Callable[..., bytes]:
    from tunefree.core import arguments

    return arguments.tables(kernel)


@cache
def _runner() -> Callable[[bytes], None]:
    """A function that makes the calls of a table, which ends with a word that is zero."""
    from tunefree.core import loading

    code = loading.linked([loading.machine_code(RUNNER)], "run")
    runner: Any = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(code.address)
    runner.code = code  # which keeps it
    return runner

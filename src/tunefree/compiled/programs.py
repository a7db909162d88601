"""Calls of compiled functions on arrays that stay where they are: checked once, and then run together as often as is
needed.

A call of a compiled function checks its arguments and finds the addresses of its arrays, which takes longer than many a
compiled function takes for one row. Here that is done once for some calls. A table has for each the address of the
compiled function, the number of its words, and these. A function in machine code makes the calls one after the other.
It is the same for all programs, since each compiled function loads its words from the table.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from tunefree.compiled.functions import Compiled

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
    """Some calls of compiled functions, in their order, on the arrays that they are made with.

    Parameters
    ----------
    calls : sequence of (Compiled, *arguments)
        Compiled functions that return nothing. What is in the arrays may change between runs; numbers are those given
        here.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as its compiled function declares it, or a compiled function returns a number.

    Examples
    --------
    >>> from typing import Annotated
    >>> import numpy as np
    >>> from tunefree.compiled.functions import compiled
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
    words = _table_of(declaration)(*values)
    return struct.pack("<qq", declaration.code.address, len(words) // 8) + words


@cache
def _table_of(declaration: Compiled) -> Callable[..., bytes]:
    from tunefree.compiled import arguments

    return arguments.tables(declaration)


@cache
def _runner() -> Callable[[bytes], None]:
    """A function that makes the calls of a table, which ends with a word that is zero."""
    from tunefree.compiled import loading

    code = loading.linked([loading.machine_code(RUNNER)], "run")
    runner: Any = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(code.address)
    runner.code = code  # which keeps it
    return runner

"""Prefetching: the processor fetches memory that is needed soon while it computes something else."""

from __future__ import annotations

import functools
from typing import Any

LINE = 8  # numbers that memory gives at a time
LARGE = 2**22  # bytes beyond which arrays are not near the processor all the time, and fetching them pays


def prefetch(array, i, k):
    """Have the number at some place of an array (rows, columns), or (rows,), fetched; it may be outside.

    It is a hint, which changes nothing: as Python it does nothing.
    """


def fetch_line(array, n_fields, j):
    """Have a line of a block of statistics fetched, by the array (features, outputs) of the first of its fields."""
    for k in range(0, n_fields * array.shape[1], LINE):
        prefetch(array, j, k)


@functools.cache
def instruction() -> Any:
    """The instruction in the place of ``prefetch`` in compiled code."""
    from llvmlite import ir
    from numba.core import cgutils, types
    from numba.extending import intrinsic

    def hint(context, array, i, k):
        def write(context, builder, signature, arguments):
            kind = signature.args[0]
            fields = context.make_array(kind)(context, builder, arguments[0])
            place = cgutils.get_item_pointer(
                context, builder, kind, fields, arguments[1 : 1 + kind.ndim], wraparound=False
            )
            number, byte = ir.IntType(32), ir.IntType(8).as_pointer()
            hinted = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
            function = cgutils.get_or_insert_function(builder.module, hinted, "llvm.prefetch.p0")
            settings = [number(1), number(3), number(1)]  # it will be written, stays in all caches, and is no code
            builder.call(function, [builder.bitcast(place, byte), *settings])
            return context.get_dummy_value()

        return types.void(array, types.intp, types.intp), write

    return intrinsic(hint)

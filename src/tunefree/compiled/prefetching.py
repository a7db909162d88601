"""Prefetching: the processor loads memory that is needed soon while it computes."""

from __future__ import annotations

import functools
from typing import Any

LINE = 8  # float64 elements per cache line
LARGE = 2**22  # bytes; larger arrays do not fit into the cache, and prefetching pays


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
    """The intrinsic that replaces ``prefetch`` in compiled code."""
    from llvmlite import ir
    from numba.core import cgutils, types
    from numba.extending import intrinsic

    def hint(context, array, i, k):
        def write(context, builder, signature, arguments):
            kind = signature.args[0]
            fields = context.make_array(kind)(context, builder, arguments[0])
            pointer = cgutils.get_item_pointer(
                context, builder, kind, fields, arguments[1 : 1 + kind.ndim], wraparound=False
            )
            number, byte = ir.IntType(32), ir.IntType(8).as_pointer()
            hinted = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
            function = cgutils.get_or_insert_function(builder.module, hinted, "llvm.prefetch.p0")
            settings = [number(1), number(3), number(1)]  # for writing, into all cache levels, data cache
            builder.call(function, [builder.bitcast(pointer, byte), *settings])
            return context.get_dummy_value()

        return types.void(array, types.intp, types.intp), write

    return intrinsic(hint)

"""Sums of kernel values over a support, a tile at a time: the matrix of all pairs never exists.

Functions f_m = sum_i c_im k_m(x_i, .) of several widths and outputs are evaluated together at a block of rows. For each
tile of support points there is one matrix product by BLAS. A compiled sweep follows, point by point for all rows of the
block at once: the kernel values, their squares for the further widths of the grid, and their sums with the
coefficients. Nothing depends on the order in which a processor adds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, get_type_hints

import numpy as np

from tunefree.core import threads
from tunefree.core.errors import ModelError
from tunefree.core.kernels import Kernel
from tunefree.core.numbers import EXPONENT_BITS
from tunefree.papers.kernel import kernels
from tunefree.papers.kernel.points import BLOCK, TILE
from tunefree.papers.kernel.precision import DTYPES, NAMES, exponential, in_precision

NOT_FINITE = "a kernel value is not a finite number; scale the features, or choose another kernel"
AT_ONCE = 4  # points added before sums are written back
CHUNK = 256  # points summed up in the precision of kernel values
PAIRS_A_ROW = 2048  # so many kernel values take as long as a row of a linear learner, which is what threads go by
TINY = 1e-18  # kernel values below are 0: their squares would be denormal numbers, which are slow
LEAST_UNIT = 1e-300  # of coefficients
SIZE_BITS = 2**63 - 1  # all but the sign


def evaluate(
    kernel: Any,
    steps: np.ndarray,
    block: Any,
    rows: tuple[int, int],
    store: Any,
    coefficients: np.ndarray,
    n: int | None = None,
) -> np.ndarray:
    """Values of functions at rows of a block.

    Parameters
    ----------
    kernel : kernel
        At the least gamma of the grid.
    steps : (M,) int array
        For each function its step on the grid of bandwidths; several may share one.
    block : points
        BLOCK of them, zeros where there are fewer.
    rows : (int, int)
        From which to which of them values are asked for.
    store : points
        The support, a whole number of tiles.
    coefficients : (M, K, n or more) float64 array
        Of M functions with K outputs.
    n : int, optional
        How many points there are, at most the size of the store; by default as many as coefficients.

    Returns
    -------
    (M, BLOCK, K) float64 array
        0 for rows that are not asked for.
    """
    n_functions, n_outputs, capacity = coefficients.shape
    n, n_sums = capacity if n is None else n, n_functions * n_outputs
    n_tiles, dtype, compact = -(-n // TILE), block.values.dtype, kernel.in_compiled_code(block.values.dtype)
    order, starts = rungs_of(np.repeat(steps, n_outputs))
    coefficients = np.ascontiguousarray(coefficients).reshape(n_sums, capacity)
    cls: Any = type(compact)
    scale, weigh = SCALING[NAMES[dtype]], weighing(cls, NAMES[dtype])
    sums = np.zeros((n_tiles, n_sums, BLOCK))

    def of_tiles(first: int, stride: int) -> None:
        units, scaled = np.empty(n_sums), workspace("scaled", (TILE, n_sums), dtype)
        scratch = workspace("scratch", (AT_ONCE + n_sums, BLOCK), dtype)
        for t in range(first, n_tiles, stride):
            start = t * TILE
            tile = store.cut(start, start + TILE)
            numbers = tile.pairs(block, kernel, workspace("numbers", (TILE, BLOCK), dtype))
            n_points = scale(coefficients, start, min(start + TILE, n), units, scaled)
            of_tile = numbers, block.norms, tile.norms
            weigh(compact, order, starts, scaled, units, *of_tile, n_points, *rows, scratch, sums[t])

    stride = min(threads.count(), n_tiles)
    with threads.one_for_products():
        threads.each(of_tiles, [(first, stride) for first in range(stride)], (rows[1] - rows[0]) * n // PAIRS_A_ROW)
    of_functions = sums.sum(axis=0).reshape(n_functions, n_outputs, BLOCK)
    return np.ascontiguousarray(of_functions.transpose(0, 2, 1))


def workspace(name: str, shape: tuple[int, int], dtype: Any) -> np.ndarray:
    """An array of the thread's, which is overwritten each time: new memory would take as long as the sums.

    The system takes memory of this size back when it is free, and clears it page by page when it is asked for again.
    """
    array: np.ndarray | None = getattr(_workspaces, name, None)
    if array is None or array.shape != shape or array.dtype != dtype:
        array = np.empty(shape, dtype)
        setattr(_workspaces, name, array)
    return array


_workspaces = threading.local()  # the arrays of a thread


def rungs_of(steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The functions (M,) by their steps, and where (S + 1,) those of each step begin among them.

    Examples
    --------
    >>> rungs_of(np.array([2, 0, 2]))
    (array([1, 0, 2]), array([0, 1, 1, 3]))
    """
    order = np.argsort(steps, kind="stable")
    return order, np.searchsorted(steps[order], np.arange(steps.max(initial=-1) + 2))


@cache
def weighing(cls: Any, dtype: str) -> Kernel:
    """The kernel that adds up values of a class of kernels times coefficients."""
    value_of, exp, fields = cls.similarity, exponential(dtype), fields_in(cls, dtype)

    def weigh(
        kernel: Any,
        order: Annotated[np.ndarray, "int64[sums]"],
        starts: Annotated[np.ndarray, "int64[edges]"],
        scaled: Annotated[np.ndarray, "real[tile, sums]"],
        units: Annotated[np.ndarray, "float64[sums]"],
        numbers: Annotated[np.ndarray, "real[tile, block]"],
        norms: Annotated[np.ndarray, "real[block]"],
        other_norms: Annotated[np.ndarray, "real[tile]"],
        n_points: int,
        first: int,
        last: int,
        scratch: Annotated[np.ndarray, "real[scratch, block]"],
        written: Annotated[np.ndarray, "float64[sums, block]"],
    ) -> None:
        # slices, so that loops over them begin at 0, and are compiled to vectors
        compact, values, sums = cls(*fields(kernel)), scratch[:AT_ONCE, first:last], scratch[AT_ONCE:, first:last]
        norms_of_rows = norms[first:last]
        clear(sums)
        for i in range(0, n_points, AT_ONCE):
            for p in range(AT_ONCE):
                row, value, other_norm = numbers[i + p, first:last], values[p], other_norms[i + p]
                for b in range(len(value)):
                    value[b] = value_of(compact, row[b], norms_of_rows[b], other_norm, exp)
            for step in range(len(starts) - 1):
                for place in range(starts[step], starts[step + 1]):
                    s = order[place]
                    add_points(scaled, i, s, values, sums[s])
                if step + 2 < len(starts):
                    square(values)
            if (i + AT_ONCE) % CHUNK == 0 or i + AT_ONCE >= n_points:
                flush(sums, units, written[:, first:last])

    name = f"kernel.weigh.{cls.__module__}.{cls.__name__}".replace("tunefree.papers.kernel.", "")
    return in_precision(weigh, dtype, name, {"kernel": cls})


def scale(
    coefficients: Annotated[np.ndarray, "float64[sums, points]"],
    start: int,
    stop: int,
    units: Annotated[np.ndarray, "float64[sums]"],
    scaled: Annotated[np.ndarray, "real[tile, sums]"],
) -> int:
    """Write some points' coefficients in units of powers of two, in which single precision holds them all.

    Returns how many there are with zeros behind them, up to a multiple of AT_ONCE.
    """
    n = (stop - start + AT_ONCE - 1) // AT_ONCE * AT_ONCE
    for s in range(len(units)):
        of_points, largest = coefficients[s, start:stop], np.int64(0)
        for i in range(len(of_points)):  # numbers above 0 are in the order of their bits, which are compared faster
            largest = max(largest, np.int64(np.float64(of_points[i]).view(np.int64) & SIZE_BITS))
        unit = np.int64(largest & EXPONENT_BITS).view(np.float64)
        units[s] = unit if unit > LEAST_UNIT else 1.0
        inverse = 1.0 / units[s]
        for i in range(len(of_points)):
            scaled[i, s] = of_points[i] * inverse
        for i in range(len(of_points), n):
            scaled[i, s] = 0.0
    return n


SCALING = {dtype: in_precision(scale, dtype, "kernel.scale") for dtype in DTYPES}


def clear(sums):
    """Write zeros."""
    for s in range(len(sums)):
        total = sums[s]
        for b in range(len(total)):
            total[b] = 0.0


def add_points(scaled, i, s, values, total):
    """Add the values of AT_ONCE points times their coefficients to a sum (BLOCK,)."""
    c0, c1, c2, c3 = scaled[i, s], scaled[i + 1, s], scaled[i + 2, s], scaled[i + 3, s]
    v0, v1, v2, v3 = values[0], values[1], values[2], values[3]
    for b in range(len(total)):
        total[b] = (((total[b] + c0 * v0[b]) + c1 * v1[b]) + c2 * v2[b]) + c3 * v3[b]


def square(values):
    """Square kernel values in place; tiny ones become 0."""
    tiny, nothing = values.dtype.type(TINY), values.dtype.type(0)
    for p in range(len(values)):
        value = values[p]
        for b in range(len(value)):
            value[b] = value[b] * value[b] if value[b] > tiny else nothing


def flush(sums, units, written):
    """Add sums to those in double precision, and begin them anew."""
    for s in range(len(units)):
        total, of_sum, unit = sums[s], written[s], units[s]
        for b in range(len(total)):
            of_sum[b] += unit * total[b]
            total[b] = 0.0


def fields_in(cls: Any, dtype: str, count: int | None = None) -> Callable[[Any], tuple[Any, ...]]:
    """A plain function from a kernel to its fields, of which numbers have the type of the pairs'."""
    count = len(cls._fields) if count is None else count
    if count == 0:
        return lambda kernel: ()
    place, earlier = count - 1, fields_in(cls, dtype, count - 1)
    is_single = dtype == "float32" and get_type_hints(cls)[cls._fields[place]] is float
    number = np.float32

    def fields(kernel):
        return (*earlier(kernel), kernel[place])

    def fields_in_single_precision(kernel):
        return (*earlier(kernel), number(kernel[place]))

    return fields_in_single_precision if is_single else fields


def write_values_within(kernel: Any, block: Any, rows: tuple[int, int], values: np.ndarray) -> None:
    """Write kernel values (S, BLOCK, BLOCK) of a block's points among themselves, in double precision, at S steps.

    Only those are written of the rows from one to another, and of pairs of which the second is no later row.

    Raises
    ------
    ModelError
        If a value is no number, or k(x, x) is negative.
    """
    numbers = workspace("within", (BLOCK, BLOCK), np.dtype(np.float64))
    with threads.one_for_products():
        numbers[:] = block.pairs(block, kernel)
    compact = kernel.in_compiled_code(np.dtype(np.float64))
    cls: Any = type(compact)
    valuing(cls)(compact, numbers, block.norms.astype(np.float64), *rows, values)
    some = slice(*rows)
    if not np.isfinite(values[0, some, : rows[1]]).all():
        raise ModelError(NOT_FINITE)
    if np.diagonal(values[0])[some].min(initial=0.0) < 0.0:
        raise ModelError("k(x, x) is negative for some row: that is no kernel; check the matrix or function given")


@cache
def valuing(cls: Any) -> Kernel:
    """The kernel that turns numbers of pairs into values of a class of kernels, for points and earlier ones.

    Each step after the first has the squares of the one before.
    """
    value_of, exp = cls.similarity, exponential("float64")

    def write_values(
        kernel: Any,
        numbers: Annotated[np.ndarray, "float64[block, block]"],
        norms: Annotated[np.ndarray, "float64[block]"],
        first: int,
        stop: int,
        values: Annotated[np.ndarray, "float64[steps, block, block]"],
    ) -> None:
        for b in range(first, stop):
            row = values[0, b]
            for i in range(b + 1):
                row[i] = value_of(kernel, numbers[i, b], norms[b], norms[i], exp)
            for step in range(1, len(values)):
                wider, narrower = values[step - 1, b], values[step, b]
                for i in range(b + 1):
                    narrower[i] = wider[i] * wider[i] if wider[i] > TINY else 0.0

    name = f"kernel.values.{cls.__module__}.{cls.__name__}".replace("tunefree.papers.kernel.", "")
    return Kernel(write_values, name, {"kernel": cls})


def all_kernels() -> list[Kernel]:
    """The kernels of this module, for all kernels of the package."""
    compact = [kernels.kernel_of(name, 1.0).in_compiled_code(np.dtype(np.float64)) for name in kernels.ALL]
    classes = dict.fromkeys(map(type, compact))
    return [*SCALING.values(), *map(valuing, classes), *[weighing(cls, dtype) for cls in classes for dtype in DTYPES]]

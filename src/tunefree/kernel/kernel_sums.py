"""Sums of kernel values over a support, a tile at a time: the matrix of all pairs never exists.

Functions f_m = sum_i c_im k_m(x_i, .) of several widths and outputs are evaluated together at a block of rows. For each
tile of support points there is one matrix product by BLAS, which a compiled sweep turns into kernel values. Another
product gives their sums with the coefficients. For the further widths of the ladder the values are squared in between.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, get_type_hints

import numpy as np

from tunefree.core import threads
from tunefree.core.errors import ModelError
from tunefree.core.kernels import Kernel
from tunefree.kernel import kernels
from tunefree.kernel.kernels import in_compiled_code, similarity
from tunefree.kernel.points import BLOCK, TILE, cut, pairs
from tunefree.kernel.precision import DTYPES, exponential, in_precision

NOT_FINITE = "a kernel value is not a finite number; scale the features, or choose another kernel"
PAIRS_A_ROW = 2048  # so many kernel values take as long as a row of a linear learner, which is what threads go by
TINY = 1e-18  # kernel values below are 0: their squares would be denormal numbers, which are slow
LEAST_UNIT = 1e-300  # of coefficients


def evaluate(kernel: Any, steps: np.ndarray, block: Any, rows: tuple[int, int], store: Any, coefficients: np.ndarray):
    """Values of functions at rows of a block.

    Parameters
    ----------
    kernel : kernel
        At the least gamma of the ladder.
    steps : (M,) int array
        For each function its step on the ladder of widths; several may share one.
    block : points
        BLOCK of them, zeros where there are fewer.
    rows : (int, int)
        From which to which of them values are asked for.
    store : points
        The support, a whole number of tiles.
    coefficients : (M, K, n) float64 array
        Of M functions with K outputs; n at most the size of the store.

    Returns
    -------
    (BLOCK, M, K) float64 array
        0 for rows that are not asked for.
    """
    n_functions, n_outputs, n = coefficients.shape
    n_tiles = -(-n // TILE)
    sums = np.zeros((n_tiles, BLOCK, n_functions, n_outputs))
    rungs = rungs_of(steps)

    def of_tiles(first: int, stride: int) -> None:
        for t in range(first, n_tiles, stride):
            start, stop = t * TILE, min((t + 1) * TILE, n)
            tile = cut(store, start, start + TILE)
            numbers = pairs(tile, block, kernel)
            ends = np.full(rows[1] - rows[0], stop - start)
            write_values(kernel, numbers, block.norms, tile.norms, rows, ends)
            add_up(rungs, numbers, coefficients[:, :, start:stop], rows, sums[t])

    stride = min(threads.count(), n_tiles)
    with threads.one_for_products():
        threads.each(of_tiles, [(first, stride) for first in range(stride)], (rows[1] - rows[0]) * n // PAIRS_A_ROW)
    return sums.sum(axis=0)


def rungs_of(steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The functions (M,) by their steps, and where (S + 1,) those of each step begin among them.

    Examples
    --------
    >>> rungs_of(np.array([2, 0, 2]))
    (array([1, 0, 2]), array([0, 1, 1, 3]))
    """
    order = np.argsort(steps, kind="stable")
    return order, np.searchsorted(steps[order], np.arange(steps.max(initial=-1) + 2))


def add_up(
    rungs: tuple[np.ndarray, np.ndarray],
    values: np.ndarray,
    coefficients: np.ndarray,
    rows: tuple[int, int],
    sums: np.ndarray,
) -> None:
    """Write sums (BLOCK, M, K) of kernel values (BLOCK, TILE) times coefficients (M, K, n) at some rows.

    The products have the same shape whatever rows and however many points there are, so that a row's sums do not
    depend on the rows that it came with. The values are changed.
    """
    (order, starts), (n_functions, n_outputs, n) = rungs, coefficients.shape
    largest = np.abs(coefficients).max(axis=2, initial=0.0)
    # in units of powers of two, in which single precision holds them all
    units = np.ldexp(1.0, np.frexp(np.where(largest > LEAST_UNIT, largest, 1.0))[1] - 1)
    scaled = np.zeros((n_functions, n_outputs, TILE), values.dtype)
    scaled[:, :, :n] = (coefficients / units[:, :, None])[order]
    first, stop = rows
    for here, end in pairwise(starts):
        if here < end:
            with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is an error of the caller
                products = values @ scaled[here:end].reshape(-1, TILE).T
            of_step = products[first:stop].reshape(stop - first, -1, n_outputs)
            sums[first:stop, order[here:end]] = of_step * units[order[here:end]]
        if end < len(order):
            SQUARING[values.dtype.name](values[first:stop])


def write_values(
    kernel: Any,
    numbers: np.ndarray,
    norms: np.ndarray,
    other_norms: np.ndarray,
    rows: tuple[int, int],
    ends: np.ndarray,
) -> None:
    """Turn the numbers of pairs into kernel values, in place.

    Only the first ``ends[i]`` are computed for the i-th of the rows that are asked for; others become 0.
    """
    first, stop = rows
    numbers[:first] = numbers[stop:] = 0.0
    compact = in_compiled_code(kernel, numbers.dtype.type)
    of_kernel = valuing(type(compact), numbers.dtype.name)
    of_kernel(compact, numbers[first:stop], norms[first:stop], other_norms, ends)


@cache
def valuing(cls: type, dtype: str) -> Kernel:
    """The kernel that turns numbers of pairs into values of a class of kernels."""
    value_of, exp, fields = similarity.dispatch(cls), exponential(dtype), fields_in(cls, dtype)

    def values(
        kernel: Any,
        numbers: Annotated[np.ndarray, "real[rows, points]"],
        norms: Annotated[np.ndarray, "real[rows]"],
        other_norms: Annotated[np.ndarray, "real[points]"],
        ends: Annotated[np.ndarray, "int64[rows]"],
    ) -> None:
        compact = cls(*fields(kernel))
        for b in range(len(numbers)):
            row, norm = numbers[b], norms[b]
            for i in range(ends[b]):
                row[i] = value_of(compact, row[i], norm, other_norms[i], exp)
            for i in range(ends[b], len(row)):
                row[i] = 0.0

    name = f"kernel.values.{cls.__module__}.{cls.__name__}".replace("tunefree.kernel.", "")
    return in_precision(values, dtype, name, {"kernel": cls})


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


def square(values: Annotated[np.ndarray, "real[rows, points]"]) -> None:
    """Square kernel values in place; tiny ones become 0."""
    tiny, nothing = values.dtype.type(TINY), values.dtype.type(0)
    for b in range(len(values)):
        row = values[b]
        for i in range(len(row)):
            row[i] = row[i] * row[i] if row[i] > tiny else nothing


SQUARING = {dtype: in_precision(square, dtype, "kernel.square") for dtype in DTYPES}


def all_kernels() -> list[Kernel]:
    """The kernels of this module, for all kernels of the package."""
    classes = [type(in_compiled_code(kernels.kernel_of(name, 1.0), np.float64)) for name in kernels.ALL]
    return [*SQUARING.values(), *[valuing(cls, dtype) for cls in dict.fromkeys(classes) for dtype in DTYPES]]


def values_within(kernel: Any, n_steps: int, block: Any, rows: tuple[int, int]) -> np.ndarray:
    """Kernel values (S, BLOCK, BLOCK) of a block's points among themselves, in double precision.

    Only those are computed of the rows from one to another, and of pairs of which the second is no later row.

    Raises
    ------
    ModelError
        If a value is no number, or k(x, x) is negative.
    """
    with threads.one_for_products():
        numbers = pairs(block, block, kernel).astype(np.float64)
    norms, some = block.norms.astype(np.float64), slice(*rows)
    write_values(kernel, numbers, norms, norms, rows, np.arange(*rows) + 1)
    if not np.isfinite(numbers[some]).all():
        raise ModelError(NOT_FINITE)
    if np.diagonal(numbers)[some].min(initial=0.0) < 0.0:
        raise ModelError("k(x, x) is negative for some row: that is no kernel; check the matrix or function given")
    values = np.empty((n_steps, BLOCK, BLOCK))
    values[0] = numbers
    for step in range(1, n_steps):
        values[step, some] = values[step - 1, some]
        SQUARING["float64"](values[step, some])
    return values

"""Sums of kernel values over a support, a tile at a time: the matrix of all pairs never exists.

Functions f_m = sum_i c_im k_m(x_i, .) of several widths and outputs are evaluated together at a block of rows. For each
tile of support points there is one matrix product by BLAS. A compiled sweep follows while its numbers are in the
first-level cache: the kernel values, their squares for the further widths of the ladder, and the dot products with the
coefficients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core import compiled, threads
from tunefree.core.errors import ModelError
from tunefree.core.numbers import power_below
from tunefree.kernel.kernels import in_compiled_code, similarity
from tunefree.kernel.points import BLOCK, TILE, cut, pairs

NOT_FINITE = "a kernel value is not a finite number; scale the features, or choose another kernel"
CHUNK = 256  # kernel values kept in the first-level cache
PAIRS_A_ROW = 2048  # so many kernel values take as long as a row of a linear learner, which is what threads go by
TINY = 1e-18  # kernel values below are 0: their squares would be denormal numbers, which are slow


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
    found = np.zeros((n_tiles, BLOCK, n_functions, n_outputs))
    compact, rungs = in_compiled_code(kernel, block.values.dtype.type), rungs_of(steps)

    def of_tiles(first: int, stride: int) -> None:
        for t in range(first, n_tiles, stride):
            start, stop = t * TILE, min((t + 1) * TILE, n)
            tile = cut(store, start, start + TILE)
            numbers = pairs(tile, block, kernel)
            weigh(compact, *rungs, numbers, block.norms, tile.norms, coefficients[:, :, start:stop], *rows, found[t])

    stride = min(threads.count(), n_tiles)
    with threads.one_for_products():
        threads.each(of_tiles, [(first, stride) for first in range(stride)], (rows[1] - rows[0]) * n // PAIRS_A_ROW)
    return found.sum(axis=0)


def rungs_of(steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The functions (M,) by their steps, and where (S + 1,) those of each step begin among them.

    Examples
    --------
    >>> rungs_of(np.array([2, 0, 2]))
    (array([1, 0, 2]), array([0, 1, 1, 3]))
    """
    order = np.argsort(steps, kind="stable")
    return order, np.searchsorted(steps[order], np.arange(steps.max(initial=-1) + 2))


@compiled.summing
def weigh(kernel, order, starts, numbers, norms, store_norms, coefficients, first, stop, found):
    """Add up kernel values of pairs (BLOCK, TILE) times coefficients (M, K, n), n <= TILE."""
    n_functions, n_outputs, n = coefficients.shape
    nothing = norms.dtype.type(0)
    tiny = norms.dtype.type(TINY)
    values = np.empty(CHUNK, norms.dtype)
    scaled, units = np.empty((n_functions, n_outputs, CHUNK), norms.dtype), np.empty((n_functions, n_outputs))
    for start in range(0, n, CHUNK):
        width = min(CHUNK, n - start)
        for m in range(n_functions):
            for k in range(n_outputs):
                unit = unit_of(coefficients[m, k, start : start + width])
                units[m, k] = unit
                for i in range(width):
                    scaled[m, k, i] = coefficients[m, k, start + i] / unit
        others = store_norms[start : start + width]
        for b in range(first, stop):
            row, own = numbers[b, start : start + width], norms[b]
            for i in range(width):
                values[i] = similarity(kernel, row[i], own, others[i])
            for step in range(len(starts) - 1):
                for m in order[starts[step] : starts[step + 1]]:
                    for k in range(n_outputs):
                        total = nothing
                        for i in range(width):
                            total += scaled[m, k, i] * values[i]
                        found[b, m, k] += total * units[m, k]
                if step + 2 < len(starts):
                    for i in range(width):
                        values[i] = values[i] * values[i] if values[i] > tiny else nothing


@compiled.inline
def unit_of(coefficients):
    """The power of two next below the largest, in units of which single precision holds them all; 1 if all are 0."""
    largest = 0.0
    for i in range(len(coefficients)):
        largest = max(largest, abs(coefficients[i]))
    return power_below(largest) if largest > 1e-300 else 1.0


def values_within(kernel: Any, n_steps: int, block: Any, rows: tuple[int, int]) -> np.ndarray:
    """Kernel values (S, BLOCK, BLOCK) of a block's points among themselves, in double precision.

    Only those are computed of the rows from one to another, and of pairs of which the second is no later row.

    Raises
    ------
    ModelError
        If a value is no number, or k(x, x) is negative.
    """
    compact = in_compiled_code(kernel, np.float64)
    with threads.one_for_products():
        numbers = pairs(block, block, kernel).astype(np.float64)
    values = np.empty((n_steps, BLOCK, BLOCK))
    finite, least = fill_steps(compact, numbers, block.norms.astype(np.float64), *rows, values)
    if not finite:
        raise ModelError(NOT_FINITE)
    if least < 0.0:
        raise ModelError("k(x, x) is negative for some row: that is no kernel; check the matrix or function given")
    return values


@compiled.entry
def fill_steps(kernel, numbers, norms, first, stop, values):
    """The values of some rows at every step; whether they are finite, and the least k(x, x)."""
    finite, least = True, np.inf
    for b in range(first, stop):
        for i in range(b + 1):
            values[0, b, i] = similarity(kernel, numbers[b, i], norms[b], norms[i])
            finite = finite and np.isfinite(values[0, b, i])
        least = min(least, values[0, b, b])
        for step in range(1, len(values)):
            for i in range(b + 1):
                value = values[step - 1, b, i]
                values[step, b, i] = value * value if value > TINY else 0.0
    return finite, least

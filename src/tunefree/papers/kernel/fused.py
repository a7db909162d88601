"""Triton kernels for NVIDIA's devices: what PyTorch's operations would do in twenty passes over memory, in one.

A tile of products or distances of rows and points is read once. The exponential, its squares for the wider ladder, and
the sums with all coefficients are made while the numbers are in registers. Each program writes sums of its own part of
the points, which are then added up in a fixed order: nothing depends on which program ends first.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

ROWS, POINTS = 4, 2048  # of a program: coefficients are read once for all its rows
ROWS_APART, POINTS_APART = 32, 128  # of a program for distances


def ladder_sums(rungs: Any, numbers: Any, norms: Any, gamma: float, coefficients: Any) -> Any:
    """Sums of exp(-gamma D), and of its squares, times coefficients.

    Parameters
    ----------
    rungs : pair of int32 tensors (M,) and (S + 1,)
        See :func:`tunefree.papers.kernel.kernel_sums.rungs_of`.
    numbers : (R, n) float32 tensor
        Products of rows and points, or their distances D.
    norms : pair of tensors (R,) and (n,), or None
        With which products become D = ||x||^2 + ||z||^2 - 2 x.z; None for distances.
    gamma : float
    coefficients : (M, K, n) float32 tensor
        Contiguous but for room behind the n.

    Returns
    -------
    (R, M, K) float64 tensor
    """
    (n_rows, n), (n_functions, n_outputs, _) = numbers.shape, coefficients.shape
    n_parts = triton.cdiv(n, POINTS)
    sums = numbers.new_zeros((n_parts, n_functions, n_outputs, n_rows))
    norms_of_rows, norms_of_points = (numbers, numbers) if norms is None else norms
    with torch.cuda.device_of(numbers):
        _ladder_sums[(triton.cdiv(n_rows, ROWS), n_parts)](
            *rungs, numbers, norms_of_rows, norms_of_points, coefficients, sums, n_rows, n, coefficients.stride(1),
            gamma, n_functions, n_outputs, len(rungs[1]) - 1, norms is not None, ROWS, POINTS,
        )  # fmt: skip
    return sums.sum(dim=0, dtype=torch.float64).permute(2, 0, 1)


@triton.jit
def _ladder_sums(
    order, starts, numbers, norms_of_rows, norms_of_points, coefficients, sums, n_rows, n, stride, gamma, n_functions,
    N_OUTPUTS: tl.constexpr,
    N_STEPS: tl.constexpr, ARE_PRODUCTS: tl.constexpr, ROWS: tl.constexpr, POINTS: tl.constexpr,
):  # fmt: skip
    row, part = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.program_id(1)
    point = part * POINTS + tl.arange(0, POINTS)
    in_rows, in_points = row < n_rows, point < n
    there = in_rows[:, None] & in_points[None, :]
    distance = tl.load(numbers + row[:, None].to(tl.int64) * n + point[None, :], mask=there, other=0.0)
    if ARE_PRODUCTS:
        norm = tl.load(norms_of_rows + row, mask=in_rows, other=0.0)[:, None]
        norm_of_other = tl.load(norms_of_points + point, mask=in_points, other=0.0)[None, :]
        distance = tl.abs((norm - distance) + (norm_of_other - distance))
    value = tl.exp(-gamma * distance)
    for step in tl.static_range(N_STEPS):
        for rung in range(tl.load(starts + step), tl.load(starts + step + 1)):
            function = tl.load(order + rung)
            for k in range(N_OUTPUTS):
                place = (function * N_OUTPUTS + k).to(tl.int64)
                coefficient = tl.load(coefficients + place * stride + point, mask=in_points, other=0.0)
                total = tl.sum(value * coefficient[None, :], axis=1)
                start = part.to(tl.int64) * n_functions * N_OUTPUTS + place
                tl.store(sums + start * n_rows + row, total, mask=in_rows)
        value = value * value


def absolute_distances(rows: Any, points: Any) -> Any:
    """Sums of absolute differences (R, n) of rows (R, d) and points (n, d), float32."""
    (n_rows, n_features), n = rows.shape, len(points)
    distances = rows.new_empty((n_rows, n))
    with torch.cuda.device_of(rows):
        _absolute_distances[(triton.cdiv(n, POINTS_APART), triton.cdiv(n_rows, ROWS_APART))](
            rows, points, distances, n_rows, n, n_features, ROWS_APART, POINTS_APART
        )
    return distances


@triton.jit
def _absolute_distances(
    rows, points, distances, n_rows, n, N_FEATURES: tl.constexpr, ROWS: tl.constexpr, POINTS: tl.constexpr
):
    row = (tl.program_id(1) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    point = (tl.program_id(0) * POINTS + tl.arange(0, POINTS)).to(tl.int64)
    in_rows, in_points = row < n_rows, point < n
    total = tl.zeros((ROWS, POINTS), dtype=tl.float32)
    for j in range(N_FEATURES):
        one = tl.load(rows + row * N_FEATURES + j, mask=in_rows, other=0.0)
        other = tl.load(points + point * N_FEATURES + j, mask=in_points, other=0.0)
        total += tl.abs(one[:, None] - other[None, :])
    there = in_rows[:, None] & in_points[None, :]
    tl.store(distances + row[:, None] * n + point[None, :], total, mask=there)

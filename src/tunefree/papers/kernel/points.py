"""Rows as points of a kernel's space, kernel values of pairs of them, and sums of such values with coefficients.

A point is the entries of a row that are not 0, whatever held the row. Compiled code lays some rows out by their
features, and then goes through other points one by one. So the numbers of a row do not depend on the rows that it came
with, and the matrix of all pairs never exists.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from tunefree.compiled.functions import Compiled
from tunefree.core.errors import ModelError
from tunefree.core.rows import FEATURES, Block, compressed
from tunefree.core.schema import Limits
from tunefree.papers.kernel import kernels

BLOCK = 128  # rows whose kernel values are computed together
TINY = 1e-18  # kernel values below are 0: their squares would be denormal numbers, which are slow
NOT_FINITE = "a kernel value is not a finite number; scale the features, or choose another kernel"


class Points(NamedTuple):
    """Compressed sparse rows."""

    # Point i has the entries pointers[i] .. pointers[i + 1].
    pointers: Annotated[np.ndarray, "int64[pointers]", Limits(ascends_to="point_entries")]
    features: Annotated[np.ndarray, "int32[point_entries]", FEATURES]
    values: Annotated[np.ndarray, "float64[point_entries]"]
    norms: Annotated[np.ndarray, "float64[points]"]

    @property
    def size(self) -> int:
        """How many points there are."""
        return len(self.norms)

    def joined(self, others: Points, which: np.ndarray) -> Points:
        """The points and some others behind them."""
        counts, last = np.diff(others.pointers)[which], int(self.pointers[-1])
        after = np.cumsum(counts)
        entries = np.repeat(others.pointers[which] - (after - counts), counts) + np.arange(counts.sum())
        return Points(
            np.append(self.pointers, last + after),
            np.append(self.features, others.features[entries]),
            np.append(self.values, others.values[entries]),
            np.append(self.norms, others.norms[which]),
        )

    def keys(self) -> list[bytes]:
        """For each point bytes that only the same point has."""
        spans = [slice(first, last) for first, last in pairwise(self.pointers.tolist())]
        return [self.features[span].tobytes() + self.values[span].tobytes() for span in spans]


def points(X: Block, kernel: Any) -> Points:
    """Rows without their constant, as points of a kernel's space."""
    rows = as_csr(X)
    return Points(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data, kernel.norms(rows))


def as_csr(X: Block, n_features: int | None = None) -> csr_array:
    """A block's rows as a sparse matrix, whose column 0, of the constant, is empty; features beyond are left out."""
    pointers, features, values = compressed(X)
    rows = csr_array((values, features, pointers), shape=(len(pointers) - 1, 1 + int(features.max(initial=0))))
    if n_features is not None:
        rows.resize((rows.shape[0], n_features))
    return rows


class LaidOut(NamedTuple):
    """Rows by their features."""

    index_of: Annotated[np.ndarray, "int64[features]"]
    entries: Annotated[np.ndarray, "float64[entries, rows]"]  # one more row than features, of zeros
    norms: Annotated[np.ndarray, "float64[rows]"]


def laid_out(rows: Points, first: int, stop: int) -> LaidOut:
    """The points from ``first`` to ``stop``."""
    pointers = rows.pointers[first : stop + 1]
    here = slice(int(pointers[0]), int(pointers[-1]))
    features, owners = rows.features[here], np.repeat(np.arange(stop - first), np.diff(pointers))
    distinct, places = np.unique(features, return_inverse=True)
    index_of = np.full(1 + int(features.max(initial=0)), len(distinct))
    index_of[distinct] = np.arange(len(distinct))
    entries = np.zeros((len(distinct) + 1, stop - first))
    entries[places, owners] = rows.values[here]
    return LaidOut(index_of, entries, np.ascontiguousarray(rows.norms[first:stop]))


def exponential(power):
    """exp(power) by the C library."""
    return math.exp(power)


def value_writing_of(cls: Any) -> Any:
    """The function that writes the values of a class of kernels, of a point and of all rows that are laid out."""
    term_of, value_of = cls.feature_term, cls.similarity

    def write(kernel, rows, points, i, values):
        for b in range(len(values)):
            values[b] = 0.0
        for e in range(points.pointers[i], points.pointers[i + 1]):
            feature, number = points.features[e], points.values[e]
            is_known = feature < len(rows.index_of)
            entries = rows.entries[rows.index_of[feature] if is_known else len(rows.entries) - 1]
            for b in range(len(values)):
                values[b] += term_of(entries[b], number)
        for b in range(len(values)):
            values[b] = value_of(kernel, values[b], rows.norms[b], points.norms[i], exponential)

    return write


def square(values):
    """The values of kernels of twice the gamma, in place; tiny ones become 0."""
    for b in range(len(values)):
        values[b] = values[b] * values[b] if values[b] > TINY else 0.0


def name_of(function: str, cls: Any) -> str:
    """The name of a compiled function for a class of kernels."""
    return f"{function}.{cls.__module__}.{cls.__name__}".replace("tunefree.papers.kernel.", "")


@cache
def summing(cls: Any) -> Compiled:
    """The compiled function that adds up values of a class of kernels times coefficients."""
    write = value_writing_of(cls)

    def add_sums(
        kernel: Any,
        rows: LaidOut,
        points: Points,
        order: Annotated[np.ndarray, "int64[functions]"],
        starts: Annotated[np.ndarray, "int64[edges]"],
        coefficients: Annotated[np.ndarray, "float64[functions, outputs, points]"],
        values: Annotated[np.ndarray, "float64[rows]"],
        sums: Annotated[np.ndarray, "float64[functions, outputs, rows]"],
    ) -> None:
        for i in range(len(points.norms)):
            write(kernel, rows, points, i, values)
            for step in range(len(starts) - 1):
                for place in range(starts[step], starts[step + 1]):
                    for k in range(sums.shape[1]):
                        total, coefficient = sums[order[place], k], coefficients[order[place], k, i]
                        for b in range(len(values)):
                            total[b] += coefficient * values[b]
                square(values)

    return Compiled(add_sums, name_of("kernel.sums", cls), {"kernel": cls})


@cache
def valuing(cls: Any) -> Compiled:
    """The compiled function that writes values of a class of kernels, of rows and points, for each width."""
    write = value_writing_of(cls)

    def write_values(
        kernel: Any,
        rows: LaidOut,
        points: Points,
        scratch: Annotated[np.ndarray, "float64[rows]"],
        values: Annotated[np.ndarray, "float64[steps, rows, points]"],
    ) -> None:
        for i in range(len(points.norms)):
            write(kernel, rows, points, i, scratch)
            for step in range(len(values)):
                for b in range(len(scratch)):
                    values[step, b, i] = scratch[b]
                square(scratch)

    return Compiled(write_values, name_of("kernel.values", cls), {"kernel": cls})


def sums_at(
    kernel: Any,
    steps: np.ndarray,
    support: Points,
    coefficients: np.ndarray,
    rows: Points,
    first: int,
    stop: int,
) -> np.ndarray:
    """Values (M, stop - first, K) of functions at some rows.

    Parameters
    ----------
    kernel : kernel
        At the least gamma of the grid.
    steps : (M,) int array
        For each function its step on the grid of bandwidths, each of twice the gamma; several may share one.
    support : Points
    coefficients : (M, K, n) float64 array
    rows, first, stop
        Points, and from which to which of them.
    """
    order = np.argsort(steps, kind="stable")
    starts = np.searchsorted(steps[order], np.arange(steps.max(initial=-1) + 2))
    sums, scratch = np.zeros((*coefficients.shape[:2], stop - first)), np.empty(stop - first)
    points, coefficients = laid_out(rows, first, stop), np.ascontiguousarray(coefficients)
    cls: Any = type(kernel)
    summing(cls)(kernel, points, support, order, starts, coefficients, scratch, sums)
    if not np.isfinite(sums).all():
        raise ModelError(NOT_FINITE)
    return sums.transpose(0, 2, 1)


def values_within(kernel: Any, n_steps: int, rows: Points, first: int) -> np.ndarray:
    """Kernel values (S, n - first, n) of the points from ``first`` on and all n, at S steps.

    Raises
    ------
    ModelError
        If a value is no number, or k(x, x) is negative.
    """
    n = rows.size
    values, scratch = np.empty((n_steps, n - first, n)), np.empty(n - first)
    cls: Any = type(kernel)
    valuing(cls)(kernel, laid_out(rows, first, n), rows, scratch, values)
    if not np.isfinite(values[0]).all():
        raise ModelError(NOT_FINITE)
    if np.diagonal(values[0], offset=first).min(initial=0.0) < 0.0:
        raise ModelError("k(x, x) is negative for some row: that is no kernel; check the function registered")
    return values


def all_compiled() -> list[Compiled]:
    """The compiled functions of this module, for all kernels of the package."""
    classes: Any = dict.fromkeys(type(kernels.kernel_of(name, 1.0)) for name in kernels.ALL)
    return [function_of(cls) for cls in classes for function_of in (summing, valuing)]

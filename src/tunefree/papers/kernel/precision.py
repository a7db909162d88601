"""Kernels (:mod:`tunefree.core.kernels`) over numbers of single or double precision, from the same functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import numpy as np

from tunefree.core.kernels import Kernel

DTYPES = ("float32", "float64")
NAMES = {np.dtype(name): name for name in DTYPES}
MOST = {np.dtype(name): float(np.finfo(name).max) for name in DTYPES}
# 2^f for 0 <= f <= 1, the best polynomial of degree 6: its error is a tenth of the rounding of single precision
POWERS_OF_TWO = tuple(map(np.float32, (1, 0.6931472, 0.2402266, 0.055502538, 0.009630109, 0.001298158, 0.000195426)))
LOG2_OF_E, LEAST_EXPONENT = np.float32(math.log2(math.e)), np.float32(-125.0)
ONE, BIAS, MANTISSA_BITS = np.int32(1), np.int32(127), np.int32(23)


def in_precision(
    function: Callable[..., Any],
    dtype: str,
    name: str,
    states: Mapping[str, type[Any]] | None = None,
    lengths: Mapping[str, int] | None = None,
) -> Kernel:
    """A :class:`tunefree.core.kernels.Kernel` of a plain function in one of the precisions, a name in ``DTYPES``.

    ``real`` stands in the annotations of the function for the type of the numbers.
    """
    copy = FunctionType(function.__code__, function.__globals__, function.__name__, None, function.__closure__)
    copy.__module__ = function.__module__
    copy.__annotations__ = {key: hint.replace("real[", f"{dtype}[") for key, hint in function.__annotations__.items()}
    return Kernel(copy, f"{name}.{dtype}", states, lengths)


def exponential(dtype: str) -> Callable[[Any], Any]:
    """The plain function exp in one of the precisions, for powers of at most 0."""
    return exponential_of_double if dtype == "float64" else exponential_of_single


def exponential_of_double(power):
    """exp(power) by the C library."""
    return math.exp(power)


def exponential_of_single(power):
    """exp(power) by a polynomial, which processors run for many numbers at a time; at least 2^-126."""
    z = max(power * LOG2_OF_E, LEAST_EXPONENT)
    whole = np.int32(np.int32(z) - ONE)  # truncated towards 0: below z
    f = z - np.float32(whole)
    c0, c1, c2, c3, c4, c5, c6 = POWERS_OF_TWO
    series = c0 + f * (c1 + f * (c2 + f * (c3 + f * (c4 + f * (c5 + f * c6)))))
    return series * np.int32((whole + BIAS) << MANTISSA_BITS).view(np.float32)

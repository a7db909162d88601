"""Arithmetic that stays finite: replacements of numbers that cannot be represented."""

from __future__ import annotations

import math

import numpy as np

# Bound of margins and wealth; its square is still finite.
CEILING = 1e150
LOG_CEILING = 345.0
LARGEST = 1e308
SMALLEST_UNIT = 2.0**-1021  # its inverse is finite
EXPONENT_BITS = 0x7FF0000000000000
MOST = 1.7976931348623157e308  # the largest finite number
LARGEST_EXPONENT = 709.0  # exponent of e with a finite power
LEAST_EXPONENT = -1023  # exponent of 2 with a finite inverse power
MANTISSA_BITS = 52

# Running means that forget the first values and are robust to outliers: a size counts as at most WIDEST times the
# previous mean, so even an extreme first size soon loses its influence.
WIDEST = 8.0  # bound of a size, in multiples of the typical size
HASTE = 3.0  # the rate of round t is HASTE / (t + HASTE - 1), so the influence of one row decays like 1 / t^3


def clip(number, bound):
    """The number, or the bound with its sign."""
    return min(max(number, -bound), bound)


def finite(number):
    """The number, or the largest finite one of its sign."""
    return min(max(number, -MOST), MOST)


def bounded(number):
    """The number, or the ceiling with its sign."""
    return min(max(number, -CEILING), CEILING)


def clipped(numbers: np.ndarray) -> np.ndarray:
    """An array with numbers clipped to the ceiling, and NaN replaced by 0.

    >>> bool((clipped(np.array([1.0, -np.inf, np.nan])) == [1.0, -CEILING, 0.0]).all())
    True
    """
    return np.clip(np.nan_to_num(numbers, posinf=CEILING, neginf=-CEILING), -CEILING, CEILING)


def scaled(numbers: np.ndarray, unit: float, centre: float = 0.0) -> np.ndarray:
    """Numbers times a unit, plus a centre; the largest finite number of the same sign in case of overflow.

    >>> scaled(np.array([1.0, 4.0]), 1e308).tolist()
    [1e+308, 1.7976931348623157e+308]
    """
    with np.errstate(over="ignore"):
        return np.clip(numbers * unit + centre, -MOST, MOST)


def raised(base, power):
    """base ** power for a base of at least 0, or the largest finite number."""
    if base > 1.0 and power * math.log(base) > LARGEST_EXPONENT:
        return MOST
    return base**power


def sign(number):
    """-1, 0 or 1."""
    if number == 0.0:
        return 0.0
    return 1.0 if number > 0.0 else -1.0


def softplus(z):
    """ln(1 + exp(z)) without overflow."""
    return z + math.log1p(math.exp(-z)) if z > 0 else math.log1p(math.exp(z))


def power_of_two(exponent):
    """2 to a whole number of at most 1023, by its bits; 0 below 2^-1023, which has no finite inverse."""
    if exponent < LEAST_EXPONENT:
        return 0.0
    bits = np.int64(max(exponent, LEAST_EXPONENT + 1) - LEAST_EXPONENT) << MANTISSA_BITS
    power = np.int64(bits).view(np.float64)
    return power if exponent > LEAST_EXPONENT else 0.5 * power


def power_below(number):
    """The power of two next below the size of a number that is not 0; of an infinite one, that below the largest."""
    return power_of_two(math.floor(math.log2(min(abs(number), MOST / 2.0))))


def unit_below(size):
    """The largest power of two up to a size above 0, at least SMALLEST_UNIT: the bits without the mantissa."""
    bits = np.float64(min(max(size, SMALLEST_UNIT), LARGEST)).view(np.int64)
    return np.int64(bits & EXPONENT_BITS).view(np.float64)


def norm(a, b):
    """sqrt(a^2 + b^2), where a square may be too large or too small to be represented; at most LARGEST."""
    unit = unit_below(max(abs(a), abs(b)))
    inverse = 1.0 / unit
    return min(unit * math.sqrt((a * inverse) * (a * inverse) + (b * inverse) * (b * inverse)), LARGEST)


def largest(numbers):
    """The largest number of an array that is not empty; ``np.max`` may raise an error, which kernels cannot."""
    peak = numbers[0]
    for k in range(1, len(numbers)):
        if numbers[k] > peak:
            peak = numbers[k]
    return peak


def pace(rounds):
    """The weight of the latest value in a running mean."""
    return HASTE / (rounds + HASTE - 1.0)


def approach(typical, size, rate, widest):
    """The running mean of sizes after one more, which is clipped at ``widest`` times the mean before."""
    near = min(size, widest * typical) if typical > 0.0 else size
    return typical + rate * (near - typical)

"""Running means that forget the first numbers, and that extreme numbers hardly change.

Weights grow like the square of time. Sizes count at most WIDEST times the mean before: one that is a million times too
large changes it little, and soon has no influence if it is the first.
"""

from __future__ import annotations

WIDEST = 8.0  # times the typical size, as which larger ones count
HASTE = 3.0  # running means move by HASTE / (t + HASTE - 1) in round t: the influence of one row fades like 1 / t^3


def pace(rounds):
    """The weight of the latest value in a running mean."""
    return HASTE / (rounds + HASTE - 1.0)


def approach(typical, size, rate, widest):
    """The running mean of sizes after one more, which is clipped at ``widest`` times the mean before."""
    near = min(size, widest * typical) if typical > 0.0 else size
    return typical + rate * (near - typical)

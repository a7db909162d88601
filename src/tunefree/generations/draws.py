"""Random numbers inside kernels."""

from __future__ import annotations

import numpy as np

GOLDEN, ODD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
HALF = np.uint64(32)


def next_random(state):
    """A number between 0 and 1 (Marsaglia: Xorshift RNGs, 2003)."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return float(x >> np.uint64(11)) / 9007199254740992.0


def bits_of(number, start):
    """64 random bits of a whole number, which do not wait for those of the one before it."""
    bits = np.uint64(number) * GOLDEN + start
    bits = (bits ^ (bits >> HALF)) * ODD
    return bits ^ (bits >> HALF)

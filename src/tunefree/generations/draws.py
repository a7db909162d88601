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


def draw_rows(rows, spare, share, start):
    """Write about a share of the numbers of rows, and then the others, in their order; how many the first ones are.

    Both are written, to have no branch.
    """
    n, others, limit = np.uint64(0), np.uint64(0), np.int64(share * 2.0**32)
    for i in range(np.uint64(len(rows))):
        is_drawn = np.int64(bits_of(i, start) >> HALF) < limit
        rows[n], spare[others] = i, i
        n += np.uint64(is_drawn)
        others += np.uint64(not is_drawn)
    for p in range(others):
        rows[n + p] = spare[p]
    return n

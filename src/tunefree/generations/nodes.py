"""Rows of a growing tree: samples of rows, sums of integers, and the partition of nodes.

Integers (Shi et al.: Quantized training of gradient boosting decision trees, NeurIPS 2022) have several bit fields side
by side, so that one addition adds all fields. The lowest field is the number of rows. Units are chosen such that the
sum of the absolute values of all rows just fits in a field. Rounding is random and unbiased.
"""

from __future__ import annotations

import numpy as np

from tunefree.generations.bins import MISSING

GOLDEN, ODD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
HALF = np.uint64(32)
BITS = 64


def next_random(state):
    """A number between 0 and 1 (Marsaglia: Xorshift RNGs, 2003)."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return float(x >> np.uint64(11)) / 9007199254740992.0


def bits_of(number, start):
    """64 random bits of a whole number, without a state."""
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


def fields_of(n):
    """Bits below the second field, and below the third, in whole numbers that are sums over up to n rows."""
    low = 1
    while (1 << low) <= n:
        low += 1
    return low, low + (BITS - low) // 2


def unit_of(total, bits, n):
    """The unit in which n absolute values, rounded up, have a sum below 2^bits; 1 where the total is 0."""
    unit = total / (0.999 * np.float64(1 << bits) - n)
    return unit if unit > 0.0 else 1.0


def partition(work, node, column_codes, left, right):
    """Move the rows of a node whose codes go left before the others, keeping their order.

    Returns how many rows have no code. Rows are written to both places, to have no branch.
    """
    n_left, n_right, n_missing = np.uint64(work.first[node]), np.uint64(0), np.uint64(0)
    for p in range(np.uint64(work.first[node]), np.uint64(work.last[node])):
        r = work.rows[p]
        code = column_codes[r]
        goes_left = np.uint64(work.goes_left[code])
        n_missing += np.uint64(code == MISSING)
        work.rows[n_left] = r
        work.spare[n_right] = r
        n_left += goes_left
        n_right += np.uint64(1) - goes_left
    for p in range(n_right):
        work.rows[n_left + p] = work.spare[p]
    work.first[left], work.last[left] = work.first[node], n_left
    work.first[right], work.last[right] = n_left, work.last[node]
    return n_missing


def default_left(n_missing, n_left, n_right, row):
    """Whether a code that is missing from all rows of a node goes left: as often as its rows do.

    A category that is new later on is then predicted as those known are on average over the trees. To one side always
    it would not do: codes of categories are in the order of their mean targets, so that all trees together would take
    it for the extreme one. ``row`` is one of the node's, whose hash decides.
    """
    bits = (np.uint64(row) + (np.uint64(n_left) << np.uint64(32))) * GOLDEN
    draw = np.float64(bits >> np.uint64(11)) / 2.0**53
    return n_missing == 0 and draw * (np.float64(n_left) + np.float64(n_right)) < np.float64(n_left)

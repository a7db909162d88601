"""Categories of a column in the order of their means in a node, and the sets that a cut of this order makes.

For one output no split into two sets is better than the best cut of this order (Fisher: On grouping for maximum
homogeneity, JASA 1958). With many categories of few rows each, much of such a gain is noise, and would be preferred to
smaller gains of numbers. So means are shrunk to that of the node (Efron, Morris: Data analysis using Stein's estimator
and its generalizations, JASA 1975), and gains are those of shrunk means. Missing is a category, too.

``work`` is that of :mod:`tunefree.generations.gradient_trees`, whose whole numbers have the gradient above the bit
``high``, the second derivative above ``low``, and the number of rows below.
"""

from __future__ import annotations

import math

import numpy as np

from tunefree.generations.bins import MISSING


def list_codes(work, sums, n_codes):
    """List the codes of a column that rows of a node have; returns how many they are."""
    n, n_outputs = 0, len(work.scales)
    for b in range(n_codes + 1):
        code = b if b < n_codes else MISSING
        work.present[n] = code
        n += 1 if sums[code * n_outputs] != 0 else 0
    return n


def write_variances(work, sums, n, low, high):
    """Write the variance of the means of n codes in each output beyond that of noise, times n - 3.

    It is found by moments, such that codes of equal second derivatives are shrunk as by James and Stein. So up to three
    codes, among which hardly anything is chosen, are not. What lies between the codes counts as what noise is expected
    to bring about, at least: else categories that matter only together with other columns would never be split.
    """
    of_node, of_curvature = work.sizes_of_node, (1 << (high - low)) - 1
    for k in range(len(work.variances)):
        mean, spread, total, squares = of_node[0, k] / of_node[1, k], 0.0, 0.0, 0.0
        for q in range(n):
            both = sums[np.int64(work.present[q]) * len(work.variances) + k]
            h = np.float64((both >> low) & of_curvature) + work.ridges[k]
            g = np.float64(both >> high) - mean * h
            spread, total, squares = spread + g * g / h, total + h, squares + h * h
        degrees, rest = np.float64(n - 1), total - squares / max(total, 1e-300)
        beyond = max(spread, degrees * work.noises[k]) - max(degrees - 2.0, 0.0) * work.noises[k]
        work.variances[k] = degrees * beyond / rest if rest > 0.0 else 0.0


def shrunk(work, both, k, n, low, high):
    """The gradient of a code, drawn to the mean of the node by the share of noise in it, and the second derivative."""
    h = np.float64((both >> low) & ((1 << (high - low)) - 1)) + work.ridges[k]
    of_mean, signal = work.sizes_of_node[0, k] / work.sizes_of_node[1, k] * h, work.variances[k] * h
    share = signal / (signal + max(np.float64(n - 3), 0.0) * work.noises[k]) if signal > 0.0 else 0.0
    return of_mean + share * (np.float64(both >> high) - of_mean), h


def write_order(means, codes, n, order):
    """Write n codes in the order of their means.

    The place of each is how many are before it. Processors count several at a time, and guess nothing, as in sorting.
    """
    for q in range(np.uint64(n)):
        mean, place = means[q], np.uint64(0)
        for p in range(q):
            place += np.uint64(means[p] <= mean)
        for p in range(q + np.uint64(1), np.uint64(n)):
            place += np.uint64(means[p] < mean)
        order[place] = codes[q]


def order_codes(work, sums, n_codes, low, high):
    """Order the codes that rows of a node have in a column by their means; returns how many they are.

    Means are shrunk gradients over second derivatives, of the output in which they differ most. A single code is not
    counted.
    """
    n, most, n_outputs = list_codes(work, sums, n_codes), 0, len(work.scales)
    write_variances(work, sums, n, low, high)
    scales, curvatures = work.scales, work.sizes_of_node[1]
    for k in range(1, n_outputs):
        of_output = scales[k] * work.variances[k] * curvatures[k]
        most = k if of_output > scales[most] * work.variances[most] * curvatures[most] else most
    n = n if work.variances[most] > 0.0 else 0
    for q in range(n):
        g, h = shrunk(work, sums[np.int64(work.present[q]) * n_outputs + most], most, n, low, high)
        work.means[q] = g / h
    write_order(work.means, work.present, n, work.order)
    return n


def lay_in_order(work, sums, n, low, high):
    """Write the histogram of a column in the order of its codes, with shrunk gradients."""
    n_outputs = len(work.scales)
    for k in range(n_outputs):
        for q in range(n):
            both = sums[np.int64(work.order[q]) * n_outputs + k]
            g, _ = shrunk(work, both, k, n, low, high)
            work.in_order[q * n_outputs + k] = (np.int64(math.floor(g + 0.5)) << high) + (both & ((1 << high) - 1))
        work.in_order[MISSING * n_outputs + k] = 0


def write_set(work, place, n, cut, is_left):
    """Write which codes go right: those behind a cut in the order, and those that no row has, unless they go left."""
    of_node = work.sets[place]
    of_node[:] = np.uint64(0) if is_left else ~np.uint64(0)
    for q in range(n):
        word, bit = work.order[q] >> np.uint8(6), np.uint64(1) << np.uint64(work.order[q] & np.uint8(63))
        of_node[word] = of_node[word] | bit if q > cut else of_node[word] & ~bit

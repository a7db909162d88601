"""A tree on gradients and second derivatives: histograms of codes, one structure for all outputs.

Chen, Guestrin: XGBoost (KDD 2016), equations (6) and (7), with vectors for outputs; leaves are split in the order of
their gain, and of two children the histogram of the larger one is a difference (Ke et al.: LightGBM, NIPS 2017).

Splits are searched with integers (:mod:`tunefree.generations.nodes`): for each output, the 64 bits of an integer have
the gradient, the second derivative and the number of rows side by side. With 2^16 rows a mean gradient is 2^7 units,
with 2^10 rows 2^17. Leaves get exact sums.

A split of a categorical column is a cut of the categories in the order of their means in the node. For one output no
split into two sets is better (Fisher: On grouping for maximum homogeneity, JASA 1958). With many categories of few rows
each, much of this gain is noise, which would win over smaller gains of numbers. So means are shrunk towards the mean of
the node (Efron, Morris: Data analysis using Stein's estimator and its generalizations, JASA 1975), and gains are
computed with shrunk means. Missing is a category, too.

With a monotone column, the value of a row only rises, or only falls: the leaves on one side of a split have values up
to a bound, and the leaves on the other side have values from this bound on (Potharst, Feelders: Classification trees
for problems with monotonicity constraints, SIGKDD Explorations 4, 2002). The bound is the midpoint of the means of the
two sides, or the mean of both sides if their means are in the wrong order. So each tree is monotone. Sums of trees are
monotone to the last bit, as rounding keeps the order of sums.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from tunefree.compiled.functions import compiled
from tunefree.core.part import zeros
from tunefree.generations.bins import MISSING
from tunefree.generations.bundles import Exclusive
from tunefree.generations.nodes import (
    BITS,
    GOLDEN,
    HALF,
    default_left,
    draw_rows,
    fields_of,
    next_random,
    partition,
    unit_of,
)
from tunefree.generations.trees import CODE, CODES, COLUMN, LEAF, SET

RIDGE = 1e-3  # added to sums of second derivatives
LEAST_GAIN = 1e-9
SIGN, TWO_TO_52, BITS_OF_TWO_TO_52 = np.uint64(1 << 63), 2.0**52, np.uint64(0x4330000000000000)
ONE = 2.0**-32  # a random number of 32 bits times this is between 0 and 1


class Work(NamedTuple):
    """Arrays in which one tree after another is grown."""

    gradients: Annotated[np.ndarray, "float32[rows, outputs]"]
    curvatures: Annotated[np.ndarray, "float32[rows, outputs]"]
    rows: Annotated[np.ndarray, "uint32[rows]"]  # of the tree, contiguous for each node, then the others
    spare: Annotated[np.ndarray, "uint32[rows]"]
    columns: Annotated[np.ndarray, "int32[drawn]"]  # indices of the columns of the tree
    single: Annotated[np.ndarray, "int32[places]"]  # positions of the columns that are in no bundle
    sizes: Annotated[np.ndarray, "int64[2]"]  # numbers of rows and nodes of the tree
    packed: Annotated[np.ndarray, "int64[rows, outputs]"]  # gradient, second derivative and 1
    ordered: Annotated[np.ndarray, "int64[rows, outputs]"]  # `packed` for the rows of a node
    first: Annotated[np.ndarray, "int64[nodes]"]  # a node has rows[first .. last]
    last: Annotated[np.ndarray, "int64[nodes]"]
    totals: Annotated[np.ndarray, "int64[nodes, outputs]"]  # sums over the rows of a node
    gains: Annotated[np.ndarray, "float64[nodes]"]  # gain of the best split of a node; 0 for none
    splits: Annotated[np.ndarray, "int32[nodes]"]  # test of the best split; for categories, the cut of their order
    histogram: Annotated[np.ndarray, "int64[nodes]"]  # index of the histogram of a node
    histograms: Annotated[np.ndarray, "int64[histograms, drawn, cells]"]  # K sums for each of 256 codes
    scales: Annotated[np.ndarray, "float64[outputs]"]  # factors of scores, whose sums are in units
    ridges: Annotated[np.ndarray, "float64[outputs]"]  # RIDGE in units of second derivatives
    noises: Annotated[np.ndarray, "float64[outputs]"]  # variances of gradients for a second derivative of 1, in units
    variances: Annotated[np.ndarray, "float64[outputs]"]  # of the means of categories, likewise
    running: Annotated[np.ndarray, "uint64[256]"]  # sums of one output up to each code of a column
    scores: Annotated[np.ndarray, "float64[256]"]  # of the cuts of a column
    present: Annotated[np.ndarray, "uint8[256]"]  # categories of a column in the rows of a node
    order: Annotated[np.ndarray, "uint8[256]"]  # these categories in the order of their means
    means: Annotated[np.ndarray, "float64[256]"]  # means of these categories
    in_order: Annotated[np.ndarray, "int64[cells]"]  # the histogram in this order
    goes_left: Annotated[np.ndarray, "uint8[256]"]  # 1 for codes that go left
    node_sums: Annotated[np.ndarray, "float64[2, outputs]"]  # sums of gradients and second derivatives
    nodes: Annotated[np.ndarray, "int32[nodes, 2]"]  # test and left child, LEAF and number of the leaf, or 0
    sets: Annotated[np.ndarray, "uint64[leaves, 4]"]  # as in tunefree.generations.trees
    sums: Annotated[np.ndarray, "float64[leaves, outputs, 2]"]  # exact sums of the rows of each leaf
    roots: Annotated[np.ndarray, "int32[1]"]  # root of the tree: 0
    leaves: Annotated[np.ndarray, "int32[rows, 1]"]  # leaves that rows reach

    @classmethod
    def create(cls, n: int, n_columns: int, n_outputs: int, most_leaves: int) -> Work:
        """Allocate the arrays for trees with so many rows, drawn columns, outputs, and leaves."""
        lengths = {"rows": n, "outputs": n_outputs, "cells": 256 * n_outputs}
        lengths |= {"drawn": n_columns, "places": n_columns + 1}
        lengths |= {"nodes": 2 * most_leaves - 1, "leaves": most_leaves, "histograms": most_leaves}
        return zeros(cls, **lengths)


@compiled
def draw(
    work: Work,
    share: float,
    varying: Annotated[np.ndarray, "int32[varying]"],
    gained: Annotated[np.ndarray, "float64[columns]"],
    n_best: int,
    state: Annotated[np.ndarray, "uint64[1]"],
) -> None:
    """Draw the columns of a tree, first the ``n_best`` that gained most, and about a share of the rows."""
    for f in range(len(work.columns)):
        z = f + int(next_random(state) * (len(varying) - f))
        if f < n_best:
            for p in range(f, len(varying)):
                z = p if gained[varying[p]] > gained[varying[z]] else z
        varying[f], varying[z] = varying[z], varying[f]
        work.columns[f] = varying[f]
    next_random(state)
    work.sizes[0] = draw_rows(work.rows, work.spare, share, state[0])


def sum_sizes(values, rows, sums):
    """Sum the absolute values of some rows, of one output in four chains, as each sum waits for the sum before it."""
    sums[:] = 0.0
    n_chained = len(rows) - len(rows) % 4 if len(sums) == 1 else 0
    a = b = c = d = 0.0
    for p in range(0, n_chained, 4):
        a += abs(np.float64(values[rows[p], 0]))
        b += abs(np.float64(values[rows[p + 1], 0]))
        c += abs(np.float64(values[rows[p + 2], 0]))
        d += abs(np.float64(values[rows[p + 3], 0]))
    for p in range(np.uint64(n_chained), np.uint64(len(rows))):
        for k in range(len(sums)):
            sums[k] += abs(np.float64(values[rows[p], k]))
    sums[0] += (a + b) + (c + d)


def pack(work, n, low, high, start):
    """Round the derivatives of the rows of a tree to whole numbers, and lay them side by side."""
    rows, gradient_factors, curvature_factors = work.rows[:n], work.node_sums[0], work.node_sums[1]
    sum_sizes(work.gradients, rows, gradient_factors)
    sum_sizes(work.curvatures, rows, curvature_factors)
    n_outputs, total = len(gradient_factors), work.totals[0]
    total[:], work.noises[:] = 0, 0.0
    for k in range(n_outputs):
        gradient = unit_of(gradient_factors[k], BITS - 1 - high, n)
        curvature = unit_of(curvature_factors[k], high - low, n)
        work.scales[k], work.ridges[k] = gradient * gradient / curvature, RIDGE / curvature
        gradient_factors[k], curvature_factors[k] = 1.0 / gradient, 1.0 / curvature
    for p in range(np.uint64(n)):
        r = rows[p]
        for k in range(n_outputs):
            bits = (np.uint64(r) * np.uint64(n_outputs) + np.uint64(k)) * GOLDEN + start
            addend = np.float64(np.int64(bits >> HALF)) * ONE
            gradient = np.int64(math.floor(work.gradients[r, k] * gradient_factors[k] + addend))
            curvature = np.int64(work.curvatures[r, k] * curvature_factors[k] + (1.0 - addend))
            both = (gradient << high) + (curvature << low) + 1
            work.packed[r, k] = both
            work.ordered[p, k] = both
            work.noises[k] += np.float64(gradient) * np.float64(gradient)
            total[k] += both
    for k in range(n_outputs):
        work.noises[k] /= max(np.float64((total[k] >> low) & ((1 << (high - low)) - 1)), 1.0)


def gather(work, node):
    """Lay the derivatives of a node's rows side by side, and add them up."""
    rows, ordered, total = work.rows[work.first[node] : work.last[node]], work.ordered, work.totals[node]
    total[:] = 0
    for p in range(np.uint64(len(rows))):
        for k in range(ordered.shape[1]):
            ordered[p, k] = work.packed[rows[p], k]
            total[k] += ordered[p, k]


def fill_four(histograms, places, codes, columns, rows, ordered):
    """Sum up four columns of one output at once: each sum waits for the one before it, so processors do all four."""
    a, b, c, d = places
    codes_a, codes_b, codes_c, codes_d = codes[columns[a]], codes[columns[b]], codes[columns[c]], codes[columns[d]]
    sums_a, sums_b, sums_c, sums_d = histograms[a], histograms[b], histograms[c], histograms[d]
    for p in range(np.uint64(len(rows))):
        r, both = rows[p], ordered[p, 0]
        sums_a[codes_a[r]] += both
        sums_b[codes_b[r]] += both
        sums_c[codes_c[r]] += both
        sums_d[codes_d[r]] += both


def fill_column(sums, column_codes, rows, ordered):
    """Sum up a column."""
    n_outputs = np.uint64(ordered.shape[1])
    if n_outputs == np.uint64(1):
        for p in range(np.uint64(len(rows))):
            sums[column_codes[rows[p]]] += ordered[p, 0]
        return
    for p in range(np.uint64(len(rows))):
        b = np.uint64(column_codes[rows[p]]) * n_outputs
        for k in range(n_outputs):
            sums[b + k] += ordered[p, k]


def fill_bundles(work, histograms, exclusive, rows):
    """Fill the histograms of columns in bundles: sums over the rows that have the column, and over all other rows."""
    sums, ordered, n_outputs = work.in_order, work.ordered, work.ordered.shape[1]
    for b in range(len(exclusive.codes)):
        is_filled = False
        for f in range(len(work.columns)):
            j = work.columns[f]
            if exclusive.bundles[j] != b:
                continue
            if not is_filled:
                sums[:] = 0
                fill_column(sums, exclusive.codes[b], rows, ordered)
                for code in range(1, 256):
                    for k in range(n_outputs):
                        sums[k] += sums[code * n_outputs + k]  # code 0 becomes the sum over all rows
                is_filled = True
            member = np.int64(exclusive.members[j]) * n_outputs
            for k in range(n_outputs):
                histograms[f, k] = sums[k] - sums[member + k]
                histograms[f, n_outputs + k] = sums[member + k]


def fill(work, node, place, codes, n_codes, exclusive):
    """Fill the histograms of a node: sums of each code of the columns of the tree."""
    rows, ordered, histograms = work.rows[work.first[node] : work.last[node]], work.ordered, work.histograms[place]
    n_outputs, n_single = ordered.shape[1], 0
    for f in range(len(work.columns)):
        histograms[f, : n_codes[work.columns[f]] * n_outputs] = 0
        histograms[f, MISSING * n_outputs :] = 0
        work.single[n_single] = f
        n_single += exclusive.bundles[work.columns[f]] < 0
    start = n_single - n_single % 4 if n_outputs == 1 else 0
    for s in range(0, start, 4):
        places = work.single[s], work.single[s + 1], work.single[s + 2], work.single[s + 3]
        fill_four(histograms, places, codes, work.columns, rows, ordered)
    for s in range(start, n_single):
        f = work.single[s]
        fill_column(histograms[f], codes[work.columns[f]], rows, ordered)
    fill_bundles(work, histograms, exclusive, rows)
    work.histogram[node] = place


def subtract(work, node, place, smaller, n_codes):
    """Turn the histograms of a parent, at ``place``, into a node's: subtract the histograms of its smaller sibling."""
    n_outputs = work.totals.shape[1]
    for f in range(len(work.columns)):
        node_histogram, sibling_histogram = work.histograms[place, f], work.histograms[smaller, f]
        for b in range(n_codes[work.columns[f]] * n_outputs):
            node_histogram[b] -= sibling_histogram[b]
        for b in range(MISSING * n_outputs, len(node_histogram)):
            node_histogram[b] -= sibling_histogram[b]
    work.histogram[node] = place


def number_of(bits):
    """A whole number of less than 52 bits as a floating one, by its bits: processors convert several at a time."""
    return np.uint64(bits | BITS_OF_TWO_TO_52).view(np.float64) - TWO_TO_52


def leave_out(work, first, end, sign, low, high):
    """Let cuts of a column have no score whose sides have values, -G / H, that are not in the order of a sign."""
    curvature_mask, middle = np.uint64((1 << (high - low)) - 1), np.float64(1 << (BITS - 1 - high))
    for code in range(np.uint64(first), np.uint64(end)):
        g = number_of(work.running[code] >> np.uint64(high)) - middle
        h = number_of((work.running[code] >> np.uint64(low)) & curvature_mask) + work.ridges[0]
        right, rest = work.node_sums[0, 0] - g, work.node_sums[1, 0] - h
        if sign * (g * rest - right * h) < 0.0:
            work.scores[code] = 0.0


def scan(work, sums, n_codes, sign, missing_left, least_rows, best, low, high):
    """The best score of the cuts of a column above ``best``, and its code; -1 where there is none.

    A score is sum_k G_k^2 / (H_k + ridge) of both sides. A cut leaves enough rows on each. Loops have no branches, so
    that processors take several codes at a time: numbers above 0 are in the order of their bits. ``sign`` is that of a
    monotone column, of one output, else 0.
    """
    n_outputs, row_mask, first, end = len(work.scales), (1 << low) - 1, 0, n_codes
    before, behind = 0, sums[MISSING * n_outputs]
    if missing_left:
        before, behind = behind, before
    while first < end and ((before + sums[first * n_outputs]) & row_mask) < least_rows:
        before += sums[first * n_outputs]
        first += 1
    while end > first and (behind & row_mask) < least_rows:
        end -= 1
        behind += sums[end * n_outputs]
    codes, running, scores, cut = range(np.uint64(first), np.uint64(end)), work.running, work.scores, np.int64(-1)
    below, above, curvature_mask = np.uint64(low), np.uint64(high), np.uint64((1 << (high - low)) - 1)
    middle = np.float64(1 << (BITS - 1 - high))
    for code in codes:
        scores[code] = 0.0
    for k in range(n_outputs if first < end else 0):
        scale, ridge, node_sums = work.scales[k], work.ridges[k], work.node_sums
        upto = SIGN  # so that the gradient is not below 0
        if missing_left:
            upto += np.uint64(sums[MISSING * n_outputs + k])
        for code in range(end):
            upto += np.uint64(sums[code * n_outputs + k])
            running[code] = upto
        for code in codes:
            g = number_of(running[code] >> above) - middle
            h = number_of((running[code] >> below) & curvature_mask) + ridge
            right, rest = node_sums[0, k] - g, node_sums[1, k] - h
            scores[code] += scale * (g * g * rest + right * right * h) / (h * rest)
    if sign != 0:
        leave_out(work, first, end, sign, low, high)
    most = np.float64(best).view(np.int64)
    for code in codes:
        bits = np.float64(scores[code]).view(np.int64)
        if bits > most:
            most, cut = bits, np.int64(code)
    return np.int64(most).view(np.float64), cut


def list_codes(work, sums, n_codes):
    """List the codes of a column that rows of a node have; returns how many they are."""
    n, n_outputs = 0, len(work.scales)
    for b in range(n_codes + 1):
        code = b if b < n_codes else MISSING
        work.present[n] = code
        n += 1 if sums[code * n_outputs] != 0 else 0
    return n


def write_variances(work, sums, n, low, high):
    """Write the variance of the means of n codes in each output in excess of the variance by noise, times n - 3.

    It is found by moments, such that codes of equal second derivatives are shrunk as by James and Stein. So up to three
    codes, among which hardly anything is chosen, are not. What lies between the codes counts as what noise is expected
    to bring about, at least: else categories that matter only together with other columns would never be split.
    """
    node_sums, curvature_mask = work.node_sums, (1 << (high - low)) - 1
    for k in range(len(work.variances)):
        mean, spread, total, squares = node_sums[0, k] / node_sums[1, k], 0.0, 0.0, 0.0
        for q in range(n):
            both = sums[np.int64(work.present[q]) * len(work.variances) + k]
            h = np.float64((both >> low) & curvature_mask) + work.ridges[k]
            g = np.float64(both >> high) - mean * h
            spread, total, squares = spread + g * g / h, total + h, squares + h * h
        degrees, rest = np.float64(n - 1), total - squares / max(total, 1e-300)
        beyond = max(spread, degrees * work.noises[k]) - max(degrees - 2.0, 0.0) * work.noises[k]
        work.variances[k] = degrees * beyond / rest if rest > 0.0 else 0.0


def shrunk(work, both, k, n, low, high):
    """The gradient of a code, drawn to the mean of the node by the share of noise in it, and the second derivative."""
    h = np.float64((both >> low) & ((1 << (high - low)) - 1)) + work.ridges[k]
    expected, signal = work.node_sums[0, k] / work.node_sums[1, k] * h, work.variances[k] * h
    share = signal / (signal + max(np.float64(n - 3), 0.0) * work.noises[k]) if signal > 0.0 else 0.0
    return expected + share * (np.float64(both >> high) - expected), h


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
    scales, curvatures = work.scales, work.node_sums[1]
    for k in range(1, n_outputs):
        variation = scales[k] * work.variances[k] * curvatures[k]
        most = k if variation > scales[most] * work.variances[most] * curvatures[most] else most
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
    node_set = work.sets[place]
    node_set[:] = np.uint64(0) if is_left else ~np.uint64(0)
    for q in range(n):
        word, bit = work.order[q] >> np.uint8(6), np.uint64(1) << np.uint64(work.order[q] & np.uint8(63))
        node_set[word] = node_set[word] | bit if q > cut else node_set[word] & ~bit


def scan_sets(work, sums, n_codes, least_rows, best, low, high):
    """The best score of the cuts of the categories of a column in their order, as of ``scan``."""
    n = order_codes(work, sums, n_codes, low, high)
    lay_in_order(work, sums, n, low, high)
    return scan(work, work.in_order, n, 0, False, least_rows, best, low, high)


def sum_node(work, node, low, high):
    """Write the sums of a node, and return its score."""
    total, gradients, curvatures, score = work.totals[node], work.node_sums[0], work.node_sums[1], 0.0
    for k in range(len(total)):
        gradients[k] = np.float64(total[k] >> high)
        curvatures[k] = np.float64((total[k] >> low) & ((1 << (high - low)) - 1)) + 2.0 * work.ridges[k]
        score += work.scales[k] * gradients[k] * gradients[k] / (curvatures[k] - work.ridges[k])
    return score


def find_split(work, node, n_codes, is_categorical, signs, least_rows, low, high):
    """Find the split of a node with the largest gain."""
    total, histograms = work.totals[node], work.histograms[work.histogram[node]]
    parent = best = sum_node(work, node, low, high)
    for f in range(len(work.columns)):
        j, sums = work.columns[f], histograms[f]
        if is_categorical[j]:
            best, cut = scan_sets(work, sums, n_codes[j], least_rows, best, low, high)
            if cut >= 0:
                work.splits[node] = j << COLUMN | cut << CODE
            continue
        for side in range(2 if sums[MISSING * len(total)] != 0 else 1):
            best, cut = scan(work, sums, n_codes[j], signs[j], side == 1, least_rows, best, low, high)
            if cut >= 0:
                work.splits[node] = j << COLUMN | cut << CODE | side
    work.gains[node] = best - parent


def split(work, node, codes, n_codes, is_categorical, left, right, low, high):
    """Split a node, and write its test."""
    test, n = work.splits[node], 0
    column, cut, f = test >> COLUMN, (test >> CODE) & CODES, 0
    if is_categorical[column]:
        while work.columns[f] != column:
            f += 1
        sum_node(work, node, low, high)
        n = order_codes(work, work.histograms[work.histogram[node], f], n_codes[column], low, high)
        for q in range(n):
            work.goes_left[work.order[q]] = q <= cut
    else:
        for code in range(MISSING):
            work.goes_left[code] = code <= cut
        work.goes_left[MISSING] = test & 1
    n_missing = partition(work, node, codes[column], left, right)
    n_left, n_right = work.last[left] - work.first[left], work.last[right] - work.first[right]
    is_left = default_left(0 if n > 0 else n_missing, n_left, n_right, work.rows[work.first[node]])
    work.splits[node] = column << COLUMN | SET if n > 0 else test | np.int32(is_left)
    if n > 0:
        write_set(work, left >> 1, n, cut, is_left)


def number_leaves(work, n_nodes):
    """Number the leaves in the order of their nodes, and write exact sums of their rows."""
    n_leaves = 0
    for v in range(n_nodes):
        if work.nodes[v, 0] == LEAF:
            sums = work.sums[n_leaves]
            sums[:] = 0.0
            for p in range(work.first[v], work.last[v]):
                for k in range(len(sums)):
                    sums[k, 0] += work.gradients[work.rows[p], k]
                    sums[k, 1] += work.curvatures[work.rows[p], k]
            work.nodes[v, 1] = n_leaves
            n_leaves += 1


@compiled
def grow_tree(
    work: Work,
    codes: Annotated[np.ndarray, "uint8[columns, all_rows]"],
    n_codes: Annotated[np.ndarray, "int64[columns]"],
    is_categorical: Annotated[np.ndarray, "bool[columns]"],
    signs: Annotated[np.ndarray, "int8[columns]"],
    exclusive: Exclusive,
    least_rows: int,
    gained: Annotated[np.ndarray, "float64[columns]"],
    state: Annotated[np.ndarray, "uint64[1]"],
) -> None:
    """Grow a tree on the rows and columns that were drawn, and add what each column gained."""
    n, nodes, gains, n_nodes, places = work.sizes[0], work.nodes, work.gains, 1, 1
    low, high = fields_of(n)
    work.first[0], work.last[0], nodes[:], gains[:] = 0, n, 0, 0.0
    next_random(state)
    pack(work, n, low, high, state[0])
    nodes[0, 0] = LEAF
    if n >= 2 * least_rows:
        fill(work, 0, 0, codes, n_codes, exclusive)
        find_split(work, 0, n_codes, is_categorical, signs, least_rows, low, high)
    while n_nodes < len(nodes):
        best = -1
        for v in range(n_nodes):
            if nodes[v, 0] == LEAF and gains[v] > LEAST_GAIN and (best < 0 or gains[v] > gains[best]):
                best = v
        if best < 0:
            break
        left, right = n_nodes, n_nodes + 1
        split(work, best, codes, n_codes, is_categorical, left, right, low, high)
        nodes[best, 0], nodes[best, 1] = work.splits[best], left
        gained[work.splits[best] >> COLUMN] += gains[best]
        nodes[left, 0], nodes[right, 0] = LEAF, LEAF
        n_nodes += 2
        n_left, n_right = work.last[left] - work.first[left], work.last[right] - work.first[right]
        small, large = (left, right) if n_left <= n_right else (right, left)
        if n_nodes < len(nodes) and max(n_left, n_right) >= 2 * least_rows:  # else nothing is split below
            gather(work, small)
            fill(work, small, places, codes, n_codes, exclusive)
            for k in range(work.totals.shape[1]):
                work.totals[large, k] = work.totals[best, k] - work.totals[small, k]
            subtract(work, large, work.histogram[best], places, n_codes)
            places += 1
            find_split(work, large, n_codes, is_categorical, signs, least_rows, low, high)
            if min(n_left, n_right) >= 2 * least_rows:
                find_split(work, small, n_codes, is_categorical, signs, least_rows, low, high)
    number_leaves(work, n_nodes)
    work.sizes[1] = n_nodes


@compiled
def bound_leaves(
    work: Work,
    signs: Annotated[np.ndarray, "int8[columns]"],
    means: Annotated[np.ndarray, "float64[nodes, 2]"],
    bounds: Annotated[np.ndarray, "float64[nodes, 2]"],
    values: Annotated[np.ndarray, "float64[leaves, 1]"],
) -> None:
    """Move the values of the leaves of a tree to their bounds.

    Means of nodes with their second derivatives, and their bounds, are written.
    """
    nodes, n_nodes = work.nodes, work.sizes[1]
    for v in range(n_nodes - 1, -1, -1):  # children come after their parents
        left = nodes[v, 1]
        if nodes[v, 0] == LEAF:
            means[v, 0], means[v, 1] = values[left, 0], work.sums[left, 0, 1]
        else:
            total = means[left, 1] + means[left + 1, 1]
            share = means[left, 1] / total if total > 0.0 else 0.5
            means[v, 0], means[v, 1] = share * means[left, 0] + (1.0 - share) * means[left + 1, 0], total
    bounds[0, 0], bounds[0, 1] = -math.inf, math.inf
    for v in range(n_nodes):
        test, left, low, high = nodes[v, 0], nodes[v, 1], bounds[v, 0], bounds[v, 1]
        if test == LEAF:
            values[left, 0] = min(max(values[left, 0], low), high)
            continue
        for child in range(left, left + 2):
            bounds[child, 0], bounds[child, 1] = low, high
        sign = signs[test >> COLUMN]
        if sign != 0:
            before, behind = means[left, 0], means[left + 1, 0]
            middle = 0.5 * before + 0.5 * behind if sign * (behind - before) > 0.0 else means[v, 0]
            middle = min(max(middle, low), high)
            below, above = (left, left + 1) if sign > 0 else (left + 1, left)
            bounds[below, 1], bounds[above, 0] = middle, middle

"""Products of rows with many directions at once, whatever holds the rows, in memory that does not grow with a stream.

The features met come to have a row of numbers each, one for each direction. Beyond a limit they share: feature j is
added to a row that a hash picks, with a sign that it picks too, which leaves distances right on average (Weinberger,
Dasgupta, Langford, Smola, Attenberg: Feature hashing for large scale multitask learning, ICML 2009). Directions lie in
tiles of TILE, so that a tile stays in the cache while a block of rows passes. Sums run over the entries of a row in
their order: the same for dense, sparse and one-hot rows, and wherever a block is cut. A matrix product of a library
would be faster for wide dense rows, but its sums depend on the shape of the block and on the number of threads.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from tunefree.core import compiled, threads
from tunefree.core.numbers import clip
from tunefree.core.rows import entry, n_rows, row, size

TILE = 64  # directions side by side
SHARE = 4  # tiles for one thread
AT_ONCE = 4  # entries added before a sum is written back
LONGEST = 1e100  # what an entry may be: the square of a sum of so many stays finite
_BITS = 0xFFFFFFFF


def tiles_of(n_directions: int) -> int:
    """Tiles that hold so many directions."""
    return -(-n_directions // TILE)


@compiled.inline
def scrambled(j):
    """32 bits that look random, of a feature; no product exceeds 63 bits."""
    bits = (int(j) * 1640531527) & _BITS
    bits = ((bits ^ (bits >> 15)) * 668265261) & _BITS
    bits = ((bits ^ (bits >> 13)) * 1274126177) & _BITS
    return bits ^ (bits >> 16)


@compiled.inline
def place(j, limit, held):
    """(row of the directions, sign) of a feature; the sign is 0 where the row is not held, which means zeros."""
    if j < limit:
        at, sign = int(j), 1.0
    else:
        bits = scrambled(j)
        at, sign = (bits >> 1) % limit, 1.0 if bits & 1 else -1.0
    return (at, sign) if at < held else (0, 0.0)


@compiled.inline
def placed(x, k, limit, held):
    """The k-th entry of a row as (row of the directions, value); nothing beyond the last entry."""
    if k >= size(x):
        return 0, 0.0
    j, x_j = entry(x, k)
    at, sign = place(j, limit, held)
    return at, sign * clip(x_j, LONGEST)


@compiled.inline
def add_up(x, tile, limit, sums):
    """Add the products of a row with a tile of directions, entry after entry; the constant is left out."""
    held = len(tile)
    for k in range(1, size(x), AT_ONCE):
        i, a = placed(x, k, limit, held)
        j, b = placed(x, k + 1, limit, held)
        m, c = placed(x, k + 2, limit, held)
        n, d = placed(x, k + 3, limit, held)
        first, second, third, fourth = tile[i], tile[j], tile[m], tile[n]
        for t in range(TILE):
            sums[t] = (((sums[t] + a * first[t]) + b * second[t]) + c * third[t]) + d * fourth[t]


@compiled.entry
def project(X, directions, limit, first, last, products):
    for tile in range(first, last):
        for i in range(n_rows(X)):
            sums = products[i, tile * TILE : (tile + 1) * TILE]
            sums[:] = 0.0
            add_up(row(X, i), directions[tile], limit, sums)


def products_with(X: Any, directions: np.ndarray, limit: int) -> np.ndarray:
    """Products (n, directions) of a block of rows with directions (tiles, rows, TILE)."""
    products, edges = (
        np.empty((n_rows(X), len(directions) * TILE)),
        [*range(0, len(directions), SHARE), len(directions)],
    )

    def of_tiles(first: int, last: int) -> None:
        project(X, directions, limit, first, last, products)

    threads.each(of_tiles, pairwise(edges), n_rows(X))
    return products

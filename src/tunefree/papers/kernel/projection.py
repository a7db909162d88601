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
from typing import Annotated, Any

import numpy as np

from tunefree.core import threads
from tunefree.core.kernels import kernel
from tunefree.core.numbers import clip
from tunefree.core.rows import Rows, entries_of, n_rows

TILE = 64  # directions side by side
SHARE = 4  # tiles for one thread
AT_ONCE = 4  # entries added before a sum is written back
LONGEST = 1e100  # what an entry may be: the square of a sum of so many stays finite
_BITS = 0xFFFFFFFF


def tiles_of(n_directions: int) -> int:
    """Tiles that hold so many directions."""
    return -(-n_directions // TILE)


def scrambled(j):
    """32 bits that look random, of a feature; no product exceeds 63 bits."""
    bits = (np.int64(j) * 1640531527) & _BITS
    bits = ((bits ^ (bits >> 15)) * 668265261) & _BITS
    bits = ((bits ^ (bits >> 13)) * 1274126177) & _BITS
    return bits ^ (bits >> 16)


def place(j, limit, held):
    """(row of the directions, sign) of a feature; the sign is 0 where the row is not held, which means zeros."""
    if j < limit:
        at, sign = np.int64(j), 1.0
    else:
        bits = scrambled(j)
        at, sign = (bits >> 1) % limit, 1.0 if bits & 1 else -1.0
    return (at, sign) if at < held else (0, 0.0)


def placed(rows, e, end, limit, held):
    """An entry of a row as (row of the directions, value); nothing beyond the last entry, and of the constant."""
    if e >= end or rows.indices[e] == 0:
        return 0, 0.0
    at, sign = place(rows.indices[e], limit, held)
    return at, sign * clip(rows.values[e], LONGEST)


def add_up(rows, start, end, tile, limit, sums):
    """Add the products of a row with a tile of directions, entry after entry; the constant is left out."""
    held = len(tile)
    for e in range(start, end, AT_ONCE):
        i, a = placed(rows, e, end, limit, held)
        j, b = placed(rows, e + 1, end, limit, held)
        m, c = placed(rows, e + 2, end, limit, held)
        n, d = placed(rows, e + 3, end, limit, held)
        first, second, third, fourth = tile[i], tile[j], tile[m], tile[n]
        for t in range(TILE):
            sums[t] = (((sums[t] + a * first[t]) + b * second[t]) + c * third[t]) + d * fourth[t]


@kernel
def project(
    rows: Rows,
    directions: Annotated[np.ndarray, "float64[tiles, held, 64]"],
    limit: int,
    first: int,
    last: int,
    products: Annotated[np.ndarray, "float64[rows, directions]"],
) -> None:
    """Write the products of rows with some tiles of directions; those that are not held are zeros."""
    for tile in range(first, last):
        for i in range(len(products)):
            sums = products[i, tile * TILE : (tile + 1) * TILE]
            for t in range(TILE):
                sums[t] = 0.0
            if directions.shape[1] > 0:
                add_up(rows, rows.starts[i], rows.ends[i], directions[tile], limit, sums)


def products_with(X: Any, directions: np.ndarray, limit: int) -> np.ndarray:
    """Products (n, directions) of a block of rows with directions (tiles, rows, TILE)."""
    rows, products = entries_of(X), np.empty((n_rows(X), len(directions) * TILE))
    edges = [*range(0, len(directions), SHARE), len(directions)]

    def of_tiles(first: int, last: int) -> None:
        project(rows, directions, limit, first, last, products)

    threads.each(of_tiles, pairwise(edges), n_rows(X))
    return products

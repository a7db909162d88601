"""Rows of a shard as models take them, with the features and classes of all shards.

Some rows are the sample that the common start learns, and some are the last ones, which are learned when shards are
joined. Which rows these are depends on their number among all rows alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.rows import n_rows, part, rows_at, together
from tunefree.distributed.local_rows import Beginning, LocalRows, read, renumbered
from tunefree.distributed.shards import Shard
from tunefree.generations.reservoir import hashed
from tunefree.model.targets import Labels
from tunefree.stream.source import encoder_of
from tunefree.training.class_weights import class_factors, weights_by_label


class Encoded(NamedTuple):
    """Rows as models take them."""

    X: Any  # block of rows, or None if there are none
    y: np.ndarray  # (n,) numbers of classes, or numbers
    weight: np.ndarray  # (n,) sample weights, with those of classes

    def at(self, chosen: np.ndarray) -> Encoded:
        """Some of the rows, by their numbers or by which they are."""
        if self.X is None:
            return self
        numbers = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        return Encoded(rows_at(self.X, numbers), self.y[numbers], self.weight[numbers])

    def part(self, start: int, stop: int) -> Encoded:
        """The rows from one on, up to another."""
        stop = min(stop, len(self.y))
        return Encoded(part(self.X, start, stop), self.y[start:stop], self.weight[start:stop])


NOTHING = Encoded(None, np.zeros(0), np.zeros(0))


class Sizes(NamedTuple):
    """How many rows there are of all shards."""

    rows: int
    sample: int  # that the common start learns
    last: int  # that are learned when shards are joined, or a few less


class Prepared(NamedTuple):
    """A shard, ready to be learned."""

    sample: Encoded
    last: Encoded
    rest: Encoded


def prepared(
    local: LocalRows,
    united: Beginning,
    classes: Sequence[Any],
    offset: int,
    sizes: Sizes,
    shard: Shard,
    frames: Sequence[Any] = (),
) -> Prepared:
    """Number features and classes as all shards do, and take apart what others learn.

    ``united`` has the encoder of all shards, and the weights of classes; ``offset`` rows are in the shards before.
    ``local`` was read from the shard, or its frames.
    """
    ids = encoder_of(united.kind).restore(*united.encoder).ids_absorbed(*local.encoder)
    if ids is None and local.X is not None:  # it knew other columns, so its numbers mean other things
        local = read(shard, united, False, frames)
    if local.X is None:
        return Prepared(NOTHING, NOTHING, NOTHING)
    X = local.X if ids is None else renumbered(local.X, ids)
    by_label = weights_by_label(united.plan.class_weight)
    weight = local.weight * class_factors(by_label, local.y) if by_label else local.weight
    rows = Encoded(X, _codes(local.y, classes), weight)
    is_sample = drawn(sizes.rows, sizes.sample, offset, len(weight))
    is_last = drawn(sizes.rows, sizes.last, offset, len(weight), 1) & ~is_sample
    return Prepared(rows.at(is_sample), rows.at(is_last), rows.at(~is_sample & ~is_last))


def drawn(rows: int, size: int, start: int, n: int, draw: int = 0) -> np.ndarray:
    """Which of ``n`` rows from number ``start`` on are in a sample of ``size`` of all rows.

    One row is drawn from each of as many stretches of equal length, so a sample is in the order of the rows.

    Examples
    --------
    >>> drawn(100, 10, 0, 100).sum(), drawn(100, 10, 0, 10).sum(), drawn(5, 9, 0, 5).all()
    (np.int64(10), np.int64(1), np.True_)
    """
    if size >= rows or not size:
        return np.full(n, size > 0)
    edges = np.arange(size + 1) * rows // size
    numbers = edges[:-1] + (hashed(2 * np.arange(size) + draw) % np.diff(edges).astype(np.uint64)).astype(np.int64)
    places = numbers[np.searchsorted(numbers, start) : np.searchsorted(numbers, start + n)] - start
    is_drawn = np.zeros(n, bool)
    is_drawn[places] = True
    return is_drawn


def _codes(y: Any, classes: Sequence[Any]) -> np.ndarray:
    if not isinstance(y, Labels):
        return np.asarray(y, np.float64)
    known = {label: code for code, label in enumerate(classes)}
    return np.array([known[label] for label in y.values] or [0], np.float64)[y.codes]


def gathered(rows_of_shards: Sequence[Encoded]) -> Encoded:
    """The rows of several shards, in the order of these."""
    filled = [rows for rows in rows_of_shards if rows.X is not None and n_rows(rows.X)]
    if not filled:
        return NOTHING
    y, weight = (np.concatenate([rows[field] for rows in filled]) for field in (1, 2))
    return Encoded(together([rows.X for rows in filled]), y, weight)

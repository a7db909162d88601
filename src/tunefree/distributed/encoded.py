"""Rows of a shard as models take them, with the features and classes of all shards; and which of them are set apart.

Every tenth row, fewer of many, is set apart: the jury, on which nothing is learned. A sample of the other rows shows
the coordinator what curvature the loss has. Some of the last rows go there as well, to judge what learned the rows
before them (:mod:`tunefree.distributed.last_rows`). Which rows these are depends on their number among all rows alone.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.rows import n_rows, rows_at, together
from tunefree.distributed.local_rows import Beginning, LocalRows, read, renumbered
from tunefree.distributed.shards import Shard
from tunefree.model.targets import Labels
from tunefree.model.views import create_view, transform
from tunefree.stream.source import encoder_of
from tunefree.workflows.class_weights import class_factors, weights_by_label

MOST_JURY = MOST_SAMPLED = MOST_LAST = 16_384  # rows
ONE_OF = 10  # rows at least for one of the jury


class Strides(NamedTuple):
    """Of how many rows one is in the jury, of the others one in the sample, and which are the last ones."""

    jury: int
    sample: int
    last: int = 1  # of the last rows, of how many one judges
    until: int = sys.maxsize  # number of the first of the last rows

    @classmethod
    def of(cls, rows: int, until: int = sys.maxsize) -> Strides:
        """Those for so many rows."""
        jury = max(ONE_OF, -(-rows // MOST_JURY))
        last = max(1, -(-(rows - until) // MOST_LAST))
        return cls(jury, max(1, -(-(rows - rows // jury) // MOST_SAMPLED)), last, until)


class Encoded(NamedTuple):
    """Rows as models take them."""

    X: Any  # block of rows, or None if there are none
    y: np.ndarray  # (n,) classes or numbers
    weight: np.ndarray  # (n,) sample weights

    def at(self, chosen: np.ndarray) -> Encoded:
        """Some of the rows."""
        if self.X is None:
            return self
        return Encoded(rows_at(self.X, np.flatnonzero(chosen)), self.y[chosen], self.weight[chosen])


class Target(NamedTuple):
    """Sums over the numbers to predict."""

    weight: float = 0.0  # sum of the sample weights
    total: float = 0.0  # weighted sum of targets
    size: float = 0.0  # weighted sum of absolute targets
    lowest: float = np.inf
    highest: float = -np.inf

    def plus(self, other: Target) -> Target:
        """The sums over the rows of both."""
        sums = self.weight + other.weight, self.total + other.total, self.size + other.size
        return Target(*sums, min(self.lowest, other.lowest), max(self.highest, other.highest))


NOTHING = Encoded(None, np.zeros(0), np.zeros(0))


class Apart(NamedTuple):
    """Rows that go to the coordinator."""

    sample: Encoded
    jury: Encoded


class Taste(NamedTuple):
    """What the coordinator is sent of a shard."""

    early: Apart  # before the last rows
    late: Apart  # of the last rows
    last: Encoded  # of the last rows, that judge
    view: Any  # the steady view of the rows of this shard; None if there are none
    target: Target
    learned: int  # rows, with the last ones


class Prepared(NamedTuple):
    """A shard, ready to be learned."""

    early: Encoded  # rows to learn before the last ones
    late: Encoded  # rows to learn of the last ones
    taste: Taste


def prepared(
    local: LocalRows,
    united: Beginning,
    classes: Sequence[Any],
    offset: int,
    strides: Strides,
    shard: Shard,
    frames: Sequence[Any] = (),
) -> Prepared:
    """Number features and classes as all shards do, and set some rows apart.

    Parameters
    ----------
    local : LocalRows
    united : Beginning
        With the encoder of all shards, and the weights of classes.
    classes : sequence of labels
        Of all shards.
    offset : int
        Rows before those of this shard.
    strides : Strides
    shard, frames
        What ``local`` was read from.
    """
    ids = encoder_of(united.kind).restore(*united.encoder).ids_absorbed(*local.encoder)
    if ids is None and local.X is not None:  # it knew other columns, so its numbers mean other things
        local = read(shard, united, False, frames)
    if local.X is None:
        none = Apart(NOTHING, NOTHING)
        return Prepared(NOTHING, NOTHING, Taste(none, none, NOTHING, None, Target(), 0))
    X = local.X if ids is None else renumbered(local.X, ids)
    by_label = weights_by_label(united.plan.class_weight)
    weight = local.weight * class_factors(by_label, local.y) if by_label else local.weight
    return _parted(Encoded(X, _codes(local.y, classes), weight), offset, strides)


def _parted(rows: Encoded, offset: int, strides: Strides) -> Prepared:
    """The rows of a shard, of which some are set apart."""
    number = offset + np.arange(len(rows.y))
    is_late, is_jury = number >= strides.until, picked(number, strides.jury)
    is_sample = ~is_jury & picked(number, strides.sample, 1)
    learned = rows.at(~is_jury)
    view = create_view("steady", rows.X)
    transform(view, learned.X, learned.weight)
    early, late = (Apart(rows.at(is_sample & own), rows.at(is_jury & own)) for own in (~is_late, is_late))
    last = rows.at(is_late & picked(number, strides.last))
    taste = Taste(early, late, last, view, _target(learned), len(learned.y))
    return Prepared(rows.at(~is_jury & ~is_late), rows.at(~is_jury & is_late), taste)


def _target(rows: Encoded) -> Target:
    """Sums over the targets of rows."""
    y, weight = rows.y, rows.weight
    with np.errstate(over="ignore"):
        sums = float(weight.sum()), float((weight * y).sum()), float((weight * np.abs(y)).sum())
    used = y[weight > 0.0]
    return Target(*sums, float(used.min(initial=np.inf)), float(used.max(initial=-np.inf)))


def picked(numbers: np.ndarray, stride: int, draw: int = 0) -> np.ndarray:
    """Of every so many rows one, at a place that is drawn for each of these blocks.

    Examples
    --------
    >>> picked(np.arange(20), 10).sum(), picked(np.arange(5), 1).all()
    (np.int64(2), np.True_)
    """
    mixed = (numbers // stride).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1 + draw)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return (mixed >> np.uint64(11)) % np.uint64(stride) == (numbers % stride).astype(np.uint64)


def _codes(y: Any, classes: Sequence[Any]) -> np.ndarray:
    if not isinstance(y, Labels):
        return np.asarray(y, np.float64)
    known = {label: code for code, label in enumerate(classes)}
    return np.array([known[label] for label in y.values] or [0], np.float64)[y.codes]


def gathered(parts_of_shards: Sequence[Encoded]) -> Encoded:
    """Rows of several shards in a random order that is always the same: what learns from them must not learn how the
    data were sorted."""
    filled = [own for own in parts_of_shards if own.X is not None and n_rows(own.X)]
    if not filled:
        return NOTHING
    y, weight = (np.concatenate([own[field] for own in filled]) for field in (1, 2))
    order = np.random.default_rng(0).permutation(len(y))
    return Encoded(rows_at(together([own.X for own in filled]), order), y[order], weight[order])


def merged_view(views: Sequence[Any], rows: Sequence[int]) -> Any:
    """The steady view of all rows, from those of shards that learned so many.

    Centres are means of centres. A shard in which a column is constant, such as one of a sorted file, knows no
    distance; that of its centre from the common one takes its place where it is larger.
    """
    share = np.array(rows, np.float64) / max(sum(rows), 1)
    merged = type(views[0]).create(len(views[0].centres))
    centres = np.array([view.centres for view in views])
    counts = np.array([view.counts for view in views])
    merged.centres[:] = share @ centres
    away = np.maximum(np.array([view.distances for view in views]), np.abs(centres - merged.centres) * (counts > 0))
    merged.counts[:] = counts.sum(axis=0)
    merged.distances[:] = (counts / np.maximum(merged.counts, 1.0) * away).sum(axis=0)
    filled = np.array([float(view.filled[()]) for view in views])
    sizes = np.array([float(view.size[()]) for view in views])
    merged.size[()] = (filled / max(filled.sum(), 1.0) * sizes).sum()
    merged.rounds[()], merged.filled[()] = sum(rows), filled.sum()
    return merged


def taste_of(prepared: Prepared) -> Taste:
    """What the coordinator is sent."""
    return prepared.taste


def early_of(prepared: Prepared) -> Encoded:
    """The rows to learn before the last ones."""
    return prepared.early


def late_of(prepared: Prepared) -> Encoded:
    """The rows to learn of the last ones."""
    return prepared.late

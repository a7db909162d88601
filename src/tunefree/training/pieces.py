"""Pieces of rows that are learned together, and what is known of those that were read from a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tunefree.model_files.trained import Trained
from tunefree.pool.groups import digests
from tunefree.stream.batch import Batch, followed
from tunefree.stream.tally import Tally
from tunefree.training.class_weights import weighed, weights_by_label
from tunefree.training.targets import target_of
from tunefree.training.usable_targets import as_learned
from tunefree.training.whole_groups import check_several, n_complete, within_runs

MOST_NUMBERS = 1 << 18  # that each member predicts of the rows of a piece


class Read(NamedTuple):
    """A batch as the reading thread hands it over."""

    batch: Batch
    n_features: int  # known to the encoder after this batch
    skipped: Tally  # rows that could not be used so far
    encoder: Any = None  # state of the encoder after this batch, where a checkpoint or a copy is due
    is_due: bool = False  # whether a checkpoint is due after this batch
    is_last: bool = True  # of the pieces of a batch, after which what was learned can be saved


class Piece(NamedTuple):
    """Rows that are learned together, in their order."""

    X: Any  # block of rows
    y: Any  # Labels, or numbers
    weight: np.ndarray  # (n,) with which rows are learned; 0 of those held out
    counts: np.ndarray  # (n,) with which the losses of rows count
    groups: np.ndarray | None = None  # (n,) digests of groups; None where rows have no groups
    is_held_out: np.ndarray | None = None  # (n,) bool; None where none are held out
    read: Any = None  # Read of rows that come from a source, else None
    forgotten: np.ndarray | None = None  # (f,) features that are forgotten before the rows are learned
    mass: np.ndarray | None = None  # (n,) total weights of rows and their copies; None where they are not known


class Step(NamedTuple):
    """A piece that was learned."""

    piece: Piece
    predictions: np.ndarray  # (n, K), made before each row was learned
    row_losses: np.ndarray  # (n,)


Observer = Callable[[Trained, Step], None]  # of a pass


def pieces_of(trained: Trained, read: Read, interval: int = 0) -> Iterator[Piece]:
    """The rows of a batch, and before them those that waited, of which some of groups may wait again.

    They are cut where features are forgotten before a row, where so many usable rows have come, if that is above 0, and
    where there are many classes; each piece when those before are learned. What is due after the batch comes with the
    last piece.
    """
    held, trained.held = trained.held, None
    if held is not None and held.file == read.batch.file:
        read = read._replace(batch=followed(held, read.batch))
    elif held is not None:
        yield from _cut(trained, read._replace(batch=held, encoder=None, is_due=False), interval, is_over=True)
    yield from _cut(trained, read, interval)


def last_pieces(trained: Trained, skipped: Tally, interval: int = 0) -> Iterator[Piece]:
    """The rows that wait, when no others come."""
    held, trained.held = trained.held, None
    if held is not None and held.groups is not None:
        if trained.progress.rows == 0:
            check_several(held.groups, held.file, trained.plan.group, is_all=True)
        yield from _cut(trained, Read(held, trained.encoder.n_features, skipped), interval, is_over=True)


def _cut(trained: Trained, read: Read, interval: int, is_over: bool = False) -> Iterator[Piece]:
    batch, n = read.batch, len(read.batch.weight)
    further = [*range(-trained.progress.rows % interval, n, interval)] if interval else []
    further += [] if batch.groups is None else within_runs(batch.groups)
    if batch.groups is None:  # so that signals are soon handled
        further += range(step := max(MOST_NUMBERS // max(len(trained.model.classes), 1), 1), n, step)
    edges, stop = sorted({0, *(row for row, _ in batch.forgotten), *further}), n
    if batch.groups is not None and not is_over:
        if trained.progress.rows == 0:
            check_several(batch.groups, batch.file, trained.plan.group, is_all=False)
        piece = piece_of(trained, read)
        assert piece.groups is not None
        stop = n_complete(trained.model, piece.y, piece.weight, piece.groups, edges)
        trained.held = batch.part(stop, n) if stop < n else None
    edges = [0, *(edge for edge in edges if 0 < edge < stop), stop]
    for start, end in pairwise(edges):
        of_rows = read if (start, end) == (0, n) else read._replace(batch=batch.part(start, end))
        of_rows = of_rows if end == stop else of_rows._replace(encoder=None, is_due=False, is_last=False)
        forgotten = [features for row, features in of_rows.batch.forgotten if row == 0]
        piece = piece_of(trained, of_rows)
        yield piece._replace(forgotten=np.unique(np.concatenate(forgotten))) if forgotten else piece


def piece_of(trained: Trained, read: Read) -> Piece:
    """The rows of a batch, with what they weigh by their classes, and without those that the plan holds out."""
    plan, y = trained.plan, target_of(trained.model.task, read.batch)
    batch, y = as_learned(plan, weighed(read.batch, y, weights_by_label(plan.class_weight)), y)
    groups = None if batch.groups is None else digests(batch.groups)
    if not plan.holdout:
        return Piece(batch.rows, y, batch.weight, batch.weight, groups, None, read)
    is_held_out = held_out_rows(plan.holdout_share, trained.progress.rows, len(batch.weight))
    weight = np.where(is_held_out, 0.0, batch.weight)
    return Piece(batch.rows, y, weight, batch.weight, groups, is_held_out, read)


def held_out_rows(share: Fraction, start: int, n: int) -> np.ndarray:
    """Which rows of a stream are held out: as evenly spaced as can be, whatever the batches.

    Of the first i rows the integer part of i times the share is held out.

    Parameters
    ----------
    share : Fraction
        From 0 to 1, with a denominator of at most 10^9.
    start : int
        Rows before these.
    n : int

    Returns
    -------
    (n,) array of bool

    Examples
    --------
    >>> held_out_rows(Fraction("0.4"), 0, 10).astype(int)
    array([0, 0, 1, 0, 1, 0, 0, 1, 0, 1])
    """
    period = share.denominator  # of the pattern, so that no product overflows however long the stream is
    before = (start % period + np.arange(n)) % period * share.numerator
    return before // period < (before + share.numerator) // period

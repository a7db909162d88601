"""The last step: rows that were set apart are learned too, once they have weighed the members.

The exact gradient of the rows of all shards is known at the point where a descent was stopped. Rows that join with a
share f of all change it by f (g_joining - g_shards), and to first order the point moves by minus the inverse Hessian
times this change (Cook, Weisberg: Characterizations of an empirical influence function for detecting influential cases
in regression, Technometrics 1980). No contact is needed. How many iterations of conjugate gradients are made, and how
much of the step: either half of the jury moves the point, the other half tells what became of its losses, and that
choice is taken whose mean change and one standard error together are least. Where none is below 0, nothing is moved
(Breiman, Friedman, Olshen, Stone: Classification and regression trees, 1984, chapter 3, on rules of one standard
error). Then all of the jury joins, by the choice that was made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import threads
from tunefree.distributed.contacts import LENGTHS, Curvature, Sample


class Stopped(NamedTuple):
    """Where the descents of a view were stopped."""

    loss: float = np.inf  # of the half of the jury that steers
    point: Any = None  # (d, K) weights of the columns times the inverse units
    gradient: Any = None  # (d, K) mean over the rows of all shards, over the steepest curvature
    weight: float = 0.0  # of these rows
    ridge: float = 0.0  # of the mean loss, over the steepest curvature


def moved(stopped: Stopped, sample: Sample, jury: Sample, halves: tuple[Sample, Sample]) -> np.ndarray:
    """The point (d, K) to which the rows of a jury move the one where descents were stopped.

    Parameters
    ----------
    stopped : Stopped
    sample : Sample
        Rows that show the curvature.
    jury : Sample
        All rows that were set apart.
    halves : (Sample, Sample)
        One half of them each.
    """
    with threads.one_for_products():
        curvature = Curvature(sample, stopped.point, stopped.ridge)
        least, chosen, part = 0.0, -1, 0.0
        for number, steps in enumerate(zip(*(influences(curvature, stopped, own) for own in halves), strict=False)):
            changes = [_changes(stopped.point, *own) for own in zip(halves[::-1], steps, strict=True)]
            for length, change in zip(LENGTHS, np.concatenate(changes, axis=1), strict=True):
                likely = float(change.mean() + change.std() / np.sqrt(len(change)))
                if likely < least:
                    least, chosen, part = likely, number, length
        found = np.asarray(stopped.point)
        for number, step in enumerate(influences(curvature, stopped, jury)):
            if number <= chosen:
                found = stopped.point + part * step
        return found


def _changes(point: np.ndarray, rows: Sample, step: np.ndarray) -> np.ndarray:
    """How much the losses (n) of rows change after a step of each of LENGTHS, times their weights."""
    at, along = rows.margins(point), rows.margins(step)
    before = rows.losses(at)
    moved = ([own + length * more for own, more in zip(at, along, strict=True)] for length in LENGTHS)
    return np.array([rows.losses(margins) - before for margins in moved])


def influences(curvature: Curvature, stopped: Stopped, joining: Sample) -> Iterator[np.ndarray]:
    """How the point follows rows that join, after more and more iterations of conjugate gradients."""
    _, slopes = joining.slopes(joining.margins(stopped.point))
    share = joining.weight / (stopped.weight + joining.weight)
    return curvature.solutions(share * (stopped.gradient - joining.back(slopes)))

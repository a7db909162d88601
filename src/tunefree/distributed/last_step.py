"""The last step: rows that were set apart are learned too, once they have weighed the members.

The exact gradient of the rows of all shards is known at the point where a descent was stopped. Rows that join with a
share f of all change it by f (g_joining - g_shards), and to first order the point moves by minus the inverse Hessian
times this change (Cook, Weisberg: Characterizations of an empirical influence function for detecting influential cases
in regression, Technometrics 1980). No contact is needed. How many iterations of conjugate gradients are made, and how
much of the step, is what one half of the jury is predicted best with after a step that the other half demands; nothing
at all is among the choices. Then all of the jury joins, in the same way.
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


def moved(stopped: Stopped, sample: Sample, jury: Sample, steering: Sample, mixing: Sample) -> np.ndarray:
    """The point (d, K) to which the rows of a jury move the one where descents were stopped.

    Parameters
    ----------
    stopped : Stopped
    sample : Sample
        Rows that show the curvature.
    jury, steering, mixing : Sample
        All rows that were set apart, and the two halves of them.
    """
    with threads.one_for_products():
        curvature = Curvature(sample, stopped.point, stopped.ridge)
        at = mixing.margins(stopped.point)
        least, chosen, part = mixing.slopes(at)[0], -1, 0.0
        for number, step in enumerate(_steps(curvature, stopped, steering)):
            along = mixing.margins(step)
            for length in LENGTHS:
                loss, _ = mixing.slopes([own + length * more for own, more in zip(at, along, strict=True)])
                if loss < least:
                    least, chosen, part = loss, number, length
        if chosen < 0:
            return np.asarray(stopped.point)
        *_, step = (own for number, own in enumerate(_steps(curvature, stopped, jury)) if number <= chosen)
        return np.asarray(stopped.point + part * step)


def _steps(curvature: Curvature, stopped: Stopped, joining: Sample) -> Iterator[np.ndarray]:
    """How the point follows rows that join, after more and more iterations of conjugate gradients."""
    _, slopes = joining.slopes(joining.margins(stopped.point))
    share = joining.weight / (stopped.weight + joining.weight)
    return curvature.solutions(share * (stopped.gradient - joining.back(slopes)))

"""Early stopping: when further passes over the same rows no longer improve the loss on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Patience(NamedTuple):
    """When to stop: after so many passes without an improvement that is worthwhile.

    Examples
    --------
    >>> patience = Patience(passes=2, worthwhile=0.1)
    >>> patience.improves(0.8, best=1.0), patience.improves(0.95, best=1.0)
    (True, False)
    >>> patience.is_over([1.0, 0.8, 0.79]), patience.is_over([1.0, 0.8, 0.79, 0.78])
    (False, True)
    """

    passes: int  # without a worthwhile improvement
    worthwhile: float  # part of the held-out loss by which it has to fall

    def improves(self, loss: float, best: float) -> bool:
        """Whether a held-out loss is a worthwhile improvement on the best before."""
        return loss < (1.0 - self.worthwhile) * best

    def is_over(self, losses: Sequence[float]) -> bool:
        """Whether the latest passes brought no worthwhile improvement on the best of the passes before them.

        Parameters
        ----------
        losses : sequence of float
            Held-out loss after each pass so far.
        """
        earlier, latest = losses[: -self.passes], losses[-self.passes :]
        return bool(earlier) and min(latest) > (1.0 - self.worthwhile) * min(earlier)


MEMBER = Patience(passes=4, worthwhile=5e-4)  # of a linear member, whose best pass is looked for
KERNEL_MEMBER = Patience(passes=2, worthwhile=2e-3)  # a pass costs more, and does more
KERNEL_MEMBER_OF_MANY_ROWS = Patience(passes=1, worthwhile=2e-3)  # a pass takes long, and leaves little to learn
POOL = Patience(passes=2, worthwhile=1e-3)  # of a pool on a stream that is read again, whose latest pass is kept
ITERATION = Patience(passes=4, worthwhile=2e-4)  # of the batch phase, on one ridge
RIDGE = Patience(passes=2, worthwhile=5e-4)  # of the batch phase, on smaller and smaller ridges

"""Backends compute sums over a support: what an expansion asks of them, and what they hear of.

An expansion keeps its points and coefficients on the processor, where they are learned and saved. A backend computes
sums over them. It may keep a copy elsewhere, so it is notified of each change.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree.core.threads import one_for_products
from tunefree.papers.kernel import kernel_sums
from tunefree.papers.kernel.points import BLOCK, selected


class ExpansionTerms(NamedTuple):
    """The terms of M functions f_m = sum_i c_im k_m(x_i, .) with K outputs."""

    kernel: Any  # at the least gamma of the grid
    steps: np.ndarray  # (M,) for each function its step on the grid of bandwidths; several may share one
    store: Any  # the points x_i, with spare capacity
    n: int  # how many there are
    coefficients: np.ndarray  # (M, K, n or more)


class IncomingRows(NamedTuple):
    """Rows that are about to be learned."""

    block: Any  # the open block, which they have joined
    rows: tuple[int, int]  # their first place in the block, and the one after their last
    points: Any  # those that they come from; those behind them are learned next
    start: int  # the place of the first of them in these points


class Backend:
    """Computes sums of kernel values times coefficients: here by blocks of rows, in compiled code.

    No copies are kept, so no change matters.
    """

    def sums(self, expansion: ExpansionTerms, incoming: IncomingRows) -> np.ndarray:
        """Sums (M, BLOCK, K) of all functions at incoming rows; 0 for other rows of the block."""
        kernel, steps, store, n, coefficients = expansion
        return kernel_sums.evaluate(kernel, steps, incoming.block, incoming.rows, store, coefficients, n)

    def support_changed(self, block: Any, active: np.ndarray, places: np.ndarray, coefficients: np.ndarray) -> None:
        """The active rows of a block have joined the support at some places, with coefficients (M, K, BLOCK).

        A row that was in the support before has these coefficients added to its own.
        """

    def invalidate(self) -> None:
        """Points or coefficients have changed in another way: copies of them are out of date."""

    def values(self, expansion: ExpansionTerms, rows: Any) -> np.ndarray:
        """Values (M, n, K) of all functions at any rows. The points are those of the support."""
        kernel, steps, store, n, coefficients = expansion
        values_of_rows = np.zeros((len(steps), rows.size, coefficients.shape[1]))
        with one_for_products():  # once for all blocks
            for start in range(0, rows.size, BLOCK):
                which = np.arange(start, min(start + BLOCK, rows.size))
                block = selected(rows, which).cut(0, BLOCK)
                sums = kernel_sums.evaluate(kernel, steps, block, (0, len(which)), store, coefficients, n)
                values_of_rows[:, which] = sums[:, : len(which)]
        return values_of_rows

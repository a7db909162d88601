"""What computes sums over a support: what it is asked, and what it is told.

An expansion keeps its points and coefficients on the processor, where they are learned and saved. A backend is asked
for sums, and told what changes.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np


class Functions(NamedTuple):
    """Functions f_m = sum_i c_im k_m(x_i, .), M of them with K outputs."""

    kernel: Any  # at the least gamma of the ladder
    steps: np.ndarray  # (M,) for each function its step on the ladder of widths; several may share one
    store: Any  # the points x_i, with room for more
    n: int  # how many there are
    coefficients: np.ndarray  # (M, K, n or more)


class Coming(NamedTuple):
    """Rows that are about to be learned."""

    block: Any  # the open block, which they have joined
    rows: tuple[int, int]  # from where to where in it
    more: Any  # the points that they come from; those behind them come next
    start: int  # where in these they begin


class Backend(Protocol):
    """What an expansion asks for, and tells."""

    def known(self, functions: Functions, busy: list[int], coming: Coming) -> np.ndarray:
        """Sums (BLOCK, len(busy), K) of some functions at rows that come, 0 for other rows of the block."""

    def changed(self, block: Any, active: np.ndarray, places: np.ndarray, coefficients: np.ndarray) -> None:
        """Rows of a block have joined the support at these places, or were there; coefficients (M, K, BLOCK)."""

    def forget(self) -> None:
        """Points or coefficients have changed otherwise."""

    def values(self, functions: Functions, rows: Any) -> np.ndarray:
        """Values (n, M, K) of functions at any rows; their points are those of the support."""

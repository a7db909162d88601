"""Sums over a support by blocks of rows, in compiled code. It looks at the arrays as they are and keeps nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.kernel import blocks
from tunefree.kernel.backend import Coming, Functions
from tunefree.kernel.points import BLOCK, cut, joined, nothing, size


class ProcessorBackend:
    """Sums by blocks of rows, in compiled code (:mod:`tunefree.kernel.blocks`)."""

    def known(self, functions: Functions, busy: list[int], coming: Coming) -> np.ndarray:
        kernel, _, store, n, coefficients = functions
        own = coefficients[busy, :, :n]
        return blocks.evaluate(kernel, functions.steps[busy], coming.block, coming.rows, store, own)

    def changed(self, block: Any, active: np.ndarray, places: np.ndarray, coefficients: np.ndarray) -> None:
        pass

    def forget(self) -> None:
        pass

    def values(self, functions: Functions, rows: Any) -> np.ndarray:
        kernel, steps, store, n, coefficients = functions
        found = np.zeros((size(rows), *coefficients.shape[:2]))
        for start in range(0, size(rows), BLOCK):
            which = np.arange(start, min(start + BLOCK, size(rows)))
            block = cut(joined(nothing(rows, None), 0, rows, which), 0, BLOCK)
            sums = blocks.evaluate(kernel, steps, block, (0, len(which)), store, coefficients[:, :, :n])
            found[which] = sums[: len(which)]
        return found

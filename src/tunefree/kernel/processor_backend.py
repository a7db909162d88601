"""Sums over a support in compiled code, a block of rows at a time. No copies are kept, so no change matters."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core.threads import one_for_products
from tunefree.kernel import kernel_sums
from tunefree.kernel.backend import ExpansionTerms, IncomingRows
from tunefree.kernel.points import BLOCK, selected


class ProcessorBackend:
    """Sums by blocks of rows, in compiled code (:mod:`tunefree.kernel.kernel_sums`)."""

    def sums(self, expansion: ExpansionTerms, incoming: IncomingRows) -> np.ndarray:
        kernel, steps, store, n, coefficients = expansion
        return kernel_sums.evaluate(kernel, steps, incoming.block, incoming.rows, store, coefficients, n)

    def support_changed(self, block: Any, active: np.ndarray, places: np.ndarray, coefficients: np.ndarray) -> None:
        pass

    def invalidate(self) -> None:
        pass

    def values(self, expansion: ExpansionTerms, rows: Any) -> np.ndarray:
        kernel, steps, store, n, coefficients = expansion
        values_of_rows = np.zeros((len(steps), rows.size, coefficients.shape[1]))
        with one_for_products():  # once for all blocks
            for start in range(0, rows.size, BLOCK):
                which = np.arange(start, min(start + BLOCK, rows.size))
                block = selected(rows, which).cut(0, BLOCK)
                sums = kernel_sums.evaluate(kernel, steps, block, (0, len(which)), store, coefficients, n)
                values_of_rows[:, which] = sums[:, : len(which)]
        return values_of_rows

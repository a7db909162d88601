"""Products with a kernel's Gram matrix by PyTorch, on a GPU or on the processor.

Rows and tiles stay on the device; coefficients go there for each product. Tiles are as in
:mod:`.gram`, but larger, so that a device is kept busy. Products are those of single precision
with all its digits, or of double precision. Their sums over tiles are added up in double precision, in a fixed order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy import sparse

from tunefree.core.errors import ModelError
from tunefree.papers.early_stopping.gram import Gram, slices_of
from tunefree.papers.kernel.torch_backend import Rows, free_memory, full_precision, narrow, usable

BLOCK = 4096  # rows of a tile: 64 MiB in float32
SHARE = 0.9  # of the memory left over, what tiles may take; the rest is for coefficients and sums


class TorchGram(Gram):
    """Products on a device; see :class:`tunefree.papers.early_stopping.gram.Gram`.

    Parameters
    ----------
    kernel, rows, held, budget
        As there. Fewer tiles are kept where the device has no memory for them.
    device : str
        ``"cpu"``, ``"cuda"``, or ``"cuda:1"`` and so on.

    Raises
    ------
    ModelError
        If there is no such device, or sparse rows have too many features to be laid out there.
    """

    def __init__(self, kernel: Any, rows: Any, held: Any, budget: int, device: str) -> None:
        super().__init__(kernel, rows, held, budget)
        self.device = usable(device)
        self._dtype = torch.float64 if rows.dtype == np.float64 else torch.float32
        self._there: tuple[Rows, Rows] | None = None  # rows and rows held out on the device
        if sparse.issparse(rows):
            narrow(rows.shape[1])

    def times(self, coefficients: np.ndarray) -> np.ndarray:
        if not coefficients.any():
            return np.zeros(coefficients.shape)
        thin, product = self._tensor(coefficients), self._zeros(coefficients.shape)
        rows, _ = self._points()
        with full_precision():
            for k, (i, j) in enumerate(self._square):
                values = self._tile(k, rows, i, j)
                product[i] += values @ thin[j]
                if i != j:
                    product[j] += values.T @ thin[i]
        return np.asarray(product.cpu().numpy())

    def times_held(self, coefficients: np.ndarray) -> np.ndarray:
        thin, product = self._tensor(coefficients), self._zeros((self.held.shape[0], coefficients.shape[1]))
        _, held = self._points()
        with full_precision():
            for k, (i, j) in enumerate(self._beside, len(self._square)):
                product[i] += self._tile(k, held, i, j) @ thin[j]
        return np.asarray(product.cpu().numpy())

    def times_others(self, others: Any, coefficients: np.ndarray) -> np.ndarray:
        thin, product = self._tensor(coefficients), np.zeros((others.shape[0], coefficients.shape[1]))
        self._points()
        with full_precision():
            for place in self._blocks(others.shape[0]):
                block = self._sent(others[place])
                total = self._zeros(product[place].shape)
                for j in self._blocks(self.rows.shape[0]):
                    total += self._values(block, slice(None), j) @ thin[j]
                product[place] = total.cpu().numpy()
        return product

    def release(self) -> None:
        """Free the tiles, and the rows on the device."""
        super().release()
        self._there = None

    def _values(self, left: Any, i: slice, j: slice) -> Any:
        rows, _ = self._points()
        others = Rows(rows.values[j], rows.norms[j])
        return self.kernel.torch_tile(Rows(left.values[i], left.norms[i]), others)

    def _points(self) -> tuple[Rows, Rows]:
        """Rows and rows held out on the device, where they are put when they are first needed."""
        if self._there is None:
            self._kept = self._that_fit(min(self.budget, SHARE * self._room()))
            self._there = self._sent(self.rows), self._sent(self.held)
        return self._there

    def _room(self) -> float:
        """Bytes of the device that rows and a tile in the making leave over."""
        (n, width), v = self.rows.shape, self.held.shape[0]
        needed = ((n + v) * (width + 1) + 2 * min(n, BLOCK) ** 2) * self.rows.dtype.itemsize
        free = free_memory(self.device)
        if needed > free:
            raise ModelError(
                f"{n + v} rows of {width} features take {needed / 1e9:.1f} GB on device {self.device}, of which"
                f" {free / 1e9:.1f} are free; learn from fewer rows, or leave the device out"
            )
        return free - needed

    def _sent(self, rows: Any) -> Rows:
        """Rows on the device, sparse ones laid out as dense ones."""
        values = torch.empty(rows.shape, dtype=self._dtype, device=self.device)
        for i in self._blocks(rows.shape[0]):
            values[i] = torch.tensor(rows[i].toarray() if sparse.issparse(rows) else rows[i])
        return Rows(values, self._tensor(self.kernel.pair.matrix_norms(rows)))

    def _tensor(self, array: np.ndarray) -> Any:
        return torch.tensor(array, dtype=self._dtype, device=self.device)

    def _zeros(self, shape: tuple[int, ...]) -> Any:
        return torch.zeros(shape, dtype=torch.float64, device=self.device)

    def _blocks(self, n: int) -> list[slice]:
        return slices_of(n, BLOCK)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_there": None}

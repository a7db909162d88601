"""Products with a Gram matrix where they are asked for: by NumPy on the processor, or by PyTorch on a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core.threads import one_for_products
from tunefree.papers.early_stopping.gram import Gram
from tunefree.papers.kernel.backends import check_device


def gram_of(kernel: Any, rows: Any, held: Any, budget: int, device: str | None = None) -> Gram:
    """A :class:`Gram` on the processor, or by PyTorch on a device, such as ``"cuda:1"`` or ``"cpu"``."""
    if device is None:
        return Gram(kernel, rows, held, budget)
    check_device(device)
    from tunefree.papers.early_stopping.torch_gram import TorchGram

    return TorchGram(kernel, rows, held, budget, device)


def expand(kernel: Any, support: Any, coefficients: np.ndarray, rows: Any, device: str | None = None) -> np.ndarray:
    """sum_i c_i K(x, x_i) (n, K) of new rows; support points whose coefficients are all 0 are left out."""
    used = np.flatnonzero(coefficients.any(axis=1))
    if not len(used) or not rows.shape[0]:
        return np.zeros((rows.shape[0], coefficients.shape[1]))
    points = gram_of(kernel, support[used], rows[:0], 0, device)
    with one_for_products():
        return points.times_others(rows, coefficients[used])

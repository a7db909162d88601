"""The Laplacian kernel exp(-gamma |x - z|_1)."""

from __future__ import annotations

import numpy as np

from tunefree.papers.kernel.kernels import KernelFunction, Width
from tunefree.papers.kernel.pairs import L1Distance


class Laplacian(Width, KernelFunction):
    """exp(-gamma |x - z|_1)."""

    pair = L1Distance()
    is_ladder = True
    distance = "manhattan"

    def similarity(kernel, pair, norm, other_norm, exp=np.exp):
        # next to 0 rounding may make it negative
        return exp(-kernel.gamma * abs((norm + pair) + other_norm))

"""The kernel of ``docs/extending/kernel.md``, which is not in the package, and its values by PyTorch."""

from __future__ import annotations

from typing import Any

from tests.extending import run_page
from tunefree.kernel.kernels import torch_similarity

Matern: Any = run_page("kernel.md", until="kernels.register")["Matern"]


@torch_similarity.register(Matern)
def torch_similarity_matern(kernel, rows, others):
    squares = (rows.values @ others.values.T).mul_(-2.0).add_(rows.norms[:, None]).add_(others.norms).abs_()
    r = squares.mul_(6.0 * kernel.gamma).sqrt_()
    return (1.0 + r).mul_(r.neg().exp_())

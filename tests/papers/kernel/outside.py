"""The kernel of ``docs/extending/kernel.md``, which is not in the package, and its values by PyTorch."""

from __future__ import annotations

from typing import Any

from tests.extending import run_page

Matern: Any = run_page("kernel.md", until="kernels.register")["Matern"]


def torch_similarity(kernel, rows, others):
    squares = (rows.values @ others.values.T).mul_(-2.0).add_(rows.norms[:, None]).add_(others.norms).abs_()
    r = squares.mul_(6.0 * kernel.gamma).sqrt_()
    return (1.0 + r).mul_(r.neg().exp_())


Matern.torch_similarity = torch_similarity

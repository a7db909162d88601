"""Whether a machine could hold the support of kernels if all rows joined it."""

from __future__ import annotations

from typing import Any

from tunefree.core import machine
from tunefree.core.errors import ModelError
from tunefree.core.rows import Block, n_rows

GROWING = 2  # points are there twice while others are put behind them


def needed(X: Block, n: int, functions: int, n_outputs: int) -> int:
    """Bytes of a support of ``n`` rows like those of a block, with coefficients and lags of some functions.

    >>> from tunefree.core.rows import dense
    >>> needed(dense([[0.0] * 100]), 10**6, 9, 1)
    2688000000
    """
    point = 12 * (X.numbers.shape[1] + len(X.values) / max(n_rows(X), 1))
    return int(GROWING * n * (point + 16 * functions * n_outputs))


def check_memory(bank: Any, X: Any, n: int) -> None:
    """Whether the machine could hold the support of a kernel bank if ``n`` rows like those of a block all joined it."""
    most, bytes_needed = machine.memory(), needed(X, n, len(bank.members), bank.n_outputs)
    if most and bytes_needed > most:
        raise ModelError(
            f"{n:,} rows may all become support points, which take {bytes_needed / 2**30:.1f} GiB of memory; this "
            f"machine has {most / 2**30:.1f}: learn fewer rows, or without kernels"
        )

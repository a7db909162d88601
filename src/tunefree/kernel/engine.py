"""Where sums over a support are computed: in compiled code on the processor, or by PyTorch on a device.

An expansion keeps its points and coefficients on the processor, where they are learned and saved; an engine is asked
for sums, and told what changes. The processor's engine looks at the arrays as they are and keeps nothing.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, NamedTuple, Protocol

import numpy as np

from tunefree.errors import ModelError
from tunefree.kernel import blocks
from tunefree.kernel.points import BLOCK, cut, joined, nothing, size


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


class Engine(Protocol):
    """What an expansion asks for, and tells."""

    def known(self, functions: Functions, busy: list[int], coming: Coming) -> np.ndarray:
        """Sums (BLOCK, len(busy), K) of some functions at rows that come, 0 for other rows of the block."""

    def changed(self, block: Any, active: np.ndarray, places: np.ndarray, coefficients: np.ndarray) -> None:
        """Rows of a block have joined the support at these places, or were there; coefficients (M, K, BLOCK)."""

    def forget(self) -> None:
        """Points or coefficients have changed otherwise."""

    def values(self, functions: Functions, rows: Any) -> np.ndarray:
        """Values (n, M, K) of functions at any rows; their points are those of the support."""


class OnProcessor:
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


def engine_of(device: str | None) -> Engine:
    """The engine of a device.

    Parameters
    ----------
    device : str or None
        None for compiled code on the processor; ``"cuda"``, ``"cuda:1"`` or ``"cpu"`` for PyTorch there.

    Raises
    ------
    ModelError
        If PyTorch is not installed, or knows no such device.

    Examples
    --------
    >>> engine_of(None)  # doctest: +ELLIPSIS
    <tunefree.kernel.engine.OnProcessor object at ...>
    """
    if device is None:
        return OnProcessor()
    check_device(device)
    from tunefree.kernel.on_torch import OnTorch

    return OnTorch(device)


def check_device(device: str | None) -> None:
    """Whether there is such a device, and PyTorch to reach it.

    Parameters
    ----------
    device : str or None
        As of :func:`engine_of`.

    Raises
    ------
    ModelError
        If there is not.
    """
    if device is None:
        return
    if find_spec("torch") is None:
        raise ModelError(
            f"device {device!r} needs PyTorch, which is not installed; run pip install 'tunefree[torch]', or leave"
            " the device out"
        )
    from tunefree.kernel.on_torch import usable

    usable(device)


def at_hand(device: str | None) -> str | None:
    """The device if this machine has it, else None: a model may be used where there is no such device.

    Examples
    --------
    >>> at_hand("abacus")
    """
    try:
        check_device(device)
    except ModelError:
        return None
    return device

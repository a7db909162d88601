"""A kernel whose values are computed by others: a precomputed matrix, or a function of two arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.papers.kernel.kernels import KernelFunction


class Computed(NamedTuple):
    """What computes the values."""

    function: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None  # None for a matrix


class External(Computed, KernelFunction):
    """A kernel of which the values are the numbers of pairs of rows themselves."""

    @classmethod
    def create(cls, gamma: float = 1.0, degree: int = 3, coef0: float = 1.0) -> External:
        """A precomputed matrix; it has no parameters."""
        return cls(None)

    @property
    def pair(self) -> External:
        """The kernel is the number of a pair, too."""
        return self

    def in_compiled_code(self, dtype: Any) -> ExternalValue:
        return ExternalValue()

    def norm_terms(self, values: np.ndarray) -> np.ndarray:
        """Norms are not used."""
        return values * values

    def numbers(self, block: Any, store: Any, out: np.ndarray | None = None) -> np.ndarray:
        """The values themselves, as :meth:`tunefree.papers.kernel.pairs.DotProduct.numbers`."""
        if self.function is None:
            return np.ascontiguousarray(block.values[:, 1 + store.values[:, 0].astype(np.int64)].T)
        values = np.asarray(self.function(block.values, store.values), block.values.dtype)
        shape = len(block.values), len(store.values)
        if values.shape != shape:
            raise ModelError(f"the kernel gave a matrix {values.shape} for {shape[0]} x {shape[1]} rows")
        return np.ascontiguousarray(values.T)

    def torch_similarity(self, rows: Any, others: Any) -> Any:
        raise ModelError("a kernel given as a matrix or a function is computed on the processor; leave the device out")


class ExternalValue(NamedTuple):
    """What compiled code knows of such a kernel: nothing."""

    def similarity(kernel, pair, norm, other_norm, exp=np.exp):
        return pair

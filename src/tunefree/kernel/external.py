"""A kernel whose values are computed by others: a precomputed matrix, or a function of two arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.kernel.kernels import in_compiled_code, pair_of, similarity, torch_similarity
from tunefree.kernel.pairs import norm_terms, numbers


class External(NamedTuple):
    """A kernel of which the values are the numbers of pairs of rows themselves."""

    function: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None  # None for a matrix

    @classmethod
    def create(cls, gamma: float = 1.0, degree: int = 3, coef0: float = 1.0) -> External:
        """A precomputed matrix; it has no parameters."""
        return cls(None)


class ExternalValue(NamedTuple):
    """What compiled code knows of such a kernel: nothing."""


@pair_of.register(External)
def pair_of_external(kernel):
    return kernel


@in_compiled_code.register(External)
def external_in_compiled_code(kernel: External, dtype: Any) -> ExternalValue:
    return ExternalValue()


@similarity.register(ExternalValue)
def similarity_external(kernel, pair, norm, other_norm, exp=np.exp):
    return pair


@norm_terms.register(External)
def norm_terms_external(pair, values):
    return values * values


@numbers.register(External)
def numbers_external(pair, block, store, out=None):
    if pair.function is None:
        return np.ascontiguousarray(block.values[:, 1 + store.values[:, 0].astype(np.int64)].T)
    values = np.asarray(pair.function(block.values, store.values), block.values.dtype)
    if values.shape != (len(block.values), len(store.values)):
        raise ModelError(f"the kernel gave a matrix {values.shape} for {len(block.values)} x {len(store.values)} rows")
    return np.ascontiguousarray(values.T)


@torch_similarity.register(External)
def torch_similarity_external(kernel, rows, others):
    raise ModelError("a kernel given as a matrix or a function is computed on the processor; leave the device out")

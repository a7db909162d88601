"""A kernel whose values are computed by others: a matrix made beforehand, or a function of two arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.kernel.kernels import in_compiled_code, pair_of, similarity, torch_similarity
from tunefree.kernel.pairs import norm_terms, numbers


class Given(NamedTuple):
    """A kernel given by its values; they are the numbers of pairs of rows themselves."""

    function: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None  # None for a matrix

    @classmethod
    def create(cls, gamma: float = 1.0, degree: int = 3, coef0: float = 1.0) -> Given:
        """A matrix made beforehand; it has no parameters."""
        return cls(None)


class GivenValue(NamedTuple):
    """What compiled code knows of a kernel that is given: nothing."""


@pair_of.register(Given)
def pair_of_given(kernel):
    return kernel


@in_compiled_code.register(Given)
def given_in_compiled_code(kernel: Given, dtype: Any) -> GivenValue:
    return GivenValue()


@similarity.register(GivenValue)
def similarity_given(kernel, pair, norm, other_norm, exp=np.exp):
    return pair


@norm_terms.register(Given)
def norm_terms_given(pair, values):
    return values * values


@numbers.register(Given)
def numbers_given(pair, block, store):
    if pair.function is None:
        return np.ascontiguousarray(block.values[:, 1 + store.values[:, 0].astype(np.int64)].T)
    values = np.asarray(pair.function(block.values, store.values), block.values.dtype)
    if values.shape != (len(block.values), len(store.values)):
        raise ModelError(f"the kernel gave a matrix {values.shape} for {len(block.values)} x {len(store.values)} rows")
    return np.ascontiguousarray(values.T)


@torch_similarity.register(Given)
def torch_similarity_given(kernel, rows, others):
    raise ModelError("a kernel given as a matrix or a function is computed on the processor; leave the device out")

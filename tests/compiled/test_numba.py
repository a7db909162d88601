"""What the package expects of Numba itself."""

from __future__ import annotations

import numba
import numpy as np
import pytest


@numba.njit
def add(column, j, k, step, counts):
    total = column[j, k] + step
    if step > 0.0:
        counts[j] += 1.0
    column[j, k] = total  # in another block of code than the first use of this place
    return total


@numba.njit
def load_after(column, j, k, step, counts):
    total = column[j, k] + step
    if step > 0.0:
        counts[j] += 1.0
    return total + column[j, k]


@numba.njit
def add_at_output_0(block, j, step, counts):
    return add(block[:, 1], j, np.uint64(0), step, counts)


@numba.njit
def load_at_output_0(block, j, step, counts):
    return load_after(block[:, 1], j, np.uint64(0), step, counts)


@pytest.mark.parametrize(
    ("function", "total", "stored"), [(add_at_output_0, 1.25, 1.25), (load_at_output_0, 2.25, 1.0)]
)
def test_functions_that_others_call_read_and_write_arrays_with_gaps(function, total, stored):
    """Numba 0.62 to 0.66 lost the store, and 0.66 ended the process at the load (docs/decisions.md)."""
    block = np.ones((3, 5, 1))
    assert function(block, np.uint64(2), 0.25, np.zeros(3)) == total
    assert block[2, 1, 0] == stored


@pytest.mark.parametrize("function", [add_at_output_0, load_at_output_0])
def test_compiled_code_makes_no_pointer_of_a_number(function):
    """Else the two can come apart again, in code that the test above does not hit."""
    function(np.ones((3, 5, 1)), np.uint64(2), 0.25, np.zeros(3))
    (text,) = function.inspect_llvm().values()
    assert "inttoptr" not in text

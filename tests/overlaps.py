"""Compiled functions with checked bounds may not write where two of their arrays overlap: LLVM is promised so."""

import numpy as np

from tunefree.compiled import loading
from tunefree.compiled.functions import CHECKS_BOUNDS
from tunefree.compiled.loading import with_checked_bounds
from tunefree.core.fields import State


def checked(declaration):
    """A compiled function with checked bounds that refuses to write to one of two arrays that overlap."""
    compiled = with_checked_bounds(declaration)

    def call(*values):
        arrays = [array for value in values for array in arrays_of(value)]
        overlapping = [one for one in arrays if any(np.may_share_memory(one, two) for two in arrays if two is not one)]
        before = [array.tobytes() for array in overlapping]
        result = compiled(*values)
        if before != [array.tobytes() for array in overlapping]:
            raise ValueError(f"{declaration.name} writes to one of two arrays that overlap")
        return result

    return call


def arrays_of(value):
    """The arrays of an argument of a compiled function."""
    if isinstance(value, State):
        return value.blocks
    return [part for part in (value if isinstance(value, tuple) else (value,)) if isinstance(part, np.ndarray)]


if CHECKS_BOUNDS:
    loading.with_checked_bounds = checked

"""Generations of few trees: most of the time of a small training goes into growing them."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

BOOSTED, RANDOMISED = 20, 6  # instead of 100 and 60


@contextmanager
def few() -> Iterator[None]:
    """Grow few trees here."""
    from tunefree.generations import boosted, randomised

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boosted, "TREES", BOOSTED)
        patch.setattr(randomised, "TREES", RANDOMISED)
        yield

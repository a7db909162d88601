"""Early stopping: which improvements are worthwhile, and when there were none for long enough."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunefree.model import patience
from tunefree.model.patience import Patience


@pytest.mark.parametrize(
    ("preset", "passes", "worthwhile"),
    [("MEMBER", 4, 5e-4), ("KERNEL_MEMBER", 2, 2e-3), ("KERNEL_MEMBER_OF_MANY_ROWS", 1, 2e-3), ("POOL", 2, 1e-3)],
)
def test_presets(preset, passes, worthwhile):
    assert getattr(patience, preset) == Patience(passes, worthwhile)


def test_the_first_passes_are_always_made():
    assert not Patience(2, 0.1).is_over([])
    assert not Patience(2, 0.1).is_over([1.0, 5.0])
    assert Patience(2, 0.1).is_over([1.0, 5.0, 5.0])


@given(st.lists(st.floats(0.01, 10.0), min_size=1, max_size=8), st.integers(1, 4), st.floats(0.0, 0.5))
def test_it_is_over_unless_one_of_the_latest_passes_improves_on_the_best_before(losses, passes, worthwhile):
    rule = Patience(passes, worthwhile)
    best = min(losses[:-passes], default=float("inf"))
    improved = any(rule.improves(loss, best) for loss in losses[-passes:])
    if rule.is_over(losses):
        assert len(losses) > passes and not improved
    elif len(losses) > passes:  # an improvement that is just worthwhile counts
        assert improved or min(losses[-passes:]) == (1.0 - worthwhile) * best

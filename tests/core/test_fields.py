"""States whose fields are declared once: memory, growth, late classes, dropped features, what is saved."""

from __future__ import annotations

import numpy as np
import pytest

from tunefree.core.fields import (
    FEATURE,
    OUTPUT,
    Field,
    State,
    padded,
    per_coordinate,
    per_feature,
    per_output,
    setting,
    single,
)


class Example(State):
    largest = per_feature("largest value")
    weights = per_coordinate("weight", start=2.0)
    bets = per_coordinate("latest bet", is_saved=False)
    norms = per_output("norm")
    rounds = single("rows")
    matrices = Field((OUTPUT, FEATURE, "width"), "a matrix for each output")
    rate = setting(0.5, "step size")

    @classmethod
    def lengths(cls, n_features, n_outputs):
        return {"width": 2 * n_outputs}


def filled(n_features: int, n_outputs: int) -> Example:
    """A state in which each number differs."""
    state, random = Example(n_features, n_outputs, rate=0.25), np.random.default_rng(n_features)
    for field in Example.fields:
        if not field.is_setting:
            state[field.name][...] = random.normal(size=state[field.name].shape)
    return state


@pytest.mark.parametrize("n_outputs", [1, 2, 4, 5])
def test_fields_share_blocks_and_no_number(n_outputs):
    state = Example(3, n_outputs)
    assert state.coordinates.shape == (3, 2, padded(n_outputs)) and state.coordinates.flags.c_contiguous
    for number, field in enumerate(Example.fields):
        getattr(state, field.name)[...] = number
    for number, field in enumerate(Example.fields):
        assert (getattr(state, field.name) == number).all() and getattr(state, field.name).size
    assert state.nbytes == sum(block.nbytes for block in state.blocks)


def test_fields_begin_at_their_start_and_settings_where_they_are_set():
    state = Example(3, 2, rate=0.125)
    assert (state["weights"] == 2.0).all() and state.rate[0] == 0.125 and state.settings == {"rate": 0.125}
    with pytest.raises(TypeError, match=r"no setting 'rates'; it has rate"):
        Example(3, 2, rates=1.0)


def test_a_class_that_comes_late_and_features_to_come_begin_anew():
    state = filled(3, 1)
    grown = state.grown(5, 3, first=1)
    np.testing.assert_array_equal(grown["weights"][:3, 1], state["weights"][:, 0])
    assert (grown["weights"][3:] == 2.0).all() and (grown["weights"][:3, [0, 2]] == 2.0).all()
    np.testing.assert_array_equal(grown["largest"][:3], state["largest"])
    np.testing.assert_array_equal(grown["matrices"][1, :3, :2], state["matrices"][0])
    assert grown["norms"][1] == state["norms"][0] and grown["norms"].tolist()[::2] == [0.0, 0.0]
    assert grown.rounds[0] == state.rounds[0] and grown.settings == state.settings


def test_saved_arrays_give_the_state_back():
    state = filled(4, 3)
    other = Example(4, 3).restored(state.arrays())
    assert "bets" not in state.arrays()
    for name in state.arrays():
        np.testing.assert_array_equal(other[name], state[name])
    roomy = Example(9, 3).restored(state.arrays(2))
    np.testing.assert_array_equal(roomy["weights"][:2], state["weights"][:2])
    assert (roomy["weights"][2:] == 2.0).all()

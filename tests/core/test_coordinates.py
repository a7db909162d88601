"""Records whose fields are rows of outputs."""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np
import pytest

from tunefree import losses
from tunefree.core import rows
from tunefree.core.coordinates import LANES, room, row_of_outputs
from tunefree.learners import ALL, Averaged
from tunefree.learners.contract import check_room, grow, records
from tunefree.losses import objectives
from tunefree.model import passes


def learn(state, n_outputs):
    objective = objectives.Multinomial(1.0) if n_outputs > 1 else objectives.Binary(losses.Logistic(), 0.0)
    predictions = np.empty((1, n_outputs))
    passes.learn(state, objective, rows.sparse([0, 1], [1], [2.0]), np.ones(1), np.ones(1), predictions)


@pytest.mark.parametrize("n_outputs", [1, 2, 4, 5])
def test_fields_are_rows_of_outputs_that_share_no_number(n_outputs):
    features, coordinates = records(("a",), ("b", "c", "d"), n_features=5, n_outputs=n_outputs)
    features.a = 1.0
    for number, name in enumerate("bcd"):
        coordinates[name] = 10 * number + np.arange(5.0 * n_outputs).reshape(5, n_outputs)
    for number, name in enumerate("bcd"):
        field = getattr(coordinates, name)
        np.testing.assert_array_equal(field, 10 * number + np.arange(5.0 * n_outputs).reshape(5, n_outputs))
        assert field.strides[1] == 8 and coordinates[3, 0][name] == field[3, 0]
    assert (features.a == 1.0).all()


@pytest.mark.parametrize("name", sorted(ALL))
def test_arrays_of_outputs_have_room_for_whole_vectors(name):
    """Compiled loops go that far: an array without the room would be written beyond its end."""
    state = ALL[name].create(4, 3)
    averaged = state if isinstance(state, Averaged) or name in ("adam", "newton") else Averaged.create(state)
    for made in (state, averaged, grow(averaged, 5, 6)):
        for array in made:
            if isinstance(array, np.ndarray) and array.ndim == 2 and array.shape[0] == 1:
                assert array.base.shape == (1, room(array.shape[1]))
    assert room(LANES + 1) == 2 * LANES and row_of_outputs(3).shape == (1, 3)


def test_a_copy_which_has_another_layout_is_refused_not_misread():
    state = ALL["scinol2"].create(4, 3)
    learn(state, 3)
    with pytest.raises(TypeError, match="use contract.grow"):
        learn(state._replace(coordinates=copy.deepcopy(state.coordinates)), 3)


@pytest.mark.skipif(LANES == 1, reason="no room is taken where bounds are checked")
def test_arrays_of_outputs_without_room_are_refused():
    class Own(NamedTuple):
        sums: np.ndarray

    check_room(Own(row_of_outputs(3)))
    check_room(Own(np.zeros((1, 1))))
    with pytest.raises(TypeError, match=r"Own.sums must be made by row_of_outputs"):
        check_room(Own(np.zeros((1, 3))))


def test_statistics_of_many_outputs_lie_without_gaps():
    """Those of a feature with few share a cache line, which neither they nor a neighbour's leave."""
    _, many = records(("a",), ("b", "c"), n_features=5, n_outputs=20)
    assert many.strides[0] == 8 * (1 + 2 * room(20))
    _, one = records(("a", "b"), ("c", "d", "e"), n_features=5, n_outputs=1)
    assert one.strides[0] == 64 and one.ctypes.data % 64 == 16

"""Objectives: what they say of their targets and predictions."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tunefree import losses
from tunefree.losses.functions import respond
from tunefree.losses.objectives import Objective


@given(centre=st.floats(-1e308, 1e308), margin=st.floats(-1e308, 1e308), exponent=st.integers(-1000, 1000))
def test_many_margins_become_predictions_as_one_does(centre, margin, exponent):
    objective = Objective("regression", losses.Square())
    objective.centre, objective.unit = centre, 2.0**exponent
    one, many = np.empty(1), objective.predictions_of(np.array([[margin], [0.0]]))
    with np.errstate(over="ignore"):
        respond(*objective.arrays, 1, np.array([margin]), one)
    assert np.isfinite(many).all() and many[0, 0] == np.clip(one[0], -1e308, 1e308)

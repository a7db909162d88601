"""Objectives: what they say of their targets and predictions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunefree import losses
from tunefree.losses import objectives
from tunefree.losses.kinds import arrays_of, respond

OF_CLASSES = [
    objectives.Binary(losses.Hinge(), 0.0),
    objectives.OneAgainstAll(losses.Hinge(), 0.0),
    objectives.Multinomial(1.0),
]


@pytest.mark.parametrize("objective", OF_CLASSES, ids=lambda objective: type(objective).__name__)
def test_margins_of_classes_are_the_predictions(objective):
    margins, classes = np.array([[1.0, -2.0]]), np.array([0.0, 2.0, 2.0])
    assert objective.task == "classification"
    assert objective.predictions_of(margins) is margins and objective.labels_of(classes) is classes


@given(centre=st.floats(-1e308, 1e308), margin=st.floats(-1e308, 1e308), exponent=st.integers(-1000, 1000))
def test_many_margins_become_predictions_as_one_does(centre, margin, exponent):
    objective = objectives.regression(losses.Square())._replace(centre=centre, unit=2.0**exponent)
    one, many = np.empty(1), objective.predictions_of(np.array([[margin], [0.0]]))
    with np.errstate(over="ignore"):
        respond(*arrays_of(objective), 1, np.array([margin]), one)
    assert np.isfinite(many).all() and many[0, 0] == np.clip(one[0], -1e308, 1e308)


def test_numbers_as_labels():
    objective = objectives.regression(losses.Square())
    assert objective.task == "regression" and len(objective.labels_of(np.zeros(0))) == 0
    assert objective.labels_of(np.array([5.0, 1.0, 3.0, 2.0])).tolist() == [True, False, True, False]

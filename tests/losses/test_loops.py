"""Loops over rows: one kernel for all objectives and losses, and a new one when a loss gets a name."""

from __future__ import annotations

import copy
from typing import Annotated, NamedTuple

import numpy as np

from tunefree import losses
from tunefree.losses import Hinge, Square
from tunefree.losses.contract import loss_class
from tunefree.losses.functions import Loop
from tunefree.losses.objectives import Objective, all_compiled, measured


@loss_class
class Shifted(NamedTuple):
    """A loss from outside: p^2 + 1."""

    lipschitz: float = np.inf
    smoothness: float = 2.0

    def value(self, y, prediction):
        return prediction * prediction + 1.0

    def slope(self, y, prediction):
        return 2.0

    def curvature(self, y, prediction):
        return 2.0


@Loop
def scaled_loss_of(factor, functions):
    loss_at = functions.loss_at

    def scaled_loss(
        codes: Annotated[np.ndarray, "int64[2]"],
        numbers: Annotated[np.ndarray, "float64[facts]"],
        margins: Annotated[np.ndarray, "float64[outputs]"],
    ) -> float:
        return factor * loss_at(codes, numbers, 1.0, len(margins), margins)

    return scaled_loss


def test_a_loop_is_one_kernel_for_all_losses():
    kernel = all_compiled()[0]
    for loss, expected in ((Hinge(), 0.5), (Square(), 0.25)):
        assert measured(Objective("classification", loss), np.ones(1), np.full((1, 1), 0.5)).tolist() == [expected]
    assert all_compiled()[0] is kernel and kernel.name == "losses.objectives.measure"


def test_a_loop_is_made_anew_when_a_loss_gets_a_name(monkeypatch):
    monkeypatch.setattr(losses, "LOSSES", copy.deepcopy(losses.LOSSES))
    before = all_compiled()[0]
    losses.LOSSES.register("shifted", Shifted)
    assert all_compiled()[0] is not before
    assert measured(Objective("classification", Shifted()), np.ones(1), np.full((1, 1), 3.0)).tolist() == [10.0]


def test_parts_that_a_loop_is_made_for_have_kernels_of_their_own():
    arrays, margins = Objective("classification", Hinge()).arrays, np.zeros(1)
    one, two = (scaled_loss_of.compiled(factor, name=f"tests.scaled_loss.{factor}") for factor in (1.0, 2.0))
    assert (one(*arrays, margins), two(*arrays, margins)) == (1.0, 2.0)
    assert scaled_loss_of.compiled(2.0) is two

"""The registry of losses: names without costs, and losses added from outside."""

from typing import NamedTuple

import pytest

from tests.extending import run_page
from tunefree import losses
from tunefree.core.errors import ModelError
from tunefree.losses.contract import loss_class


class Bare(NamedTuple):
    lipschitz: float = 0.0
    smoothness: float = 0.0


@loss_class
class Zero(NamedTuple):
    lipschitz: float = 0.0
    smoothness: float = 0.0


@pytest.mark.usefixtures("names_as_before")
def test_a_loss_is_registered_for_its_tasks():
    losses.register("zero", Zero, "classification", "regression")
    assert losses.names("classification")[-1] == losses.names("regression")[-1] == "zero"
    assert losses.loss_of("regression", "zero") == Zero()
    losses.register("bare", Bare, "regression")
    with pytest.raises(ModelError, match="put @loss_class of tunefree.losses.contract before the class"):
        losses.loss_of("regression", "bare")
    with pytest.raises(ModelError, match="the zero loss has no parameter"):
        losses.loss_of("regression", "zero:3")
    for arguments, message in (
        (("hinge", Zero, "regression"), "a loss 'hinge' already"),
        (("zero:1", Zero, "regression"), "behind colons"),
        (("nought", Zero), "classification or regression"),
        (("nought", Zero, "ranking"), "classification or regression"),
    ):
        with pytest.raises(ModelError, match=message):
            losses.register(*arguments)
    assert "nought" not in losses.names("regression") and losses.loss_of("classification", "hinge") == losses.Hinge()


@pytest.mark.slow  # it compiles all loops with one more loss, as `test_switch.py` does of two of them
@pytest.mark.usefixtures("names_as_before")
def test_the_worked_example_runs_as_it_stands():
    page = run_page("loss.md")
    assert losses.loss_of("regression", "log-cosh:2") == page["log_cosh"](2.0)
    with pytest.raises(ModelError, match="scale must be"):
        losses.loss_of("regression", "log-cosh:-1")

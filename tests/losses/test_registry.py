"""The registry of losses: names without costs, and losses added from outside."""

from __future__ import annotations

import subprocess
import sys
from typing import NamedTuple

import pytest

from tests.extending import run_page
from tunefree import losses
from tunefree.core.errors import ModelError
from tunefree.losses.contract import loss_class


@pytest.fixture
def as_before(monkeypatch):
    """What is registered in a test is forgotten after it."""
    for table in ("_places", "_loaded"):
        monkeypatch.setattr(losses.LOSSES, table, dict(getattr(losses.LOSSES, table)))
    monkeypatch.setattr(losses, "_USAGES", dict(losses._USAGES))


def test_names_cost_nothing():
    code = (
        "import sys; from tunefree import losses; [losses.usage(task) for task in losses.TASKS];"
        "assert not {'numba', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_and_defaults():
    assert losses.names("classification")[0] == "logistic" and losses.names("regression")[0] == "square"
    assert losses.loss_of("classification", None) == losses.Logistic()
    assert losses.loss_of("regression", None) == losses.Square()
    assert {"huber:DELTA", "quantile:TAU", "absolute-power:P", "epsilon-insensitive:EPSILON:P"} <= set(
        losses.usage("regression")
    )


def test_every_loss_is_exported():
    for factory in losses.LOSSES.values():
        assert getattr(losses, factory.__name__) is factory
    for name in ("Huber", "Quantile", "Power", "Tweedie"):
        assert getattr(losses, name).__name__ == name and name in dir(losses)
    for name in ("Huber", "Quantile", "Power", "Tweedie"):
        assert issubclass(getattr(losses, name), tuple)
    with pytest.raises(AttributeError, match="Cubic"):
        _ = losses.Cubic


@pytest.mark.parametrize(
    ("task", "name", "message"),
    [
        ("classification", "cubic", "unknown loss 'cubic' for classification; choose one of logistic, hinge, smoothed"),
        ("classification", "huber", "unknown loss 'huber' for classification"),
        (
            "regression",
            "hinge:1",
            "unknown loss 'hinge' for regression; choose one of square, absolute, absolute-power, eps",
        ),
        ("regression", "absolute:1", "the absolute loss has no parameter; write absolute"),
        ("regression", "huber:1:2", "loss 'huber:1:2' has too many parameters; write huber:DELTA"),
        ("regression", "huber:x", "loss 'huber:x': could not convert"),
        ("regression", "quantile", "loss 'quantile': its level is missing; write quantile:TAU, such as quantile:0.5"),
        ("regression", "quantile:2", "loss 'quantile:2': tau must lie between 0 and 1, not 2"),
    ],
)
def test_names_that_make_no_loss(task, name, message):
    with pytest.raises(ModelError, match=message):
        losses.loss_of(task, name)


class Bare(NamedTuple):
    lipschitz: float = 0.0
    smoothness: float = 0.0


@loss_class
class Zero(NamedTuple):
    lipschitz: float = 0.0
    smoothness: float = 0.0


@pytest.mark.usefixtures("as_before")
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
@pytest.mark.usefixtures("as_before")
def test_the_worked_example_runs_as_it_stands():
    page = run_page("loss.md")
    assert losses.loss_of("regression", "log-cosh:2") == page["log_cosh"](2.0)
    with pytest.raises(ModelError, match="scale must be"):
        losses.loss_of("regression", "log-cosh:-1")


def test_what_a_test_registered_is_forgotten():
    assert not {"zero", "log-cosh"} & set(losses.LOSSES)

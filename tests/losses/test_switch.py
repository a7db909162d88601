"""Objectives as arrays, with the bits of their losses compiled or not; the registry of losses."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Annotated, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.extending import as_before, run_page
from tests.losses.test_contract import CLASSIFICATION, PAGE, of_task
from tunefree import losses
from tunefree.core.errors import ModelError
from tunefree.losses import Square, loss_classes
from tunefree.losses.contract import loss_class
from tunefree.losses.functions import Loop, functions_over, respond
from tunefree.losses.objectives import Objective, all_compiled, measured

HOSTILE = [0.0, -0.0, 1.0, -1.0, 0.3, -2.5, 40.0, -800.0, 1e-308, -1e-308, 5e-324, 3e-310, 1e-300, 1e150, -1e150, 1e160]
HOSTILE += [-1e308, 1e308, 1.7e308, 700.0, 1024.0 * (1.0 - 2.0**-53), 2.0**-1022, 2.0**-1023]
PADDING = 3  # numbers behind those of the outputs, which nothing may read or write
ROWS_OF_A_STREAM = 40
OBJECTIVES = {
    f"{name} {n}": (Objective("classification", loss), n) for name, loss in CLASSIFICATION.items() for n in (1, 3, 7)
}
OBJECTIVES |= {f"softmax {n}": (Objective("classification"), n) for n in (1, 2, 3, 7)}
REGRESSION = of_task("regression") | {"huber:1e300": losses.huber(1e300)}
OBJECTIVES |= {f"regression {name}": (Objective("regression", loss), 1) for name, loss in REGRESSION.items()}
each_objective = pytest.mark.parametrize(("objective", "n_outputs"), OBJECTIVES.values(), ids=OBJECTIVES)


@Loop
def learn(functions):
    scale_of, respond, differentiate = functions.scale_of, functions.respond, functions.differentiate
    loss_at, true_slope = functions.loss_at, functions.true_slope

    def learn(
        codes: Annotated[np.ndarray, "int64[2]"],
        numbers: Annotated[np.ndarray, "float64[facts]"],
        y: Annotated[np.ndarray, "float64[rows]"],
        weight: Annotated[np.ndarray, "float64[rows]"],
        margins: Annotated[np.ndarray, "float64[rows, width]"],
        at: Annotated[np.ndarray, "float64[rows, width]"],
        scales: Annotated[np.ndarray, "float64[rows, 3]"],
        answers: Annotated[np.ndarray, "float64[rows, 3, width]"],
        loss: Annotated[np.ndarray, "float64[rows]"],
        slopes: Annotated[np.ndarray, "float64[rows, width]"],
    ) -> None:
        """All that an objective answers to rows: scales, predictions, derivatives, losses and slopes."""
        n_outputs = margins.shape[1] - PADDING
        for i in range(len(y)):
            scale = scale_of(numbers, weight[i])
            scales[i, 0], scales[i, 1], scales[i, 2] = scale.slope, scale.margin, scale.weight
            respond(codes, numbers, n_outputs, margins[i], answers[i, 0])
            differentiate(codes, numbers, y[i], weight[i], n_outputs, margins[i], answers[i, 1], answers[i, 2])
            loss[i] = loss_at(codes, numbers, y[i], n_outputs, at[i])
            true_slope(codes, numbers, y[i], n_outputs, at[i], slopes[i])

    return learn


@pytest.fixture
def names_as_before(monkeypatch):
    """What gets a name in a test is forgotten after it."""
    monkeypatch.setattr(losses, "_USAGES", dict(losses._USAGES))
    with as_before(losses.LOSSES):
        yield
    losses._classes_of.cache_clear()  # which remembers names, and these may be given to other classes


def drawn(objective, n_outputs, n_rows=120):
    """Targets, weights, margins, and predictions at which losses are asked for, of which half are hostile."""
    random = np.random.default_rng(n_outputs)

    def numbers(*shape):
        tame = random.normal(size=shape) * 10.0 ** random.uniform(-3, 3, shape)
        return np.where(random.random(shape) < 0.5, random.choice(HOSTILE, shape), tame)

    margins, at = np.full((2, n_rows, n_outputs + PADDING), np.nan)
    margins[:, :n_outputs] = np.clip(numbers(n_rows, n_outputs), -1e150, 1e150)
    at[:, :n_outputs] = numbers(n_rows, n_outputs)
    y = numbers(n_rows) if objective.task == "regression" else random.integers(n_outputs, size=n_rows).astype(float)
    if objective.task == "classification" and not objective.is_softmax and n_outputs == 1:
        y = random.choice([-1.0, 1.0], n_rows)
    return y, random.choice([1.0, 0.5, 2.0, 1e-10, 1e10, 3.7], n_rows), margins, at


def answers_of(function, objective, n_outputs):
    """The rows of some hostile streams, what an objective answers to them, and its numbers after these."""
    rows, after = drawn(objective, n_outputs), []
    n, width = rows[-1].shape
    scales, answers = np.empty((n, 3)), np.full((n, 3, width), 7.0)
    loss, slopes = np.empty(n), np.full((n, width), 7.0)
    for start in range(0, n, ROWS_OF_A_STREAM):
        some, other = slice(start, start + ROWS_OF_A_STREAM), objective.copied()
        with np.errstate(all="ignore"):
            function(*other.arrays, *(array[some] for array in (*rows, scales, answers, loss, slopes)))
        after.append(other.numbers)
    return rows, scales, answers, loss, slopes, np.array(after)


@each_objective
def test_compiled_code_has_the_bits_of_python(objective, n_outputs):
    both = learn, learn.compiled().function  # as machine code and as Python
    compiled, plain = (answers_of(function, objective, n_outputs) for function in both)
    for one, other in zip(compiled[1:], plain[1:], strict=True):
        assert one.tobytes() == other.tobytes()


@each_objective
def test_losses_and_slopes_equal_those_from_the_loss(objective, n_outputs):
    (targets, *_, at), _, _, loss, slopes, _ = answers_of(learn, objective, n_outputs)
    if objective.is_softmax:
        return
    for i, y in enumerate(targets.tolist()):
        labels = [y] if n_outputs == 1 else [1.0 if k == y else -1.0 for k in range(n_outputs)]
        pairs = list(zip(labels, at[i].tolist(), strict=False))
        assert slopes[i, :n_outputs].tolist() == [objective.loss.slope(*pair) for pair in pairs]
        total = reduce(add, (objective.loss.value(*pair) for pair in pairs))  # since Python 3.12, `sum` compensates
        assert loss[i] == min(total, 1.7976931348623157e308)


@pytest.mark.usefixtures("names_as_before")
def test_a_loss_from_outside_is_one_more_case():
    loss, y, at = PAGE["log_cosh"](2.0), np.array([1.0, -3.0]), np.array([[0.5], [40.0]])
    before, kernel = loss_classes(), all_compiled()[0]
    with pytest.raises(ModelError, match=r"LogCosh is not among the losses; give it a name with tunefree\.losses\."):
        measured(Objective("regression", loss), y, at)
    losses.register("log-cosh", PAGE["log_cosh"], "regression", parameters=["SCALE"])
    assert loss_classes() == (*before, type(loss)) and all_compiled()[0] is not kernel
    assert functions_over(loss_classes()) is functions_over(loss_classes())
    expected = [loss.value(*pair) for pair in zip(y, at[:, 0], strict=True)]
    assert measured(Objective("regression", loss), y, at).tolist() == expected
    assert measured(Objective("regression", Square()), y, at).tolist() == [0.25, 1849.0]


@given(centre=st.floats(-1e308, 1e308), margin=st.floats(-1e308, 1e308), exponent=st.integers(-1000, 1000))
def test_many_margins_become_predictions_as_one_does(centre, margin, exponent):
    objective = Objective("regression", Square())
    objective.centre, objective.unit = centre, 2.0**exponent
    one, many = np.empty(1), objective.predictions_of(np.array([[margin], [0.0]]))
    with np.errstate(over="ignore"):
        respond(*objective.arrays, 1, np.array([margin]), one)
    assert np.isfinite(many).all() and many[0, 0] == np.clip(one[0], -1e308, 1e308)


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
    with pytest.raises(ModelError, match="too many parameters; write zero"):
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

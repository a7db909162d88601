"""A model in words, for what commands print and for reports."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core.parameters import as_options
from tunefree.model.model import Model
from tunefree.model.targets import MOST_SUMMED, RunningMetrics
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.pool.model import PoolModel
from tunefree.stream.tally import Reason
from tunefree.workflows.certification import order_of

SORTED = (
    "the rows are sorted by the target, or grouped by it: {changes:,} of the neighbouring targets looked at"
    " differ, and {expected:,.0f} would in a random order. The losses are of predicting the next row in this order;"
    " they tell nothing of other rows, and the model leans to the last rows it saw. Train with `shuffle=True`."
)
OF_GROUPS = (
    "the target depends on the number of the row (a test of level {level:g}), as it does where rows of a group are"
    " alike. The losses are of predicting the next group; where groups drift, later ones may be predicted worse."
)
DEPENDENT = (
    "the target depends on the number of the row: it drifts, or neighbouring rows are alike (a test of level"
    " {level:g}). The losses are of predicting the next row; new rows in another order may be predicted worse. If the"
    " order has no meaning, train with `shuffle=True`."
)


def listed(names: list[Any], most: int) -> str:
    """The first names, separated by commas."""
    return ", ".join(map(str, names[:most])) + (", ..." if len(names) > most else "")


def goal_of(trained: Trained, so_far: str = "") -> str:
    """The task, the target, and its classes."""
    model, target = trained.model, trained.plan.target
    goal = f"'{target}'" if target else "the label"
    if model.task == "regression":
        return f"regression of {goal}"
    return f"classification of {goal} ({len(model.classes)} classes{so_far}: {listed(model.classes, 4)})"


def losses_of(model: Model, metrics: RunningMetrics) -> dict[str, str]:
    """Mean loss and error as texts, with their titles."""
    if model.task == "classification":
        default = "log-loss" if model.loss_is_log_loss else "loss"
        return {default: f"{metrics.mean_loss():.4f}", "error": f"{100 * metrics.mean_error():.2f} %"}
    loss, error = (
        f"{'over ' if total >= MOST_SUMMED else ''}{mean:.6g}"
        for total, mean in ((metrics.loss, metrics.mean_loss()), (metrics.errors, metrics.mean_error()))
    )
    return {"loss": loss, "absolute error": error}


def weighed_by(plan: Plan, weight: np.ndarray | None = None) -> str:
    """By what rows are weighted; empty where they count equally.

    Parameters
    ----------
    plan : Plan
    weight : (n,) array, optional
        Of the rows; by default there are weights where the plan names their column.

    Examples
    --------
    >>> weighed_by(Plan(weight="w")), weighed_by(Plan(weight="w"), np.ones(3)), weighed_by(Plan(), np.array([1.0, 2.0]))
    ("column 'w'", '', 'the importance in its line')
    """
    is_weighted = plan.weight is not None if weight is None else bool((weight != 1.0).any())
    column = "the importance in its line" if plan.weight is None else f"column {plan.weight!r}"
    return column if is_weighted else ""


def rows_told(rows: int, plan: Plan, done: str = "") -> str:
    """Rows, what was done with them, and by what they are weighted.

    Examples
    --------
    >>> rows_told(1500, Plan(weight="w"), " learned")
    "1,500 rows learned, weighted by column 'w'"
    """
    column = weighed_by(plan)
    return f"{rows:,} rows{done}" + (f", weighted by {column}" if column else "")


def describe(trained: Trained) -> str:
    """One line on what is learned, with which loss and by which learner."""
    model = trained.model
    default = "square" if model.task == "regression" else "logistic"
    averaged = ", averaged" if model.options.average else ""
    how = f"loss {model.options.loss or default}, learner {model.learner}{averaged}"
    so_far = "" if trained.progress.complete else " so far"
    return f"{goal_of(trained, so_far)}; {how}"


MOST_ODDITIES = 6  # that are printed
REASON_TITLES = ("reason", "first row", "rows")


def reasons_told(reasons: list[Reason]) -> list[list[str]]:
    """Why rows were skipped: for each reason where the first row is, and how many there are.

    Parameters
    ----------
    reasons : list of Reason

    Examples
    --------
    >>> reasons_told([Reason("… is not a number", "age", 1200, "a.csv", 7)])
    [['… is not a number', "a.csv, row 7, column 'age'", '1,200']]
    """
    return [[as_options(reason.problem), reason.place, f"{reason.rows:,}"] for reason in reasons]


def oddities_told(oddities: list[Reason]) -> list[str]:
    """What is odd about columns, and about rows that were used: a line each, the most frequent first.

    Parameters
    ----------
    oddities : list of Reason

    Examples
    --------
    >>> oddities_told([Reason("a category that is new", "job", 1200, "a.csv", 7)])
    ["column 'job': a category that is new (1,200 rows, the first: a.csv, row 7)"]
    """
    lines = [as_options(str(oddity)) for oddity in sorted(oddities, key=lambda oddity: (oddity.rows > 0, -oddity.rows))]
    more = len(lines) - MOST_ODDITIES
    return lines if more <= 0 else [*lines[:MOST_ODDITIES], f"and {more:,} more of this kind"]


def order_warning(trained: Trained) -> str | None:
    """A warning, if the targets depend on the order of the rows."""
    order = order_of(trained).get("order", {"depends_on_rows": False})
    if not order["depends_on_rows"]:
        return None
    if trained.plan.group is not None:
        return OF_GROUPS.format(**order)
    return (SORTED if order["sorted"] else DEPENDENT).format(**order)


def without_weights(model: Any) -> str:
    """Why features have no weights in a model, as a line."""
    if isinstance(model, PoolModel):
        return "made of trees and linear learners, mixed by rules that learn, where features have no weights"
    return (
        f"made of {model.n_support:,} rows, in the space of a kernel, where features as they are given have no weights"
    )


def sentence(text: str) -> str:
    """A text that begins with a capital.

    Examples
    --------
    >>> sentence("from Bath")
    'From Bath'
    """
    return text[:1].upper() + text[1:]

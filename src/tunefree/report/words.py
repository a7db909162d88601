"""A model in words: sentences and names that commands print and reports show."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.report.formats import first


def goal_of(trained: Trained, so_far: str = "") -> str:
    """The task, the target, and its classes."""
    model, target = trained.model, trained.plan.target
    goal = f"{model.task} of " + (f"'{target}'" if target else "the label")
    if model.task == "regression":
        return goal
    return f"{goal} ({len(model.classes)} classes{so_far}: {first(4)(model.classes)})"


def loss_name(model: Any) -> str:
    """The name of the loss that is minimised."""
    return str(model.options.loss or ("square" if model.task == "regression" else "logistic"))


def weights_named(plan: Plan, weight: np.ndarray | None = None) -> str:
    """By what rows are weighted; empty where they count equally.

    ``weight`` (n,): of the rows; by default there are weights where the plan names their column.

    >>> weights_named(Plan(sample_weight="w")), weights_named(Plan(sample_weight="w"), np.ones(3))
    ("column 'w'", '')
    >>> weights_named(Plan(), np.array([1.0, 2.0]))
    'the importance in its line'
    """
    is_weighted = plan.sample_weight is not None if weight is None else bool((weight != 1.0).any())
    names = [repr(name) for name in (plan.sample_weight, plan.exposure) if name is not None]
    column = f"column {' and '.join(names)}" if names else "the importance in its line"
    return column if is_weighted else ""


def describe(trained: Trained) -> str:
    """One line on the target, the loss and the learner."""
    model = trained.model
    averaged = ", averaged" if model.options.average else ""
    how = f"loss {loss_name(model)}, learner {model.options.learner}{averaged}"
    so_far = "" if trained.progress.complete else " so far"
    return f"{goal_of(trained, so_far)}; {how}"


def without_weights(model: Any) -> str:
    """Why features have no weights in a model, as a sentence."""
    if model.pool is not None:
        return "Features have no weights: the model is a mixture of trees and linear learners."
    support = model.n_support if model.kind == "path" else model.predictor.bank.n_support
    return f"Features have no weights: the model is made of {support:,} rows, in the space of a kernel."


def sentence(text: str) -> str:
    """A text that begins with a capital.

    >>> sentence("from Bath")
    'From Bath'
    """
    return text[:1].upper() + text[1:]

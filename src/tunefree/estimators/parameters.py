"""Descriptions of the parameters and arguments that several estimators share.

An estimator is a group of parameters (:mod:`tunefree.core.parameters`): its own and inherited fields are the keyword
arguments of ``__init__``. Parameters that plans also have take their description from
:class:`tunefree.model_files.plan.Plan`, with remarks for Python.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar, dataclass_transform

from tunefree import losses
from tunefree.core.docstrings import described, with_arguments
from tunefree.core.parameters import Parameter, field_of, records_of
from tunefree.model_files.plan import Plan
from tunefree.pool import views

Estimator = TypeVar("Estimator")
OF_LOSSES = {
    "classification": "With several classes the logistic loss is multinomial, and the others are of each class against "
    "the others.",
    "regression": "The absolute loss predicts the median, the square loss the mean, and 'quantile:0.9' a quantile; "
    "parameters of a loss stand behind colons. 'poisson', 'tweedie:1.5' and 'gamma' predict the mean of counts and "
    "amounts, by its logarithm.",
}


def _plan_parameter(name: str, remark: str = "", **changes: Any) -> Parameter:
    """Return a parameter of plans, with a remark for Python."""
    record = records_of(Plan)[name]
    return replace(record, meaning=f"{record.meaning} {remark}".strip(), **changes)


COLUMNS = "array-like of str, int or bool"
RECORDS = {
    "n_jobs": Parameter(
        "Threads that work at once, by scikit-learn's rules: -1 for as many as there are processors, None for one. The "
        "model does not depend on it."
    ),
    "random_state": Parameter(
        "Controls what is drawn at random. The default gives reproducible results; None uses NumPy's global generator.",
        types="int, RandomState instance or None",
    ),
    "warm_start": Parameter("Whether ``fit`` goes on with the present model instead of starting again."),
    "class_weight": Parameter(
        "Weights of the classes, which multiply the sample weights (1 for classes not named). ``'balanced'``, in "
        "``fit`` only: inversely proportional to the total weights of the classes.",
        types="dict, 'balanced' or None",
    ),
    "verbose": Parameter(
        "Whether ``fit`` prints its losses, also those of evaluation sets, twice in each doubling of the rows learned."
    ),
    "categorical": _plan_parameter(
        "categorical",
        "By their names, by numbers from 0, or as a mask. In a table, strings, categories and booleans are encoded in "
        "any case.",
        types=COLUMNS,
    ),
    "text": _plan_parameter(
        "text",
        "Beside strings that are mostly different from each other and long or of several words; ``categorical`` takes "
        "a column away from these.",
        types=COLUMNS,
    ),
    "monotone": _plan_parameter(
        "monotone",
        "A dict from names, or numbers from 0, to 1 or -1. Missing values have no place in the order. Then there are "
        "no randomised trees and no learners on leaves, and online learners do not see these columns. Quantiles and "
        "intervals are not constrained.",
        types="dict or None",
    ),
    "view": _plan_parameter("view", choices=views.NAMES),
}
ARGUMENTS = {
    "exposure": "exposure : array-like of shape (n_samples,) or float, optional\n"
    "    What each row is exposed to, above 0, such as years: its mean is the exposure times what the columns tell.\n"
    "    For the losses of counts and amounts.",
    "coverage": "coverage : float or array-like of shape (n_coverages,), default=0.9\n"
    "    Part of the rows to be covered, between 0 and 1.",
    "X": "X : {array-like, sparse matrix, table} of shape (n_samples, n_features)",
    "y": "y : array-like of shape (n_samples,)\n    Labels for a classifier, numbers for a regressor.",
    "sample_weight": "sample_weight : array-like of shape (n_samples,), optional\n"
    "    Weights of the rows; a row of weight 0 is left out.",
    "classes": "classes : array-like, optional\n"
    "    All labels, here and in calls to come, until a call names more; another label is an error. By default a new\n"
    "    label becomes a class.",
    "callbacks": "callbacks : sequence of tunefree.training.callbacks.Callback, optional\n"
    "    Told of the beginning, of each piece of rows that was learned with the losses of its rows, and of the end. A\n"
    "    ``step`` that returns True ends the pass; what was learned stays.",
    "eval_set": "eval_set : pair (X, y) or list of pairs, optional\n"
    "    Rows that are predicted twice in each doubling of the rows learned, and by the finished model, but never\n"
    "    learned: :meth:`history` has their losses. The model is the same without them.",
    "eval_names": "eval_names : list of str, optional\n    Names of the sets, by default valid_0, valid_1, ...",
    "eval_sample_weight": "eval_sample_weight : list of array-like, optional\n"
    "    Weights of the rows of each set; of a pair also an array. ``class_weight`` does not weight them.",
    "eval_exposure": "eval_exposure : list of array-like, optional\n    Exposures of the rows of each set, likewise.",
    "groups": "groups : array-like of shape (n_samples,), optional\n"
    "    Labels of groups of rows that belong together, as those of one patient: no row of a group is evidence for\n"
    "    what was learned from another of it. ``fit`` passes the groups in turn. Pass all rows of a group to\n"
    "    ``partial_fit`` one after another, in one call: rows of a group that an earlier call had are no evidence.",
}


@dataclass_transform(kw_only_default=True, eq_default=False)
def estimator(kind: type[Estimator]) -> type[Estimator]:
    """Decorate a class whose fields are parameters: add ``__init__``, and describe the fields in the docstring."""
    return described(dataclass(kw_only=True, eq=False, repr=False)(kind))


def documented(method: Any) -> Any:
    """Decorate a method: add descriptions of shared arguments to its docstring."""
    return with_arguments(ARGUMENTS)(method)


def shared(name: str, default: Any = None, remark: str = "") -> Any:
    """Return a field for a shared parameter, with a remark on its effect here."""
    return field_of(replace(RECORDS[name], meaning=f"{RECORDS[name].meaning} {remark}".strip()), default)


def loss_of_task(task: str, default: str, remark: str = "") -> Any:
    """Return a field for the loss of a task, with a remark on the default.

    >>> loss_of_task("regression", "square").metadata["parameter"].meaning.partition(", epsilon")[0]
    'square, absolute, absolute-power:P'
    """
    *names, last = losses.usage(task)
    return field_of(Parameter(f"{', '.join(names)} or {last}. {OF_LOSSES[task]} {remark}".strip()), default)

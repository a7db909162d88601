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
LOSS_REMARKS = {
    "classification": "With several classes the logistic loss is multinomial, and the other losses are one-vs-rest.",
    "regression": "The absolute loss predicts the median, the square loss the mean, and 'quantile:0.9' a quantile; a "
    "colon precedes the parameter of a loss. 'poisson', 'tweedie:1.5' and 'gamma' predict the mean of counts and "
    "amounts, with a logarithmic link.",
}


def _plan_parameter(name: str, remark: str = "", **changes: Any) -> Parameter:
    """Return a parameter of plans, with a remark for Python."""
    record = records_of(Plan)[name]
    return replace(record, meaning=f"{record.meaning} {remark}".strip(), **changes)


COLUMNS = "array-like of str, int or bool"
RECORDS = {
    "n_jobs": Parameter(
        "Number of threads, as in scikit-learn: -1 for all processors, None for one. The model does not depend on it."
    ),
    "random_state": Parameter(
        "Controls the randomness. The default gives reproducible results; None uses NumPy's global generator.",
        types="int, RandomState instance or None",
    ),
    "warm_start": Parameter("Whether ``fit`` continues from the current model instead of starting a new one."),
    "class_weight": Parameter(
        "Weights of the classes, which multiply the sample weights; classes that are not named have 1. ``'balanced'``, "
        "only for ``fit``: inversely proportional to the total weights of the classes.",
        types="dict, 'balanced' or None",
    ),
    "verbose": Parameter(
        "Whether ``fit`` prints its losses, also of evaluation sets, twice per doubling of the number of learned rows."
    ),
    "categorical": _plan_parameter(
        "categorical",
        "Given by names, by indices, or as a mask. In a table, strings, categories and booleans are always encoded.",
        types=COLUMNS,
    ),
    "text": _plan_parameter(
        "text",
        "Strings that are mostly distinct, and long or of several words, are text in any case, unless ``categorical`` "
        "names their column.",
        types=COLUMNS,
    ),
    "monotone": _plan_parameter(
        "monotone",
        "A dict from names, or indices, to 1 or -1. Missing values are not ordered. With constraints, there are no "
        "randomised trees and no learners on leaves, and online learners do not use these columns. Quantiles and "
        "intervals are not constrained.",
        types="dict or None",
    ),
    "view": _plan_parameter("view", choices=views.NAMES),
}
ARGUMENTS = {
    "exposure": "exposure : array-like of shape (n_samples,) or float, optional\n"
    "    Positive exposures of the rows, such as years. The mean of a target is its exposure times a rate, which is\n"
    "    predicted from the columns. Only for losses of counts and amounts.",
    "coverage": "coverage : float or array-like of shape (n_coverages,), default=0.9\n"
    "    Proportion of the rows to cover, between 0 and 1.",
    "X": "X : {array-like, sparse matrix, table} of shape (n_samples, n_features)",
    "y": "y : array-like of shape (n_samples,)\n    Labels for a classifier, numbers for a regressor.",
    "sample_weight": "sample_weight : array-like of shape (n_samples,), optional\n"
    "    Weights of the rows. Rows of weight 0 are ignored.",
    "classes": "classes : array-like, optional\n"
    "    All labels of this and later calls, until a call adds more. Other labels are errors. By default, each new\n"
    "    label becomes a class.",
    "callbacks": "callbacks : sequence of tunefree.training.callbacks.Callback, optional\n"
    "    Called before the pass, after each batch of rows with their losses, and after the pass. If ``step`` returns\n"
    "    True, the pass ends; the model keeps the rows learned so far.",
    "eval_set": "eval_set : pair (X, y) or list of pairs, optional\n"
    "    Rows that are predicted but never learned: twice per doubling of the number of learned rows, and by the\n"
    "    finished model. :meth:`history` has their losses. They do not change the model.",
    "eval_names": "eval_names : list of str, optional\n    Names of the sets, by default valid_0, valid_1, ...",
    "eval_sample_weight": "eval_sample_weight : list of array-like, optional\n"
    "    Weights of the rows of each set. ``class_weight`` is not applied to them.",
    "eval_exposure": "eval_exposure : list of array-like, optional\n    Exposures of the rows of each set.",
    "groups": "groups : array-like of shape (n_samples,), optional\n"
    "    Labels of groups of dependent rows, such as rows of one patient. A row is no evidence on models that have\n"
    "    learned other rows of its group. ``fit`` learns one group after another. Pass all rows of a group to\n"
    "    ``partial_fit`` consecutively, in one call: rows of a group from an earlier call are not used as evidence.",
}


@dataclass_transform(kw_only_default=True, eq_default=False)
def estimator(kind: type[Estimator]) -> type[Estimator]:
    """Decorate a class whose fields are parameters: add ``__init__``, and describe the fields in the docstring."""
    return described(dataclass(kw_only=True, eq=False, repr=False)(kind))


def documented(method: Any) -> Any:
    """Decorate a method: add descriptions of shared arguments to its docstring."""
    return with_arguments(method, ARGUMENTS)


def shared(name: str, default: Any = None, remark: str = "") -> Any:
    """Return a field for a shared parameter, with a remark on its effect here."""
    return field_of(replace(RECORDS[name], meaning=f"{RECORDS[name].meaning} {remark}".strip()), default)


def loss_of_task(task: str, default: str, remark: str = "") -> Any:
    """Return a field for the loss of a task, with a remark on the default.

    >>> loss_of_task("regression", "square").metadata["parameter"].meaning.partition(", epsilon")[0]
    'square, absolute, absolute-power:P'
    """
    *names, last = losses.usage(task)
    return field_of(Parameter(f"{', '.join(names)} or {last}. {LOSS_REMARKS[task]} {remark}".strip()), default)

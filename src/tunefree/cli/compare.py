"""`tunefree compare`: a model beside others on the same rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated

import typer

from tunefree.cli.options import NEW_ROWS, Files, Json, bad_rows_of, group_of, tell_of_rows
from tunefree.core.errors import ModelError
from tunefree.core.parameters import option
from tunefree.model_files.plan import PROBLEM, Plan

OF_MODELS = (*NEW_ROWS, "groups")  # parameters of a plan that say how rows are read for models that there are


def compare(
    plan: Annotated[Plan, (*PROBLEM, "groups", "exposure")],
    files: Files,
    train: Annotated[
        list[str] | None, typer.Option(metavar="DATA", help="Rows to learn, instead of cross-validation.")
    ] = None,
    n_jobs: Annotated[int | None, typer.Option(metavar="N", min=1, help="Processors to use; by default all.")] = None,
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """A model beside a constant, a logistic or ridge regression, a random forest and gradient boosting.

    Differences are paired: all models predict the same rows. Peers are those of scikit-learn; they, and the model
    unless one is named, learn the rows of --train and predict the others. Without --train, a model that is made here
    and its peers learn and predict by 5-fold cross-validation. For instance:

    tunefree compare people.csv --target income

    tunefree compare test.csv --target income --train people.csv

    tunefree compare people.model test.csv --train people.csv

    tunefree compare first.model second.model test.csv
    """
    from tunefree.cli.display import show
    from tunefree.model_files.trained import load
    from tunefree.report.performance import blocks_of_pairs
    from tunefree.workflows import trials
    from tunefree.workflows.evaluation import note_learned

    names, files = _divided(files)
    _check(names, plan, files.data, train)
    models = {name: load(name) for name in names}
    first = next(iter(models.values()), None)
    bad, learning = (plan.bad_rows(), plan) if first is None else (bad_rows_of(plan), first.plan)
    learned = None
    if train:
        source = replace(files, data=train).source(plan if models else None, is_table=True)
        learned = trials.read(source, learning, bad, first)
    known = first or learned
    source = files.source(plan if known else None, is_table=True)
    data = trials.read(source, learning, bad, known)
    for model in models.values():
        note_learned(model, source, bad)
    groups = plan.groups if first is None else group_of(first, source, plan.groups)
    tell = (lambda line: None) if quiet else partial(typer.echo, err=True)
    comparison = trials.compare(data, models, learned, n_jobs, groups, tell)
    tell_of_rows(bad)
    show(blocks_of_pairs(comparison), json)


def _divided(files: Files) -> tuple[list[str], Files]:
    """The models before the data, and the data."""
    from tunefree.core.storage import is_model

    kinds = [is_model(name) for name in files.data]
    n = sum(kinds)
    if not all(kinds[:n]):
        raise ModelError("name the models before the data")
    if n == len(files.data):
        raise ModelError("there is no data to compare models on; name some after the models")
    if len({*files.data[:n]}) < n:
        raise ModelError("a model is named twice; name different ones")
    return files.data[:n], replace(files, data=files.data[n:])


def _check(models: list[str], plan: Plan, data: list[str], train: list[str] | None) -> None:
    """Raise an error if models, data and options do not fit each other."""
    others = [name for name in plan.changed() if name not in OF_MODELS] if models else []
    if others:
        raise ModelError(f"{option(others[0])} has no effect on models that there are; leave it out")
    if len(models) == 1 and not train:
        problem = f"{models[0]} is compared with nothing"
        raise ModelError(f"{problem}; name the rows that it has learned by `train`, for peers, or a second model")
    for name in data:
        if name != "-" and name in (train or ()):
            raise ModelError(f"{name} would be learned and be what models are judged by; name other rows")

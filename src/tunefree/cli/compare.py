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
        list[str] | None, typer.Option(metavar="DATA", help="Rows that a model has learned: peers learn these.")
    ] = None,
    in_order: Annotated[
        bool, typer.Option("--in-order", help="Rows are in the order of time: each is predicted by earlier ones.")
    ] = False,
    n_jobs: Annotated[int | None, typer.Option(metavar="N", min=1, help="Processors to use; by default all.")] = None,
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """A model beside a constant, a logistic or ridge regression, a random forest and gradient boosting.

    Differences are paired: all models predict the same rows. Peers are those of scikit-learn. Without a model all learn
    and predict by 5-fold cross-validation. With models before the data, these are compared on it, and one model with
    peers that learn the rows of --train. For instance:

    tunefree compare people.csv --target income

    tunefree compare people.model test.csv --train people.csv

    tunefree compare first.model second.model test.csv
    """
    from tunefree.cli.display import show
    from tunefree.model_files.trained import load
    from tunefree.report.performance import blocks_of_pairs
    from tunefree.workflows import trials

    names, files = _divided(files)
    if names:
        others = {**plan.changed(), **({"in_order": True} if in_order else {})}
        for changed in [changed for changed in others if changed not in OF_MODELS]:
            raise ModelError(f"{option(changed)} has no effect on models that there are; leave it out")
    _check_train(names, train, n_jobs, files.data)
    models = {name: load(name) for name in names}
    bad = bad_rows_of(plan) if models else plan.bad_rows()
    tell = (lambda line: None) if quiet else partial(typer.echo, err=True)
    source = files.source(plan if models else None, is_table=True)
    if not models:
        data, groups = trials.read(source, plan, bad), plan.groups
        comparison = trials.beside_peers(data, plan, n_jobs=n_jobs, in_order=in_order, groups=groups, tell=tell)
    else:
        first = models[names[0]]
        groups = group_of(first, source, plan.groups)
        if len(models) > 1:
            comparison = trials.of_models(models, source, bad, groups)
        else:
            learned = replace(files, data=train or []).source(plan, is_table=True)
            parts = [trials.read(rows, first.plan, bad, first) for rows in (learned, source)]
            comparison = trials.beside_peers(
                parts[0], first.plan, parts[1], first, names[0], n_jobs, groups=groups, tell=tell
            )
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


def _check_train(models: list[str], train: list[str] | None, n_jobs: int | None, data: list[str]) -> None:
    """Raise an error unless peers of one model, and only these, learn other rows than those that judge it."""
    if len(models) == 1 and not train:
        problem = f"{models[0]} is compared with nothing"
        raise ModelError(f"{problem}; name the rows that it has learned by `train`, for peers, or a second model")
    if train and len(models) != 1:
        raise ModelError("`train` is for peers beside one model, which learn its rows; leave it out")
    if n_jobs and len(models) > 1:
        raise ModelError("`n_jobs` is for peers, and models that there are learn nothing; leave it out")
    for name in data:
        if name != "-" and name in (train or ()):
            raise ModelError(f"{name} would be learned and be what models are judged by; name other rows")

"""`tunefree compare`: a model beside others on the same rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from tunefree.cli.options import NEW_ROWS, Files, Json, bad_rows_of, group_of, tell_of_rows
from tunefree.core.errors import ModelError
from tunefree.core.parameters import option
from tunefree.model_files.plan import PROBLEM, Plan
from tunefree.serving.settings import is_store

OF_MODELS = (*NEW_ROWS, "groups")  # parameters of a plan that say how rows are read for models that there are


def compare(
    plan: Annotated[Plan, (*PROBLEM, "groups", "exposure")],
    files: Files,
    test: Annotated[
        list[str] | None, typer.Option(metavar="DATA", help="Rows to be judged by, instead of cross-validation.")
    ] = None,
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

    Differences are paired: all models predict the same rows. Peers are those of scikit-learn. Without --test, all
    learn and predict by 5-fold cross-validation. With models before the data, these are compared on it, and one model
    with peers that learn the rows of --train. For instance:

    tunefree compare people.csv --target income

    tunefree compare people.csv --target income --test test.csv

    tunefree compare people.model test.csv --train people.csv

    tunefree compare first.model second.model test.csv
    """
    from tunefree.cli.display import show
    from tunefree.model_files.trained import load
    from tunefree.report.performance import blocks_of_pairs
    from tunefree.workflows import trials

    names, files = _divided(files)
    _check(names, plan, files.data, {"test": test, "train": train, "in_order": in_order, "n_jobs": n_jobs})
    models, groups = {name: load(name) for name in names}, plan.groups
    bad = bad_rows_of(plan) if models else plan.bad_rows()
    if len(models) > 1:
        source = files.source(plan, is_table=True)
        comparison = trials.of_models(models, source, bad, group_of(next(iter(models.values())), source, groups))
    else:
        name, model = next(iter(models.items()), ("tunefree", None))
        learned, judged = (files.data, test) if model is None else (train or [], files.data)
        learning, data_judged = plan if model is None else model.plan, None
        source = replace(files, data=learned).source(plan if models else None, is_table=True)
        data = trials.read(source, learning, bad, model)
        if judged:
            source = replace(files, data=judged).source(plan, is_table=True)
            data_judged = trials.read(source, learning, bad, model or data)
            groups = groups if model is None else group_of(model, source, groups)
        tell = (lambda line: None) if quiet else partial(typer.echo, err=True)
        comparison = trials.beside_peers(data, learning, data_judged, model, name, n_jobs, in_order, groups, tell)
    tell_of_rows(bad)
    show(blocks_of_pairs(comparison), json)


def _divided(files: Files) -> tuple[list[str], Files]:
    """The models before the data, and the data."""
    from tunefree.core.storage import is_model

    kinds = [is_model(name) or is_store(Path(name)) for name in files.data]
    n = sum(kinds)
    if not all(kinds[:n]):
        raise ModelError("name the models before the data")
    if n == len(files.data):
        raise ModelError("there is no data to compare models on; name some after the models")
    return files.data[:n], replace(files, data=files.data[n:])


def _check(models: list[str], plan: Plan, data: list[str], options: dict[str, Any]) -> None:
    """Raise an error if models, data and options do not fit each other."""
    train = options["train"]
    if not models:
        if train:
            raise ModelError("`train` is for a model that there is; leave it out, or name the model before the data")
        if options["test"] and options["in_order"]:
            raise ModelError("`in_order` is for cross-validation; leave `in_order` or `test` out")
    else:
        others = [name for name in plan.changed() if name not in OF_MODELS]
        for name in [*others, *(name for name in ("test", "in_order") if options[name])]:
            raise ModelError(f"{option(name)} has no effect on models that there are; leave it out")
        for name in [name for name in ("train", "n_jobs") if options[name]] if len(models) > 1 or not train else ():
            raise ModelError(f"`{name}` is for peers beside one model, which learn the rows of `train`; leave it out")
        if len(set(models)) < len(models):
            raise ModelError("a model is named twice; name different ones")
        if len(models) == 1 and not train:
            problem = f"{models[0]} is compared with nothing"
            raise ModelError(f"{problem}; name the rows that it has learned by `train`, for peers, or a second model")
    for name in data:
        if name != "-" and name in (train or options["test"] or ()):
            raise ModelError(f"{name} would be learned and be what models are judged by; name other rows")

"""`tunefree compare`: a model beside others on the same rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tunefree.cli.options import NEW_ROWS, Files, Json, bad_rows_of, tell_of_rows
from tunefree.core.errors import ModelError
from tunefree.core.parameters import option
from tunefree.model_files.plan import PROBLEM, Plan

if TYPE_CHECKING:
    from tunefree.workflows.paired import PairedComparison

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
    from tunefree.report.paired import blocks_of_pairs

    models, files = _divided(files)
    tell = _teller(quiet)
    if models:
        comparison = _of_models(models, plan, files, test, train, in_order, n_jobs, tell)
    else:
        comparison = _of_data(plan, files, test, train, in_order, n_jobs, tell)
    show(blocks_of_pairs(comparison), json)


def _divided(files: Files) -> tuple[list[str], Files]:
    """The models before the data, and the data."""
    from tunefree.core.storage import is_model

    n = next((k for k, name in enumerate(files.data) if not is_model(name)), len(files.data))
    if n == len(files.data):
        raise ModelError("there is no data to compare models on; name some after the models")
    return files.data[:n], replace(files, data=files.data[n:])


def _check_apart(files: list[str], others: list[str] | None) -> None:
    """Raise an error if rows would be judged by models that have learned them."""
    for name in files:
        if name != "-" and name in (others or ()):
            raise ModelError(f"{name} would be learned and be what models are judged by; name other rows")


def _teller(quiet: bool) -> Any:
    if quiet:
        return lambda line: None
    return lambda line: typer.echo(line, err=True)


def _of_data(
    plan: Plan, files: Files, test: Any, train: Any, in_order: bool, n_jobs: int | None, tell: Any
) -> PairedComparison:
    from tunefree.workflows import trials

    if train:
        raise ModelError("`train` is for a model that there is; leave it out, or name the model before the data")
    _check_apart(files.data, test)
    if test and in_order:
        raise ModelError("`in_order` is for cross-validation; leave `in_order` or `test` out")
    bad = plan.bad_rows()
    data = trials.read(files.source(is_table=True), plan, bad)
    judged = None
    if test:
        judged = trials.read(replace(files, data=test).source(plan, is_table=True), plan, bad, data)
    tell_of_rows(bad)
    return trials.beside_peers(data, plan, judged, None, "tunefree", n_jobs, in_order, plan.groups, tell)


def _of_models(
    names: list[str], plan: Plan, files: Files, test: Any, train: Any, in_order: bool, n_jobs: int | None, tell: Any
) -> PairedComparison:
    from tunefree.model_files.trained import load
    from tunefree.workflows import trials

    others = [name for name in plan.changed() if name not in OF_MODELS]
    others += [name for name, value in (("test", test), ("in_order", in_order)) if value]
    for name in others:
        raise ModelError(f"{option(name)} has no effect on models that there are; leave it out")
    for name, value in (("train", train), ("n_jobs", n_jobs)):
        if value and (len(names) > 1 or not train):
            raise ModelError(f"`{name}` is for peers beside one model, which learn the rows of `train`; leave it out")
    if len(set(names)) < len(names):
        raise ModelError("a model is named twice; name different ones")
    models, bad = {name: load(name) for name in names}, bad_rows_of(plan)
    source = files.source(plan, is_table=True)
    if len(models) > 1:
        comparison = trials.of_models(models, source, bad, plan.groups)
    else:
        if not train:
            problem = f"{names[0]} is compared with nothing"
            raise ModelError(f"{problem}; name the rows that it has learned by `train`, for peers, or a second model")
        _check_apart(files.data, train)
        [(name, trained)] = models.items()
        data = trials.read(replace(files, data=train).source(plan, is_table=True), trained.plan, bad, trained)
        judged = trials.read(source, trained.plan, bad, trained)
        comparison = trials.beside_peers(data, trained.plan, judged, trained, name, n_jobs, False, plan.groups, tell)
    tell_of_rows(bad)
    return comparison

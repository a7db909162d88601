"""What `tunefree inspect` prints, of models of every kind."""

from __future__ import annotations

import json
from typing import Any

import typer

from tunefree.cli.display.common import order_told, show_blocks, table_of
from tunefree.cli.display.path import WATCHED, losses_at_stop, number
from tunefree.cli.display.terms import facts_of_terms, table_of_terms
from tunefree.core.console import plain_console
from tunefree.core.parameters import as_options
from tunefree.explanation.decomposition import Decomposition
from tunefree.model_files.trained import Trained
from tunefree.report.learned import table_of_columns
from tunefree.report.members import facts_of_members, tables_of_members
from tunefree.report.terms import largest, table_of_features
from tunefree.report.told import describe, goal_of, losses_of, rows_told, without_weights
from tunefree.report.told_columns import facts_of_columns
from tunefree.training.repeats import repeats_told
from tunefree.training.rises import rises_of, rises_told
from tunefree.workflows.certification import order_of


def show_model(trained: Any, decomposition: Decomposition | None, top: int, as_json: bool, label: Any = None) -> None:
    """Print rows, losses, members, and what columns and features matter.

    Parameters
    ----------
    trained : Trained
    decomposition : Decomposition, optional
        The terms of the model, if it has any that can be compared.
    top : int
        Most columns and features that are printed; 0 for all.
    as_json : bool
    label : label, optional
        The class whose terms are printed.
    """
    model, names = trained.model, trained.encoder.names()
    if as_json:
        of_columns = facts_of_columns(trained) | facts_of_terms(decomposition, top, label)
        typer.echo(json.dumps(facts(trained) | of_columns | {"features": _features(model, names, top)}))
        return
    console = plain_console()
    for line in [*story(trained), *map(table_of, table_of_columns(trained, top))]:
        console.print(line)
    show_blocks(console, details(trained))
    for line in table_of_terms(decomposition, top, label):
        console.print(line)
    show_blocks(console, table_of_features(model, names, top))
    if not model.has_weights:
        console.print(without_weights(model))


def _features(model: Any, names: Any, top: int) -> list[dict[str, Any]]:
    """The features of the largest weights, for JSON."""
    if not model.has_weights:
        return []
    weights = model.mean_weights()
    return [
        {"feature": names[j], "importance": size, "weights": weights[j].tolist()}
        for j, size in largest(weights[: len(names)], top)
    ]


def facts(trained: Trained) -> dict[str, Any]:
    """What is known of a model besides its features, for JSON."""
    if trained.model.kind == "path":
        return _facts_of_a_path(trained)
    model, progress = trained.model, trained.progress
    return {
        "task": model.task,
        "learner": model.learner,
        "classes": model.classes,
        "progressive": [{"loss": t.mean_loss(), "error": t.mean_error(), "rows": t.rows} for t in progress.progressive],
        **facts_of_members(model),
        **order_of(trained),
        **rises_of(trained),
        "complete": progress.complete,
    }


def story(trained: Trained) -> list[Any]:
    """What is known of a model besides its features, for people: lines and tables."""
    if trained.model.kind == "path":
        return _story_of_a_path(trained)
    model, progress = trained.model, trained.progress
    seen = progress.progressive[0]
    losses = ", ".join(f"{title} {value}" for title, value in losses_of(model, seen).items())
    lines: list[Any] = [describe(trained) + ("" if progress.complete else "; a checkpoint, not trained to the end")]
    rows, n_features = rows_told(seen.rows, trained.plan, " learned"), len(trained.encoder.names())
    lines.append(f"{rows}, {n_features:,} features; progressive {losses}")
    return [*lines, *order_told(trained), *map(as_options, repeats_told(trained)), *rises_told(trained)]


def details(trained: Trained) -> list[Any]:
    """Who learned, as blocks of a report; nothing where one learner did."""
    if trained.model.kind == "path" or len(trained.model.members) < 2:
        return []
    return tables_of_members(trained.model)


def _facts_of_a_path(trained: Trained) -> dict[str, Any]:
    model = trained.model
    kernel = model.estimator.kernel
    return {
        "task": model.task,
        "learner": "early-stopping",
        "loss": model.loss,
        "kernel": kernel,
        **({} if kernel is None else {"gamma": model.estimator.gamma_}),
        "classes": model.classes,
        "rows": trained.progress.rows,
        "stop": model.stop,
        "iterations": len(model.path),
        **{name: number(model.path[name][model.stop - 1]) for name in WATCHED},
    }


def _story_of_a_path(trained: Trained) -> list[Any]:
    model = trained.model
    kernel = model.estimator.kernel
    how = "weights of features" if kernel is None else f"kernel {kernel}, gamma {model.estimator.gamma_:.3g}"
    figures = ", ".join(f"{title} {value}" for title, value in losses_at_stop(trained).items())
    return [
        f"{goal_of(trained)}; loss {model.loss}, {how}, stopped early",
        f"{trained.progress.rows:,} rows, {model.n_features:,} features; iteration {model.stop:,} of "
        f"{len(model.path):,}, {figures}",
    ]

"""What `tunefree inspect` prints, of models of every kind."""

from __future__ import annotations

import json
from functools import singledispatch
from typing import Any

import numpy as np
import typer
from rich.table import Table

from tunefree.cli.display.columns import table_of_columns
from tunefree.cli.display.common import table_of_names
from tunefree.cli.display.deployment import facts_of_expectation, table_of_ages
from tunefree.cli.display.order import order_told
from tunefree.cli.display.path import WATCHED, losses_at_stop, number
from tunefree.cli.display.terms import facts_of_terms, table_of_terms
from tunefree.core.console import plain_console
from tunefree.explanation.decomposition import Decomposition
from tunefree.model.model import Model
from tunefree.model.targets import ScoredModel
from tunefree.report.told import describe, goal_of, losses_of
from tunefree.report.told_columns import facts_of_columns
from tunefree.report.told_shares import (
    caveat_of_weights,
    facts_of_curves,
    line_of_curves,
    meaning_of_shares,
    share_of_weights,
    without_weights,
)
from tunefree.workflows.certification import order_of
from tunefree.workflows.stopped_model import StoppedModel
from tunefree.workflows.training import Trained

MOST_COLUMNS = 6  # of shares along the stream


def show_model(trained: Any, found: Decomposition | None, top: int, as_json: bool, label: Any = None) -> None:
    """Print rows, losses, and what columns, pairs of columns and features matter.

    Parameters
    ----------
    trained : Trained or StoppedModel
    found : Decomposition, optional
        The terms of the model, if it has any that can be compared.
    top : int
        Most terms and features that are printed; 0 for all.
    as_json : bool
    label : label, optional
        The class whose terms are printed.
    """
    model, names = trained.model, trained.encoder.names()
    weights = model.mean_weights() if model.has_weights else np.zeros((0, 1))
    importance = np.abs(weights[: len(names)]).max(axis=1)
    order = np.argsort(-importance, kind="stable")
    order = order[importance[order] > 0][: top or None]
    if as_json:
        features = [
            {"feature": names[j], "importance": importance[j], "weights": weights[j].tolist()} for j in order.tolist()
        ]
        typer.echo(
            json.dumps(
                facts(trained) | facts_of_columns(trained) | facts_of_terms(found, top, label) | {"features": features}
            )
        )
        return
    console = plain_console()
    for line in [*story(trained), *table_of_columns(trained, top), *table_of_terms(found, top, label)]:
        console.print(line)
    if not model.has_weights:
        console.print(without_weights(model))
        return
    console.print(_importances(model, names, weights, importance, order))
    console.print("importance: |weight| x size of the feature in its own units, so that scales do not matter")
    for line in caveat(trained):
        console.print(line)


@singledispatch
def caveat(trained: Any) -> list[str]:
    """What weights of features do not show, as lines; by default they show all."""
    return []


@singledispatch
def facts(trained: Any) -> dict[str, Any]:
    """What is known of a model besides its features, for JSON.

    Parameters
    ----------
    trained : Trained or StoppedModel
        A function is registered for each kind of model.

    Returns
    -------
    dict
    """
    raise TypeError(f"{type(trained).__name__} is no trained model")


@singledispatch
def story(trained: Any) -> list[Any]:
    """What is known of a model besides its features, for people: lines and tables.

    Parameters
    ----------
    trained : Trained or StoppedModel
        A function is registered for each kind of model.

    Returns
    -------
    list of str and Table
    """
    raise TypeError(f"{type(trained).__name__} is no trained model")


@facts.register(Trained)
def facts_of_passes(trained: Trained) -> dict[str, Any]:
    model, progress = trained.model, trained.progress
    return {
        "task": model.task,
        "learner": model.learner,
        "classes": model.classes,
        "progressive": [{"loss": t.mean_loss(), "error": t.mean_error(), "rows": t.rows} for t in progress.progressive],
        "members": model.shares_by_member(),
        "history": model.history,
        "share_of_weights": share_of_weights(model),
        **facts_of_curves(model),
        **order_of(trained),
        **facts_of_expectation(trained),
        "complete": progress.complete,
    }


@story.register(Trained)
def story_of_passes(trained: Trained) -> list[Any]:
    model, progress = trained.model, trained.progress
    seen = progress.progressive[0]
    losses = ", ".join(f"{title} {value}" for title, value in losses_of(model, seen).items())
    lines: list[Any] = [describe(trained) + ("" if progress.complete else "; a checkpoint, not trained to the end")]
    lines.append(f"{seen.rows:,} rows seen, {len(trained.encoder.names()):,} features; progressive {losses}")
    lines += [*order_told(trained), *table_of_ages(trained), *line_of_curves(model)]
    return lines + ([_shares(model)] if len(model.members) > 1 or model.history else [])


@caveat.register(Trained)
def caveat_of_passes(trained: Trained) -> list[str]:
    found = caveat_of_weights(trained.model)
    return [] if found is None else [found]


@facts.register(StoppedModel)
def facts_of_a_path(found: StoppedModel) -> dict[str, Any]:
    kernel = found.estimator.kernel
    return {
        "task": found.task,
        "learner": "early-stopping",
        "loss": found.model.loss,
        "kernel": kernel,
        **({} if kernel is None else {"gamma": found.estimator.gamma_}),
        "classes": found.model.classes,
        "rows": found.rows,
        "stop": found.stop,
        "iterations": len(found.path),
        **{name: number(found.path[name][found.stop - 1]) for name in WATCHED},
    }


@story.register(StoppedModel)
def story_of_a_path(found: StoppedModel) -> list[Any]:
    kernel = found.estimator.kernel
    how = "weights of features" if kernel is None else f"kernel {kernel}, gamma {found.estimator.gamma_:.3g}"
    figures = ", ".join(f"{title} {value}" for title, value in losses_at_stop(found).items())
    return [
        f"{goal_of(found)}; loss {found.model.loss}, {how}, stopped early",
        f"{found.rows:,} rows, {found.model.n_features:,} features; iteration {found.stop:,} of {len(found.path):,}, "
        f"{figures}",
    ]


def _importances(
    model: ScoredModel, names: Any, weights: np.ndarray, importance: np.ndarray, order: np.ndarray
) -> Table:
    """A table of features in an order, with their weights."""
    table = table_of_names("feature")
    table.add_column("importance", justify="right")
    outputs = model.classes if model.n_outputs > 1 else [model.classes[-1] if model.classes else "prediction"]
    for label in outputs[:8]:
        table.add_column(str(label), justify="right")
    for j in order.tolist():
        table.add_row(names[j], f"{importance[j]:.4g}", *(f"{weight:+.4g}" for weight in weights[j][:8]))
    return table


def _shares(model: Model) -> Table:
    """A table of each member's share in predictions along the stream; a dash where it has been pruned."""
    last = model.shares_by_member()
    kept = model.history[:: max(1, -(-len(model.history) // MOST_COLUMNS))]
    table = Table("member", box=None, header_style="bold", pad_edge=False)
    for moment in kept:
        table.add_column(f"{moment['rows']:,}", justify="right")
    table.add_column("now" if model.deployment is None else "new rows", justify="right")
    names = {name: None for moment in model.history for name in moment["shares"]} | dict.fromkeys(last)
    for name in sorted(names, key=lambda name: -last.get(name, -1.0)):
        along = [moment["shares"].get(name) for moment in kept]
        cells = ["-" if share is None else f"{100 * share:.1f}" for share in [*along, last.get(name)]]
        table.add_row(name, *cells)
    table.caption = f"{meaning_of_shares(model)}, per cent, after so many rows"
    if model.deployment is not None:
        table.caption += "; then of rows that are predicted without learning on"
    table.caption_justify = "left"
    return table

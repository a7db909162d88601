"""Rises of the loss along the stream: whether it became harder to predict, from which row on, and by how much."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from tunefree.model.targets import RunningMean
from tunefree.model_files.trained import Trained
from tunefree.pool.groups import starts_of_runs
from tunefree.stream.batch import Origin
from tunefree.theory.rises import LEVEL
from tunefree.training.pieces import Step

RISE = (
    "the loss rose at about row {row:,} ({file}, row {row_in_file}): {loss:.4g} on {rows:,} rows from there,"
    " {loss_before:.4g} on the {rows_before:,} before; what is to be learned may have changed there, or the columns"
    " (a test of level {level:g} for independent rows){others}"
)

EARLIER = "rows learned earlier"


def follow(trained: Trained, step: Step, origin: Origin) -> None:
    """Take note of the losses of rows of the first pass, each predicted before it was learned.

    Rows of a group are alike, so that a run of them counts as one row, which has their mean.

    Parameters
    ----------
    trained : Trained
        Its rises are changed.
    step : Step
        Of rows that were read.
    origin : callable
        From a file and the number of a row in it to those that the user knows.
    """
    rises, (piece, _, losses), batch = trained.rises, step, step.piece.read.batch
    if rises is None:
        return
    weight, scale, starts = piece.weight, np.ones(len(losses)), np.arange(len(losses))
    if trained.model.task == "regression":
        guess = RunningMean(*rises.targets.tolist())
        scale = trained.model.losses(piece.y, guess.add(weight, piece.y)[:, None])
        rises.targets = np.array([guess.weight, guess.total])
    if piece.groups is not None:
        starts = starts_of_runs(piece.groups)
        weight = np.where(np.isnan(losses) | np.isnan(scale), 0.0, weight)
        of_rows = np.column_stack([weight, *(weight * np.nan_to_num(each) for each in (losses, scale))])
        weight, losses, scale = np.add.reduceat(of_rows, starts, axis=0).T
        losses, scale = (total / np.where(weight > 0.0, weight, 1.0) for total in (losses, scale))
    before = trained.progress.rows - len(piece.weight)

    def place(row: int) -> tuple[int, str, int]:
        first = int(starts[row])
        return before + first + 1, *origin(batch.file, int(batch.numbers[first]))

    rises.add(losses, weight, scale, place)


def end(trained: Any) -> None:
    """The pass is over: forget in which file a rise might begin; a model must not depend on where its data lie."""
    if trained.rises is not None:
        row = trained.rises.place[0]
        trained.rises.place = (row, EARLIER, row)


def rises_told(trained: Any) -> list[str]:
    """A line on the largest rise of the loss, and how many more there were; none otherwise.

    Parameters
    ----------
    trained : Trained
    """
    if trained.rises is None or not trained.rises.rises:
        return []
    rise = max(trained.rises.rises, key=lambda rise: rise.loss - rise.loss_before)
    more = trained.rises.count - 1
    others = f"; {more:,} smaller rise{'s' if more > 1 else ''} in `tunefree inspect --json`" if more else ""
    return [RISE.format(**asdict(rise), level=LEVEL, others=others)]


def rises_of(trained: Any) -> dict[str, Any]:
    """All rises of the loss, for JSON; empty where losses are not in the order of the rows, as over shards."""
    if trained.rises is None:
        return {}
    known = [asdict(rise) for rise in trained.rises.rises]
    return {"rises": {"level": LEVEL, "count": trained.rises.count, "first": known}}

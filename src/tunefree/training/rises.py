"""Drift: rises of the loss along the stream, their first rows and sizes, and the columns that changed most there."""

from __future__ import annotations

from copy import copy
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from tunefree.core.rows import rows_at
from tunefree.model_files.trained import Trained
from tunefree.pool.groups import starts_of_runs
from tunefree.pool.targets import Labels, RunningMean
from tunefree.stream.batch import Batch, Origin
from tunefree.stream.columns import MICROSECONDS_A_DAY, Timestamp
from tunefree.stream.keys import MOST_CODES
from tunefree.stream.layout import MISSING, Layout
from tunefree.theory.column_changes import TARGET, Bin
from tunefree.theory.rises import Place, Rise
from tunefree.training.callbacks import Step

MOST_NAMED = 3  # columns named in a line
VALUES, RELATION = "values", "relation to the target"  # aspects of a column that may change

EARLIER = "rows learned earlier"


def follow(trained: Trained, step: Step, origin: Origin) -> None:
    """Record the losses of rows of the first pass; consecutive rows of a group count as one row."""
    rises, samples, (batch, learned, _, losses) = trained.rises, trained.samples, step
    if rises is None or samples is None:
        return
    weight, scale, starts = learned.weight, np.ones(len(losses)), np.arange(len(losses))
    if trained.model.task == "regression":
        guess = RunningMean(*rises.targets.tolist())
        scale = trained.model.losses(learned.target, guess.add(weight, learned.target)[:, None])
        rises.targets = np.array([guess.weight, guess.total])
    if learned.groups is not None:
        starts = starts_of_runs(learned.groups)
        weight = np.where(np.isnan(losses) | np.isnan(scale), 0.0, weight)
        weighted = np.column_stack([weight, *(weight * np.nan_to_num(values) for values in (losses, scale))])
        weight, losses, scale = np.add.reduceat(weighted, starts, axis=0).T
        losses, scale = (total / np.where(weight > 0.0, weight, 1.0) for total in (losses, scale))
    used = np.flatnonzero((weight > 0.0) & ~np.isnan(losses) & ~np.isnan(scale))
    losses, weight, scale, starts = losses[used], weight[used], scale[used], starts[used]
    offset, start = trained.progress.rows - len(batch.weight), 0
    while start < len(starts):

        def place(row: int, starts: np.ndarray = starts[start:]) -> Place:
            first = int(starts[row])
            file, number = origin(batch.file, int(batch.numbers[first]))
            return Place(offset + first + 1, file, number, time_of(trained.encoder, batch, first))

        def matrix(places: np.ndarray, starts: np.ndarray = starts[start:]) -> np.ndarray:
            rows = starts[places]
            return samples.matrix(rows_at(batch.rows, rows), _targets(trained, learned.target, rows))

        added = rises.add(losses[start:], weight[start:], scale[start:], place)
        samples.add(added.rows, added.rows_of_rise or rises.rows_since, matrix)
        if added.rows_of_rise or samples.rows >= samples.stop > 0:
            _compare(trained, added.rows_of_rise)
            if added.rows_of_rise:
                samples.note_rise(added.rows_of_rise, rises.rises[-1].row if added.is_kept else 0)
            samples.add(0, rises.rows_since, matrix)  # releases rows that are no longer needed
        start += added.rows


def _targets(trained: Trained, y: Any, rows: np.ndarray) -> np.ndarray:
    """The targets of the given rows as floats; labels become class indices."""
    if trained.model.task == "regression":
        return np.asarray(y[rows], float)
    return np.asarray(trained.model.codes(Labels(y.values, y.codes[rows]))[0], float)


def _compare(trained: Any, n_others: int = 0) -> None:
    """Compare columns at the pending rise, by all rows so far except the latest ``n_others``."""
    samples, rises = trained.samples, trained.rises
    comparison = samples.comparison(_moments(trained), n_others)
    rises.rises = [replace(rise, comparison=comparison) if rise.row == samples.row else rise for rise in rises.rises]
    samples.end_comparison()


def _moments(trained: Any) -> frozenset[int]:
    """Keys of date columns, which are excluded because later rows naturally have later dates."""
    dates = {column.name for column in getattr(trained.encoder, "columns", ()) if column.kind == Timestamp.kind}
    if not dates:
        return frozenset()
    layout = Layout.of_encoder(trained.encoder)
    return frozenset(key for key in trained.samples.columns.keys if layout.parts[layout.part_of(key)].column in dates)


def time_of(encoder: Any, batch: Batch, row: int) -> str | None:
    """The time of a row in ISO 8601, from the first date column that the first rows have; None if missing."""
    columns, X = getattr(encoder, "columns", ()), batch.rows
    index = next(
        (index for index, column in enumerate(columns) if column.kind == Timestamp.kind and not column.since), None
    )
    if index is None:
        return None
    column, feature = columns[index], sum(len(column.dense_names()) for column in columns[:index])
    year = np.flatnonzero(X.code_columns == MOST_CODES * index)
    if not len(year) or not X.codes[row, year[0]] or column.origin is None:
        return None
    since = round(float(X.numbers[row, feature]) * MICROSECONDS_A_DAY)
    moment = np.datetime64(column.origin + since, "us").astype("M8[s]")
    return str(moment if column.hours else moment.astype("M8[D]")) + ("Z" if column.zone else "")


def end(trained: Any) -> None:
    """End the pass: forget the name of the last file, because models must not depend on file names."""
    if trained.rises is not None:
        row, *_, time = trained.rises.place
        trained.rises.place = Place(row, EARLIER, row, time)


def changed_most(rise: dict[str, Any]) -> str:
    """A phrase on the columns that changed most at a rise of :func:`drifts_of`.

    >>> values = {"column": "age", "of": "values", "distance": 0.5, "error": 0.02, "bin": "18 to 25"}
    >>> shares = {"share_before": 0.1, "share_after": 0.6}
    >>> changed_most({"rows_compared": [512, 200], "columns_compared": 9, "changed": [values | shares]})
    "changed most: 'age' (18 to 25: 10 % of the rows before, 60 % after)"
    """
    if not rise["columns_compared"]:
        return "too few rows to compare columns, {} before and {} after".format(*rise["rows_compared"])
    if not rise["changed"]:
        return "no column differs by more than chance allows, by {} rows before and {} after".format(
            *rise["rows_compared"]
        )
    shares = "{column!r} ({bin}: {share_before:.0%} of the rows before, {share_after:.0%} after)"
    relation = "how the target depends on {column!r} (distance {distance:.2f} ± {error:.2f})"
    words = [(shares if one["of"] == VALUES else relation).format(**one) for one in rise["changed"][:MOST_NAMED]]
    return "changed most: " + ", ".join(words).replace("%", " %")


def drifts_of(trained: Any) -> list[dict[str, Any]]:
    """The largest and the latest rise of the loss, with the columns that changed most, for JSON."""
    if trained.rises is None or not trained.rises.rises:
        return []
    if trained.samples.row:
        trained = replace(trained, rises=copy(trained.rises), samples=copy(trained.samples))
        _compare(trained)
    layout = Layout.of_encoder(trained.encoder)
    return [_described(rise, trained, layout) for rise in trained.rises.rises]


def _described(rise: Rise, trained: Trained, layout: Any) -> dict[str, Any]:
    """A rise as a dict with column names."""
    fields, comparison = asdict(rise), rise.comparison
    del fields["comparison"]
    changed: dict[tuple[str, str], dict[str, Any]] = {}
    for change in comparison.changes:  # the part of a column that changed most represents it
        column = {"column": _column(change.key, trained, layout), "of": RELATION if change.is_relation else VALUES}
        described: dict[str, Any] = column | {"distance": change.distance, "error": change.error}
        if change.bin is not None:
            shares = {"share_before": change.before, "share_after": change.after}
            described |= {"bin": _bin_named(change.key, change.bin, trained, layout), **shares}
        changed.setdefault((column["column"], column["of"]), described)
    rows = [comparison.rows_before, comparison.rows_after]
    return fields | {"rows_compared": rows, "columns_compared": comparison.columns, "changed": list(changed.values())}


def _column(key: int, trained: Trained, layout: Layout) -> str:
    if key == TARGET:
        return trained.plan.target or "the label"
    return layout.parts[layout.part_of(key)].column


def _bin_named(key: int, content: Bin, trained: Trained, layout: Layout) -> str:
    """The values of a bin of a column in words."""
    kind, low, high = content
    if low is None:
        return "rare categories" if kind == "rare" else MISSING
    if kind == "numbers":
        return f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"
    return str(trained.model.classes[int(low)]) if key == TARGET else layout.label(int(low))

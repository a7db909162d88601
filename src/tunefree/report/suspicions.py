"""Section of a report: what looks wrong with the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tunefree.explanation.decomposition import Decomposition
from tunefree.explanation.importance import importance
from tunefree.explanation.told import percent
from tunefree.report.document import Note, Section, Table
from tunefree.report.learned import missing_shares
from tunefree.report.told import REASON_TITLES, oddities_told, order_warning, reasons_told, sentence
from tunefree.report.told_columns import FEWEST_NAMED, naming_columns
from tunefree.stream.layout import Layout
from tunefree.stream.profile import FEWEST, LEVEL, largest_difference, most_by_chance
from tunefree.stream.tally import Tally
from tunefree.workflows.rises import rises_told
from tunefree.workflows.training import Trained

GIVES_AWAY = 0.9  # part of the importance of all columns that one has
SURE = 0.02  # error below which that is suspicious
TENTH = 10
MOSTLY_MISSING = 0.5
NAMING = "columns of many different values, which may name the rows"
CONSTANT = "constant columns"
TELLING = "columns that give the target away"
DRIFT = "drift between the first and the last rows"


class Skipped(NamedTuple):
    """Rows that could not be used."""

    where: str
    tally: Tally


def suspicions(trained: Trained, decomposition: Decomposition | None, skipped: list[Skipped]) -> Section:
    """What looks wrong.

    Parameters
    ----------
    trained : Trained
    decomposition : Decomposition, optional
        Its terms.
    skipped : list of Skipped
    """
    notes = [Note(sentence(text), "warning") for text in _warnings(trained, decomposition)]
    notes += [
        Note(f"{source.where}: {line}.", "warning")
        for source in skipped
        for line in oddities_told(source.tally.oddities())
    ]
    skipped = [source for source in skipped if source.tally.count]
    notes += [Note(f"{source.where}: {source.tally.count:,} rows were skipped.", "warning") for source in skipped]
    reasons = [_reasons_table(source) for source in skipped if source.tally.by_reason]
    drifting = _drift_table(trained)
    sound = [] if notes or drifting else [Note(_sound(trained, decomposition))]
    return Section("suspicions", "What looks wrong with the data", [*notes, *reasons, *drifting, *sound])


def _sound(trained: Trained, decomposition: Decomposition | None) -> str:
    """What was looked at and is as it should be, and what could not be looked at."""
    is_table, sample = trained.kind == "table", _sample(trained)
    judged = {
        NAMING: is_table and trained.progress.progressive[0].rows >= FEWEST_NAMED,
        CONSTANT: is_table and sample is not None,
        TELLING: decomposition is not None and trained.model.task == "classification",
        DRIFT: sample is not None and _rows_compared(sample) >= FEWEST,
    }
    sound = "; ".join(["rows skipped", *(check for check, is_judged in judged.items() if is_judged)])
    unknown = "; ".join(check for check, is_judged in judged.items() if not is_judged)
    return f"Looked at, and as it should be: {sound}." + (f" Not looked at: {unknown}." if unknown else "")


def _reasons_table(skipped: Skipped) -> Table:
    title = f"Why rows were skipped: {skipped.where.lower()}"
    return Table(title, list(REASON_TITLES), reasons_told(skipped.tally.reasons()), numeric_from=2)


class Sample(NamedTuple):
    """Rows that a model keeps, by part of a column."""

    parts: list[int]
    values: list[np.ndarray]  # of all
    first: list[np.ndarray]  # of early ones
    last: list[np.ndarray]  # of late ones


def _sample(trained: Trained) -> Sample | None:
    """The rows that a pool keeps for growing; None where there are none.

    As long as these are all rows, they are in their order: the first and the last tenth are compared. Later, the
    sample of all rows is compared with the latest ones.
    """
    model: Any = trained.model
    growth = model.pool.members.growth if model.options.is_pool else None
    if growth is None or not growth.whole.rows:
        return None
    layout, matrix = Layout.of_encoder(trained.encoder), growth.whole.kept()["columns"]
    n = len(matrix) // TENTH
    first, last = matrix[:n], matrix[len(matrix) - n :]
    if growth.whole.rows > growth.whole.capacity:
        first, last = matrix, growth.recent.kept(min(growth.recent.rows, growth.recent.capacity))["columns"]
    parts, columns = [], []
    for place, key in enumerate(growth.columns.keys[: matrix.shape[1]]):
        part = int(layout.of_feature[key]) if key > 0 else layout.code_source(-1 - key)[1]
        if part >= 0 and part not in parts:  # codes of a number only say where it is missing
            parts.append(part)
            rank = _ranks_of(layout, matrix[:, place]) if key < 0 else np.asarray
            columns.append([rank(rows[:, place]) for rows in (matrix, first, last)])
    return Sample(parts, *(list(values) for values in zip(*columns, strict=True)))


def _rows_compared(sample: Sample) -> int:
    """Rows of the smaller of the samples that are compared."""
    return min(len(sample.first[0]), len(sample.last[0])) if sample.parts else 0


def _warnings(trained: Trained, decomposition: Decomposition | None) -> list[str]:
    rows = trained.progress.progressive[0].rows
    texts = [text for text in (order_warning(trained), *rises_told(trained)) if text]
    texts += [
        f"column “{name}” has {count:,} different values in {rows:,} rows: it may name the rows, and then tells nothing"
        f" of others; pass --ignore {name}."
        for name, count in naming_columns(trained)
    ]
    texts += [f"column “{name}” has the same value in all rows kept." for name in constant_columns(trained)]
    texts += [
        f"column “{name}” is missing in {100 * share:.1f} % of the rows kept."
        for name, share in missing_shares(trained).items()
        if share > MOSTLY_MISSING
    ]
    return texts + giving_away(trained, decomposition)


def giving_away(trained: Trained, decomposition: Decomposition | None) -> list[str]:
    """A warning where one column contributes nearly all, and nearly all predictions are right.

    Parameters
    ----------
    trained : Trained
    decomposition : Decomposition, optional
    """
    if decomposition is None or trained.model.task == "regression":
        return []
    columns, error = importance(decomposition), trained.progress.progressive[0].mean_error()
    if len(columns.names) < 2 or error >= SURE:
        return []
    share = float(columns.sizes[0] / columns.sizes.sum())
    if share <= GIVES_AWAY:
        return []
    return [
        f"column “{columns.names[0]}” alone has {percent(share)} of the importance of all columns, and only"
        f" {100 * error:.2f} % of the predictions were wrong: it may give the target away. Is it known when predictions"
        " are made?"
    ]


def constant_columns(trained: Trained) -> list[str]:
    """Columns of numbers or categories that have one value in all rows kept.

    Parameters
    ----------
    trained : Trained
    """
    sample = _sample(trained)
    if sample is None:
        return []
    layout = Layout.of_encoder(trained.encoder)
    kinds = {column.name: column.kind for column in getattr(trained.encoder, "columns", [])}
    different: dict[str, set[int]] = {}
    for part, values in zip(sample.parts, sample.values, strict=True):
        different.setdefault(layout.parts[part].column, set()).add(len(np.unique(values)))
    whole = {name for name, counts in different.items() if counts == {1}}
    return [name for name in kinds if name in whole and kinds[name] in ("number", "category", "boolean")]


def _ranks_of(layout: Layout, column: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """What puts codes in the order of their labels: that in which they first came would depend on the order of rows.

    A code that is not in ``column``, and a missing one, comes first.
    """
    different = np.unique(column[~np.isnan(column)])
    labels = [layout.label(int(code)) for code in different]
    ranks = np.empty(len(labels))
    ranks[sorted(range(len(labels)), key=labels.__getitem__)] = 1.0 + np.arange(len(labels))

    def ranked(codes: np.ndarray) -> np.ndarray:
        places = np.minimum(np.searchsorted(different, codes), max(len(different) - 1, 0))
        return np.where(different[places] == codes, ranks[places], 0.0) if len(different) else np.zeros(len(codes))

    return ranked


def drifting(trained: Trained) -> list[tuple[str, float, float]]:
    """Parts of columns whose values in early and in late rows differ.

    The distance of two samples is the largest difference of their empirical distribution functions. If rows are
    exchangeable, no column is beyond :func:`tunefree.stream.profile.most_by_chance` with a probability of 1 - LEVEL.

    Parameters
    ----------
    trained : Trained

    Returns
    -------
    list of (name, distance, bound)
        The largest distance first.
    """
    sample = _sample(trained)
    if sample is None or _rows_compared(sample) < FEWEST:
        return []
    n = _rows_compared(sample)
    layout = Layout.of_encoder(trained.encoder)
    bound = most_by_chance(n, len(sample.parts), LEVEL)
    distances = map(largest_difference, sample.first, sample.last)
    beyond = [
        (layout.parts[part].name, distance, bound)
        for part, distance in zip(sample.parts, distances, strict=True)
        if distance > bound
    ]
    return sorted(beyond, key=lambda each: -each[1])


def _drift_table(trained: Trained) -> list[Any]:
    rows = [[name, f"{distance:.3f}", f"{bound:.3f}"] for name, distance, bound in drifting(trained)]
    if not rows:
        return []
    note = (
        "Distance: the largest difference of the distribution functions of early and of late rows (of categories in the"
        " order of their names). If the order had no meaning, with a"
        f" probability of {1 - LEVEL:.1%} no column would be beyond its bound (Dvoretzky, Kiefer, Wolfowitz)."
    )
    return [Table("Columns that drift along the stream", ["column", "distance", "at most, without drift"], rows, note)]

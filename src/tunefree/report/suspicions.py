"""What looks wrong with the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tunefree.generations.columns import is_bundle
from tunefree.model_files.trained import Trained
from tunefree.report.columns import FEWEST_NAMED, missing_shares, naming_columns
from tunefree.report.document import Block, Column, Note, Section, Table
from tunefree.report.formats import Format
from tunefree.report.rows import oddity_lines, tables_of_reasons
from tunefree.report.words import sentence
from tunefree.stream.layout import CODES, Layout
from tunefree.stream.profile import FEWEST, LEVEL, largest_difference, most_by_chance
from tunefree.stream.tally import Tally
from tunefree.training.remarks import (
    alike_classes,
    order_warning,
    rare_classes,
    remark_on_columns,
    remark_on_known_rows,
)
from tunefree.training.rises import warnings_of_rises
from tunefree.training.roles import ALONE, FEWEST_ROWS, LEAK, MOST_ROWS, Remark, Values, leaks, nearly_numbers

TENTH = 10
MOSTLY_MISSING = 0.5
SKIPPED = "rows skipped"
NAMING = "columns of categories that differ in more than half of the rows, which may name them"
CONSTANT = "constant columns"
TELLING = f"columns that alone leave {LEAK:.0%} or less of what there is to predict, which may give the target away"
DRIFT = "drift between the first and the last rows"
DISTANCE = Format(".3f")
NOT_SEEN = "A leak that is spread over several columns, or in words of texts, is not seen by this."


def suspicions(trained: Trained, skipped: dict[str, Tally]) -> Section:
    """What looks wrong, and what was looked at; ``skipped`` has the rows of each source that could not be used."""
    remarks = [*remarks_on_columns(trained), *_remarks_on_rows_kept(trained)]
    blocks = [*warnings_of(trained), *(Note(f"{sentence(text)}.", "warning") for text in remarks)]
    for where, tally in skipped.items():
        lines = [f"{line}." for line in oddity_lines(tally.oddities())]
        lines += [f"{tally.count:,} rows were skipped."] if tally.count else []
        blocks += [Note(f"{where}: {line}", "warning") for line in lines]
    for where, tally in skipped.items():
        blocks += tables_of_reasons(tally.reasons(), where.lower())
    blocks += [*_drift_table(trained), Note(_looked_at(trained))]
    return Section("suspicions", "What looks wrong with the data", blocks)


def _looked_at(trained: Trained) -> str:
    """What was looked at, and what could not be: what is not reported is not denied."""
    is_table, sample, rows = trained.kind == "table", _sample(trained), trained.progress.progressive[0].rows
    judged = {
        SKIPPED: True,
        NAMING: is_table and rows >= FEWEST_NAMED,
        CONSTANT: is_table and sample is not None,
        TELLING: is_table and rows >= FEWEST_ROWS,
        DRIFT: sample is not None and _rows_compared(sample) >= FEWEST,
    }
    looked_at = "; ".join(check for check, is_judged in judged.items() if is_judged)
    unknown = "; ".join(check for check, is_judged in judged.items() if not is_judged)
    spread = f" {NOT_SEEN}" if judged[TELLING] else ""
    return f"Looked at: {looked_at}.{spread}" + (f" Not looked at: {unknown}." if unknown else "")


class Sample(NamedTuple):
    """Rows that a model keeps, by part of a column."""

    parts: list[int]
    values: list[np.ndarray]  # of all
    first: list[np.ndarray]  # of early ones
    last: list[np.ndarray]  # of late ones
    targets: np.ndarray  # of all: numbers, or numbers of classes


def _sample(trained: Trained) -> Sample | None:
    """The rows that a pool keeps for growing; None where there are none.

    As long as these are all rows, they are in their order: the first and the last tenth are compared. Later, the
    sample of all rows is compared with the latest ones.
    """
    model: Any = trained.model
    growth = None if model.pool is None else model.pool.members.growth
    if growth is None or not growth.whole.rows:
        return None
    layout, kept = Layout.of_encoder(trained.encoder), growth.whole.kept()
    matrix = growth.columns.features(kept["columns"])
    n = len(matrix) // TENTH
    first, last = matrix[:n], matrix[len(matrix) - n :]
    if growth.whole.rows > growth.whole.capacity:
        n = min(growth.recent.rows, growth.recent.capacity)  # none, where windows sleep under a memory limit
        first, last = matrix, growth.columns.features(growth.recent.kept(n)["columns"]) if n else matrix[:0]
    parts, columns = [], []
    for place, key in enumerate(growth.columns.keys[: matrix.shape[1]]):
        if is_bundle(key):
            continue
        part = int(layout.of_feature[key]) if key > 0 else layout.code_source(-1 - key)[1]
        if part >= 0 and part not in parts:  # codes of a number only say where it is missing
            parts.append(part)
            rank = _ranks_of(layout, matrix[:, place]) if key < 0 else np.asarray
            columns.append([rank(rows[:, place]) for rows in (matrix, first, last)])
    of_all, early, late = (list(values) for values in zip(*columns, strict=True)) if columns else ([], [], [])
    return Sample(parts, of_all, early, late, kept["targets"])


def _rows_compared(sample: Sample) -> int:
    """Rows of the smaller of the samples that are compared."""
    return min(len(sample.first[0]), len(sample.last[0])) if sample.parts else 0


def warnings_of(trained: Trained, is_ending: bool = False) -> list[Block]:
    """What looks wrong with the order of the rows and with classes; a training that ends has reported some of it."""
    order = order_warning(trained)
    texts = [*([order] if order else []), *alike_classes(trained), *rare_classes(trained)]
    if not is_ending:
        texts += [*remark_on_known_rows(trained), *remark_on_columns(trained), *warnings_of_rises(trained)]
    return [Note(sentence(text), "warning") for text in texts]


def remarks_on_columns(trained: Trained) -> list[str]:
    """Columns that may name the rows, or give the target away."""
    noted = {oddity.column for oddity in trained.progress.oddities} | nearly_numbers(trained.encoder)
    texts = [
        f"column {name!r} has {count:,} different values; pass `ignore={name!r}` if it names the rows"
        for name, count in naming_columns(trained)
        if name not in noted
    ]
    return texts + [
        f"column {remark.column!r}: {remark.problem}; {remark.remedy}" for remark in telling_columns(trained)
    ]


def _remarks_on_rows_kept(trained: Trained) -> list[str]:
    """Columns of one value, and columns that are mostly missing."""
    texts = [f"column {name!r} has the same value in all rows kept" for name in constant_columns(trained)]
    return texts + [
        f"column {name!r} is missing in {100 * share:.1f} % of the rows kept"
        for name, share in missing_shares(trained).items()
        if share > MOSTLY_MISSING
    ]


def telling_columns(trained: Trained) -> list[Remark]:
    """Columns that alone predict nearly all rows kept, and were not reported when training began."""
    sample = _sample(trained)
    if sample is None or trained.kind != "table":
        return []
    n = len(sample.targets)
    rows = np.arange(n) if n <= MOST_ROWS else np.linspace(0, n - 1, MOST_ROWS).astype(np.int64)
    columns: dict[str, Values] = {}
    parts = Layout.of_encoder(trained.encoder).parts
    for part, values in zip(sample.parts, sample.values, strict=True):
        columns.setdefault(parts[part].column, Values(values[rows], parts[part].kind == CODES))
    is_classes = trained.model.task == "classification"
    targets = sample.targets[rows].astype(np.int64) if is_classes else sample.targets[rows]
    noted = {oddity.column for oddity in trained.progress.oddities if oddity.problem.startswith(ALONE)}
    return [remark for remark in leaks(columns, targets, is_classes) if remark.column not in noted]


def constant_columns(trained: Trained) -> list[str]:
    """Columns of numbers or categories that have one value in all rows kept."""
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

    Returns: the largest distance first.
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


def _drift_table(trained: Trained) -> list[Table]:
    rows = drifting(trained)
    note = (
        "Distance: the largest difference of the distribution functions of early and of late rows (of categories in the"
        " order of their names). If the order had no meaning, with a"
        f" probability of {1 - LEVEL:.1%} no column would be beyond its bound (Dvoretzky, Kiefer, Wolfowitz)."
    )
    columns = [Column("column"), Column("distance", DISTANCE), Column("at most, without drift", DISTANCE)]
    return [Table("Columns that drift along the stream", columns, rows, note)] if rows else []

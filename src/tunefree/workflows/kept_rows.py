"""What the rows that a pool keeps for growing tell of columns: missing values, constants, leaks, and drift."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tunefree.generations.columns import is_bundle
from tunefree.model_files.trained import Trained
from tunefree.stream.layout import CODES, MISSING, Layout
from tunefree.stream.profile import FEWEST, LEVEL, largest_difference, most_by_chance
from tunefree.training.roles import (
    CONSTANT,
    IDENTIFIER,
    MANY_DIFFERENT,
    MOST_ROWS,
    Finding,
    Values,
    ignore,
    leaks,
    nearly_numbers,
)

TENTH = 10
FEWEST_NAMED = 100  # rows, before columns are said to name them
MOSTLY_MISSING = 0.5
GAPS, DRIFT = "mostly missing", "drift"


class KeptRows(NamedTuple):
    """Rows that a model keeps, by part of a column."""

    layout: Layout
    parts: list[int]
    values: list[np.ndarray]  # of all
    first: list[np.ndarray]  # of early ones
    last: list[np.ndarray]  # of late ones
    targets: np.ndarray  # of all: numbers, or numbers of classes

    @property
    def n_compared(self) -> int:
        """Rows of the smaller of the samples that are compared."""
        return min(len(self.first[0]), len(self.last[0])) if self.parts else 0


def kept_rows(trained: Trained) -> KeptRows | None:
    """The rows that a pool keeps for growing; None where there are none.

    As long as these are all rows, they are in their order: the first and the last tenth are compared. Later, the
    sample of all rows is compared with the latest ones.
    """
    growth = _growth(trained)
    if growth is None:
        return None
    layout, kept = Layout.of_encoder(trained.encoder), growth.whole.kept()
    matrix = growth.columns.features(kept["columns"])
    n = len(matrix) // TENTH
    first, last = matrix[:n], matrix[len(matrix) - n :]
    if growth.whole.rows > growth.whole.capacity:
        n = min(growth.recent.rows, growth.recent.capacity)  # none, where windows sleep under a memory limit
        first, last = matrix, growth.columns.features(growth.recent.kept(n)["columns"]) if n else matrix[:0]
    columns: dict[int, list[np.ndarray]] = {}
    for place, key, part in _parts(growth.columns.keys[: matrix.shape[1]], layout):
        if part >= 0 and part not in columns:  # codes of a number only say where it is missing
            of_samples = [rows[:, place] for rows in (matrix, first, last)]
            columns[part] = _ranked(layout, of_samples) if key < 0 else of_samples
    of_all, early, late = (list(values) for values in zip(*columns.values(), strict=True)) if columns else ([], [], [])
    return KeptRows(layout, list(columns), of_all, early, late, kept["targets"])


def _growth(trained: Trained) -> Any:
    """What grows generations of a model, if it has kept rows for that."""
    growth = None if trained.model.pool is None else trained.model.pool.members.growth
    return growth if growth is not None and growth.whole.rows else None


def _parts(keys: Any, layout: Layout) -> Iterator[tuple[int, int, int]]:
    """Places and keys of columns of rows that are kept, and the part that each is of; bundles are of columns, too."""
    for place, key in enumerate(keys):
        if not is_bundle(key):
            yield place, key, int(layout.of_feature[key]) if key > 0 else layout.code_source(-1 - key)[1]


def _ranked(layout: Layout, samples: list[np.ndarray]) -> list[np.ndarray]:
    """Codes in samples, of which the first has all, by the order of their labels; the order of rows does not matter.

    A code that is not in the first sample, and a missing one, comes first.
    """
    different = np.unique(samples[0][~np.isnan(samples[0])])
    if not len(different):
        return [np.zeros(len(codes)) for codes in samples]
    labels = [layout.label(int(code)) for code in different]
    ranks = np.empty(len(labels))
    ranks[sorted(range(len(labels)), key=labels.__getitem__)] = 1.0 + np.arange(len(labels))
    places = [np.minimum(np.searchsorted(different, codes), len(different) - 1) for codes in samples]
    return [np.where(different[at] == codes, ranks[at], 0.0) for at, codes in zip(places, samples, strict=True)]


def missing_shares(trained: Trained) -> dict[str, float]:
    """The share of the rows kept for growing in which each column is missing, by name; empty if none are kept."""
    growth = _growth(trained)
    if growth is None:
        return {}
    layout, matrix = Layout.of_encoder(trained.encoder), growth.columns.features(growth.whole.kept()["columns"])
    shares = {column.name: 0.0 for column in layout.columns}
    for place, key, part in _parts(growth.columns.keys[: matrix.shape[1]], layout):
        values = matrix[:, place]
        is_missing = np.isnan(values)
        if key < 0:  # codes, some of which may say so
            codes = pa.array(values[values > 0]).unique().to_pylist()
            is_missing = np.isin(values, [code for code in codes if layout.label(int(code)) == MISSING])
        name = layout.parts[part].column
        shares[name] = max(shares.get(name, 0.0), float(is_missing.mean()))
    return shares


def findings_of_kept_rows(trained: Trained, known: set[str]) -> list[Finding]:
    """What the rows kept, and the categories met, tell of columns of which nothing was found in the first rows.

    ``known``: columns of which something was found there.
    """
    found = [finding for finding in _identifiers(trained) if finding.column not in known]
    sample = kept_rows(trained)
    if sample is None or trained.kind != "table":
        return found
    found += [finding for finding in _leaks(trained, sample) if finding.column not in known]
    found += [Finding(name, CONSTANT, "has the same value in all rows kept") for name in _constants(trained, sample)]
    found += [
        Finding(name, GAPS, f"is missing in {100 * share:.1f} % of the rows kept")
        for name, share in missing_shares(trained).items()
        if share > MOSTLY_MISSING
    ]
    return found + drifts(sample)


def _identifiers(trained: Trained) -> list[Finding]:
    """Columns of categories that differ in more than half of the rows: they may name the rows."""
    rows = trained.progress.progressive[0].rows
    if trained.kind != "table" or rows < FEWEST_NAMED:
        return []
    columns, places = trained.encoder.columns, trained.encoder.column_of()
    counts = np.bincount(places[places >= 0], minlength=len(columns)).tolist()
    nearly = nearly_numbers(trained.encoder)
    return [
        Finding(column.name, IDENTIFIER, f"{count:,} different values, which may name the rows", ignore(column.name))
        for column, count in zip(columns, counts, strict=True)
        if column.kind == "category" and count > MANY_DIFFERENT * rows and column.name not in nearly
    ]


def _leaks(trained: Trained, sample: KeptRows) -> list[Finding]:
    """Columns that alone predict nearly all rows kept."""
    n = len(sample.targets)
    rows = np.arange(n) if n <= MOST_ROWS else np.linspace(0, n - 1, MOST_ROWS).astype(np.int64)
    columns: dict[str, Values] = {}
    for part, values in zip(sample.parts, sample.values, strict=True):
        described = sample.layout.parts[part]
        columns.setdefault(described.column, Values(values[rows], described.kind == CODES))
    is_classes = trained.model.task == "classification"
    targets = sample.targets[rows].astype(np.int64) if is_classes else sample.targets[rows]
    return leaks(columns, targets, is_classes)


def _constants(trained: Trained, sample: KeptRows) -> list[str]:
    """Columns of numbers or categories that have one value in all rows kept."""
    changing, names = set[str](), set[str]()
    for part, values in zip(sample.parts, sample.values, strict=True):
        names.add(name := sample.layout.parts[part].column)
        if (values != values[0]).any() and not np.isnan(values).all():
            changing.add(name)
    kinds = {column.name: column.kind for column in trained.encoder.columns}
    of_values = [name for name, kind in kinds.items() if kind in ("number", "category", "boolean")]
    return [name for name in of_values if name in names - changing]


def drifts(sample: KeptRows) -> list[Finding]:
    """Parts of columns whose values in early and in late rows differ, the largest difference first.

    The distance of two samples is the largest difference of their empirical distribution functions, of categories in
    the order of their names. If rows are exchangeable, no column is beyond
    :func:`tunefree.stream.profile.most_by_chance` with a probability of 1 - LEVEL (Dvoretzky, Kiefer, Wolfowitz).
    """
    if sample.n_compared < FEWEST:
        return []
    bound = most_by_chance(sample.n_compared, len(sample.parts), LEVEL)
    distances = map(largest_difference, sample.first, sample.last)
    names = [sample.layout.parts[part].name for part in sample.parts]
    beyond = [(distance, name) for name, distance in zip(names, distances, strict=True) if distance > bound]
    return [
        Finding(
            name,
            DRIFT,
            f"drifts along the stream: the distributions of early and of late rows differ by {distance:.3f}, and by at"
            f" most {bound:.3f} where the order has no meaning (a test of level {LEVEL:g} for all columns together)",
        )
        for distance, name in sorted(beyond, key=lambda each: -each[0])
    ]

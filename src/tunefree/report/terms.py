"""Section of a report: what matters, by column and feature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.explanation.decomposition import Decomposition
from tunefree.explanation.importance import Importance, importance
from tunefree.explanation.told import importance_told
from tunefree.model_files.trained import Trained
from tunefree.report import charts, panels
from tunefree.report.document import Figure, Note, Section, Table
from tunefree.report.told import sentence, without_weights
from tunefree.workflows.explanation import picture_of

TOP = 20  # columns and features that are listed, as `inspect` does
BARS = 15
MOST_OUTPUTS = 8  # columns of weights


def terms(trained: Trained, decomposition: Decomposition | None) -> Section:
    """What matters.

    Parameters
    ----------
    trained : Trained
    decomposition : Decomposition, optional
        Its terms, if it has any that can be compared.
    """
    blocks: list[Any] = []
    if decomposition is not None:
        columns = importance(decomposition)
        note = Note(f"{sentence(importance_told(decomposition, columns))}.", "fine")
        blocks += [*_bars(columns), _table(columns), note, *_panels(trained, decomposition)]
    blocks += table_of_features(trained.model, trained.encoder.names(), TOP)
    if not blocks:
        blocks = [Note(f"The model is {without_weights(trained.model)}.")]
    return Section("terms", "What matters", blocks)


def _bars(columns: Importance) -> list[Figure]:
    names, sizes = columns.names[:BARS], columns.sizes[:BARS].tolist()
    if not names:
        return []
    texts = [f"{size:.3g} ± {error:.1g}" for size, error in zip(sizes, columns.errors.tolist(), strict=False)]
    described = "; ".join(f"{name} {text}" for name, text in zip(names, texts, strict=True))
    chart = charts.ranked_bars("Columns by importance", described, names, sizes, texts)
    return [Figure(chart, f"The {len(names)} most important of {len(columns.names)} columns; ±: standard error.")]


def _table(columns: Importance) -> Table:
    rows = zip(columns.names[:TOP], columns.sizes.tolist(), columns.errors.tolist(), strict=False)
    cells = [[name, f"{size:.4g}", f"{error:.1g}"] for name, size, error in rows]
    return Table("Columns", ["column", "importance", "standard error"], cells, "", 1, False)


def _panels(trained: Trained, decomposition: Decomposition) -> list[Any]:
    """How predictions depend on the columns that matter most."""
    try:
        picture = picture_of(trained, decomposition)
    except ModelError:  # words and hashed features alone
        return []
    figures = [panels.of_curve(picture, panel) for panel in picture.curves]
    return [
        Note(f"What the {picture.goal} depends on, by the value of a column:"),
        *figures,
        Note(picture.note, "fine"),
    ]


def table_of_features(model: Any, names: Sequence[str], top: int) -> list[Table]:
    """The features of the largest weights; empty of models without any.

    Parameters
    ----------
    model : ScoredModel
    names : sequence of str
        Of the features.
    top : int
        Features that are listed; 0 for all.
    """
    if not model.has_weights:
        return []
    weights = model.mean_weights()
    outputs = model.classes if model.n_outputs > 1 else [model.classes[-1] if model.classes else "prediction"]
    rows = [
        [names[j], f"{size:.4g}", *(f"{weight:+.4g}" for weight in weights[j][:MOST_OUTPUTS])]
        for j, size in largest(weights[: len(names)], top)
    ]
    note = "Importance: |weight| x size of the feature in its own units, so that scales do not matter."
    header = ["feature", "importance", *map(str, outputs[:MOST_OUTPUTS])]
    return [Table("Features", header, rows, note, 1, False)] if rows else []


def largest(weights: np.ndarray, top: int) -> list[tuple[int, float]]:
    """The features of the largest weights (d, K) that are not 0, and their sizes; ``top`` 0 is for all."""
    sizes = np.abs(weights).max(axis=1)
    order = np.argsort(-sizes, kind="stable")
    return [(j, float(sizes[j])) for j in order[sizes[order] > 0][: top or None].tolist()]

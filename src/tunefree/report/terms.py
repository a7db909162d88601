"""Section of a report: what matters, by column, pair of columns and feature."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.explanation.decomposition import Decomposition
from tunefree.explanation.fidelity import Ranking, ranking
from tunefree.explanation.picture import Picture
from tunefree.explanation.told import fidelity_told, own_margins, percent, shares_told
from tunefree.report import charts, panels
from tunefree.report.document import Figure, Note, Section, Table
from tunefree.report.told import sentence
from tunefree.report.told_shares import caveat_of_weights, line_of_curves, without_weights
from tunefree.workflows.explanation import picture_of
from tunefree.workflows.training import Trained

TOP = 20  # terms and features that are listed, as `inspect` does
BARS = 15
MOST_OUTPUTS = 8  # columns of weights


def terms(trained: Trained, found: Decomposition | None) -> Section:
    """What matters.

    Parameters
    ----------
    trained : Trained
    found : Decomposition, optional
        Its terms, if it has any that can be compared.
    """
    blocks: list[Any] = []
    if found is not None:
        ranked = ranking(found)
        blocks += [*_bars(ranked, found), _table(ranked), Note(_told(found, ranked), "fine"), *_panels(trained, found)]
    blocks += [Note(f"{sentence(line)}.", "fine") for line in line_of_curves(trained.model)]
    blocks += _weights(trained)
    if not blocks:
        blocks = [Note(f"The model is {without_weights(trained.model)}.")]
    return Section("terms", "What matters", blocks)


def _told(found: Decomposition, ranked: Ranking) -> str:
    first = f"Importance: standard deviation of the contribution to the model's {own_margins(found)}; pairs beyond what"
    return f"{first} their columns tell alone. {shares_told(found)} {fidelity_told(found, ranked.fidelity)}"


def _bars(ranked: Ranking, found: Decomposition) -> list[Figure]:
    names, sizes = ranked.names[:BARS], ranked.importance[:BARS].tolist()
    if not names:
        return []
    texts = [f"{size:.4g}" for size in sizes]
    described = "; ".join(f"{name} {text}" for name, text in zip(names, texts, strict=True))
    chart = charts.ranked_bars("Columns and pairs by importance", described, names, sizes, texts)
    return [Figure(chart, f"The {len(names)} most important of {len(ranked.names)} columns and pairs.")]


def _table(ranked: Ranking) -> Table:
    rows = [
        [name, f"{importance:.4g}", percent(explained)]
        for name, importance, explained in zip(
            ranked.names[:TOP], ranked.importance.tolist(), ranked.explained.tolist(), strict=False
        )
    ]
    return Table("Columns and pairs", ["column or pair", "importance", "explained so far"], rows, "", 1, False)


def _panels(trained: Trained, found: Decomposition) -> list[Any]:
    """Curves of columns and maps of pairs."""
    try:
        picture = picture_of(trained, found)
    except ModelError:  # words and hashed features alone
        return []
    figures = [panels.of_curve(picture, own) for own in picture.curves]
    figures += [panels.of_map(picture, own) for own in picture.maps]
    return [Note(_title(picture)), *figures, Note(picture.note, "fine")]


def _title(picture: Picture) -> str:
    return f"Contributions to {picture.goal}, by the value of a column:"


def _weights(trained: Trained) -> list[Any]:
    """The features of the largest weights."""
    model, names = trained.model, trained.encoder.names()
    if not model.has_weights:
        return []
    weights = model.mean_weights()
    importance = np.abs(weights[: len(names)]).max(axis=1)
    order = np.argsort(-importance, kind="stable")
    order = order[importance[order] > 0][:TOP]
    outputs = model.classes if model.n_outputs > 1 else [model.classes[-1] if model.classes else "prediction"]
    rows = [
        [names[j], f"{importance[j]:.4g}", *(f"{weight:+.4g}" for weight in weights[j][:MOST_OUTPUTS])]
        for j in order.tolist()
    ]
    note = "Importance: |weight| x size of the feature in its own units, so that scales do not matter."
    caveat = caveat_of_weights(model)
    note += "" if caveat is None else f" {sentence(caveat)}."
    header = ["feature", "importance", *map(str, outputs[:MOST_OUTPUTS])]
    return [Table("Features of the linear members", header, rows, note, 1, False)] if rows else []

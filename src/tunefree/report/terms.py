"""Importance, by column and feature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.explanation.decomposition import Decomposition, output_of
from tunefree.explanation.importance import Importance, describe_importance, importance, interactions, margin_name
from tunefree.model_files.trained import Trained
from tunefree.plotting import charts
from tunefree.report.document import Block, Chart, Column, Data, Note, Section, Table, on_axes
from tunefree.report.formats import FIGURES, SIGNED, THREE, TWO, Format, first, without_weights
from tunefree.workflows.explanation import picture_of

TOP = 20  # columns and features that are listed
BARS = 15
CURVES = 6
MOST_NAMED = 12  # columns in a sentence
MOST_OUTPUTS = 8  # columns of weights
FEATURES = "Importance: |weight| x size of the feature in its own units, so that scales do not matter."
ABOVE = "rise of the mean loss where the column is permuted"
LINE = "Whiskers: standard error. Orange: the line of noise, which a column without use hardly exceeds. Grey: below it."
SHARED = "A column below may matter, too, where another one tells the same: what both tell is counted for neither."
OF_PAIRS = (
    "Rise: how much larger the mean loss is where each of the two columns may act on its own only, on rows that trees"
    " do not know. Noise: the rise that columns which do not act together hardly exceed."
)


def terms(trained: Trained, decomposition: Decomposition | None) -> Section:
    """The section on the importance of columns."""
    ranked = None if decomposition is None else importance(decomposition)
    blocks = blocks_of_terms(decomposition, TOP, ranked=ranked)
    blocks += [] if decomposition is None else _curves(trained, decomposition, ranked)
    features = blocks_of_features(trained.model, trained.encoder.names(), TOP) if trained.model.has_weights else []
    return Section("terms", "What matters", [*blocks, *features])


def blocks_of_terms(
    decomposition: Decomposition | None, top: int, label: Any = None, ranked: Importance | None = None
) -> list[Block]:
    """The columns that matter most, and the pairs that act together; nothing if there are none.

    ``top``: columns that are listed; 0 for all.
    ``label``: the class whose terms they are; by default all classes.
    ``ranked``: the columns by importance, where they are known.
    """
    if decomposition is None:
        return []
    model = decomposition.model
    output = None if label is None else output_of(model.classes, model.n_outputs, label)[0]
    columns = ranked or importance(decomposition, output)
    rows = zip(
        columns.names, *(array.tolist() for array in (columns.sizes, columns.errors, columns.noise)), strict=True
    )
    format = Format(THREE.spec_of(float(np.abs(columns.sizes).max(initial=0.0))))  # so that the digits stand in line
    header = [Column("column"), *(Column(name, format) for name in ("importance", "standard error", "noise"))]
    note, listed = describe_importance(decomposition, columns), list(rows)[: top or None]
    facts = [Data("sampled_rows", columns.rows)]
    if columns.judges is None:
        header, listed = header[:-1], [row[:-1] for row in listed]
    else:
        facts.append(Data("beyond_noise", columns.n_beyond))
    table = Table("Columns by importance", header, listed, note, "terms", is_open=False)
    words = [*_in_words(columns), *_pairs(decomposition, columns)]
    return [*words, *facts, table, *_bars(columns, margin_name(decomposition))]


def _in_words(columns: Importance) -> list[Block]:
    """A sentence on the columns that matter beyond noise; empty where noise is not known."""
    if columns.judges is None:
        return []
    n = columns.n_beyond
    named = first(MOST_NAMED)(columns.names[:n]).rstrip(".")
    sentence = f"{n:,} of {len(columns.names):,} columns matter beyond noise: {named}{'...' if n > MOST_NAMED else '.'}"
    if not n:
        sentence = "No column matters beyond noise."
    return [Note(f"{sentence} {SHARED}" if 0 < n < len(columns.names) else sentence)]


def _pairs(decomposition: Decomposition, columns: Importance) -> list[Block]:
    """The pairs that act together beyond noise, or that none does; nothing where no pair was looked at."""
    pairs = interactions(decomposition, columns)
    if pairs is None:
        return []
    header = [Column("columns that act together"), Column("rise", FIGURES), Column("standard error", TWO)]
    parts = (column.tolist() for column in (pairs.sizes, pairs.errors, pairs.noise))
    rows, n = [list(row) for row in zip(pairs.names, *parts, strict=True)][: pairs.n_beyond], len(pairs.names)
    looked_at = (
        "1 pair of the columns that matter most was" if n == 1 else f"{n} pairs of the columns that matter most were"
    )
    note = f"{looked_at} looked at."
    if not rows:
        return [Note(f"No two columns act together beyond noise. {note}"), Data("pairs", [])]
    return [Table("Pairs that act together", [*header, Column("noise", TWO)], rows, f"{OF_PAIRS} {note}", "pairs")]


def _bars(columns: Importance, margin: str) -> list[Chart]:
    names, sizes, errors = columns.names[:BARS], columns.sizes[:BARS].tolist(), columns.errors[:BARS].tolist()
    if not names:
        return []
    bars = zip(names, sizes, errors, strict=True)
    described = "; ".join(f"{name} {size:.3g} ± {error:.1g}" for name, size, error in bars)
    title, noise = f"mean absolute contribution to the {margin}", None
    caption = f"The {len(names)} most important of {len(columns.names)} columns; whiskers: standard error."
    if columns.judges is not None:
        title, noise, caption = ABOVE, columns.noise[:BARS].tolist(), LINE
    inches = 5.0, 0.9 + 0.27 * len(names)
    draw = on_axes(charts.draw_bars, names, sizes, errors, title, noise)
    return [Chart("Columns by importance", described, draw, caption, inches)]


def _curves(trained: Trained, decomposition: Decomposition, ranked: Any) -> list[Block]:
    """A chart of how predictions depend on the most important columns."""
    from tunefree.estimators.displays import CurveDisplay  # scikit-learn takes long to import

    try:
        picture = picture_of(trained, decomposition, ranked=ranked, max_curves=CURVES)
    except ModelError:  # words and hashed features alone, or noise
        return []
    display = CurveDisplay(picture=picture)
    ends = [(curve.axis.name, curve.mean.min(), curve.mean.max()) for curve in picture.curves]
    described = "; ".join(f"{name}: from {low:.3g} to {high:.3g}" for name, low, high in ends)
    draw = lambda figure: display.plot(figure=figure)  # noqa: E731 - with its own title and caption
    return [Chart("How predictions change", f"{picture.goal} {described}.", draw, "", display.inches)]


def blocks_of_features(model: Any, names: Sequence[str], top: int) -> list[Block]:
    """The features of the largest weights, or why there are none.

    ``top``: features that are listed; 0 for all.
    """
    outputs = [str(label) for label in (model.classes if model.n_outputs > 1 else model.classes[-1:] or ["prediction"])]
    columns = [Column("feature"), Column("importance", FIGURES)]
    columns += [Column(label, SIGNED, f"weight_{label}", k < MOST_OUTPUTS) for k, label in enumerate(outputs)]
    if not model.has_weights:
        return [Note(without_weights(model)), Table("Features", columns, [], FEATURES, shown=())]
    weights = model.mean_weights()
    rows = [[names[j], size, *weights[j]] for j, size in largest(weights[: len(names)], top)]
    return [Table("Features", columns, rows, FEATURES, is_open=False)]


def largest(weights: np.ndarray, top: int) -> list[tuple[int, float]]:
    """The features of the largest weights (d, K) that are not 0, and their sizes; ``top`` 0 is for all."""
    sizes = np.abs(weights).max(axis=1)
    order = np.argsort(-sizes, kind="stable")
    return [(j, float(sizes[j])) for j in order[sizes[order] > 0][: top or None].tolist()]

"""Importance of columns and features."""

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

TOP = 20  # listed columns and features
BARS = 15
CURVES = 6
MOST_NAMED = 12  # columns in a sentence
MOST_OUTPUTS = 8  # columns of weights
FEATURES = "Importance: |weight| x size of the feature in its own units, so that scales do not matter."
ABOVE = "rise of the mean loss where the column is permuted"
LINE = "Whiskers: standard error. Orange: the line of noise, which a column without use hardly exceeds. Grey: below it."
MOST_IMPORTANT = "The {} most important of {} columns; whiskers: standard error."
SHARED = "A column below may matter, too, where another one has the same information: it is counted for neither."
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
    """Blocks on the most important columns and on interacting pairs; empty without a decomposition.

    ``top``: number of listed columns; 0 for all.
    ``label``: the class to explain; by default all classes.
    ``ranked``: the importance of columns, if it is known.
    """
    if decomposition is None:
        return []
    model = decomposition.model
    output = None if label is None else output_of(model.classes, model.n_outputs, label)[0]
    columns = ranked or importance(decomposition, output)
    sizes, errors, noise = (array.tolist() for array in (columns.sizes, columns.errors, columns.noise))
    format = Format(THREE.spec_of(float(np.abs(columns.sizes).max(initial=0.0))))  # so that decimal points are aligned
    header = [Column("column"), *(Column(name, format) for name in ("importance", "standard error", "noise"))]
    rows: list[Any] = list(zip(columns.names, sizes, errors, noise, strict=True))
    data = [Data("sampled_rows", columns.rows)]
    note, words = describe_importance(decomposition, columns), list[Block]()
    title, caption = f"mean absolute contribution to the {margin_name(decomposition)}", MOST_IMPORTANT
    if columns.judges is None:  # the noise is unknown
        header, noise = header[:-1], None
        rows = [row[:-1] for row in rows]
    else:
        data.append(Data("beyond_noise", columns.n_beyond))
        title, caption, noise = ABOVE, LINE, noise[:BARS]
        words.append(Note(_in_words(columns)))
    table = Table("Columns by importance", header, rows[: top or None], note, "terms", is_open=False)
    blocks = [*words, *_pairs(decomposition, columns), *data, table]
    names, sizes, errors = columns.names[:BARS], sizes[:BARS], errors[:BARS]
    if not names:
        return blocks
    described = "; ".join(
        f"{name} {size:.3g} ± {error:.1g}" for name, size, error in zip(names, sizes, errors, strict=True)
    )
    caption = caption.format(len(names), len(columns.names))
    draw = on_axes(charts.draw_bars, names, sizes, errors, title, noise)
    return [*blocks, Chart("Columns by importance", described, draw, caption, (5.0, 0.9 + 0.27 * len(names)))]


def _in_words(columns: Importance) -> str:
    """A sentence on the columns that matter beyond noise."""
    n, most = columns.n_beyond, len(columns.names)
    if not n:
        return "No column matters beyond noise."
    names = first(MOST_NAMED)(columns.names[:n]).rstrip(".")
    sentence = f"{n:,} of {most:,} columns matter beyond noise: {names}{'...' if n > MOST_NAMED else '.'}"
    return f"{sentence} {SHARED}" if n < most else sentence


def _pairs(decomposition: Decomposition, columns: Importance) -> list[Block]:
    """The pairs that interact beyond noise, or a note that none does; empty if no pair was tested."""
    pairs = interactions(decomposition, columns)
    if pairs is None:
        return []
    parts = (column.tolist() for column in (pairs.sizes, pairs.errors, pairs.noise))
    rows, n = list(zip(pairs.names, *parts, strict=True))[: pairs.n_beyond], len(pairs.names)
    looked_at = "1 pair of {} was" if n == 1 else f"{n} pairs of {{}} were"
    note = f"{looked_at.format('the columns that matter most')} looked at."
    if not rows:
        return [Note(f"No two columns act together beyond noise. {note}"), Data("pairs", [])]
    header = [Column("columns that act together"), Column("rise", FIGURES), Column("standard error", TWO)]
    return [Table("Pairs that act together", [*header, Column("noise", TWO)], rows, f"{OF_PAIRS} {note}", "pairs")]


def _curves(trained: Trained, decomposition: Decomposition, ranked: Any) -> list[Block]:
    """A chart of how predictions depend on the most important columns."""
    from tunefree.estimators.displays import CurveDisplay  # scikit-learn takes long to import

    try:
        picture = picture_of(trained, decomposition, ranked=ranked, max_curves=CURVES)
    except ModelError:  # only words and hashed features, or nothing beyond noise
        return []
    display = CurveDisplay(picture=picture)
    ends = [(curve.axis.name, curve.mean.min(), curve.mean.max()) for curve in picture.curves]
    described = "; ".join(f"{name}: from {low:.3g} to {high:.3g}" for name, low, high in ends)
    draw = lambda figure: display.plot(figure=figure)  # noqa: E731 - with its own title and caption
    return [Chart("How predictions change", f"{picture.goal} {described}.", draw, "", display.inches)]


def blocks_of_features(model: Any, names: Sequence[str], top: int) -> list[Block]:
    """The features with the largest nonzero weights, or the reason why there are none.

    ``top``: number of listed features; 0 for all.
    """
    outputs = [str(label) for label in (model.classes if model.n_outputs > 1 else model.classes[-1:] or ["prediction"])]
    columns = [Column("feature"), Column("importance", FIGURES)]
    columns += [Column(label, SIGNED, f"weight_{label}", k < MOST_OUTPUTS) for k, label in enumerate(outputs)]
    if not model.has_weights:
        return [Note(without_weights(model)), Table("Features", columns, [], FEATURES, shown=())]
    weights = model.mean_weights()[: len(names)]
    sizes = np.abs(weights).max(axis=1)
    order = np.argsort(-sizes, kind="stable")
    rows = [[names[j], float(sizes[j]), *weights[j]] for j in order[sizes[order] > 0][: top or None].tolist()]
    return [Table("Features", columns, rows, FEATURES, is_open=False)]

"""Partial dependence of a model's margins on its most important columns.

The value of a column is replaced in rows of the reference, and the margins are averaged over the rows (Friedman: Greedy
function approximation, 2001). Curves of single rows show how much the effect varies (Goldstein, Kapelner, Bleich,
Pitkin: Peeking inside the black box, 2015).
"""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError, nearest
from tunefree.core.registry import names_in
from tunefree.core.rows import Block, n_rows, together
from tunefree.explanation.decomposition import Decomposition, output_of
from tunefree.explanation.importance import Importance, importance, margin_name
from tunefree.stream.layout import CODES, MISSING, NUMBERS, Layout, Part

GRID_POINTS = 24  # points of a numeric curve
MOST_ROWS = 100  # rows that are averaged
BAND = (0.1, 0.9)  # quantiles of the curves of single rows that bound the band
FEW_VALUES = 12  # up to this number of distinct values, each one is a point of the curve
TAIL = 0.005  # quantile of the rows at which a numeric curve ends on each side
MOST_CODES = 12  # maximum number of codes drawn
MOST_CLASSES = 6  # maximum number of classes drawn
FLAT = 0.2  # parts whose range is below this fraction of the largest range in their column are not drawn
MINOR = 0.01  # columns below this fraction of the largest importance are drawn only on request
CALENDAR = {"[month]": calendar.month_abbr[1:], "[weekday]": list(calendar.day_abbr)}  # labels of parts of dates


class Axis(NamedTuple):
    """The horizontal axis of a curve: values of a part of a column."""

    name: str
    values: np.ndarray  # (v,) numbers, or int64 features of codes
    labels: list[str]  # labels of codes; empty for numbers
    shares: np.ndarray  # (v,) proportion of rows with each code; empty for numbers
    column: int  # index among the numeric columns, or the columns of codes, of a block
    sample: np.ndarray  # (r,) numbers in the rows of the reference, NaN where missing; empty for codes
    is_ordered: bool = False  # whether codes have a natural order, which is the order of labels
    missing: tuple[int, int] | None = None  # column of codes and code of a missing number; None if none is missing

    @property
    def is_numeric(self) -> bool:
        """Whether the values are numbers, not codes."""
        return not self.labels


class Curve(NamedTuple):
    """Margins of the drawn classes as a function of the values of an axis."""

    axis: Axis
    importance: float  # importance of the column
    mean: np.ndarray  # (v, Q) mean over rows
    low: np.ndarray  # (v, Q) lower quantile of the curves of single rows, each shifted to the mean level of ``mean``
    high: np.ndarray  # (v, Q) upper quantile
    missing: np.ndarray | None  # (Q,) mean for a missing number; None if no number is missing


class Picture(NamedTuple):
    """The curves of a figure, with its labels and texts."""

    curves: list[Curve]
    labels: list[str]  # labels of the classes; empty in regression
    unit: str  # name of the margins
    goal: str  # name of the quantity in the title
    note: str  # caption


def picture(
    decomposition: Decomposition,
    features: Sequence[Any] | None = None,
    target: Any = None,
    max_curves: int = 9,
    name: str | None = None,
    ranked: Importance | None = None,
) -> Picture:
    """Compute partial dependence curves of columns.

    ``features``: names or indices of columns; by default the most important columns.
    ``target``: the class whose margin is drawn. By default the second of two classes, or of more classes the six that
    the model predicts most often.
    ``ranked``: the importance of columns, if already computed.
    Raises a ModelError if the class or a column does not exist, nothing can be drawn, or the model keeps no rows.
    """
    outputs, labels, sign = _classes(decomposition, target)
    ranked = ranked or importance(decomposition, outputs[0] if target is not None else None)
    sizes = dict(zip(ranked.terms.tolist(), ranked.sizes.tolist(), strict=True))
    if features is None:
        does_matter = (ranked.sizes > ranked.noise) & (ranked.sizes >= MINOR * max(ranked.sizes, default=0.0))
        terms, part_terms = ranked.terms[does_matter][:max_curves], decomposition.terms.part_terms[:-1]
        parts = [part for term in terms for part in np.flatnonzero(part_terms == term).tolist()]
    else:
        parts = [_part_named(decomposition.layout, wanted) for wanted in names_in(features)]
    axes = [(part, axis) for part in parts if (axis := axis_of(decomposition, part)) is not None]
    if features is not None and len(axes) < len(parts):
        name = decomposition.layout.parts[min(set(parts) - {part for part, _ in axes})].name
        raise ModelError(f"{name} cannot be drawn: no row of the reference has it, or it has words")
    if not axes:
        raise ModelError(
            "there is no column to draw: none matters beyond noise (name those to be drawn by `features`), or it has"
            " words or hashed features, which cannot be drawn"
        )
    rows = decomposition.reference_rows(MOST_ROWS)

    def margins(rows: Block) -> np.ndarray:
        return sign * decomposition.margins(rows)[:, outputs]

    def curve(part: int, axis: Axis) -> Curve:
        n, values = len(axis.values), [*axis.values, *([np.nan] if axis.missing is not None else [])]
        curves = margins(together([_with(rows, axis, value) for value in values]))
        curves = curves.reshape(len(values), n_rows(rows), -1)
        means, curves = curves.mean(axis=1), curves[:n]
        low, high = np.quantile(curves - curves.mean(axis=0) + means[:n].mean(axis=0), BAND, axis=1)
        missing = None if axis.missing is None else means[n]
        return Curve(axis, sizes.get(decomposition.terms.part_terms[part], 0.0), means[:n], low, high, missing)

    margin = margin_name(decomposition)
    if decomposition.model.task == "regression":
        margin = name or margin
    curves = [curve(part, axis) for part, axis in axes]
    if features is None:
        curves = _most_variable(curves, [decomposition.layout.parts[part].column for part, _ in axes])[:max_curves]
    note = _note(n_rows(rows), ranked.judges is not None)
    return Picture(curves, labels, margin, _goal(margin, labels, name), note)


def _goal(margin: str, labels: list[str], name: str | None) -> str:
    """Return the name of the quantity in the title."""
    if not labels:
        return margin
    if len(labels) > 1:
        return f"{margin} of the classes" + (f" of '{name}'" if name else "")
    return f"{margin} of " + (f"'{name}' = " if name else "class ") + f"'{labels[0]}'"


def _classes(decomposition: Decomposition, target: Any) -> tuple[list[int], list[str], float]:
    """Return the indices of the margins to draw, the labels of their classes, and a sign for a single margin."""
    model = decomposition.model
    if model.task == "regression":
        if target is not None:
            raise ModelError("the model predicts numbers, not classes; leave the class out")
        return [0], [], 1.0
    if target is not None or model.n_outputs == 1:
        label = model.classes[-1] if target is None else target
        output, sign = output_of(model.classes, model.n_outputs, label)
        return [output], [str(label)], sign
    predicted = decomposition.margins(decomposition.reference_rows()).argmax(axis=1)
    often = np.argsort(-np.bincount(predicted, minlength=model.n_outputs), kind="stable")[:MOST_CLASSES]
    outputs = sorted(often.tolist())
    return outputs, [str(model.classes[k]) for k in outputs], 1.0


def _most_variable(curves: list[Curve], columns: list[str]) -> list[Curve]:
    """Select curves: of a column with several parts, such as a date, only the parts with the largest ranges."""
    ranges = [float(np.ptp(curve.mean, axis=0).max()) for curve in curves]
    largest = {
        name: max(size for column, size in zip(columns, ranges, strict=True) if column == name) for name in columns
    }
    return [
        curve for curve, column, size in zip(curves, columns, ranges, strict=True) if size >= FLAT * largest[column]
    ]


def _part_named(layout: Layout, wanted: Any) -> int:
    """Return the index of the part with this name or index."""
    names = [part.name for part in layout.parts]
    for k, name in enumerate(names):
        if wanted == (name if isinstance(wanted, str) else k):
            return k
    raise ModelError(f"there is no column {wanted!r}; {nearest(wanted, names, 'columns')}")


def _note(n_rows: int, is_of_loss: bool) -> str:
    measure = "rise of the mean loss where the column is permuted" if is_of_loss else "mean absolute contribution"
    low, high = (f"{100 * quantile:.0f} %" for quantile in BAND)
    return (
        f"Lines and points: mean over {n_rows} rows in which the column takes each value. Bands and whiskers: {low} to"
        f" {high} of the curves of single rows, moved to the same mean height; a wide one means that other columns"
        f" change the effect of this one. Right above: importance, the {measure}. Grey, and per cent beside names: how"
        " many rows have a value."
    )


def axis_of(decomposition: Decomposition, part: int) -> Axis | None:
    """Return the axis of a part: a grid of numbers, or the most frequent codes; None without any value.

    Words and hashed features have no axis.
    """
    rows, layout = decomposition.reference_rows(), decomposition.layout
    name, _, kind = layout.parts[part]
    codes = [q for q, column in enumerate(rows.code_columns.tolist()) if layout.code_source(column)[1] == part]
    if kind == CODES:
        return _axis_of_codes(rows, layout, layout.parts[part], codes[0]) if codes else None
    numbers = np.flatnonzero(layout.feature_parts[rows.columns] == part).tolist() if kind == NUMBERS else []
    known, missing = np.ones(n_rows(rows), bool), None
    for q in codes:
        if rows.codes[:, q].any():
            known, missing = rows.codes[:, q] == 0, (q, int(rows.codes[:, q].max()))
    if not (numbers and known.any()):
        return None
    sample = np.where(known, rows.numbers[:, numbers[0]], np.nan)
    return Axis(name, _grid(sample[known]), [], np.zeros(0), numbers[0], sample, True, missing)


def _axis_of_codes(rows: Block, layout: Layout, part: Part, index: int) -> Axis | None:
    values, counts = np.unique(rows.codes[:, index], return_counts=True)
    often = [k for k in np.argsort(-counts, kind="stable").tolist() if values[k] > 0][:MOST_CODES]
    labels = {k: layout.label(int(values[k])) for k in often}
    are_numbers = all(label.isdigit() or label == MISSING for label in labels.values())
    number_of = {k: int(label) if are_numbers and label != MISSING else 0 for k, label in labels.items()}
    often.sort(key=lambda k: (labels[k] == MISSING, number_of[k], labels[k]))
    for field, names in CALENDAR.items() if part.name != part.column else ():
        if part.name.endswith(field):
            labels |= {k: names[int(label) - 1] for k, label in labels.items() if label.isdigit()}
    shares = counts[often] / len(rows.codes)
    axis = Axis(part.name, values[often].astype(np.int64), [labels[k] for k in often], shares, index, np.empty(0))
    return axis._replace(is_ordered=are_numbers) if often else None


def _grid(values: np.ndarray) -> np.ndarray:
    """Return the points of a numeric curve: all distinct values if few, else a grid between extreme quantiles."""
    different = np.unique(values)
    if len(different) <= FEW_VALUES:
        return different
    low, high = np.quantile(values, [TAIL, 1.0 - TAIL], method="nearest")
    low, high = (low, high) if low < high else (different[0], different[-1])
    return np.linspace(low, high, GRID_POINTS)


def _with(rows: Block, axis: Axis, value: Any) -> Block:
    """Return rows with a value of an axis; NaN is a missing number."""
    numbers, codes = rows.numbers.copy(), rows.codes.copy()
    if not axis.is_numeric:
        codes[:, axis.column] = value
        return rows._replace(codes=codes)
    numbers[:, axis.column] = np.nan_to_num(value)
    if axis.missing is not None:
        codes[:, axis.missing[0]] = axis.missing[1] if np.isnan(value) else 0
    return rows._replace(numbers=numbers, codes=codes)

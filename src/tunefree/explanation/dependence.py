"""Partial dependence of a model: how its margins change with the columns that matter most.

In rows of the reference a column takes each value that is drawn, and the rest stays as it is (Friedman: Greedy function
approximation, 2001; the curves of single rows: Goldstein, Kapelner, Bleich, Pitkin: Peeking inside the black box,
2015).
"""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError, nearest
from tunefree.core.registry import names_in
from tunefree.core.rows import Block, n_rows, rows_at, together
from tunefree.explanation.decomposition import Decomposition, output_of
from tunefree.explanation.importance import Importance, importance, margin_name
from tunefree.explanation.members import evenly_spaced
from tunefree.stream.layout import CODES, MISSING, NUMBERS, Layout, Part

FINENESS = 24  # numbers of a curve
MOST_ROWS = 100  # in which a column takes all values
INNER = (0.1, 0.9)  # quantiles of the curves of single rows that are drawn
FEW = 12  # different numbers that are drawn one by one
CUT = 0.005  # part of the rows on each side that may lie beyond what is drawn
MOST_BARS = 12  # codes of a part
MOST_CLASSES = 6  # whose curves are drawn
SMALL = 0.2  # range of a part's curve, as a part of the largest one's of its column, below which it is not drawn
LEAST = 0.01  # importance of a column, as a part of the largest one's, below which it is drawn only if asked for
CALENDAR = {"[month]": calendar.month_abbr[1:], "[weekday]": list(calendar.day_abbr)}  # of parts of dates


class Axis(NamedTuple):
    """Values of a part of a column that are drawn."""

    name: str
    values: np.ndarray  # (v,) numbers, or int64 features of codes
    labels: list[str]  # of codes; none of numbers
    shares: np.ndarray  # (v,) part of the rows that have each code; empty for numbers
    column: int  # place among the numbers or the columns of codes of a table
    sample: np.ndarray  # (r,) of the rows of the reference: numbers, NaN where missing; empty for codes
    is_ordered: bool = False  # whether codes have an order of their own: that of labels
    missing: tuple[int, int] | None = None  # the column of codes and the code of a missing number, if any is

    @property
    def is_numeric(self) -> bool:
        """Whether the part is of numbers."""
        return not self.labels


class Curve(NamedTuple):
    """The margins of the classes that are drawn by the values of a part of a column."""

    axis: Axis
    importance: float  # of the column
    mean: np.ndarray  # (v, Q) over rows
    low: np.ndarray  # (v, Q) quantiles of the curves of single rows, moved to the mean height of the mean
    high: np.ndarray  # (v, Q)
    missing: np.ndarray | None  # (Q,) mean where the number is missing, if it ever is


class Picture(NamedTuple):
    """The curves of a model that are drawn."""

    curves: list[Curve]
    labels: list[str]  # of the classes; none in regression
    unit: str  # of the margins
    goal: str  # whose dependence is drawn
    note: str


def picture(
    decomposition: Decomposition,
    features: Sequence[Any] | None = None,
    target: Any = None,
    max_curves: int = 9,
    name: str | None = None,
    ranked: Importance | None = None,
) -> Picture:
    """The curves of a model to draw, of columns by their names or numbers from 0, or of those that matter most.

    ``target``: the class whose margin is drawn. By default the second of two classes, and of more classes all, but at
    most six: those that the model predicts most often.
    ``ranked``: the columns by importance, where they are known.
    Raises a ModelError if there is no such class or column, nothing can be drawn, or the model keeps no rows.
    """
    outputs, labels, sign = _classes(decomposition, target)
    ranked = ranked or importance(decomposition, outputs[0] if target is not None else None)
    sizes = dict(zip(ranked.terms.tolist(), ranked.sizes.tolist(), strict=True))
    if features is None:
        does_matter = (ranked.sizes > ranked.noise) & (ranked.sizes >= LEAST * max(ranked.sizes, default=0.0))
        terms, part_terms = ranked.terms[does_matter][:max_curves], decomposition.terms.part_terms[:-1]
        parts = [part for term in terms for part in np.flatnonzero(part_terms == term).tolist()]
        axes = [(part, axis) for part in parts if (axis := axis_of(decomposition, part)) is not None]
    else:
        axes = [_named(decomposition, wanted) for wanted in names_in(features)]
    if not axes:
        raise ModelError(
            "there is no column to draw: none matters beyond noise (name those to be drawn by `features`), or it has"
            " words or hashed features, which cannot be drawn"
        )
    rows = decomposition.reference_rows
    rows = rows_at(rows, evenly_spaced(n_rows(rows), MOST_ROWS))

    def margins(rows: Block) -> np.ndarray:
        return sign * decomposition.margins(rows)[:, outputs]

    def curve(part: int, axis: Axis) -> Curve:
        curves = margins(together([_with_value(rows, axis, value) for value in axis.values]))
        curves = curves.reshape(len(axis.values), n_rows(rows), -1)
        mean, missing = curves.mean(axis=1), None
        low, high = np.quantile(curves - curves.mean(axis=0) + mean.mean(axis=0), INNER, axis=1)
        if axis.missing is not None:
            missing_rows = _with(_with(rows, "numbers", axis.column, 0.0), "codes", *axis.missing)
            missing = margins(missing_rows).mean(axis=0)
        return Curve(axis, sizes.get(decomposition.terms.part_terms[part], 0.0), mean, low, high, missing)

    margin = margin_name(decomposition)
    if decomposition.model.task == "regression":
        margin = name or margin
    curves = [curve(part, axis) for part, axis in axes]
    if features is None:
        curves = _moving(curves, [decomposition.layout.parts[part].column for part, _ in axes])[:max_curves]
    note = _note(n_rows(rows), ranked.judges is not None)
    return Picture(curves, labels, margin, _goal(margin, labels, name), note)


def _goal(margin: str, labels: list[str], name: str | None) -> str:
    """Whose dependence is drawn."""
    if not labels:
        return margin
    if len(labels) > 1:
        return f"{margin} of the classes" + (f" of '{name}'" if name else "")
    return f"{margin} of " + (f"'{name}' = " if name else "class ") + f"'{labels[0]}'"


def _classes(decomposition: Decomposition, target: Any) -> tuple[list[int], list[str], float]:
    """The margins to draw, the labels of their classes, and the sign of a single one."""
    model = decomposition.model
    if model.task == "regression":
        if target is not None:
            raise ModelError("the model predicts numbers, not classes; leave the class out")
        return [0], [], 1.0
    if target is not None or model.n_outputs == 1:
        label = model.classes[-1] if target is None else target
        output, sign = output_of(model.classes, model.n_outputs, label)
        return [output], [str(label)], sign
    predicted = decomposition.margins(decomposition.reference_rows).argmax(axis=1)
    often = np.argsort(-np.bincount(predicted, minlength=model.n_outputs), kind="stable")[:MOST_CLASSES]
    outputs = sorted(often.tolist())
    return outputs, [str(model.classes[k]) for k in outputs], 1.0


def _moving(curves: list[Curve], columns: list[str]) -> list[Curve]:
    """The curves to draw: of a column with several parts, such as a date, only the parts that change most."""
    ranges = [float(np.ptp(curve.mean, axis=0).max()) for curve in curves]
    largest = {
        name: max(size for column, size in zip(columns, ranges, strict=True) if column == name) for name in columns
    }
    return [
        curve for curve, column, size in zip(curves, columns, ranges, strict=True) if size >= SMALL * largest[column]
    ]


def _named(decomposition: Decomposition, wanted: Any) -> tuple[int, Axis]:
    """The part that a column is, or that has this name, and its axis."""
    names = [part.name for part in decomposition.layout.parts]
    parts = [k for k, name in enumerate(names) if (name == wanted if isinstance(wanted, str) else k == wanted)]
    if not parts:
        raise ModelError(f"there is no column {wanted!r}; {nearest(wanted, names, 'columns')}")
    axis = axis_of(decomposition, parts[0])
    if axis is None:
        raise ModelError(f"{names[parts[0]]} cannot be drawn: no row of the reference has it, or it has words")
    return parts[0], axis


def _note(n_rows: int, is_of_loss: bool) -> str:
    """The caption of the curves."""
    measure = "rise of the mean loss where the column is permuted" if is_of_loss else "mean absolute contribution"
    low, high = (f"{100 * quantile:.0f} %" for quantile in INNER)
    return (
        f"Lines and points: mean over {n_rows} rows in which the column takes each value. Bands and whiskers: {low} to"
        f" {high} of the curves of single rows, moved to the same mean height; a wide one means that other columns"
        f" change what this one does. Right above: importance, the {measure}. Grey, and per cent beside names: how"
        " many rows have a value."
    )


def axis_of(decomposition: Decomposition, part: int) -> Axis | None:
    """The values of a part that are drawn: some numbers, or the most frequent codes; None where there are none.

    Words and hashed features have no axis.
    """
    rows, layout = decomposition.reference_rows, decomposition.layout
    kind = layout.parts[part].kind
    if kind == CODES:
        places = [q for q, column in enumerate(rows.code_columns.tolist()) if layout.code_source(column)[1] == part]
        return _axis_of_codes(rows, layout, layout.parts[part], places[0]) if places else None
    places = np.flatnonzero(layout.feature_parts[rows.columns] == part).tolist() if kind == NUMBERS else []
    return _axis_of_numbers(rows, layout, part, places[0]) if places else None


def _axis_of_numbers(rows: Block, layout: Layout, part: int, place: int) -> Axis | None:
    missing = None
    known = np.ones(len(rows.numbers), bool)
    for q, column in enumerate(rows.code_columns.tolist()):
        if layout.code_source(column)[1] == part and rows.codes[:, q].any():
            missing, known = (q, int(rows.codes[:, q].max())), rows.codes[:, q] == 0
    sample = np.where(known, rows.numbers[:, place], np.nan)
    if not known.any():
        return None
    return Axis(layout.parts[part].name, _grid(sample[known]), [], np.zeros(0), place, sample, True, missing)


def _axis_of_codes(rows: Block, layout: Layout, part: Part, place: int) -> Axis | None:
    different, counts = np.unique(rows.codes[:, place], return_counts=True)
    often = [j for j in np.argsort(-counts, kind="stable").tolist() if different[j] > 0][:MOST_BARS]
    labels = [layout.label(int(different[j])) for j in often]
    are_numbers = all(label.isdigit() or label == MISSING for label in labels)
    keys = [(label == MISSING, int(label) if label.isdigit() and are_numbers else 0, label) for label in labels]
    order = sorted(range(len(labels)), key=keys.__getitem__)
    often, labels = [often[k] for k in order], [labels[k] for k in order]
    for field, names in CALENDAR.items() if part.name != part.column else ():
        if part.name.endswith(field):
            labels = [names[int(label) - 1] if label.isdigit() else label for label in labels]
    values, shares = different[often].astype(np.int64), counts[often] / len(rows.codes)
    axis = Axis(part.name, values, labels, shares, place, np.empty(0), are_numbers)
    return axis if labels else None


def _grid(values: np.ndarray) -> np.ndarray:
    """Numbers at which a curve is drawn, between the quantiles beyond which few rows lie."""
    different = np.unique(values)
    if len(different) <= FEW:
        return different
    low, high = np.quantile(values, [CUT, 1.0 - CUT], method="nearest")
    low, high = (low, high) if low < high else (different[0], different[-1])
    return np.linspace(low, high, FINENESS)


def _with_value(rows: Block, axis: Axis, value: Any) -> Block:
    """Rows in which a part has one value."""
    if not axis.is_numeric:
        return _with(rows, "codes", axis.column, value)
    rows = rows if axis.missing is None else _with(rows, "codes", axis.missing[0], 0)
    return _with(rows, "numbers", axis.column, value)


def _with(rows: Block, kind: str, column: int, value: Any) -> Block:
    """Rows in which a column of numbers, or of codes, has one value."""
    values = getattr(rows, kind).copy()
    values[:, column] = value
    return rows._replace(**{kind: values})

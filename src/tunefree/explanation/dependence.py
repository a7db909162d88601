"""Partial dependence of a model: how its margins change with the columns that matter most.

In rows of the reference a column takes each value that is drawn, and the rest stays as it is (Friedman: Greedy function
approximation, 2001; the curves of single rows: Goldstein, Kapelner, Bleich, Pitkin: Peeking inside the black box,
2015).
"""

from __future__ import annotations

import math
import re
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
SKEWED = 8.0  # times their median size are so large that the scale is logarithmic
FEW = 12  # different numbers that are drawn one by one
CUT = 0.005  # part of the rows on each side that may lie beyond what is drawn
MOST_BARS = 12  # codes of a part
MOST_CLASSES = 6  # whose curves are drawn
SMALL = 0.2  # importance of a part of a column, as a part of its largest one's, below which it is not drawn
LEAST = 0.01  # importance of a column, as a part of the largest one's, below which it is drawn only if asked for
MONTHS = "January February March April May June July August September October November December"
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
CALENDAR = {"month": MONTHS.split(), "weekday": WEEKDAYS.split()}


class Axis(NamedTuple):
    """Values of a part of a column that are drawn."""

    name: str
    values: np.ndarray  # (v,) numbers, or int64 features of codes
    labels: list[str]  # of codes; none of numbers
    shares: np.ndarray  # (v,) part of the rows that have each code; empty for numbers
    column: int  # place among the numbers or the columns of codes of a table
    sample: np.ndarray  # (r,) of the rows of the reference: numbers, NaN where missing; empty for codes
    is_ordered: bool = False  # whether codes have an order of their own: that of labels
    linear_up_to: float = 0.0  # size from which on numbers are drawn on a logarithmic scale; 0 if on a linear one
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
    """The curves of a model to draw.

    ``features``: names or numbers (from 0) of columns; by default those that matter most, and beyond noise.
    ``target``: the class whose margin is drawn. By default the second of two classes, and of more classes all, but at
    most six: those that the model predicts most often.
    ``max_curves``: how many curves there are by default.
    ``ranked``: the columns by importance, where they are known.
    Raises a ModelError if there is no such class or column, nothing can be drawn, or the model keeps no rows.
    """
    outputs, labels, sign = _classes(decomposition, target)
    ranked = ranked or importance(decomposition, outputs[0] if target is not None else None)
    sizes = dict(zip(ranked.terms.tolist(), ranked.sizes.tolist(), strict=True))
    if features is None:
        does_matter = (ranked.sizes > ranked.noise) & (ranked.sizes >= LEAST * max(ranked.sizes, default=0.0))
        axes = _parts_that_matter(decomposition, ranked, _axes(decomposition, ranked.terms[does_matter].tolist()))
        axes = axes[:max_curves]
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


def _axes(decomposition: Decomposition, terms: list[int]) -> list[tuple[int, Axis]]:
    """The parts of the columns with these terms, in the order of these, with their axes, of those that have one."""
    rank = {term: rank for rank, term in enumerate(terms)}
    ranks = [rank.get(term) for term in decomposition.terms.part_terms[:-1].tolist()]
    parts = sorted((rank, part) for part, rank in enumerate(ranks) if rank is not None)
    axes = [(part, axis_of(decomposition, part)) for _, part in parts]
    return [(part, axis) for part, axis in axes if axis is not None]


def _parts_that_matter(
    decomposition: Decomposition, ranked: Importance, axes: list[tuple[int, Axis]]
) -> list[tuple[int, Axis]]:
    """The axes to draw: of a column with several parts, such as a date, only the parts that matter most.

    Parts of a date hang together: where one is permuted alone, no row can be so, and the loss rises without its use.
    """
    layout, new = decomposition.layout, ranked.judges
    part_columns = [layout.parts[part].column for part, _ in axes]
    if new is None or len(set(part_columns)) == len(axes):
        return axes
    keys = new.pool.members.growth.columns.keys
    part_of = np.array([layout.part_of(key) for key in keys])
    sizes = [size for size, _ in new.rises([np.flatnonzero(part_of == part) for part, _ in axes])]
    largest = {
        column: max(size for size, other in zip(sizes, part_columns, strict=True) if other == column)
        for column in part_columns
    }
    return [
        axis for axis, size, column in zip(axes, sizes, part_columns, strict=True) if size >= SMALL * largest[column]
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
    threshold = _threshold(sample[known])
    name, grid = layout.parts[part].name, _grid(sample[known], threshold)
    return Axis(name, grid, [], np.zeros(0), place, sample, True, threshold, missing)


def _axis_of_codes(rows: Block, layout: Layout, part: Part, place: int) -> Axis | None:
    different, counts = np.unique(rows.codes[:, place], return_counts=True)
    often = [j for j in np.argsort(-counts, kind="stable").tolist() if different[j] > 0][:MOST_BARS]
    labels = [layout.label(int(different[j])) for j in often]
    if part.name != part.column:  # of a date
        labels = [_calendar_name(label, part.name) for label in labels]
    places = _places_of(labels)
    keys = [(label == MISSING, 0.0 if places is None else places[k], label) for k, label in enumerate(labels)]
    order = sorted(range(len(labels)), key=keys.__getitem__)
    often, labels = [often[k] for k in order], [labels[k] for k in order]
    values, shares = different[often].astype(np.int64), counts[often] / len(rows.codes)
    axis = Axis(part.name, values, labels, shares, place, np.empty(0), places is not None)
    return axis if labels else None


def _calendar_name(label: str, part: str) -> str:
    """The name of a month or a weekday of a column of dates, which are numbered from 1."""
    for field, names in CALENDAR.items():
        if part.endswith(f"[{field}]") and label.isdigit():
            return names[int(label) - 1][:3]
    return label


def _places_of(labels: list[str]) -> list[float] | None:
    """Positions of labels in the order of months, weekdays, or the numbers they begin with; None without an order.

    >>> _places_of(["Mar", "january"]), _places_of(["65+", "<18", MISSING]), _places_of(["1st", "Masters"])
    ([2.0, 0.0], [65.0, 17.999999999999996, inf], None)
    """
    for names in CALENDAR.values():
        stems = [label.casefold().rstrip(".") for label in labels]
        places = [
            next((place for place, name in enumerate(names) if name.casefold().startswith(stem) and stem[2:]), -1)
            for stem in stems
        ]
        if all(place >= 0 or label == MISSING for place, label in zip(places, labels, strict=True)):
            return [math.inf if place < 0 else float(place) for place in places]
    numbers = [re.match(r"([<>=≤≥ ]*)(-?\d+(?:\.\d+)?)", label) for label in labels]
    if not all(number or label == MISSING for number, label in zip(numbers, labels, strict=True)):
        return None
    ends = {"<": -math.inf, ">": math.inf}  # less than 10 comes before 10 to 20
    return [
        math.nextafter(float(number[2]), ends.get(number[1][:1], float(number[2]))) if number else math.inf
        for number in numbers
    ]


def _threshold(values: np.ndarray) -> float:
    """The absolute value from which on the scale is logarithmic; 0 unless some numbers are far larger than most."""
    sizes = np.abs(values[values != 0.0])
    if len(np.unique(values)) <= FEW:
        return 0.0
    low, middle, high = np.quantile(sizes, [0.05, 0.5, 1.0 - CUT])
    return float(low) if high > SKEWED * middle else 0.0


def _grid(values: np.ndarray, threshold: float) -> np.ndarray:
    """Numbers at which a curve is drawn, between the quantiles beyond which few rows lie."""
    different = np.unique(values)
    if len(different) <= FEW:
        return different
    low, high = np.quantile(values, [CUT, 1.0 - CUT], method="nearest")
    low, high = (low, high) if low < high else (different[0], different[-1])
    grid = np.linspace(low, high, FINENESS)
    if threshold > 0.0:
        grid = threshold * np.sinh(np.linspace(np.arcsinh(low / threshold), np.arcsinh(high / threshold), FINENESS))
        grid[[0, -1]] = low, high
    return np.unique(grid)


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

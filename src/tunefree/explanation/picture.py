"""A picture of a model: how its margins depend on the columns that matter most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError, nearest
from tunefree.core.registry import names_in
from tunefree.core.rows import n_rows
from tunefree.explanation.decomposition import Decomposition
from tunefree.explanation.importance import Importance, importance, reference_of
from tunefree.explanation.panels import INNER, MOST_ROWS, Axis, Dependence, axis_of, dependence
from tunefree.explanation.reference import evenly_spaced
from tunefree.model.targets import place_of

MOST_CLASSES = 6  # whose curves are drawn
LEAST = 0.01  # importance of a column, as a part of the largest one's, below which it is drawn only if asked for


class Picture(NamedTuple):
    """What is drawn of a model."""

    curves: list[Dependence]
    importance: dict[int, float]  # of the terms
    outputs: list[int]  # the margins of the classes that are drawn
    labels: list[str]  # of these classes; none in regression
    sign: float  # -1 if the one margin is drawn for the first of two classes, else 1
    unit: str  # of the margins
    goal: str  # whose dependence is drawn
    note: str


def picture(
    decomposition: Decomposition,
    features: Sequence[Any] | None = None,
    target: Any = None,
    max_curves: int = 9,
    name: str | None = None,
) -> Picture:
    """What to draw of a model.

    ``features``: names or numbers (from 0) of columns; by default those that matter most.
    ``target``: the class whose margin is drawn. By default the second of two classes, and of more classes all, but at
    most six: those that the model predicts most often.
    ``max_curves``: how many curves there are by default.
    Raises a ModelError if there is no such class or column, nothing can be drawn, or the model keeps no rows.
    """
    outputs, labels, sign = _classes(decomposition, target)
    ranked = importance(decomposition, outputs[0] if target is not None else None)
    sizes = dict(zip(ranked.terms.tolist(), ranked.sizes.tolist(), strict=True))
    if features is None:
        drawn = _most_important(decomposition, ranked)[:max_curves]
    else:
        drawn = [_named(decomposition, wanted) for wanted in names_in(features)]
    if not drawn:
        raise ModelError("no column of the model can be drawn: those of words and of hashed features cannot")
    margin = name or "prediction"
    if decomposition.model.task == "classification":
        margin = "log-odds" if decomposition.model.loss_is_log_loss else "margin"
    return Picture(
        [dependence(decomposition, part, axis) for part, axis in drawn],
        sizes,
        outputs,
        labels,
        sign,
        margin,
        _goal(margin, labels, name),
        _note(decomposition, ranked.learned is not None),
    )


def _goal(margin: str, labels: list[str], name: str | None) -> str:
    """Whose dependence is drawn."""
    if not labels:
        return margin
    if len(labels) > 1:
        return f"{margin} of the classes" + (f" of '{name}'" if name else "")
    return f"{margin} of " + (f"'{name}' = " if name else "class ") + f"'{labels[0]}'"


def output_of(classes: list[Any], n_outputs: int, label: Any) -> tuple[int, float]:
    """The margin of a class, and its sign: one margin is for the second of two classes.

    ``classes``: labels in the order of the margins.
    ``label``: or how it is written.

    >>> output_of(["no", "yes"], 1, "no"), output_of([1, 2, 3], 3, "2")
    ((0, -1.0), (1, 1.0))
    """
    if not classes:
        raise ModelError(f"there is no class {label!r}: the model predicts numbers")
    place = place_of(label, classes)
    return (place, 1.0) if n_outputs > 1 else (0, 1.0 if place == 1 else -1.0)


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
    predicted = decomposition.margins(reference_of(decomposition)).argmax(axis=1)
    often = np.argsort(-np.bincount(predicted, minlength=model.n_outputs), kind="stable")[:MOST_CLASSES]
    outputs = sorted(often.tolist())
    return outputs, [str(model.classes[k]) for k in outputs], 1.0


def _most_important(decomposition: Decomposition, ranked: Importance) -> list[tuple[int, Axis]]:
    """The parts of columns that are drawn, with their axes, in order of the importance of their columns.

    A column may be as important as what it has with the noise.
    """
    least = LEAST * max(ranked.sizes, default=0.0)
    may_matter = (ranked.sizes + ranked.noise >= least).tolist()
    ranks = {term: rank for rank, term in enumerate(ranked.terms.tolist()) if may_matter[rank]}
    parts = []
    for k, part in enumerate(decomposition.layout.parts):
        rank, axis = ranks.get(decomposition.names.index(part.column, 1)), axis_of(decomposition, k)
        parts += [(rank, k, axis)] if axis is not None and rank is not None else []
    return [(k, axis) for _, k, axis in sorted(parts, key=lambda each: each[:2])]


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


def _note(decomposition: Decomposition, is_of_loss: bool) -> str:
    """What is drawn, in words."""
    of_column = "rise of the mean loss where the column is permuted" if is_of_loss else "mean absolute contribution"
    rows = len(evenly_spaced(n_rows(reference_of(decomposition)), MOST_ROWS))
    low, high = (f"{100 * quantile:.0f} %" for quantile in INNER)
    return (
        f"Lines and points: mean over {rows} rows in which the column takes each value. Bands and whiskers: {low} to"
        f" {high} of the curves of single rows, moved to the same mean height; a wide one means that other columns"
        " change what this one does. Right above: importance,"
        f" the {of_column}."
    )

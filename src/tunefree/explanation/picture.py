"""A picture of a model: the columns and pairs that matter most, and how much of the model they explain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.explanation.decomposition import Decomposition
from tunefree.explanation.fidelity import Ranking, measured, ranking
from tunefree.explanation.panels import Curve, Map, curve, drawable, map_of
from tunefree.explanation.told import own_margins, percent, scale_told, shares_told

MOST_CLASSES = 6  # whose curves are drawn
LEAST = 0.01  # importance of a term, as a part of the largest one's, below which it is drawn only if asked for


class Picture(NamedTuple):
    """What is drawn of a model."""

    curves: list[Curve]
    maps: list[Map]
    importance: dict[int, float]  # of the terms
    outputs: list[int]  # the margins of the classes that are drawn
    labels: list[str]  # of these classes; none in regression
    sign: float  # -1 if the one margin is drawn for the first of two classes, else 1
    unit: str  # of contributions
    goal: str  # what they contribute to
    note: str


def picture(
    decomposition: Decomposition,
    features: Sequence[Any] | None = None,
    target: Any = None,
    max_curves: int = 9,
    max_pairs: int = 3,
    name: str | None = None,
) -> Picture:
    """What to draw of a model.

    Parameters
    ----------
    decomposition : Decomposition
        With a sample.
    features : sequence, optional
        Names or numbers (from 0) of columns, and pairs of them as tuples; by default those that matter most.
    target : label, optional
        The class whose margin is drawn. By default the second of two classes, and of more classes all, but at most
        six: those that the model predicts most often.
    max_curves, max_pairs : int
        How many columns and pairs there are by default.
    name : str, optional
        What the target is called.

    Returns
    -------
    Picture

    Raises
    ------
    ModelError
        If there is no such class or column, nothing can be drawn, or the model keeps no sample of rows.
    """
    outputs, labels, sign = _classes(decomposition, target)
    ranked = ranking(decomposition, outputs[0] if target is not None else None)
    terms = _most_important(decomposition, ranked, max_curves, max_pairs) if features is None else []
    for wanted in features or []:
        terms.append(_named(decomposition, wanted))
    if not terms:
        raise ModelError("no column of the model can be drawn: those of words and of hashed features cannot")
    first_pair = decomposition.terms.first_pair
    return Picture(
        [curve(decomposition, term) for term in terms if term < first_pair],
        [map_of(decomposition, term) for term in terms if term >= first_pair],
        dict(zip(ranked.terms.tolist(), ranked.importance.tolist(), strict=True)),
        outputs,
        labels,
        sign,
        f"contribution to {_margin(decomposition, name)}",
        _goal(decomposition, labels, name),
        _note(decomposition, terms, ranked, outputs if target is not None else None),
    )


def _margin(decomposition: Decomposition, name: str | None = None) -> str:
    """What margins are called."""
    if decomposition.model.task == "regression":
        return name or "the prediction"
    return "the log-odds" if decomposition.model.loss_is_log_loss else "the margin"


def _goal(decomposition: Decomposition, labels: list[str], name: str | None) -> str:
    """What is contributed to."""
    margin = _margin(decomposition, name)
    if decomposition.model.task == "regression":
        return margin
    if len(labels) > 1:
        return f"{margin} of the classes" + (f" of '{name}'" if name else "")
    return f"{margin} of " + (f"'{name}' = " if name else "class ") + f"'{labels[0]}'"


def output_of(classes: list[Any], n_outputs: int, label: Any) -> tuple[int, float]:
    """The margin of a class, and its sign: one margin is for the second of two classes.

    Parameters
    ----------
    classes : list
        Labels in the order of the margins.
    n_outputs : int
        Margins.
    label : label
        Or how it is written.

    Examples
    --------
    >>> output_of(["no", "yes"], 1, "no"), output_of([1, 2, 3], 3, "2")
    ((0, -1.0), (1, 1.0))
    """
    found = [k for k, known in enumerate(classes) if known == label] or [
        k for k, known in enumerate(classes) if str(known) == str(label)
    ]
    if not found:
        known = ", ".join(map(str, classes[:20]))
        raise ModelError(f"there is no class {label}; choose one of {known}{', ...' if len(classes) > 20 else ''}")
    return (found[0], 1.0) if n_outputs > 1 else (0, 1.0 if found[0] == 1 else -1.0)


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
    predicted = decomposition.margins(decomposition.reference).argmax(axis=1)
    often = np.argsort(-np.bincount(predicted, minlength=model.n_outputs), kind="stable")[:MOST_CLASSES]
    outputs = sorted(often.tolist())
    return outputs, [str(model.classes[k]) for k in outputs], 1.0


def _most_important(decomposition: Decomposition, ranked: Ranking, max_curves: int, max_pairs: int) -> list[int]:
    """The terms to draw, in order of importance."""
    first_pair, left, found = decomposition.terms.first_pair, [max_curves, max_pairs], []
    for term, importance in zip(ranked.terms.tolist(), ranked.importance.tolist(), strict=True):
        is_pair = term >= first_pair
        if importance >= LEAST * ranked.importance[0] and left[is_pair] > 0 and drawable(decomposition, term):
            left[is_pair] -= 1
            found.append(term)
    return found


def _named(decomposition: Decomposition, wanted: Any) -> int:
    """The term of a column, or of a pair of columns."""
    terms = decomposition.terms
    if isinstance(wanted, tuple):
        own = {_named(decomposition, each) for each in wanted}
        found = [terms.first_pair + p for p in range(len(terms.pair_names)) if set(terms.of_pair(p)) == own]
        problem = f"the model has no pair of {' and '.join(map(str, wanted))}; choose one of {_few(terms.pair_names)}"
    else:
        names = [part.name for part in terms.layout.parts]
        numbered = not isinstance(wanted, str)
        found = [1 + k for k, name in enumerate(names) if (k == wanted if numbered else name == wanted)]
        problem = f"there is no column {wanted!r}; choose one of {_few(names)}"
    if not found:
        raise ModelError(problem)
    if not drawable(decomposition, found[0]):
        raise ModelError(f"{terms.names[found[0]]} cannot be drawn: no sampled row has it, or it has words")
    return found[0]


def _few(names: list[str]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "") if names else "columns alone"


def _note(decomposition: Decomposition, terms: list[int], ranked: Ranking, outputs: list[int] | None) -> str:
    """What is drawn, and how much of the model's margins it explains."""
    rows, chosen = decomposition.reference, slice(None) if outputs is None else outputs
    found = decomposition.contributions(rows)[:, [0, *terms]].sum(axis=1)[:, chosen]
    drawn = measured(decomposition.margins(rows)[:, chosen], found)
    whole, n_all = ranked.fidelity, len(ranked.terms)
    what = f"{len(terms)} of {n_all}" if len(terms) < n_all else str(n_all)
    text = (
        f"{shares_told(decomposition)} The {what} terms drawn explain {percent(drawn.explained)} of the variance of the"
        f" model's own {own_margins(decomposition)} over {whole.rows:,} rows"
    )
    text += f", all terms {percent(whole.explained)}" if len(terms) < n_all else ""
    if decomposition.model.task == "classification" and outputs is None:
        text += f"; terms and model choose the same class in {percent(whole.agreement)} of them"
    return f"{text}.{scale_told(whole)}"

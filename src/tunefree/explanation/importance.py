"""How much each column matters to predictions, and what that means in words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.rows import Block, n_rows, rows_at
from tunefree.explanation.decomposition import Decomposition
from tunefree.explanation.members import unit_of
from tunefree.explanation.reference import evenly_spaced
from tunefree.losses.rates import has_rates

MOST_ROWS = 512


class Importance(NamedTuple):
    """Columns by importance, the largest first."""

    terms: np.ndarray  # (t,) their places among all terms
    names: list[str]
    sizes: np.ndarray  # (t,) mean absolute contribution
    errors: np.ndarray  # (t,) its standard error over the rows
    rows: int


def importance(decomposition: Decomposition, output: int | None = None) -> Importance:
    """The mean absolute contribution of each column over the reference, to one margin or to all."""
    rows = reference_of(decomposition)
    rows = rows_at(rows, evenly_spaced(n_rows(rows), MOST_ROWS))
    outputs = slice(None) if output is None else slice(output, output + 1)
    sizes = np.abs(decomposition.contributions(rows)[:, 1:, outputs]).mean(axis=2)
    unit = unit_of([sizes])
    relative = sizes / unit
    means, errors = unit * relative.mean(axis=0), unit * (relative.std(axis=0) / np.sqrt(len(sizes)))
    order = np.argsort(-means, kind="stable")
    order = order[means[order] > 0.0]
    names = [decomposition.names[1 + k] for k in order.tolist()]
    return Importance(1 + order, names, means[order], errors[order], len(sizes))


def reference_of(decomposition: Decomposition) -> Block:
    """The rows of the reference, which there have to be."""
    if decomposition.reference.rows is None:
        raise ModelError(
            "the model keeps no rows, over which columns are compared; explain(X) has the contributions to rows X"
        )
    return decomposition.reference.rows


def describe_reference(decomposition: Decomposition) -> str:
    """What contributions are to, and relative to, as a sentence."""
    rows = decomposition.reference.matrix if decomposition.reference.rows is not None else ()
    relative = f"to their mean over {len(rows):,} rows" if len(rows) else "to a row of which nothing is known"
    return f"Contributions add up to the {margin_name(decomposition)}, and are relative {relative}."


def describe_importance(decomposition: Decomposition, columns: Importance) -> str:
    """What importance is, as a sentence."""
    return (
        f"Importance: mean absolute contribution to the {margin_name(decomposition)}, over {columns.rows:,} rows; the"
        " standard error is that of this mean."
    )


def margin_name(decomposition: Decomposition) -> str:
    """What the model's margins are called."""
    if decomposition.model.task == "regression":
        return "logarithm of the prediction" if has_rates(decomposition.model.options.loss) else "prediction"
    return "log-odds" if decomposition.model.loss_is_log_loss else "margin"

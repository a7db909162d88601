"""Words for what is explained."""

from __future__ import annotations

from tunefree.explanation.decomposition import Decomposition
from tunefree.explanation.importance import Importance
from tunefree.losses.rates import has_rates


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

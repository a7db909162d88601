"""Words for what terms are of, and for how faithful they are."""

from __future__ import annotations

import math

from tunefree.explanation.decomposition import Decomposition
from tunefree.explanation.fidelity import Fidelity

FAITHFUL = 0.05  # by which a factor has to raise the part of the variance that is explained, to be told


def shares_told(decomposition: Decomposition) -> str:
    """What the terms are of, as a sentence."""
    n, total = decomposition.n_members, len(decomposition.model.members)
    margins = "predictions" if decomposition.model.task == "regression" else "margins"
    if total == 1:
        return f"{margins.capitalize()} of the one member."
    return f"Share-weighted {margins} of {n} of the {total} members ({percent(decomposition.share)} of the shares)."


def fidelity_told(decomposition: Decomposition, fidelity: Fidelity, of_one_class: bool = False) -> str:
    """How faithful the terms are to the model, or to its margin of one of several classes, as sentences."""
    text = (
        f"They explain {percent(fidelity.explained)} of the variance of the model's own {own_margins(decomposition)}"
        f" over {fidelity.rows:,} rows"
    )
    if decomposition.model.task == "classification" and not of_one_class:
        text += f"; terms and model choose the same class in {percent(fidelity.agreement)} of them"
    return f"{text}.{scale_told(fidelity)}"


def own_margins(decomposition: Decomposition) -> str:
    """What the model's margins are called."""
    if decomposition.model.task == "regression":
        return "predictions"
    return "log-odds" if decomposition.model.loss_is_log_loss else "margins"


def scale_told(fidelity: Fidelity) -> str:
    """By which factor the terms are too certain, as a sentence; nothing if it makes little difference."""
    if not fidelity.explained_if_scaled > fidelity.explained + FAITHFUL:
        return ""
    explained = percent(fidelity.explained_if_scaled)
    return (
        " The model averages probabilities, which are less certain than averaged margins: times"
        f" {fidelity.scale:.2f} all terms explain {explained}."
    )


def percent(part: float) -> str:
    """A part as a percentage.

    Examples
    --------
    >>> percent(0.98765), percent(1.0), percent(0.99996), percent(math.nan), percent(-1.2)
    ('98.8 %', '100 %', '> 99.9 %', 'none', 'none')
    """
    if math.isnan(part) or part < 0.0:
        return "none"
    if part > 0.9995:
        return "> 99.9 %" if part < 1.0 - 1e-9 else "100 %"
    return f"{100 * part:.1f} %"

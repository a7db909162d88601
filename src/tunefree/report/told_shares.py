"""Shares of members with curves and with weights in words, for what commands print and for reports."""

from __future__ import annotations

from typing import Any

from tunefree.explanation.told import percent
from tunefree.model.model import Model

MOST_OF_ALL = 0.995  # a share of members beside which the others do not matter


def facts_of_curves(model: Model) -> dict[str, Any]:
    """How many curves, knots and pairs there are, and the share of the members that learn them; nothing without."""
    additive = model.ensemble.additive
    if additive is None:
        return {}
    share = sum(float(shares.sum()) for group, shares in model.predictive_groups() if group.additive is not None)
    knots = [len(own.values) for own in additive.knots if len(own.values) > 2]
    return {"curves": len(knots), "knots": sum(knots), "pairs": len(additive.pairs.first), "share_of_curves": share}


def line_of_curves(model: Model) -> list[str]:
    """The same in words."""
    known = facts_of_curves(model)
    if not known:
        return []
    return [
        f"{known['curves']:,} curves with {known['knots']:,} knots, {known['pairs']:,} pairs of columns; the members"
        f" that learn them have {percent(known['share_of_curves'])} of the shares"
    ]


def share_of_weights(model: Model) -> float:
    """The share of the members whose weights of features are shown."""
    return float(sum(shares.sum() for _, shares in model.predictive_groups()[:1]))


def without_weights(model: Any) -> str:
    """Why features have no weights in a model, as a line."""
    if isinstance(model, Model) and model.options.has_generations:
        return "made of trees and linear learners, mixed by rules that learn, where features have no weights"
    return (
        f"made of {model.n_support:,} rows, in the space of a kernel, where features as they are given have no weights"
    )


def meaning_of_shares(model: Model) -> str:
    """What the share of a member is of."""
    if model.options.has_generations:
        return "weight of each member awake in the mean that the mixture corrects"
    return "share of each member in predictions"


def caveat_of_weights(model: Model) -> str | None:
    """What weights of features do not show; None if they show nearly all."""
    share = share_of_weights(model)
    if share > MOST_OF_ALL:
        return None
    return (
        f"weights are those of the linear members, times their shares: together {percent(share)} of the shares; the"
        " rest of a prediction is not in them"
    )

"""Rows that repeat earlier ones: copies and later runs of a group, which are no evidence, and rows that are alike."""

from __future__ import annotations

from typing import Any

from tunefree.model_files.plan import Plan
from tunefree.pool.model import are_many


def repeats_told(trained: Any) -> list[str]:
    """A line where rows repeat earlier ones, or groups are not contiguous; none otherwise.

    Parameters
    ----------
    trained : Trained
        At the end of its pass.
    """
    plan: Plan = trained.plan
    if not trained.model.options.is_pool:
        return []
    repeated, rows = trained.model.repeats()
    if plan.group is not None and repeated:
        return [
            f"{repeated:,} of {rows:,} rows are of groups that came before, and only the first run of a group is "
            f"evidence; sort the rows by {plan.group}"
        ]
    n_alike = trained.model.n_alike
    remedy = "; if rows belong together, name the column by `group`" if trained.kind == "table" else ""
    if are_many(repeated, rows):
        return [f"{repeated:,} of {rows:,} rows repeat earlier ones and are no evidence{remedy}"]
    if are_many(n_alike, rows):
        return [f"{n_alike:,} of {rows:,} rows have the features of earlier ones, and are rows of their own{remedy}"]
    return []

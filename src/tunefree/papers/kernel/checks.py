"""Whether the parts of a bank that a file holds fit together."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.rows import n_rows, reach
from tunefree.papers.kernel.points import BLOCK, DensePoints


def check_waiting(bank: Any, model: Any) -> None:
    """Rows that are kept back are learned later, with targets as places of outputs."""
    for rows in bank.waiting:
        _fit(n_rows(rows.X) == len(rows.y) and len(rows.y), "rows that wait have not a target each")
        _fit(reach(rows.X) <= model.n_features, "rows that wait have features that the model does not have")
        if model.task == "classification":
            known = [-1.0, 1.0] if model.n_outputs == 1 else np.arange(model.n_outputs)
            _fit(np.isin(rows.y, known).all(), "rows that wait have classes that are none")
        _fit(not bank.frozen and len(rows.y) < bank.most_waiting, "more rows wait than there can be")


def check_expansion(bank: Any, model: Any) -> None:
    """Support points fit the kernel members and the rows of the model."""
    if bank.expansion is None:
        return
    expansion = bank.expansion
    _fit(expansion.filled < BLOCK, "the open block of support points is full")
    _fit(expansion.n_functions == len(bank.members), "there are not as many functions as members")
    for member in bank.members:  # what is read of a state to predict; roots of negative numbers raise errors
        factors = [member.state.factor(k) for k in range(model.n_outputs)]
        _fit(np.isfinite([*factors, member.state.share_to_come()]).all(), "a kernel learner has no finite factor")
    precision = np.float64 if bank.kernel_config.double else np.float32
    for points in (expansion.store, expansion.block):
        _fit(type(points) is type(expansion.block), "support points are of two kinds")
        _fit(points.values.dtype == points.norms.dtype == precision, "support points are of another precision")
        if isinstance(points, DensePoints):
            is_given = bank.kernel_config.name == "precomputed"
            _fit(is_given or points.values.shape[1] == bank.n_columns, "support points have other columns than rows")
        else:
            highest = points.features[: points.pointers[points.size]].max(initial=0)
            _fit(highest < model.n_features, "support points have features that the model does not have")


def _fit(holds: Any, problem: str) -> None:
    if not holds:
        raise ModelError(problem)

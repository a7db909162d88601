"""Evidence over shards: the sums of which certificates are made add up, whatever predicted each row.

The inequality of :mod:`tunefree.theory.evidence` holds for any predictions of any rows, so the sums of all shards bound
the loss of every linear model on all rows that were learned. Here the predictions are those of the linear member of
exact gradients, below which no linear model can be far; where there is none, those of the model that training ends
with.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree.core import threads
from tunefree.core.rows import n_rows
from tunefree.core.states import filled, flatten
from tunefree.distributed.common_model import ModelState, labelled
from tunefree.distributed.encoded import Encoded
from tunefree.losses.objectives import measured
from tunefree.model.model import PIECE, Model
from tunefree.model.standing import LEARNER
from tunefree.theory.evidence import Evidence, record_evidence


class Proved(NamedTuple):
    """Sums over shards."""

    arrays: dict[str, np.ndarray]  # by the names of their parts; empty if there are no rows

    def plus(self, other: Proved) -> Proved:
        """The sums over the rows of both."""
        if not self.arrays or not other.arrays:
            return self if self.arrays else other
        return Proved(_added(self.arrays, other.arrays))


def gathered(rows: Encoded, state: ModelState) -> Proved:
    """The evidence of the rows of a shard, as a model predicts them."""
    if rows.X is None or not len(rows.y):
        return Proved({})
    model = Model.restore(*state)
    found = Evidence.create(model.n_features, model.n_outputs)
    every, objective = labelled(model, rows), model.objective
    with threads.at_most(1), threads.one_for_products():
        for start in range(0, n_rows(rows.X), PIECE):
            piece = every.part(start, start + PIECE)
            predictions = np.ascontiguousarray(_predictions(model, piece.X))
            losses = measured(objective, piece.y, predictions)
            record_evidence(found, objective, piece.X, piece.y, piece.weight, predictions, losses)
    return Proved(flatten("evidence", found, model.n_features)[0])


def _predictions(model: Model, X: Any) -> np.ndarray:
    """What the linear member of exact gradients predicts, or the model."""
    linear = model.ensemble.linear
    exact = [member for member in linear.members if member.setting.learner == LEARNER]
    if not exact:
        return model.predict(X)
    read = exact[0].weights(model.n_features, model.n_outputs)
    return exact[0].predict(linear.in_view(X, exact[0].setting.view), read)


def into(model: Model, proved: Proved) -> None:
    """Let a model have the evidence of all shards."""
    blank = Evidence.create(model.n_features, model.n_outputs)
    model.record.evidence = filled("evidence", blank, proved.arrays, {})


def _added(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Sums of evidence: gradients are in units of each feature, powers of two, of which the larger one is kept."""
    both = one, other
    inverses = [own["evidence.features.inverse"] for own in both]
    known = [own > 0.0 for own in inverses]
    inverse = np.where(known[0] & known[1], np.minimum(*inverses), np.maximum(*inverses))
    shrunk = [
        np.where(is_known, inverse / np.where(is_known, own, 1.0), 0.0)
        for is_known, own in zip(known, inverses, strict=True)
    ]
    largest = [own["evidence.features.largest"] * by for own, by in zip(both, shrunk, strict=True)]
    sums = [own["evidence.coordinates.gradients"] * by[:, None] for own, by in zip(both, shrunk, strict=True)]
    made: dict[str, Any] = {
        "evidence.features.inverse": inverse,
        "evidence.features.largest": np.maximum(*largest),
        "evidence.coordinates.gradients": sums[0] + sums[1],
    }
    return made | {name: one[name] + other[name] for name in one if name not in made}

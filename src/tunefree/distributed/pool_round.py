"""The pool round: fresh members make one pass over each shard, and are merged feature by feature.

A weight of the merged member is the mean over the shards of what they learned, in proportion to the sum of squared
gradients of this weight, which tells how much each shard had to say of it. So a feature that few shards have is learned
from these. Gradients are those of the predictions that members made before each row, so nothing depends on what a
learner is made of.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import threads
from tunefree.core.numbers import within
from tunefree.distributed.common_model import ModelState, labelled
from tunefree.distributed.encoded import Encoded
from tunefree.losses.linked import slopes_in_predictions
from tunefree.losses.objectives import chosen, measured
from tunefree.model import batch_phase
from tunefree.model.batch_rows import inverses
from tunefree.model.group import LabelledRows, MemberGroup
from tunefree.model.members import Setting
from tunefree.model.mixture import predictive_shares
from tunefree.model.model import PIECE, Model
from tunefree.model.pruning import negligible_members
from tunefree.model.row_sums import add_squares, padded
from tunefree.model.standing import MERGED, StandingMember
from tunefree.model.targets import RunningMetrics

STEEPEST = 1e100  # what a gradient of a coordinate may be, so that sums of squares stay finite
FIRST_PRUNING = 2**14  # rows of a shard after which members may be dropped


class Merged(NamedTuple):
    """Sums over shards."""

    weighted: list[np.ndarray]  # of each member (d, K): sums of squared gradients, times its weights
    squares: list[np.ndarray]  # of each member (d, K): sums of squared gradients
    largest: list[np.ndarray]  # of each view of a batch phase (d,): the largest absolute value of each column
    means: list[np.ndarray]  # of each view of a batch phase (d,): sums of squares of each column
    metrics: dict[str, float]  # of the predictions that shards made before each row
    rows: int

    def plus(self, other: Merged) -> Merged:
        """The sums over the shards of both."""
        if not self.rows or not other.rows:
            return self if self.rows else other
        weighted = [a + b for a, b in zip(self.weighted, other.weighted, strict=True)]
        squares = [a + b for a, b in zip(self.squares, other.squares, strict=True)]
        largest = [np.maximum(a, b) for a, b in zip(self.largest, other.largest, strict=True)]
        means = [a + b for a, b in zip(self.means, other.means, strict=True)]
        metrics = {name: value + other.metrics[name] for name, value in self.metrics.items()}
        return Merged(weighted, squares, largest, means, metrics, self.rows + other.rows)


def plus(*sums: Any) -> Any:
    """The sum of several, in their order."""
    total = sums[0]
    for own in sums[1:]:
        total = total.plus(own)
    return total


def batch_groups(model: Model) -> list[MemberGroup]:
    """The groups that get a member of exact gradients."""
    return [group for group in model.ensemble.groups if batch_phase.is_worth(group, model)]


def learned(rows: Encoded, state: ModelState) -> Merged:
    """Let fresh members learn a shard.

    Parameters
    ----------
    rows : Encoded
    state : ModelState
        The common model.
    """
    if rows.X is None or not len(rows.y):
        return Merged([], [], [], [], {}, 0)
    model = Model.restore(*state)
    labelled_rows, metrics, learning = labelled(model, rows), RunningMetrics(), Learning(model)
    with threads.at_most(1), threads.one_for_products():
        for start in range(0, len(rows.y), PIECE):
            piece = labelled_rows.part(start, start + PIECE)
            mixed = learning.learn(piece)
            codes = rows.y[start : start + PIECE]
            losses = measured(model.objective, piece.y, mixed)
            metrics.add(piece.weight, losses, errors(model, codes, mixed))
            learning.review(start + len(piece.y))
        reads = model.ensemble.reads(model.n_features)
    assert reads is not None
    weighted, squares = [], learning.squares()
    for (weights, units), own in zip(reads, squares, strict=True):
        absolute = np.zeros_like(own)
        absolute[: len(units)] = weights * inverses(units)[:, None]
        weighted.append(own * absolute)
    return Merged(weighted, squares, *learning.sizes(), asdict(metrics), len(rows.y))


class Learning:
    """Members of a model learn rows; those whose share is negligible soon stop, but what they have learned counts."""

    def __init__(self, model: Model) -> None:
        self.model, self.busy = model, list(range(len(model.members)))
        self.squares_of = [Squares(model, group) for group in model.ensemble.groups]
        for own in self.squares_of:
            own.group.observer = own.add

    def learn(self, rows: LabelledRows) -> np.ndarray:
        """Let members learn rows; what their mixture predicts of each before (n, K)."""
        predictions = self.model.ensemble.learn(rows, True, self.busy)[self.busy]
        for own in self.squares_of:
            own.add_unseen(rows)
        objective = self.model.objective
        return self.model.aggregation.update(objective, rows.y, rows.evaluation_weight, predictions)

    def review(self, rows: int) -> None:
        """Let members with a negligible share learn no more, after each power of two of rows."""
        if rows < FIRST_PRUNING or rows & (rows - 1):
            return
        shares = np.zeros(len(self.model.members))
        shares[self.busy] = predictive_shares(self.model.mixture)
        leaves = negligible_members(self.model.ensemble, shares, np.zeros(len(shares)), rows, FIRST_PRUNING)
        self.model.aggregation.prune(leaves[self.busy])
        self.busy = [member for member in self.busy if not leaves[member]]

    def squares(self) -> list[np.ndarray]:
        """Of all members."""
        return [squares for own in self.squares_of for squares in own.of_members()]

    def sizes(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Of each view of a batch phase the largest absolute value of each column, and the sum of its squares."""
        found = [sizes for own in self.squares_of for sizes in own.sizes()]
        return [largest for largest, _ in found], [squares for _, squares in found]


class Squares:
    """Sums of squared gradients of the members of a group, and sizes of columns."""

    def __init__(self, model: Model, group: MemberGroup) -> None:
        self.group, self.n_outputs = group, model.n_outputs
        width, views = batch_phase.width_of(model, group), [member.setting.view for member in group.members]
        self.worth = [batch_phase.VIEWS[group.name]] if batch_phase.is_worth(group, model) else []
        self.seen: set[str] = set()  # views that some member saw the latest rows in
        self.members = {v: [m for m, own in enumerate(views) if own == v] for v in dict.fromkeys([*views, *self.worth])}
        self.largest = {view: np.zeros(width) for view in self.members}
        self.sums = {
            view: padded(np.zeros((width, 1 + len(own) * self.n_outputs))) for view, own in self.members.items()
        }

    def add(self, seen: dict[str, Any], rows: LabelledRows, predictions: np.ndarray, members: list[int]) -> None:
        """Add rows that some members learned, of which they predicted (M, n, K) before."""
        for view in {self.group.members[m].setting.view for m in members}:
            slopes = np.zeros((len(rows.y), len(self.members[view]) * self.n_outputs))
            for place, m in enumerate(self.members[view]):
                if m in members:
                    given = rows.y, rows.weight, np.ascontiguousarray(predictions[m])
                    _, found = slopes_in_predictions(self.group.members[m].objective, *given)
                    slopes[:, place * self.n_outputs : (place + 1) * self.n_outputs] = found
            self._add(view, seen[view], within(slopes, STEEPEST))
            self.seen.add(view)

    def add_unseen(self, rows: LabelledRows) -> None:
        """Add rows in the view of a batch phase if none of its members learns any more."""
        for view in set(self.worth) - self.seen:
            self._add(view, self.group.in_view(rows.X, view), np.zeros((len(rows.y), 0)))
        self.seen.clear()

    def _add(self, view: str, X: Any, slopes: np.ndarray) -> None:
        """Add rows in a view; squares of the columns come first, then gradients of the members."""
        factors = np.zeros((len(slopes), self.sums[view].shape[1]))
        factors[:, 0], factors[:, 1 : 1 + slopes.shape[1]] = 1.0, slopes**2
        add_squares(X, factors, self.sums[view], self.largest[view])

    def of_members(self) -> list[np.ndarray]:
        """Sums of squared gradients (d, K) of each member."""
        found: dict[int, np.ndarray] = {}
        for view, members in self.members.items():
            by_member = np.split(self.sums[view][:, 1:], self.n_outputs * np.arange(1, 1 + len(members)), axis=1)
            found |= {m: by_member[place].copy() for place, m in enumerate(members)}
        return [found[m] for m in range(len(self.group.members))]

    def sizes(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The largest absolute value (d,) of each column in the view of a batch phase, and the sum of its squares."""
        return [(self.largest[view], self.sums[view][:, 0].copy()) for view in self.worth]


def errors(model: Model, targets: np.ndarray, predictions: np.ndarray) -> np.ndarray:
    """1 where a predicted class is wrong, else 0; in regression the absolute error."""
    if model.task == "regression":
        return np.minimum(np.abs(targets - predictions[:, 0]), STEEPEST)
    return (targets != chosen(predictions)).astype(np.float64)


def merge_members(model: Model, merged: Merged) -> None:
    """Let members that stand still, with the merged weights, take the place of those of the common model."""
    number = 0
    for group in model.ensemble.groups:
        made = []
        for member in group.members:
            weighted, squares = merged.weighted[number], merged.squares[number]
            weights = np.divide(weighted, squares, out=np.zeros_like(weighted), where=squares > 0.0)
            setting = Setting(MERGED + member.setting.learner, member.setting.settings, member.setting.view)
            standing = StandingMember(setting, len(weights), model.n_outputs, member.objective)
            standing.take(weights, np.array((squares > 0.0).any(axis=1), np.float64))
            standing.rows, standing.mass = member.rows, member.mass
            made.append(standing)
            number += 1
        group.members = []
        for standing in made:
            group.add(standing)

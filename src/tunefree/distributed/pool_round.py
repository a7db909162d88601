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
from scipy import sparse

from tunefree.core import threads
from tunefree.distributed.common_model import ModelState, labelled
from tunefree.distributed.encoded import Encoded
from tunefree.losses.linked import slopes_in_predictions
from tunefree.losses.objectives import chosen, measured
from tunefree.model import batch_phase
from tunefree.model.batch_rows import inverses, largest_of, matrix
from tunefree.model.group import LabelledRows, MemberGroup
from tunefree.model.members import Setting
from tunefree.model.model import PIECE, Model
from tunefree.model.standing import MERGED, StandingMember
from tunefree.model.targets import RunningMetrics

STEEPEST = 1e100  # what a gradient of a coordinate may be, so that sums of squares stay finite


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
    labelled_rows, metrics, sums = labelled(model, rows), RunningMetrics(), Squares(model)
    with threads.at_most(1), threads.one_for_products():
        for start in range(0, len(rows.y), PIECE):
            piece = labelled_rows.part(start, start + PIECE)
            predictions = model.ensemble.learn(piece, again=True)
            sums.add(piece, predictions)
            codes = rows.y[start : start + PIECE]
            mixed = model.aggregation.update(model.objective, piece.y, piece.evaluation_weight, predictions)
            losses = measured(model.objective, piece.y, mixed)
            metrics.add(piece.weight, losses, errors(model, codes, mixed))
        reads = model.ensemble.reads(model.n_features)
    assert reads is not None
    weighted = []
    for (weights, units), squares in zip(reads, sums.squares, strict=True):
        absolute = np.zeros_like(squares)
        absolute[: len(units)] = weights * inverses(units)[:, None]
        weighted.append(squares * absolute)
    return Merged(weighted, sums.squares, sums.largest, sums.means, asdict(metrics), len(rows.y))


class Squares:
    """Sums of squared gradients of all members of a model, and sizes of columns."""

    def __init__(self, model: Model) -> None:
        self.model = model
        groups = model.ensemble.groups
        self.squares = [
            np.zeros((batch_phase.width_of(model, group), model.n_outputs))
            for group in groups
            for member in group.members
        ]
        self.of_batch = batch_groups(model)
        self.largest = [np.zeros(batch_phase.width_of(model, group)) for group in self.of_batch]
        self.means = [np.zeros(batch_phase.width_of(model, group)) for group in self.of_batch]

    def add(self, rows: LabelledRows, predictions: np.ndarray) -> None:
        """Add rows, of which the members predicted (N, n, K)."""
        before = 0
        for group in self.model.ensemble.groups:
            views = [member.setting.view for member in group.members]
            shown = {view: self._squared(group, rows.X, view) for view in dict.fromkeys(views)}
            steep = [self._steep(own, rows, predictions[before + n]) for n, own in enumerate(group.members)]
            for view, squared in shown.items():
                alike = [number for number, own in enumerate(views) if own == view]
                sums = squared.T @ np.concatenate([steep[number] for number in alike], axis=1)
                for number, own in zip(alike, np.split(sums, len(alike), axis=1), strict=True):
                    self.squares[before + number] += own
            if group in self.of_batch:
                place, view = self.of_batch.index(group), batch_phase.VIEWS[group.name]
                squared = shown[view] if view in shown else self._squared(group, rows.X, view)
                np.maximum(self.largest[place], np.sqrt(largest_of(squared)), out=self.largest[place])
                self.means[place] += squared.sum(axis=0)
            before += len(views)

    def _steep(self, member: Any, rows: LabelledRows, predictions: np.ndarray) -> np.ndarray:
        """Squares of the slopes (n, K) of the losses in the predictions of a member."""
        _, slopes = slopes_in_predictions(member.objective, rows.y, rows.weight, np.ascontiguousarray(predictions))
        steep = np.clip(np.nan_to_num(slopes, posinf=STEEPEST, neginf=-STEEPEST), -STEEPEST, STEEPEST)
        return np.asarray(steep * steep)

    def _squared(self, group: MemberGroup, X: Any, view: str) -> Any:
        """The squares of the entries of rows in a view, in double precision."""
        found = matrix(group.in_view(X, view), batch_phase.width_of(self.model, group)).astype(np.float64)
        values = found.data if sparse.issparse(found) else found
        values *= values
        return found


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
            made.append(standing)
            number += 1
        group.members = []
        for standing in made:
            group.add(standing)

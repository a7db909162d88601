"""Contacts: exact losses and gradients of all shards at a few points, and the points to ask of next.

Each view that is worth it has problems, the mean loss plus a ridge around a start: the merged weights with several
ridges, and 0, since merged weights may know their rows too well. All are solved in the same contacts. Between contacts
the coordinator takes a step of L-BFGS (Nocedal 1980, see :mod:`tunefree.model.lbfgs`) for each ridge. Its inverse
Hessian begins with the curvature that a sample of the rows shows, by some conjugate gradients (Byrd, Chin, Neveitt,
Nocedal: On the use of stochastic Hessian information in optimization methods for machine learning, SIAM J. Optim.
2011). The sample's Hessian is shrunk towards the diagonal in proportion to how many features there are for each of its
rows (Ledoit, Wolf: A well-conditioned estimator for large-dimensional covariance matrices, 2004), and not at all where
it holds all rows: n of N rows tell with 1 - n / N of the variance of n independent ones. How many iterations of
conjugate gradients are made, and how long the step is, is what the jury is predicted best with: to stop early
regularises, as a ridge does. A step stands if the exact loss falls enough (Armijo 1966); else the next contact asks of
a shorter one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import threads
from tunefree.distributed.common_model import ModelState, labelled
from tunefree.distributed.encoded import Encoded, picked
from tunefree.losses.linked import slopes_in_margins
from tunefree.losses.objectives import measured, predictions_of, smoothness, unit_of_margins
from tunefree.model import batch_phase
from tunefree.model.batch_rows import PIECE, BatchRows
from tunefree.model.group import MemberGroup
from tunefree.model.lbfgs import CURVED, ENOUGH, MEMORY
from tunefree.model.model import Model

RIDGES = (3000.0, 300.0, 1.0)  # of descents from what shards learned, in rows of the steepest curvature of the loss
FROM_ZERO = (30.0, 1.0)  # of descents from 0
CHOSEN = 2  # contacts after which of each start only the ridge goes on with which the jury is predicted best
SOLVED = 0.05  # of the right side: what conjugate gradients may leave
MOST_SOLVING = 24  # iterations of conjugate gradients
MOST_WORK = 2.0**33  # entries, times outputs, that the solutions of a contact may go through
LENGTHS = (2.0, 1.0, 0.5, 0.25, 0.1, 0.03)  # of steps that are tried on the jury
SHORTER = 0.25  # of a step that did not stand
DIFFERENCE = 1e-4  # of margins, between which slopes are compared to find curvatures


class Asked(NamedTuple):
    """The points of one view at which a contact asks."""

    points: np.ndarray  # (L, d, K) weights of the columns times the inverse units
    inverse: np.ndarray  # (d,) 1 / unit of each column


class Answer(NamedTuple):
    """Sums over the rows of shards, at the points of each view."""

    losses: list[np.ndarray]  # (L,) of each view
    gradients: list[np.ndarray]  # (L, d, K) of each view
    weight: float  # sum of the sample weights

    def plus(self, other: Answer) -> Answer:
        """The sums over the shards of both."""
        losses = [a + b for a, b in zip(self.losses, other.losses, strict=True)]
        gradients = [a + b for a, b in zip(self.gradients, other.gradients, strict=True)]
        return Answer(losses, gradients, self.weight + other.weight)


def answered(rows: Encoded, state: ModelState, asked: list[Asked], stride: int = 1) -> Answer:
    """Losses and gradients of a shard.

    Parameters
    ----------
    rows : Encoded
    state : ModelState
        A model with one member in each group.
    asked : list of Asked
        Of each group with weights.
    stride : int
        Of so many rows one is asked.
    """
    losses = [np.zeros(len(own.points)) for own in asked]
    gradients = [np.zeros(own.points.shape) for own in asked]
    if rows.X is None or not len(rows.y):
        return Answer(losses, gradients, 0.0)
    model, rows = Model.restore(*state), rows.at(picked(np.arange(len(rows.y)), stride, 2))
    with threads.at_most(1):
        for number, group in enumerate(group for group in model.ensemble.groups if group.members):
            for block in batch_blocks(model, group, rows):
                found = _gradients(block, group.members[0].objective, asked[number])
                losses[number] += found[0]
                gradients[number] += found[1]
    return Answer(losses, gradients, float(rows.weight.sum()))


def _gradients(rows: BatchRows, objective: Any, asked: Asked) -> tuple[np.ndarray, np.ndarray]:
    """Sums of losses (L,) and gradients (L, d, K) at all points, in one pass over the rows."""
    n_points, width, n_outputs = asked.points.shape
    by_column = np.concatenate(list(asked.points * asked.inverse[:, None]), axis=1).astype(np.float32)
    losses, sums = np.zeros(n_points), np.zeros((width, n_points * n_outputs))
    with threads.one_for_products():
        for block in rows.blocks:
            margins = np.split((block.rows @ by_column).astype(np.float64), n_points, axis=1)
            found = [slopes_in_margins(objective, block.y, block.weight, np.ascontiguousarray(own)) for own in margins]
            losses += [loss for loss, _ in found]
            sums += block.rows.T @ np.concatenate([slopes for _, slopes in found], axis=1).astype(np.float32)
    gradients = sums.reshape(width, n_points, n_outputs).transpose(1, 0, 2) * asked.inverse[:, None]
    return losses, gradients


def batch_blocks(model: Model, group: MemberGroup, rows: Encoded) -> Iterator[BatchRows]:
    """The rows as the view of a group's batch member shows them, some at a time."""
    every = labelled(model, rows)
    for start in range(0, len(every.y), PIECE):
        X, y, weight, _ = every.part(start, start + PIECE)
        seen = group.in_view(X, batch_phase.VIEWS[group.name])
        yield BatchRows([(seen, y, weight)], batch_phase.width_of(model, group), model.n_outputs)


class Sample:
    """The rows at the coordinator, in one view: what steps are made of between contacts.

    Parameters
    ----------
    blocks : list of BatchRows
    objective : objective
    inverse : (d,) array
        1 / unit of each column.
    squares : (d,) array
        Means of squares of the columns over all rows, in their units.
    n_in_all : int
        Rows of all shards.
    limits : (float, float), optional
        To which predictions are clipped where losses judge; by default the range of the numbers to predict.
    """

    def __init__(
        self,
        blocks: list[BatchRows],
        objective: Any,
        inverse: np.ndarray,
        squares: np.ndarray,
        n_in_all: int,
        limits: tuple[float, float] | None = None,
    ) -> None:
        self.blocks, self.objective, self.inverse = blocks, objective, inverse
        if limits is None:
            lowest, highest = zip(*(block.limits(objective) for block in blocks), strict=True)
            limits = min(lowest), max(highest)
        self.limits = limits
        self.steepest = smoothness(objective) * unit_of_margins(objective) ** 2
        self.weight = sum(block.weight for block in blocks)
        n_rows = sum(block.n_rows for block in blocks)
        self.squares = squares
        self.n_outputs = blocks[0].n_outputs
        unknown = int(np.count_nonzero(squares)) * max(1.0 - n_rows / n_in_all, 0.0)
        self.n_in_all, self.shrinkage = n_in_all, unknown / (unknown + n_rows)
        work = sum(block.work for block in blocks)
        self.iterations = int(np.clip(MOST_WORK / ((len(RIDGES) + len(FROM_ZERO)) * 2.0 * work), 4, MOST_SOLVING))

    def beside(self, blocks: list[BatchRows]) -> Sample:
        """Other rows in the same view, of which predictions are clipped as those of these."""
        return Sample(blocks, self.objective, self.inverse, self.squares, self.n_in_all, self.limits)

    def _each(self, function: Callable[..., Any], *given: list[Any]) -> list[Any]:
        """What a function returns of each block of rows and what is given of it. No worker has work meanwhile, so all
        threads take part."""
        every = [own for block in self.blocks for own in block.blocks]
        found: list[Any] = [None] * len(every)

        def of_block(place: int, *arguments: Any) -> None:
            found[place] = function(*arguments)

        threads.each(
            of_block, list(zip(range(len(every)), every, *given, strict=True)), sum(len(own.y) for own in every)
        )
        return found

    def margins(self, weights: np.ndarray) -> list[np.ndarray]:
        """Of all rows, block by block."""
        by_column = (weights * self.inverse[:, None]).astype(np.float32)
        return self._each(lambda own: (own.rows @ by_column).astype(np.float64))

    def losses(self, margins: list[np.ndarray]) -> np.ndarray:
        """The loss (n) of each row, times its weight, of predictions that are clipped."""
        y, weight = (np.concatenate([b[field] for own in self.blocks for b in own.blocks]) for field in (1, 2))
        predictions = np.clip(predictions_of(self.objective, np.concatenate(margins)), *self.limits)
        return np.asarray(weight * measured(self.objective, y, predictions))

    def slopes(self, margins: list[np.ndarray]) -> tuple[float, list[np.ndarray]]:
        """The mean loss, over its steepest curvature, and slopes (n, K) of the rows, times their weights."""
        found = self._each(lambda own, at: slopes_in_margins(self.objective, own.y, own.weight, at), margins)
        return sum(loss for loss, _ in found) / self.weight / self.steepest, [slopes for _, slopes in found]

    def back(self, slopes: list[np.ndarray]) -> np.ndarray:
        """The mean gradient (d, K), over the steepest curvature, that slopes of the rows stand for."""
        total = np.zeros((len(self.inverse), self.n_outputs))
        for part in self._each(lambda own, at: own.rows.T @ at.astype(np.float32), slopes):
            total += part
        return total * (self.inverse[:, None] / (self.weight * self.steepest))


class Curvature:
    """The Hessian of a sample at a point, shrunk towards its diagonal, plus a ridge."""

    def __init__(self, sample: Sample, point: np.ndarray, ridge: float) -> None:
        self.sample, self.ridge = sample, ridge
        self.at = sample.margins(point)
        _, self.slopes = sample.slopes(self.at)
        self.diagonal = self._diagonal()

    def _diagonal(self) -> np.ndarray:
        """Of the Hessian of all rows, if each had the mean curvature: (d, K)."""
        step = DIFFERENCE
        curved = np.zeros(self.sample.n_outputs)
        for k in range(self.sample.n_outputs):
            moved = [at.copy() for at in self.at]
            for own in moved:
                own[:, k] += step
            _, slopes = self.sample.slopes(moved)
            both = zip(slopes, self.slopes, strict=True)
            curved[k] = sum(float((new[:, k] - old[:, k]).sum()) for new, old in both) / step
        mean = np.maximum(curved / (self.sample.weight * self.sample.steepest), 1e-6)
        return self.sample.squares[:, None] * mean

    def times(self, direction: np.ndarray) -> np.ndarray:
        """The product with a direction (d, K)."""
        along = self.sample.margins(direction)
        longest = max((float(np.abs(own).max(initial=0.0)) for own in along), default=0.0)
        penalty = self.ridge * direction
        penalty[0] = 0.0
        if longest == 0.0:
            return self.diagonal * direction * self.sample.shrinkage + penalty
        step = DIFFERENCE / longest
        _, slopes = self.sample.slopes([at + step * own for at, own in zip(self.at, along, strict=True)])
        product = self.sample.back([(new - old) / step for new, old in zip(slopes, self.slopes, strict=True)])
        share = self.sample.shrinkage
        return (1.0 - share) * product + share * self.diagonal * direction + penalty

    def solutions(self, right: np.ndarray) -> Iterator[np.ndarray]:
        """What the Hessian maps to ``right``, better and better: conjugate gradients after 1, 2, 4 ... iterations."""
        near = 1.0 / np.maximum(self.diagonal + self.ridge, 1e-12)
        found, left = np.zeros_like(right), right.copy()
        preconditioned = near * left
        along, size = preconditioned.copy(), float((left * preconditioned).sum())
        enough = SOLVED**2 * size
        for number in range(1, 1 + self.sample.iterations):
            product = self.times(along)
            bend = float((along * product).sum())
            if not bend > 0.0:
                break
            found = found + size / bend * along
            left -= size / bend * product
            preconditioned = near * left
            before, size = size, float((left * preconditioned).sum())
            is_last = number == self.sample.iterations or not size > enough
            if is_last or number & (number - 1) == 0:
                yield found
            if is_last:
                return
            along = preconditioned + size / before * along
        yield found if found.any() else near * right


class Descent:
    """The iterates on one ridge of one view; the ridge draws towards the start, which knows more than 0 does."""

    def __init__(self, sample: Sample, jury: Sample, ridge: float, start: np.ndarray) -> None:
        self.sample, self.jury, self.start, self.asked = sample, jury, start, start
        self.ridge = ridge
        self.point = start
        self.value, self.gradient = np.inf, np.zeros_like(start)
        self.pairs: list[tuple[np.ndarray, np.ndarray, float]] = []
        self.direction = np.zeros_like(start)
        self.length, self.fall = 0.0, 0.0
        self.of_jury = np.inf  # the loss of the jury at the point

    def _beyond(self, point: np.ndarray) -> np.ndarray:
        """What the ridge is of: how far a point is from the start, but for the constant."""
        away = point - self.start
        away[0] = 0.0
        return away

    def penalised(self, point: np.ndarray, loss: float, gradient: np.ndarray, ridge: float) -> Any:
        """Value and gradient with the ridge, which leaves the constant alone."""
        kept = self._beyond(point)
        return loss + 0.5 * ridge * float((kept**2).sum()), gradient + ridge * kept

    def told(self, loss: float, gradient: np.ndarray, weight: float, rows: int) -> bool:
        """Learn the exact sums at the point that was asked of; whether it is taken."""
        ridge = self.ridge / rows
        steepest = self.sample.steepest
        value, slope = self.penalised(self.asked, loss / weight / steepest, gradient / weight / steepest, ridge)
        if not value <= self.value + ENOUGH * self.length * self.fall:
            self.length *= SHORTER
            self.asked = self.point + self.length * self.direction
            return False
        if np.isfinite(self.value):
            step, change = (self.asked - self.point), slope - self.gradient
            product = float((step * change).sum())
            if product > CURVED * float(np.linalg.norm(step)) * float(np.linalg.norm(change)):
                self.pairs = [*self.pairs[1 - MEMORY :], (step, change, product)]
        self.point, self.value, self.gradient = self.asked, value, slope
        self._step(ridge)
        return True

    def _step(self, ridge: float) -> None:
        """The next point to ask of: of directions and lengths, those with which the jury is predicted best."""
        with threads.one_for_products():
            curvature = Curvature(self.sample, self.point, ridge)
            left, parts = -self.gradient, []
            for step, change, product in reversed(self.pairs):
                parts.append(float((step * left).sum()) / product)
                left = left - parts[-1] * change
            least = np.inf
            at = self.jury.margins(self.point)
            for solution in curvature.solutions(left):
                direction = self._corrected(solution, parts)
                fall = float((self.gradient * direction).sum())
                if not fall < 0.0:
                    continue
                along = self.jury.margins(direction)
                for length in LENGTHS:
                    further = [own + length * more for own, more in zip(at, along, strict=True)]
                    loss = float(self.jury.losses(further).sum())
                    if loss < least:
                        least, self.direction, self.fall, self.length = loss, direction, fall, length
        self.asked = self.point + self.length * self.direction

    def _corrected(self, solution: np.ndarray, parts: list[float]) -> np.ndarray:
        """A solution of the sample's equations, corrected by the pairs: the second loop of L-BFGS."""
        found = solution
        for (step, change, product), own in zip(self.pairs, reversed(parts), strict=True):
            found = found + (own - float((change * found).sum()) / product) * step
        return found

"""The subgradient method: every iterate is a predictor, and the number of iterations is the regularization.

Lin, Rosasco, Zhou: Iterative regularization for learning with convex loss functions (JMLR 17, 2016):

    f_1 = 0,   f_{t+1} = f_t - eta_t (1/m) sum_j V'_-(y_j, f_t(x_j)) K_{x_j},   eta_t = eta_1 t^-theta         (1)
    a_T = sum_t eta_t f_t / sum_t eta_t                                                                       (2)
    b_T = the iterate f_t, t <= T, with the least empirical error                                             (3)

and Remark 3, one row a step, in order or shuffled anew for each pass; there iterations are passes, and steps are
numbered through. Rows of weight w count w times; K outputs are K functions with a loss of them all.

What is recorded of f_t is exact for the coefficients kept, so the path can be read, continued and taken up anywhere:
margins are never carried along, but computed from the coefficients each time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.numbers import finite
from tunefree.core.threads import one_for_products
from tunefree.early_stopping.empirical import losses_of_rows, respond, visit
from tunefree.early_stopping.spaces import largest_eigenvalue
from tunefree.losses.contract import growth
from tunefree.losses.objectives import chosen, smoothness
from tunefree.theory.stopping_times import gradient_bound, largest_step

TRIAL, RUNGS = 20, 6  # iterations with each of so many steps, where steps are tried
AT_A_TIME = 256  # rows of which a pass of single steps takes the inner products together
PATH = np.dtype(
    [("iteration", np.int64)]
    + [
        (name, np.float64)
        for name in (
            "step",  # eta_t; of the pass's first step where rows are taken one by one
            "training_loss",
            "training_error",
            "validation_loss",
            "validation_error",
            "norm",
            "inner",  # <subgradient of the empirical error in f_t, f_t>
            "average_training_loss",
            "average_training_error",
            "average_validation_loss",
            "average_validation_error",
        )
    ]
)


class Rows(NamedTuple):
    """Targets of rows, and their weights."""

    y: np.ndarray  # (n,) float64: classes, -1 and +1, or numbers
    weight: np.ndarray  # (n,) of sum 1 (or no rows at all)


def wrong_classes(y: np.ndarray, margins: np.ndarray) -> np.ndarray:
    """1 (n,) where the largest margin is another class's, or the one margin has the wrong sign; else 0."""
    codes = y > 0 if margins.shape[1] == 1 else y
    return (chosen(margins) != codes).astype(np.float64)


def absolute_errors(y: np.ndarray, margins: np.ndarray) -> np.ndarray:
    """|f(x) - y| (n,)."""
    return np.abs(margins[:, 0] - y)


class Problem(NamedTuple):
    """What is minimised, and what is watched."""

    space: Any  # a Space
    objective: Any
    n_outputs: int
    errors: Callable[[np.ndarray, np.ndarray], np.ndarray]
    learned: Rows
    held: Rows
    watched: bool = True  # whether margins of rows held out are computed


class Schedule(NamedTuple):
    """Steps eta t^-theta, and the order of rows."""

    eta: float
    theta: float
    order: str = "batch"  # or "cyclic", "shuffled": one row a step
    seed: int = 0


class Iterate(NamedTuple):
    """f_t, and what its average with the iterates before it needs."""

    t: int
    coefficients: np.ndarray  # (p, K) of f_t
    sums: np.ndarray  # (p, K) sum of eta_s f_s over the steps before
    mass: float  # sum of eta_s over the steps before


class Look(NamedTuple):
    """What the rows say of f_t."""

    margins: np.ndarray  # (n, K)
    held: np.ndarray  # (v, K)
    slopes: np.ndarray  # (n, K) left derivatives times weights
    losses: np.ndarray  # (n,)
    gradient: np.ndarray  # (p, K) coefficients of the subgradient


def steps(schedule: Schedule, first: int, count: int) -> np.ndarray:
    """eta_t for t = first, ..., first + count - 1."""
    return schedule.eta * np.arange(first, first + count, dtype=np.float64) ** -schedule.theta


class Path:
    """A run of the method that is over, and can be looked back upon.

    Parameters
    ----------
    problem : Problem
        Its space is None, and its rows are none, where they are not needed: where all iterates are kept.
    schedule : Schedule
    kept : dict of Iterate
        By their numbers.
    stride : int
        Every so many iterates one is kept.
    records : list
        One for each iterate, as in ``PATH``.
    """

    is_over = True

    def __init__(
        self,
        problem: Problem,
        schedule: Schedule,
        kept: dict[int, Iterate],
        stride: int,
        records: list[tuple[Any, ...]],
    ) -> None:
        self.problem, self.schedule = problem, schedule
        self._kept, self._stride, self._records = kept, stride, records

    @property
    def path(self) -> np.ndarray:
        """What was recorded of f_1, f_2, ..., a record each (see ``PATH``)."""
        return np.array(self._records, PATH)

    @property
    def rows(self) -> Any:
        """The rows that iterates between those kept are computed anew from; None where all are kept."""
        return self.problem.space.rows if self._stride > 1 else None

    def last(self, t: int) -> np.ndarray:
        """Coefficients (p, K) of f_t."""
        return self._at(t).coefficients

    def average(self, t: int) -> np.ndarray:
        """Coefficients (p, K) of a_t."""
        iterate = self._at(t)
        step = self._step_at(t)
        return (iterate.sums + step * iterate.coefficients) / (iterate.mass + step)

    def best(self, t: int) -> np.ndarray:
        """Coefficients (p, K) of b_t."""
        self._check(t)
        return self.last(int(self.path["training_loss"][:t].argmin()) + 1)

    def save_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :meth:`restore` makes the same path, with a problem that has the rows."""
        kept = [self._kept[t] for t in sorted(self._kept)]
        arrays = {name: np.array([getattr(iterate, name) for iterate in kept]) for name in Iterate._fields}
        path = self.path
        arrays |= {f"path.{name}": path[name] for name in PATH.names or ()}
        needed = slice(None if self._stride > 1 or self.schedule.order != "batch" else 0)
        arrays |= {"y": self.problem.learned.y[needed], "weight": self.problem.learned.weight[needed]}
        return arrays, {"schedule": self.schedule._asdict(), "stride": self._stride}

    @staticmethod
    def restore(problem: Problem, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Path:
        """The path that :meth:`save_state` wrote down; ``problem`` gets the targets that it had."""
        columns = [arrays[f"path.{name}"].tolist() for name in PATH.names or ()]
        numbers = zip(arrays["t"].tolist(), arrays["mass"].tolist(), strict=True)
        kept = {
            t: Iterate(t, arrays["coefficients"][i], arrays["sums"][i], mass) for i, (t, mass) in enumerate(numbers)
        }
        problem = problem._replace(learned=Rows(arrays["y"], arrays["weight"]), watched=False)
        return Path(
            problem, Schedule(**header["schedule"]), kept, int(header["stride"]), list(zip(*columns, strict=True))
        )

    def _check(self, t: int) -> None:
        if not 1 <= t <= len(self._records):
            raise ValueError(f"there are iterates 1 to {len(self._records)}, not {t}")

    def _step_at(self, t: int) -> float:
        return float(steps(self.schedule, self._first_step(t), 1)[0])

    def _first_step(self, t: int) -> int:
        """The number of the first step after f_t."""
        return t if self.schedule.order == "batch" else (t - 1) * len(self.problem.learned.y) + 1

    def _at(self, t: int) -> Iterate:
        self._check(t)
        iterate = self._kept[(t - 1) // self._stride * self._stride + 1]
        with one_for_products():
            while iterate.t < t:
                iterate = self._next(iterate, self._look_at(iterate.coefficients, held=False))
        return iterate

    def _look_at(self, coefficients: np.ndarray, held: bool = True) -> Look:
        space, objective, rows = self.problem.space, self.problem.objective, self.problem.learned
        margins = np.empty((len(rows.y), self.problem.n_outputs))
        slopes, losses = np.empty_like(margins), np.empty(len(rows.y))

        def answer(place: slice, found: np.ndarray) -> np.ndarray:
            margins[place] = found
            respond(objective, rows.y[place], rows.weight[place], margins[place], slopes[place], losses[place])
            return slopes[place]

        gradient = space.sweep(coefficients, answer)
        beside = space.held(coefficients) if held and self.problem.watched else margins[:0]
        return Look(margins, beside, slopes, losses, gradient)

    def _next(self, iterate: Iterate, look: Look) -> Iterate:
        if self.schedule.order != "batch":
            return self._pass(iterate)
        step = self._step_at(iterate.t)
        coefficients = iterate.coefficients - step * look.gradient  # (1)
        return Iterate(iterate.t + 1, coefficients, iterate.sums + step * iterate.coefficients, iterate.mass + step)

    def _pass(self, iterate: Iterate) -> Iterate:
        """One row a step (Remark 3), some rows' inner products at a time: the same numbers as one by one."""
        space, objective, rows = self.problem.space, self.problem.objective, self.problem.learned
        n = len(rows.y)
        order = np.arange(n)
        if self.schedule.order == "shuffled":
            order = np.random.default_rng([self.schedule.seed, iterate.t]).permutation(n)
        etas = steps(self.schedule, self._first_step(iterate.t), n)
        coefficients, sums = iterate.coefficients.copy(), iterate.sums.copy()
        for start in range(0, n, AT_A_TIME):
            some, eta = order[start : start + AT_A_TIME], etas[start : start + AT_A_TIME]
            margins, inner = space.some(some, coefficients)
            moved = np.empty_like(margins)
            visit(objective, rows.y[some], n * rows.weight[some], eta, inner, margins, moved)
            moved *= eta[:, None]
            later = eta.sum() - np.cumsum(eta)  # of the steps for which a row's move is already in f
            sums += eta.sum() * coefficients
            space.pull(some, moved * later[:, None], sums)
            space.pull(some, moved, coefficients)
        return Iterate(iterate.t + 1, coefficients, sums, iterate.mass + float(etas.sum()))


class Descent(Path):
    """A run of the method, which can be continued and looked back upon.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
    budget : int
        Bytes for iterates. While they fit, all are kept; later every second one, every fourth one and so on, and those
        between are computed anew from the last one kept: the same steps on the same numbers, so the same bits.
    """

    def __init__(self, problem: Problem, schedule: Schedule, budget: int) -> None:
        super().__init__(problem, schedule, {}, 1, [])
        self.budget, self.is_over = budget, False
        zeros = np.zeros((problem.space.n_coefficients, problem.n_outputs))
        self.iterate = Iterate(1, zeros, zeros, 0.0)
        self._seen = np.zeros((len(problem.learned.y), problem.n_outputs))  # margins of `sums`
        self._seen_held = np.zeros((len(problem.held.y), problem.n_outputs))
        self._look: Look | None = None

    def run(self, iterations: int) -> None:
        """Go on until f_t is recorded for t = 1 .. iterations."""
        with one_for_products():
            while len(self._records) < iterations:
                if self._look is not None:
                    self._advance(self._look)
                self._look = self._look_at(self.iterate.coefficients)
                self._record(self._look)
                self._keep(self.iterate)

    def settle(self, going_on: bool) -> None:
        """Let go of what only a continuation needs: tiles of a Gram matrix, and rows where all iterates are kept."""
        if going_on:
            return
        self.is_over, self._look = True, None
        self.problem.space.release()
        if self._stride == 1:
            self.problem = self.problem._replace(space=None)

    def _advance(self, look: Look) -> None:
        step, t = self._step_at(self.iterate.t), self.iterate.t
        with np.errstate(over="ignore", invalid="ignore"):
            self.iterate = self._next(self.iterate, look)
        if not np.isfinite(self.iterate.coefficients).all():
            raise ValueError(f"the iterates leave the range of numbers at iteration {t}: pass a smaller eta, or 'auto'")
        if self.schedule.order == "batch":
            self._seen += step * look.margins
            self._seen_held += step * look.held
        else:
            self._seen, self._seen_held = self._margins(self.iterate.sums)

    def _margins(self, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        margins = np.empty((len(self.problem.learned.y), self.problem.n_outputs))

        def read(place: slice, found: np.ndarray) -> np.ndarray:
            margins[place] = found
            return np.zeros_like(found)

        self.problem.space.sweep(coefficients, read)
        return margins, self.problem.space.held(coefficients)

    def _record(self, look: Look) -> None:
        t, learned, held = self.iterate.t, self.problem.learned, self.problem.held
        step = self._step_at(t)
        share = 1.0 / (self.iterate.mass + step)
        with np.errstate(over="ignore", invalid="ignore"):
            means = (self._seen + step * look.margins) * share, (self._seen_held + step * look.held) * share
            inner = float((look.slopes * look.margins).sum())
            record = (
                t,
                step,
                _mean(learned.weight, look.losses),
                _mean(learned.weight, self.problem.errors(learned.y, look.margins)),
                *self._judged(held, look.held),
                finite(self.problem.space.norm(self.iterate.coefficients, look.margins)),
                finite(inner),
                *self._judged(learned, means[0]),
                *self._judged(held, means[1]),
            )
        self._records.append(record)

    def _judged(self, rows: Rows, margins: np.ndarray) -> tuple[float, float]:
        """Mean loss and error of margins; nan without rows."""
        losses = np.empty(len(rows.y))
        losses_of_rows(self.problem.objective, rows.y, np.ascontiguousarray(margins), losses)
        return _mean(rows.weight, losses), _mean(rows.weight, self.problem.errors(rows.y, margins))

    def _keep(self, iterate: Iterate) -> None:
        if (iterate.t - 1) % self._stride:
            return
        self._kept[iterate.t] = iterate
        while len(self._kept) > 1 and len(self._kept) * 2 * iterate.coefficients.nbytes > self.budget:
            self._stride *= 2
            self._kept = {t: kept for t, kept in self._kept.items() if (t - 1) % self._stride == 0}


def least_error(path: np.ndarray, radius: float) -> float:
    """A number that the empirical error of no f with ||f|| <= radius is below, from the recorded path of full steps.

    The error is convex, so it is at least the mean, with weights eta_t, of its tangents in f_1, ..., f_{T-1}; and the
    mean of the subgradients is -f_T / sum eta_t. Of all T the best bound is taken. Lemma 14 of the paper is this with
    the inner product <f_T, f> bounded by (||f_T||^2 + ||f||^2) / 2.

    Parameters
    ----------
    path : (T,) array of ``PATH``
    radius : float

    Returns
    -------
    float
        At least 0, below which no loss falls.
    """
    mass = np.cumsum(path["step"])[:-1]
    tangents = np.cumsum(path["step"] * (path["training_loss"] - path["inner"]))[:-1]
    bounds = (tangents - radius * path["norm"][1:]) / mass
    return float(max(bounds.max(initial=0.0), 0.0))


def descends(path: np.ndarray) -> bool:
    """Whether each step lowered the empirical error by half its squared length over eta_t: what Lemma 20 rests on."""
    step, norm, error = path["step"][:-1], path["norm"], path["training_loss"]
    length = np.maximum(norm[1:] ** 2 - norm[:-1] ** 2 + 2.0 * step * path["inner"][:-1], 0.0)
    return bool((np.diff(error) <= -0.5 * length / step + 1e-9 * (1.0 + error[:-1])).all())


def _mean(weight: np.ndarray, numbers: np.ndarray) -> float:
    with np.errstate(over="ignore"):
        return finite(float((weight * numbers).sum())) if len(weight) else math.nan


def step_size(problem: Problem, loss: Any, theta: float, rule: str, bound: float = 1.0, order: str = "batch") -> float:
    """eta_1 from the conditions of the theorems.

    Parameters
    ----------
    problem : Problem
    loss : loss
        Of one output.
    theta : float
    rule : {"theory", "auto"}
        ``"theory"`` takes :func:`tunefree.theory.largest_step`, with kappa measured on the rows. ``"auto"`` asks of the
        empirical error what the proofs ask of it: that steps are at most one over its smoothness (Lemma 20), or that
        eta_1^2 times the squared norm of its subgradients is at most (1 - theta) / 2 (Lemma 15). Both follow from the
        largest eigenvalue of the rows' second moments, which is often much smaller than kappa^2. It leaves out the
        condition on |V|_0, which only normalises a constant. For losses that are not smooth this bounds subgradients
        that hardly occur, so larger steps are tried, four times as large each, for as long as a few iterations of them
        lower the empirical error further. Single rows take the first guess.
    bound : float, default 1
        Largest absolute target.
    order : {"batch", "cyclic", "shuffled"}, default "batch"
        With single rows, what counts is K(x, x): the mean for Lipschitz losses, the largest for others.

    Returns
    -------
    float
    """
    slopes = growth(loss, bound)
    if slopes.power == math.inf:
        raise ValueError(f"no theorem gives a step for the {type(loss).__name__} loss: pass eta as a number")
    sizes = problem.space.squared_sizes()
    if rule == "theory":
        return largest_step(loss, theta, math.sqrt(sizes.max()), bound, problem.n_outputs)
    with one_for_products():
        size = _size_of_rows(problem, sizes, order, loss.lipschitz < math.inf)
    if not size > 0.0:
        return 1.0  # all rows are 0: nothing moves
    smooth = smoothness(problem.objective)
    if smooth < math.inf:
        return 1.0 / (smooth * size)
    kappa = math.sqrt(size)
    steep = slopes.constant * kappa if slopes.power == 0.0 else gradient_bound(slopes, kappa)
    guess = math.sqrt(0.5 * (1.0 - theta)) / (math.sqrt(problem.n_outputs) * steep)
    return guess if order != "batch" else _largest_that_pays(problem, theta, guess)


def _largest_that_pays(problem: Problem, theta: float, eta: float) -> float:
    """The step, or 4, 16, ... times it, whose first iterations have the least empirical error."""
    unwatched = problem._replace(held=Rows(problem.held.y[:0], problem.held.weight[:0]), watched=False)
    least = math.inf
    for step in eta * 4.0 ** np.arange(RUNGS):
        trial = Descent(unwatched, Schedule(float(step), theta), 0)
        try:
            trial.run(TRIAL)
        except ValueError:  # it left the range of numbers
            break
        error = float(trial.path["training_loss"][TRIAL // 2 :].mean())
        if error >= least:
            break
        least, eta = error, float(step)
    return eta


def _size_of_rows(problem: Problem, sizes: np.ndarray, order: str, lipschitz: bool) -> float:
    weight = problem.learned.weight
    if order != "batch":
        return float((weight * sizes).sum() if lipschitz else sizes.max())
    slopes = np.empty((len(weight), problem.n_outputs))
    nothing, losses = np.zeros_like(slopes), np.empty(len(weight))
    respond(problem.objective, problem.learned.y, np.ones(len(weight)), nothing, slopes, losses)
    return largest_eigenvalue(problem.space, weight, 1.0 + slopes[:, -1])

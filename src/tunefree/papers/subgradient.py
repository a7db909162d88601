"""The subgradient method, regularised by when it stops.

Lin, Rosasco, Zhou: Iterative regularization for learning with convex loss functions (JMLR 17, 2016):

    f_1 = 0,   f_{t+1} = f_t - eta_t (1/m) sum_j V'_-(y_j, f_t(x_j)) K_{x_j},   eta_t = eta_1 t^-theta         (1)
    a_T = sum_t eta_t f_t / sum_t eta_t                                                                       (2)
    b_T = the iterate f_t, t <= T, with the least empirical error                                             (3)

and Remark 3, f_{t+1} = f_t - eta_t V'_-(y_j, f_t(x_j)) K_{x_j} with a row j = j_t a step. V'_- is the left derivative.
Rows may have weights, which take the place of 1/m, and K outputs are K functions with one loss.

It learns all rows together, so it has a path of iterates in the place of predictions in a stream.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from tunefree.compiled.functions import Compiled
from tunefree.core.numbers import finite
from tunefree.core.threads import one_for_products
from tunefree.losses.functions import Loop
from tunefree.losses.objectives import Objective, chosen, measured
from tunefree.papers.early_stopping.stopping_times import largest_step, lemma_bound, stopping_time, usual_theta
from tunefree.papers.losses import loss_and_targets
from tunefree.papers.playing import rows_of
from tunefree.papers.spaces import kernel_used
from tunefree.theory.bounds import Bound, no_bound

MOST_BYTES = 2**32  # of the coefficients of all iterates
LOSSES = ("training_loss", "training_error", "validation_loss", "validation_error")
RECORD = np.dtype(
    [("iteration", np.int64), ("step", np.float64)]
    + [(name, np.float64) for name in LOSSES]
    + [("norm", np.float64), ("inner", np.float64)]  # inner: <subgradient of the empirical error in f_t, f_t>
    + [(f"average_{name}", np.float64) for name in LOSSES]
)


class Rows(NamedTuple):
    """Rows as f sees them, their targets and their weights."""

    matrix: Any  # (n, p) whose product with coefficients (p, K) is f(x): features, or kernel values
    y: np.ndarray  # (n,) float64: classes, -1 and +1, or numbers
    weight: np.ndarray  # (n,) of sum 1, or no rows at all


class Problem(NamedTuple):
    """What is minimised, and on which other rows iterates are measured."""

    learned: Rows
    others: Rows
    squares: np.ndarray  # (m,) K(x_j, x_j)
    in_rkhs: bool  # whether coefficients are those of K_{x_j}; else they are weights of features
    objective: Objective
    errors: Callable[[np.ndarray, np.ndarray], np.ndarray]
    n_outputs: int = 1

    def gradient(self, slopes: np.ndarray) -> np.ndarray:
        """The coefficients (p, K) of sum_j slope_j K_{x_j}."""
        return slopes if self.in_rkhs else self.learned.matrix.T @ slopes

    def norm(self, coefficients: np.ndarray, margins: np.ndarray) -> float:
        """||f||, from its coefficients and its values (m, K) on the rows learned."""
        if self.in_rkhs:
            return float(np.sqrt(max((coefficients * margins).sum(), 0.0)))
        return float(np.linalg.norm(coefficients))


class Path(NamedTuple):
    """The iterates f_1, f_2, .. and what was recorded of each."""

    records: np.ndarray  # (T,), see RECORD
    coefficients: np.ndarray  # (T, p, K)

    def last(self, t: int) -> np.ndarray:
        """The coefficients (p, K) of f_t."""
        return self.coefficients[self._place(t)]

    def average(self, t: int) -> np.ndarray:
        """The coefficients (p, K) of a_t (2)."""
        place = self._place(t)
        steps = self.records["step"][: place + 1]
        return np.tensordot(steps, self.coefficients[: place + 1], 1) / steps.sum()

    def best(self, t: int) -> np.ndarray:
        """The coefficients (p, K) of b_t (3)."""
        return self.coefficients[self.places_of_best()[self._place(t)]]

    def places_of_best(self) -> np.ndarray:
        """The place (T,) of b_t among the iterates, for each t."""
        errors = self.records["training_loss"]
        is_least = np.r_[True, errors[1:] < np.minimum.accumulate(errors)[:-1]]
        return np.maximum.accumulate(np.where(is_least, np.arange(len(errors)), 0))

    def _place(self, t: int) -> int:
        if not 1 <= t <= len(self.records):
            raise ValueError(f"there are iterates 1 to {len(self.records)}, not {t}")
        return t - 1


def descend(problem: Problem, steps: np.ndarray, order: Sequence[int] | np.ndarray | None = None) -> Path:
    """The path f_1 .. f_T of (1), with the steps eta_1 .. eta_T; or of Remark 3, with the rows j_1 .. j_T.

    Raises ValueError where the iterates leave the range of numbers.
    """
    learned, T = problem.learned, len(steps)
    shape = (T, learned.matrix.shape[1], problem.n_outputs)
    if 8 * math.prod(shape) > MOST_BYTES:
        raise ValueError(
            f"{T} iterates of {shape[1]} x {shape[2]} coefficients take {8e-9 * math.prod(shape):.1f} GB of memory; "
            "take fewer iterations"
        )
    path, records = np.empty(shape), np.empty(T, RECORD)
    f, mass = np.zeros(shape[1:]), 0.0
    sums = [np.zeros((len(rows.y), problem.n_outputs)) for rows in (learned, problem.others)]  # of eta_t f_t(x)
    with one_for_products(), np.errstate(over="ignore", invalid="ignore"):
        for t, step in enumerate(steps.tolist()):
            path[t] = f
            margins, others = (np.ascontiguousarray(rows.matrix @ f) for rows in (learned, problem.others))
            slopes, losses = respond(problem.objective, learned.y, margins)
            mass += step
            for total, values in zip(sums, (margins, others), strict=True):
                total += step * values
            records[t] = (
                t + 1,
                step,
                _mean(learned, losses),
                _mean(learned, problem.errors(learned.y, margins)),
                *_loss_and_error(problem, problem.others, others),
                finite(problem.norm(f, margins)),
                finite(float((slopes * learned.weight[:, None] * margins).sum())),
                *_loss_and_error(problem, learned, sums[0] / mass),
                *_loss_and_error(problem, problem.others, sums[1] / mass),
            )
            shares = learned.weight if order is None else (np.arange(len(slopes)) == order[t]).astype(np.float64)
            f = f - step * problem.gradient(slopes * shares[:, None])
            if t + 1 < T and not np.isfinite(f).all():
                raise ValueError(
                    f"the iterates leave the range of numbers at iteration {t + 1}: pass a smaller eta, or 'auto'"
                )
    return Path(records, path)


def _loss_and_error(problem: Problem, rows: Rows, margins: np.ndarray) -> tuple[float, float]:
    """Mean loss and error of margins; nan without rows."""
    if not len(rows.y):
        return math.nan, math.nan
    losses = measured(problem.objective, rows.y, margins)
    return _mean(rows, losses), _mean(rows, problem.errors(rows.y, margins))


def _mean(rows: Rows, numbers: np.ndarray) -> float:
    return finite(float((rows.weight * numbers).sum()))


def wrong_classes(y: np.ndarray, margins: np.ndarray) -> np.ndarray:
    """1 (n,) where the largest margin is another class's, or the one margin has the wrong sign; else 0."""
    codes = y > 0 if margins.shape[1] == 1 else y
    return (chosen(margins) != codes).astype(np.float64)


def absolute_errors(y: np.ndarray, margins: np.ndarray) -> np.ndarray:
    """|f(x) - y| (n,)."""
    return np.abs(margins[:, 0] - y)


class Iterates:
    """A path of :meth:`SubgradientMethod.run`, and the problem of which it is.

    Attributes
    ----------
    features : (m, p) array
        Values of which the method's functions are combinations: the columns, or K(x_i, x_j).
    coefficients : (T, p) array
        Of f_t, one iterate a row: weights, or coefficients of K_{x_j}.
    last, average, best : (p,) array
        Coefficients of f_T, of a_T (2) and of b_T (3).
    errors, steps : (T,) array
        The empirical error of f_t, and eta_t, for t = 1 .. T.
    y : (m,) array
    kappa : float
        The largest sqrt(K(x, x)) of the rows.
    """

    def __init__(self, method: SubgradientMethod, problem: Problem, path: Path) -> None:
        self.method, self.problem, self.path = method, problem, path
        self.features, self.y = problem.learned.matrix, problem.learned.y
        self.coefficients = path.coefficients[:, :, 0]
        self.errors, self.steps = path.records["training_loss"], path.records["step"]
        self.last, self.average, self.best = (
            output(len(self.steps))[:, 0] for output in (path.last, path.average, path.best)
        )
        self.kappa = math.sqrt(float(problem.squares.max()))

    def error(self, coefficients: np.ndarray) -> float:
        """The empirical error of a function."""
        margins = (self.features @ np.asarray(coefficients, np.float64))[:, None]
        return _mean(self.problem.learned, measured(self.problem.objective, self.y, margins))

    def norm(self, coefficients: np.ndarray) -> float:
        """The norm of a function in the method's space."""
        return self.problem.norm(coefficients, self.features @ coefficients)

    def bound(self, u: Any, output: str = "last") -> Bound:
        """The bound on the empirical error minus that of a function: Lemmas 17, 19 and 20.

        Parameters
        ----------
        u : (p,) array
            Its weights, or coefficients.
        output : {"last", "average", "best"}
        """
        if self.method.order is not None:
            return no_bound("the lemmas are of steps along all rows, not of Remark 3")
        loss, largest = self.problem.objective.loss, float(np.abs(self.y).max())
        theta, radius = self.method.theta_used(loss), self.norm(np.asarray(u, np.float64))
        return lemma_bound(
            self.path.records, loss, theta=theta, kappa=self.kappa, radius=radius, bound=largest, output=output
        )


class SubgradientMethod:
    """The subgradient method (1), and one row a step (Remark 3).

    Parameters
    ----------
    eta : float, optional
        eta_1; by default the largest that the theorems allow, ``stopping_times.largest_step``:
        that of Theorem 8 for smooth losses, else (10).
    theta : float, optional
        Decay of the steps; by default the paper's, :func:`tunefree.papers.early_stopping.stopping_times.usual_theta`.
    order : sequence of int, or "cyclic", optional
        j_1, j_2, .. of Remark 3, as many as there are steps, or all rows in turn. By default each step takes all rows.
    kernel, gamma, degree, coef0
        As for :class:`tunefree.papers.spaces.KernelAlgorithm`.

    Examples
    --------
    >>> X, y = [[1.0, 0.0], [1.0, 2.0], [-1.0, 1.0]], [1, 1, -1]
    >>> path = SubgradientMethod(eta=0.5, theta=0.5).run(X, y, 4, loss="hinge")
    >>> path.last.round(4).tolist(), path.errors.round(4).tolist()
    ([1.046, 0.1883], [1.0, 0.4444, 0.1925, 0.0474])
    >>> SubgradientMethod().stopping_time(1000, "hinge").iterations
    100
    """

    parameters = ("eta", "theta", "kernel", "gamma")

    def __init__(
        self,
        eta: float | None = None,
        theta: float | None = None,
        order: Any = None,
        kernel: Any = "linear",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
    ) -> None:
        self.eta, self.theta, self.order = eta, theta, order
        self.kernel, self.gamma, self.degree, self.coef0 = kernel, gamma, degree, coef0

    def theta_used(self, loss: Any) -> float:
        """The decay of the steps."""
        return usual_theta(loss) if self.theta is None else float(self.theta)

    def stopping_time(self, samples: int, loss: str = "hinge", **assumptions: Any) -> Any:
        """T of the theorems, :func:`tunefree.papers.early_stopping.stopping_times.stopping_time`."""
        return stopping_time(samples, loss_and_targets(loss, [-1, 1])[0].loss, theta=self.theta, **assumptions)

    def run(self, X: Any, y: Any, iterations: int | None = None, loss: Any = "hinge") -> Iterates:
        """The iterates f_1 .. f_T.

        Parameters
        ----------
        X, y
            As for :func:`tunefree.papers.play`, with labels of two classes, or numbers.
        iterations : int, optional
            T; by default the stopping time of the theorems for the number of rows. No row is held out.
        loss : str or loss, default "hinge"
        """
        rows, (one_margin, targets) = rows_of(X), loss_and_targets(loss, y)
        if one_margin.n_outputs > 1:
            raise ValueError("the paper is of two classes, or of numbers")
        problem = self._problem(rows, targets, one_margin.loss)
        kappa, theta = math.sqrt(float(problem.squares.max())), self.theta_used(one_margin.loss)
        T = stopping_time(len(rows), one_margin.loss, theta=theta).iterations if iterations is None else iterations
        eta = self.eta
        if eta is None:
            eta = largest_step(one_margin.loss, theta, kappa, float(np.abs(targets).max()))
        order = np.arange(T) % len(rows) if isinstance(self.order, str) else self.order
        return Iterates(self, problem, descend(problem, steps_of(eta, theta, T), order))

    def _problem(self, rows: np.ndarray, targets: np.ndarray, loss: Any) -> Problem:
        kernel = kernel_used(self)
        features = rows if kernel is None else np.array([kernel(x, rows) for x in rows])
        squares = (rows**2).sum(axis=1) if kernel is None else np.diagonal(features)
        learned = Rows(features, targets, np.full(len(rows), 1.0 / len(rows)))
        none = Rows(features[:0], targets[:0], targets[:0])
        errors = wrong_classes if np.isin(targets, (-1.0, 1.0)).all() else absolute_errors
        return Problem(learned, none, squares, kernel is not None, Objective("classification", loss), errors)


def steps_of(eta: float, theta: float, iterations: int) -> np.ndarray:
    """eta_t = eta_1 t^-theta for t = 1 .. T."""
    return eta * np.arange(1.0, iterations + 1.0) ** -theta


@Loop
def _respond(functions):
    left_slope, loss_at = functions.left_slope, functions.loss_at

    def respond(
        codes: Annotated[np.ndarray, "int64[2]"],
        numbers: Annotated[np.ndarray, "float64[facts]"],
        y: Annotated[np.ndarray, "float64[rows]"],
        margins: Annotated[np.ndarray, "float64[rows, outputs]"],
        slopes: Annotated[np.ndarray, "float64[rows, outputs]"],
        losses: Annotated[np.ndarray, "float64[rows]"],
    ) -> None:
        for i in range(len(y)):
            left_slope(codes, numbers, y[i], margins.shape[1], margins[i], slopes[i])
            losses[i] = loss_at(codes, numbers, y[i], margins.shape[1], margins[i])

    return respond


def respond(objective: Objective, y: np.ndarray, margins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The left derivatives (n, K) and the losses (n,) of margins (n, K)."""
    slopes, losses = np.empty_like(margins), np.empty(len(y))
    _respond(*objective.arrays, y, margins, slopes, losses)
    return slopes, losses


def all_compiled() -> list[Compiled]:
    """The compiled function of this module."""
    return [_respond.compiled()]

"""The subgradient method, regularised by early stopping.

Lin, Rosasco, Zhou: Iterative regularization for learning with convex loss functions (JMLR 17, 2016):

    f_1 = 0,   f_{t+1} = f_t - eta_t (1/m) sum_j V'_-(y_j, f_t(x_j)) K_{x_j},   eta_t = eta_1 t^-theta         (1)
    a_T = sum_t eta_t f_t / sum_t eta_t                                                                       (2)
    b_T = the iterate f_t, t <= T, with the least empirical error                                             (3)

and Remark 3, f_{t+1} = f_t - eta_t V'_-(y_j, f_t(x_j)) K_{x_j} with one row j = j_t in each step. V'_- is the left
derivative. Weights of rows replace 1/m, and K outputs are K functions with one loss.

All rows are learned together, so the result is a path of iterates, not predictions in a stream.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from tunefree.compiled.functions import Compiled
from tunefree.core.numbers import finite
from tunefree.core.threads import one_for_products
from tunefree.losses import loss_classes
from tunefree.losses.functions import Loop, switch, writer_of_slopes
from tunefree.losses.objectives import Objective, chosen, measured
from tunefree.papers.early_stopping.stopping_times import largest_step, lemma_bound, stopping_time, usual_theta
from tunefree.papers.left_slopes import left_slope_of
from tunefree.papers.losses import loss_and_targets
from tunefree.papers.playing import rows_of
from tunefree.papers.spaces import kernel_used
from tunefree.theory.bounds import Bound, no_bound

MOST_BYTES = 2**32  # limit on the size of the coefficients of all iterates
LOSSES = ("training_loss", "training_error", "validation_loss", "validation_error")
RECORD = np.dtype(
    [("iteration", np.int64), ("step", np.float64)]
    + [(name, np.float64) for name in LOSSES]
    + [("norm", np.float64), ("inner", np.float64)]  # inner: <subgradient of the empirical error in f_t, f_t>
    + [(f"average_{name}", np.float64) for name in LOSSES]
)


class Rows(NamedTuple):
    """Rows with their targets and weights."""

    matrix: Any  # (n, p) features, or kernel values; the product with coefficients (p, K) is f(x)
    y: np.ndarray  # (n,) float64: classes, -1 and +1, or numbers
    weight: np.ndarray  # (n,) weights with sum 1; empty without rows


class Problem(NamedTuple):
    """The empirical error to minimise, and further rows to evaluate iterates on."""

    learned: Rows
    others: Rows
    squares: np.ndarray  # (m,) K(x_j, x_j)
    in_rkhs: bool  # whether coefficients multiply K_{x_j}; else they are weights of features
    objective: Objective
    errors: Callable[[np.ndarray, np.ndarray], np.ndarray]
    n_outputs: int = 1

    def gradient(self, slopes: np.ndarray) -> np.ndarray:
        """Return the coefficients (p, K) of sum_j slope_j K_{x_j}."""
        return slopes if self.in_rkhs else self.learned.matrix.T @ slopes

    def norm(self, coefficients: np.ndarray, margins: np.ndarray) -> float:
        """Return ||f|| from its coefficients and its values (m, K) on the learned rows."""
        if self.in_rkhs:
            return float(np.sqrt(max((coefficients * margins).sum(), 0.0)))
        return float(np.linalg.norm(coefficients))


class Path(NamedTuple):
    """The iterates f_1, f_2, .. with records."""

    records: np.ndarray  # (T,) of dtype RECORD
    coefficients: np.ndarray  # (T, p, K)

    def last(self, t: int) -> np.ndarray:
        """Return the coefficients (p, K) of f_t."""
        return self.coefficients[self._index(t)]

    def average(self, t: int) -> np.ndarray:
        """Return the coefficients (p, K) of a_t (2)."""
        index = self._index(t)
        steps = self.records["step"][: index + 1]
        return np.tensordot(steps, self.coefficients[: index + 1], 1) / steps.sum()

    def best(self, t: int) -> np.ndarray:
        """Return the coefficients (p, K) of b_t (3)."""
        return self.coefficients[self.places_of_best()[self._index(t)]]

    def places_of_best(self) -> np.ndarray:
        """Return the index of b_t among the iterates, for each t; shape (T,)."""
        errors = self.records["training_loss"]
        is_least = np.r_[True, errors[1:] < np.minimum.accumulate(errors)[:-1]]
        return np.maximum.accumulate(np.where(is_least, np.arange(len(errors)), 0))

    def _index(self, t: int) -> int:
        if not 1 <= t <= len(self.records):
            raise ValueError(f"there are iterates 1 to {len(self.records)}, not {t}")
        return t - 1


def descend(problem: Problem, steps: np.ndarray, order: Sequence[int] | np.ndarray | None = None) -> Path:
    """Compute the path f_1 .. f_T of (1) with steps eta_1 .. eta_T, or of Remark 3 with rows j_1 .. j_T.

    Raises a ValueError if the iterates overflow.
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
    sums = [np.zeros((len(rows.y), problem.n_outputs)) for rows in (learned, problem.others)]  # sum_t eta_t f_t(x)
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
    """Return the mean loss and error of margins; NaN without rows."""
    if not len(rows.y):
        return math.nan, math.nan
    losses = measured(problem.objective, rows.y, margins)
    return _mean(rows, losses), _mean(rows, problem.errors(rows.y, margins))


def _mean(rows: Rows, numbers: np.ndarray) -> float:
    return finite(float((rows.weight * numbers).sum()))


def wrong_classes(y: np.ndarray, margins: np.ndarray) -> np.ndarray:
    """Return 1 for rows whose largest margin is of a wrong class, or whose single margin has a wrong sign; else 0."""
    codes = y > 0 if margins.shape[1] == 1 else y
    return (chosen(margins) != codes).astype(np.float64)


def absolute_errors(y: np.ndarray, margins: np.ndarray) -> np.ndarray:
    """Return |f(x) - y| (n,)."""
    return np.abs(margins[:, 0] - y)


class Iterates:
    """The result of :meth:`SubgradientMethod.run`: a path and its problem.

    Attributes
    ----------
    features : (m, p) array
        Columns of the rows, or kernel values K(x_i, x_j).
    coefficients : (T, p) array
        Weights of f_t, or coefficients of K_{x_j}, with one iterate in each row.
    last, average, best : (p,) array
        Coefficients of f_T, of a_T (2) and of b_T (3).
    errors, steps : (T,) array
        Empirical error of f_t, and eta_t, for t = 1 .. T.
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
        """Return the empirical error of a function."""
        margins = (self.features @ np.asarray(coefficients, np.float64))[:, None]
        return _mean(self.problem.learned, measured(self.problem.objective, self.y, margins))

    def norm(self, coefficients: np.ndarray) -> float:
        """Return the norm of a function in the kernel's space."""
        return self.problem.norm(coefficients, self.features @ coefficients)

    def bound(self, u: Any, output: str = "last") -> Bound:
        """Return the bound on the empirical error minus the error of a function u: Lemmas 17, 19 and 20.

        Parameters
        ----------
        u : (p,) array
            Weights, or coefficients, of the function.
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
    """The subgradient method (1), or with one row in each step (Remark 3).

    Parameters
    ----------
    eta : float, optional
        eta_1; by default the largest value for which the theorems hold, ``stopping_times.largest_step``: Theorem 8 for
        smooth losses, else (10).
    theta : float, optional
        Decay of the steps; by default the paper's, :func:`tunefree.papers.early_stopping.stopping_times.usual_theta`.
    order : sequence of int, or "cyclic", optional
        j_1, j_2, .. of Remark 3, one for each step; ``"cyclic"`` takes the rows in turn. By default, each step uses all
        rows.
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
        """Return the decay of the steps."""
        return usual_theta(loss) if self.theta is None else float(self.theta)

    def stopping_time(self, samples: int, loss: str = "hinge", **assumptions: Any) -> Any:
        """Return T of the theorems, :func:`tunefree.papers.early_stopping.stopping_times.stopping_time`."""
        return stopping_time(samples, loss_and_targets(loss, [-1, 1])[0].loss, theta=self.theta, **assumptions)

    def run(self, X: Any, y: Any, iterations: int | None = None, loss: Any = "hinge") -> Iterates:
        """Compute the iterates f_1 .. f_T.

        Parameters
        ----------
        X, y
            As in :func:`tunefree.papers.play`, with labels of two classes, or numbers.
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
        if order is not None and ((isinstance(self.order, str) and self.order != "cyclic") or len(order) < T):
            raise ValueError(f"order must be 'cyclic' or have a row for each of the {T} steps, not {self.order!r}")
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
    """Return eta_t = eta_1 t^-theta for t = 1 .. T."""
    return eta * np.arange(1.0, iterations + 1.0) ** -theta


@Loop
def _respond(functions):
    loss_at, classes = functions.loss_at, loss_classes()
    left_slope = writer_of_slopes(switch(classes, [*map(left_slope_of, classes)]))

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
    """Return the left derivatives (n, K) and the losses (n,) of margins (n, K)."""
    slopes, losses = np.empty_like(margins), np.empty(len(y))
    _respond(*objective.arrays, y, margins, slopes, losses)
    return slopes, losses


def all_compiled() -> list[Compiled]:
    """Return the compiled functions of this module."""
    return [_respond.compiled()]

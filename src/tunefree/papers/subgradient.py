"""The subgradient method, regularised by when it stops.

Lin, Rosasco, Zhou: Iterative regularization for learning with convex loss functions (JMLR 17, 2016):

    f_1 = 0,   f_{t+1} = f_t - eta_t (1/m) sum_j V'_-(y_j, f_t(x_j)) K_{x_j},   eta_t = eta_1 t^-theta         (1)
    a_T = sum_t eta_t f_t / sum_t eta_t                                                                       (2)
    b_T = the iterate f_t, t <= T, with the least empirical error                                             (3)

and Remark 3, f_{t+1} = f_t - eta_t V'_-(y_j, f_t(x_j)) K_{x_j} with a row j = j_t a step. V'_- is the left derivative.
It learns all rows together, so it has a path of iterates in the place of predictions in a stream.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tunefree.papers.early_stopping.stopping_times import largest_step, optimisation_bound, stopping_time, usual_theta
from tunefree.papers.losses import loss_and_targets
from tunefree.papers.playing import rows_of
from tunefree.papers.spaces import kernel_used
from tunefree.theory.bounds import Bound


@dataclass(frozen=True)
class Iterates:
    """The path f_1, f_2, .. of the method.

    Parameters
    ----------
    method : SubgradientMethod
    X, y : arrays
    loss : loss
    features : (m, p) array
        Values of which the method's functions are combinations: the columns, or K(x_i, x_j).
    coefficients : (T, p) array
        Of f_t, one iterate a row: weights, or coefficients of K_{x_j}.
    errors : (T,) array
        Empirical error of each.
    steps : (T,) array
        eta_t, for t = 1 .. T.
    kappa : float
        The largest sqrt(K(x, x)) of the rows.
    """

    method: Any
    X: np.ndarray
    y: np.ndarray
    loss: Any
    features: np.ndarray
    coefficients: np.ndarray
    errors: np.ndarray
    steps: np.ndarray
    kappa: float

    @property
    def last(self) -> np.ndarray:
        """f_T."""
        return self.coefficients[-1]

    @property
    def average(self) -> np.ndarray:
        """a_T (2)."""
        return self.steps @ self.coefficients / self.steps.sum()

    @property
    def best(self) -> np.ndarray:
        """b_T (3)."""
        return self.coefficients[int(self.errors.argmin())]

    def error(self, coefficients: np.ndarray) -> float:
        """The empirical error of a function."""
        return _error(self.loss, self.y, self.features @ coefficients)

    def norm(self, coefficients: np.ndarray) -> float:
        """The norm of a function in the method's space."""
        if kernel_used(self.method) is None:
            return float(np.linalg.norm(coefficients))
        return math.sqrt(max(float(coefficients @ self.features @ coefficients), 0.0))

    def bound(self, u: Any, output: str = "last") -> Bound:
        """The bound on the empirical error minus that of a function: Lemmas 17, 19 and 20.

        Parameters
        ----------
        u : (p,) array
            Its weights, or coefficients.
        output : {"last", "average", "best"}
        """
        if len(self.steps) < 3:
            return Bound(None, reason="the lemmas are of at least 3 iterations")
        if self.method.order is not None:
            return Bound(None, reason="the lemmas are of steps along all rows, not of Remark 3")
        bound, theta, step = float(np.abs(self.y).max()), self.method.theta_used(self.loss), float(self.steps[0])
        largest = largest_step(self.loss.loss, theta, self.kappa, bound)
        if step > largest * (1.0 + 1e-12):
            return Bound(None, reason=f"the lemmas assume eta_1 <= {largest:.6g}, and it is {step:.6g}")
        radius = self.norm(np.asarray(u, np.float64))
        value = optimisation_bound(
            len(self.steps),
            self.loss.loss,
            theta=theta,
            step=step,
            kappa=self.kappa,
            radius=radius,
            bound=bound,
            output=output,
        )
        lemma = "Lemma 20" if self.loss.loss.smoothness < math.inf else "Lemma 17" if output == "last" else "Lemma 19"
        assumes = "" if output != "last" or lemma == "Lemma 20" else "no iterate has a larger norm than the function"
        return Bound(value, f"Lin, Rosasco, Zhou 2016, {lemma}", assumes)


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
        As for :class:`tunefree.papers.PiSTOL`.

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
        return usual_theta(loss.loss) if self.theta is None else float(self.theta)

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
        rows, (objective, targets) = rows_of(X), loss_and_targets(loss, y)
        if objective.n_outputs > 1:
            raise ValueError("the paper is of two classes, or of numbers")
        kernel = kernel_used(self)
        features = rows if kernel is None else np.array([kernel(x, rows) for x in rows])
        squares = (rows**2).sum(axis=1) if kernel is None else np.diagonal(features)
        kappa, theta = math.sqrt(float(squares.max())), self.theta_used(objective)
        T = stopping_time(len(rows), objective.loss, theta=theta).iterations if iterations is None else iterations
        eta = self.eta
        if eta is None:
            eta = largest_step(objective.loss, theta, kappa, float(np.abs(targets).max()))
        steps = eta * np.arange(1.0, T + 1.0) ** -theta
        coefficients = self._iterates(features, targets, objective, steps, kernel is not None)
        errors = np.array([_error(objective, targets, features @ c) for c in coefficients])
        return Iterates(self, rows, targets, objective, features, coefficients, errors, steps, kappa)

    def _iterates(self, features: np.ndarray, y: np.ndarray, loss: Any, steps: np.ndarray, in_rkhs: bool) -> np.ndarray:
        """(1), or Remark 3: the coefficients (T, p) of f_1 .. f_T."""
        m, T = len(features), len(steps)
        f, path = np.zeros(features.shape[1]), np.empty((T, features.shape[1]))
        order = np.arange(T) % m if isinstance(self.order, str) else self.order
        for t in range(T):
            path[t] = f
            chosen = np.arange(m) if order is None else np.array([order[t]])
            margins = features[chosen] @ f
            pairs = zip(y[chosen], margins, strict=True)
            slopes = np.array([loss.loss.left_slope(target, margin) for target, margin in pairs]) / len(chosen)
            f = f.copy()
            if in_rkhs:
                f[chosen] -= steps[t] * slopes
            else:
                f -= steps[t] * (slopes @ features[chosen])
        return path


def _error(loss: Any, y: np.ndarray, margins: np.ndarray) -> float:
    return float(np.mean([loss.value(target, np.array([margin])) for target, margin in zip(y, margins, strict=True)]))

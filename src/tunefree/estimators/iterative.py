"""What the two estimators of iterative regularization share: they prepare rows, and leave learning to the method."""

from __future__ import annotations

import copy
import hashlib
import math
import numbers
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from tunefree.core.threads import one_for_products
from tunefree.early_stopping.gram import Kernel
from tunefree.early_stopping.products import expand
from tunefree.early_stopping.spaces import Dictionary, KernelSpace
from tunefree.early_stopping.subgradient import Descent, Problem, Rows, Schedule, descends, least_error, step_size
from tunefree.early_stopping.widths import best_gamma
from tunefree.estimators import preparation, validation
from tunefree.estimators.path_display import PathDisplay
from tunefree.kernel.backends import check_device
from tunefree.kernel.kernels import LADDERS
from tunefree.losses.growth import growth
from tunefree.theory.stopping_times import OUTPUTS, optimisation_bound, stopping_time, usual_theta

ORDERS = {None: "batch", "cyclic": "cyclic", "shuffled": "shuffled"}
MAY_CHANGE = {"max_iter", "stop", "output", "assumptions", "warm_start"}  # when a fit goes on
TRIED, TRIAL = 4096, 32  # rows and iterations by which widths are judged
SHARE_OF_PATH = 8  # of the memory limit, one part so large is for iterates


class Certificate(NamedTuple):
    """What can be said of the empirical error at the chosen stop, against all predictors of norm at most ``radius``."""

    iteration: int
    radius: float
    empirical_error: float  # of the output, on the rows learned
    least_error: float  # no predictor of this norm is below, by the path itself
    optimisation_error: float  # at most so far above the best of them: empirical_error - least_error
    optimisation_bound: float  # the same by the paper's lemmas, before anything is learned; nan where none holds


class Targets(NamedTuple):
    """Targets as the method takes them, and how to read what it predicts."""

    y: np.ndarray  # (n,) float64
    exact: np.ndarray  # (n,) float64, the same without any rounding: by them rows are told apart
    strata: np.ndarray  # (n,) rows held out are a share of each stratum
    objective: Any
    loss: Any  # of one output, in the method's units
    n_outputs: int
    errors: Any
    bound: float  # largest absolute target
    unit: float = 1.0  # of predictions
    loss_unit: float = 1.0  # of losses
    centre: float = 0.0  # prediction that f = 0 stands for


class IterativeRegularization(BaseEstimator):
    """Standardise, hold out, descend, stop."""

    _targets: Targets
    _descent: Any  # a Descent, or a Path that was saved
    _coefficients: np.ndarray
    _begun_with: tuple[Any, ...]
    n_iter_: int

    def _check(self) -> None:
        preparation.check_kernel(self.kernel, self.gamma, self._kernel_params())
        if self.kernel is not None and self.transformer is not None:
            raise ValueError("pass a kernel or a transformer, not both")
        if self.kernel is None and self.device is not None:
            raise ValueError("a device computes kernels only: pass a kernel, or leave the device out")
        check_device(self.device)
        validation.switches(standardize=self.standardize, warm_start=self.warm_start)
        validation.whole(max_iter=self.max_iter)
        validation.positive(memory_limit=self.memory_limit)
        for name, value, known in (
            ("output", self.output, OUTPUTS),
            ("stochastic", self.stochastic, tuple(ORDERS)),
        ):
            if value not in known:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, not {value!r}")
        if self.eta not in ("auto", "theory"):
            validation.positive(eta=self.eta)
        fraction = self.validation_fraction
        if not (isinstance(fraction, numbers.Real) and 0 <= float(fraction) < 1):
            raise ValueError(f"validation_fraction must be a number of at least 0 and below 1, not {fraction!r}")
        if self.stop not in ("holdout", "theory"):
            validation.whole(stop=self.stop)
        if self.stop == "holdout" and not fraction:
            raise ValueError("stop='holdout' needs rows to hold out: pass a validation_fraction above 0")
        if self.stop == "theory" and self.stochastic:
            raise ValueError("the theorems are of full steps: with stochastic pass stop='holdout' or a number")
        unknown = set(self.assumptions or {}) - {"beta", "tau", "zeta"}
        if unknown:
            raise ValueError(f"assumptions may name beta, tau and zeta, not {', '.join(sorted(unknown))}")
        if self.theta is not None and not (isinstance(self.theta, numbers.Real) and 0 <= float(self.theta) < 1):
            raise ValueError(f"theta must be None or a number of at least 0 and below 1, not {self.theta!r}")

    def _learn(self, X: Any, targets: Targets, weight: np.ndarray) -> None:
        """Descend, or go on, and choose a stop."""
        signature = self._signature(X, targets, weight)
        goes_on = self.warm_start and hasattr(self, "_descent") and not self._descent.is_over
        if goes_on and signature != self._begun_with:
            raise ValueError(
                "warm_start goes on with the same rows and parameters (but max_iter, stop and output); "
                "these differ: pass warm_start=False"
            )
        with one_for_products():
            if not goes_on:
                self._begin(X, targets, weight)
                self._begun_with = signature
            self._descent.run(self._iterations())
            self._descent.freeze(self.warm_start)
            self.path_ = self._path()
            self._stop_at(self._chosen())

    def _begin(self, X: Any, targets: Targets, weight: np.ndarray) -> None:
        random = check_random_state(self.random_state)
        kept = np.flatnonzero(weight)
        if len(kept) < len(weight):
            X, weight, targets = X[kept], weight[kept], _some(targets, kept)
        rows = preparation.order(X, targets.exact, random)
        held = np.zeros(len(weight), bool)
        if self.validation_fraction and rows.n_different >= preparation.FEWEST:
            held = preparation.held_out(rows, targets.strata, weight, float(self.validation_fraction))
        share = preparation.shares(weight[~held])
        self._standards = (
            preparation.standards(X[~held], share) if self.standardize else preparation.as_given(X, self._farthest())
        )
        features = self._fit_features(self._standards.apply(X, self._farthest()), ~held)
        self._targets = _some(targets, kept[:0])
        kernel, own, others = self._made_kernel(features, targets, rows), features[~held], features[held]
        learned, beside = Rows(targets.y[~held], share), Rows(targets.y[held], preparation.shares(weight[held]))
        if self.kernel in LADDERS and self.gamma in (None, "ladder") and held.any():
            first = np.argsort(rows.keys[~held], kind="stable")[:TRIED]
            some = Rows(learned.y[first], preparation.shares(share[first]))
            kernel = self._best_kernel(kernel, own[first], some, others, beside)
        self._kernel, self._support = kernel, None if kernel is None else own
        problem = self._problem(kernel, own, learned, others, beside)
        with np.errstate(over="ignore"):
            self._mass = min(float(weight[~held].sum()), preparation.LARGEST)
        self._judges = bool(held.any())
        self._kappa = math.sqrt(float(problem.space.squared_sizes().max()))
        self._remember(others if held.any() else features, beside if held.any() else learned)
        self._descent = Descent(problem, self._schedule(problem, random), int(self.memory_limit) // SHARE_OF_PATH)

    def _signature(self, X: Any, targets: Targets, weight: np.ndarray) -> tuple[Any, ...]:
        """What must not change between fits that go on."""
        settings = {name: repr(value) for name, value in self.get_params(deep=False).items() if name not in MAY_CHANGE}
        contents = validation.digests(X, targets.exact).tobytes() + weight.tobytes()
        return settings, X.shape, hashlib.blake2b(contents).digest()

    def _fit_features(self, X: Any, learned: np.ndarray) -> Any:
        """Phi of standardised rows; a transformer is fitted on those that are learned."""
        if self.transformer is not None and not callable(self.transformer):
            self.transformer_ = clone(self.transformer).fit(X[learned])
        return self._dictionary(X)

    def _dictionary(self, X: Any) -> Any:
        if self.transformer is not None:
            X = self.transformer(X) if callable(self.transformer) else self.transformer_.transform(X)
            X = check_array(X, accept_sparse="csr", dtype=np.float64, order="C", input_name="transformed X")
        X = sparse.csr_array(X) if sparse.issparse(X) else X
        return X if self.kernel is None else X.astype(self._kernel_params()["precision"])

    def _farthest(self) -> float:
        """Where standardised numbers are cut."""
        thin = self.kernel is not None and self._kernel_params()["precision"] == "float32"
        return preparation.FARTHEST_THIN if thin else preparation.FARTHEST

    def _made_kernel(self, features: Any, targets: Targets, rows: preparation.Order) -> Kernel | None:
        if self.kernel is None:
            return None
        if callable(self.gamma):
            gamma = float(self.gamma(features, targets.y))
        elif self.gamma is None or isinstance(self.gamma, str):
            classes = targets.n_outputs > 1 or len(np.unique(targets.strata)) > 1
            gamma = preparation.usual_gamma(self.kernel, features, targets.y, rows, classes)
        else:
            gamma = float(self.gamma)
        self.gamma_ = gamma
        settings = self._kernel_params()
        return preparation.kernel_of(self.kernel, gamma, int(settings["degree"]), float(settings["coef0"]))

    def _best_kernel(self, kernel: Any, learned: Any, rows: Rows, held: Any, beside: Rows) -> Kernel:
        """The kernel with which the first steps of a descent on some rows predict those held out best."""

        def judged(gamma: float) -> float:
            problem = self._problem(kernel._replace(gamma=gamma), learned, rows, held, beside)
            trial = Descent(problem, self._schedule(problem, np.random.RandomState(0)), 0)
            try:
                trial.run(TRIAL)
            except ValueError:  # it left the range of numbers
                return math.inf
            return float(trial.path["validation_loss"].min())

        self.gamma_ = best_gamma(kernel.gamma, judged)
        return kernel._replace(gamma=self.gamma_)

    def _problem(self, kernel: Kernel | None, learned: Any, rows: Rows, held: Any, beside: Rows) -> Problem:
        own = self._targets
        return Problem(self._space(kernel, learned, held), own.objective, own.n_outputs, own.errors, rows, beside)

    def _kernel_params(self) -> dict[str, Any]:
        return preparation.KERNEL_PARAMS | dict(self.kernel_params or {})

    def _space(self, kernel: Kernel | None, learned: Any, held: Any) -> Any:
        if kernel is None:
            return Dictionary(learned, held)
        return KernelSpace(kernel, learned, held, int(self.memory_limit), self.device)

    def _schedule(self, problem: Problem, random: np.random.RandomState) -> Schedule:
        loss, bound, order = self._targets.loss, self._targets.bound, ORDERS[self.stochastic]
        theta = self.theta
        if theta is None:
            theta = 0.5 if growth(loss, bound).power == math.inf else usual_theta(loss, bound)
            theta = max(theta, 0.5) if self.stochastic else theta
        eta = self.eta
        if isinstance(eta, str):
            eta = step_size(problem, loss, float(theta), eta, bound, order)
        self.eta_, self.theta_ = float(eta), float(theta)
        return Schedule(self.eta_, self.theta_, order, int(random.randint(0, 2**31 - 1)))

    def _iterations(self) -> int:
        """How many iterates the path has."""
        if self.stop == "theory":
            return self._by_theory()
        if self.stop != "holdout":
            return int(self.stop)
        if self._judges or self.stochastic or growth(self._targets.loss, 1.0).power == math.inf:
            return int(self.max_iter)
        return min(self._by_theory(), int(self.max_iter))

    def _by_theory(self) -> int:
        return stopping_time(
            max(self._mass, 1.0),
            self._targets.loss,
            theta=self.theta_,
            output=self.output,
            **dict(self.assumptions or {}),
        ).iterations

    def _path(self) -> np.ndarray:
        """The method's path, in units of the targets."""
        path = self._descent.path
        for name in (path.dtype.names or ())[1:]:
            column = path[name]
            with np.errstate(over="ignore"):
                if name.endswith("loss") or name == "inner":
                    column *= self._targets.loss_unit
                elif name.endswith("error") or name == "norm":
                    column *= self._targets.unit
            np.clip(column, -preparation.LARGEST, preparation.LARGEST, out=column)
        return path.view(np.recarray)

    def _chosen(self) -> int:
        if self.stop != "holdout" or not self._judges:
            return self._iterations()
        path = self._descent.path[: self._iterations()]
        judged = path["average_validation_loss" if self.output == "average" else "validation_loss"]
        if self.output == "best":
            least = np.minimum.accumulate(path["training_loss"])
            judged = judged[np.maximum.accumulate(np.where(path["training_loss"] <= least, np.arange(len(path)), 0))]
        return int(judged.argmin()) + 1

    def _stop_at(self, t: int) -> None:
        self.n_iter_ = t
        self._coefficients = getattr(self._descent, self.output)(t)

    def _remember(self, features: Any, rows: Rows) -> None:
        """Keep what is needed beyond the method: nothing, but for calibration."""

    def _saved_targets(self, saved: dict[str, float]) -> Targets:
        """No targets, in the units of those learned, which had this ``bound``, ``unit`` and ``centre``."""
        raise NotImplementedError

    def at(self, t: int) -> Any:
        """The estimator stopped at iteration t, without a new fit.

        Parameters
        ----------
        t : int
            From 1 (the zero function) to the length of ``path_``.

        Returns
        -------
        estimator
            A fitted copy that shares the path.
        """
        check_is_fitted(self)
        validation.whole(t=t)
        view = copy.copy(self)
        with one_for_products():
            view._stop_at(int(t))
        return view

    def _margins(self, X: Any) -> np.ndarray:
        """f(x) (n, K), in the method's units."""
        check_is_fitted(self)
        X = validation.features(self, X)
        with one_for_products():
            return self._margins_of(self._dictionary(self._standards.apply(X, self._farthest())))

    def _margins_of(self, features: Any) -> np.ndarray:
        if self._kernel is not None:
            return expand(self._kernel, self._support, self._coefficients, features, self.device)
        return Dictionary(features[:0], features).held(self._coefficients)

    def _linear(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights (d, K) of the features as given (or of the dictionary), and constants (K,), in the method's units."""
        check_is_fitted(self)
        if self.kernel is not None:
            raise AttributeError("an expansion in a kernel has no weights of the features; see dual_coef_")
        weights, constant = self._coefficients[:-1], self._coefficients[-1]
        if self.transformer is not None:
            return weights, constant
        weights, shift = self._standards.restore(weights)
        return weights, constant + shift

    @property
    def dual_coef_(self) -> np.ndarray:
        """Coefficients of the kernel expansion, (n_outputs, n_rows)."""
        check_is_fitted(self)
        if self.kernel is None:
            raise AttributeError("weights of a dictionary are no coefficients of a kernel; see coef_")
        return (self._coefficients * self._targets.unit).T

    def certificate(self, radius: float | None = None) -> Certificate:
        """Bound on the empirical error at the selected iteration minus the least one of predictors of some norm.

        The excess risk of f_T has three parts (Lin, Rosasco, Zhou 2016, (17) and Lemma 13). This bounds the first, the
        optimisation error. The bound holds for the given rows with certainty and any step. It is computed twice: from
        the measured path, and a priori by the paper's lemmas (17 without its last term, 19, 20). The second part, the
        sample error, depends on the unknown distribution; the validation columns of ``path_`` estimate it. The third,
        the approximation error, cannot be computed from a sample: nothing here bounds the risk of predictors of norm
        ``radius``, or of any norm.

        Norms are those of the weights of the standardised features, including the constant, or of the kernel's Hilbert
        space. With ``precision="float32"`` the bound holds up to rounding of the kernel values.

        Parameters
        ----------
        radius : float, optional
            In units of the target. Default: the largest norm on the path up to the selected iteration.

        Returns
        -------
        Certificate
        """
        check_is_fitted(self)
        if self.stochastic:
            raise ValueError("the certificate is of full steps; there is none with stochastic")
        path, unit, by = self._descent.path, self._targets.unit, self._targets.loss_unit
        t = self.n_iter_
        radius = (
            float(path["norm"][:t].max()) if radius is None else validation.positive(radius=radius)["radius"] / unit
        )
        error = path["average_training_loss" if self.output == "average" else "training_loss"][:t]
        reached = float(error.min() if self.output == "best" else error[-1])
        least = least_error(path, radius)
        return Certificate(
            t, radius * unit, reached * by, least * by, max(reached - least, 0.0) * by, self._by_lemmas(radius) * by
        )

    def _by_lemmas(self, radius: float) -> float:
        """The lemmas' bound; nan where they do not hold: with other steps, or where iterates have larger norms."""
        loss, path = self._targets.loss, self._descent.path[: self.n_iter_]
        if self.n_iter_ < 3 or self._targets.n_outputs > 1:
            return math.nan
        if loss.smoothness < math.inf:
            holds = descends(path) and (self.output != "average" or path["norm"].max() <= radius)
        else:
            q = growth(loss, self._targets.bound).power
            small = self.output != "last" or path["norm"].max() <= radius
            holds = self.eta == "theory" and small and self.theta_ > q / (q + 1.0)
        if not holds:
            return math.nan
        return optimisation_bound(
            self.n_iter_,
            loss,
            theta=self.theta_,
            step=self.eta_,
            kappa=self._kappa,
            radius=radius,
            bound=self._targets.bound,
            output=self.output,
        )

    def plot_path(self, **options: Any) -> PathDisplay:
        """Plot losses, errors and norms against iterations; needs matplotlib.

        Parameters
        ----------
        **options
            As in :meth:`PathDisplay.from_estimator`.

        Returns
        -------
        PathDisplay
        """
        return PathDisplay.from_estimator(self, **options)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_iter_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _some(targets: Targets, rows: np.ndarray) -> Targets:
    return targets._replace(y=targets.y[rows], exact=targets.exact[rows], strata=targets.strata[rows])

"""Parameters of the estimators of iterative regularization, and which of them can be combined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import BaseEstimator

from tunefree.core.parameters import check, parameter
from tunefree.estimators.parameters import estimator, shared
from tunefree.papers.early_stopping.stopping_times import OUTPUTS
from tunefree.papers.kernel import kernels
from tunefree.papers.kernel.backends import check_device
from tunefree.papers.kernel.parameters import check_effect

ASSUMPTIONS = ("beta", "tau", "zeta")
USUAL_FRACTION = 0.1  # of rows held out


@estimator
class PathParameters(BaseEstimator):
    """The parameters, see Lin, Rosasco, Zhou 2016."""

    kernel: str | None = parameter(
        None,
        "None fits weights of the features and an intercept; rbf, laplacian, poly and linear fit coefficients of a "
        "kernel, without intercept.",
    )
    gamma: float | str | Callable[[Any, Any], float] | None = parameter(
        None,
        "gamma of the kernel; a function is called with the prepared rows and the encoded targets. ``'median'``: "
        "1 / (2 m^2) for 'rbf', m the median distance of rows of different classes, or in regression of any two rows; "
        "1 / m for 'laplacian'. ``'ladder'``, their default: the multiple of that by a power of two, from a quarter to "
        "64, with which 32 iterations on at most 4096 rows predict the rows held out best; of nine, seven are tried. "
        "Where no rows are held out the default is ``'median'``. "
        "'poly': by default 1 over the mean square length of rows.",
        choices=("ladder", "median"),
        above=0,
        types="{'ladder', 'median'}, float or callable",
    )
    degree: int = shared("degree", 3)
    coef0: float = shared("coef0", 1.0)
    precision: str = shared("precision", "single")
    transformer: Any = parameter(
        None,
        "A finite dictionary: maps standardised rows to the features whose weights are fitted.",
        types="scikit-learn transformer or callable",
    )
    standardize: bool = parameter(
        True,
        "Whether to standardise columns to mean 0 and variance 1; sparse columns are scaled but not centred.",
    )
    theta: float | None = parameter(
        None,
        "Steps are eta_1 t^-theta. Default: 0 for smooth losses, else (q + 1) / (q + 2), with q the growth of slopes: "
        "1/2 for the hinge. At least 1/2 with ``stochastic``.",
        low=0,
        below=1,
    )
    eta: float | str = parameter(
        "auto",
        "eta_1. ``'theory'``: the largest value that the theorems allow. ``'auto'``: the same conditions, evaluated on "
        "the rows instead of bounded a priori, so that fewer iterations are needed. The exponential loss needs a "
        "number.",
        choices=("auto", "theory"),
        above=0,
    )
    output: str = parameter(
        "last",
        "The last iterate, the average weighted by the steps, or the iterate with the least training loss.",
        choices=tuple(OUTPUTS),
    )
    stop: int | str = parameter(
        "holdout",
        "``'holdout'``: the iteration with the least held-out loss; with fewer than 40 distinct rows none is held out, "
        "and ``'theory'`` is used. ``'theory'``: ``stopping_time`` of :mod:`.stopping_times`. int: the "
        "number of iterations.",
        choices=("holdout", "theory"),
        low=1,
    )
    assumptions: dict[str, Any] | None = parameter(
        None,
        "``beta``, ``tau`` and ``zeta`` of ``stopping_time``, for ``'theory'``.",
    )
    max_iter: int = parameter(500, "Length of the path with ``stop='holdout'``.", low=1)
    stochastic: str | None = parameter(
        None,
        "Whether each step uses one row, in a fixed order or shuffled before each pass; iterations are then passes.",
        choices=("cyclic", "shuffled"),
    )
    validation_fraction: float | None = parameter(
        None,
        "Fraction of each class, or of all rows, that is held out and not fitted. By default a tenth with "
        "``stop='holdout'`` and with ``gamma='ladder'``, which need it, and else none.",
        low=0,
        below=1,
    )
    gram_bytes: float = parameter(
        2**31,
        "Bytes of the Gram matrix to store (half of it is needed); the rest is recomputed in each step. An eighth as "
        "much is used for iterates.",
        above=0,
    )
    device: str | None = shared(
        "device", None, "A GPU stores as much of the Gram matrix as fits into its free memory, within ``gram_bytes``."
    )
    n_jobs: int | None = shared("n_jobs", -1)
    random_state: Any = shared(
        "random_state", 0, "Drawn are the rows held out, and the order with ``stochastic='shuffled'``."
    )
    warm_start: bool = parameter(
        False,
        "Whether ``fit`` on the same rows continues from the end of the path, to another ``max_iter`` or ``stop``. The "
        "rows are then stored; a fit without ``warm_start`` cannot be continued.",
    )

    def _check(self) -> None:
        """Raise an error for parameters that cannot be combined."""
        check(self)
        self._check_kernel()
        check_device(self.device)
        for name, needs in (("stop", "holdout"), ("gamma", "ladder")):
            if isinstance(getattr(self, name), str) and getattr(self, name) == needs and self.validation_fraction == 0:
                raise ValueError(f"`{name}={needs!r}` needs rows to hold out: pass `validation_fraction` above 0")
        if self.stop == "theory" and self.stochastic:
            raise ValueError("the theorems are of full steps: with `stochastic` pass `stop='holdout'` or a number")
        if unknown := set(self.assumptions or {}) - set(ASSUMPTIONS):
            raise ValueError(f"`assumptions` may name beta, tau and zeta, not {', '.join(sorted(unknown))}")

    def _held_share(self) -> float:
        """The fraction of rows that is held out."""
        if self.validation_fraction is not None:
            return float(self.validation_fraction)
        is_ladder = isinstance(self.gamma, str) and self.gamma == "ladder"
        return USUAL_FRACTION if self.stop == "holdout" or is_ladder else 0.0

    def _check_kernel(self) -> None:
        if self.kernel is not None:
            kernels.check_kernel(self.kernel)
        if self.kernel is not None and self.transformer is not None:
            raise ValueError("pass a `kernel` or a `transformer`, not both")
        check_effect(self)
        if not isinstance(self.gamma, str):
            return
        if kernels.kernel_of(self.kernel, 1.0).distance is None:
            *names, last = map(repr, kernels.names_of("distance"))
            suitable = f"{', '.join(names)} and {last}"
            raise ValueError(f"`gamma={self.gamma!r}` is for the kernels {suitable}, not {self.kernel!r}")

"""Lin, Rosasco, Zhou 2016, Figure 1: early stopping of the subgradient method on two Gaussians in the plane.

The classes are normal with means +-(2, 0) and covariance (5, 3; 3, 5) / 2. The model is linear without an intercept,
with the hinge loss and the steps t^-theta (eta_1 = 1).
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from tunefree.papers.experiments import descents
from tunefree.papers.experiments.descents import Errors, Sample
from tunefree.papers.experiments.experiment import Arrays, Experiment, Part, Report, Results
from tunefree.papers.kernel.polynomial import LINEAR

MEAN = np.array([2.0, 0.0])
COVARIANCE = np.array([[5.0, 3.0], [3.0, 5.0]]) / 2.0
EXACT_POINTS = 40  # maximum number of iterations for which the exact error is computed


class Settings(NamedTuple):
    """Sizes; trials are drawn with seeds 0, 1, ..."""

    thetas: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75)
    eta: float = 1.0
    rows: int = 100
    test_rows: int = 100
    iterations: int = 1000
    trials: int = 100


def gaussians(n: int, random: np.random.Generator) -> Sample:
    """Sample rows from the two classes with probability 1/2 each."""
    y = np.where(random.random(n) < 0.5, 1.0, -1.0)
    return Sample(y[:, None] * MEAN + random.multivariate_normal(np.zeros(2), COVARIANCE, n, method="cholesky"), y)


def exact_error(weights: np.ndarray) -> float:
    """The probability that w.x has the wrong sign; 1/2 for w = 0."""
    spread = np.sqrt(weights @ COVARIANCE @ weights)
    return float(ndtr(-(weights @ MEAN) / spread)) if spread > 0.0 else 0.5


def bayes_error() -> float:
    """The Bayes error; the Bayes rule is linear here."""
    return exact_error(np.linalg.solve(COVARIANCE, MEAN))


def exact_errors(settings: Settings, results: Results) -> np.ndarray:
    """Exact errors (thetas, iterations), averaged over the trials."""
    return np.mean([results[f"trial{trial}"]["exact"] for trial in range(settings.trials)], axis=0)


def parts(settings: Settings, results: Results) -> list[Part]:
    """One part for each trial; all values of theta use the same rows."""
    arguments = settings._asdict() | {"thetas": list(settings.thetas)}
    del arguments["trials"]
    return [Part(f"trial{trial}", {"trial": trial, **arguments}) for trial in range(settings.trials)]


def work(
    files: dict[str, Path], trial: int, thetas: list[float], eta: float, rows: int, test_rows: int, iterations: int
) -> Arrays:
    """Training and test errors (thetas, iterations), and exact errors (thetas, some iterations)."""
    random = np.random.default_rng(trial)
    train, test = gaussians(rows, random), gaussians(test_rows, random)
    paths = [descents.path_of(LINEAR, train, test, eta, theta, iterations) for theta in thetas]
    errors = [descents.errors_of(path) for path in paths]
    stops = descents.recorded_iterations(iterations, EXACT_POINTS)
    exact = [[exact_error(train.x.T @ path.last(t)[:, 0]) for t in stops.tolist()] for path in paths]
    return {kind: np.array([one[kind] for one in errors]) for kind in descents.KINDS} | {"exact": np.array(exact)}


def lines_of(settings: Settings, results: Results) -> list[Errors]:
    """The errors of all trials for each theta."""
    trials = [results[f"trial{trial}"] for trial in range(settings.trials)]
    return [
        Errors(theta, *(np.array([trial[kind][i] for trial in trials]) for kind in descents.KINDS))
        for i, theta in enumerate(settings.thetas)
    ]


def report(settings: Settings, results: Results) -> Report:
    """Two panels, training and test error."""
    lines = lines_of(settings, results)
    differences = [
        "The paper's text gives neither the values of theta nor the number of iterations; both are our choice. "
        f"Iterations are on a logarithmic scale. {descents.DRAWING} The Bayes error is {100 * bayes_error():.2f} %. "
        f"The paper's values cannot be read from its figure. Rows are drawn from both classes with probability 1/2 "
        "each. Seeds: the number of the trial.",
        *descents.not_falling(lines),
        *_without_minimum(exact_errors(settings, results)),
    ]
    return descents.report(
        lines,
        reported="The training error falls with the iterations while the test error has a minimum; the effect is more "
        "evident with larger steps, for theta close to 0.",
        results=f"Means over {settings.trials} trials of {settings.rows} rows, in per cent. "
        f"{descents.described(lines)}. Exact test errors: {_described(settings, results)}.",
        differences=differences,
    )


def _without_minimum(exact: np.ndarray) -> list[str]:
    """A sentence if the exact errors do not rise; errors on a hundred test rows are mostly noise."""
    rise = float((exact[:, -1] - exact.min(axis=1)).max())
    if rise >= descents.LEAST_RISE:
        return []
    return [
        "The minimum of the test error is not reproduced: the exact test error rises by at most "
        f"{100 * rise:.3f} percentage points from its minimum to the end. A model with two weights can hardly overfit. "
        "Minima of the plotted curves are due to the sampling of the test rows."
    ]


def _described(settings: Settings, results: Results) -> str:
    stops = descents.recorded_iterations(settings.iterations, EXACT_POINTS)
    return "; ".join(
        f"theta = {theta:g}: minimum {100 * errors.min():.3f} at iteration {stops[errors.argmin()]:,}, "
        f"{100 * errors[-1]:.3f} at the end"
        for theta, errors in zip(settings.thetas, exact_errors(settings, results), strict=True)
    )


EXPERIMENT = Experiment(
    name="path-fig1",
    title="Lin, Rosasco, Zhou 2016, Figure 1: errors against iterations on two Gaussians",
    full=Settings(),
    quick=Settings(trials=20, iterations=400),
    parts=parts,
    work=work,
    report=report,
)

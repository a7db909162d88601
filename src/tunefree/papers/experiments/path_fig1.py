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
from tunefree.papers.experiments.descents import Sample
from tunefree.papers.experiments.experiment import Arrays, Claim, Experiment, Report, Results
from tunefree.papers.kernel.usual import LINEAR

MEAN = np.array([2.0, 0.0])
COVARIANCE = np.array([[5.0, 3.0], [3.0, 5.0]]) / 2.0
EXACT_POINTS = 40  # maximum number of iterations for which the exact error is computed


class Settings(NamedTuple):
    """Sizes; the rows of runs are drawn with seeds 0, 1, ..."""

    thetas: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75)
    eta: float = 1.0
    rows: int = 100
    test_rows: int = 100
    iterations: int = 1000
    runs: int = 100


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
    """Exact errors (thetas, iterations), averaged over the runs."""
    runs = range(settings.runs)
    return np.array([np.mean([results[run, theta]["exact"] for run in runs], axis=0) for theta in settings.thetas])


def work(files: dict[str, Path], settings: Settings, run: int, theta: float) -> Arrays:
    """Training and test errors of all iterations, and exact errors of some; all values of theta use the same rows."""
    random = np.random.default_rng(run)
    train, test = gaussians(settings.rows, random), gaussians(settings.test_rows, random)
    path = descents.path_of(LINEAR, train, test, settings.eta, theta, settings.iterations)
    stops = descents.recorded_iterations(settings.iterations, EXACT_POINTS)
    exact = [exact_error(train.x.T @ path.last(t)[:, 0]) for t in stops.tolist()]
    return descents.errors_of(path) | {"exact": np.array(exact)}


def report(settings: Settings, results: Results) -> Report:
    """Two panels, training and test error."""
    exact = exact_errors(settings, results)
    stops = descents.recorded_iterations(settings.iterations, EXACT_POINTS)
    described = "; ".join(
        f"theta = {theta:g}: {100 * errors.min():.3f} % at iteration {stops[errors.argmin()]:,}, "
        f"{100 * errors[-1]:.3f} at the end"
        for theta, errors in zip(settings.thetas, exact, strict=True)
    )
    rise = float((exact[:, -1] - exact.min(axis=1)).max())
    return descents.report(
        descents.lines_of(settings, results),
        [Claim("The exact test error has a minimum", rise >= descents.LEAST_RISE, described)],
        "The paper's text gives neither the values of theta nor the number of iterations; both are our choice. "
        f"Iterations are on a logarithmic scale. {descents.DRAWING} The Bayes error is {100 * bayes_error():.2f} %. "
        f"The paper's values cannot be read from its figure. Rows are drawn from both classes with probability 1/2 "
        "each. Seeds: the number of the run.",
    )


EXPERIMENT = Experiment(
    name="path-fig1",
    title="Lin, Rosasco, Zhou 2016, Figure 1: errors against iterations on two Gaussians",
    quick=Settings(runs=20, iterations=400),
    parts=descents.parts,
    work=work,
    report=report,
)

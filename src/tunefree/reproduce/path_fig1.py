"""Lin, Rosasco, Zhou 2016, Figure 1: early stopping of the subgradient method on two Gaussians in the plane.

The classes are normal with means +-(2, 0) and covariance (5, 3; 3, 5) / 2; hinge loss, linear functions without a
constant, steps t^-theta from eta_1 = 1 on.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from tunefree.kernel.polynomial import LINEAR
from tunefree.reproduce import descents
from tunefree.reproduce.descents import Errors, Sample
from tunefree.reproduce.experiment import Arrays, Experiment, Part, Report, Results

MEAN = np.array([2.0, 0.0])
COVARIANCE = np.array([[5.0, 3.0], [3.0, 5.0]]) / 2.0
EXACT = 40  # iterations, at most, of which the exact error is computed


class Settings(NamedTuple):
    """Sizes; trials are drawn with seeds 0, 1, ..."""

    thetas: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75)
    eta: float = 1.0
    rows: int = 100
    test_rows: int = 100
    iterations: int = 1000
    trials: int = 100


def gaussians(n: int, random: np.random.Generator) -> Sample:
    """Rows of the two classes, which are equally likely."""
    y = np.where(random.random(n) < 0.5, 1.0, -1.0)
    return Sample(y[:, None] * MEAN + random.multivariate_normal(np.zeros(2), COVARIANCE, n, method="cholesky"), y)


def exact_error(weights: np.ndarray) -> float:
    """The probability that w.x has the wrong sign; that of 0 is wrong for one class."""
    spread = np.sqrt(weights @ COVARIANCE @ weights)
    return float(ndtr(-(weights @ MEAN) / spread)) if spread > 0.0 else 0.5


def bayes_error() -> float:
    """The least error of any rule, which is linear."""
    return exact_error(np.linalg.solve(COVARIANCE, MEAN))


def exact_errors(settings: Settings, results: Results) -> np.ndarray:
    """Means (thetas, stops) over the trials of the error that infinitely many test rows would show."""
    return np.mean([results[f"trial{trial}"]["exact"] for trial in range(settings.trials)], axis=0)


def parts(settings: Settings, results: Results) -> list[Part]:
    """One a trial, with all thetas on the same rows."""
    arguments = settings._asdict() | {"thetas": list(settings.thetas)}
    del arguments["trials"]
    return [Part(f"trial{trial}", {"trial": trial, **arguments}) for trial in range(settings.trials)]


def work(
    files: dict[str, Path],
    trial: int,
    thetas: list[float],
    eta: float,
    rows: int,
    test_rows: int,
    iterations: int,
) -> Arrays:
    """Training and test errors (thetas, iterations), and what test errors are estimates of (thetas, stops)."""
    random = np.random.default_rng(trial)
    train, test = gaussians(rows, random), gaussians(test_rows, random)
    paths = [descents.descent_of(LINEAR, train, test, eta, theta, iterations) for theta in thetas]
    errors = [descents.errors_of(path) for path in paths]
    stops = descents.stops_of(iterations, EXACT)
    exact = [[exact_error(train.x.T @ path.last(t)[:, 0]) for t in stops.tolist()] for path in paths]
    return {kind: np.array([one[kind] for one in errors]) for kind in descents.KINDS} | {"exact": np.array(exact)}


def lines_of(settings: Settings, results: Results) -> list[Errors]:
    """All trials, theta after theta."""
    trials = [results[f"trial{trial}"] for trial in range(settings.trials)]
    return [
        Errors(theta, *(np.array([trial[kind][i] for trial in trials]) for kind in descents.KINDS))
        for i, theta in enumerate(settings.thetas)
    ]


def report(settings: Settings, results: Results) -> Report:
    """Two panels."""
    lines = lines_of(settings, results)
    differences = [
        "The paper's text gives neither the values of theta nor how many iterations; they are of our choice, and "
        f"iterations stand on a logarithmic scale. {descents.DRAWING} The least error of any rule is "
        f"{100 * bayes_error():.2f} %. Its digits cannot be read off its picture. Rows are drawn from both classes "
        "with probability 1/2 each. Seeds: the number of the trial.",
        *descents.not_falling(lines),
        *_without_minimum(exact_errors(settings, results)),
    ]
    return Report(
        draw=lambda figure: descents.draw(figure, lines),
        inches=(10.5, 4.2),
        numbers=descents.numbers_of(lines, descents.stops_of(settings.iterations)),
        reported="The training error falls with the iterations while the test error has a minimum; the effect is more "
        "evident with larger steps, for theta close to 0.",
        found=f"Means over {settings.trials} trials of {settings.rows} rows, in per cent. {descents.told(lines)}. "
        f"Errors that infinitely many test rows would show: {_told(settings, results)}.",
        differences=" ".join(differences),
    )


def _without_minimum(exact: np.ndarray) -> list[str]:
    """Whether the errors that infinitely many test rows would show rise; what a hundred show is mostly noise."""
    rise = float((exact[:, -1] - exact.min(axis=1)).max())
    if rise >= descents.NO_MINIMUM:
        return []
    return [
        f"The minimum of the test error does not come out: from its least to the end it rises by {100 * rise:.3f} "
        "points at most, if infinitely many rows are tested. Two weights leave little to overfit; minima of the drawn "
        "curves are noise of the test rows."
    ]


def _told(settings: Settings, results: Results) -> str:
    stops = descents.stops_of(settings.iterations, EXACT)
    return "; ".join(
        f"theta = {theta:g} least {100 * errors.min():.3f}, at iteration {stops[errors.argmin()]:,}, and "
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

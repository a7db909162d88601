"""Errors along the iterations of the subgradient method, for both figures of Lin, Rosasco, Zhou 2016."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree.losses import Hinge
from tunefree.losses.objectives import Binary
from tunefree.papers.early_stopping.gram import Gram
from tunefree.papers.experiments import drawing
from tunefree.papers.experiments.experiment import Report
from tunefree.papers.subgradient import Path, Problem, Rows, descend, steps_of, wrong_classes

POINTS_DRAWN = 120  # maximum number of points of a line
LEAST_RISE = 0.001  # an error that rises by less from its minimum to the end has no pronounced minimum
STYLES = (
    drawing.Style(drawing.VERMILLION, (), 1.1),
    drawing.Style(drawing.ORANGE, (6, 2)),
    drawing.Style(drawing.GREEN, (6, 2, 1.5, 2)),
    drawing.Style(drawing.BLUE, (), 1.8),
    drawing.Style(drawing.PURPLE, (2, 1.5)),
)
KINDS = ("training", "test")
DRAWING = (
    "Where iterations are dense, a line is the mean over neighbouring iterations, and its band extends from their "
    "minimum to their maximum. Numbers beside lines are errors after the last iteration; dots mark the minima of the "
    "test error."
)


class Sample(NamedTuple):
    """Rows and their labels."""

    x: np.ndarray  # (n, d), in the precision of the Gram matrix
    y: np.ndarray  # (n,) -1 and +1


class Errors(NamedTuple):
    """Training and test misclassification errors of f_1, f_2, ... for one theta."""

    theta: float
    training: np.ndarray  # (draws, iterations)
    test: np.ndarray  # (draws, iterations)

    @property
    def best(self) -> int:
        """Index of the minimum of the mean test error, from 0."""
        return int(self.test.mean(axis=0).argmin())

    @property
    def rise(self) -> float:
        """Mean test error at the end minus its minimum."""
        mean = self.test.mean(axis=0)
        return float(mean[-1] - mean.min())


def path_of(kernel: Any, train: Sample, test: Sample, eta: float, theta: float, iterations: int) -> Path:
    """The path (1) with the hinge loss to f_T, each iterate of which is measured on the test rows."""
    grams = Gram(kernel, train.x), Gram(kernel, test.x, train.x)
    learned, others = (
        Rows(gram, sample.y, np.full(len(sample.y), 1.0 / max(len(sample.y), 1)))
        for gram, sample in zip(grams, (train, test), strict=True)
    )
    problem = Problem(learned, others, kernel.diagonal(train.x), True, Binary(Hinge(), 0.0), wrong_classes)
    return descend(problem, steps_of(eta, theta, iterations))


def errors_of(path: Path) -> dict[str, np.ndarray]:
    """Training and test errors of f_1, ..., f_T."""
    return {"training": path.records["training_error"].copy(), "test": path.records["validation_error"].copy()}


def numbers_of(lines: list[Errors], stops: np.ndarray) -> list[dict[str, Any]]:
    """A row for each theta and each of the given iterations, counted from 1."""
    rows = []
    for line in lines:
        for t in stops.tolist():
            row = {"theta": line.theta, "iteration": t}
            for kind in KINDS:
                values = getattr(line, kind)[:, t - 1]
                row |= {f"{kind}_error_mean": float(values.mean()), f"{kind}_error_sd": float(values.std())}
            rows.append(row)
    return rows


def recorded_iterations(iterations: int, at_most: int = 120) -> np.ndarray:
    """Iterations to write to the file, geometrically spaced."""
    return np.unique(np.geomspace(1, iterations, at_most).round().astype(int))


def report(lines: list[Errors], reported: str, results: str, differences: list[str]) -> Report:
    """The report of a figure with these lines."""
    iterations = lines[0].test.shape[1]
    numbers = numbers_of(lines, recorded_iterations(iterations))
    return Report(lambda figure: draw(figure, lines), (10.5, 4.2), numbers, reported, results, " ".join(differences))


def draw(figure: Any, lines: list[Errors]) -> None:
    """Two panels, training and test error against iterations; a dot at each minimum of the test error."""
    panels = figure.subplots(1, 2, gridspec_kw={"wspace": 0.5})
    for axes, kind in zip(panels, KINDS, strict=True):
        drawing.frame(axes, f"{kind} error", "iteration", "error (%)")
        axes.set_xscale("log")
        drawing.plain_numbers(axes.xaxis)
        means = [100 * getattr(line, kind).mean(axis=0) for line in lines]
        axes.set_xlim(2, len(means[0]))
        for line, mean, style in zip(lines, means, STYLES, strict=False):
            _line(axes, mean, style)
            if kind == "test":
                axes.plot(line.best + 1, mean[line.best], "o", markersize=4.5, color=style.color, clip_on=False)
        ends = [
            drawing.EndLabel(float(mean[-1]), f"θ = {line.theta:g}  {mean[-1]:.2f}", style.color)
            for line, mean, style in zip(lines, means, STYLES, strict=False)
        ]
        drawing.label_ends(axes, ends)


def _line(axes: Any, mean: np.ndarray, style: drawing.Style) -> None:
    """Errors from the second iteration on: means over neighbours, and a band from their minimum to their maximum.

    With large steps the errors oscillate. Thousands of single values would hide the other lines.
    """
    firsts = recorded_iterations(len(mean), POINTS_DRAWN)[1:-1] - 1
    counts = np.diff(np.append(firsts, len(mean)))
    middles = firsts + (counts + 1) / 2
    middles[-1] = len(mean)
    low, high = (extreme.reduceat(mean, firsts) for extreme in (np.minimum, np.maximum))
    axes.fill_between(middles, low, high, color=style.color, alpha=drawing.BAND_ALPHA, linewidth=0)
    axes.plot(middles, np.add.reduceat(mean, firsts) / counts, **style.options)


def described(lines: list[Errors]) -> str:
    """Training and test errors for each theta, as a sentence."""
    parts = []
    for line in lines:
        training, test = (100 * getattr(line, kind).mean(axis=0) for kind in KINDS)
        parts.append(
            f"theta = {line.theta:g}: training error {training[1]:.2f} after the first step, {training[-1]:.2f} at the "
            f"end; minimum test error {test.min():.2f} at iteration {line.best + 1:,}, {test[-1]:.2f} at the end"
        )
    return "; ".join(parts)


def not_falling(lines: list[Errors]) -> list[str]:
    """A sentence that names the values of theta for which the training error does not fall, if any."""
    flat = [f"{line.theta:g}" for line in lines if line.training.mean(axis=0)[-1] >= line.training.mean(axis=0)[1]]
    return [f"The training error does not fall for theta = {', '.join(flat)}."] if flat else []


def without_minimum(lines: list[Errors]) -> list[str]:
    """Sentences on the values of theta without a minimum of the test error, and on its sharpness for large steps."""
    sentences = []
    if flat := [f"{line.theta:g}" for line in lines if line.rise < LEAST_RISE]:
        sentences.append(
            f"The test error has no pronounced minimum for theta = {', '.join(flat)}: at the end it is less than 0.1 "
            "percentage points above its minimum."
        )
    if not lines[0].rise > lines[-1].rise:
        sentences.append(
            f"The minimum is not sharper for theta = {lines[0].theta:g} than for theta = {lines[-1].theta:g}: the test "
            f"error rises by {100 * lines[0].rise:.2f} and {100 * lines[-1].rise:.2f} percentage points from its "
            "minimum to the end."
        )
    return sentences

"""Errors along the iterations of the subgradient method, for both figures of Lin, Rosasco, Zhou 2016."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tunefree.losses import Hinge
from tunefree.papers.early_stopping.estimators import problem_of
from tunefree.papers.early_stopping.targets import goal_of_classes
from tunefree.papers.experiments import drawing
from tunefree.papers.experiments.experiment import Claim, Point, Report, Results, moments
from tunefree.papers.subgradient import Path, Rows, descend, steps_of

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
    "Lines join the iterations in the table of numbers; numbers beside them are errors after the last iteration; dots "
    "mark the minima of the test error."
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
    rows = (Rows(sample.x, sample.y, np.full(len(sample.y), 1.0 / len(sample.y))) for sample in (train, test))
    return descend(problem_of(goal_of_classes(Hinge(), 2), kernel, *rows), steps_of(eta, theta, iterations))


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
                row |= moments(f"{kind}_error", getattr(line, kind)[:, t - 1])
            rows.append(row)
    return rows


def parts(settings: Any, results: Results) -> list[Point]:
    """One part for each run and theta."""
    return list(product(range(settings.runs), settings.thetas))


def lines_of(settings: Any, results: Results) -> list[Errors]:
    """The errors of all runs for each theta."""
    return [
        Errors(theta, *(np.array([results[run, theta][kind] for run in range(settings.runs)]) for kind in KINDS))
        for theta in settings.thetas
    ]


def recorded_iterations(iterations: int, at_most: int = 120) -> np.ndarray:
    """Iterations to write to the file, geometrically spaced."""
    return np.unique(np.geomspace(1, iterations, at_most).round().astype(int))


def report(lines: list[Errors], claims: list[Claim], differences: str) -> Report:
    """Two panels, training and test error; the paper's claims on them, and those on this figure alone."""
    stops = recorded_iterations(lines[0].test.shape[1])
    claims = [*claims_of(lines), *claims]
    return Report(lambda figure: draw(figure, lines, stops), (10.5, 4.2), numbers_of(lines, stops), claims, differences)


def draw(figure: Any, lines: list[Errors], stops: np.ndarray) -> None:
    """Two panels, training and test error against iterations; a dot at each minimum of the test error."""
    panels = figure.subplots(1, 2, gridspec_kw={"wspace": 0.5})
    for axes, kind in zip(panels, KINDS, strict=True):
        drawing.frame(axes, f"{kind} error", "iteration", "error (%)")
        axes.set_xscale("log")
        drawing.plain_numbers(axes.xaxis)
        axes.set_xlim(2, stops[-1])
        ends = []
        for line, style in zip(lines, STYLES, strict=False):
            mean = 100 * getattr(line, kind).mean(axis=0)
            axes.plot(stops[1:], mean[stops[1:] - 1], **style.options)
            ends.append(drawing.EndLabel(float(mean[-1]), f"θ = {line.theta:g}  {mean[-1]:.2f}", style.color))
            if kind == "test":
                axes.plot(line.best + 1, mean[line.best], "o", markersize=4.5, color=style.color, clip_on=False)
        drawing.label_ends(axes, ends)


def claims_of(lines: list[Errors]) -> list[Claim]:
    """The claims on training and test errors."""
    training = [100 * line.training.mean(axis=0) for line in lines]
    test = [100 * line.test.mean(axis=0) for line in lines]
    falls = "; ".join(
        f"theta = {line.theta:g}: {mean[1]:.2f} % after the first step, {mean[-1]:.2f} at the end"
        for line, mean in zip(lines, training, strict=True)
    )
    minima = "; ".join(
        f"theta = {line.theta:g}: {mean.min():.2f} % at iteration {line.best + 1:,}, {mean[-1]:.2f} at the end"
        for line, mean in zip(lines, test, strict=True)
    )
    first, last = (f"{100 * line.rise:.2f} points for theta = {line.theta:g}" for line in (lines[0], lines[-1]))
    return [
        Claim("The training error falls with the iterations", all(mean[-1] < mean[1] for mean in training), falls),
        Claim("The test error has a minimum", all(line.rise >= LEAST_RISE for line in lines), minima),
        Claim(
            "It is more evident with larger steps, for theta close to 0",
            lines[0].rise > lines[-1].rise,
            f"the test error rises by {first} and {last} from its minimum to the end",
        ),
    ]

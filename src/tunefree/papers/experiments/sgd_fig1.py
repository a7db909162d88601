"""Nitanda, Suzuki 2019, Figure 1: synthetic data on two strips, with most labels of one class on each.

X is uniform on [-1 + r, 1 - r] x [-1, 1] and [1 + r, 3 - r] x [-1, 1]; P(Y = 1) is 1/2 - delta on the left strip and
1/2 + delta on the right one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree.papers.experiments import drawing
from tunefree.papers.experiments.experiment import Claim, Experiment, Report, Results

GAP = 0.1  # r
BORDER = 1.0  # decision boundary of the Bayes rule
CLOSE = 0.01  # difference of shares up to which they agree


class Settings(NamedTuple):
    """Parameters of the sample; the seed is 0."""

    delta: float = 0.4
    rows: int = 100_000
    rows_drawn: int = 400


def strips(n: int, delta: float, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Sample rows (n, 2) and labels (n,), -1 and +1, of the two strips.

    Examples
    --------
    >>> x, y = strips(4, 0.5, np.random.default_rng(0))
    >>> np.array_equal(y > 0, x[:, 0] > BORDER)
    True
    """
    right = random.random(n) < 0.5
    x = np.column_stack([random.uniform(-1.0 + GAP, 1.0 - GAP, n) + 2.0 * right, random.uniform(-1.0, 1.0, n)])
    y = np.where(random.random(n) < np.where(right, 0.5 + delta, 0.5 - delta), 1.0, -1.0)
    return x, y


def shares(x: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """The share of the label +1 on the left and on the right strip, and the error of the Bayes rule."""
    right = x[:, 0] > BORDER
    return float(np.mean(y[~right] > 0)), float(np.mean(y[right] > 0)), float(np.mean((y > 0) != right))


def report(settings: Settings, results: Results) -> Report:
    """A scatter plot of the first rows."""
    x, y = strips(settings.rows, settings.delta, np.random.default_rng(0))
    left, right, wrong = shares(x, y)
    x, y = x[: settings.rows_drawn], y[: settings.rows_drawn]
    low, high = 0.5 - settings.delta, 0.5 + settings.delta
    return Report(
        draw=lambda figure: _draw(figure, settings, x, y),
        inches=(7.2, 3.7),
        numbers=[{"x1": float(a), "x2": float(b), "y": int(label)} for (a, b), label in zip(x, y, strict=True)],
        claims=[
            Claim(
                f"For delta = {settings.delta:g}, P(Y = 1) is {low:g} on the left part and {high:g} on the right",
                max(abs(left - low), abs(right - high)) < CLOSE,
                f"{left:.4f} and {right:.4f} of {settings.rows:,} rows; the Bayes rule, the line x1 = {BORDER:g}, has "
                f"an error of {100 * wrong:.2f} %",
            )
        ],
        differences="The paper states neither the number of points in its figure nor the probability of each part; "
        "here each part has probability 1/2. Seed 0.",
    )


def _draw(figure: Any, settings: Settings, x: np.ndarray, y: np.ndarray) -> None:
    axes = figure.add_axes((0.08, 0.15, 0.88, 0.74))
    low, high = 0.5 - settings.delta, 0.5 + settings.delta
    drawing.frame(axes, f"Two strips, δ = {settings.delta:g}", "x₁", "x₂")
    axes.grid(False)
    from matplotlib.patches import Rectangle

    for start in (-1.0 + GAP, 1.0 + GAP):
        axes.add_patch(Rectangle((start, -1.0), 2.0 - 2.0 * GAP, 2.0, facecolor="#F4F4F4", edgecolor="none", zorder=0))
    for label, name, style in (
        (1.0, "y = +1", {"s": 26, "marker": "+", "color": drawing.VERMILLION}),
        (-1.0, "y = -1", {"s": 14, "marker": "o", "facecolors": "none", "edgecolors": drawing.BLUE}),
    ):
        axes.scatter(*x[y == label].T, linewidths=0.9, label=name, **style)
    axes.axvline(BORDER, color="black", dashes=(4, 3), linewidth=0.9)
    axes.text(BORDER + 0.04, 1.07, "Bayes rule", fontsize=8.5)
    axes.text(-1.0 + GAP, -1.13, f"P(y = +1) = {low:g}", fontsize=8.5, va="top")
    axes.text(1.0 + GAP, -1.13, f"P(y = +1) = {high:g}", fontsize=8.5, va="top")
    axes.set(xlim=(-1.05, 3.05), ylim=(-1.3, 1.2), aspect="equal")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9, handletextpad=0.2)


EXPERIMENT = Experiment(
    name="sgd-fig1",
    title="Nitanda, Suzuki 2019, Figure 1: the data of two strips",
    quick=Settings(rows=10_000),
    report=report,
)

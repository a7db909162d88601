"""Plots of regret and its bound over the rounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.papers.playing import Result
from tunefree.plotting.style import MARKERS, SERIES, pyplot, simplify

POINTS = 60  # rounds at which a bound is evaluated
LOG_SCALE_RATIO = 30.0  # ratio of the largest to the smallest line above which the vertical axis is logarithmic


class RegretDisplay:
    """The regret of one or more results over the rounds, with dashed lines for the bounds of theorems.

    Use :meth:`from_result` to create a display.

    Examples
    --------
    >>> from tunefree.papers import ScInOL1, ScInOL2, play
    >>> X, y = np.random.default_rng(0).normal(size=(50, 2)), [-1, 1] * 25
    >>> display = RegretDisplay.from_result(play(ScInOL1(), X, y), play(ScInOL2(), X, y), u=[1.0, 0.0])
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('rounds (rows)', 'regret (sum of logistic losses)')
    """

    def __init__(self, ax: Any, lines: list[Any], notes: list[str]) -> None:
        self.ax_, self.lines_, self.figure_ = ax, lines, ax.figure
        self.notes_ = notes  # for each result without a bound, the reason

    @classmethod
    def from_result(
        cls, *results: Result, u: Any = "best", radius: float | None = None, ax: Any = None, log: bool | None = None
    ) -> RegretDisplay:
        """Draw the regrets of results on the same rows.

        Parameters
        ----------
        *results : Result
        u, radius
            The comparator, as for :meth:`tunefree.papers.playing.Result.regret`.
        ax : matplotlib axes, optional
        log : bool, optional
            Whether the vertical axis is logarithmic, and linear around 0. By default if the largest line is more than
            30 times the smallest.
        """
        if not results:
            raise ValueError("pass at least one result of tunefree.papers.play")
        if ax is None:
            ax = pyplot("RegretDisplay").subplots(figsize=(7.0, 4.2), layout="constrained")[1]
        simplify(ax)
        lines, notes, heights = [], [], []
        for number, result in enumerate(results):
            comparator = result.comparator(u, radius)
            color, marker = SERIES[number % len(SERIES)]["color"], MARKERS[number % len(MARKERS)]
            style = {"color": color, "marker": marker, "markersize": 4}
            rounds = np.unique(np.linspace(1, result.rounds, POINTS).astype(int))
            regrets = result.regrets(comparator)
            heights.append(float(np.abs(regrets).max()))
            bound = result.bound(comparator)
            label = result.name if bound.value is not None else f"{result.name}, no bound"
            between_markers = max(result.rounds // 10, 1)
            lines += ax.plot(np.arange(1, result.rounds + 1), regrets, label=label, markevery=between_markers, **style)
            if bound.value is None:
                notes.append(f"{result.name}: {bound.reason}")
                continue
            bounds = [_bound_after(result, comparator, int(t)) for t in rounds]
            label = f"{result.name}, {bound.theorem.rpartition(', ')[2]}"
            lines += ax.plot(rounds, bounds, linestyle="--", label=label, markevery=10, **style)
            heights.append(float(np.nanmax(bounds)))
        if log or (log is None and max(heights) > LOG_SCALE_RATIO * min(heights)):
            ax.set_yscale("symlog", linthresh=max(min(heights) / 10.0, 1e-3))
        ax.axhline(0.0, color="#888888", linewidth=0.8)
        ax.set_xlabel("rounds (rows)")
        ax.set_ylabel(f"regret (sum of {results[0].loss.name} losses)")
        ax.legend()
        return cls(ax, lines, notes)


def _bound_after(result: Result, comparator: Any, t: int) -> float:
    """Return the bound on the regret of the first t rounds; NaN if there is none."""
    first = result.after(t)
    same = comparator._replace(predictions=comparator.predictions[:t], losses=comparator.losses[:t])
    value = first.bound(same).value
    return float("nan") if value is None else value

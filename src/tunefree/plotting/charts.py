"""Simple charts on axes: lines, bars, points, and shares with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tunefree.plotting import style

LONGEST = 22  # characters of names beside bars


class Series(NamedTuple):
    """A line."""

    name: str  # in the legend
    x: Sequence[float]
    y: Sequence[float]
    style: dict[str, Any]


def draw_lines(
    axes: Any,
    lines: Sequence[Series],
    titles: tuple[str, str],
    y_range: tuple[float, float],
    marks: Sequence[float] = (),
) -> None:
    """Draw lines over a logarithmic axis.

    ``y_range``: the visible range; lines may exceed it.
    ``marks``: x positions of pale vertical lines with triangles on top.
    """
    for position in marks:
        axes.axvline(position, color=style.LIGHT_VERMILLION, linewidth=0.9)
    if marks:
        on_top = {"transform": axes.get_xaxis_transform(), "clip_on": False}
        axes.plot(marks, [1.0] * len(marks), "v", color=style.VERMILLION, markersize=5.0, **on_top)
    for line in lines:
        axes.plot(line.x, line.y, label=line.name, **line.style)
    axes.set_xscale("log")
    axes.set_xlim(min(line.x[0] for line in lines), max(line.x[-1] for line in lines))
    axes.set_ylim(*y_range)
    style.few_ticks(axes.yaxis, y_range, 5)
    style.counts(axes.xaxis)
    finish(axes, titles)


def finish(axes: Any, titles: tuple[str, str]) -> None:
    """Add titles and a grid to axes, and a legend beside them."""
    axes.set_xlabel(style.escaped(titles[0]))
    axes.set_ylabel(style.escaped(titles[1]))
    style.simplify(axes)
    lines, names = axes.get_legend_handles_labels()
    if names:
        legend = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "frameon": False}
        axes.legend(lines, list(map(style.escaped, names)), **legend)


def draw_scatter(axes: Any, x: np.ndarray, y: np.ndarray, titles: tuple[str, str]) -> None:
    """Draw points and a horizontal line at 0."""
    axes.axhline(0.0, color=style.SOFT, linewidth=0.8)
    axes.plot(x, y, "o", color=style.BLUE, markersize=2.5, markeredgewidth=0, alpha=0.5)
    for side, values in ((axes.xaxis, x), (axes.yaxis, y)):
        style.few_ticks(side, values)
    finish(axes, titles)


def draw_bars(
    axes: Any, names: Sequence[str], sizes: Sequence[float], errors: Sequence[float], title: str, noise: Any = None
) -> None:
    """Draw horizontal bars, the first on top, with standard errors as whiskers.

    ``noise``: the level of noise of each bar; bars below it are grey.
    """
    positions, colours = np.arange(len(names))[::-1], [style.BLUE] * len(names)
    if noise is not None:
        colours = [style.BLUE if size > line else style.GREY for size, line in zip(sizes, noise, strict=True)]
    whiskers = {"ecolor": style.BLACK, "elinewidth": 1.0}
    axes.barh(positions, sizes, xerr=errors, color=colours, height=0.66, error_kw=whiskers)
    if noise is not None:
        axes.vlines(noise, positions - 0.45, positions + 0.45, color=style.VERMILLION, linewidth=1.7)
    axes.set_yticks(positions, [style.escaped(style.shortened(name, LONGEST)) for name in names])
    axes.set_ylim(-0.7, len(names) - 0.3)
    least = min(0.0, *np.subtract(sizes, errors).tolist())
    most = max(*(sizes if noise is None else noise), *np.add(sizes, errors).tolist())
    axes.set_xlim(1.04 * least, 1.04 * max(most, -0.25 * least))
    style.few_ticks(axes.xaxis, sizes)
    axes.set_xlabel(style.escaped(title), x=1.0, ha="right")
    style.simplify(axes, "x")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)


def draw_calibration(axes: Any, expected: Sequence[float], actual: Sequence[Any], titles: tuple[str, str]) -> None:
    """Draw actual shares or rates, each with the low and high end of its interval or None, against those expected."""
    ends = [(value, low, high) if low is not None else (value, value, value) for value, low, high in actual]
    shares, low, high = np.array(ends).T
    most = 1.05 * float(max(*expected, *shares, *high))
    axes.plot([0.0, most], [0.0, most], **style.OTHERS)
    axes.vlines(expected, low, high, color=style.BLUE, linewidth=1.5, alpha=0.6)
    axes.plot(expected, shares, "o-", color=style.BLUE, markersize=4, linewidth=1.2)
    axes.set(xlim=(0.0, most), ylim=(0.0, most))
    for side in (axes.xaxis, axes.yaxis):
        style.few_ticks(side, [0.0, most])
    finish(axes, titles)


def draw_square(axes: Any, x: Any, y: Any, titles: tuple[str, str], chance: tuple[float, float]) -> None:
    """Draw a curve of shares; ``chance``: heights of a reference line at the left and the right."""
    axes.plot([0.0, 1.0], chance, **style.OTHERS)
    axes.plot(x, y, color=style.BLUE, linewidth=2.0)
    axes.set(xlim=(0.0, 1.0), ylim=(0.0, 1.02))
    finish(axes, titles)


def draw_thresholds(axes: Any, x: Any, lines: dict[str, list[float]], titles: tuple[str, str]) -> None:
    """Draw lines over thresholds, the first of them bold; the vertical range fits the first line."""
    looks = style.LEADER, style.SERIES[1], style.SERIES[0]
    for (name, values), look in zip(lines.items(), looks, strict=False):
        axes.plot(x, values, label=name, **look)
    first, *_ = heights = list(lines.values())
    low, high = style.span([*first, *(values[0] for values in heights), 0.0], 0.06)
    axes.set(xlim=(0.0, 1.0), ylim=(low, high))
    style.few_ticks(axes.yaxis, [low, high], 5)
    finish(axes, titles)

"""Simple charts on axes: lines with labels at their ends, bars, points, and shares with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tunefree.plotting import style

GAP = 0.09  # between names at the ends of lines, as a part of the height of the axes
LONGEST = 22  # characters of names beside bars
WIDE = 20.0  # ratio of shares from which on their axis is logarithmic


class Series(NamedTuple):
    """A line."""

    name: str  # at its end; empty for none
    x: Sequence[float]
    y: Sequence[float]
    style: dict[str, Any]


def draw_lines(
    axes: Any,
    lines: Sequence[Series],
    titles: tuple[str, str],
    y_range: tuple[float, float],
    are_counts: bool = True,
    marks: Sequence[float] = (),
    is_log: bool = False,
) -> None:
    """Draw lines over a logarithmic axis, with names at their ends.

    ``y_range``: what is shown; lines may leave it.
    ``are_counts``: whether ``x`` counts rows.
    ``is_log``: whether heights are on a logarithmic axis.
    ``marks``: places of the lower axis that have pale lines, and triangles on top.
    """
    for place in marks:
        axes.axvline(place, color=style.LIGHT_VERMILLION, linewidth=0.9)
    if marks:
        on_top = {"transform": axes.get_xaxis_transform(), "clip_on": False}
        axes.plot(marks, [1.0] * len(marks), "v", color=style.VERMILLION, markersize=5.0, **on_top)
    for line in lines:
        axes.plot(line.x, line.y, **line.style)
    axes.set_xscale("log")
    axes.set_xlim(min(line.x[0] for line in lines), max(line.x[-1] for line in lines))
    axes.set_ylim(*y_range)
    if is_log:
        axes.set_yscale("log")
        style.plain_numbers(axes.yaxis, y_range)
    else:
        style.few_ticks(axes.yaxis, y_range, 5)
    style.counts(axes.xaxis) if are_counts else style.plain_numbers(axes.xaxis, lines[0].x)
    finish(axes, lines, titles)


def finish(axes: Any, lines: Sequence[Series], titles: tuple[str, str]) -> None:
    """Titles of axes, grid, and names at the ends of lines."""
    axes.set_xlabel(style.escaped(titles[0]))
    axes.set_ylabel(style.escaped(titles[1]))
    style.simplify(axes)
    labels = [
        style.EndLabel(line.y[-1], style.escaped(line.name), line.style["color"], line.style["color"] == style.BLACK)
        for line in lines
        if line.name
    ]
    style.label_ends(axes, labels, GAP)


def draw_gain(axes: Any, looked: Any, hits: Any, titles: tuple[str, str]) -> None:
    """Draw the share of hits by the share of rows, beside the diagonal of a random order."""
    axes.plot([0.0, 1.0], [0.0, 1.0], **style.OTHERS)
    axes.plot(looked, hits, color=style.BLUE, linewidth=2.0)
    axes.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    finish(axes, [], titles)


def draw_rates(axes: Any, rates: dict[str, list[float]]) -> None:
    """Draw rates by decile, a line for each name."""
    deciles = np.arange(1, 1 + max(map(len, rates.values()))).tolist()
    lines = [
        Series(name, deciles, values, {"linewidth": 1.7, **look})
        for (name, values), look in zip(rates.items(), style.SERIES, strict=False)
    ]
    for line in lines:
        axes.plot(line.x, line.y, marker="o", markersize=3, **line.style)
    axes.set_xticks(deciles)
    style.few_ticks(axes.yaxis, [0.0, *(value for line in lines for value in line.y)])
    finish(axes, lines, ("decile of the predicted rate", "rate"))


def draw_coverage(
    axes: Any, asked: Sequence[float], covered: Sequence[float], low: Sequence[float], high: Sequence[float]
) -> None:
    """Draw the parts of rows that were covered, less those asked for, with the band that chance explains."""
    x = np.array(asked)
    off, ends = np.array(covered) - x, np.array([low, high]) - x
    axes.axhline(0.0, color=style.SOFT, linewidth=0.8)
    axes.fill_between(x, *ends, color=style.SOFT, alpha=0.25, linewidth=0)
    axes.plot(x, off, "o-", color=style.BLUE, linewidth=1.2, markersize=4.5)
    axes.set_xlim(0.0, 1.0)
    style.few_ticks(axes.yaxis, np.concatenate([off, *ends]), 5)
    finish(axes, [], ("coverage asked for", "covered less asked for"))


def draw_scatter(axes: Any, x: np.ndarray, y: np.ndarray, titles: tuple[str, str]) -> None:
    """Draw points, and a line at the height 0."""
    axes.axhline(0.0, color=style.SOFT, linewidth=0.8)
    axes.plot(x, y, "o", color=style.BLUE, markersize=2.5, markeredgewidth=0, alpha=0.5)
    for side, values in ((axes.xaxis, x), (axes.yaxis, y)):
        style.few_ticks(side, values)
    finish(axes, [], titles)


def draw_bars(
    axes: Any, names: Sequence[str], sizes: Sequence[float], errors: Sequence[float], title: str, beyond: int
) -> None:
    """Draw bars from the first on top downwards, with whiskers of standard errors, and a line below the first few."""
    places = np.arange(len(names))[::-1]
    whiskers = {"ecolor": style.BLACK, "elinewidth": 1.0}
    axes.barh(places, sizes, xerr=errors, color=style.BLUE, height=0.66, error_kw=whiskers)
    axes.set_yticks(places, [style.escaped(style.shortened(name, LONGEST)) for name in names])
    axes.set_ylim(-0.7, len(names) - 0.3)
    least = min(0.0, *(size - error for size, error in zip(sizes, errors, strict=True)))
    most = max(size + error for size, error in zip(sizes, errors, strict=True))
    axes.set_xlim(1.04 * least, 1.04 * max(most, -0.25 * least))
    style.few_ticks(axes.xaxis, sizes)
    if beyond < len(names):
        axes.axhline(len(names) - beyond - 0.5, color=style.SOFT, linewidth=0.8, dashes=(4, 2))
    axes.set_xlabel(style.escaped(title))
    style.simplify(axes, "x")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)


def draw_shares(
    axes: Any, expected: Sequence[float], actual: Sequence[float], low: Sequence[float], high: Sequence[float], of: str
) -> None:
    """Draw actual shares with their intervals, and expected ones as a dashed line, by tenth of a probability."""
    x = np.arange(len(expected)) + 1.0
    least, most = min(expected), max(*high, *expected)
    axes.plot(x, expected, color=style.VERMILLION, dashes=(5, 1.5), linewidth=1.7)
    axes.vlines(x, low, high, color=style.BLUE, linewidth=1.5, alpha=0.6)
    axes.plot(x, actual, "o", color=style.BLUE, markersize=4.5)
    if least > 0.0 and most > WIDE * least:
        axes.set_yscale("log")
        ends = [end for end in low if end > 0.0]
        axes.set_ylim(min(least, *ends, least) / 1.5, 1.2 * most)
        style.plain_numbers(axes.yaxis, [most])
    else:
        axes.set_ylim(0.0, min(1.05 * most, 1.0))
        style.few_ticks(axes.yaxis, [most], 5)
    axes.set_xlim(0.5, len(x) + 0.5)
    axes.set_xticks(x)
    axes.set_xlabel(style.escaped(f"tenth of the rows, by probability of {style.shortened(of, LONGEST)}"))
    axes.set_ylabel("share of the rows")
    style.simplify(axes)
    low_end, high_end = axes.get_ylim()
    labels = [(expected[-1], "expected", style.VERMILLION), (actual[-1], "actual", style.BLUE)]
    style.label_ends(
        axes, [style.EndLabel(min(max(end, low_end), high_end), text, color) for end, text, color in labels], GAP
    )

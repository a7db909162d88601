"""The panels of partial dependence: a curve with its spread and the density of rows, or points of codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.explanation.dependence import Axis, Curve, Picture
from tunefree.plotting import style

SMALL, TINY = 6.5, 6.0  # points
STRIP = 0.14  # part of the height of a curve's axes that shows the density of the rows
BINS = 40  # of that density
PER_CHARACTER = 0.022  # part of the width of axes that a character of a label inside takes
MARGIN = 0.04  # part of the width right of the longest bar
LONGEST, LONGEST_NAME = 19, 22  # characters of labels inside axes, and of names
LONE = 12  # values that are marked one by one


def draw_panel(axes: Any, picture: Picture, panel: Curve, has_unit: bool = True) -> None:
    """Draw how the margins of the classes of a picture depend on one column.

    ``has_unit``: whether the axis of the margins of a curve has its title.
    """
    axes.tick_params(labelsize=SMALL, width=0.5, length=2)
    for spine in axes.spines.values():
        spine.set_linewidth(0.5)
    if not panel.axis.is_numeric:
        draw_points(axes, panel)
        axes.set_xlabel(style.escaped(picture.unit), size=SMALL, labelpad=2)
        return
    draw_curve(axes, panel)
    if has_unit:
        axes.set_ylabel(style.escaped(picture.unit), size=SMALL, labelpad=2)


def lines_of_classes(picture: Picture) -> tuple[list[Any], list[str]]:
    """Lines and labels of the classes of a picture, for a legend."""
    from matplotlib.lines import Line2D

    has_points = any(panel.missing is not None or not panel.axis.is_numeric for panel in picture.curves)
    labels = [style.escaped(style.shortened(label, LONGEST)) for label in picture.labels]
    options = [
        {"linewidth": 1.3, "marker": marker if has_points else "", "markersize": 3, **look}
        for look, marker in zip(style.SERIES, style.MARKERS, strict=True)
    ]
    return [Line2D([], [], **option) for option in options[: len(labels)]], labels


def draw_curve(axes: Any, panel: Curve) -> None:
    """Draw the curves of the classes over a number, with their bands, and the density of the rows."""
    values, axis = panel.axis.values, panel.axis
    lone = {"marker": "o", "markersize": 2.5} if len(values) <= LONE else {}
    for mean, low, high, look in zip(panel.mean.T, panel.low.T, panel.high.T, style.SERIES, strict=False):
        axes.fill_between(values, low, high, color=look["color"], alpha=0.15, linewidth=0)
        axes.plot(values, mean, linewidth=1.3, **lone, **look)
    edges, missing_at = _scale_numbers(axes, axis, panel.missing is not None)
    bottom, top = _range(panel)
    axes.set_ylim(bottom - (STRIP + 0.1) * (top - bottom), top + 0.08 * (top - bottom))
    across = axes.get_xaxis_transform()
    if panel.missing is not None:
        for height, look, marker in zip(panel.missing, style.SERIES, style.MARKERS, strict=False):
            axes.plot([missing_at], [height], marker, color=look["color"], markersize=3.5)
        axes.text(missing_at, 0.02, "missing", transform=across, rotation=90, size=TINY, ha="center", color=style.DARK)
    counts = np.histogram(axis.sample[np.isfinite(axis.sample)], edges)[0]
    heights = STRIP * counts / max(counts.max(initial=1), 1)
    axes.bar(
        edges[:-1], heights, np.diff(edges), align="edge", color=style.GREY, linewidth=0, transform=across, zorder=0.7
    )
    _frame(axes, panel)
    style.few_ticks(axes.yaxis, [bottom, top])


def _range(panel: Curve) -> tuple[float, float]:
    """The range of all that is drawn of a panel."""
    missing = np.empty(0) if panel.missing is None else panel.missing
    return style.span(np.concatenate([part.reshape(-1) for part in (panel.mean, panel.low, panel.high, missing)]))


def _scale_numbers(axes: Any, axis: Axis, with_room: bool) -> tuple[np.ndarray, float]:
    """Set range and scale of an axis of numbers; edges of bins of its density, and a place beyond its end."""
    low, high = style.span(axis.values)
    if axis.linear_up_to > 0.0 and low > 0.0:
        axes.set_xscale("log")
        style.plain_numbers(axes.xaxis, axis.values)
    elif axis.linear_up_to > 0.0:
        from matplotlib.ticker import SymmetricalLogLocator

        axes.set_xscale("symlog", linthresh=axis.linear_up_to, linscale=0.5)
        axes.xaxis.set_major_locator(SymmetricalLogLocator(base=10.0, linthresh=axis.linear_up_to))
        axes.xaxis.set_minor_locator(SymmetricalLogLocator(base=10.0, linthresh=axis.linear_up_to, subs=(2.0, 5.0)))
        style.plain_numbers(axes.xaxis, axis.values)
    elif len(axis.values) <= 4:
        axes.xaxis.set_ticks(axis.values)
        style.plain_numbers(axes.xaxis, axis.values)
    else:
        style.few_ticks(axes.xaxis, axis.values)
    scale = axes.xaxis.get_transform()
    ends = scale.transform(np.array([low, high]))
    width = ends[1] - ends[0]
    outer = [ends[0] - 0.02 * width, ends[1] + (0.16 if with_room else 0.02) * width, ends[1] + 0.09 * width]
    left, right, beyond = scale.inverted().transform(np.array(outer))
    axes.set_xlim(left, right)
    return scale.inverted().transform(np.linspace(ends[0], ends[1], BINS + 1)), float(beyond)


def draw_points(axes: Any, panel: Curve) -> None:
    """Draw a point and a whisker for each code and class, with the code's share of the rows."""
    axis, n_outputs = panel.axis, panel.mean.shape[1]
    is_by_effect = n_outputs == 1 and not axis.is_ordered
    order = np.argsort(panel.mean[:, 0], kind="stable") if is_by_effect else np.arange(len(axis.values))[::-1]
    places = np.arange(len(order))
    for k, (look, marker) in enumerate(zip(style.SERIES[:n_outputs], style.MARKERS, strict=False)):
        away = places + 0.5 * ((k + 0.5) / n_outputs - 0.5)
        axes.hlines(away, panel.low[order, k], panel.high[order, k], color=look["color"], alpha=0.35, linewidth=2)
        line = {**look, "linewidth": 0.9} if axis.is_ordered else {"color": look["color"], "linewidth": 0.0}
        axes.plot(panel.mean[order, k], away, marker=marker, markersize=3.2, **line)
    low, high = _range(panel)
    labels = [style.shortened(label, LONGEST) for label in axis.labels]
    begin = 0.2 + PER_CHARACTER * max(map(len, labels))  # of the points, after labels
    width = (high - low) / (1.0 - begin - MARGIN)
    axes.set_xlim(high + MARGIN * width - width, high + MARGIN * width)
    beside: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "center"}
    for place, k in zip(places, order, strict=True):
        share = f"{100 * axis.shares[k]:.0f} %" if axis.shares[k] >= 0.005 else "<1 %"
        axes.text(0.0, place, style.escaped(labels[k]), size=TINY, **beside)
        axes.text(begin - 0.03, place, share, size=TINY, ha="right", color=style.DARK, **beside)
    axes.set_yticks([])
    axes.set_ylim(-0.6, len(order) - 0.4)
    _frame(axes, panel)
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_bounds(low, high)
    axes.grid(False)
    style.plain_numbers(axes.xaxis, [low, high])
    axes.xaxis.set_ticks(_few_ticks(low, high, (1.0 - begin) / PER_CHARACTER))


def _few_ticks(low: float, high: float, characters: float) -> np.ndarray:
    """At most four ticks, whose labels together have at most so many characters if there are several."""
    from matplotlib.ticker import MaxNLocator

    slack = 1e-9 * (high - low)
    for most in (4, 3, 2, 1):
        ticks = np.asarray(MaxNLocator(most, min_n_ticks=1, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
        ticks = ticks[(ticks >= low - slack) & (ticks <= high + slack)]
        if len(ticks) * (1.5 + max((len(f"{tick:,.4g}") for tick in ticks), default=0)) <= characters:
            return ticks
    return np.zeros(1)


def _frame(axes: Any, panel: Curve) -> None:
    """Keep the axes at which values are read, with the name of the column and its importance above."""
    style.simplify(axes, "both", 0.4)
    axes.set_title(
        style.escaped(style.shortened(panel.axis.name, LONGEST_NAME)), loc="left", size=7.5, weight="bold", pad=3
    )
    text = f"{panel.importance:,.0f}" if 1e3 <= panel.importance < 1e6 else f"{panel.importance:.3g}"
    axes.set_title(text, loc="right", size=SMALL, color=style.DARK, pad=3)

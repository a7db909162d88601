"""Panels of partial dependence: a curve with its spread and the density of rows, or points of categories."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.explanation.dependence import Curve, Picture
from tunefree.plotting import style

SMALL, TINY = 6.5, 6.0  # points
STRIP = 0.14  # share of the height of a curve's axes for the density of rows
BINS = 40  # histogram bins of the density
LONGEST, LONGEST_NAME = 16, 22  # characters of labels, and of names
LONE = 12  # number of values up to which each is marked


def draw_panel(axes: Any, picture: Picture, panel: Curve, has_unit: bool = True) -> None:
    """Draw how the margins of the classes of a picture depend on one column.

    ``has_unit``: whether the axis of margins has a title.
    """
    axes.tick_params(labelsize=SMALL, width=0.5, length=2)
    for spine in axes.spines.values():
        spine.set_linewidth(0.5)
    missing = np.empty(0) if panel.missing is None else panel.missing
    heights = style.span(np.concatenate([part.reshape(-1) for part in (panel.mean, panel.low, panel.high, missing)]))
    unit = style.escaped(picture.unit)
    style.simplify(axes, "both", 0.4)
    if panel.axis.is_numeric:
        _draw_curve(axes, panel, heights)
        style.few_ticks(axes.yaxis, heights)
        if has_unit:
            axes.set_ylabel(unit, size=SMALL, labelpad=2)
    else:
        _draw_points(axes, panel, heights)
        style.few_ticks(axes.xaxis, heights, 3)
        axes.set_xlabel(unit, size=SMALL, labelpad=2)
    name = style.escaped(style.shortened(panel.axis.name, LONGEST_NAME))
    axes.set_title(name, loc="left", size=7.5, weight="bold", pad=3)
    importance = f"{panel.importance:,.0f}" if 1e3 <= panel.importance < 1e6 else f"{panel.importance:.3g}"
    axes.set_title(importance, loc="right", size=SMALL, color=style.DARK, pad=3)


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


def _draw_curve(axes: Any, panel: Curve, heights: tuple[float, float]) -> None:
    """Draw the curves of the classes over a number, with their bands, and the density of the rows."""
    values, (bottom, top) = panel.axis.values, heights
    markers = {"marker": "o", "markersize": 2.5} if len(values) <= LONE else {}
    for mean, low, high, look in zip(panel.mean.T, panel.low.T, panel.high.T, style.SERIES, strict=False):
        axes.fill_between(values, low, high, color=look["color"], alpha=0.15, linewidth=0)
        axes.plot(values, mean, linewidth=1.3, **markers, **look)
    left, right = style.span(values)
    missing_at, margin = right + 0.09 * (right - left), 0.02 if panel.missing is None else 0.16
    axes.set_xlim(left - 0.02 * (right - left), right + margin * (right - left))
    style.few_ticks(axes.xaxis, values)
    if len(values) <= 4:
        axes.xaxis.set_ticks(values)
    axes.set_ylim(bottom - (STRIP + 0.1) * (top - bottom), top + 0.08 * (top - bottom))
    across = axes.get_xaxis_transform()
    if panel.missing is not None:
        for height, look, marker in zip(panel.missing, style.SERIES, style.MARKERS, strict=False):
            axes.plot([missing_at], [height], marker, color=look["color"], markersize=3.5)
        axes.text(missing_at, 0.02, "missing", transform=across, rotation=90, size=TINY, ha="center", color=style.DARK)
    counts, edges = np.histogram(panel.axis.sample[np.isfinite(panel.axis.sample)], BINS, (left, right))
    densities = STRIP * counts / max(counts.max(initial=1), 1)
    bars = {"align": "edge", "color": style.GREY, "linewidth": 0, "transform": across, "zorder": 0.7}
    axes.bar(edges[:-1], densities, np.diff(edges), **bars)


def _draw_points(axes: Any, panel: Curve, heights: tuple[float, float]) -> None:
    """Draw a point and a whisker for each code and class, with the code's share of the rows."""
    axis, n_outputs = panel.axis, panel.mean.shape[1]
    is_by_effect = n_outputs == 1 and not axis.is_ordered
    order = np.argsort(panel.mean[:, 0], kind="stable") if is_by_effect else np.arange(len(axis.values))[::-1]
    positions = np.arange(len(order))
    for k, (look, marker) in enumerate(zip(style.SERIES[:n_outputs], style.MARKERS, strict=False)):
        offsets = positions + 0.5 * ((k + 0.5) / n_outputs - 0.5)
        axes.hlines(offsets, panel.low[order, k], panel.high[order, k], color=look["color"], alpha=0.35, linewidth=2)
        line = {**look, "linewidth": 0.9} if axis.is_ordered else {"color": look["color"], "linewidth": 0.0}
        axes.plot(panel.mean[order, k], offsets, marker=marker, markersize=3.2, **line)
    shares = [f"{100 * share:.0f} %" if share >= 0.005 else "<1 %" for share in axis.shares]
    labels = [f"{style.escaped(style.shortened(axis.labels[k], LONGEST))} {shares[k]}" for k in order]
    axes.set_yticks(positions, labels, size=TINY)
    axes.set_ylim(-0.6, len(order) - 0.4)
    low, high = heights
    axes.set_xlim(low - 0.04 * (high - low), high + 0.04 * (high - low))

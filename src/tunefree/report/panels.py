"""Charts of what a model has learned of columns and pairs of columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.explanation.panels import Axis, Curve, Map
from tunefree.explanation.picture import Picture
from tunefree.report import charts
from tunefree.report.charts import COLOURS, HEIGHT, WIDTH, Chart, Frame, Mark, Series, shortened
from tunefree.report.document import Figure
from tunefree.report.scales import LINEAR, LOG, SYMLOG, Scale, spanning, told

BINS = 40  # of the density of rows
STRIP = 0.16  # part of the height of the axes that shows it
LEVELS = 9  # colours of a map, of which the middle one is 0
CELLS = 24  # along one side of a map at most, of numbers


def of_curve(picture: Picture, panel: Curve) -> Figure:
    """What a column contributes, by its value.

    Parameters
    ----------
    picture : Picture
    panel : Curve
        One of its curves.
    """
    heights = picture.sign * panel.heights[:, picture.outputs]
    importance = picture.importance.get(panel.axis.term, 0.0)
    name = panel.axis.name
    if not panel.axis.is_numeric:
        shown, label = _most_varied(picture, heights)
        described = "; ".join(
            f"{code} {height:+.3g}" for code, height in zip(panel.axis.labels, heights[:, shown], strict=True)
        )
        unit, shares = picture.unit, panel.axis.shares.tolist()
        chart = charts.signed_bars(name, described, panel.axis.labels, heights[:, shown].tolist(), shares, unit)
        return Figure(chart, f"Importance {importance:.4g}{label}. Thick bars: frequent values.")
    chart = _numeric(picture, panel, heights)
    missing = ""
    if panel.missing is not None:
        own = picture.sign * panel.missing[picture.outputs]
        missing = " Where it is missing: " + ", ".join(f"{height:+.3g}" for height in own.tolist()) + "."
    return Figure(chart, f"Importance {importance:.4g}. Grey: density of the rows; ticks: knots.{missing}")


def _most_varied(picture: Picture, heights: np.ndarray) -> tuple[int, str]:
    """The output that varies most, and its label where there are several."""
    shown = int(np.nanstd(heights.reshape(-1, heights.shape[-1]), axis=0).argmax())
    return shown, f", {picture.labels[shown]}" if len(picture.outputs) > 1 else ""


def _scale(axis: Axis) -> Scale:
    low, high = float(axis.values.min()), float(axis.values.max())
    if low == high:
        return Scale(*spanning(axis.values))
    if not axis.linear_up_to > 0.0:
        return Scale(low, high)
    return Scale(low, high, LOG) if low > 0.0 else Scale(low, high, SYMLOG, axis.linear_up_to)


def _numeric(picture: Picture, panel: Curve, heights: np.ndarray) -> Chart:
    """Lines of the classes over a number."""
    axis, x = panel.axis, _scale(panel.axis)
    several = len(picture.outputs) > 1
    labels = picture.labels if several else [""]
    series = [
        Series(label, axis.values.tolist(), heights[:, k].tolist(), (1 + k) if k < COLOURS - 1 else None)
        for k, label in enumerate(labels)
    ]
    low, high = spanning(heights, 0.08, zero=True)
    frame = Frame(
        x,
        Scale(low - STRIP * (high - low), high),
        axis.name,
        picture.unit,
        charts.room(series) if several else charts.RIGHT,
    )
    _density(frame, axis)
    level = {"x1": frame.left, "x2": frame.right, "class": "axis"}
    (zero,) = frame.vertical([0.0])
    frame.marks.append(Mark("line", {**level, "y1": zero, "y2": zero}))
    for place in frame.horizontal(panel.knots):
        frame.marks.append(
            Mark("line", {"x1": place, "x2": place, "y1": frame.bottom, "y2": frame.bottom - 6, "class": "knot"})
        )
    for own in series:
        frame.line(own)
    more = frame.name([own for own in series if own.colour is not None]) if several else 0.0
    some = np.unique(np.linspace(0, len(axis.values) - 1, 7).astype(np.int64))
    described = "; ".join(f"{told(float(axis.values[i]))}: {heights[i, 0]:+.3g}" for i in some.tolist())
    return Chart(axis.name, f"Contribution by value. {described}.", frame.marks, height=HEIGHT + more)


def _density(frame: Frame, axis: Axis) -> None:
    known = axis.sample[np.isfinite(axis.sample)]
    places = frame.x.place(known)
    counts = np.histogram(places, BINS, (0.0, 1.0))[0]
    width = (frame.right - frame.left) / BINS
    for k, count in enumerate(counts.tolist()):
        if count:
            tall = round(STRIP * (frame.bottom - frame.top) * count / counts.max(), 2)
            box = {"x": round(frame.left + k * width, 2), "y": round(frame.bottom - tall, 2)}
            frame.marks.append(Mark("rect", {**box, "width": round(width, 2), "height": tall, "class": "density"}))


def of_map(picture: Picture, panel: Map) -> Figure:
    """What a pair of columns contributes beyond both columns.

    Parameters
    ----------
    picture : Picture
    panel : Map
        One of its maps.
    """
    heights = picture.sign * panel.heights[:, :, picture.outputs]
    shown, label = _most_varied(picture, heights)
    first, second = _thinned(panel.first), _thinned(panel.second)
    cells = heights[np.ix_(first, second)][:, :, shown]
    size = float(np.nanmax(np.abs(cells), initial=0.0)) or 1.0
    marks, left, bottom = _map_axes(panel, first, second)
    wide, tall = (WIDTH - left - 14) / len(second), (bottom - 24) / len(first)
    for i, row in enumerate(cells):
        for j, height in enumerate(row.tolist()):
            level = "none" if height != height else round((height / size + 1) / 2 * (LEVELS - 1))
            box: dict[str, Any] = {"x": round(left + j * wide, 2), "y": round(bottom - (i + 1) * tall, 2)}
            box |= {"width": round(wide + 0.3, 2), "height": round(tall + 0.3, 2), "class": f"m{level}"}
            marks.append(Mark("rect", box))
    name = f"{panel.first.name} and {panel.second.name}"
    described = f"Contribution of the pair, from {np.nanmin(cells):+.3g} to {np.nanmax(cells):+.3g}."
    importance = picture.importance.get(panel.term, 0.0)
    caption = f"Importance {importance:.4g}{label}. Blue: {-size:+.3g}; orange: {size:+.3g}, beyond what both tell"
    caption += " alone. Empty: no rows." if np.isnan(cells).any() else " alone."
    return Figure(Chart(name, described, marks), caption)


def _thinned(axis: Axis) -> np.ndarray:
    """The places of the values of a side that are drawn."""
    n = len(axis.values)
    return np.unique(np.linspace(0, n - 1, min(n, CELLS)).astype(np.int64)) if axis.is_numeric else np.arange(n)


def _map_axes(panel: Map, first: np.ndarray, second: np.ndarray) -> tuple[list[Mark], float, float]:
    """Labels of both sides, and where the map begins on the left and ends below."""
    up, across = _labels(panel.first, first, 6), _labels(panel.second, second, 5)
    left = 10 + charts.CHARACTER * max(len(text) for _, text in up)
    bottom = HEIGHT - 44
    marks = [Mark("text", {"x": 4, "y": 16, "text-anchor": "start"}, shortened(panel.first.name, 40))]
    marks.append(Mark("text", {"x": (left + WIDTH) / 2, "y": HEIGHT - 6, "text-anchor": "middle"}, panel.second.name))
    for place, text in up:
        y = bottom - (place + 0.5) / len(first) * (bottom - 24)
        marks.append(Mark("text", {"x": left - 5, "y": round(y + 4, 2), "text-anchor": "end"}, text))
    for place, text in across:
        x = left + (place + 0.5) / len(second) * (WIDTH - left - 14)
        marks.append(Mark("text", {"x": round(x, 2), "y": bottom + 17, "text-anchor": "middle"}, text))
    return marks, left, bottom


def _labels(axis: Axis, places: np.ndarray, most: int) -> list[tuple[int, str]]:
    """Labels of some of the places drawn."""
    step = max(1, -(-len(places) // most))
    chosen: list[Any] = list(range(0, len(places), step))
    values = axis.values[places]
    texts = [
        told(float(f"{values[k]:.3g}")) if axis.is_numeric else shortened(axis.labels[places[k]], 12) for k in chosen
    ]
    return list(zip(chosen, texts, strict=True))


__all__ = ["LINEAR", "of_curve", "of_map"]

"""Charts of how a model's predictions depend on columns."""

from __future__ import annotations

import numpy as np

from tunefree.explanation.panels import Axis, Dependence
from tunefree.explanation.picture import Picture
from tunefree.report import charts
from tunefree.report.charts import COLOURS, HEIGHT, Chart, Frame, Mark, Series
from tunefree.report.document import Figure
from tunefree.report.scales import LOG, SYMLOG, Scale, spanning, told

BINS = 40  # of the density of rows
STRIP = 0.16  # part of the height of the axes that shows it


def of_curve(picture: Picture, panel: Dependence) -> Figure:
    """How predictions depend on a column.

    Parameters
    ----------
    picture : Picture
    panel : Dependence
        One of its curves.
    """
    mean, low, high = (picture.sign * part[:, picture.outputs] for part in (panel.mean, panel.low, panel.high))
    size = picture.importance.get(panel.term, 0.0)
    if not panel.axis.is_numeric:
        shown = int(np.std(mean, axis=0).argmax())
        label = f", {picture.labels[shown]}" if len(picture.outputs) > 1 else ""
        ends = np.column_stack([low[:, shown], high[:, shown]])
        chart = charts.points_with_whiskers(
            panel.axis.name, panel.axis.labels, mean[:, shown], ends, panel.axis.shares.tolist(), picture.unit
        )
        return Figure(chart, f"Importance {size:.4g}{label}. Large points: frequent values.")
    missing = ""
    if panel.missing is not None:
        heights = picture.sign * panel.missing[picture.outputs]
        missing = " Where it is missing: " + ", ".join(f"{height:.3g}" for height in heights.tolist()) + "."
    chart = _numeric(picture, panel.axis, mean, low, high)
    return Figure(chart, f"Importance {size:.4g}. Grey below: density of the rows.{missing}")


def _scale(axis: Axis) -> Scale:
    low, high = float(axis.values.min()), float(axis.values.max())
    if low == high:
        return Scale(*spanning(axis.values))
    if not axis.linear_up_to > 0.0:
        return Scale(low, high)
    return Scale(low, high, LOG) if low > 0.0 else Scale(low, high, SYMLOG, axis.linear_up_to)


def _numeric(picture: Picture, axis: Axis, mean: np.ndarray, low: np.ndarray, high: np.ndarray) -> Chart:
    """Lines of the classes over a number, with their bands."""
    several, x = len(picture.outputs) > 1, axis.values.tolist()
    labels = picture.labels if several else [""]
    series = [
        Series(label, x, mean[:, k].tolist(), (1 + k) if k < COLOURS - 1 else None) for k, label in enumerate(labels)
    ]
    bottom, top = spanning(np.concatenate([mean, low, high]), 0.08)
    vertical = Scale(bottom - STRIP * (top - bottom), top)
    room = charts.room(series) if several else charts.RIGHT
    frame = Frame(_scale(axis), vertical, axis.name, picture.unit, room)
    _density(frame, axis)
    for k, line in enumerate(series):
        d = frame.path([*x, *x[::-1]], [*low[:, k], *high[::-1, k]], closed=True)
        colour = "fgrey" if line.colour is None else f"f{line.colour}"
        frame.marks.append(Mark("path", {"d": d, "class": colour, "opacity": 0.15}))
    for line in series:
        frame.line(line)
    more = frame.name([line for line in series if line.colour is not None]) if several else 0.0
    some = np.unique(np.linspace(0, len(x) - 1, 7).astype(np.int64))
    described = "; ".join(f"{told(x[i])}: {mean[i, 0]:.3g}" for i in some.tolist())
    return Chart(axis.name, f"Mean by value. {described}.", frame.marks, height=HEIGHT + more)


def _density(frame: Frame, axis: Axis) -> None:
    known = axis.sample[np.isfinite(axis.sample)]
    counts = np.histogram(frame.x.place(known), BINS, (0.0, 1.0))[0]
    width = (frame.right - frame.left) / BINS
    for k, count in enumerate(counts.tolist()):
        if count:
            tall = round(STRIP * (frame.bottom - frame.top) * count / counts.max(), 2)
            box = {"x": round(frame.left + k * width, 2), "y": round(frame.bottom - tall, 2)}
            frame.marks.append(Mark("rect", {**box, "width": round(width, 2), "height": tall, "class": "density"}))

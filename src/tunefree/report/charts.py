"""Charts for reports as inline SVG: what is drawn where; colours and fonts are those of the page's style sheet.

A chart is about as wide as a telephone, so that its text can be read there; pages set several side by side. Each has a
title and a description for those who do not see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tunefree.report.scales import LINEAR, Scale, spread, told

WIDTH, HEIGHT = 400.0, 270.0
TOP, BOTTOM, RIGHT = 16.0, 44.0, 14.0
CHARACTER = 8.2  # width of a letter
LONGEST = 18  # letters of labels at the ends of lines; longer names are in a legend
ROW = 19.0  # height of a line of a legend
COLOURS = 5  # of the style sheet, beside grey; the first is that of text
DASHES = ("", "", "6 3", "2 3", "8 3 2 3")  # lines differ in black and white too


class Mark(NamedTuple):
    """An element of SVG."""

    tag: str
    attributes: dict[str, Any]
    text: str = ""
    tip: str = ""  # shown where the pointer rests


class Chart(NamedTuple):
    """A drawing with its texts."""

    title: str
    description: str
    marks: list[Mark]
    width: float = WIDTH
    height: float = HEIGHT


class Series(NamedTuple):
    """A line."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: int | None = None  # None for grey, without a label


class Frame:
    """Axes with ticks and titles, on which marks are put.

    Parameters
    ----------
    x, y : Scale
    x_title, y_title : str
        The latter is written above the axis.
    right : float
        Room beside the axes.
    """

    def __init__(self, x: Scale, y: Scale, x_title: str, y_title: str, right: float = RIGHT) -> None:
        self.x, self.y = x, y
        self.marks: list[Mark] = []
        longest = max((len(text) for _, text in y.ticks()), default=1)
        self.left, self.right, self.top, self.bottom = (
            10.0 + CHARACTER * longest,
            WIDTH - right,
            TOP + 14,
            HEIGHT - BOTTOM,
        )
        self._axes(x_title, y_title)

    def _axes(self, x_title: str, y_title: str) -> None:
        for value, text in self.y.ticks():
            (place,) = self.vertical([value])
            line = {"x1": self.left, "x2": self.right, "y1": place, "y2": place, "class": "grid"}
            self.marks += [Mark("line", line), self.label(self.left - 6, place + 4, text, "end")]
        last = -1e9
        for value, text in self.x.ticks():
            (place,) = self.horizontal([value])
            if place - last > CHARACTER * (len(text) + 1):
                self.marks.append(self.label(place, self.bottom + 17, text))
                last = place
        ends = {"x1": self.left, "x2": self.right, "y1": self.bottom, "y2": self.bottom, "class": "axis"}
        self.marks += [Mark("line", ends), self.label((self.left + self.right) / 2, HEIGHT - 8, x_title)]
        self.marks.append(self.label(4.0, TOP, y_title, "start"))

    def label(self, x: float, y: float, text: str, anchor: str = "middle", style: str = "") -> Mark:
        """A text."""
        return Mark("text", {"x": x, "y": y, "text-anchor": anchor, "class": style or None}, text)

    def horizontal(self, values: Any) -> list[float]:
        """Places of values of x."""
        return [round(place, 2) for place in (self.left + (self.right - self.left) * self.x.place(values)).tolist()]

    def vertical(self, values: Any) -> list[float]:
        """Places of values of y; those beyond the axis lie on its ends."""
        places = np.clip(self.y.place(values), 0.0, 1.0)
        return [round(place, 2) for place in (self.bottom - (self.bottom - self.top) * places).tolist()]

    def path(self, x: Any, y: Any, closed: bool = False) -> str:
        """The data of a path through points; it is broken where y is not finite."""
        known, parts, pen = np.isfinite(np.asarray(y, np.float64)), [], "M"
        for here, over, up in zip(known.tolist(), self.horizontal(x), self.vertical(np.nan_to_num(y)), strict=True):
            parts.append(f"{pen}{over:g} {up:g}" if here else "")
            pen = "L" if here else "M"
        return "".join(parts) + ("Z" if closed else "")

    def line(self, series: Series, width: float = 2.0) -> None:
        """Draw a line."""
        colour = "grey" if series.colour is None else f"s{series.colour}"
        dashes = None if not series.colour else DASHES[series.colour] or None
        style = {"class": f"line {colour}", "stroke-dasharray": dashes, "stroke-width": width}
        self.marks.append(Mark("path", {"d": self.path(series.x, series.y), **style}, tip=series.name))

    def dots(self, x: Any, y: Any, radius: float = 3.5, style: str = "f1") -> None:
        """Draw points."""
        for over, up in zip(self.horizontal(x), self.vertical(y), strict=True):
            self.marks.append(Mark("circle", {"cx": over, "cy": up, "r": radius, "class": style}))

    def name(self, series: Sequence[Series]) -> float:
        """Write names at the ends of lines, or in a legend if one is long; the height of the legend."""
        if not _in_legend(series):
            self.end_labels(series)
            return 0.0
        for row, own in enumerate(series):
            y = HEIGHT + ROW * row + 8
            dashes = DASHES[own.colour or 0] or None
            sample = {"x1": 8, "x2": 38, "y1": y, "y2": y, "class": f"s{own.colour}", "stroke-width": 3}
            self.marks.append(Mark("line", sample | {"stroke-dasharray": dashes}))
            self.marks.append(self.label(46, y + 4, shortened(own.name, 50), "start", f"t{own.colour}"))
        return ROW * len(series)

    def end_labels(self, series: Sequence[Series]) -> None:
        """Write names at the ends of lines, moved apart."""
        ends = [self.vertical([own.y[-1]])[0] for own in series]
        places = [HEIGHT - up for up in spread([HEIGHT - end for end in ends], 17.0, HEIGHT - self.top)]
        for own, end, place in zip(series, ends, places, strict=True):
            (over,) = self.horizontal([own.x[-1]])
            link = {"x1": over, "x2": self.right + 10, "y1": end, "y2": place, "class": f"link s{own.colour}"}
            self.marks.append(Mark("line", link))
            style = f"t{own.colour}" + (" bold" if own.colour == 0 else "")
            self.marks.append(self.label(self.right + 13, place + 4, shortened(own.name), "start", style))


def _in_legend(series: Sequence[Series]) -> bool:
    return any(len(own.name) > LONGEST for own in series)


def room(series: Sequence[Series]) -> float:
    """Room beside the axes for names at the ends of lines."""
    if not series or _in_legend(series):
        return RIGHT
    return 18 + CHARACTER * max(len(own.name) for own in series)


def shortened(text: str, longest: int = LONGEST) -> str:
    """A text of at most so many letters.

    Examples
    --------
    >>> shortened("a name that is too long", 10)
    'a name th…'
    """
    return text if len(text) <= longest else text[: longest - 1] + "…"


def lines(
    title: str,
    description: str,
    series: Sequence[Series],
    axes: tuple[Scale, Scale],
    titles: tuple[str, str],
) -> Chart:
    """Lines, with names at the ends of those that have a colour.

    Parameters
    ----------
    title, description : str
    series : sequence of Series
        Grey ones are drawn first.
    axes : (Scale, Scale)
    titles : (str, str)
        Of the axes.
    """
    named = [own for own in series if own.colour is not None]
    frame = Frame(*axes, *titles, right=room(named))
    for own in sorted(series, key=lambda own: (own.colour is not None, own.colour == 0)):
        frame.line(own, 2.6 if own.colour == 0 else 1.9 if own.colour is not None else 1.0)
    more = frame.name(named) if named else 0.0
    return Chart(title, description, frame.marks, height=HEIGHT + more)


def areas(
    title: str, description: str, x: Sequence[float], bands: Sequence[Series], axis: Scale, x_title: str
) -> Chart:
    """Shares that add up to 1, stacked; ``y`` of the bands are the shares."""
    named = [own for own in bands if own.colour is not None]
    frame = Frame(axis, Scale(0.0, 1.0), x_title, "share", room(named))
    total = np.zeros(len(x))
    middles = []
    for own in bands:
        above = total + np.asarray(own.y)
        d = frame.path([*x, *x[::-1]], [*above, *total[::-1]], closed=True)
        colour = "fgrey" if own.colour is None else f"f{own.colour}"
        frame.marks.append(Mark("path", {"d": d, "class": f"area {colour}"}, tip=own.name))
        middles.append(own._replace(x=[x[-1]], y=[(above[-1] + total[-1]) / 2]))
        total = above
    more = frame.name([own for own in middles if own.colour is not None])
    return Chart(title, description, frame.marks, height=HEIGHT + more)


def ranked_bars(
    title: str, description: str, names: Sequence[str], sizes: Sequence[float], texts: Sequence[str]
) -> Chart:
    """Bars from left to right, one a name, with a text behind each."""
    longest = 26
    left = 12 + CHARACTER * max((len(shortened(name, longest)) for name in names), default=0)
    room = WIDTH - left - 12 - CHARACTER * max(map(len, texts), default=0)
    most, marks = max(sizes, default=1.0) or 1.0, []
    for row, (name, size, text) in enumerate(zip(names, sizes, texts, strict=True)):
        top, length = 22.0 * row + 6, room * size / most
        marks.append(Mark("text", {"x": left - 6, "y": top + 13, "text-anchor": "end"}, shortened(name, longest)))
        box = {"x": left, "y": top + 2, "width": round(max(length, 1.0), 2), "height": 14, "class": "f1"}
        marks.append(Mark("rect", box, tip=f"{name}: {text}"))
        marks.append(Mark("text", {"x": left + length + 6, "y": top + 13, "text-anchor": "start"}, text))
    return Chart(title, description, marks, height=22.0 * len(names) + 12)


def points_with_whiskers(
    title: str, names: Sequence[str], places: np.ndarray, ends: np.ndarray, shares: Sequence[float], unit: str
) -> Chart:
    """A point and a whisker in each of some rows, larger where the row's name is frequent; ``ends`` are (rows, 2)."""
    from tunefree.report.scales import spanning

    left = 12 + CHARACTER * max(len(shortened(name, 18)) for name in names)
    scale, room = Scale(*spanning(np.append(ends.reshape(-1), places), 0.06)), WIDTH - left - RIGHT
    marks, most, bottom = [], max(shares, default=1.0) or 1.0, 21.0 * len(names) + 6
    for value, text in scale.ticks():
        place = round(float(left + room * scale.place(np.array([value]))[0]), 2)
        marks.append(Mark("line", {"x1": place, "x2": place, "y1": 2, "y2": bottom, "class": "grid"}))
        marks.append(Mark("text", {"x": place, "y": bottom + 15, "text-anchor": "middle"}, text))
    described = []
    for row, (name, place, of_row, share) in enumerate(zip(names, places.tolist(), ends, shares, strict=True)):
        y, along = 21.0 * row + 13, (left + room * scale.place(np.array([*of_row, place]))).round(2).tolist()
        line = {"x1": along[0], "x2": along[1], "y1": y, "y2": y, "class": "s1 whisker"}
        tip = f"{name}: {place:.3g} ({100 * share:.1f} % of the rows)"
        marks += [
            Mark("line", line),
            Mark("text", {"x": left - 6, "y": y + 4, "text-anchor": "end"}, shortened(name, 18)),
        ]
        circle = {"cx": along[2], "cy": y, "r": round(3 + 3 * (share / most) ** 0.5, 2), "class": "f1"}
        marks.append(Mark("circle", circle, tip=tip))
        described.append(f"{name} {place:.3g}")
    marks.append(Mark("text", {"x": left + room / 2, "y": bottom + 34, "text-anchor": "middle"}, unit))
    return Chart(title, "; ".join(described), marks, height=bottom + 42)


def points(
    title: str, description: str, x: np.ndarray, y: np.ndarray, axes: tuple[Scale, Scale], titles: tuple[str, str]
) -> Chart:
    """Points, and a line at height 0."""
    frame = Frame(*axes, *titles)
    level = {"x1": frame.left, "x2": frame.right, "class": "axis"}
    (zero,) = frame.vertical([0.0])
    frame.marks.append(Mark("line", {**level, "y1": zero, "y2": zero}))
    frame.dots(x, y, 2, "dot")
    return Chart(title, description, frame.marks)


def with_whiskers(chart: Chart, frame: Frame, x: Sequence[float], low: Sequence[float], high: Sequence[float]) -> Chart:
    """A chart with vertical whiskers on its axes."""
    ends = zip(frame.horizontal(x), frame.vertical(low), frame.vertical(high), strict=True)
    marks = [Mark("line", {"x1": over, "x2": over, "y1": a, "y2": b, "class": "s1 whisker"}) for over, a, b in ends]
    return chart._replace(marks=[*chart.marks, *marks])


def unit_square(
    title: str, description: str, series: Sequence[Series], titles: tuple[str, str], low: float = 0.0
) -> tuple[Chart, Frame]:
    """Lines from ``low`` to 1 on both axes, with the diagonal; and the axes, for more marks."""
    frame = Frame(Scale(low, 1.0), Scale(low, 1.0), *titles)
    frame.line(Series("diagonal", [low, 1.0], [low, 1.0]), 1.2)
    for own in series:
        frame.line(own, 2.2)
    return Chart(title, description, frame.marks), frame


__all__ = [
    "LINEAR",
    "Chart",
    "Frame",
    "Mark",
    "Series",
    "areas",
    "lines",
    "points",
    "points_with_whiskers",
    "ranked_bars",
    "told",
]

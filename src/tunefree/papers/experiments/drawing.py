"""Common style of the experiments' figures: labelled axes, bands, labels at the ends of lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.storage import whole_file
from tunefree.plotting import files
from tunefree.plotting import style as shared

# The palette of all charts, and two colours that differ from those in lightness.
BLACK, GREY = shared.BLACK, shared.SOFT
BLUE, VERMILLION, GREEN, PURPLE, ORANGE = shared.BLUE, shared.VERMILLION, shared.GREEN, shared.PURPLE, shared.ORANGE
SKY, BROWN = "#56B4E9", "#882255"
GAP = 0.055  # between labels at the ends of lines, as a fraction of the height of the axes
SMALL_FONT = 8.5  # points
BAND_ALPHA = 0.18  # opacity of a band


class Style(NamedTuple):
    """Style of a line."""

    color: str
    dashes: tuple[float, ...] = ()  # lengths of dash and gap in units of the width; empty for a solid line
    width: float = 1.5

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments of matplotlib."""
        dashes = {"dashes": self.dashes} if self.dashes else {}
        return {"color": self.color, "linewidth": self.width, **dashes}


class EndLabel(NamedTuple):
    """A label at the end of a line."""

    height: float  # of the end of the line, in the units of the axis
    text: str
    color: str
    bold: bool = False


def write(draw: Callable[[Any], None], inches: tuple[float, float], base: Path) -> list[Path]:
    """Write a figure of some width and height as PNG and SVG, and return the files; the same data give the same bytes.

    ``draw`` draws on a figure of matplotlib; ``base`` is the path of the files without suffix.
    """
    require_matplotlib()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    written = []
    with mpl.rc_context(files.RC | {"font.size": 9.5}):
        figure = Figure(figsize=inches)
        draw(figure)
        for kind in ("png", "svg"):
            written.append(base.with_name(f"{base.name}.{kind}"))
            with whole_file(written[-1]) as file:
                figure.savefig(file, format=kind, dpi=120, metadata=files.DATES.get(kind), bbox_inches="tight")
    return written


def require_matplotlib() -> None:
    """Raise ModelError if matplotlib is not installed."""
    if not files.is_installed():
        raise ModelError("reproduce needs matplotlib, which is not installed; pip install 'tunefree[plot]'")


def frame(axes: Any, title: str, x: str = "", y: str = "") -> None:
    """Set title and axis labels, and remove superfluous lines."""
    shared.simplify(axes)
    axes.set_title(title, loc="left", fontsize=10.5)
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def plain_numbers(axis: Any) -> None:
    """Tick labels of a logarithmic axis as plain numbers, or as powers of ten if they are far from 1."""
    axis.set_major_formatter(lambda value, _: f"{value:,.10g}" if 1e-3 <= value < 1e7 else f"$10^{{{_power(value)}}}$")
    axis.set_minor_formatter(lambda value, _: "")


def _power(value: float) -> int:
    return round(float(np.log10(value))) if value > 0 else 0


def band(axes: Any, x: Any, mean: np.ndarray, deviation: np.ndarray, style: Style, alpha: float = BAND_ALPHA) -> None:
    """A line of means with a band of one standard deviation on each side."""
    axes.fill_between(x, mean - deviation, mean + deviation, color=style.color, alpha=alpha, linewidth=0)
    axes.plot(x, mean, **style.options)


def label_ends(axes: Any, labels: Sequence[EndLabel], gap: float = GAP, size: float = SMALL_FONT) -> None:
    """Labels to the right of the axes at the ends of their lines, moved apart so that they do not overlap."""
    to_axes = axes.transData + axes.transAxes.inverted()
    low, high = axes.get_ylim()
    heights = [float(to_axes.transform((0.0, min(max(label.height, low), high)))[1]) for label in labels]
    across = {"transform": axes.transAxes, "clip_on": False}
    for label, height, place in zip(labels, heights, spread(heights, gap, 1.0), strict=True):
        axes.plot([1.0, 1.04], [height, place], color=label.color, linewidth=0.8, **across)
        weight = "bold" if label.bold else "normal"
        axes.text(1.05, place, label.text, color=label.color, weight=weight, va="center", fontsize=size, **across)


def spread(places: list[float], gap: float, top: float) -> list[float]:
    """Move places apart, as little as possible in the sense of least squares; their order stays.

    ``gap``: least distance of two places.
    ``top``: the places returned lie between 0 and this, if there is room.

    >>> [round(place, 2) for place in spread([0.5, 0.52, 0.1], 0.1, 0.9)]
    [0.46, 0.56, 0.1]
    >>> [round(place, 2) for place in spread([0.95, 0.94], 0.1, 0.9)]
    [0.9, 0.8]
    """
    from scipy.optimize import isotonic_regression  # which takes a while to import

    order = np.argsort(places, kind="stable")
    gaps = gap * np.arange(len(places))
    level = isotonic_regression(np.asarray(places)[order] - gaps).x  # without their gaps the places must not decrease
    moved = np.empty(len(places))
    moved[order] = np.clip(level, 0.0, max(top - gap * (len(places) - 1), 0.0)) + gaps
    return moved.tolist()

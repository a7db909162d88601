"""The style of all charts: palette, axes, numbers on axes, and labels at the ends of lines.

The colours are those of Okabe, Ito: Color universal design (2008), which the colour-blind can tell apart. Dashes,
markers and hatches distinguish what is drawn in black and white.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

BLACK, DARK, SOFT, GREY, PALE, WHITE = "#000000", "#333333", "#707070", "#A8A8A8", "#E6E6E6", "#FFFFFF"
BLUE, VERMILLION, GREEN, PURPLE, ORANGE = "#0072B2", "#D55E00", "#009E73", "#AA4499", "#E69F00"
LIGHT_BLUE, LIGHT_VERMILLION = "#8DBFDD", "#F0B187"
SERIES: tuple[dict[str, Any], ...] = (
    {"color": BLUE},
    {"color": VERMILLION, "dashes": (5, 1.5)},
    {"color": GREEN, "dashes": (1.5, 1)},
    {"color": PURPLE, "dashes": (5, 1.5, 1.5, 1.5)},
    {"color": ORANGE, "dashes": (8, 2)},
    {"color": DARK, "dashes": (3, 1, 1, 1, 1, 1)},
)
MARKERS = "osD^vP"
LEADER: dict[str, Any] = {"color": BLACK, "linewidth": 2.4}
OTHERS: dict[str, Any] = {"color": GREY, "linewidth": 0.8}
GAP = 0.06  # between labels at the ends of lines, as a part of the height of the axes


class EndLabel(NamedTuple):
    """A label at the end of a line."""

    height: float  # of the end of the line, in the units of the axis
    text: str
    color: str
    bold: bool = False


def pyplot(who: str) -> Any:
    """matplotlib.pyplot, or an error that says what to install."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError(f"{who} needs matplotlib; pip install 'tunefree[plot]'") from None
    return plt


def simplify(axes: Any, grid: str = "y", width: float = 0.6) -> None:
    """Hide the upper and right lines of axes, and draw a pale grid in the background."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color=PALE, linewidth=width)
    axes.set_axisbelow(True)


def label_ends(axes: Any, labels: Sequence[EndLabel], gap: float = GAP, size: float | None = None) -> None:
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


def span(values: Any, margin: float = 0.0) -> tuple[float, float]:
    """The range of the finite values with a margin; it is not empty.

    >>> span([1.0, 3.0, np.nan], 0.25), span([2.0]), span([])
    ((0.5, 3.5), (1.0, 3.0), (0.0, 1.0))
    """
    known = np.asarray(values, np.float64)
    known = known[np.isfinite(known)]
    if not len(known):
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    if low == high:
        return low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    return low - margin * (high - low), high + margin * (high - low)


def few_ticks(side: Any, values: Any, most: int = 4) -> None:
    """A few ticks with plain numbers on an axis."""
    from matplotlib.ticker import MaxNLocator

    side.set_major_locator(MaxNLocator(most, min_n_ticks=3, steps=[1, 2, 2.5, 5, 10]))
    plain_numbers(side, values)


def plain_numbers(side: Any, values: Any) -> None:
    """Numbers of an axis without an exponent where these values allow it, and no numbers at minor ticks."""
    largest = float(np.abs(np.asarray(values, np.float64)).max(initial=0.0))
    side.set_major_formatter(lambda value, _: f"{value:,.10g}" if 1e-4 < largest < 1e7 else f"{value:.3g}")
    side.set_minor_formatter(lambda value, _: "")


def counts(side: Any) -> None:
    """Counts on an axis, with commas."""
    side.set_major_formatter(lambda count, _: f"{count:,.0f}")
    side.set_minor_formatter(lambda count, _: "")


def shortened(text: str, most: int) -> str:
    """A text, cut to at most ``most`` characters.

    >>> shortened("Adm-clerical", 19), shortened("Outlying-US(Guam-USVI-etc)", 19)
    ('Adm-clerical', 'Outlying-US(Guam-U…')
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def escaped(text: str) -> str:
    """A text with its dollars escaped: matplotlib reads text between two dollars as mathematics."""
    return text.replace("$", r"\$")

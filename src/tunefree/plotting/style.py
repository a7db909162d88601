"""The style of all charts: palette, axes, and numbers on axes.

The palette of Okabe and Ito (Color universal design, 2008) is suitable for colour-blind readers. Dashes, markers and
hatches distinguish lines and areas in black and white.
"""

from __future__ import annotations

from typing import Any

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


def span(values: Any, margin: float = 0.0) -> tuple[float, float]:
    """The range of the finite values with a margin; never empty.

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
    """Set a few ticks with plain numbers on an axis."""
    from matplotlib.ticker import MaxNLocator

    side.set_major_locator(MaxNLocator(most, min_n_ticks=3, steps=[1, 2, 2.5, 5, 10]))
    plain_numbers(side, values)


def plain_numbers(side: Any, values: Any) -> None:
    """Format numbers of an axis without exponents if the values allow it, and hide numbers of minor ticks."""
    largest = float(np.abs(np.asarray(values, np.float64)).max(initial=0.0))
    side.set_major_formatter(lambda value, _: f"{value:,.10g}" if 1e-4 < largest < 1e7 else f"{value:.3g}")
    side.set_minor_formatter(lambda value, _: "")


def counts(side: Any) -> None:
    """Format counts on an axis with commas."""
    side.set_major_formatter(lambda count, _: f"{count:,.0f}")
    side.set_minor_formatter(lambda count, _: "")


def shortened(text: str, most: int) -> str:
    """Truncate a text to at most ``most`` characters.

    >>> shortened("Adm-clerical", 19), shortened("Outlying-US(Guam-USVI-etc)", 19)
    ('Adm-clerical', 'Outlying-US(Guam-U…')
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def escaped(text: str) -> str:
    """A text with its dollars escaped: matplotlib reads text between two dollars as mathematics."""
    return text.replace("$", r"\$")

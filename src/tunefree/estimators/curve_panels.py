"""The panels of a picture of a model: a curve with its density and knots, bars of codes, a map of a pair."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.explanation.panels import Axis, Curve, Map

# Okabe, Ito: Color universal design (2008). The colour-blind can tell these colours apart; dashes tell the lines apart
# in black and white.
STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#0072B2"},
    {"color": "#D55E00", "dashes": (5, 1.5)},
    {"color": "#009E73", "dashes": (1.5, 1)},
    {"color": "#AA4499", "dashes": (5, 1.5, 1.5, 1.5)},
    {"color": "#E69F00", "dashes": (8, 2)},
    {"color": "#333333", "dashes": (3, 1, 1, 1, 1, 1)},
)
MARKERS = "osD^vP"
DIVERGING = ("#003A5C", "#0072B2", "#8DBFDD", "#F7F7F7", "#F0B187", "#D55E00", "#7A3200")  # blue below 0, orange above
GREY, DARK, PALE = "#C4C4C4", "#4D4D4D", "#E6E6E6"
SMALL, TINY = 6.5, 6.0  # points
STRIP = 0.14  # part of the height of a curve's axes that shows the density of the rows
BINS = 40  # of that density
TICK = 0.045  # length of a knot's tick, likewise
PER_CHARACTER = 0.022  # part of the width of axes that a character of a label inside takes
MARGIN = 0.04  # part of the width right of the longest bar
LONGEST, LONGEST_BESIDE, LONGEST_NAME = 19, 14, 22  # characters of labels inside and beside axes, and of names
DOTS = 400  # sampled rows in a map
LEVELS = 7  # of its lines of equal contribution
LONE = 12  # values that are marked one by one


def draw_curve(axes: Any, panel: Curve, importance: float) -> None:
    """Draw the curves of the classes over a number, with knots and the density of the sampled rows."""
    values, axis = panel.axis.values, panel.axis
    lone = {"marker": "o", "markersize": 2.5} if len(values) <= LONE else {}
    for heights, style in zip(panel.heights.T, STYLES, strict=False):
        axes.plot(values, heights, linewidth=1.3, **lone, **style)
    edges, missing_at = _span_numbers(axes, axis, panel.missing is not None)
    shown = panel.heights if panel.missing is None else np.vstack([panel.heights, panel.missing])
    bottom, top = _span(np.append(shown.reshape(-1), 0.0))
    axes.set_ylim(bottom - (STRIP + 0.1) * (top - bottom), top + 0.08 * (top - bottom))
    across = axes.get_xaxis_transform()
    if panel.missing is not None:
        for height, style, marker in zip(panel.missing, STYLES, MARKERS, strict=False):
            axes.plot([missing_at], [height], marker, color=style["color"], markersize=3.5)
        axes.text(missing_at, 0.02, "missing", transform=across, rotation=90, size=TINY, ha="center", color=DARK)
    counts = np.histogram(axis.sample[np.isfinite(axis.sample)], edges)[0]
    heights = STRIP * counts / max(counts.max(initial=1), 1)
    axes.bar(edges[:-1], heights, np.diff(edges), align="edge", color=GREY, linewidth=0, transform=across, zorder=0.7)
    axes.vlines(panel.knots, 0, TICK, color="black", linewidth=0.4, transform=across, zorder=0.8)
    _frame(axes, axis.name, importance)
    axes.axhline(0.0, color=DARK, linewidth=0.5, linestyle=(0, (1, 2)), zorder=0)
    _ticks(axes.yaxis, np.array([bottom, top]))


def _span_numbers(axes: Any, axis: Axis, with_room: bool) -> tuple[np.ndarray, float]:
    """Set range and scale of an axis of numbers; edges of bins of its density, and a place beyond its end."""
    low, high = _span(axis.values)
    if axis.linear_up_to > 0.0 and low > 0.0:
        axes.set_xscale("log")
        _plainly(axes.xaxis, axis.values)
    elif axis.linear_up_to > 0.0:
        from matplotlib.ticker import SymmetricalLogLocator

        axes.set_xscale("symlog", linthresh=axis.linear_up_to, linscale=0.5)
        axes.xaxis.set_major_locator(SymmetricalLogLocator(base=10.0, linthresh=axis.linear_up_to))
        axes.xaxis.set_minor_locator(SymmetricalLogLocator(base=10.0, linthresh=axis.linear_up_to, subs=(2.0, 5.0)))
        _plainly(axes.xaxis, axis.values)
    elif len(axis.values) <= 4:
        axes.xaxis.set_ticks(axis.values)
        _plainly(axes.xaxis, axis.values)
    else:
        _ticks(axes.xaxis, axis.values)
    scale = axes.xaxis.get_transform()
    ends = scale.transform(np.array([low, high]))
    width = ends[1] - ends[0]
    outer = [ends[0] - 0.02 * width, ends[1] + (0.16 if with_room else 0.02) * width, ends[1] + 0.09 * width]
    left, right, beyond = scale.inverted().transform(np.array(outer))
    axes.set_xlim(left, right)
    return scale.inverted().transform(np.linspace(ends[0], ends[1], BINS + 1)), float(beyond)


def draw_columns(axes: Any, panel: Curve, importance: float) -> None:
    """Draw a column for each code that is a number (a point for each class), with the density of the sampled rows."""
    axis, places = panel.axis, np.arange(len(panel.axis.values))
    if panel.heights.shape[1] == 1:
        axes.bar(places, panel.heights[:, 0], 0.7, color=STYLES[0]["color"], zorder=2)
    else:
        for heights, style, marker in zip(panel.heights.T, STYLES, MARKERS, strict=False):
            axes.plot(places, heights, marker=marker, markersize=2.8, linewidth=0.8, **style)
    bottom, top = _span(np.append(panel.heights.reshape(-1), 0.0))
    axes.set_ylim(bottom - (STRIP + 0.1) * (top - bottom), top + 0.08 * (top - bottom))
    across = axes.get_xaxis_transform()
    axes.bar(
        places, STRIP * axis.shares / axis.shares.max(), 1.0, color=GREY, linewidth=0, transform=across, zorder=0.7
    )
    _frame(axes, axis.name, importance)
    axes.axhline(0.0, color=DARK, linewidth=0.6)
    axes.grid(False, axis="x")
    axes.set_xlim(-0.6, len(places) - 0.4)
    _label_codes(axes.xaxis, axis.labels)
    _ticks(axes.yaxis, np.array([bottom, top]))


def _label_codes(side: Any, labels: list[str], most: int = LONE) -> None:
    """Labels of codes along an axis, of at most so many."""
    step = -(-len(labels) // most)
    side.set_ticks(range(0, len(labels), step), [escaped(shortened(label, LONGEST_BESIDE)) for label in labels[::step]])
    side.set_tick_params(length=0, pad=2, labelsize=TINY)


def draw_bars(axes: Any, panel: Curve, importance: float) -> None:
    """Draw a bar for each code (a point for each class if there are several), with its share of the sampled rows."""
    axis, n_outputs = panel.axis, panel.heights.shape[1]
    order = np.arange(len(axis.values))[::-1]  # the first one on top
    if n_outputs == 1:
        order = np.argsort(panel.heights[:, 0], kind="stable")
    places = np.arange(len(order))
    if n_outputs == 1:
        axes.barh(places, panel.heights[order, 0], 0.62, color=STYLES[0]["color"], zorder=2)
    else:
        axes.hlines(places, panel.heights[order].min(axis=1), panel.heights[order].max(axis=1), color=PALE, linewidth=3)
        for heights, style, marker in zip(panel.heights[order].T, STYLES, MARKERS, strict=False):
            axes.plot(heights, places, marker, color=style["color"], markersize=2.8)
    low, high = _span(np.append(panel.heights.reshape(-1), 0.0))
    begin = 0.2 + PER_CHARACTER * max(len(shortened(label)) for label in axis.labels)  # of the bars, after their labels
    width = (high - low) / (1.0 - begin - MARGIN)
    axes.set_xlim(high + MARGIN * width - width, high + MARGIN * width)
    beside: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "center"}
    for place, k in zip(places, order, strict=True):
        share = f"{100 * axis.shares[k]:.0f} %" if axis.shares[k] >= 0.005 else "<1 %"
        axes.text(0.0, place, escaped(shortened(axis.labels[k])), size=TINY, **beside)
        axes.text(begin - 0.03, place, share, size=TINY, ha="right", color=DARK, **beside)
    axes.set_yticks([])
    axes.set_ylim(-0.6, len(order) - 0.4)
    _frame(axes, axis.name, importance)
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_bounds(low, high)
    axes.vlines(0.0, -0.6, len(order) - 0.4, color=DARK, linewidth=0.6)
    axes.grid(False)
    _plainly(axes.xaxis, np.array([low, high]))
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


def draw_map(axes: Any, panel: Map, output: int, unit: str, title: str) -> None:
    """Draw the contribution of a pair to one margin as colours, blue below 0 and orange above."""
    from matplotlib.colors import LinearSegmentedColormap

    heights = panel.heights[:, :, output].T
    most = max(float(np.nanmax(np.abs(heights), initial=0.0)), 1e-300)
    x, y = (axis.values if axis.is_numeric else np.arange(len(axis.values)) for axis in (panel.first, panel.second))
    colours = LinearSegmentedColormap.from_list("below and above", DIVERGING)
    axes.patch.set(facecolor="white", hatch="/////", edgecolor=PALE, linewidth=0)
    shown = np.ma.masked_invalid(heights)
    mesh = axes.pcolormesh(x, y, shown, cmap=colours, vmin=-most, vmax=most, shading="nearest", rasterized=True)
    if panel.first.is_numeric and panel.second.is_numeric and min(len(x), len(y)) > 1:
        levels = np.linspace(-most, most, LEVELS + 2)[1:-1]
        axes.contour(x, y, shown, levels, colors="black", linewidths=0.4, alpha=0.6)
        places = np.linspace(0, len(panel.first.sample) - 1, DOTS).astype(np.int64)
        axes.plot(panel.first.sample[places], panel.second.sample[places], ".", color="black", markersize=0.7)
    _sides(axes, panel)
    axes.set_title(title, loc="left", size=7)
    bar = axes.figure.colorbar(mesh, ax=axes, pad=0.02, aspect=18, location="top")
    bar.set_label(unit, size=TINY, labelpad=2)
    bar.outline.set_linewidth(0.4)
    bar.ax.tick_params(labelsize=TINY, width=0.5, length=2, pad=1)
    _ticks(bar.ax.xaxis, np.array([-most, most]))


def _sides(axes: Any, panel: Map) -> None:
    """Ticks and names of both axes of a map."""
    for axis, side in ((panel.first, axes.xaxis), (panel.second, axes.yaxis)):
        side.set_label_text(escaped(shortened(axis.name, LONGEST_NAME)), size=7)
        side.labelpad = 2
        if axis.is_numeric:
            if side is axes.xaxis:
                _span_numbers(axes, axis, False)
            else:
                _ticks(side, axis.values)
            side.axes.set(**{"xlim" if side is axes.xaxis else "ylim": _span(axis.values)})
        else:
            _label_codes(side, axis.labels)
            if side is axes.xaxis and not axis.in_order:
                axes.tick_params(axis="x", labelrotation=40)
                for label in axes.get_xticklabels():
                    label.set(ha="right", rotation_mode="anchor")
            if side is axes.yaxis:
                axes.invert_yaxis()


def _frame(axes: Any, name: str, importance: float) -> None:
    """Leave of the frame what is read off; the name of the column and its importance above."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="both", color=PALE, linewidth=0.4)
    axes.set_axisbelow(True)
    axes.set_title(escaped(shortened(name, LONGEST_NAME)), loc="left", size=7.5, weight="bold", pad=3)
    axes.set_title(deviation(importance), loc="right", size=SMALL, color=DARK, pad=3)


def deviation(importance: float) -> str:
    """The importance of a term in words.

    Examples
    --------
    >>> deviation(0.12345), deviation(12345.6)
    ('sd 0.123', 'sd 12,346')
    """
    return f"sd {importance:.3g}" if importance < 1e3 else f"sd {importance:,.0f}"


def _ticks(side: Any, values: np.ndarray, most: int = 4) -> None:
    """A few ticks with plain numbers."""
    from matplotlib.ticker import MaxNLocator

    side.set_major_locator(MaxNLocator(most, min_n_ticks=3, steps=[1, 2, 2.5, 5, 10]))
    _plainly(side, values)


def _plainly(side: Any, values: np.ndarray) -> None:
    largest = float(np.abs(values).max(initial=0.0))
    side.set_major_formatter(lambda value, _: f"{value:,.10g}" if 1e-4 < largest < 1e7 else f"{value:.3g}")
    side.set_minor_formatter(lambda value, _: "")


def _span(values: np.ndarray) -> tuple[float, float]:
    """The range of some numbers, not empty."""
    low, high = float(values.min(initial=np.inf)), float(values.max(initial=-np.inf))
    if low < high:
        return low, high
    return (low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)) if np.isfinite(low) else (0.0, 1.0)


def shortened(text: str, most: int = LONGEST) -> str:
    """A text of at most so many characters.

    Examples
    --------
    >>> shortened("Adm-clerical"), shortened("Outlying-US(Guam-USVI-etc)")
    ('Adm-clerical', 'Outlying-US(Guam-U…')
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def escaped(text: str) -> str:
    """A text with its dollars escaped: matplotlib takes what is between two of them for mathematics."""
    return text.replace("$", r"\$")

"""A comparison as a picture: progressive loss against rows, to be looked at or printed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.storage import whole_file
from tunefree.workflows.comparison import POOL, Comparison, Contestant, in_figures

# Okabe, Ito: Color universal design (2008): told apart by the colour-blind; the dashes tell them apart in black and
# white.
STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#0072B2", "dashes": (6, 2)},
    {"color": "#D55E00", "dashes": (2, 1.5)},
    {"color": "#009E73", "dashes": (6, 2, 1.5, 2)},
    {"color": "#AA4499", "dashes": (10, 2, 2, 2, 2, 2)},
)
GREY = "#A8A8A8"
KINDS = {".png": "png", ".svg": "svg", ".pdf": "pdf"}
DATES: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}  # the same input, the same bytes
WIDE = 8.0  # a range of losses beyond this ratio has a logarithmic axis
DEEP = 1e-4  # least loss shown, of the highest
FAR = 10.0  # times the best loss: not worth a name
GAP = 0.06  # between labels, of the height of the axes


def check(path: Path) -> None:
    """Whether the picture can be drawn, before the comparison.

    Raises
    ------
    ModelError
        If the file's name has another end, its folder is missing, or matplotlib is not installed.
    """
    if path.suffix.lower() not in KINDS:
        raise ModelError(f"{path}: pictures are written as {', '.join(KINDS)}; name the file so")
    if path.is_dir() or not path.parent.is_dir():
        raise ModelError(f"{path}: {'is' if path.is_dir() else 'its parent is not'} a directory; name a file")
    try:
        import matplotlib  # noqa: F401 - whether it is there
    except ImportError:
        raise ModelError(
            "--plot needs matplotlib, which is not installed; pip install 'tunefree[plot]', or leave --plot out"
        ) from None


def draw(comparison: Comparison, path: Path) -> None:
    """Write the picture of a comparison: .png, .svg or .pdf by the name.

    The pool and the best few have labels at the ends of their lines; the others are grey.
    """
    check(path)
    import matplotlib as mpl
    from matplotlib.figure import Figure

    kind = KINDS[path.suffix.lower()]
    style: dict[Any, Any] = {"font.size": 10, "svg.hashsalt": "tunefree", "svg.fonttype": "none", "axes.linewidth": 0.8}
    with mpl.rc_context(style):
        figure = Figure(figsize=(7.2, 4.2))
        axes = figure.add_axes((0.1, 0.13, 0.61, 0.78))
        _frame(axes, comparison)
        _lines(axes, comparison)
        with whole_file(path) as file:
            figure.savefig(file, format=kind, dpi=200, metadata=DATES.get(kind), bbox_inches="tight")


def draw_path(estimator: Any, path: Path) -> None:
    """Write the picture of a regularization path: .png, .svg or .pdf by the name."""
    check(path)
    import matplotlib as mpl
    from matplotlib.figure import Figure

    kind = KINDS[path.suffix.lower()]
    with mpl.rc_context({"svg.hashsalt": "tunefree", "svg.fonttype": "none"}):
        figure = Figure(figsize=(7.2, 6.4), layout="constrained")
        estimator.plot_path(axes=figure.subplots(3, 1, sharex=True, height_ratios=(3, 3, 2)))
        with whole_file(path) as file:
            figure.savefig(file, format=kind, dpi=200, metadata=DATES.get(kind))


def _frame(axes: Any, comparison: Comparison) -> None:
    """Axes, their names and ranges."""
    low, high = _range(comparison)
    target = comparison.plan.target
    axes.set_xscale("log")
    axes.set_xlim(min(comparison.contestants[0].curve[0].rows, comparison.rows / 2), comparison.rows)
    _scale_losses(axes, low, high)
    axes.xaxis.set_major_formatter(lambda rows, _: f"{rows:,.0f}")
    axes.xaxis.set_minor_formatter(lambda rows, _: "")
    axes.set_xlabel("rows")
    axes.set_ylabel(f"progressive {comparison.loss_name} ({_unit(comparison)})")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#E6E6E6", linewidth=0.6)
    axes.set_axisbelow(True)
    goal = f"{_plain(target)}: " if target else ""
    learners = len(comparison.contestants)
    axes.set_title(f"{goal}{learners} learners on one pass over {comparison.rows:,} rows", loc="left", fontsize=11)


def _unit(comparison: Comparison) -> str:
    target = _plain(comparison.plan.target or "target")
    of_targets = {"square": f"{target}² per row", "absolute": f"{target} per row"}
    if comparison.task == "regression":
        return of_targets.get(comparison.loss, "per row")
    return "nats per row" if comparison.loss == "logistic" else "per row"


def _plain(text: str) -> str:
    """Matplotlib takes what is between dollars for mathematics."""
    return text.replace("$", r"\$")


def named(comparison: Comparison) -> list[Contestant]:
    """The best few besides the pool, unless they are far from good."""
    ranked = comparison.ranked
    bearable = max(FAR * ranked[0].curve[-1].loss, ignorance(comparison))
    others = [contestant for contestant in ranked if contestant.name != POOL]
    return [contestant for contestant in others if contestant.curve[-1].loss <= bearable][: len(STYLES)]


def ignorance(comparison: Comparison) -> float:
    """The log-loss of equal probabilities; 0 for other losses."""
    return math.log(len(comparison.contestants[0].model.classes)) if comparison.loss == "logistic" else 0.0


def _range(comparison: Comparison) -> tuple[float, float]:
    """Losses worth a look: all of the pool's, or else the best's, and where the best few end."""
    leader = comparison.pool or comparison.ranked[0]
    shown = [leader, *named(comparison)]
    low = min(point.loss for contestant in shown for point in contestant.curve)
    high = max(*(point.loss for point in leader.curve), *(contestant.curve[-1].loss for contestant in shown))
    high = max(1.05 * high, 1.05 * ignorance(comparison), 1e-300)
    if high > WIDE * low:
        return max(low, DEEP * high) / 1.1, 1.1 * high
    return low - 0.06 * (high - low), high


def _scale_losses(axes: Any, low: float, high: float) -> None:
    """The axis of losses: logarithmic where they differ much."""
    if high > WIDE * low:
        from matplotlib.ticker import LogLocator, NullLocator

        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 1e3 * low else (1.0,)))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(lambda loss, _: f"{loss:,.10g}" if 1e-4 < loss < 1e7 else f"{loss:.3g}")
    axes.set_ylim(low, high)


def _lines(axes: Any, comparison: Comparison) -> None:
    """The curves, and labels at the ends of those that matter."""
    best = named(comparison)
    others = [contestant for contestant in comparison.ranked if contestant not in (comparison.pool, *best)]
    for contestant in others:
        axes.plot(*_points(contestant), color=GREY, linewidth=0.8)
    labels = []
    for contestant, style in zip(best, STYLES, strict=False):
        axes.plot(*_points(contestant), linewidth=1.5, **style)
        labels.append((contestant, style["color"], "normal"))
    if comparison.pool:
        axes.plot(*_points(comparison.pool), color="black", linewidth=2.4)
        labels.append((comparison.pool, "black", "bold"))
    _label(axes, labels)
    above = sum(contestant.curve[-1].loss > axes.get_ylim()[1] for contestant in others)
    if others:
        note = f"grey: {len(others)} more" + (f", {above} end above" if above else "")
        axes.text(1.045, -0.09, note, transform=axes.transAxes, color="#707070", fontsize=8.5, va="top")


def _points(contestant: Contestant) -> tuple[list[int], list[float]]:
    return [point.rows for point in contestant.curve], [point.loss for point in contestant.curve]


def _label(axes: Any, labels: list[tuple[Contestant, str, str]]) -> None:
    """Names and losses beside the ends of lines, moved apart so that none covers another."""
    to_axes = axes.transData + axes.transAxes.inverted()
    ends = [to_axes.transform((contestant.curve[-1].rows, contestant.curve[-1].loss))[1] for contestant, *_ in labels]
    places = spread(ends, GAP, 1.0)
    for (contestant, color, weight), end, place in zip(labels, ends, places, strict=True):
        axes.plot([1.0, 1.035], [end, place], transform=axes.transAxes, color=color, linewidth=0.8, clip_on=False)
        axes.plot([1.0], [end], "o", transform=axes.transAxes, color=color, markersize=3.5, clip_on=False)
        text = f"{contestant.name}  {in_figures(contestant.curve[-1].loss)}"
        axes.text(1.045, place, text, transform=axes.transAxes, color=color, weight=weight, va="center")


def spread(places: list[float], gap: float, top: float) -> list[float]:
    """Places at least ``gap`` apart and from 0 to ``top`` (if they fit), in the same order, moved as little as can be.

    Examples
    --------
    >>> [round(place, 2) for place in spread([0.5, 0.52, 0.1], 0.1, 0.9)]
    [0.46, 0.56, 0.1]
    >>> [round(place, 2) for place in spread([0.95, 0.94], 0.1, 0.9)]
    [0.9, 0.8]
    """
    order = np.argsort(places, kind="stable")
    gaps = gap * np.arange(len(places))
    left = np.asarray(places)[order] - gaps  # never falling, once they are apart: least squares by the min-max formula
    n = len(left)
    level = [max(min(left[a : b + 1].mean() for b in range(k, n)) for a in range(k + 1)) for k in range(n)]
    moved = np.empty(n)
    moved[order] = np.clip(level, 0.0, max(top - gap * (n - 1), 0.0)) + gaps
    return moved.tolist()

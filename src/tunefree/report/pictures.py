"""Pictures of comparisons (progressive loss against rows), regularization paths and models, for screens and print."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tunefree.core.errors import ModelError
from tunefree.core.storage import check_writable, whole_file
from tunefree.estimators.curve_display import CurveDisplay
from tunefree.explanation.picture import Picture
from tunefree.model_files.plan import POOL
from tunefree.report.scales import spread
from tunefree.workflows.comparison import Comparison, Contestant, in_figures

# Okabe, Ito: Color universal design (2008). The colour-blind can tell these colours apart; dashes tell the lines apart
# in black and white.
STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#0072B2", "dashes": (6, 2)},
    {"color": "#D55E00", "dashes": (2, 1.5)},
    {"color": "#009E73", "dashes": (6, 2, 1.5, 2)},
    {"color": "#AA4499", "dashes": (10, 2, 2, 2, 2, 2)},
)
GREY = "#A8A8A8"
KINDS = {".png": "png", ".svg": "svg", ".pdf": "pdf"}
DATES: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}  # none: same input, same bytes
WIDE = 8.0  # ratio of the highest to the lowest loss from which on the axis is logarithmic
DEEP = 1e-4  # least loss shown, as a part of the highest
FAR = 10.0  # a contestant whose loss is so many times the best one's has no label
GAP = 0.06  # between labels, as a part of the height of the axes


def check(path: Path) -> None:
    """Raise an error if a picture cannot be drawn, before anything is computed for it.

    Parameters
    ----------
    path : Path
        File to draw to.

    Raises
    ------
    ModelError
        If the file's extension is not that of a picture, it cannot be written, or matplotlib is not installed.
    """
    if path.suffix.lower() not in KINDS:
        raise ModelError(f"{path}: pictures are written as {', '.join(KINDS)}; name the file so")
    check_writable(path)
    try:
        import matplotlib  # noqa: F401 - whether it is there
    except ImportError:
        raise ModelError(
            "`plot` needs matplotlib, which is not installed; pip install 'tunefree[plot]', or leave `plot` out"
        ) from None


def draw(comparison: Comparison, path: Path) -> None:
    """Draw a comparison: progressive losses against rows.

    The lines of the pool and of the best few learners have labels; the others are grey.

    Parameters
    ----------
    comparison : Comparison
    path : Path
        A .png, .svg or .pdf file.
    """
    style = {"font.size": 10, "axes.linewidth": 0.8}
    with _figure(path, style, "tight", figsize=(7.2, 4.2)) as figure:
        axes = figure.add_axes((0.1, 0.13, 0.61, 0.78))
        _frame(axes, comparison)
        _lines(axes, comparison)


def draw_path(estimator: Any, path: Path) -> None:
    """Draw a regularization path: losses, errors and norms against iterations.

    Parameters
    ----------
    estimator : IterativeRegularizationClassifier or IterativeRegularizationRegressor
        It has been fitted.
    path : Path
        A .png, .svg or .pdf file.
    """
    with _figure(path, {}, None, figsize=(7.2, 6.4), layout="constrained") as figure:
        estimator.plot_path(axes=figure.subplots(3, 1, sharex=True, height_ratios=(3, 3, 2)))


def draw_curves(picture: Picture, path: Path) -> None:
    """Draw how the predictions of a model depend on columns.

    Parameters
    ----------
    picture : Picture
    path : Path
        A .png, .svg or .pdf file.
    """
    display = CurveDisplay(picture=picture)
    with _figure(path, {}, None, figsize=display.inches, layout="constrained") as figure:
        display.plot(figure=figure)


@contextmanager
def _figure(path: Path, style: dict[str, Any], box: str | None, **options: Any) -> Iterator[Any]:
    """A figure that is saved to a file in the end, cut to its contents if ``box`` is "tight"."""
    check(path)
    import matplotlib as mpl
    from matplotlib.figure import Figure

    kind = KINDS[path.suffix.lower()]
    rc: dict[Any, Any] = {"svg.hashsalt": "tunefree", "svg.fonttype": "none", **style}
    with mpl.rc_context(rc):
        figure = Figure(**options)
        yield figure
        _settle(figure)
        with whole_file(path) as file:
            figure.savefig(file, format=kind, dpi=200, metadata=DATES.get(kind), bbox_inches=box)


def _settle(figure: Any) -> None:
    """Lay the figure out now, if it is to be laid out, with rounded places: the solver's last digits vary."""
    if figure.get_layout_engine() is None:
        return
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position([round(edge, 6) for edge in axes.get_position().bounds])


def _frame(axes: Any, comparison: Comparison) -> None:
    """Set titles, scales and ranges of the axes."""
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
    """A text with its dollars escaped: matplotlib takes what is between two of them for mathematics."""
    return text.replace("$", r"\$")


def named(comparison: Comparison) -> list[Contestant]:
    """The contestants besides the pool that have labels: the best few, unless their losses are far from the best.

    Parameters
    ----------
    comparison : Comparison

    Returns
    -------
    list of Contestant
    """
    ranked = comparison.ranked
    bearable = max(FAR * ranked[0].curve[-1].loss, _uniform_loss(comparison))
    others = [contestant for contestant in ranked if contestant.name != POOL]
    return [contestant for contestant in others if contestant.curve[-1].loss <= bearable][: len(STYLES)]


def _uniform_loss(comparison: Comparison) -> float:
    """The log-loss of equal probabilities of all classes; 0 for other losses."""
    return math.log(len(comparison.contestants[0].model.classes)) if comparison.loss == "logistic" else 0.0


def _range(comparison: Comparison) -> tuple[float, float]:
    """The range of losses shown: all those of the pool (or of the best), and the last ones of the best few."""
    leader = comparison.pool or comparison.ranked[0]
    shown = [leader, *named(comparison)]
    low = min(point.loss for contestant in shown for point in contestant.curve)
    high = max(*(point.loss for point in leader.curve), *(contestant.curve[-1].loss for contestant in shown))
    high = max(1.05 * high, 1.05 * _uniform_loss(comparison), 1e-300)
    if high > WIDE * low:
        return max(low, DEEP * high) / 1.1, 1.1 * high
    return low - 0.06 * (high - low), high


def _scale_losses(axes: Any, low: float, high: float) -> None:
    """Set the axis of losses; it is logarithmic where they differ much."""
    if high > WIDE * low:
        from matplotlib.ticker import LogLocator, NullLocator

        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 1e3 * low else (1.0,)))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(lambda loss, _: f"{loss:,.10g}" if 1e-4 < loss < 1e7 else f"{loss:.3g}")
    axes.set_ylim(low, high)


def _lines(axes: Any, comparison: Comparison) -> None:
    """Draw the curves, and labels at the ends of the pool's and the best few."""
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
    """Write names and losses at the ends of lines, moved apart so that none covers another."""
    to_axes = axes.transData + axes.transAxes.inverted()
    ends = [to_axes.transform((contestant.curve[-1].rows, contestant.curve[-1].loss))[1] for contestant, *_ in labels]
    places = spread(ends, GAP, 1.0)
    for (contestant, color, weight), end, place in zip(labels, ends, places, strict=True):
        axes.plot([1.0, 1.035], [end, place], transform=axes.transAxes, color=color, linewidth=0.8, clip_on=False)
        axes.plot([1.0], [end], "o", transform=axes.transAxes, color=color, markersize=3.5, clip_on=False)
        text = f"{contestant.name}  {in_figures(contestant.curve[-1].loss)}"
        axes.text(1.045, place, text, transform=axes.transAxes, color=color, weight=weight, va="center")

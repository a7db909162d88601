"""The figure of docs/results.md: losses after one pass, divided by those of cross-validated logistic regression.

It shows the results that ``accuracy.py`` and ``fit.py`` stored in benchmarks/data. It writes docs/figures/one-pass.png
and .svg.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import vowpal
from accuracy import best, criterion
from common import kept

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FixedLocator, NullLocator

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
LEAST = 0.35  # smallest ratio that is drawn
BLUE, ORANGE, BLACK, GREY = "#0072B2", "#D55E00", "#000000", "#9a9a9a"
TITLES = {
    "letter_recognition": "letter recognition",
    "bank_additional_full": "bank marketing",
    "census_income_kdd_test": "census income (KDD)",
    "newsgroups20_binary": "newsgroups, 2 classes",
    "newsgroups20": "newsgroups, 20 classes",
    "spam_assassin": "SpamAssassin",
    "flights_3m": "flights",
    "california_housing": "California housing",
    "mnist": "MNIST",
}
KINDS = {"table": "tables", "text": "texts", "drift": "in the order of time", "regression": "regression"}


class Row(NamedTuple):
    """The losses on a data set, divided by that of the tuned batch model."""

    title: str
    ours: float
    default: float
    best: float


def rows_of(kind: str) -> list[Row]:
    """The data sets of a kind with results of both benchmarks, sorted by the ratio of tunefree."""
    passes, fits, rows = kept("accuracy"), kept("fit"), []
    for name, fit in fits.items():
        one_pass = passes.get(name)
        if fit["kind"] == kind and one_pass:
            batch = fits.get(f"{name} [tf-idf]", fit)
            rows.append(row_of(name, one_pass, passes.get(f"{name} [log counts]"), batch))
    return sorted(rows, key=lambda row: row.ours)


def row_of(name: str, one_pass: Any, logarithms: Any, fit: Any) -> Row:
    """A row; on texts, Vowpal Wabbit's default uses words, and its best uses words or logarithms of counts."""
    figure = criterion(one_pass)
    batch = fit["theirs"][figure]
    tried = [result["theirs"][best(result)][figure] for result in (one_pass, logarithms) if result]
    default = one_pass["theirs"][vowpal.DEFAULT][figure]
    plain, _, loss = name.partition(" [")
    title = TITLES.get(plain, plain) + (f", {loss[:-1]} loss" if loss else "")
    return Row(title, one_pass["ours"][figure] / batch, default / batch, min(tried) / batch)


def draw() -> None:
    """Draw a row of markers for each data set, grouped by kind."""
    groups = {title: rows_of(kind) for kind, title in KINDS.items()}
    groups = {title: rows for title, rows in groups.items() if rows}
    if not groups:
        raise SystemExit("there are no stored results; run accuracy.py and fit.py first")
    everything = [row for rows in groups.values() for row in rows]
    height, places, labels = 0.0, [], []
    figure, axes = plt.subplots(figsize=(7.2, 1.3 + 0.25 * (len(everything) + len(groups))), layout="constrained")
    edge = max(3.3, 1.08 * max(max(row.ours, row.best) for row in everything))
    edges = max(LEAST, 0.95 * min(min(row.ours, row.best, 1.0) for row in everything)), edge
    for title, rows in groups.items():
        axes.text(-0.01, height, title, transform=axes.get_yaxis_transform(), ha="right", va="center", weight="bold")
        height += 1
        for row in rows:
            mark(axes, row, height, edges)
            places.append(height)
            labels.append(row.title)
            height += 1
    axes.axvline(1, color=BLACK, linewidth=0.8, zorder=0)
    axes.set(xscale="log", yticks=places, yticklabels=labels, ylim=(height - 0.4, -0.6))
    axes.set_xlim(*edges)
    ticks = [tick for tick in (0.4, 0.5, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4) if edges[0] < tick < edges[1]]
    axes.xaxis.set(major_locator=FixedLocator(ticks), minor_locator=NullLocator())
    axes.set_xticklabels([f"{tick:g}" for tick in ticks])
    axes.set_xlabel("test loss after one pass, divided by that of\ncross-validated logistic (ridge) regression")
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.legend(
        *axes_legend(), loc="outside upper center", ncols=3, frameon=False, handletextpad=0.2, columnspacing=1.2
    )
    FIGURES.mkdir(parents=True, exist_ok=True)
    for suffix in ("png", "svg"):
        figure.savefig(FIGURES / f"one-pass.{suffix}", dpi=150, metadata={} if suffix == "png" else {"Date": None})


MARKS = {
    "tunefree": {"marker": "o", "color": BLACK, "markersize": 7},
    "Vowpal Wabbit, best of 12 on test rows": {
        "marker": "s",
        "color": BLUE,
        "markersize": 6,
        "markerfacecolor": "none",
        "markeredgewidth": 1.6,
    },
    "Vowpal Wabbit, default": {"marker": "^", "color": ORANGE, "markersize": 7},
}


def mark(axes: Any, row: Row, height: float, edges: tuple[float, float]) -> None:
    """Draw three markers on a line; values beyond the edges are printed as numbers."""
    least, most = edges
    line = np.clip([value for value in (row.ours, row.best, row.default) if value < most], least, most)
    axes.plot([min(line), max(line)], [height] * 2, color=GREY, linewidth=1, zorder=1)
    for (_, style), value in reversed(list(zip(MARKS.items(), (row.ours, row.best, row.default), strict=True))):
        told = {"color": style["color"], "va": "center", "backgroundcolor": "white"}
        if value >= most:
            axes.text(most, height, f"{value:.1f} \N{RIGHTWARDS ARROW}", ha="right", **told)
        elif value <= least:
            axes.text(least, height, f"\N{LEFTWARDS ARROW} {value:.2g}", ha="left", **told)
        else:
            axes.plot(value, height, linestyle="none", zorder=3, **style)


def axes_legend() -> tuple[list[Any], list[str]]:
    """Handles and labels of the markers."""
    handles = [mpl.lines.Line2D([], [], linestyle="none", **style) for style in MARKS.values()]
    return handles, list(MARKS)


if __name__ == "__main__":
    draw()

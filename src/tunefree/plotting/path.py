"""The path of iterative regularization: losses, errors and norms against iterations, with the selected iteration."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.plotting.style import BLUE, DARK, SOFT, VERMILLION, EndLabel, counts, label_ends, simplify

# Training is drawn dashed, so that it can be told apart without colour.
TRAINING: dict[str, Any] = {"color": BLUE, "linestyle": (0, (5, 2)), "linewidth": 1.6}
VALIDATION: dict[str, Any] = {"color": VERMILLION, "linestyle": "-", "linewidth": 1.9}
NORM: dict[str, Any] = {"color": DARK, "linestyle": "-", "linewidth": 1.4}
KINDS = {"training": TRAINING, "validation": VALIDATION}
GAP = 0.24  # between two labels, of the height of the axes
SIZE = 9  # points


def draw_path(axes: Any, path: Any, stop: int, output: str, loss_name: str, error_name: str) -> None:
    """Draw a path.

    ``axes``: for losses, errors and norms.
    ``path``: ``path_`` of an estimator.
    ``stop``: the selected iteration.
    ``output``: {"last", "average", "best"}; the iterate whose losses and errors are drawn.
    """
    for place, (part, name) in enumerate((("loss", loss_name), ("error", error_name))):
        lines = [(kind, _column(path, output, f"{kind}_{part}"), style) for kind, style in KINDS.items()]
        _lines(axes[place], path, stop, [line for line in lines if np.isfinite(line[1]).any()], name)
    _lines(axes[2], path, stop, [("norm", np.asarray(path["norm"]), NORM)], "norm of the iterate")
    axes[2].set_xlabel("iteration")


def _column(path: Any, output: str, name: str) -> np.ndarray:
    """A column of the path, of the iterate that is drawn."""
    column = np.asarray(path[f"average_{name}" if output == "average" else name])
    if output != "best":
        return column
    training = np.asarray(path["training_loss"])
    best = np.where(training <= np.minimum.accumulate(training), np.arange(len(training)), 0)
    return column[np.maximum.accumulate(best)]


def _lines(axes: Any, path: Any, stop: int, lines: list[tuple[str, np.ndarray, Any]], name: str) -> None:
    """Lines with their names and values at the stop beside their ends."""
    iterations = np.asarray(path["iteration"])
    for _, column, style in lines:
        axes.plot(iterations, column, **style)
    axes.set_xscale("log")
    axes.set_xlim(1, max(iterations[-1], 2))
    counts(axes.xaxis)
    axes.axvline(stop, color=SOFT, linewidth=0.9, linestyle=":")
    axes.set_ylabel(name)
    simplify(axes)
    labels = []
    for kind, column, style in lines:
        value = column[stop - 1]
        axes.plot([stop], [value], "o", color=style["color"], markersize=4.5, clip_on=False, zorder=3)
        labels.append(EndLabel(column[-1], f"{kind}\nat the stop: {value:.3g}", style["color"]))
    axes.set_ylim(axes.get_ylim())
    label_ends(axes, labels, GAP, SIZE)

"""The path of iterative regularization as a picture: losses, errors and norms against iterations."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tunefree.papers.experiments.drawing import EndLabel, label_ends
from tunefree.papers.learning_curve import GAP, NORM, SIZE, TRAINING, VALIDATION
from tunefree.plotting.style import SOFT, counts, pyplot, simplify


class PathDisplay:
    """Losses, errors and norms of a path against iterations, with the selected iteration.

    Made by :meth:`from_estimator`.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
    axes_ : ndarray of three matplotlib axes
    """

    def __init__(self, axes: Any) -> None:
        self.axes_, self.figure_ = np.asarray(axes, object), axes[0].figure

    @classmethod
    def from_estimator(cls, estimator: Any, *, axes: Any = None) -> PathDisplay:
        """Plot the path of a fitted estimator.

        Parameters
        ----------
        estimator : IterativeRegularizationClassifier or IterativeRegularizationRegressor
        axes : sequence of three matplotlib axes, optional
            For losses, errors and norms. Default: a new figure.
        """
        check_is_fitted(estimator)
        if axes is None:
            figure, axes = pyplot("PathDisplay").subplots(
                3, 1, sharex=True, figsize=(7.2, 6.4), height_ratios=(3, 3, 2), layout="constrained"
            )
            title = f"{type(estimator).__name__}: {estimator.output} iterate, stopped at {estimator.n_iter_:,}"
            figure.suptitle(title, x=0.02, ha="left", size=11)
        error = "share of errors" if hasattr(estimator, "classes_") else "mean absolute error"
        for place, (part, name) in enumerate((("loss", f"{estimator.loss} loss"), ("error", error))):
            kinds = {"training": TRAINING, "validation": VALIDATION}
            lines = [(kind, _column(estimator, f"{kind}_{part}"), style) for kind, style in kinds.items()]
            _draw(axes[place], estimator, [line for line in lines if np.isfinite(line[1]).any()], name)
        _draw(axes[2], estimator, [("norm", estimator.path_["norm"], NORM)], "norm of the iterate")
        axes[2].set_xlabel("iteration")
        return cls(axes)


def _column(estimator: Any, name: str) -> np.ndarray:
    """A column of the path, of the output that the estimator takes."""
    column = np.asarray(estimator.path_[f"average_{name}" if estimator.output == "average" else name])
    return column[estimator.fitted_path_.path.places_of_best()] if estimator.output == "best" else column


def _draw(axes: Any, estimator: Any, lines: list[tuple[str, np.ndarray, Any]], name: str) -> None:
    """Draw lines with their names and values at the stop beside their ends."""
    iterations, stop = np.asarray(estimator.path_["iteration"]), estimator.n_iter_
    labels = []
    for kind, column, style in lines:
        axes.plot(iterations, column, **style)
        axes.plot([stop], [column[stop - 1]], "o", color=style["color"], markersize=4.5, clip_on=False, zorder=3)
        labels.append(EndLabel(column[-1], f"{kind}\nat the stop: {column[stop - 1]:.3g}", style["color"]))
    axes.axvline(stop, color=SOFT, linewidth=0.9, linestyle=":")
    axes.set(xscale="log", xlim=(1, max(iterations[-1], 2)), ylabel=name)
    counts(axes.xaxis)
    simplify(axes)
    axes.set_ylim(axes.get_ylim())
    label_ends(axes, labels, GAP, SIZE)

"""The path of iterative regularization as a picture: losses, errors and norms against iterations."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tunefree.estimators.learning_curve import GAP, NORM, SIZE, TRAINING, VALIDATION
from tunefree.plotting.style import SOFT, EndLabel, counts, label_ends, pyplot, simplify

KINDS = {"training": TRAINING, "validation": VALIDATION}


class PathDisplay:
    """Losses, errors and norms of a path against iterations, with the selected iteration.

    Use :meth:`from_estimator`.

    Parameters
    ----------
    estimator : IterativeRegularizationClassifier or IterativeRegularizationRegressor
        It has been fitted.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
    axes_ : ndarray of three matplotlib axes
    """

    def __init__(self, *, estimator: Any) -> None:
        self.estimator = estimator

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
        return cls(estimator=estimator).plot(axes=axes)

    def plot(self, *, axes: Any = None) -> PathDisplay:
        """Plot; ``axes`` as of :meth:`from_estimator`."""
        estimator = self.estimator
        if axes is None:
            figure, axes = pyplot("PathDisplay").subplots(
                3, 1, sharex=True, figsize=(7.2, 6.4), height_ratios=(3, 3, 2), layout="constrained"
            )
            title = f"{type(estimator).__name__}: {estimator.output} iterate, stopped at {estimator.n_iter_:,}"
            figure.suptitle(title, x=0.02, ha="left", size=11)
        self.axes_ = np.asarray(axes, object)
        self.figure_ = self.axes_[0].figure
        error = "share of errors" if hasattr(estimator, "classes_") else "mean absolute error"
        for place, (part, name) in enumerate((("loss", f"{estimator.loss} loss"), ("error", error))):
            lines = [(kind, self._column(f"{kind}_{part}"), style) for kind, style in KINDS.items()]
            self._draw(self.axes_[place], [line for line in lines if np.isfinite(line[1]).any()], name)
        self._draw(self.axes_[2], [("norm", np.asarray(estimator.path_["norm"]), NORM)], "norm of the iterate")
        self.axes_[2].set_xlabel("iteration")
        return self

    def _column(self, name: str) -> np.ndarray:
        """A column of the path, of the iterate that is drawn."""
        column = np.asarray(self.estimator.path_[f"average_{name}" if self.estimator.output == "average" else name])
        if self.estimator.output != "best":
            return column
        training = np.asarray(self.estimator.path_["training_loss"])
        best = np.where(training <= np.minimum.accumulate(training), np.arange(len(training)), 0)
        return column[np.maximum.accumulate(best)]

    def _draw(self, axes: Any, lines: list[tuple[str, np.ndarray, Any]], name: str) -> None:
        """Draw lines with their names and values at the stop beside their ends."""
        iterations, stop = np.asarray(self.estimator.path_["iteration"]), self.estimator.n_iter_
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

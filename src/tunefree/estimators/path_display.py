"""The path of iterative regularization as a picture: losses, errors and norms against iterations."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tunefree.plotting.style import BLUE, DARK, SOFT, VERMILLION, EndLabel, counts, label_ends, pyplot, simplify

# Training is drawn dashed, so that it can be told apart without colour.
TRAINING: dict[str, Any] = {"color": BLUE, "linestyle": (0, (5, 2)), "linewidth": 1.6}
VALIDATION: dict[str, Any] = {"color": VERMILLION, "linestyle": "-", "linewidth": 1.9}
NORM: dict[str, Any] = {"color": DARK, "linestyle": "-", "linewidth": 1.4}
KINDS = {"training": TRAINING, "validation": VALIDATION}
GAP = 0.24  # between two labels, of the height of the axes
SIZE = 9  # points


class PathDisplay:
    """Losses, errors and norms of a path against iterations, with the selected iteration.

    Use :meth:`from_estimator`.

    Parameters
    ----------
    path : record array
        ``path_`` of an estimator.
    stop : int
        The selected iteration.
    output : {"last", "average", "best"}
        The iterate whose losses and errors are plotted.
    title, loss_name, error_name : str

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
    axes_ : ndarray of three matplotlib axes
    """

    def __init__(
        self,
        *,
        path: Any,
        stop: int,
        output: str = "last",
        title: str = "",
        loss_name: str = "loss",
        error_name: str = "error",
    ) -> None:
        self.path, self.stop, self.output = path, stop, output
        self.title, self.loss_name, self.error_name = title, loss_name, error_name

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
        classes = hasattr(estimator, "classes_")
        display = cls(
            path=estimator.path_,
            stop=estimator.n_iter_,
            output=estimator.output,
            title=type(estimator).__name__,
            loss_name=f"{estimator.loss} loss",
            error_name="share of errors" if classes else "mean absolute error",
        )
        return display.plot(axes=axes)

    def plot(self, *, axes: Any = None) -> PathDisplay:
        """Plot.

        Parameters
        ----------
        axes : sequence of three matplotlib axes, optional
        """
        if axes is None:
            figure, axes = pyplot("PathDisplay").subplots(
                3, 1, sharex=True, figsize=(7.2, 6.4), height_ratios=(3, 3, 2), layout="constrained"
            )
            figure.suptitle(
                f"{self.title}: {self.output} iterate, stopped at {self.stop:,}", x=0.02, ha="left", size=11
            )
        self.axes_ = np.asarray(axes, object)
        self.figure_ = self.axes_[0].figure
        for place, (part, name) in enumerate((("loss", self.loss_name), ("error", self.error_name))):
            lines = [(kind, self._column(f"{kind}_{part}"), style) for kind, style in KINDS.items()]
            self._draw(self.axes_[place], [line for line in lines if np.isfinite(line[1]).any()], name)
        self._draw(self.axes_[2], [("norm", np.asarray(self.path["norm"]), NORM)], "norm of the iterate")
        self.axes_[2].set_xlabel("iteration")
        return self

    def _column(self, name: str) -> np.ndarray:
        """A column of the path, of the iterate that is drawn."""
        column = np.asarray(self.path[f"average_{name}" if self.output == "average" else name])
        if self.output != "best":
            return column
        training = np.asarray(self.path["training_loss"])
        best = np.where(training <= np.minimum.accumulate(training), np.arange(len(training)), 0)
        return column[np.maximum.accumulate(best)]

    def _draw(self, axes: Any, lines: list[tuple[str, np.ndarray, Any]], name: str) -> None:
        """Draw lines with their names and values at the stop beside their ends."""
        iterations = np.asarray(self.path["iteration"])
        for _, column, style in lines:
            axes.plot(iterations, column, **style)
        axes.set_xscale("log")
        axes.set_xlim(1, max(iterations[-1], 2))
        counts(axes.xaxis)
        axes.axvline(self.stop, color=SOFT, linewidth=0.9, linestyle=":")
        axes.set_ylabel(name)
        simplify(axes)
        labels = []
        for kind, column, style in lines:
            value = column[self.stop - 1]
            axes.plot([self.stop], [value], "o", color=style["color"], markersize=4.5, clip_on=False, zorder=3)
            labels.append(EndLabel(column[-1], f"{kind}\nat the stop: {value:.3g}", style["color"]))
        axes.set_ylim(axes.get_ylim())
        label_ends(axes, labels, GAP, SIZE)

"""The path of iterative regularization as a picture: losses, errors and norms against iterations."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

# Okabe, Ito: Color universal design (2008); training is drawn dashed, so that it can be told apart without colour.
TRAINING: dict[str, Any] = {"color": "#0072B2", "linestyle": (0, (5, 2)), "linewidth": 1.6}
VALIDATION: dict[str, Any] = {"color": "#D55E00", "linestyle": "-", "linewidth": 1.9}
NORM: dict[str, Any] = {"color": "#333333", "linestyle": "-", "linewidth": 1.4}
GAP = 0.24  # between two labels, of the height of the axes


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

        Returns
        -------
        PathDisplay
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

        Returns
        -------
        PathDisplay
        """
        if axes is None:
            figure, axes = pyplot("plot_path").subplots(
                3, 1, sharex=True, figsize=(7.2, 6.4), height_ratios=(3, 3, 2), layout="constrained"
            )
            figure.suptitle(
                f"{self.title}: {self.output} iterate, stopped at {self.stop:,}", x=0.02, ha="left", size=11
            )
        self.axes_ = np.asarray(axes, object)
        self.figure_ = self.axes_[0].figure
        self._pair(self.axes_[0], "loss", self.loss_name)
        self._pair(self.axes_[1], "error", self.error_name)
        self._lines(self.axes_[2], [("norm", np.asarray(self.path["norm"]), NORM)], "norm of the iterate")
        self.axes_[2].set_xlabel("iteration")
        return self

    def _pair(self, axes: Any, what: str, name: str) -> None:
        lines = [(kind, self._column(kind, what), style) for kind, style in KINDS.items()]
        self._lines(axes, [line for line in lines if np.isfinite(line[1]).any()], name)

    def _column(self, kind: str, what: str) -> np.ndarray:
        prefix = "average_" if self.output == "average" else ""
        column = np.asarray(self.path[f"{prefix}{kind}_{what}"])
        if self.output != "best":
            return column
        training = np.asarray(self.path["training_loss"])
        best = np.where(training <= np.minimum.accumulate(training), np.arange(len(training)), 0)
        return column[np.maximum.accumulate(best)]

    def _lines(self, axes: Any, lines: list[tuple[str, np.ndarray, Any]], name: str) -> None:
        iterations = np.asarray(self.path["iteration"])
        for _, column, style in lines:
            axes.plot(iterations, column, **style)
        axes.set_xscale("log")
        axes.set_xlim(1, max(iterations[-1], 2))
        axes.xaxis.set_major_formatter(lambda t, _: f"{t:,.0f}")
        axes.axvline(self.stop, color="#666666", linewidth=0.9, linestyle=":")
        axes.set_ylabel(name)
        calm(axes)
        self._labels(axes, lines)

    def _labels(self, axes: Any, lines: list[tuple[str, np.ndarray, Any]]) -> None:
        """Names and values at the stop, beside the ends of lines, moved apart so that none covers another."""
        low, high = axes.get_ylim()
        ends = [(column[-1] - low) / (high - low) for _, column, _ in lines]
        if len(ends) == 2 and abs(ends[0] - ends[1]) < GAP:
            middle, side = sum(ends) / 2, 0.5 * GAP if ends[0] > ends[1] else -0.5 * GAP
            ends = [middle + side, middle - side]
        for (kind, column, style), place in zip(lines, ends, strict=True):
            value = column[self.stop - 1]
            axes.plot([self.stop], [value], "o", color=style["color"], markersize=4.5, clip_on=False, zorder=3)
            beside(axes, place, f" {kind}\n at the stop: {value:.3g}", style["color"])


KINDS = {"training": TRAINING, "validation": VALIDATION}


def pyplot(who: str) -> Any:
    """matplotlib.pyplot, or what to do where there is none."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError(f"{who} needs matplotlib; pip install 'tunefree[plot]'") from None
    return plt


def calm(axes: Any) -> None:
    """Leave of the frame what is read off, and a pale grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#E6E6E6", linewidth=0.6)


def beside(axes: Any, place: float, text: str, color: str) -> None:
    """A label right of the axes."""
    axes.text(1.0, place, text, transform=axes.transAxes, color=color, va="center", size=9)

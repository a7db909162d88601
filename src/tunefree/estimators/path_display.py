"""The path of iterative regularization as a picture: losses, errors and norms against iterations."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tunefree.plotting.path import draw_path
from tunefree.plotting.style import pyplot


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
        draw_path(self.axes_, self.path, self.stop, self.output, self.loss_name, self.error_name)
        return self

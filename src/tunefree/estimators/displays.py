"""Displays of a model: partial dependence, and the weights of generations along the rows."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tunefree.core.errors import ModelError
from tunefree.estimators.base import decomposition_of
from tunefree.explanation.dependence import Picture, picture
from tunefree.generations import clocks
from tunefree.plotting.dependence import SMALL, draw_panel, lines_of_classes
from tunefree.plotting.generations import draw_weights
from tunefree.plotting.style import DARK, escaped, pyplot
from tunefree.pool.model import Model

PANELS_PER_ROW = 3  # panels per row
PANEL_INCHES = 2.4, 1.75  # width and height of a panel
MARGIN_INCHES = 0.95  # inches above and below the panels
CHARACTERS_PER_INCH = 18  # characters of the note per inch
INCHES_OF_GENERATIONS = 7.6, 3.4
LEGEND: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "frameon": False}
LEGEND |= {"fontsize": 8.5, "title_fontsize": 8.5, "alignment": "left"}


class CurveDisplay:
    """Partial dependence curves of a model, one panel per column.

    Use :meth:`from_estimator` to create a display.

    Parameters
    ----------
    picture : tunefree.explanation.dependence.Picture
        The computed curves.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
    axes_ : ndarray of matplotlib axes, one per panel
    """

    def __init__(self, *, picture: Picture) -> None:
        self.picture = picture

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        features: Sequence[Any] | None = None,
        target: Any = None,
        max_curves: int = 9,
        figure: Any = None,
    ) -> CurveDisplay:
        """Draw the partial dependence of the model on its most important columns.

        A curve is the mean of the log-odds, or predicted numbers, over rows whose value in the column is replaced by
        each value in turn. A band shows how much the curves of single rows differ.

        Parameters
        ----------
        estimator : TuneFreeClassifier, TuneFreeRegressor, or another online estimator
            A fitted estimator.
        X : array-like of shape (n_samples, n_features), optional
            Rows to average over. By default the learned rows that the estimator keeps.
        features : sequence, optional
            Names or indices of the columns to draw. By default the most important columns.
        target : label, optional
            The class whose log-odds are drawn. By default the second of two classes, or up to six of more classes.
        max_curves : int, default 9
            Maximum number of curves if ``features`` is None. Columns whose importance is noise are left out.
        figure : matplotlib figure or subfigure, optional
            An empty figure to draw on. By default a new figure.

        Raises
        ------
        ModelError
            If the estimator has only kernel learners, or keeps no rows and X is None.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("agg")
        >>> from sklearn.datasets import load_diabetes
        >>> from tunefree import CurveDisplay, TuneFreeRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> display = CurveDisplay.from_estimator(TuneFreeRegressor().fit(X, y), features=["bmi", "s5"])
        >>> [axes.get_title("left") for axes in display.axes_]
        ['bmi', 's5']
        """
        return cls(picture=picture(decomposition_of(estimator, X), features, target, max_curves)).plot(figure=figure)

    def plot(self, *, figure: Any = None) -> CurveDisplay:
        """Draw the curves; ``figure`` is as in :meth:`from_estimator`."""
        if figure is None:
            figure = pyplot("CurveDisplay").figure(figsize=self.inches, layout="constrained")
        axes = np.ravel(figure.subplots(self._down, self._across, squeeze=False))
        self.figure_, self.axes_ = figure, axes[: len(self.picture.curves)]
        for k, panel in enumerate(self.picture.curves):
            draw_panel(axes[k], self.picture, panel, k % self._across == 0)
        for empty in axes[len(self.picture.curves) :]:
            empty.remove()
        self._describe(figure)
        return self

    @property
    def inches(self) -> tuple[float, float]:
        """Width and height of a new figure."""
        return max(PANEL_INCHES[0] * self._across, 4.8), PANEL_INCHES[1] * self._down + MARGIN_INCHES

    @property
    def _across(self) -> int:
        return 2 if len(self.picture.curves) == 4 else min(PANELS_PER_ROW, len(self.picture.curves))

    @property
    def _down(self) -> int:
        return math.ceil(len(self.picture.curves) / self._across)

    def _describe(self, figure: Any) -> None:
        """Draw the title above the panels, the caption below, and the legend of classes."""
        title = f"Partial dependence of {escaped(self.picture.goal)}"
        if len(self.picture.labels) > 1:
            legend = figure.legend(
                *lines_of_classes(self.picture),
                loc="outside upper left",
                ncols=len(self.picture.labels),
                fontsize=SMALL,
                frameon=False,
                title=title,
                title_fontsize=9,
                alignment="left",
                borderaxespad=0.2,
                columnspacing=1.2,
            )
            legend.get_title().set_ha("left")
        else:
            figure.suptitle(title, x=0.01, ha="left", size=9)
        note = textwrap.fill(escaped(self.picture.note), int(CHARACTERS_PER_INCH * self.inches[0]))
        figure.supxlabel(note, x=0.01, ha="left", size=SMALL, color=DARK)


class GenerationsDisplay:
    """Weights of the members of a mixture, over the rows that were learned.

    Use :meth:`from_estimator` to create a display. The weights are of the base mixture, before its corrections, and
    have sum 1. Members that differ only in the learner on their leaves share an area. Triangles mark the rows at which
    new generations, grown on all rows, began to predict.

    Parameters
    ----------
    model : tunefree.pool.model.Model

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
    ax_ : matplotlib axes
    """

    def __init__(self, *, model: Model) -> None:
        self.model = model

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> GenerationsDisplay:
        """Draw the weights that a fitted estimator recorded while it learned.

        Parameters
        ----------
        estimator : TuneFreeClassifier or TuneFreeRegressor
            Fitted, or returned by :func:`tunefree.train` or :func:`tunefree.load`.
        ax : matplotlib axes, optional
            Axes to draw on. By default the axes of a new figure.

        Raises
        ------
        ModelError
            If the model is not a pool, or has not learned enough rows for a generation.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("agg")
        >>> from sklearn.datasets import load_breast_cancer
        >>> from tunefree import GenerationsDisplay, TuneFreeClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> GenerationsDisplay.from_estimator(TuneFreeClassifier().fit(X, y)).ax_.get_ylabel()
        'weight in the base mixture'
        """
        check_is_fitted(estimator)
        model = estimator._learned.model
        if model.pool is None:
            raise ModelError("only pools have generations that can be drawn")
        return cls(model=model).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> GenerationsDisplay:
        """Draw the weights; ``ax`` is as in :meth:`from_estimator`."""
        if len(self.model.pool.context.record.rows) < 2:
            raise ModelError(f"the model has recorded too few rows: the first generations come after {clocks.FIRST}")
        if ax is None:
            figure = pyplot("GenerationsDisplay").figure(figsize=INCHES_OF_GENERATIONS, layout="constrained")
            ax = figure.subplots()
        self.figure_, self.ax_ = ax.figure, ax
        draw_weights(ax, self.model.pool)
        ax.set_title("\N{BLACK DOWN-POINTING TRIANGLE} generations of all rows take over", loc="left", size=8.5, pad=9)
        handles, names = (part[::-1] for part in ax.get_legend_handles_labels())
        ax.legend(handles, names, title="members of the mixture", **LEGEND)
        return self

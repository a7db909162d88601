"""Curves and pairs of a model as a picture."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tunefree.estimators.curve_panels import (
    MARKERS,
    SMALL,
    STYLES,
    TINY,
    deviation,
    draw_bars,
    draw_columns,
    draw_curve,
    draw_map,
    escaped,
    shortened,
)
from tunefree.estimators.explanation import decomposition_of
from tunefree.estimators.path_display import pyplot
from tunefree.explanation.panels import Curve, Map
from tunefree.explanation.picture import Picture, picture

ACROSS = 3  # panels beside each other
INCHES = 2.4, 1.75, 2.05  # width of a panel, height of a curve's and of a map's
AROUND = 0.95  # inches above and below the panels
CHARACTERS = 20  # of the note, for each inch


class CurveDisplay:
    """What a model has learned of single columns and of pairs of columns.

    Use :meth:`from_estimator`.

    Parameters
    ----------
    picture : tunefree.explanation.picture.Picture

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
    axes_ : ndarray of matplotlib axes
        Of the curves, then of the maps.
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
        max_pairs: int = 3,
        ax: Any = None,
    ) -> CurveDisplay:
        """Draw the curves of the columns that matter most, and maps of the strongest pairs.

        Drawn are share-weighted margins, f(x) = sum_m share_m * margin_m(x), over the members that have weights of
        columns. A classifier averages probabilities, not margins; the note below tells how much of the variance of its
        own margins the terms explain.

        Parameters
        ----------
        estimator : TuneFreeClassifier, TuneFreeRegressor, or another online estimator
            It has been fitted.
        X : array-like of shape (n_samples, n_features), optional
            Rows whose density is drawn and over which terms are compared and have mean 0, at most 4096 of them. By
            default the estimator's own sample of the rows that it learned.
        features : sequence, optional
            Names or numbers of columns, and pairs of them as tuples, to be drawn instead of those that matter most.
        target : label, optional
            The class whose margin is drawn. By default the second of two classes; of more classes all, but at most
            six.
        max_curves, max_pairs : int, default 9 and 3
            How many columns and pairs are drawn if ``features`` is None. Terms that vary less than a hundredth of the
            strongest are left out.
        ax : matplotlib axes, optional
            Its place is filled with the panels. Default: a new figure.

        Returns
        -------
        CurveDisplay

        Raises
        ------
        ModelError
            If no member has weights of columns, or there is no sample and X is None.

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
        made = picture(decomposition_of(estimator, X), features, target, max_curves, max_pairs)
        return cls(picture=made).plot(ax=ax)

    def plot(self, *, ax: Any = None, figure: Any = None) -> CurveDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Its place is filled with the panels.
        figure : matplotlib figure, optional
            An empty figure to draw on. Default: a new one.

        Returns
        -------
        CurveDisplay
        """
        if ax is None and figure is None:
            figure = pyplot("CurveDisplay").figure(figsize=self.inches, layout="constrained")
        self.figure_ = figure if ax is None else ax.figure
        kinds = [(draw, panels) for draw, panels in self._kinds if panels]
        heights = [sum(own) for own in self._heights if own]
        if ax is None:
            grid = self.figure_.add_gridspec(len(kinds), 1, height_ratios=heights)
            self._tell(self.figure_)
        else:
            if ax.get_subplotspec() is None:
                raise ValueError("ax must have been made by subplots; leave it out for a figure of its own")
            ax.set_axis_off()
            grid = ax.get_subplotspec().subgridspec(len(kinds), 1, height_ratios=heights)
        drawn = []
        for (draw, panels), place in zip(kinds, grid, strict=True):
            inside = place.subgridspec(math.ceil(len(panels) / self._across), self._across)
            for k, panel in enumerate(panels):
                drawn.append(self.figure_.add_subplot(inside[divmod(k, self._across)]))
                _calm(drawn[-1])
                draw(drawn[-1], panel, k % self._across == 0)
        self.axes_ = np.array(drawn, object)
        if ax is not None and len(self.picture.labels) > 1:
            drawn[0].legend(*self._lines(), fontsize=TINY, frameon=False)
        return self

    @property
    def _kinds(self) -> list[tuple[Callable[..., None], Sequence[Any]]]:
        """What is drawn how."""
        return [(self._draw_part, self.picture.curves), (self._draw_map, self.picture.maps)]

    @property
    def inches(self) -> tuple[float, float]:
        """Width and height of a figure of its own."""
        return max(INCHES[0] * self._across, 4.8), sum(map(sum, self._heights)) + AROUND

    @property
    def _across(self) -> int:
        most = max(len(self.picture.curves), len(self.picture.maps))
        return 2 if most == 4 else min(ACROSS, most)

    @property
    def _has_points(self) -> bool:
        """Whether classes are drawn as points somewhere."""
        return any(own.missing is not None or not own.axis.is_numeric for own in self.picture.curves)

    @property
    def _heights(self) -> list[list[float]]:
        """Inches of the rows of curves, and of those of maps."""
        rows = [math.ceil(len(panels) / self._across) for panels in (self.picture.curves, self.picture.maps)]
        return [[INCHES[1]] * rows[0], [INCHES[2]] * rows[1]]

    def _draw_part(self, axes: Any, panel: Curve, is_first: bool) -> None:
        """Draw the curve, columns or bars of a part."""
        own = self.picture
        chosen = panel._replace(
            heights=own.sign * panel.heights[:, own.outputs],
            missing=None if panel.missing is None else own.sign * panel.missing[own.outputs],
        )
        has_bars = not (panel.axis.is_numeric or panel.axis.in_order)
        draw = draw_bars if has_bars else draw_curve if panel.axis.is_numeric else draw_columns
        draw(axes, chosen, own.importance.get(panel.axis.term, 0.0))
        if is_first and not has_bars:
            axes.set_ylabel(escaped(own.unit), size=SMALL, labelpad=2)

    def _draw_map(self, axes: Any, panel: Map, is_first: bool) -> None:
        """Draw the map of a pair, of several classes for the one for which it varies most."""
        own = self.picture
        shown = max(own.outputs, key=lambda k: float(np.nanstd(panel.heights[:, :, k])))
        label = own.labels[own.outputs.index(shown)] if len(own.outputs) > 1 else ""
        title = f"{escaped(label)}{', ' if label else ''}{deviation(own.importance.get(panel.term, 0.0))}"
        draw_map(axes, panel._replace(heights=own.sign * panel.heights), shown, escaped(own.unit), title)

    def _lines(self) -> tuple[list[Any], list[str]]:
        """Lines and labels of the classes, for a legend."""
        from matplotlib.lines import Line2D

        labels = [escaped(shortened(label)) for label in self.picture.labels]
        options = [
            {"linewidth": 1.3, "marker": marker if self._has_points else "", "markersize": 3, **style}
            for style, marker in zip(STYLES, MARKERS, strict=True)
        ]
        return [Line2D([], [], **own) for own in options[: len(labels)]], labels

    def _tell(self, figure: Any) -> None:
        """What is drawn above the panels, how faithful it is below, and which line is which class."""
        own = self.picture
        title = f"Contributions to {escaped(own.goal)}"
        if len(own.labels) > 1:
            legend = figure.legend(
                *self._lines(),
                loc="outside upper left",
                ncols=len(own.labels),
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
        hatched = any(np.isnan(panel.heights).any() for panel in own.maps)
        seen = " Grey: density of the rows. Ticks: knots." + (" Hatched: no rows." if hatched else "")
        text = f"{own.note} sd: standard deviation of a contribution.{seen}"
        note = textwrap.fill(escaped(text), int(CHARACTERS * self.inches[0]))
        figure.supxlabel(note, x=0.01, ha="left", size=SMALL, color="#4D4D4D")


def _calm(axes: Any) -> None:
    """Small ticks and thin lines."""
    axes.tick_params(labelsize=SMALL, width=0.5, length=2)
    for spine in axes.spines.values():
        spine.set_linewidth(0.5)

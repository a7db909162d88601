"""How generations take over from each other, as a picture: weights of the mixture and losses over the rows."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from tunefree.core.errors import ModelError
from tunefree.generations import clocks
from tunefree.plotting.generations import draw_losses, draw_weights, loss_name
from tunefree.plotting.style import pyplot
from tunefree.pool.model import Model

INCHES = 7.6, 5.4
SMALL = 8.5  # points
LEGEND: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "frameon": False}
LEGEND |= {"fontsize": SMALL, "title_fontsize": SMALL, "alignment": "left"}


class GenerationsDisplay:
    """Weights in the mixture of a model with generations, and losses, over the rows that it learned.

    Use :meth:`from_estimator`. The upper axes show the weights of the base mixture, which is a weighted mean of what
    the members predict, before its corrections: stacked, of those members that are awake, whose weights sum to 1.
    Members that differ only in the learner on their leaves are one area. Triangles mark rows at which generations of
    all rows took over. The lower axes show mean losses of blocks of rows, each row predicted before it was learned: of
    the whole mixture, with its corrections, and of the best single member of each of the groups named.

    Parameters
    ----------
    model : tunefree.pool.model.Model

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
    axes_ : ndarray of two matplotlib axes
    """

    def __init__(self, *, model: Model) -> None:
        self.model = model

    @classmethod
    def from_estimator(cls, estimator: Any, *, figure: Any = None) -> GenerationsDisplay:
        """Draw what a fitted estimator recorded while it learned.

        Parameters
        ----------
        estimator : TuneFreeClassifier, TuneFreeRegressor, or what :func:`tunefree.train` and :func:`tunefree.load` give
            A pool.
        figure : matplotlib figure, optional
            An empty figure to draw on. Default: a new one.

        Raises
        ------
        ModelError
            If it has another learner, or has not learned enough rows for a generation.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("agg")
        >>> from sklearn.datasets import load_breast_cancer
        >>> from tunefree import GenerationsDisplay, TuneFreeClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = TuneFreeClassifier().fit(X, y)
        >>> display = GenerationsDisplay.from_estimator(model)
        >>> [axes.get_ylabel() for axes in display.axes_]
        ['weight in the base mixture', 'log-loss (nats per row)']
        """
        check_is_fitted(estimator)
        model = estimator._learned.model
        if model.pool is None:
            raise ModelError("only pools have generations that can be drawn")
        return cls(model=model).plot(figure=figure)

    def plot(self, *, figure: Any = None) -> GenerationsDisplay:
        """Draw; ``figure`` as of :meth:`from_estimator`."""
        if len(self.model.pool.context.record.rows) < 2:
            raise ModelError(f"the model has recorded too few rows: the first generations come after {clocks.FIRST}")
        if figure is None:
            figure = pyplot("GenerationsDisplay").figure(figsize=INCHES, layout="constrained")
        self.figure_, self.axes_ = figure, figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        above, below = self.axes_
        draw_weights(above, self.model.pool)
        takeover = "\N{BLACK DOWN-POINTING TRIANGLE} generations of all rows take over"
        above.set_title(takeover, loc="left", size=SMALL, pad=9)
        handles, names = (part[::-1] for part in above.get_legend_handles_labels())
        above.legend(handles, names, title="members of the mixture", **LEGEND)
        draw_losses(below, self.model.pool, loss_name(self.model))
        below.legend(title="mixture, and best member of each group", **LEGEND)
        return self

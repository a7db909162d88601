"""Learning curves: test errors against the number of training rows, with the rate that theory guarantees.

Estimators with a theoretical rate have a method ``promised_rate``, which returns the rate as a function of the number
of rows, and its name.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import make_scorer, mean_absolute_error, zero_one_loss
from sklearn.model_selection import ShuffleSplit, cross_val_score
from sklearn.utils import indexable

from tunefree.core.parameters import require
from tunefree.papers.experiments.drawing import EndLabel, label_ends
from tunefree.plotting.style import BLUE, DARK, VERMILLION, pyplot, simplify

# Training curves are dashed, so that they are recognisable without colour.
TRAINING: dict[str, Any] = {"color": BLUE, "linestyle": (0, (5, 2)), "linewidth": 1.6}
VALIDATION: dict[str, Any] = {"color": VERMILLION, "linestyle": "-", "linewidth": 1.9}
NORM: dict[str, Any] = {"color": DARK, "linestyle": "-", "linewidth": 1.4}
GAP = 0.24  # distance between two labels, as a fraction of the height of the axes
SIZE = 9  # font size of labels, in points
CURVE = VALIDATION | {"marker": "o", "markersize": 4.5}
RATE = NORM | {"linestyle": TRAINING["linestyle"]}
FEWEST, RANGE = 16, 64  # the smallest subset has by default 1 / RANGE of the rows, but at least FEWEST
MARGIN = 0.08  # margin above and below, as a fraction of the height of the axes
# (number of decades of an axis, multiples of powers of ten that are ticks on axes of up to that number)
TICKS = ((1.0, (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)), (3.0, (1.0, 2.0, 5.0)), (math.inf, (1.0,)))


@dataclass(kw_only=True, eq=False, repr=False)
class LearningCurveDisplay:
    """Test error against the number of training rows, on logarithmic axes, with a theoretical rate.

    Use :meth:`from_estimator` to create a display. The line is the mean over the repeats, and the band is one standard
    deviation on each side. Theory gives rates up to a constant factor. Therefore the dashed line of the rate is scaled
    to pass through the last point of the curve, and only slopes can be compared. Sizes whose mean error is not above
    ``least`` cannot be shown on a logarithmic axis, and are marked by triangles at the bottom.

    Parameters
    ----------
    sizes : array of shape (n_sizes,)
        Numbers of training rows, increasing.
    errors : array of shape (n_sizes, n_repeats)
        Test errors.
    rate : callable, optional
        A function of the number of rows, up to a constant factor.
    rate_name : str, default="rate given"
    least : float, default=0.0
        The error of the best rule; the excess over it is plotted.
    title, error_name : str

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
    axes_ : matplotlib axes
    line_, rate_line_ : matplotlib lines
        The curve, and the rate (None without one).
    """

    sizes: Any
    errors: Any
    rate: Callable[[int], float] | None = None
    rate_name: str = "rate given"
    least: float = 0.0
    title: str = ""
    error_name: str = "error"

    def __post_init__(self) -> None:
        self.sizes, self.errors = np.asarray(self.sizes), np.asarray(self.errors, np.float64)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sizes: Any = 8,
        repeats: int = 5,
        test_fraction: float = 0.25,
        rate: Callable[[int], float] | None = None,
        least: float = 0.0,
        random_state: Any = 0,
        axes: Any = None,
    ) -> LearningCurveDisplay:
        """Fit the estimator on subsets of the rows, evaluate it on held-out rows, and plot the errors.

        In each repeat, a random fraction of the rows is held out, and the others are shuffled. Each subset has the
        first shuffled rows, so larger subsets contain smaller ones.

        Parameters
        ----------
        estimator : scikit-learn estimator
            The estimator to clone. The error is the classification error of classifiers, else the mean absolute error.
        X : {array-like, sparse matrix, table} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sizes : int or sequence of int, default=8
            The sizes, or the number of sizes, geometrically spaced up to all rows that are not held out.
        repeats : int, default=5
        test_fraction : float, default=0.25
            Fraction of the rows that is held out.
        rate : callable, optional
            A function of the number of rows, up to a constant factor. By default the rate of the estimator's theorems,
            if it has any, as estimators with iterative regularization do.
        least : float, default=0.0
            The error of the best rule, if known.
        random_state : int, RandomState instance or None, default=0
            Controls the choice of held-out rows and the order of the others.
        axes : matplotlib axes, optional
            By default the axes of a new figure.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from sklearn.datasets import load_breast_cancer
        >>> from tunefree import IterativeRegularizationClassifier, LearningCurveDisplay
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = IterativeRegularizationClassifier(loss="hinge", max_iter=50)
        >>> settings = {"sizes": [50, 400], "repeats": 2, "axes": Figure().subplots()}
        >>> display = LearningCurveDisplay.from_estimator(model, X, y, **settings)
        >>> bool(display.errors[0].mean() > display.errors[1].mean())
        True
        >>> round(display.rate(1000) / display.rate(8000), 2)  # (1 / 8)^(-1/3), but for the logarithms
        1.54
        """
        if axes is None:
            pyplot(cls.__name__)  # fail before fitting if Matplotlib is missing
        require("repeats", int, repeats, low=1)
        require("test_fraction", float, test_fraction, above=0, below=1)
        require("least", float, least, low=0)
        require("rate", Callable | None, rate)
        promised = getattr(estimator, "promised_rate", lambda: (None, ""))
        rate, rate_name = (rate, "rate given") if rate is not None else promised()
        X, y = indexable(X, y)
        splits = list(ShuffleSplit(repeats, test_size=float(test_fraction), random_state=random_state).split(X))
        classes = is_classifier(estimator)
        sizes = _sizes(sizes, len(splits[0][0]))
        if classes and any(len(np.unique(np.asarray(y)[train[: sizes[0]]])) < 2 for train, _ in splits):
            problem = f"a subset of {sizes[0]} rows has only one class, from which nothing can be learned"
            raise ValueError(f"{problem}; pass larger sizes, or another random_state")
        scorer = make_scorer(zero_one_loss if classes else mean_absolute_error)
        nested = ([(train[:size], test) for train, test in splits] for size in sizes)
        errors = [cross_val_score(estimator, X, y, cv=cv, scoring=scorer, error_score="raise") for cv in nested]
        display = cls(
            sizes=sizes,
            errors=errors,
            rate=rate,
            rate_name=rate_name,
            least=float(least),
            title=type(estimator).__name__,
            error_name="share of errors" if classes else "mean absolute error",
        )
        return display.plot(axes=axes)

    def plot(self, *, axes: Any = None) -> LearningCurveDisplay:
        """Plot the curve; ``axes`` is as in :meth:`from_estimator`."""
        mean, deviation = self._moments()
        shown = mean > 0.0
        if not shown.any():
            raise ValueError(
                f"no mean error is above least={self.least:.6g}, so a logarithmic axis can show none of them; "
                "pass a smaller least or smaller sizes"
            )
        last = int(np.flatnonzero(shown)[-1])
        rows, rate = self._rate_through(int(self.sizes[last]), mean[last])
        if axes is None:
            figure, axes = pyplot(type(self).__name__).subplots(figsize=(7.2, 4.2), layout="constrained")
            repeats = self.errors.shape[1]
            what = f"mean and standard deviation of {repeats} repeats" if repeats > 1 else "one repeat"
            figure.suptitle(f"{self.title}: {what}" if self.title else what, x=0.02, ha="left", size=11)
        self.axes_, self.figure_ = axes, axes.figure
        bottom = self._scale(mean[shown], deviation[shown], rate)
        sizes, above = self.sizes[shown], mean[shown] + deviation[shown]
        below = np.maximum(mean[shown] - deviation[shown], bottom)
        axes.fill_between(sizes, below, above, color=CURVE["color"], alpha=0.18, linewidth=0)
        (self.line_,) = axes.plot(sizes, mean[shown], **CURVE)
        self.rate_line_ = axes.plot(rows, rate, zorder=1.9, **RATE)[0] if len(rows) else None
        for size in self.sizes[~shown]:
            style = {"transform": axes.get_xaxis_transform(), "clip_on": False, "color": CURVE["color"]}
            axes.plot([size], [0.0], "v", **style)
        self._labels(int(self.sizes[last]), mean[last])
        return self

    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return means and standard deviations, over the repeats, of the excess over ``least``."""
        excess = self.errors - self.least
        unit = np.abs(excess).max(axis=1, keepdims=True)  # avoids overflow of squares
        relative = excess / np.where(unit > 0.0, unit, 1.0)
        return relative.mean(axis=1) * unit[:, 0], relative.std(axis=1) * unit[:, 0]

    def _rate_through(self, size: int, error: float) -> tuple[np.ndarray, np.ndarray]:
        """Return numbers of rows, and the rate for these, scaled to equal ``error`` at ``size``."""
        if self.rate is None:
            return np.empty(0, np.int64), np.empty(0)
        between = np.geomspace(self.sizes[0], self.sizes[-1], 100).round().astype(np.int64)
        rows = np.union1d(between, self.sizes)
        values = np.array([float(self.rate(n)) for n in rows.tolist()])
        wrong = ~(np.isfinite(values) & (values >= 0.0)) | ((rows == size) & (values == 0.0))
        if wrong.any():
            raise ValueError(f"rate must give numbers above 0; for {rows[wrong][0]} rows it gave {values[wrong][0]}")
        with np.errstate(divide="ignore"):
            logarithms = np.log(values)
        steps = logarithms - logarithms[rows == size]
        return rows, np.exp(np.minimum(steps + math.log(error), 709.0))

    def _scale(self, mean: np.ndarray, deviation: np.ndarray, rate: np.ndarray) -> float:
        """Set logarithmic axes that show the curve, the band, and the rate if it is near them; return the lower end."""
        from matplotlib.ticker import LogLocator, NullLocator

        # A band that extends to 0 is cut off, since the curve should fill the axes.
        low, high = max((mean - deviation).min(), mean.min() / 3.0), (mean + deviation).max()
        near = np.clip(rate, low / 2.0, high * 2.0)
        ends = np.log([min(low, near.min(initial=low)), max(high, near.max(initial=high))])
        room = MARGIN * max(ends[1] - ends[0], 1.0)
        bottom, top = np.exp(np.clip([ends[0] - room, ends[1] + room], -708.0, 709.0))
        axes = self.axes_
        name = f"{self.error_name} on test rows" + (f",\nabove the best rule's {self.least:.3g}" if self.least else "")
        axes.set(xscale="log", yscale="log", ylim=(bottom, top), xlabel="rows learned", ylabel=name)
        for axis, (first, last) in ((axes.xaxis, self.sizes[[0, -1]].tolist()), (axes.yaxis, (bottom, top))):
            decades = math.log10(last) - math.log10(first)
            axis.set_major_locator(LogLocator(subs=next(ticks for most, ticks in TICKS if decades <= most)))
            axis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(lambda n, _: f"{n:,.0f}")
        axes.yaxis.set_major_formatter(lambda error, _: f"{error:.6g}")
        simplify(axes)
        return float(bottom)

    def _labels(self, size: int, error: float) -> None:
        """Label the common end of the curve and the rate."""
        labels = [EndLabel(error, f"measured\nat {size:,} rows: {error:.3g}", CURVE["color"])]
        if self.rate_line_ is not None:
            labels.append(EndLabel(error, f"{self.rate_name}\nup to a constant", RATE["color"]))
        label_ends(self.axes_, labels, GAP, SIZE)


def _sizes(sizes: Any, most: int) -> np.ndarray:
    """Return the sizes of subsets in increasing order; raise a ValueError if one is above ``most``."""
    wanted = np.unique(sizes)
    if isinstance(sizes, numbers.Integral) and int(sizes) > 1:
        least = min(max(most / RANGE, FEWEST), most)
        wanted = np.unique(np.geomspace(least, most, int(sizes)).round().astype(np.int64))
    if len(wanted) < 2 or not np.issubdtype(wanted.dtype, np.integer) or wanted[0] < 1:
        raise ValueError(
            f"sizes must be how many there are, at least 2, or at least two different numbers of rows, not {sizes!r}; "
            f"there are {most} rows to learn"
        )
    if wanted[-1] > most:
        raise ValueError(
            f"sizes go up to {wanted[-1]} rows, but {most} are left to learn beside those set aside for testing; "
            "pass smaller sizes or a smaller test_fraction"
        )
    return wanted

"""How generations take over from each other, as a picture: weights of the mixture and losses over the rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tunefree.core.errors import ModelError
from tunefree.estimators.curve_panels import escaped
from tunefree.estimators.path_display import calm, pyplot
from tunefree.generations import clocks
from tunefree.generations.clocks import AGES
from tunefree.pool.pool import Pool
from tunefree.pool.slots import LINEAR, TREES, WHOLE
from tunefree.pool.windows import LENGTHS

INCHES = 7.6, 5.4
BLOCKS = 48  # means of losses, at most
LEAST = 0.25  # of the rows of the members of a group that are awake most, which its best member predicted at least
SMALL = 8.5  # points
LEGEND: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "frameon": False}
LEGEND |= {"fontsize": SMALL, "title_fontsize": SMALL, "alignment": "left"}
EDGES: dict[str, Any] = {"edgecolor": "white", "linewidth": 0.5}
HATCHES = {"newest": "", "previous": "////"}
# Okabe, Ito: Color universal design (2008). Generations of all rows are hatched if they are not the newest, so that
# areas can be told apart in black and white too.
OF_KINDS = {"boosted": ("#0072B2", "#8DBFDD"), "randomised": ("#D55E00", "#F0B187")}
OF_WINDOWS = ("#009E73", "#AA4499")
ONLINE, FEW_ROWS = "#C4C4C4", "#E6E6E6"
LINES: dict[str, dict[str, Any]] = {
    "online linear": {"color": "#7A7A7A", "linewidth": 1.3, "dashes": (6, 2)},
    "all rows": {"color": "#0072B2", "linewidth": 1.3, "dashes": (2, 1.2)},
    "latest 2,048 rows": {"color": "#009E73", "linewidth": 1.5},
    "latest 16,384 rows": {"color": "#AA4499", "linewidth": 1.5, "dashes": (8, 1.5, 1.5, 1.5)},
}


class Group(NamedTuple):
    """Members whose weights are drawn as one area."""

    name: str
    places: list[int]  # in the mixture
    style: dict[str, Any]


class GenerationsDisplay:
    """Weights in the mixture of a model with generations, and losses, over the rows that it learned.

    Use :meth:`from_estimator`. The upper axes show the weights of the base mixture, which is a weighted mean of what
    the members predict, before its corrections: stacked, of those members that are awake, whose weights sum to 1.
    Members that differ only in the learner on their leaves are one area. Triangles mark rows at which generations of
    all rows took over. The lower axes show mean losses of blocks of rows, each row predicted before it was learned: of
    the whole mixture, with its corrections, and of the best single member of each of the groups named.

    Parameters
    ----------
    pool : tunefree.pool.pool.Pool
    loss_name : str

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
    axes_ : ndarray of two matplotlib axes
    """

    def __init__(self, *, pool: Pool, loss_name: str = "loss") -> None:
        self.pool, self.loss_name = pool, loss_name

    @classmethod
    def from_estimator(cls, estimator: Any, *, figure: Any = None) -> GenerationsDisplay:
        """Draw what a fitted estimator recorded while it learned.

        Parameters
        ----------
        estimator : TuneFreeClassifier, TuneFreeRegressor, or what :func:`tunefree.train` and :func:`tunefree.load` give
            A pool.
        figure : matplotlib figure, optional
            An empty figure to draw on. Default: a new one.

        Returns
        -------
        GenerationsDisplay

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
        if not isinstance(getattr(model, "pool", None), Pool):
            raise ModelError("only pools have generations that can be drawn")
        return cls(pool=model.pool, loss_name=_loss_name(model)).plot(figure=figure)

    def plot(self, *, figure: Any = None) -> GenerationsDisplay:
        """Draw.

        Parameters
        ----------
        figure : matplotlib figure, optional
            An empty figure to draw on. Default: a new one.

        Returns
        -------
        GenerationsDisplay
        """
        if len(self.pool.record.rows) < 2:
            raise ModelError(f"the model has recorded too few rows: the first generations come after {clocks.FIRST}")
        if figure is None:
            figure = pyplot("GenerationsDisplay").figure(figsize=INCHES, layout="constrained")
        self.figure_, self.axes_ = figure, figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        self._draw_weights(self.axes_[0])
        self._draw_losses(self.axes_[1])
        return self

    def groups(self) -> list[Group]:
        """Members that are one area: those of generations of all rows below, online linear members on top."""
        slots, areas = self.pool.members.slots, []
        for kind in TREES:
            for age, name in enumerate(AGES):
                places = [slots[slot] for slot in slots if (slot.clock, slot.kind, slot.age) == (WHOLE, kind, age)]
                style = {"facecolor": OF_KINDS[kind][age], "hatch": HATCHES[name]}
                areas.append(Group(f"all rows: {kind}, {name}", places, style))
        for length, color in zip(LENGTHS, OF_WINDOWS, strict=True):
            places = [place for slot, place in slots.items() if slot.clock == length]
            areas.append(Group(f"latest {length:,} rows", places, {"facecolor": color}))
        places = [place for slot, place in slots.items() if slot.kind == LINEAR]
        areas.append(Group("all rows: linear", places, {"facecolor": FEW_ROWS, "hatch": "...."}))
        return [*areas, Group("online linear", self._online, {"facecolor": ONLINE})]

    @property
    def _online(self) -> list[int]:
        """Places of the online linear members."""
        return list(range(len(self.pool.members.names) - len(self.pool.members.slots)))

    def _draw_weights(self, axes: Any) -> None:
        """Stacked areas, and above them a tick where generations of all rows took over."""
        record, groups = self.pool.record, self.groups()
        heights = [record.weights[:, group.places].sum(axis=1) for group in groups]
        edges = np.cumsum([np.zeros(len(record.rows)), *heights], axis=0)
        for group, bottom, top in zip(groups, edges[:-1], edges[1:], strict=True):
            axes.fill_between(record.rows, bottom, top, label=group.name, **EDGES, **group.style)
        axes.set(xlim=record.rows[[0, -1]], ylim=(0.0, 1.0), ylabel="weight in the base mixture")
        takeovers = self._takeovers()
        style = {"transform": axes.get_xaxis_transform(), "clip_on": False, "color": "black"}
        axes.plot(takeovers, np.full(len(takeovers), 1.012), "v", markersize=4, markeredgewidth=0, **style)
        axes.set_title(
            "\N{BLACK DOWN-POINTING TRIANGLE} generations of all rows take over", loc="left", size=SMALL, pad=9
        )
        handles, names = (part[::-1] for part in axes.get_legend_handles_labels())
        axes.legend(handles, names, title="members of the mixture", **LEGEND)
        axes.spines[["top", "right"]].set_visible(False)

    def _takeovers(self) -> list[int]:
        """Rows at which generations of all rows took over, between the first and the last point."""
        (first, last), rows = self.pool.record.rows[[0, -1]], list[int]()
        event = clocks.births(0)
        while event.takeover <= last:
            rows += [event.takeover] if event.takeover >= first else []
            event = clocks.births(event.birth)
        return rows

    def _draw_losses(self, axes: Any) -> None:
        """Lines of the mixture and of the best members, through the middles of blocks of rows."""
        rows, means = self._blocks()
        slots, members = self.pool.members.slots, {"online linear": self._online}
        for clock in (WHOLE, *LENGTHS):
            name = f"latest {clock:,} rows" if clock else "all rows"
            members[name] = [place for slot, place in slots.items() if slot.clock == clock]
        axes.plot(rows, means[:, -1], color="black", linewidth=2.2, label="the whole mixture")
        for name, places in members.items():
            best = self._best(places)
            if best is not None:
                label = f"{name}:\n{self.pool.members.names[best]}"
                axes.plot(rows, means[:, best], label=escaped(label), **LINES[name])
        axes.set(xlabel="rows learned", ylabel=self.loss_name, ylim=(0.0, None))
        axes.xaxis.set_major_formatter(lambda n, _: f"{n:,.0f}")
        axes.legend(title="mixture, and best member of each group", **LEGEND)
        calm(axes)

    def _blocks(self) -> tuple[np.ndarray, np.ndarray]:
        """Middles of blocks of rows, and weighted mean losses (T, M + 1) in them; NaN of members that mostly slept."""
        record = self.pool.record
        before = np.concatenate([[0], record.rows[:-1]])
        starts = np.unique(BLOCKS * before // record.rows[-1], return_index=True)[1]
        totals, counts = np.moveaxis(np.add.reduceat(record.losses[:, :2], starts, axis=0), 1, 0)
        is_shown = (counts > 0.0) & (counts >= 0.5 * counts[:, -1:])
        means = np.divide(totals, counts, out=np.full(totals.shape, np.nan), where=is_shown)
        return 0.5 * (before[starts] + record.rows[np.append(starts[1:], len(before)) - 1]), means

    def _best(self, places: list[int]) -> int | None:
        """Of the members at these places that with the least mean loss over the mixture's, where it was awake."""
        losses, means = self.pool.record.losses, self.pool.record.means()
        counts = losses[:, 1, places]
        excess = np.sum(losses[:, 0, places] - np.nan_to_num(means[:, -1:]) * counts, axis=0)
        rows = counts.sum(axis=0)
        over = np.divide(excess, rows, out=np.full(len(places), np.inf), where=rows >= LEAST * rows.max(initial=1.0))
        return places[int(np.argmin(over))] if np.isfinite(over).any() else None


def _loss_name(model: Any) -> str:
    """The loss that is drawn, with its unit."""
    if model.task == "classification":
        return "log-loss (nats per row)"
    return f"{model.options.loss or 'square'} loss per row"

"""The loop over rows: members predict a row and learn it, the mixture learns on what they predicted.

Rows are cut at fixed numbers of them, where generations are born and take over, and nowhere else does it matter how
they come in blocks. A row of weight 0 is predicted only, and counts nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tunefree.core import threads
from tunefree.core.rows import Sparse, Table, n_rows, part
from tunefree.generations.columns import MOST_COLUMNS
from tunefree.generations.generation import Generation
from tunefree.generations.leaves import log_probabilities
from tunefree.losses.objectives import measured, regression
from tunefree.mixing.mixture import Mixture
from tunefree.model.group import LabelledRows
from tunefree.model.pool import OF_TABLES, OF_TEXTS
from tunefree.pool import slots
from tunefree.pool.frozen import Frozen
from tunefree.pool.growth import Growth, Observed
from tunefree.pool.slots import Slot
from tunefree.pool.windows import BLOCK, LENGTHS, Rises

PIECE = 2048  # rows that members learn at a time


class Pool:
    """Online linear learners and generations, mixed.

    Parameters
    ----------
    linear : LinearGroup
        Of the online learners.
    n_classes : int
        Known from the start; 0 for numbers.
    loss : loss, optional
        Of numbers.

    Attributes
    ----------
    rows : int
        Rows learned.
    names : list of str
        Of the members, in the order of their places in the mixture.
    mixture : Mixture
    growth : Growth or None
        The generations; None from the first row on that is too wide for trees.
    """

    def __init__(self, linear: Any, n_classes: int, loss: Any = None) -> None:
        self.linear, self.loss, self.is_of_numbers = linear, loss, loss is not None
        self.n_classes, self.rows, self.mass = n_classes, 0, 0.0
        self.slots = {slot: place for place, slot in enumerate(slots.slots_of(LENGTHS), len(linear.members))}
        self.names = [*(member.name for member in linear.members), *(slot.name for slot in self.slots)]
        self.linear_places = list(range(len(linear.members)))  # of the linear members in the mixture
        self.growth: Growth | None = Growth(self._width, loss)
        self.mixture = self.new_mixture()
        self.frozen = self.new_frozen()
        self.has_begun = False
        self.losses = np.zeros((len(LENGTHS), 2, len(self.names)))  # sums and rows, since each window took over
        self.rises, self.block = Rises(), np.zeros(2)  # loss of the mixture and rows in the present block

    def new_mixture(self) -> Mixture:
        """A mixture of all members that knows nothing."""
        return Mixture(len(self.names), self._width, self.loss)

    def new_frozen(self) -> Frozen:
        """A frozen mixture that knows nothing."""
        born = [place for slot, place in self.slots.items() if slot.clock == 0 and slot.version == 0]
        return Frozen(born, self._width, self.loss)

    @property
    def _width(self) -> int:
        """Classes that the mixture knows, at least two; 0 for numbers."""
        return 0 if self.is_of_numbers else max(self.n_classes, 2)

    def learn(self, X: Any, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Predict rows in order, and learn each after that.

        Parameters
        ----------
        X : block of rows
        y : (n,) array
            Numbers of classes, or numbers.
        weight : (n,) array
            Counts relative to the mean so far; a row of weight 0 is predicted only.

        Returns
        -------
        (n, K) array
            Log-probabilities of at least two classes, or numbers, each predicted before its row was learned.
        """
        pieces = [mixed for _, mixed in self.learn_pieces(X, y, weight)]
        return np.concatenate([np.empty((0, max(self._width, 1))), *pieces])

    def learn_pieces(self, X: Any, y: np.ndarray, weight: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """As :meth:`learn`, piece after piece: the place of each among the rows, and its predictions."""
        self._begin(X)
        for start, stop in self._pieces(X, weight):
            piece = slice(start, stop)
            yield piece, self._learn_piece(part(X, start, stop), y[piece], weight[piece])

    def _begin(self, X: Any) -> None:
        """Go on with the linear members that are for rows like the first ones."""
        if self.rows == 0 and not self.has_begun:
            self.has_begun = True
            has_words_only = isinstance(X, Table) and not X.numbers.shape[1] and len(X.features) > 0
            other = OF_TABLES if isinstance(X, Sparse) or has_words_only else OF_TEXTS
            self.keep([m for m, member in enumerate(self.linear.members) if member.setting not in other])

    def keep(self, stays: list[int]) -> None:
        """Go on with these of the linear members; the places of the others in the mixture sleep."""
        self.linear.keep(stays)
        self.linear_places = [self.linear_places[m] for m in stays]

    def predict(self, X: Any) -> np.ndarray:
        """Predict rows to come: log-probabilities (n, classes), or numbers (n, 1)."""
        blocks = [part(X, start, min(start + PIECE, n_rows(X))) for start in range(0, n_rows(X), PIECE)]
        mixed = [self._predict(block) for block in blocks]
        return np.concatenate([np.empty((0, max(self._width, 1))), *mixed])

    def _predict(self, X: Any) -> np.ndarray:
        members = self.predictions_of_members(X)
        following = self.mixture.predict(members)
        return self.frozen.predict(members, following)

    def finish(self) -> None:
        """End a pass: the last generation is grown on all rows kept, and predicts from here on."""
        self.frozen.learn(self)
        if self.growth is not None:
            self.growth.finish(self.rows)

    def add_class(self, objective: Any, n_outputs: int) -> None:
        """Know one more class; ``objective`` is that of linear members from so many outputs."""
        self.n_classes += 1
        self.linear.add_class(objective, n_outputs, self.n_classes)
        if self.n_classes > 2:
            self.mixture.add_class()
            self.frozen.add_class()
        if self.growth is not None:
            self.growth.n_classes = self._width
            for _, _, _, generation in self.growth.generations():
                generation.know(self._width)

    def _pieces(self, X: Any, weight: np.ndarray) -> Iterator[tuple[int, int]]:
        """Cut rows at events, and into pieces; an event is over when the next piece is asked for."""
        counts, begun, first_wide, start = np.cumsum(weight > 0.0), self.rows, self._first_wide(X), 0
        while start < len(weight):
            if start == first_wide:
                self.growth = None
            event = (self.rows // BLOCK + 1) * BLOCK
            event = event if self.growth is None else min(event, self.growth.event())
            stop = min(start + PIECE, int(np.searchsorted(counts, event - begun)) + 1, len(weight))
            if start < first_wide < stop:
                stop = first_wide
            yield start, stop
            start = stop

    def _first_wide(self, X: Any) -> int:
        """The first row that is too wide for trees; beyond the last if none is."""
        if self.growth is None or not isinstance(X, Sparse):
            return n_rows(X)
        wide = np.flatnonzero(X.features > MOST_COLUMNS)
        return int(np.searchsorted(X.pointers, wide[0], "right")) - 1 if len(wide) else n_rows(X)

    def _relative(self, weight: np.ndarray) -> np.ndarray:
        """Weights over their running mean, which includes each row's own; 0 stays 0.

        In single precision, so that rounding does not tell constant weights from none.
        """
        totals = np.cumsum(np.concatenate([[self.mass], weight]))[1:]
        counts = self.rows + np.cumsum(weight > 0.0)
        self.mass = float(totals[-1]) if len(totals) else self.mass
        relative = np.divide(weight * counts, totals, out=np.zeros(len(weight)), where=totals > 0.0)
        return relative.astype(np.float32).astype(np.float64)

    def _learn_piece(self, X: Any, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        y, relative = np.asarray(y, np.float64), self._relative(weight)
        members = self._asleep(len(y))
        targets = y if self.is_of_numbers or self.linear.n_outputs > 1 else np.where(y == 1.0, 1.0, -1.0)
        of_linear = np.empty((len(self.linear.members), len(y), self.linear.n_outputs))
        self.linear.learn(LabelledRows(X, np.ascontiguousarray(targets), relative, relative), of_linear)
        self._place_linear(members, of_linear)
        evidence, learned = relative, weight > 0.0
        if self.growth is not None:
            rows = self.growth.observe(X)
            evidence = np.where(self.growth.knows(rows.digests), 0.0, relative)
            self._follow(rows, y, relative, members)
            kept = Observed(rows.matrix[learned], rows.digests[learned])
            self.growth.add(kept, y[learned], relative[learned])
        mixed = self.mixture.learn(members, y, evidence)
        if self.growth is not None:
            self.frozen.judge(X, y, evidence, self.rows + np.cumsum(learned))
        self.rows += int(np.count_nonzero(learned))
        self._judge(members, mixed, y, evidence)
        return mixed

    def _judge(self, members: np.ndarray, mixed: np.ndarray, y: np.ndarray, evidence: np.ndarray) -> None:
        """Let windows know how members predicted, and whether the loss rises; then let happen what is due."""
        if self.growth is None:
            return
        judged = evidence > 0.0
        of_mixture = self.losses_of(mixed[judged][:, None], y[judged])
        self.block = running(self.block, np.column_stack([of_mixture, np.ones(len(of_mixture))]))
        if self.rows % BLOCK == 0 and self.block[1] > 0.0:
            if self.rises.add(self.block[0] / self.block[1]):
                for window in self.growth.windows:
                    window.wake(self.rows)
            self.block = np.zeros(2)
        for number, window in enumerate(self.growth.windows):
            if window.is_awake:
                losses = self.losses_of(members[judged], y[judged])
                awake = ~np.isnan(losses)
                self.losses[number] = running(self.losses[number], np.stack([np.where(awake, losses, 0.0), awake], 1))
                if self.rows == window.birth:
                    self._compare(number, window)
        takes_over = [pending.clock for pending in self.growth.pending if pending.takeover == self.rows]
        for number, window in enumerate(self.growth.windows):
            if window.length in takes_over:
                self.losses[number] = 0.0
        if self.growth.advance(self.rows):
            self.frozen.take(self)

    def _compare(self, number: int, window: Any) -> None:
        """Tell a window the mean losses of its members and of the others."""
        totals, rows = self.losses[number]
        means = np.divide(totals, rows, out=np.full(len(rows), np.inf), where=rows >= 0.5 * rows.max(initial=1.0))
        inside = np.zeros(len(rows), bool)
        inside[[place for slot, place in self.slots.items() if slot.clock == window.length]] = True
        others = ~inside
        others[[place for slot, place in self.slots.items() if slot.clock not in (0, window.length)]] = False
        window.judge(means[inside], means[others])

    def losses_of(self, predictions: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The loss (n, M) of predictions (n, M, K); NaN of those asleep."""
        if not self.is_of_numbers:
            return -np.take_along_axis(predictions, y.astype(np.int64)[:, None, None], axis=2)[:, :, 0]
        n, n_members, _ = predictions.shape
        targets = np.ascontiguousarray(np.repeat(y, n_members))
        losses = measured(regression(self.loss), targets, np.nan_to_num(predictions).reshape(-1, 1))
        return np.where(np.isnan(predictions[:, :, 0]), np.nan, np.minimum(losses, 1e300).reshape(n, n_members))

    def predictions_of_members(self, X: Any) -> np.ndarray:
        """What all members predict of rows, (n, M, K)."""
        members = self._asleep(n_rows(X))
        self._place_linear(members, self.linear.predict(X))
        if self.growth is not None and self.growth.awake:
            nothing = np.zeros(n_rows(X))
            self._follow(Observed(self.growth.columns.matrix(X), np.empty(0, np.uint64)), nothing, nothing, members)
        return members

    def _asleep(self, n: int) -> np.ndarray:
        return np.full((n, len(self.names), max(self._width, 1)), np.nan)

    def _place_linear(self, members: np.ndarray, predictions: np.ndarray) -> None:
        for place, of_member in zip(self.linear_places, predictions, strict=True):
            members[:, place] = self._as_mixed(np.nan_to_num(of_member), self.rows)

    def _as_mixed(self, predictions: np.ndarray, rows: int) -> np.ndarray:
        return predictions if self.is_of_numbers else log_probabilities(predictions, self._width, rows)

    def _follow(self, rows: Observed, y: np.ndarray, weight: np.ndarray, members: np.ndarray) -> None:
        """Let all generations awake predict rows, and learn those that they do not remember."""
        if self.growth is None:
            return
        places = self.growth.places

        def of_generation(clock: int, kind: str, age: int, generation: Generation) -> None:
            columns = np.ascontiguousarray(rows.matrix[:, places(generation)])
            learned = np.where(generation.knows(rows.digests), 0.0, weight) if len(rows.digests) else weight
            for version, predictions in enumerate(generation.follow(columns, y, learned)):
                place = self.slots.get(Slot(clock, kind, age, version))
                if place is not None:
                    members[:, place] = self._as_mixed(predictions, generation.rows)

        threads.each(of_generation, self.growth.generations(), len(y))

    @property
    def nbytes(self) -> int:
        """Bytes of all but the linear members."""
        return (self.growth.nbytes if self.growth is not None else 0) + self.mixture.nbytes


def running(start: np.ndarray, terms: np.ndarray) -> np.ndarray:
    """Sums over the first axis of terms, added one by one, so that they do not depend on how rows come in blocks."""
    return np.cumsum(np.concatenate([start[None], terms]), axis=0)[-1]

"""The members of the pool: online learners and generations, each with places in the mixture."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.part import LEARNED, Part, argument, child, number
from tunefree.core.rows import Block, n_rows
from tunefree.core.schema import COUNT, Flag, Sequence
from tunefree.generations.generation import Generation
from tunefree.generations.seen import Seen
from tunefree.losses.contract import has_log_link
from tunefree.losses.objectives import Objective, measured
from tunefree.pool.groups import starts_of_runs
from tunefree.pool.growth import Growth, Observed
from tunefree.pool.linear_group import LinearGroup, name_of
from tunefree.pool.member_rows import predictions_of
from tunefree.pool.options import MEMBERS, OF_TABLES, OF_TEXTS
from tunefree.pool.slots import WHOLE, slots_of
from tunefree.pool.windows import LENGTHS

LARGEST_LOSS = 1e300
MOST_MEMBERS = 1000


class Ahead(NamedTuple):
    """Predictions of rows of some groups before any of these rows is learned."""

    predictions: np.ndarray  # (n, M, K) by members
    mixed: np.ndarray  # (n, K)
    is_known: np.ndarray  # (n,) whether a row of the group was learned before
    groups: np.ndarray  # (n,) uint64
    rows: int  # learned before

    def part(self, start: int, stop: int) -> Ahead:
        """The rows from ``start`` up to ``stop``."""
        return Ahead(*(array[start:stop] for array in self[:4]), self.rows)


class Members(Part):
    """Online learners, a group of linear ones, and generations, whose trees are of some kinds.

    There are ``n_classes`` known from the start, 0 for numbers, which have a ``loss``. The ``names`` are in the order
    of the places in the mixture, and ``slots`` has the place of each slot. There is no ``growth`` from the birth on at
    which rows were found to be those of texts. ``seen`` has the latest observations, or groups, that were learned.
    ``signs`` are those of monotone columns, by their features: 1 where predictions rise, -1 where they fall. With any,
    nothing learns on leaves, and the mixture keeps the order of its members.
    """

    linear, n_classes, loss, signs = argument(), argument(), argument(), argument()
    slots, names = argument(), argument()
    online_places: list[int] = number(LEARNED, Sequence(COUNT, MOST_MEMBERS))
    has_groups = number(LEARNED, Flag())
    seen = child(Seen, LEARNED)
    growth: Growth | None = child(Growth, LEARNED, may_be_none=True)

    def __init__(
        self, linear: LinearGroup, n_classes: int, loss: Any, kinds: tuple[str, ...], signs: dict[int, int]
    ) -> None:
        self.linear, self.n_classes, self.loss, self.signs = linear, n_classes, loss, signs
        self.slots = {slot: place for place, slot in enumerate(slots_of(LENGTHS, kinds, not signs), len(MEMBERS))}
        self.names = [*map(name_of, MEMBERS), *(slot.name for slot in self.slots)]
        self.online_places = [MEMBERS.index(member.setting) for member in linear.members]
        self.seen, self.has_groups = Seen(), False
        self.growth = Growth(self.width, loss, self.slots, signs)

    @property
    def width(self) -> int:
        """Classes that the mixture knows, at least two; 0 for numbers."""
        return 0 if self.loss is not None else max(self.n_classes, 2)

    @property
    def predicts_logarithms(self) -> bool:
        """Whether predictions are logarithms of numbers."""
        return has_log_link(self.loss)

    def begin(self, X: Block, has_groups: bool) -> None:
        """Go on with the linear members that are for rows like these: one kind is for words, the other for columns."""
        self.has_groups = has_groups
        others = OF_TEXTS if X.numbers.shape[1] or X.codes.shape[1] else OF_TABLES
        self.keep([m for m, member in enumerate(self.linear.members) if member.setting not in others])

    def keep(self, stays: list[int]) -> None:
        """Go on with these of the online members; the places of the others in the mixture sleep."""
        self.linear.keep(stays)
        self.online_places = [self.online_places[m] for m in stays]

    @property
    def places_as_born(self) -> list[int]:
        """The places in the mixture of generations of all rows as they were born."""
        return [place for slot, place in self.slots.items() if slot.clock == WHOLE and slot.is_as_born]

    @property
    def places_awake(self) -> list[int]:
        """The places in the mixture of members that predict."""
        awake = self.growth.awake if self.growth is not None else {}
        ages = {key: len(same_kind) for key, same_kind in awake.items()}
        slots = [place for slot, place in self.slots.items() if slot.age < ages.get((slot.clock, slot.kind), 0)]
        return [*self.online_places, *slots]

    def add_class(self, objective: Any, n_outputs: int) -> None:
        """Add a class, from which on online members have ``n_outputs`` outputs and this objective."""
        self.n_classes += 1
        self.linear.add_class(objective, n_outputs)
        if self.growth is not None:
            self.growth.n_classes = self.width
            for *_, generation in self.generations():
                generation.know(self.width)

    def know_groups(self, weight: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Which rows (n,) are of groups that are known, and remember the groups of rows of a weight above 0."""
        starts = starts_of_runs(groups)
        run_groups = groups[starts]
        is_known = np.zeros(len(starts), bool) if self.growth is None else self.growth.remembers(run_groups)
        is_known |= self.seen.add(run_groups, np.maximum.reduceat(weight, starts))
        return np.repeat(is_known, np.diff(np.append(starts, len(groups))))

    def observe(self, X: Any, weight: np.ndarray, ahead: Ahead | None = None) -> tuple[Observed, np.ndarray]:
        """See rows that are learned next: as generations see them, and which (n,) are known.

        Rows of groups were predicted ``ahead``.
        """
        if self.growth is None:
            observed = Observed(np.empty((n_rows(X), 0)), np.zeros(n_rows(X), np.uint64))
        else:
            matrix = self.growth.columns.matrix(X, weight > 0.0)
            observed = Observed(matrix, self.growth.columns.digests(X, matrix))
        if ahead is not None:
            return observed._replace(digests=ahead.groups), ahead.is_known
        if self.growth is None:
            return observed, np.zeros(len(weight), bool)
        is_known = self.growth.remembers(observed.digests)
        return observed, is_known | self.seen.add(observed.digests, weight)

    def predict(self, X: Any, matrix: np.ndarray | None = None) -> np.ndarray:
        """Predictions (n, M, K) of rows to come; generations see ``matrix``."""
        matrix = self.matrix(X) if matrix is None else matrix
        return predictions_of(self, self.linear.present(X).predict(X), self.generations(), matrix)

    def generations(self) -> Iterable[tuple[int, str, int, Generation]]:
        """Clock, kind, age and generation of all awake."""
        return () if self.growth is None else self.growth.generations()

    def reduce(self) -> None:
        """Keep only the state for predictions; the newest generation has the digests of all rows that are known."""
        super().reduce()
        for *_, newest in list(self.generations())[:1]:
            newest.observations = np.union1d(newest.observations, self.seen.digests)
            self.seen.put(self.seen.digests[:0])

    def matrix(self, X: Any) -> np.ndarray:
        """Rows to come (n, c) as generations see them; without columns where there are none."""
        return np.empty((n_rows(X), 0)) if self.growth is None else self.growth.columns.matrix(X)

    def asleep(self, n: int) -> np.ndarray:
        """Predictions (n, M, K) where all sleep."""
        return np.full((n, len(self.names), max(self.width, 1)), np.nan)

    def losses(self, predictions: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The loss (n, M) of predictions (n, M, K); NaN of those asleep."""
        if self.loss is None:
            return -np.take_along_axis(predictions, y.astype(np.int64)[:, None, None], axis=2)[:, :, 0]
        n, n_members, _ = predictions.shape
        targets = np.ascontiguousarray(np.repeat(y, n_members))
        losses = measured(Objective("regression", self.loss), targets, np.nan_to_num(predictions).reshape(-1, 1))
        asleep = np.isnan(predictions[:, :, 0])
        return np.where(asleep, np.nan, np.minimum(losses, LARGEST_LOSS).reshape(n, n_members))

"""The generations awake: born at fixed row numbers, grown in parallel to the loop over rows, and taking over later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any

import numpy as np

from tunefree.core import threads
from tunefree.core.part import FIXED, LEARNED, RECORD, Part, argument, child, children, number, size_of
from tunefree.core.schema import COUNT, Number, Record, Sequence, Text
from tunefree.generations import clocks
from tunefree.generations.clocks import AGES, Event
from tunefree.generations.columns import Columns
from tunefree.generations.generation import Birth, Generation
from tunefree.generations.inheritance import Inherited
from tunefree.generations.problem import Settings
from tunefree.generations.reservoir import FEWEST_KEPT, Reservoir
from tunefree.losses.contract import has_log_link
from tunefree.pool.ledger import LearnedRows
from tunefree.pool.slots import LATEST_LINEAR_ROWS, LINEAR, MOST_KINDS, MOST_LINEAR_ROWS, TREES, WHOLE, Slot, kinds_in
from tunefree.pool.windows import LENGTHS, NEVER, Window

RECENT = 0.95  # a generation born at this fraction of all rows or later is the last one
RECENT_OF_SAMPLE = 0.75  # likewise if it was grown on a full sample

MOST_CLASSES = 1000  # above, no trees are grown: one tree for each class takes longer than all other members


class Pending(Part):
    """Generations that are being grown, by kind, and the row from which they predict."""

    loss = argument()
    rows, takeover, clock = number(FIXED, COUNT), number(FIXED, Number(1, 2**62, whole=True)), number(FIXED, COUNT)
    grown: dict[str, Future[Generation | None]] = argument()
    _generations = children(
        Generation,
        LEARNED,
        make=lambda pending, _: Generation.bare(loss=pending.loss),
        read=lambda pending: pending.generations,
        write=lambda pending, grown: setattr(pending, "grown", {kind: _finished(one) for kind, one in grown.items()}),
    )

    def __init__(self, rows: int, takeover: int, clock: int, loss: Any, grown: dict[str, Any]) -> None:
        self.rows, self.takeover, self.clock, self.loss, self.grown = rows, takeover, clock, loss, grown

    @property
    def generations(self) -> dict[str, Generation]:
        """The generations that were grown successfully; waits for them."""
        results = {kind: future.result() for kind, future in self.grown.items()}
        return {kind: generation for kind, generation in results.items() if generation is not None}


def _finished(generation: Generation) -> Future[Generation | None]:
    return threads.now(lambda: generation)


def with_ages(generations: Iterable[Generation]) -> Iterator[tuple[int, str, int, Generation]]:
    """Clock, kind, age and generation, for generations that come with the newest of each clock and kind first."""
    counts: dict[tuple[int, str], int] = {}
    for generation in generations:
        key = generation.clock, generation.kind
        counts[key] = counts.get(key, -1) + 1
        yield *key, counts[key], generation


def settings_of_trees(growth: Growth | None) -> dict[str, Settings]:
    """Settings of the newest trees of all rows, by kind."""
    newest = {} if growth is None else {kind: growth.generations_of(WHOLE, kind)[:1] for kind in TREES}
    return {kind: generation.inherited.settings for kind, generations in newest.items() for generation in generations}


class Growth(Part):
    """The generations of all clocks, and the rows that they are grown on.

    ``slots`` maps slots to positions in the mixture, after the linear members. There are at most ``n_ages`` generations
    ``awake`` of each clock and kind, the newest first. The clock of all rows is 0, and the clock of a window is its
    length. ``kinds`` are the kinds of trees to grow. It ``has_texts`` if the latest birth found that rows are texts,
    which trees cannot use. ``signs`` are the signs of monotone columns by feature.
    """

    n_classes, loss, signs, clocks_of_places = argument(), argument(), argument(), argument()
    has_texts = argument()
    next: Event = number(LEARNED, Record(Event))
    columns = child(Columns, LEARNED)
    whole = child(Reservoir, RECORD, blank=lambda _: Reservoir())
    recent = child(Reservoir, RECORD, blank=lambda _: Reservoir(max(LENGTHS)))
    windows = children(Window, LEARNED, make=lambda _, header: Window(header["length"]))
    awake: list[Generation] = children(Generation, LEARNED, make=lambda growth, _: Generation.bare(loss=growth.loss))
    pending: list[Pending] = children(
        Pending, RECORD, blank=lambda _: [], make=lambda growth, _: Pending.bare(loss=growth.loss)
    )
    kinds: tuple[str, ...] = number(LEARNED, Sequence(Text(), MOST_KINDS))
    n_ages = number(LEARNED, Number(1, len(AGES), whole=True))

    def __init__(self, n_classes: int, loss: Any, slots: dict[Slot, int], signs: dict[int, int]) -> None:
        self.n_classes, self.loss, self.signs = n_classes, loss, signs
        self.columns, self.whole, self.recent = Columns(), Reservoir(), Reservoir(max(LENGTHS))
        self.clocks_of_places = np.array([WHOLE] * min(slots.values()) + [slot.clock for slot in slots])
        self.windows = [*map(Window, LENGTHS)]
        self.awake, self.pending, self.kinds = [], [], kinds_in(slots)
        self.n_ages, self.has_texts = len(AGES), False
        self.next = clocks.births(0)

    def event(self) -> int:
        """The number of learned rows at the next birth or takeover."""
        births = self.next.birth, *(window.birth for window in self.windows)
        return min([*births, *(pending.takeover for pending in self.pending)])

    def generations(self) -> Iterator[tuple[int, str, int, Generation]]:
        """Clock, kind, age and generation, for each generation awake."""
        return with_ages(self.awake)

    def generations_of(self, clock: int, kind: str) -> list[Generation]:
        """The generations awake of a clock and kind, the newest first."""
        return [generation for generation in self.awake if (generation.clock, generation.kind) == (clock, kind)]

    def remembers(self, digests: np.ndarray) -> np.ndarray:
        """A mask (n,) of rows whose digests are known to some generation awake."""
        known = np.zeros(len(digests), bool)
        births = {(one.clock, one.rows): one for one in self.awake if len(one.observations)}
        for generation in births.values():  # generations of one birth were grown on the same rows
            known |= generation.knows(digests)
        return known

    def observe(self, rows: LearnedRows) -> None:
        """Keep rows of a weight above 0 for later generations."""
        if self.columns.keys:
            learned: Any = slice(None) if rows.weight.all() else rows.weight > 0.0  # a slice saves copies
            matrix, digests, y, weight = (array[learned] for array in (rows.matrix, rows.digests, rows.y, rows.weight))
            for reservoir in (self.whole, self.recent) if self.windows else (self.whole,):
                reservoir.add(matrix, y, weight, digests, self.columns.fills)

    def advance(self, rows: int, weights: np.ndarray) -> bool:
        """Carry out births and takeovers due by this row; returns whether generations of all rows took over.

        ``weights`` (M,) of members are from the base mixture, NaN for members that sleep.
        """
        due = [pending.clock for pending in self.pending if pending.takeover <= rows]
        self._take_over(rows)
        if self.next.birth <= rows:
            self._give_birth(WHOLE, Event(rows, max(rows, self.next.takeover)))
            due += [WHOLE] * (self.next.takeover <= rows)
            self.next = clocks.births(rows)
        for window in [window for window in self.windows if window.birth <= rows]:
            event = window.decide(rows, weights, self.clocks_of_places == window.length)
            if event is None:
                self.awake = [generation for generation in self.awake if generation.clock != window.length]
            else:
                self._give_birth(window.length, event)
        self._take_over(rows)
        if rows >= LATEST_LINEAR_ROWS:
            self.awake = [generation for generation in self.awake if generation.kind != LINEAR]
        return WHOLE in due

    def stop(self) -> None:
        """Stop the births of generations."""
        self.pending, self.next = [], Event(NEVER, NEVER)
        for window in self.windows:
            window.stop()

    def only_newest(self) -> None:
        """Keep only the newest generations of all rows, and no rows; no more generations are born."""
        self.stop()
        self.windows = []
        self.whole, self.recent = Reservoir(), Reservoir(max(LENGTHS))
        self.awake = [generation for clock, _, age, generation in self.generations() if clock == WHOLE and age == 0]

    def resume(self, rows: int) -> None:
        """After a stop, schedule births as if so many rows had been learned one after the other."""
        self.next = clocks.births(rows)
        if rows > self.whole.rows:
            self.whole.keep(self.whole.n_kept)
            self.whole.rows = rows  # the reservoir counts as a uniform sample of all these rows
        for window in self.windows:
            window.is_awake, window.birth = False, rows + 2 * window.length

    def finish(self, rows: int) -> None:
        """Grow the last generation on all kept rows; pending generations of windows are dropped.

        If the newest generation was born recently, it is the last one: if it is still growing, it takes over now.
        """
        self.pending = [pending for pending in self.pending if pending.clock == WHOLE]
        awake = [generation.rows for generation in self.generations_of(WHOLE, TREES[0])]
        births = [birth.rows for birth in self.pending if TREES[0] in birth.generations]
        newest = max([*awake, *births], default=0)
        is_sample = self.whole.rows > self.whole.capacity and newest >= self.whole.capacity
        is_balanced = has_log_link(self.loss)  # the total predicted by trees of all rows is needed
        if newest >= (RECENT_OF_SAMPLE if is_sample else 1.0 if is_balanced else RECENT) * rows:
            for pending in self.pending:
                pending.takeover = rows
        else:
            if rows >= clocks.FIRST:
                self._give_birth(WHOLE, Event(rows, rows), at_last=True)
            self.pending = [pending for pending in self.pending if pending.takeover == rows]
        self._take_over(rows)

    def reduce(self) -> None:
        """Keep only the state for predictions: frozen generations, and digests of known rows."""
        observations = [generation.observations for generation in self.awake]
        super().reduce()
        self.awake = [generation.frozen() for generation in self.awake]
        for newest in self.awake[:1]:
            newest.observations = np.unique(np.concatenate(observations))

    def _inherited(self, clock: int, kind: str) -> Inherited:
        """Settings inherited from the newest generation of a clock and kind, even if it does not predict yet."""
        births = [birth.generations for birth in self.pending if birth.clock == clock]
        newest = [generations[kind] for generations in births if kind in generations]
        return next((one.inherited for one in [*newest, *self.generations_of(clock, kind)]), Inherited())

    def _give_birth(self, clock: int, event: Event, at_last: bool = False) -> None:
        column_keys = self.columns.grown_on()
        self.has_texts = column_keys is None
        if not column_keys or not self.whole.rows or self.n_classes > MOST_CLASSES:
            return
        for reservoir in (self.whole, self.recent):
            reservoir.widen(self.columns.completed(reservoir.columns))
        keys = np.sort(np.array(column_keys, np.int64))
        kept = (self.recent if clock else self.whole).kept(clock, self.columns.places(keys))
        kinds = (*self.kinds, *((LINEAR,) if clock == WHOLE and event.birth <= MOST_LINEAR_ROWS else ()))
        inherited = {kind: self._inherited(clock, kind) for kind in kinds}
        # No trials on windows, since the next rows are too similar to the latest ones; nor if memory is short, since
        # trials may make trees larger.
        has_trials = clock == WHOLE and not at_last and bool(self.windows)
        birth = Birth(event.birth, clock, keys, kept, self.n_classes, self.loss, self.signs)
        submit = threads.beside if at_last or event.takeover > event.birth else threads.now
        grown = {kind: submit(Generation.grown, birth, kind, inherited[kind], has_trials) for kind in kinds}
        self.pending.append(Pending(*event, clock, self.loss, grown))

    def _take_over(self, rows: int) -> None:
        for pending in [pending for pending in self.pending if pending.takeover <= rows]:
            for kind, generation in pending.generations.items():
                generation.know(self.n_classes)
                before = self.generations_of(pending.clock, kind)
                self.awake.insert(self.awake.index(before[0]) if before else len(self.awake), generation)
        self.awake = [generation for *_, age, generation in self.generations() if age < self.n_ages]
        self.pending = [pending for pending in self.pending if pending.takeover > rows]

    def put_to_sleep(self) -> str | None:
        """Free memory by giving up the least useful part; returns its name, None if only boosted trees are left."""
        if (n := self.whole.n_kept // 2) >= FEWEST_KEPT:
            self.whole.keep(n)
            return f"half of the rows that trees are grown on; {n:,} are kept"
        self.pending = []
        if self.windows:
            self.windows, self.recent = [], Reservoir(max(LENGTHS))
            self.awake = [generation for generation in self.awake if generation.clock == WHOLE]
            return "the windows of the latest rows"
        if self.n_ages > 1:
            self.n_ages = 1
            self.awake = [generation for *_, age, generation in self.generations() if age == 0]
            return "the previous generations"
        if len(self.kinds) > 1:
            others, self.kinds = self.kinds[1:], TREES[:1]
            self.awake = [generation for generation in self.awake if generation.kind in self.kinds]
            return f"the {' and '.join(others)} trees"
        return None

    @property
    def nbytes(self) -> int:
        """Bytes of its parts, and of a copy of the kept rows for growing; pending generations do not count."""
        size = size_of([self.columns, self.whole, self.recent, self.awake])
        return size + sum(map(size_of, self.whole.kept(1).values())) * self.whole.n_kept

"""First occurrences: a feature gets statistics after its first few occurrences, which are replayed then.

Two thirds of the words and pairs of a text occur once, and most others a few times. The weight of a new feature is 0,
so the entry of its first occurrence does not change the margins of its row, and is left out of the row. Its value is
kept, and members keep the slopes of the row in a log. Members can then replay the occurrence
(:func:`tunefree.learners.contract.replay`). A feature of FEW occurrences gets a slot, which is its index in all
statistics, and its occurrences are replayed. Before that it visits: while rows that have it again are learned, it has
a slot in which its occurrences were replayed, and then only the new occurrences are kept. A margin has statistics of
its own for each feature, but an occurrence is kept once for all margins; so where there is one margin, the second
occurrence is enough for a slot. Each row is predicted as by members that learn all entries of all rows. This holds for
new rows too: weights of features without a slot are computed from the log when they are needed.

The log is bounded, and has the rows that are learned with the first occurrence of a feature. A feature that occurs
again in another row gets a slot, and so does one that occurred more than once when its first occurrence leaves the
log. A feature that occurred once, and not again while that was in the log, gets a slot without a replay. The first
FIRST features have slots from the start, which are their own numbers.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Annotated, Any, NamedTuple, Self

import numpy as np

from tunefree.compiled.functions import compiled
from tunefree.core.errors import ModelError
from tunefree.core.part import FIXED, Part, array, children, number
from tunefree.core.rows import Block, Rows, n_rows, reach, sparse
from tunefree.core.schema import COUNT, Number, Sequence

FIRST = 1024  # features that have slots from the start: more than Newton's matrices reserve capacity for
FEW = 5  # occurrences after which a feature has a slot, where there are several margins
LOGGED = 2**16  # rows in a log: more than members learn at a time
MOST = 2**62
NO_SLOT, VISITS = -1, -2  # in ``slot_of``: the feature occurred; it occurs in the rows that are being met
FEATURE, SERIAL, BEFORE, ORDINAL = 0, 1, 2, 3  # columns of the occurrences that are kept


class Known(NamedTuple):
    """Occurrences of features from number ``first`` on."""

    # 0 of one never observed, -1 of one that has no slot yet; those below ``first`` have their own numbers
    slot_of: Annotated[np.ndarray, "int32[features]"]
    serials: Annotated[np.ndarray, "int32[features]"]  # serial number of the row of the first occurrence
    latest: Annotated[np.ndarray, "int32[features]"]  # the latest of the occurrences that are kept, from 1; 0 for none
    counts: Annotated[np.ndarray, "int64[3]"]  # indices; rows with a first occurrence; 1 if these get slots at once

    @classmethod
    def create(cls, n_features: int) -> Self:
        """The state before any feature occurred."""
        slot_of, serials, latest = np.zeros((3, n_features), np.int32)
        return cls(slot_of, serials, latest, np.zeros(3, np.int64))


class Kept(NamedTuple):
    """Occurrences that are kept, in the order of the rows."""

    # of each its feature; the serial number of its row; the one before of the same feature, from 1, or 0; and how many
    # of the same feature there are up to here
    links: Annotated[np.ndarray, "int32[kept, 4]"]
    counts: Annotated[np.ndarray, "int64[2]"]  # how many there are; and whose rows have left the log

    @classmethod
    def create(cls, n_kept: int) -> Self:
        """No occurrences, with capacity for ``n_kept``."""
        return cls(np.zeros((n_kept, 4), np.int32), np.zeros(2, np.int64))


class Occurrences(NamedTuple):
    """Occurrences in some rows, in order, of features without a slot."""

    entries: Annotated[np.ndarray, "int64[occurrences]"]  # of those that are kept, places among the words; -1 of codes
    again: Annotated[np.ndarray, "int64[occurrences]"]  # features that get a slot, whose occurrences are replayed
    rows: Annotated[np.ndarray, "int64[occurrences]"]  # serial numbers of the rows where they get it
    visitors: Annotated[np.ndarray, "int64[occurrences]"]  # features that visit; some of them get a slot later
    counts: Annotated[np.ndarray, "int64[3]"]  # of entries; of features that get a slot; of visitors

    @classmethod
    def create(cls, n_entries: int, n_leaving: int) -> Self:
        """No occurrences, with capacity for ``n_entries`` entries and ``n_leaving`` that may leave the log."""
        entries, again, rows, visitors = np.empty((4, n_entries + n_leaving), np.int64)
        return cls(entries, again, rows, visitors, np.zeros(3, np.int64))


class Limits(NamedTuple):
    """Limits that decide when features get slots."""

    first: int  # features from this number on have none from the start
    few: int  # occurrences after which they have one
    logged: int  # rows in the log
    begun: int  # serial number of the first of the rows that are met


def keep(known, kept, row, feature, entry, occurrences):
    """Keep an occurrence."""
    link, before = kept.links[kept.counts[0]], known.latest[feature]
    link[FEATURE], link[SERIAL], link[BEFORE] = feature, row, before
    link[ORDINAL] = kept.links[before - 1, ORDINAL] + 1 if before > 0 else 1
    kept.counts[0] += 1
    known.latest[feature] = kept.counts[0]
    occurrences.entries[occurrences.counts[0]] = entry
    occurrences.counts[0] += 1


def give_slot(known, limits, row, feature, occurrences):
    """Give a feature a slot, and replay its occurrences before the present rows."""
    known.slot_of[feature] = limits.first + known.counts[0]
    known.counts[0] += 1
    if known.serials[feature] < limits.begun:
        occurrences.again[occurrences.counts[1]], occurrences.rows[occurrences.counts[1]] = feature, row
        occurrences.counts[1] += 1


def meet_feature(known, kept, limits, row, is_learned, is_logged, feature, entry, occurrences):
    """Meet a feature in a row of this serial number, which is learned or not, and is in the log or not."""
    if known.slot_of[feature] > 0 or (known.slot_of[feature] == 0 and not is_learned):
        return
    if known.slot_of[feature] == 0:
        known.serials[feature] = row
        if known.counts[2] == 1:
            give_slot(known, limits, row, feature, occurrences)
        else:
            known.slot_of[feature] = NO_SLOT
            keep(known, kept, row, feature, entry, occurrences)
        return
    n_kept = kept.links[known.latest[feature] - 1, ORDINAL]
    has_left = row - known.serials[feature] > limits.logged
    if has_left or not is_logged or n_kept + 1 >= limits.few:
        give_slot(known, limits, row, feature, occurrences)
        return
    keep(known, kept, row, feature, entry, occurrences)
    if known.slot_of[feature] == NO_SLOT:
        known.slot_of[feature] = VISITS
        occurrences.visitors[occurrences.counts[2]] = feature
        occurrences.counts[2] += 1


def leave_log(known, kept, limits, row, occurrences):
    """Give slots to features that occurred more than once and whose first row leaves the log."""
    while kept.counts[1] < kept.counts[0] and kept.links[kept.counts[1], SERIAL] <= row - limits.logged:
        place = kept.counts[1]
        feature = kept.links[place, FEATURE]
        if kept.links[place, BEFORE] == 0 and known.slot_of[feature] < 0 and known.latest[feature] > place + 1:
            give_slot(known, limits, row, feature, occurrences)
        kept.counts[1] += 1


def n_without_slot(known, features, start, stop):
    """The number of features that have no slot."""
    n = 0
    for e in range(start, stop):
        n += 1 if known.slot_of[features[e]] <= 0 else 0
    return n


@compiled
def meet_rows(
    known: Known,
    kept: Kept,
    first: int,
    few: int,
    logged: int,
    weight: Annotated[np.ndarray, "float64[rows]"],
    codes: Annotated[np.ndarray, "int32[rows, code_columns]"],
    pointers: Annotated[np.ndarray, "int64[ends]"],
    features: Annotated[np.ndarray, "int32[words]"],
    values: Annotated[np.ndarray, "float64[words]"],
    serials: Annotated[np.ndarray, "int64[rows]"],
    occurrences: Occurrences,
) -> None:
    """Observe the features of rows, which get serial numbers: a row without a first occurrence has the next one's."""
    limits, is_settled = Limits(first, few, logged, known.counts[1]), known.counts[2] == 1
    for i in range(len(weight)):
        row, is_learned, n_slots = known.counts[1], weight[i] > 0.0, known.counts[0]
        serials[i], n_new, n_open = row, 0, n_without_slot(known, features, pointers[i], pointers[i + 1])
        for c in range(codes.shape[1]):
            if codes[i, c] >= first:
                n_open += 1 if known.slot_of[codes[i, c]] <= 0 else 0
                n_new += 1 if known.slot_of[codes[i, c]] == 0 else 0
        if n_open == 0:  # as in most rows, once most features are known
            continue
        for e in range(pointers[i], pointers[i + 1]):
            if features[e] >= first and values[e] != 0.0:
                n_new += 1 if known.slot_of[features[e]] == 0 else 0
        is_logged = n_new > 0 and is_learned and not is_settled
        for c in range(codes.shape[1]):
            if codes[i, c] >= first:
                meet_feature(known, kept, limits, row, is_learned, is_logged, codes[i, c], -1, occurrences)
        for e in range(pointers[i], pointers[i + 1]):
            if features[e] >= first and values[e] != 0.0:
                meet_feature(known, kept, limits, row, is_learned, is_logged, features[e], e, occurrences)
        if is_logged:
            leave_log(known, kept, limits, row, occurrences)
        if is_logged or (is_settled and known.counts[0] > n_slots):
            known.counts[1] += 1


def slot_in(known, first, serial, is_learned, feature):
    """The slot of a feature in a row; 0 if it has none there. A row that is not learned does not see later ones."""
    if feature < first:
        return feature
    if feature >= len(known.slot_of) or known.slot_of[feature] <= 0:
        return 0
    return known.slot_of[feature] if is_learned or known.serials[feature] < serial else 0


@compiled
def gather(
    known: Known,
    kept: Kept,
    features: Annotated[np.ndarray, "int64[chosen]"],
    slots: Annotated[np.ndarray, "uint32[chosen]"],
    begun: int,
    logged: int,
    slots_of: Annotated[np.ndarray, "uint32[occurrences]"],
    sources: Annotated[np.ndarray, "int64[occurrences]"],
    places: Annotated[np.ndarray, "int64[occurrences]"],
) -> int:
    """Write the occurrences of features in rows with a serial number below ``begun``, in their order: the slots of the
    features, where rows are in the log, and where the occurrences are; returns how many there are."""
    n = 0
    for i in range(len(features)):
        latest = known.latest[features[i]]
        while latest > 0 and kept.links[latest - 1, SERIAL] >= begun:
            latest = kept.links[latest - 1, BEFORE]
        written = n + kept.links[latest - 1, ORDINAL] if latest > 0 else n
        n = written
        while latest > 0:
            written -= 1
            slots_of[written], places[written] = slots[i], latest - 1
            sources[written] = kept.links[latest - 1, SERIAL] % logged
            latest = kept.links[latest - 1, BEFORE]
    return n


@compiled
def place_rows(
    known: Known,
    first: int,
    serials: Annotated[np.ndarray, "int64[rows]"],
    weight: Annotated[np.ndarray, "float64[rows]"],
    codes: Annotated[np.ndarray, "int32[rows, code_columns]"],
    pointers: Annotated[np.ndarray, "int64[ends]"],
    features: Annotated[np.ndarray, "int32[words]"],
    values: Annotated[np.ndarray, "float64[words]"],
    placed_codes: Annotated[np.ndarray, "int32[rows, code_columns]"],
    placed_pointers: Annotated[np.ndarray, "int64[ends]"],
    slots: Annotated[np.ndarray, "int32[words]"],
    places: Annotated[np.ndarray, "int64[words]"],
    left_out: Annotated[np.ndarray, "int64[rows]"],
) -> int:
    """Write rows with slots instead of features; returns how many words are kept."""
    n = 0
    for i in range(len(weight)):
        placed_pointers[i], left_out[i] = n, 0
        for c in range(codes.shape[1]):
            placed_codes[i, c] = slot_in(known, first, serials[i], weight[i] > 0.0, codes[i, c])
            left_out[i] += 1 if placed_codes[i, c] == 0 and codes[i, c] > 0 else 0
        for e in range(pointers[i], pointers[i + 1]):
            if features[e] < first or values[e] != 0.0:
                slot = slot_in(known, first, serials[i], weight[i] > 0.0, features[e])
                if slot > 0:
                    slots[n], places[n] = slot, e
                    n += 1
                else:
                    left_out[i] += 1
    placed_pointers[len(weight)] = n
    return n


def links(features: np.ndarray, serials: np.ndarray, latest: np.ndarray) -> np.ndarray:
    """Occurrences as they are kept, by their features and the serial numbers of their rows.

    Writes the last occurrence of each feature to ``latest``.

    >>> latest = np.zeros(4, np.int32)
    >>> links(np.array([3, 1, 3, 3]), np.array([0, 0, 1, 4]), latest)[:, 2:].tolist(), latest
    ([[0, 1], [0, 1], [1, 2], [3, 3]], array([0, 2, 0, 4], dtype=int32))
    """
    order = np.argsort(features, kind="stable")
    before, ordinals = np.zeros((2, len(features)), np.int32)
    begins = np.flatnonzero(np.diff(features[order], prepend=-1))
    lengths = np.diff(begins, append=len(features))
    before[order[1:]] = order[:-1] + 1
    before[order[begins]] = 0
    ordinals[order] = np.arange(len(features)) - np.repeat(begins, lengths) + 1
    ends = order[begins + lengths - 1]
    latest[features[ends]] = ends + 1
    return np.column_stack([features, serials, before, ordinals]).astype(np.int32)


class Past(NamedTuple):
    """Occurrences that are replayed, in the order of the rows for each feature."""

    slots: np.ndarray  # (r,) uint32: of the features
    sources: np.ndarray  # (r,) int64: where in the log the rows are in which the features were met
    places: np.ndarray  # (r,) int64: among the occurrences that are kept


class Met(NamedTuple):
    """Rows with slots instead of features, and the occurrences that are kept or replayed."""

    X: Any  # block of rows, their values unchanged
    words: np.ndarray  # (e,) places of their words among those of the rows as given
    left_out: np.ndarray  # (n,) int64: entries of each row that are left out
    places: np.ndarray  # (n,) int64: where in the log each row is kept; -1 for nowhere
    entries: np.ndarray  # (f,) int64: of the latest occurrences that are kept, places among the words of the rows as
    #   given; -1 for those of codes
    past: Past  # what is replayed before the rows are learned
    past_rows: Rows  # that, as rows of one entry each, their values as given
    n_slots: int  # there is to be room for
    visited: slice  # slots of features that visit, whose statistics are forgotten once the rows are learned
    n_partial: int  # features with a slot that were not corrected by a replay of their first occurrence, by now


class Alone(NamedTuple):
    """Features of some rows that have no slot, though they occurred, numbered from 1."""

    features: np.ndarray  # (d,) int64: by number
    past: Past  # their occurrences; the slots are their numbers
    pointers: np.ndarray  # (n + 1,) int64: into the entries of the rows that have such features
    numbers: np.ndarray  # (e,) int32: of the features
    places: np.ndarray  # (e,) int64: of the entries among the words of the rows; -1 for those of codes

    def rows(self, X: Block) -> Block:
        """These entries of the rows, as a view shows them."""
        return sparse(self.pointers, self.numbers, _values(X, self.places), intercept=False)


def _values(X: Block, places: np.ndarray) -> np.ndarray:
    """The values of entries, by their places among the words of rows; 1 for codes, which have the place -1."""
    return np.where(places < 0, 1.0, np.append(X.values, 1.0)[places])


def with_room(log: np.ndarray, n_rows: int) -> np.ndarray:
    """A log with capacity for so many rows, or a third more than it had, so that the cost of copies stays small."""
    if n_rows <= len(log):
        return log
    return _taken_over(np.zeros((max(n_rows, len(log) + len(log) // 3), log.shape[1])), log)


def with_outputs(log: np.ndarray, n_outputs: int, first: int, fixed: int = 0) -> np.ndarray:
    """A log of more outputs behind its ``fixed`` first numbers; the first output becomes output ``first``."""
    wider = np.zeros((len(log), fixed + n_outputs))
    wider[:, :fixed] = log[:, :fixed]
    wider[:, fixed + first : first + log.shape[1]] = log[:, fixed:]
    return wider


class FirstMeetings:
    """The first occurrences of features, and the slots of those that occurred more often.

    Features below ``first`` have the slots of their own numbers; it is 0 before any row. ``values`` has by view the
    values of features at the occurrences that are kept. ``n_partial`` features have a slot though their first
    occurrence had left the log.

    >>> from tunefree.core.rows import sparse
    >>> meetings = FirstMeetings()
    >>> met = meetings.meet(sparse([0, 2, 4], [7, 3000, 3000, 4000], [1.0, 2.0, 5.0, 6.0]), np.ones(2), 1)
    >>> met.X.features, met.X.values, met.left_out
    (array([   7, 1024, 1024], dtype=int32), array([1., 2., 5.]), array([0, 1]))
    """

    def __init__(self) -> None:
        self.first, self.n_partial = 0, 0
        self.known, self.kept = Known.create(0), Kept.create(0)
        self.values: dict[str, np.ndarray] = {}

    def n_slots(self, n_features: int) -> int:
        """An upper bound on the number of slots given to the first ``n_features`` features so far."""
        return min(n_features, self.first or FIRST) + int(self.known.counts[0])

    def _begin(self, X: Block) -> None:
        """Decide by the first rows which features have slots from the start."""
        if self.first == 0:
            self.first = max(FIRST, 1 + X.numbers.shape[1])

    def meet(self, X: Block, weight: np.ndarray, n_outputs: int) -> Met | None:
        """Observe the features of rows to be learned in order; None if all have the slots of their own numbers."""
        self._begin(X)
        if reach(X) <= self.first:
            return None
        n_entries, begun, n_kept = X.codes.size + len(X.values), int(self.known.counts[1]), int(self.kept.counts[0])
        self._make_room(reach(X), n_kept + n_entries)
        serials = np.empty(len(weight), np.int64)
        n_leaving = bisect_right(range(n_kept), begun + len(weight) - LOGGED, key=lambda k: self.kept.links[k, SERIAL])
        occurrences = Occurrences.create(n_entries, n_leaving - int(self.kept.counts[1]))
        row_arguments = weight, X.codes, X.pointers, X.features, X.values
        few = FEW if n_outputs > 1 else 2
        meet_rows(self.known, self.kept, self.first, few, LOGGED, *row_arguments, serials, occurrences)
        _, n_again, n_visitors = occurrences.counts
        again, visitors = occurrences.again[:n_again], occurrences.visitors[:n_visitors]
        lasts = occurrences.rows[:n_again] - self.known.serials[again] <= LOGGED
        self.n_partial += int(np.count_nonzero(~lasts))
        has_first = np.diff(serials, append=self.known.counts[1]) > 0
        visitors = visitors[self.known.slot_of[visitors] == VISITS]
        n_slots = self.n_slots(self.first)
        visited = slice(n_slots, n_slots + len(visitors))
        self.known.slot_of[visitors] = np.arange(visited.start, visited.stop)
        past = self._past(np.concatenate([again[lasts], visitors]), begun)
        placed = self._placed(X, weight, serials)
        self.known.slot_of[visitors] = NO_SLOT
        places = np.where(has_first, serials % LOGGED, -1)
        entries = occurrences.entries[: occurrences.counts[0]]
        self._note(entries, "raw", X)
        past_rows = self.replayed(past, "raw")
        return Met(*placed, places, entries, past, past_rows, visited.stop, visited, self.n_partial)

    def settle(self) -> Past | None:
        """Give a slot to each feature that occurred, and from now on to each that occurs; returns the replayed ones."""
        self.known.counts[2] = 1
        having = np.flatnonzero(self.known.slot_of == NO_SLOT)
        if not len(having):
            return None
        begun = int(self.known.counts[0])
        self.known.slot_of[having] = (self.first or FIRST) + begun + np.arange(len(having))
        self.known.counts[0] += len(having)
        lasts = self.known.counts[1] - self.known.serials[having] <= LOGGED
        self.n_partial += int(np.count_nonzero(~lasts))
        return self._past(having[lasts])

    def in_slots(self, X: Block) -> Block:
        """Rows that are only predicted, with slots instead of features."""
        if self.first == 0 or reach(X) <= self.first:
            return X
        nothing = np.zeros(n_rows(X))
        return self._placed(X, nothing, np.full(n_rows(X), self.known.counts[1]))[0]

    def _note(self, entries: np.ndarray, view: str, X: Block) -> None:
        """Keep the values of the latest occurrences that are kept, as a view shows the rows; see :class:`Met`."""
        store = self.values.get(view, np.zeros(0))
        if len(store) < len(self.kept.links):
            store = self.values[view] = _taken_over(np.zeros(len(self.kept.links)), store)
        n_kept = int(self.kept.counts[0])
        store[n_kept - len(entries) : n_kept] = _values(X, entries)

    def shown(self, met: Met, view: str, X: Block) -> Block:
        """Rows of a view as they were met, with slots; keeps the values of their occurrences."""
        self._note(met.entries, view, X)
        return met.X._replace(numbers=X.numbers, values=_kept_values(X, met.words))

    def replayed(self, past: Past, view: str) -> Rows:
        """Rows of one entry each: occurrences as a view showed them."""
        edges = np.arange(len(past.places) + 1)
        return Rows(edges[:-1], edges[1:], past.slots, self.values[view][past.places])

    def by_slot(self, feature_array: np.ndarray) -> np.ndarray:
        """An array (d, ...) by feature in the order of slots."""
        extra = int(self.known.counts[0])
        if not extra:
            return feature_array
        having = np.flatnonzero(self.known.slot_of > 0)
        having = having[having < len(feature_array)]
        slot_array = np.zeros((self.first + extra, *feature_array.shape[1:]), feature_array.dtype)
        slot_array[: self.first] = feature_array[: self.first]
        slot_array[self.known.slot_of[having]] = feature_array[having]
        return slot_array

    def by_feature(self, slot_array: np.ndarray, n_features: int) -> np.ndarray:
        """An array by slot in the order of features (d, ...); 0 for features without a slot."""
        feature_array = np.zeros((n_features, *slot_array.shape[1:]), slot_array.dtype)
        kept = min(n_features, len(slot_array), self.first or n_features)
        feature_array[:kept] = slot_array[:kept]
        having = np.flatnonzero((self.known.slot_of > 0) & (self.known.slot_of < len(slot_array)))
        having = having[having < n_features]
        feature_array[having] = slot_array[self.known.slot_of[having]]
        return feature_array

    def alone(self, fewest: int = 1, most: int = MOST) -> np.ndarray:
        """Features without a slot that occurred ``fewest`` to ``most`` times, their occurrences being in the log."""
        features = np.flatnonzero(self._is_alone(np.arange(len(self.known.slot_of)), MOST, MOST))
        ordinals = self.kept.links[self.known.latest[features] - 1, ORDINAL]
        return features[(fewest <= ordinals) & (ordinals <= most)]

    def numbered(self, features: np.ndarray, n_met: int = MOST) -> Past:
        """The occurrences of features in rows with a serial number below, their slots being numbers from 1 on."""
        return self._past(features, n_met, np.arange(1, 1 + len(features)))

    def alone_in(self, X: Block, n_slots: int = MOST, n_met: int = MOST) -> Alone | None:
        """Features of some rows that occurred and have no slot, None if there are none.

        Slots and rows with a first occurrence from these numbers on count as not yet there.
        """
        if self.first == 0 or reach(X) <= self.first:
            return None
        words = np.flatnonzero(self._is_alone(X.features, n_slots, n_met))
        at_code, column = np.nonzero(self._is_alone(X.codes, n_slots, n_met))
        ids = np.concatenate([X.features[words], X.codes[at_code, column]])
        if not len(ids):
            return None
        row_of = np.concatenate([np.searchsorted(X.pointers, words, "right") - 1, at_code])
        order = np.argsort(row_of, kind="stable")
        features, numbers = np.unique(ids, return_inverse=True)
        pointers = np.searchsorted(row_of[order], np.arange(n_rows(X) + 1))
        places = np.concatenate([words, np.full(len(at_code), -1)])
        return Alone(features, self.numbered(features, n_met), pointers, 1 + numbers[order], places[order])

    def _is_alone(self, ids: np.ndarray, n_slots: int, n_met: int) -> np.ndarray:
        """Which features had occurred and had no slot, see :meth:`alone_in`; only those whose log is still there."""
        if not len(self.known.slot_of):  # rows may be predicted that reach further than all that were learned
            return np.zeros(ids.shape, bool)
        inside = (ids >= self.first) & (ids < len(self.known.slot_of))
        known = np.where(inside, ids, 0)
        slots, serials = self.known.slot_of[known], self.known.serials[known]
        is_logged = (serials < n_met) & (self.known.counts[1] - serials <= LOGGED) & (self.known.latest[known] > 0)
        return inside & is_logged & ((slots == NO_SLOT) | (slots >= n_slots))

    def n_slots_after(self, X: Block) -> int:
        """Slots that will have been given once rows are learned, at most, visitors being among them."""
        self._begin(X)
        if reach(X) <= self.first:
            return self.n_slots(reach(X))
        met = np.concatenate([self._without_slot(X.codes.reshape(-1)), self._without_slot(X.features)])
        counts, known = np.bincount(met), self.known.slot_of
        counts[: len(known)] += (counts[: len(known)] > 0) & (known[: len(counts)] == NO_SLOT)
        return self.n_slots(reach(X)) + int(np.count_nonzero(counts > 1 - self.known.counts[2]))

    def _without_slot(self, ids: np.ndarray) -> np.ndarray:
        """The features among some that have no slot, as often as they are there."""
        known = self.known.slot_of
        if len(known):
            ids = ids[(ids >= len(known)) | (known.take(ids, mode="clip") <= 0)]
        return ids[ids >= self.first]

    def _past(self, features: np.ndarray, begun: int = MOST, slots: np.ndarray | None = None) -> Past:
        """The occurrences of features in rows with a serial number below ``begun``."""
        slots = (self.known.slot_of[features] if slots is None else slots).astype(np.uint32)
        latest = self.known.latest[features]
        most = int(self.kept.links[latest[latest > 0] - 1, ORDINAL].sum())
        entry_arrays = np.empty(most, np.uint32), *np.empty((2, most), np.int64)
        n = gather(self.known, self.kept, features.astype(np.int64), slots, begun, LOGGED, *entry_arrays)
        return Past(*(array[:n] for array in entry_arrays))

    def _make_room(self, n_features: int, n_kept: int) -> None:
        """Reserve capacity for so many features, and so many occurrences that are kept."""
        if n_features > len(self.known.slot_of):
            wider = Known.create(max(n_features, 3 * len(self.known.slot_of) // 2))
            self.known = Known._make([*map(_taken_over, wider[:3], self.known[:3]), self.known.counts])
            self.known.slot_of[: self.first] = np.arange(self.first)
        if n_kept > len(self.kept.links):
            longer = Kept.create(max(n_kept, 3 * len(self.kept.links) // 2))
            self.kept = Kept(_taken_over(longer.links, self.kept.links), self.kept.counts)

    def _placed(self, X: Block, weight: np.ndarray, serials: np.ndarray) -> tuple[Block, np.ndarray, np.ndarray]:
        """Rows with slots, the places of their words, and how many entries of each row are left out."""
        codes, pointers = np.empty_like(X.codes), np.empty_like(X.pointers)
        slots, words = np.empty_like(X.features), np.empty(len(X.values), np.int64)
        left_out = np.empty(len(weight), np.int64)
        row_arguments = weight, X.codes, X.pointers, X.features, X.values
        n = place_rows(self.known, self.first, serials, *row_arguments, codes, pointers, slots, words, left_out)
        placed = X._replace(codes=codes, pointers=pointers, features=slots[:n], values=_kept_values(X, words[:n]))
        return placed, words[:n], left_out


def _kept_values(X: Block, words: np.ndarray) -> np.ndarray:
    """The values of some words of rows, in their order; no copy where these are all."""
    return X.values if len(words) == len(X.values) else X.values[words]


def _taken_over(longer: np.ndarray, array: np.ndarray) -> np.ndarray:
    """A longer array that begins with the numbers of another."""
    longer[: len(array)] = array
    return longer


class Values(NamedTuple):
    """Values at the occurrences that are kept, in a view."""

    values: Annotated[np.ndarray, "float64[O]"]


class SavedMeetings(Part):
    """First occurrences as in files, of the first so many features or of all."""

    first = number(FIXED, Number(0, 2**31 - 1, whole=True))
    n_partial = number(FIXED, COUNT)
    counts: list[int] = number(FIXED, Sequence(COUNT, 3))
    kept: list[int] = number(FIXED, Sequence(COUNT, 2))
    slot_of = array("int32", ("m",), FIXED, low=-1, below="S")
    features = array("int32", ("O",), FIXED, low=0, below="D")
    rows = array("int32", (None,), FIXED, low=0)  # occurrences in each row, in their order
    values: dict[str, Values] = children(Values, FIXED)

    def __init__(self, meetings: FirstMeetings, n_features: int | None) -> None:
        self.first, self.n_partial = meetings.first, meetings.n_partial
        self.counts, self.kept = meetings.known.counts.tolist(), meetings.kept.counts.tolist()
        links = meetings.kept.links[: self.kept[0]]
        self.slot_of, self.features = meetings.known.slot_of[:n_features], links[:, FEATURE].copy()
        self.rows = np.bincount(links[:, SERIAL]).astype(np.int32)
        self.values = {view: Values(values[: self.kept[0]]) for view, values in meetings.values.items()}

    def check(self) -> None:
        """Raise a ModelError unless the rows have as many occurrences as are kept."""
        if len(self.rows) > self.counts[1] or self.rows.sum(dtype=np.int64) != len(self.features):
            raise ModelError("model.meetings: the rows do not have the occurrences that are kept")

    def meetings(self) -> FirstMeetings:
        """The occurrences as in memory."""
        meetings, features = FirstMeetings(), self.features
        meetings.first, meetings.n_partial = self.first, self.n_partial
        counts = np.array(self.counts, np.int64)
        meetings.known = Known.create(len(self.slot_of))._replace(slot_of=self.slot_of, counts=counts)
        serials = np.repeat(np.arange(len(self.rows)), self.rows)
        meetings.kept = Kept(links(features, serials, meetings.known.latest), np.array(self.kept, np.int64))
        meetings.known.serials[features[::-1]] = serials[::-1]  # of the first occurrences; nobody asks for others
        meetings.values = {view: values_of_view.values for view, values_of_view in self.values.items()}
        return meetings

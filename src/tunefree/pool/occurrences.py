"""First occurrences: a feature gets statistics after its first few occurrences, which are then replayed.

Two thirds of the words and pairs of a text occur once, and most others a few times. The weight of a new feature is 0,
so the entry of its first occurrence does not change the margins of its row, and is left out of the row. Its value is
kept, and members keep the slopes of the row in a log. Members can then replay the occurrence
(:func:`tunefree.learners.contract.replay`). After FEW occurrences a feature gets a slot, which is its index in all
statistics, and its occurrences are replayed. Before that it is a visitor: it has a temporary slot, with its earlier
occurrences replayed, while rows with further occurrences are learned; the new occurrences are then kept, too. Each
margin needs its own statistics of a feature, but an occurrence is kept once for all margins. So with a single margin
the second occurrence is enough for a slot. Predictions of each row are the same as if members learned all entries of
all rows. This holds for new rows too: weights of features without a slot are computed from the log when needed.

The log is bounded, and has the learned rows with the first occurrence of some feature. A feature that occurs again in a
row that is not logged gets a slot. So does a feature that has more than one occurrence when its first one leaves the
log. A feature without a second occurrence by then gets a slot later, and without a replay. The first FIRST features
have slots from the start, which are their feature numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.part import LEARNED, Declared, Part, argument, array, children, number
from tunefree.core.rows import Block, Rows, n_rows, reach, sparse
from tunefree.core.schema import COUNT, Flag, Number

EVERY = 2**31 - 1  # more features than a model may have
FIRST = 1024  # features with slots from the start: more than Newton's matrices reserve capacity for
FEW = 5  # number of occurrences at which a feature gets a slot, with several margins
LOGGED = 2**16  # rows in a log: more than members learn at once
MOST = 2**62
NO_SLOT = -1  # in ``slot_of``: the feature has occurred but has no slot


class Past(NamedTuple):
    """Occurrences to be replayed, in the order of the rows for each feature."""

    sources: np.ndarray  # (r,) int64: indices into the log, of the rows with the occurrences
    places: np.ndarray  # (r,) int64: indices into the kept occurrences
    rows: Rows  # the occurrences as rows of one entry each, with slots as features, and raw values


class Met(NamedTuple):
    """Rows with slots instead of features, and the occurrences that are kept or replayed."""

    rows: dict[str, Block]  # by view, their values unchanged
    left_out: np.ndarray  # (n,) int64: number of entries left out of each row
    places: np.ndarray  # (n,) int64: index of each row in the log; -1 for rows that are not logged
    past: Past  # occurrences to be replayed before the rows are learned
    n_slots: int  # number of slots to reserve capacity for
    visited: slice  # slots of visitors, whose statistics are forgotten once the rows are learned


class Alone(NamedTuple):
    """Features of some rows that have occurred but have no slot, numbered from 1."""

    features: np.ndarray  # (d,) int64: the features by number
    past: Past  # their occurrences, with their numbers as slots
    rows: dict[str, Block]  # by view, the entries of these features, with their numbers as features


class Values(NamedTuple):
    """Values of the kept occurrences in one view."""

    values: Annotated[np.ndarray, "float64[O]"]


class FirstMeetings(Part):
    """The first occurrences of features, and the slots of features with more occurrences.

    Features below ``first`` have their own numbers as slots; it is 0 before the first row, and EVERY where no feature
    is left out of a row. The slots of other features are in ``slot_of``: 0 if they never occurred, NO_SLOT if they have
    none yet; ``n_given`` have one. Rows with a first occurrence are numbered by ``serials`` of features; there are
    ``n_logged``. The ``n_kept`` occurrences that are kept have ``features`` and ``rows`` (serials, ascending), and
    ``values`` by view. They form chains: ``latest`` is the position, from 1, of the latest occurrence of a feature, and
    ``before`` of the occurrence before each; 0 for none. ``n_partial`` features got a slot after their first occurrence
    had left the log. Once it ``is_settled``, features get slots at once.

    >>> from tunefree.core.rows import sparse
    >>> meetings = FirstMeetings()
    >>> rows = sparse([0, 2, 4], [7, 3000, 3000, 4000], [1.0, 2.0, 5.0, 6.0])
    >>> met = meetings.meet({"raw": rows}, np.ones(2), 1)
    >>> met.rows["raw"].features, met.rows["raw"].values, met.left_out
    (array([   7, 1024, 1024], dtype=int32), array([1., 2., 5.]), array([0, 1]))
    """

    n_known: int | None = argument()  # the number of features to save; None for all
    first = number(LEARNED, Number(0, 2**31 - 1, whole=True))
    n_partial, n_given = number(LEARNED, COUNT), number(LEARNED, COUNT)
    n_logged, n_kept = number(LEARNED, COUNT), number(LEARNED, COUNT)
    is_settled = number(LEARNED, Flag())
    slot_of = array(
        "int32", ("m",), LEARNED, low=-1, below="S", read=lambda meetings: meetings.slot_of[: meetings.n_known]
    )
    features = array(
        "int32", ("O",), LEARNED, low=0, below="D", read=lambda meetings: meetings.features[: meetings.n_kept]
    )
    rows = array(  # files have the number of occurrences in each row instead
        "int32",
        (None,),
        LEARNED,
        low=0,
        read=lambda meetings: np.bincount(meetings.rows[: meetings.n_kept]).astype(np.int32),
        write=lambda meetings, counts: meetings._restore(counts),
    )
    values: dict[str, np.ndarray] = children(
        Values,
        LEARNED,
        read=lambda meetings: {view: Values(values[: meetings.n_kept]) for view, values in meetings.values.items()},
        write=lambda meetings, saved: setattr(meetings, "values", {view: one.values for view, one in saved.items()}),
    )
    serials, latest, before = Declared(LEARNED), Declared(LEARNED), Declared(LEARNED)

    def __init__(self, first: int = 0) -> None:
        self.first, self.n_partial, self.is_settled, self.n_known = first, 0, False, None
        self.n_given, self.n_logged, self.n_kept = 0, 0, 0
        self.slot_of, self.serials, self.latest = np.zeros((3, 1), np.int32)
        self.features, self.rows, self.before = np.zeros((3, 0), np.int32)
        self.values = {}

    @property
    def assigns_slots(self) -> bool:
        """Whether features may get other slots than their own numbers."""
        return self.first < EVERY

    def n_slots(self, n_features: int) -> int:
        """An upper bound on the number of slots given to the first ``n_features`` features so far."""
        return min(n_features, self.first or FIRST) + self.n_given

    def _begin(self, X: Block) -> None:
        """Set the number of features with slots from the start, if these are the first rows."""
        if self.first == 0:
            self.first = max(FIRST, 1 + X.numbers.shape[1])

    def meet(self, by_view: dict[str, Block], weight: np.ndarray, n_outputs: int) -> Met | None:
        """Observe the features of rows to be learned in order; None if all features have their own numbers as slots."""
        X = by_view["raw"]
        self._begin(X)
        if reach(X) <= self.first:
            return None
        self._reserve(reach(X))
        rows, features, entries = _entries(X, self._have_no_slot)
        first_serial, few, is_zero = self.n_logged, FEW if n_outputs > 1 else 2, _values(X, entries) == 0.0
        has_first, serials = self._count_rows(rows[~is_zero], features[~is_zero], weight > 0.0)
        counts = ~is_zero
        if not (weight > 0.0).all():  # entries of rows of weight 0 count only if their features occurred before
            has_occurred = (self.slot_of[features] != 0) & (self.serials[features] < serials[rows])
            counts &= (weight[rows] > 0.0) | has_occurred
        rows, features, entries = rows[counts], features[counts], entries[counts]
        is_alone = np.zeros(len(features), bool)  # first occurrences without another one in these rows: always kept
        if not self.is_settled:
            is_alone = (np.bincount(features)[features] == 1) & (self.latest[features] == 0)
        alone, others = np.flatnonzero(is_alone), np.flatnonzero(~is_alone)
        kept, promoted, replayed, visitors = self._select(rows[others], features[others], has_first, serials, few)
        entries = entries[self._keep(np.concatenate([alone, others[kept]]), features, serials[rows])]
        for view, rows_of_view in by_view.items():
            values = self.values[view] = _padded(self.values.get(view, np.zeros(0)), len(self.features))
            values[self.n_kept - len(entries) : self.n_kept] = _values(rows_of_view, entries)
        self.slot_of[promoted] = self.first + self.n_given + np.arange(len(promoted))
        self.n_given += len(promoted)
        n_slots = self.n_slots(self.first)
        visited = slice(n_slots, n_slots + len(visitors))
        self.slot_of[visitors] = np.arange(visited.start, visited.stop)
        past = self._past(np.concatenate([replayed, visitors]), first_serial)
        limits = None if (weight > 0.0).all() else np.where(weight > 0.0, MOST, serials)
        placed, left_out = self._with_slots(by_view, limits)
        self.slot_of[visitors] = NO_SLOT
        places = np.where(has_first, serials % LOGGED, -1)
        return Met(placed, left_out, places, past, visited.stop, visited)

    def _count_rows(
        self, rows: np.ndarray, features: np.ndarray, is_learned: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """A mask (n,) of rows with a first occurrence, and serials (n,) of rows; other rows have the next serial."""
        is_new = (self.slot_of[features] == 0) & is_learned[rows]
        new, has_first = features[is_new], np.zeros(len(is_learned), bool)
        self.serials[new[::-1]] = rows[is_new][::-1]  # reversed: the last write of a feature is its first row
        firsts = self.serials[new]
        has_first[firsts] = True
        serials = self.n_logged + np.cumsum(has_first) - has_first
        self.slot_of[new], self.serials[new] = NO_SLOT, serials[firsts]
        self.n_logged += int(np.count_nonzero(has_first))
        return has_first, serials

    def _select(
        self, rows: np.ndarray, features: np.ndarray, has_first: np.ndarray, serials: np.ndarray, few: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Indices of the entries to keep, sorted by feature; and features: with a new slot, to replay, and visitors."""
        nothing, first_serial = features[:0], self.n_logged - int(np.count_nonzero(has_first))
        if self.is_settled:
            _, firsts = np.unique(features, return_index=True)
            return nothing, features[np.sort(firsts)], nothing, nothing
        leaving = self._leaving(features, first_serial)
        if not len(features) and not len(leaving):
            return nothing, nothing, nothing, nothing
        n_entries, features = len(features), np.concatenate([features, leaving])
        rows = np.concatenate([rows, np.flatnonzero(has_first)[self.serials[leaving] + LOGGED - first_serial]])
        by_row = np.argsort(rows, kind="stable") if len(leaving) else slice(None)  # leaving features come last
        order = np.arange(len(rows))[by_row][_by_feature(features[by_row])]
        rows, features, is_entry = rows[order], features[order], order < n_entries
        begins = np.flatnonzero(np.diff(features, prepend=-1))
        groups = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(features)))
        n_before = np.count_nonzero(self._chains(features[begins]), axis=1)
        ordinals = n_before[groups] + _cumulative_counts(is_entry, begins, groups)
        has_left = serials[rows] - self.serials[features] > LOGGED
        ends = (ordinals > 1) & (~is_entry | (ordinals >= few) | ~has_first[rows] | has_left)
        n_ended = _cumulative_counts(ends, begins, groups)
        is_end, kept = ends & (n_ended == 1), order[is_entry & (n_ended == 0)]
        is_partial = has_left[is_end] & (self.serials[features[is_end]] < first_serial)
        self.n_partial += int(np.count_nonzero(is_partial))
        promoted, lasts = features[is_end], groups != np.append(groups[1:], -1)
        visits = (n_ended[lasts] == 0) & (ordinals[lasts] > np.maximum(n_before, 1))
        in_time = np.lexsort((order[is_end], rows[is_end]))
        return kept, promoted[in_time], promoted[~is_partial], features[lasts][visits]

    def _leaving(self, features: np.ndarray, first_serial: int) -> np.ndarray:
        """Features without a slot whose first row leaves the log, among ``features`` and the kept ones."""
        edges = np.searchsorted(self.rows[: self.n_kept], np.array([first_serial, self.n_logged]) - 1 - LOGGED, "right")
        if edges[0] == edges[1] and self.n_logged <= LOGGED:
            return features[:0]
        candidates = np.union1d(features, self.features[slice(*edges)])
        leaves = self.serials[candidates] + LOGGED
        return candidates[(first_serial <= leaves) & (leaves < self.n_logged) & (self.slot_of[candidates] == NO_SLOT)]

    def _keep(self, by_feature: np.ndarray, features: np.ndarray, serials: np.ndarray) -> np.ndarray:
        """Keep the occurrences with indices ``by_feature``, which are sorted by feature; returns a mask of them."""
        n, stop = self.n_kept, self.n_kept + len(by_feature)
        if stop > len(self.features):
            room = max(stop, 3 * len(self.features) // 2)
            for name in ("features", "rows", "before"):
                setattr(self, name, _padded(getattr(self, name), room))
        is_kept, sorted_features = np.zeros(len(features), bool), features[by_feature]
        is_kept[by_feature] = True
        places, is_first = n + np.cumsum(is_kept)[by_feature], np.diff(sorted_features, prepend=-1) != 0
        self.features[n:stop], self.rows[n:stop], self.n_kept = features[is_kept], serials[is_kept], stop
        self.before[places - 1] = np.where(is_first, self.latest[sorted_features], np.append(0, places)[:-1])
        self.latest[sorted_features] = places  # the last write of a feature is its latest occurrence
        return is_kept

    def _chains(self, features: np.ndarray) -> np.ndarray:
        """Positions (d, c), from 1, of the kept occurrences of each feature, the latest last; padded with 0."""
        columns, places = [], self.latest[features]
        while places.any():
            columns.append(places)
            places = np.where(places > 0, self.before[places - 1], 0)
        return np.stack(columns[::-1], axis=1) if columns else np.zeros((len(features), 0), np.int32)

    def _past(self, features: np.ndarray, end_serial: int = MOST, slots: np.ndarray | None = None) -> Past:
        """The kept occurrences of features in rows with a serial below ``end_serial``."""
        chains = self._chains(features)
        counts = (chains > 0) & (self.rows[chains - 1] < end_serial)
        places = chains[counts].astype(np.int64) - 1
        slots = np.repeat(self.slot_of[features] if slots is None else slots, np.count_nonzero(counts, axis=1))
        edges = np.arange(len(places) + 1)
        rows = Rows(edges[:-1], edges[1:], slots.astype(np.uint32), self.values["raw"][places])
        return Past(self.rows[places].astype(np.int64) % LOGGED, places, rows)

    def settle(self) -> Past | None:
        """Give slots to all features that occurred, and to others once they occur; returns occurrences to replay."""
        self.is_settled = True
        without_slot = np.flatnonzero(self.slot_of == NO_SLOT)
        if not len(without_slot):
            return None
        self.slot_of[without_slot] = (self.first or FIRST) + self.n_given + np.arange(len(without_slot))
        self.n_given += len(without_slot)
        is_partial = self.n_logged - self.serials[without_slot] > LOGGED
        self.n_partial += int(np.count_nonzero(is_partial))
        return self._past(without_slot[~is_partial])

    def in_slots(self, by_view: dict[str, Block]) -> dict[str, Block]:
        """Rows that are only predicted, with slots instead of features."""
        if self.first == 0 or reach(by_view["raw"]) <= self.first:
            return by_view
        return self._with_slots(by_view)[0]

    def _with_slots(
        self, by_view: dict[str, Block], limits: np.ndarray | None = None
    ) -> tuple[dict[str, Block], np.ndarray]:
        """Rows with slots, and the number of entries left out of each row.

        If ``limits`` (n,) are given, a row lacks features whose first row has this serial number or a later one.
        """
        X = by_view["raw"]
        features, values = X.features[: X.pointers[-1]], X.values[: X.pointers[-1]]
        slots, codes = self._slots_of(features), self._slots_of(X.codes)
        if limits is not None:
            is_later = self.serials[features] >= np.repeat(limits, np.diff(X.pointers))
            slots[is_later & (features >= self.first)] = 0
            codes[(self.serials[X.codes] >= limits[:, None]) & (X.codes >= self.first)] = 0
        is_void = (values == 0.0) & (features >= self.first)
        is_kept = (slots > 0) & ~is_void
        words, pointers = np.flatnonzero(is_kept), np.append(0, np.cumsum(is_kept))[X.pointers]
        left_out = np.diff(np.append(0, np.cumsum(~is_kept & ~is_void))[X.pointers])
        left_out += np.count_nonzero((codes == 0) & (X.codes > 0), axis=1)
        entries: dict[str, Any] = {"codes": codes, "pointers": pointers, "features": slots[words]}
        are_all = len(words) == len(X.values)  # then values are not copied
        placed = {
            view: rows._replace(values=rows.values if are_all else rows.values[words], **entries)
            for view, rows in by_view.items()
        }
        return placed, left_out

    def _slots_of(self, features: np.ndarray) -> np.ndarray:
        """The slots of features; 0 for features without a slot."""
        slots = self.slot_of.take(features, mode="clip")
        slots = np.where((slots > 0) & (features < len(self.slot_of)), slots, 0)
        return slots if len(self.slot_of) > self.first else np.where(features < self.first, features, slots)

    def replayed(self, past: Past, view: str) -> Rows:
        """Occurrences as rows of one entry each, with the values of a view."""
        return past.rows._replace(values=self.values[view][past.places])

    def by_slot(self, feature_array: np.ndarray) -> np.ndarray:
        """An array (d, ...) by feature, reordered by slot."""
        if not self.n_given:
            return feature_array
        with_slot = np.flatnonzero(self.slot_of[: len(feature_array)] > 0)
        slot_array = np.zeros((self.first + self.n_given, *feature_array.shape[1:]), feature_array.dtype)
        slot_array[: self.first] = feature_array[: self.first]
        slot_array[self.slot_of[with_slot]] = feature_array[with_slot]
        return slot_array

    def by_feature(self, slot_array: np.ndarray, n_features: int) -> np.ndarray:
        """An array by slot, reordered by feature (d, ...); 0 for features without a slot."""
        feature_array = np.zeros((n_features, *slot_array.shape[1:]), slot_array.dtype)
        kept = min(n_features, len(slot_array), self.first or n_features)
        feature_array[:kept] = slot_array[:kept]
        slots = self.slot_of[:n_features]
        with_slot = np.flatnonzero((slots > 0) & (slots < len(slot_array)))
        feature_array[with_slot] = slot_array[slots[with_slot]]
        return feature_array

    def alone_in(self, by_view: dict[str, Block], n_slots: int, n_met: int) -> Alone | None:
        """Features of rows that have occurred but have no slot; None if there are none.

        Slots from ``n_slots`` on count as not yet given, and rows with serials from ``n_met`` on as not yet learned.
        """
        X = by_view["raw"]
        if self.first == 0 or reach(X) <= self.first:
            return None
        rows, ids, places = _entries(X, lambda features: self._is_alone(features, n_slots, n_met))
        if not len(ids):
            return None
        features, numbers = np.unique(ids, return_inverse=True)
        pointers = np.searchsorted(rows, np.arange(n_rows(X) + 1))
        past = self._past(features, n_met, np.arange(1, 1 + len(features)))
        kept = {view: rows for view, rows in by_view.items() if view in self.values}
        alone = {view: sparse(pointers, 1 + numbers, _values(rows, places), False) for view, rows in kept.items()}
        return Alone(features, past, alone)

    def _is_alone(self, ids: np.ndarray, n_slots: int, n_met: int) -> np.ndarray:
        """A mask of features that had occurred and had no slot, see :meth:`alone_in`, whose first row is in the log."""
        inside = (ids >= self.first) & (ids < len(self.slot_of))
        known = np.where(inside, ids, 0)
        slots, serials = self.slot_of[known], self.serials[known]
        is_logged = (serials < n_met) & (self.n_logged - serials <= LOGGED) & (self.latest[known] > 0)
        return inside & is_logged & ((slots == NO_SLOT) | (slots >= n_slots))

    def n_slots_after(self, X: Block) -> int:
        """An upper bound on the number of slots once rows are learned, including the slots of visitors."""
        self._begin(X)
        if reach(X) <= self.first:
            return self.n_slots(reach(X))
        counts, known = np.bincount(_entries(X, self._have_no_slot)[1]), self.slot_of
        counts[: len(known)] += (counts[: len(known)] > 0) & (known[: len(counts)] == NO_SLOT)
        return self.n_slots(reach(X)) + int(np.count_nonzero(counts > 1 - self.is_settled))

    def _have_no_slot(self, features: np.ndarray) -> np.ndarray:
        is_beyond = features >= len(self.slot_of)
        return (features >= self.first) & (is_beyond | (self.slot_of.take(features, mode="clip") <= 0))

    def _reserve(self, n_features: int) -> None:
        if n_features > len(self.slot_of):
            capacity = max(n_features, 3 * len(self.slot_of) // 2)
            for name in ("slot_of", "serials", "latest"):
                setattr(self, name, _padded(getattr(self, name), capacity))
            self.slot_of[: self.first] = np.arange(self.first)

    def _restore(self, counts: np.ndarray) -> None:
        """Rebuild the kept occurrences from their numbers in each row."""
        features = self.features
        if len(counts) > self.n_logged or counts.sum(dtype=np.int64) != len(features):
            raise ModelError("model.meetings: the rows do not have the occurrences that are kept")
        if int(features.max(initial=0)) >= len(self.slot_of):
            raise ModelError("model.meetings: there are occurrences of unknown features")
        self.serials, self.latest = np.zeros((2, len(self.slot_of)), np.int32)
        self.n_kept, self.rows, self.before = 0, *np.zeros((2, len(features)), np.int32)
        self._keep(_by_feature(features), features, np.repeat(np.arange(len(counts)), counts))
        firsts = np.flatnonzero(self.before == 0)  # serials of features without a kept occurrence are not needed
        self.serials[features[firsts]] = self.rows[firsts]


def _entries(X: Block, mask_of: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and features of the entries that a function selects, and their indices in the words; -1 for codes."""
    words = np.flatnonzero(mask_of(X.features[: X.pointers[-1]]))
    at_code, column = np.nonzero(mask_of(X.codes))
    rows, features = np.repeat(np.arange(len(X.pointers) - 1), np.diff(X.pointers))[words], X.features[words]
    if not len(at_code):
        return rows, features, words
    rows, features = np.append(rows, at_code), np.append(features, X.codes[at_code, column])
    order = np.argsort(rows, kind="stable")
    return rows[order], features[order], np.append(words, np.full(len(at_code), -1))[order]


def _by_feature(features: np.ndarray) -> np.ndarray:
    """The stable order of entries by feature; faster than ``np.argsort(kind="stable")``."""
    n = np.int64(max(len(features), 1))
    return np.sort(features * n + np.arange(len(features))) % n


def _cumulative_counts(mask: np.ndarray, begins: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Cumulative counts of a mask within each group; groups start at the indices ``begins``."""
    counts = np.cumsum(mask)
    return counts - (counts[begins] - mask[begins])[groups]


def _values(X: Block, places: np.ndarray) -> np.ndarray:
    """The values of entries, by their indices in the words of rows; 1 for codes, which have index -1."""
    return np.where(places < 0, 1.0, np.append(X.values, 1.0)[places])


def _padded(array: np.ndarray, n: int) -> np.ndarray:
    """The array padded with zeros to length ``n``; the same array if it is long enough."""
    if n <= len(array):
        return array
    longer = np.zeros((n, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def with_room(log: np.ndarray, n_rows: int) -> np.ndarray:
    """A log with capacity for so many rows; it grows by at least a third, so that the cost of copies stays small."""
    return log if n_rows <= len(log) else _padded(log, max(n_rows, len(log) + len(log) // 3))


def with_outputs(log: np.ndarray, n_outputs: int, first: int, fixed: int = 0) -> np.ndarray:
    """A log with more output columns after its ``fixed`` first columns; output 0 becomes output ``first``."""
    wider = np.zeros((len(log), fixed + n_outputs))
    wider[:, :fixed] = log[:, :fixed]
    wider[:, fixed + first : first + log.shape[1]] = log[:, fixed:]
    return wider

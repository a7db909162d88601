"""First occurrences: a feature gets statistics at its second occurrence, and the entry of the first is then replayed.

Two thirds of the words and pairs of a text occur once. The weight of a new feature is 0, so its entry does not change
the margins of its row, and what is learned from it is not used before the feature occurs again. The entry is therefore
left out of the row. Its value is kept, and members keep the slopes of the row in a log. At the second occurrence the
feature gets a slot, which is its index in all statistics, and the members replay the first occurrence
(:func:`tunefree.learners.contract.replay`). So each row is predicted as by members that learn all entries of all rows.
This holds for new rows too: weights of features that occurred once are computed from the log when they are needed.

The log is bounded. A feature whose first occurrence is no longer in it gets a slot without a replay. The first FIRST
features have slots from the start, which are their own numbers.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, Self

import numpy as np

from tunefree.core.kernels import kernel
from tunefree.core.rows import Block, n_rows, reach, sparse

FIRST = 1024  # features that have slots from the start: more than Newton's matrices reserve capacity for
LOGGED = 2**16  # rows in a log: more than members learn at a time
MOST = 2**62
_ONCE = -1  # in ``slot_of``: the feature was met once


class Known(NamedTuple):
    """What is known of features from number ``first`` on."""

    slot_of: Annotated[np.ndarray, "int32[features]"]  # 0 of one never observed, -1 of one that occurred once
    serials: Annotated[np.ndarray, "int64[features]"]  # serial number of the row of the first occurrence
    counts: Annotated[np.ndarray, "int64[3]"]  # indices; rows with a first occurrence; 1 if these get slots at once

    @classmethod
    def create(cls, n_features: int) -> Self:
        """Nothing is known."""
        return cls(np.zeros(n_features, np.int32), np.zeros(n_features, np.int64), np.zeros(3, np.int64))


class Past(NamedTuple):
    """First occurrences that are replayed."""

    features: np.ndarray  # (r,) int64
    slots: np.ndarray  # (r,) int32: of the features
    sources: np.ndarray  # (r,) int64: where in the log the rows are in which the features were met


class Met(NamedTuple):
    """Rows with slots instead of features, and what is to be done about first occurrences."""

    X: Any  # block of rows, their values unchanged
    kept: np.ndarray  # (e,) places of their words among those of the rows as given
    left_out: np.ndarray  # (n,) int64: entries of each row that are left out
    places: np.ndarray  # (n,) int64: where in the log each row is kept; -1 for nowhere
    fresh: np.ndarray  # (f,) int64: features met for the first time
    entries: np.ndarray  # (f,) int64: their places among the words of the rows as given; -1 for those of codes
    past: Past  # what is replayed before the rows are learned
    past_rows: Any  # that, as rows of one entry each, their values as given
    n_slots: int  # there is to be room for
    n_partial: int  # features with a slot that were not corrected by a replay of their first occurrence, by now


class Occurrences(NamedTuple):
    """First and second occurrences of features in some rows, in order."""

    fresh: Annotated[np.ndarray, "int64[occurrences]"]  # features met for the first time
    entries: Annotated[np.ndarray, "int64[occurrences]"]  # their places among the words; -1 for those of codes
    again: Annotated[np.ndarray, "int64[occurrences]"]  # features whose first occurrence is to be replayed
    rows: Annotated[np.ndarray, "int64[occurrences]"]  # serial numbers of the rows of their second occurrence
    counts: Annotated[np.ndarray, "int64[2]"]  # of the features in the first two, and in the last two

    @classmethod
    def create(cls, n_entries: int) -> Self:
        """None, with capacity for those in so many entries."""
        fresh, entries, again, rows = np.empty((4, n_entries), np.int64)
        return cls(fresh, entries, again, rows, np.zeros(2, np.int64))


def meet_feature(known, first, row, is_learned, begun, feature, entry, occurrences):
    """Meet a feature in a row of this serial number; the serial numbers of these rows begin at ``begun``."""
    if known.slot_of[feature] == 0 and is_learned:
        known.serials[feature] = row
        if known.counts[2] == 0:
            known.slot_of[feature] = _ONCE
            occurrences.fresh[occurrences.counts[0]], occurrences.entries[occurrences.counts[0]] = feature, entry
            occurrences.counts[0] += 1
            return
    elif known.slot_of[feature] != _ONCE:
        return
    known.slot_of[feature] = first + known.counts[0]
    known.counts[0] += 1
    if known.serials[feature] < begun:
        occurrences.again[occurrences.counts[1]], occurrences.rows[occurrences.counts[1]] = feature, row
        occurrences.counts[1] += 1


@kernel
def meet_rows(
    known: Known,
    first: int,
    weight: Annotated[np.ndarray, "float64[rows]"],
    codes: Annotated[np.ndarray, "int32[rows, code_columns]"],
    pointers: Annotated[np.ndarray, "int64[ends]"],
    features: Annotated[np.ndarray, "int32[words]"],
    values: Annotated[np.ndarray, "float64[words]"],
    serials: Annotated[np.ndarray, "int64[rows]"],
    occurrences: Occurrences,
) -> None:
    """Observe the features of rows, which get serial numbers: a row without a first occurrence has that of the next."""
    begun, is_settled = known.counts[1], known.counts[2] == 1
    for i in range(len(weight)):
        row, n_fresh, is_learned = known.counts[1], occurrences.counts[0], weight[i] > 0.0
        n_slots = known.counts[0]
        serials[i] = row
        for c in range(codes.shape[1]):
            if codes[i, c] >= first:
                meet_feature(known, first, row, is_learned, begun, codes[i, c], -1, occurrences)
        for e in range(pointers[i], pointers[i + 1]):
            if features[e] >= first and values[e] != 0.0:
                meet_feature(known, first, row, is_learned, begun, features[e], e, occurrences)
        if occurrences.counts[0] > n_fresh or (is_settled and known.counts[0] > n_slots):
            known.counts[1] += 1


def slot_in(known, first, serial, is_learned, feature):
    """The slot of a feature in a row; 0 if it has none there. A row that is not learned does not see later ones."""
    if feature < first:
        return feature
    if feature >= len(known.slot_of) or known.slot_of[feature] <= 0:
        return 0
    return known.slot_of[feature] if is_learned or known.serials[feature] < serial else 0


@kernel
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
    kept: Annotated[np.ndarray, "int64[words]"],
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
                    slots[n], kept[n] = slot, e
                    n += 1
                else:
                    left_out[i] += 1
    placed_pointers[len(weight)] = n
    return n


class Alone(NamedTuple):
    """Features of some rows that have no slot, though they occurred, numbered from 1."""

    past: Past  # their first occurrences; the slots are their numbers
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
    grown = np.zeros((max(n_rows, len(log) + len(log) // 3), log.shape[1]))
    grown[: len(log)] = log
    return grown


def with_outputs(log: np.ndarray, n_outputs: int, first: int, fixed: int = 0) -> np.ndarray:
    """A log of more outputs behind its ``fixed`` first numbers; the first output becomes output ``first``."""
    wider = np.zeros((len(log), fixed + n_outputs))
    wider[:, :fixed] = log[:, :fixed]
    wider[:, fixed + first : first + log.shape[1]] = log[:, fixed:]
    return wider


class FirstMeetings:
    """Which features have been met once, and the slots of those that occurred twice.

    Attributes
    ----------
    first : int
        Features below have the slots of their own numbers; 0 before any row.
    known : Known
    values : dict of str to (d,) array
        By view, the values of features at their first occurrence.
    n_partial : int
        Features with a slot whose first occurrence had left the log.

    Examples
    --------
    >>> from tunefree.core.rows import sparse
    >>> meetings = FirstMeetings()
    >>> met = meetings.meet(sparse([0, 2, 4], [7, 3000, 3000, 4000], [1.0, 2.0, 5.0, 6.0]), np.ones(2))
    >>> met.X.features, met.X.values, met.left_out
    (array([   7, 1024, 1024], dtype=int32), array([1., 2., 5.]), array([0, 1]))
    """

    def __init__(self) -> None:
        self.first, self.n_partial = 0, 0
        self.known = Known.create(0)
        self.values: dict[str, np.ndarray] = {}

    @classmethod
    def restored(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> FirstMeetings:
        """Made from what :meth:`save_state` wrote."""
        meetings = cls()
        meetings.restore(arrays, header)
        return meetings

    def n_slots(self, n_features: int) -> int:
        """Slots that the first so many features can have by now."""
        return min(n_features, self.first or FIRST) + int(self.known.counts[0])

    @property
    def n_logged(self) -> int:
        """Rows of a log that are in use."""
        return min(int(self.known.counts[1]), LOGGED)

    @property
    def n_met_once(self) -> int:
        """Features that have no slot though they occurred."""
        return int(np.count_nonzero(self.known.slot_of == _ONCE))

    @property
    def is_needed(self) -> bool:
        """Whether anything has to be kept: rows were learned, which tell how many features have their own numbers."""
        return self.first > 0

    def begin(self, X: Block) -> None:
        """Know which features have slots from the start, by the first rows."""
        if self.first == 0:
            self.first = max(FIRST, 1 + X.numbers.shape[1])

    def meet(self, X: Block, weight: np.ndarray) -> Met | None:
        """Observe the features of rows to be learned in order; None if all have the slots of their own numbers."""
        self.begin(X)
        if reach(X) <= self.first:
            return None
        self._make_room(reach(X))
        serials = np.empty(len(weight), np.int64)
        occurrences = Occurrences.create(X.codes.size + len(X.values))
        of_rows = weight, X.codes, X.pointers, X.features, X.values
        meet_rows(self.known, self.first, *of_rows, serials, occurrences)
        n_fresh, n_again = occurrences.counts
        fresh, entries, again = occurrences.fresh[:n_fresh], occurrences.entries[:n_fresh], occurrences.again[:n_again]
        lasts = occurrences.rows[:n_again] - self.known.serials[again] <= LOGGED
        self.n_partial += int(np.count_nonzero(~lasts))
        has_first = np.diff(serials, append=self.known.counts[1]) > 0
        places = np.where(has_first, serials % LOGGED, -1)
        past, n_slots = self._past(again[lasts]), self.n_slots(self.first)
        met = Met(*self._placed(X, weight, serials), places, fresh, entries, past, None, n_slots, self.n_partial)
        self.note(met, "raw", X)
        return met._replace(past_rows=self.replayed(past, "raw"))

    def settle(self) -> Past | None:
        """Give a slot to each feature that occurred once, and from now on to each that occurs; what is to replay."""
        self.known.counts[2] = 1
        if not self.n_met_once:
            return None
        once = np.flatnonzero(self.known.slot_of == _ONCE)
        begun = int(self.known.counts[0])
        self.known.slot_of[once] = (self.first or FIRST) + begun + np.arange(len(once))
        self.known.counts[0] += len(once)
        lasts = self.known.counts[1] - self.known.serials[once] <= LOGGED
        self.n_partial += int(np.count_nonzero(~lasts))
        return self._past(once[lasts])

    def in_slots(self, X: Block) -> Block:
        """Rows that are only predicted, with slots instead of features."""
        if self.first == 0 or reach(X) <= self.first:
            return X
        nothing = np.zeros(n_rows(X))
        return self._placed(X, nothing, np.full(n_rows(X), self.known.counts[1]))[0]

    def note(self, met: Met, view: str, X: Block) -> None:
        """Keep the values of first occurrences in rows as a view shows them."""
        store = self.values.get(view, np.zeros(0))
        if len(store) < len(self.known.slot_of):
            store = self.values[view] = np.concatenate([store, np.zeros(len(self.known.slot_of) - len(store))])
        store[met.fresh] = _values(X, met.entries)

    def shown(self, met: Met, X: Block) -> Block:
        """Rows of a view as they were met, with slots."""
        return met.X._replace(numbers=X.numbers, values=X.values[met.kept])

    def replayed(self, past: Past, view: str) -> Block:
        """Rows of one entry each: first occurrences as a view showed them."""
        n = len(past.features)
        return sparse(np.arange(n + 1), past.slots, self.values[view][past.features], intercept=False)

    def by_slot(self, of_features: np.ndarray) -> np.ndarray:
        """What belongs to features (d, ...), by slot."""
        extra = int(self.known.counts[0])
        if not extra:
            return of_features
        having = np.flatnonzero(self.known.slot_of > 0)
        having = having[having < len(of_features)]
        of_slots = np.zeros((self.first + extra, *of_features.shape[1:]), of_features.dtype)
        of_slots[: self.first] = of_features[: self.first]
        of_slots[self.known.slot_of[having]] = of_features[having]
        return of_slots

    def by_feature(self, of_slots: np.ndarray, n_features: int) -> np.ndarray:
        """What belongs to slots, by feature (d, ...); 0 for features without one."""
        of_features = np.zeros((n_features, *of_slots.shape[1:]), of_slots.dtype)
        kept = min(n_features, len(of_slots), self.first or n_features)
        of_features[:kept] = of_slots[:kept]
        having = np.flatnonzero((self.known.slot_of > 0) & (self.known.slot_of < len(of_slots)))
        having = having[having < n_features]
        of_features[having] = of_slots[self.known.slot_of[having]]
        return of_features

    def alone(self) -> Past:
        """Features without a slot whose first occurrence is in the log."""
        return self._past(np.flatnonzero(self._is_alone(np.arange(len(self.known.slot_of)), MOST, MOST)))

    def alone_in(self, X: Block, n_slots: int = MOST, n_met: int = MOST) -> Alone | None:
        """Those of them that are in some rows, None if none is: as it was when there were so many slots, and so many
        rows had had a first occurrence."""
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
        past = self._past(features)._replace(slots=np.arange(1, 1 + len(features), dtype=np.int32))
        pointers = np.searchsorted(row_of[order], np.arange(n_rows(X) + 1))
        places = np.concatenate([words, np.full(len(at_code), -1)])
        return Alone(past, pointers, 1 + numbers[order], places[order])

    def _is_alone(self, ids: np.ndarray, n_slots: int, n_met: int) -> np.ndarray:
        """Which features had occurred and had no slot, see :meth:`alone_in`; only those whose log is still there."""
        if not len(self.known.slot_of):  # rows may be predicted that reach further than all that were learned
            return np.zeros(ids.shape, bool)
        inside = (ids >= self.first) & (ids < len(self.known.slot_of))
        known = np.where(inside, ids, 0)
        slots, serials = self.known.slot_of[known], self.known.serials[known]
        is_logged = (serials < n_met) & (self.known.counts[1] - serials <= LOGGED)
        return inside & is_logged & ((slots == _ONCE) | (slots >= n_slots))

    def n_slots_after(self, X: Block) -> int:
        """Slots that will have been given once rows are learned, at most."""
        self.begin(X)
        if reach(X) <= self.first:
            return self.n_slots(reach(X))
        known = self.known
        met = np.concatenate([X.codes[X.codes >= self.first], X.features[X.features >= self.first]])
        slots = known.slot_of.take(met, mode="clip") if len(known.slot_of) else np.zeros(len(met), np.int32)
        slots[met >= len(known.slot_of)] = 0
        counts = np.unique(met[slots == 0], return_counts=True)[1]
        again = len(np.unique(met[slots == _ONCE]))
        return self.n_slots(reach(X)) + again + int(np.count_nonzero(counts > 1 - known.counts[2]))

    def save_state(self, n_features: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :meth:`restore` makes the same."""
        kept = min(n_features, len(self.known.slot_of))
        arrays = {"slot_of": self.known.slot_of[:kept], "serials": self.known.serials[:kept]}
        arrays |= {f"values.{view}": values[:kept] for view, values in self.values.items()}
        return arrays, {
            "first": self.first,
            "counts": self.known.counts.tolist(),
            "n_partial": self.n_partial,
            "views": sorted(self.values),
        }

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Take over what :meth:`save_state` wrote."""
        slot_of, serials = (np.array(arrays[name]) for name in ("slot_of", "serials"))
        self.first, self.known = header["first"], Known(slot_of, serials, np.array(header["counts"], np.int64))
        self.n_partial = header["n_partial"]
        self.values = {view: np.array(arrays[f"values.{view}"], np.float64) for view in header["views"]}

    def _past(self, features: np.ndarray) -> Past:
        return Past(features, self.known.slot_of[features], self.known.serials[features] % LOGGED)

    def _make_room(self, n_features: int) -> None:
        before = self.known
        n_known = len(before.slot_of)
        if n_features > n_known:
            self.known = Known.create(max(n_features, 3 * n_known // 2))._replace(counts=before.counts)
            self.known.slot_of[:n_known], self.known.serials[:n_known] = before.slot_of, before.serials

    def _placed(self, X: Block, weight: np.ndarray, serials: np.ndarray) -> tuple[Block, np.ndarray, np.ndarray]:
        """Rows with slots, the places of their words, and how many entries of each row are left out."""
        codes, pointers = np.empty_like(X.codes), np.empty_like(X.pointers)
        slots, kept = np.empty_like(X.features), np.empty(len(X.values), np.int64)
        left_out = np.empty(len(weight), np.int64)
        of_rows = weight, X.codes, X.pointers, X.features, X.values
        n = place_rows(self.known, self.first, serials, *of_rows, codes, pointers, slots, kept, left_out)
        kept = kept[:n]
        return X._replace(codes=codes, pointers=pointers, features=slots[:n], values=X.values[kept]), kept, left_out

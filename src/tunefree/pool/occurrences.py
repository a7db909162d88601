"""Occurrences of features in rows: which are kept, which features get slots, and rows with slots instead of features.

See :mod:`tunefree.pool.meetings`, which tells what for.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple, Self

import numpy as np

from tunefree.compiled.functions import compiled

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
        """Nothing is known."""
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
        """None, with capacity for so many."""
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
        """None, with capacity for those in so many entries, and for so many that may leave the log."""
        entries, again, rows, visitors = np.empty((4, n_entries + n_leaving), np.int64)
        return cls(entries, again, rows, visitors, np.zeros(3, np.int64))


class Limits(NamedTuple):
    """When features get slots."""

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
    """Give a feature a slot, and replay what occurred before the rows that are met."""
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
    """How many of some features have no slot."""
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
    """Observe the features of rows, which get serial numbers: a row without a first occurrence has that of the next."""
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

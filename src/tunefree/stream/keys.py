"""An exact, growing dictionary from 64-bit keys to feature ids, and the hash function from names to keys.

Ids are assigned in the order of first appearance, so they do not depend on the borders of batches. The hash table uses
open addressing with linear probing and is at most half full. A slot has the index of a key in a separate array of keys,
ordered by id, as in files: a table of the keys themselves would need four times the memory, mostly for empty slots. The
probability that any two of n names have the same key is about n^2 / 2^65: 3e-8 for a million names.
"""

from __future__ import annotations

import secrets
from functools import lru_cache
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tunefree.compiled.functions import compiled
from tunefree.core.errors import DataError, ModelError

LARGEST_ID = 2**31 - 2
MOST_CODES = 16  # maximum codes of one column in a row
MOST_SHARES = 64  # maximum known codes of a column whose average replaces a new code
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, odd
_FIRST_FACTOR, _SECOND_FACTOR = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)  # SplitMix64's
_FIRST_SLOTS = 1024
# Random for each process: with a known seed, a hostile file could have keys that all map to the same slot. Neither ids
# nor any other output depend on it.
SEED = secrets.randbits(63)


class Keys(NamedTuple):
    """The dictionary. Its arrays are modified in place, and replaced by larger ones when they are full."""

    # Index of the key in ``known``, plus 1; 0 in an empty slot. The number of slots is a power of two.
    slots: Annotated[np.ndarray, "int32[slots]"]
    known: Annotated[np.ndarray, "uint64[capacity]"]  # keys in the order of their ids; half as many as slots
    count: int  # type: ignore[assignment]  # number of known keys
    first: int  # id of the first key
    bits: int  # above 0 for hashing: an id is this many bits of the key, and keys are not stored; 0 if exact
    seed: int = SEED  # affects the slots only


def create(first: int = 1, bits: int = 0, capacity: int = 0) -> Keys:
    """Create an empty dictionary with room for ``capacity`` keys, or with ``bits`` > 0 a hashing to 2^bits ids."""
    size = max(_FIRST_SLOTS, 1 << max(2 * capacity - 1, 0).bit_length())
    return Keys(np.zeros(size, np.int32), np.zeros(size // 2, np.uint64), 0, first, bits)


def n_features(keys: Keys) -> int:
    """Return the largest possible id so far, plus 1."""
    return keys.first + (1 << keys.bits if keys.bits else keys.count)


def lookup(keys: Keys, array: np.ndarray, add: bool = True) -> tuple[Keys, np.ndarray]:
    """Return the updated dictionary and the ids of keys; unknown keys are added, or get the id 0 without ``add``."""
    flat = np.ascontiguousarray(array.reshape(-1), np.uint64)
    ids, progress = np.empty(len(flat), np.int32), np.array([keys.count, 0])
    slots, known = (np.require(array, requirements="W") for array in (keys.slots, keys.known))  # copies if read-only
    keys = keys._replace(slots=slots, known=known)
    while True:
        look_up(keys, flat, ids, progress, add)
        keys = keys._replace(count=int(progress[0]))
        if progress[1] == len(flat):
            return keys, ids.reshape(array.shape)
        keys = _enlarged(keys)


def without(keys: Keys, indices: np.ndarray) -> Keys:
    """Remove the keys at some indices, which are then free; the other ids do not change."""
    remaining = np.setdiff1d(keys.slots[keys.slots > 0] - 1, indices)
    keys.known[indices] = 0
    return placed(keys._replace(slots=np.zeros_like(keys.slots)), remaining, keys.known[remaining])


def placed(keys: Keys, indices: np.ndarray, array: np.ndarray) -> Keys:
    """Add unknown keys at free indices."""
    keys.known[indices] = array
    move((indices + 1).astype(np.int32), keys)
    return keys


def save(keys: Keys) -> np.ndarray:
    """Return the keys in the order of their ids."""
    return keys.known[: keys.count].copy()


def restore(known: np.ndarray, first: int = 1, bits: int = 0, free: np.ndarray | None = None) -> Keys:
    """Restore a dictionary from saved keys and free indices (f,); raise a ModelError if a key occurs twice."""
    indices = np.delete(np.arange(len(known)), [] if free is None else free)
    keys = create(first, bits, len(known))._replace(count=len(known))
    keys = placed(keys, indices, known[indices])
    if np.count_nonzero(keys.slots) < len(indices):
        raise ModelError("a feature is known twice")
    return keys


@lru_cache(1 << 12)
def hash_name(name: str, seed: int = 0) -> int:
    """Return the key of a name. The key of a column or namespace is the seed for the names in it."""
    data = np.frombuffer(name.encode(), np.uint8)
    return int(hash_strings(np.array([0, len(data)]), data, seed)[0])


@lru_cache(maxsize=4096)
def missing_key(column: str) -> int:
    """Return the key of the indicator feature of a column's missing values."""
    return hash_name("missing", hash_name(column))


def category_seed(column: str) -> int:
    """Return the seed for the keys of a column's categories."""
    return hash_name("=", hash_name(column))


def as_number(keys: np.ndarray) -> np.ndarray:
    """Map keys to numbers from 0 to 1 (key / 2^64), in single precision."""
    return (keys / 2.0**64).astype(np.float32)


def averages(
    keys: Keys, columns: np.ndarray, column: int, rows: np.ndarray, sample: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Replace a code that is new in some rows by the frequencies of the column's codes: rows, features and values.

    ``columns`` (keys,) has the column of each key. ``sample`` has the column's codes in a sample of rows, as numbers.
    """
    indices, sample = np.flatnonzero(columns == column), np.sort(sample)
    numbers = as_number(keys.known[indices])
    counts = np.searchsorted(sample, numbers, "right") - np.searchsorted(sample, numbers, "left")
    frequent = np.argsort(-counts, kind="stable")[:MOST_SHARES]
    frequent = frequent[counts[frequent] > 0]
    features, shares = (keys.first + indices[frequent]).astype(np.int32), counts[frequent] / max(len(sample), 1)
    return np.repeat(rows, len(features)), np.tile(features, len(rows)), np.tile(shares, len(rows))


def hash_strings(offsets: ArrayLike, data: ArrayLike, seed: int = 0) -> np.ndarray:
    """Return the keys (uint64) of strings in the layout of Arrow."""
    offsets = np.asarray(offsets, np.int64)
    padded = np.append(np.asarray(data, np.uint8)[offsets[0] : offsets[-1]], np.zeros(8, np.uint8))
    hashes = np.empty(len(offsets) - 1, np.uint64)
    hash_each(offsets - offsets[0], padded, int(seed), hashes)
    return hashes


def _enlarged(keys: Keys) -> Keys:
    """Copy the dictionary to one with twice the capacity."""
    capacity = min(2 * len(keys.known), LARGEST_ID + 1 - keys.first)
    if keys.count >= capacity:
        remedy = "hash the features with `hash_bits`, or ignore columns that are different in every row"
        raise DataError(f"more than {capacity:,} different features", remedy=remedy)
    slots, known = np.zeros(2 * len(keys.slots), np.int32), np.empty(capacity, np.uint64)
    known[: keys.count] = keys.known[: keys.count]
    enlarged = keys._replace(slots=slots, known=known)
    move(keys.slots, enlarged)
    return enlarged


def mix(key):
    """SplitMix64's bijection of 64 bits, in which every bit of the key affects every bit of the result."""
    key = (key ^ (key >> np.uint64(30))) * _FIRST_FACTOR
    key = (key ^ (key >> np.uint64(27))) * _SECOND_FACTOR
    return key ^ (key >> np.uint64(31))


def load(data, place):
    """Eight bytes as one word, the first the lowest; compiled to a single instruction."""
    i = np.uint64(place)
    return _load_four(data, i) | _load_four(data, i + np.uint64(4)) << np.uint64(32)


def _load_four(data, i):
    word = np.uint64(data[i])
    word |= np.uint64(data[i + np.uint64(1)]) << np.uint64(8)
    word |= np.uint64(data[i + np.uint64(2)]) << np.uint64(16)
    return word | np.uint64(data[i + np.uint64(3)]) << np.uint64(24)


def fold(key, word):
    """Add eight bytes to a hash; a bijection of the word, and of the key."""
    key = (key ^ word) * _FIRST_FACTOR
    return key ^ (key >> np.uint64(32))


def finish(key, size):
    """The hash of a name of ``size`` bytes: its whole words are folded, then the rest with zeros, perhaps none."""
    return mix(key ^ (np.uint64(size) * _MULTIPLIER))


def hash_bytes(data, start, stop, seed):
    """The key of ``data[start:stop]``: different for different strings of the same length up to 8 bytes.

    Eight bytes more can be read behind ``stop``: they are masked.
    """
    key, place = seed, start
    while place + 8 <= stop:
        key = fold(key, load(data, place))
        place += 8
    rest = (np.uint64(1) << np.uint64(8 * (stop - place))) - np.uint64(1)
    return finish(fold(key, load(data, place) & rest), stop - start)


def _shift(slots):
    """The highest bits of a mixed key are its slot, so that a table of twice the size keeps the order of slots."""
    shift = np.uint64(64)
    size = len(slots)
    while size > 1:
        size >>= 1
        shift -= np.uint64(1)
    return shift


def _slot(slots, known, shift, seed, key):
    """The slot of a key, or the empty one where it belongs."""
    slot = mix(key ^ seed) >> shift
    while slots[slot] != 0 and known[slots[slot] - 1] != key:
        slot = (slot + np.uint64(1)) & np.uint64(len(slots) - 1)
    return slot


@compiled
def move(slots: Annotated[np.ndarray, "int32[old_slots]"], keys: Keys) -> None:
    """Copy a table to a larger one, in the order of its slots: both are accessed from one end to the other."""
    shift, seed = _shift(keys.slots), np.uint64(keys.seed)
    for i in range(len(slots)):
        if slots[i] != 0:
            keys.slots[_slot(keys.slots, keys.known, shift, seed, keys.known[slots[i] - 1])] = slots[i]


@compiled
def look_up(
    keys: Keys,
    array: Annotated[np.ndarray, "uint64[n]"],
    ids: Annotated[np.ndarray, "int32[n]"],
    progress: Annotated[np.ndarray, "int64[2]"],
    add: bool,
) -> None:
    """Fill in ids; ``progress`` is how many keys are known, and the place where to begin, or where it was full."""
    slots, known, bits, first = keys.slots, keys.known, keys.bits, keys.first
    shift, seed, buckets = _shift(slots), np.uint64(keys.seed), np.uint64((1 << bits) - 1)
    count, start = progress[0], progress[1]
    progress[1] = len(array)
    for i in range(start, len(array)):
        key = array[i]
        if bits > 0:
            ids[i] = first + np.int64(mix(key) & buckets)
            continue
        slot = _slot(slots, known, shift, seed, key)
        number = np.int64(slots[slot])
        if number == 0 and add:
            if count == len(known):
                progress[1] = i
                break
            known[count] = key
            count += 1
            slots[slot] = number = count
        ids[i] = first + number - 1 if number > 0 else 0
    progress[0] = count


@compiled
def hash_each(
    offsets: Annotated[np.ndarray, "int64[offsets]"],
    data: Annotated[np.ndarray, "uint8[bytes]"],
    seed: int,
    hashes: Annotated[np.ndarray, "uint64[strings]"],
) -> None:
    """The keys of strings; the seed has 64 bits, whose highest one is a sign in compiled code."""
    for i in range(len(hashes)):
        hashes[i] = hash_bytes(data, offsets[i], offsets[i + 1], np.uint64(seed))

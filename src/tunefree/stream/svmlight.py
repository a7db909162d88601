"""svmlight (libsvm) text: ``label [qid:n] index:value ... [# comment]``. Every byte is checked."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from tunefree.compiled.functions import compiled
from tunefree.core.schema import HASH_BITS, Flag, check_header
from tunefree.stream import keys as dictionary
from tunefree.stream import tokens
from tunefree.stream.keys import load
from tunefree.stream.tokens import (
    LINE_END,
    NOT_FINITE,
    OK,
    PADDING,
    TOO_LARGE,
    Longs,
    Output,
    byte_at,
    ends_token,
    first_slot,
    read_any,
    read_digits,
    read_short,
    read_value,
    skip_blanks,
    skip_line,
    table_mask,
)

_COLON, _COMMA, _HASH = 58, 44, 35
_QID, _FOUR_BYTES = np.uint64(int.from_bytes(b"qid:", "little")), np.uint64(0xFFFFFFFF)
_LARGEST_INDEX = np.array([2**31 - 1], np.uint64)  # of features with names
_LARGEST_HASHED = np.array([10**19 - 1], np.uint64)  # of features that are hashed: any of 19 digits
_SHORTEST = 4  # bytes of an entry, such as " 1:2"
_MOST_BY_INDEX = 2**22  # indices below have their feature in an array, where it takes less time than in the dictionary

# Kinds of errors beside those of tokens.py.
_LABEL, _LABEL_NOT_FINITE, _LABELS, _QUERY, _INDEX, _COLON_MISSING, _OVERFLOW, _REPEATED = range(10, 18)

_MESSAGES = tokens.MESSAGES | {
    _LABEL: ("the label {} is not a number", "start every row with its label (0 where it is unknown)"),
    _LABEL_NOT_FINITE: ("the label {} is not finite", "correct the row"),
    _LABELS: ("the row has several labels, {}", "give each row one label"),
    _QUERY: ("the query number of {} is not an integer", "correct the row"),
    _INDEX: ("{} is not index:value, with an index of digits", "correct the row"),
    _COLON_MISSING: ("{} has no colon", "write index:value (a row cut short looks like this)"),
    _OVERFLOW: ("the index of {} is larger than 2147483647", "hash features (`hash_bits=20`), or renumber them"),
    _REPEATED: ("an index occurs twice in the row that starts with {}", "give each feature one value"),
}


def is_svmlight(line: str) -> bool:
    """Whether a first line is a label followed by words with a colon; words that start with ``#`` are passed over."""
    words = line.split()
    pairs = [word for word in words[1:] if not word.startswith("#")]
    return len(words) > 1 and all(":" in word for word in pairs) and "," not in words[0]


class SvmlightEncoder(tokens.LineEncoder):
    """Turns lines of svmlight text into batches.

    An exact dictionary of indices is kept, or indices are hashed to 2^hash_bits features, and the values of features
    that collide are summed. If ``zero_based``, 0 is an index; it becomes one when it occurs. ``has_queries`` tells
    whether the first rows have query numbers (``qid:``), which are not used.
    """

    messages = _MESSAGES

    def __init__(self, hash_bits: int = 0, zero_based: bool = False) -> None:
        super().__init__(hash_bits)
        self.zero_based, self._by_index = zero_based, np.zeros(1, np.int32)  # the last is 0, for larger indices
        self.has_queries, self._is_new = False, True

    @classmethod
    def of_indices(cls, n: int) -> SvmlightEncoder:
        """The encoder that knows the indices 1 to n, as the features of these numbers."""
        encoder = cls()
        encoder.keys, _ = dictionary.lookup(encoder.keys, np.arange(1, n + 1, dtype=np.uint64))
        return encoder

    def ids_of(self, columns: np.ndarray, learning: bool = False) -> np.ndarray:
        """The features of columns from 0 on, the first having the smallest index; 0 for one never learned."""
        indices = columns.astype(np.uint64) + np.uint64(not self.zero_based)
        self.keys, ids = dictionary.lookup(self.keys, indices, learning)
        return ids

    def _tokenized(self, data: np.ndarray, scratch: tokens.Scratch, labelled: bool) -> Output:
        largest = _LARGEST_HASHED if self.keys.bits else _LARGEST_INDEX
        seen = scratch.array("seen", (int(table_mask(len(data) // _SHORTEST)) + 1,), np.uint64)
        return tokens.tokenize(tokenize, data, _SHORTEST, scratch, largest, seen, dictionary.SEED)

    def _ids_of(self, prepared: tokens.Prepared, learning: bool) -> np.ndarray:
        indices = prepared.output.keys
        if self._is_new:
            self._is_new, self.has_queries = False, b" qid:" in prepared.data.tobytes()
        self.zero_based = self.zero_based or (learning and not indices.all())
        return self._look_up(indices, learning)

    def _look_up(self, indices: np.ndarray, learning: bool) -> np.ndarray:
        if self.keys.bits:
            self.keys, ids = dictionary.lookup(self.keys, indices, learning)
            return ids
        known, largest = self._by_index, min(int(indices.max(initial=0)), _MOST_BY_INDEX - 1)
        if largest >= len(known) - 1:
            self._by_index = known = np.zeros(2 * largest + 2, np.int32)  # and filled anew as indices occur
        ids = known.take(indices.view(np.int64), mode="clip")
        missing = np.flatnonzero(ids == 0)
        if len(missing):
            self.keys, ids[missing] = dictionary.lookup(self.keys, indices[missing], learning)
            small = missing[indices[missing] < len(known) - 1]
            known[indices[small].view(np.int64)] = ids[small]
        return ids

    def absorb(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Add the features that an encoder like this has learned from rows that follow, given by its state."""
        self.zero_based = self.zero_based or header["zero_based"]
        self.keys, _ = dictionary.lookup(self.keys, arrays["keys"])

    def _known_names(self) -> list[str]:
        return [str(key) for key in dictionary.save(self.keys).tolist()]

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return {"keys": dictionary.save(self.keys)}, {"hash_bits": self.keys.bits, "zero_based": self.zero_based}

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> SvmlightEncoder:
        """The encoder that was stored."""
        check_header(header, {"hash_bits": HASH_BITS, "zero_based": Flag()}, "encoder")
        encoder = cls(header["hash_bits"], header["zero_based"])
        encoder.keys = dictionary.restore(arrays["keys"], bits=header["hash_bits"])
        return encoder


def _read_label(data, place, longs):
    """(label, place of what follows, kind of error)"""
    label, stop, kind = read_any(data, place, longs)
    if kind == NOT_FINITE:
        kind = _LABEL_NOT_FINITE
    elif kind != TOO_LARGE and (kind != OK or not ends_token(byte_at(data, stop), _HASH)):
        kind = _LABELS if kind == OK and byte_at(data, stop) == _COMMA else _LABEL
    return label, stop, kind


def _skip_query(data, place):
    """Skip ``qid:n``: (place of what follows, kind of error)."""
    kind = OK
    if load(data, place) & _FOUR_BYTES == _QID:
        _, stop = read_digits(data, place + 4, np.uint64(0))
        kind = OK if stop > place + 4 and ends_token(byte_at(data, stop), _HASH) else _QUERY
        place = stop if kind == OK else place
    return place, kind


def _index_error(digits, byte):
    """The kind of error of an index, followed by a byte, that is not one followed by a colon."""
    if byte != _COLON or digits == 0:
        return _COLON_MISSING if digits > 0 and ends_token(byte, _HASH) else _INDEX
    return _OVERFLOW


def _read_entries(data, place, k, output, longs, largest):
    """Read ``index:value`` to the end of a row: (entries after it, place reached, kind of error)."""
    next_index, ascending, kind = np.uint64(0), True, OK
    while True:
        place = skip_blanks(data, place)
        if byte_at(data, place) == LINE_END or byte_at(data, place) == _HASH:
            break
        index, stop = read_digits(data, place, np.uint64(0))
        if byte_at(data, stop) != _COLON or stop == place or stop - place > 19 or index > largest:
            kind = _index_error(stop - place, byte_at(data, stop))
            break
        start = stop + 1
        value, stop = read_short(data, start)
        if not ends_token(byte_at(data, stop), _HASH) or stop == start:
            value, stop, kind = read_value(data, start, longs, _HASH)
            if kind != OK:
                break
        ascending &= index >= next_index
        next_index = index + np.uint64(1)
        output.keys[k], output.values[k] = index, value
        k += 1
        place = stop
    return k, place, kind if kind != OK or ascending else _REPEATED


def _repeats(keys, seen, seed, start, stop):
    """Whether a key occurs twice in a row; ``seen`` is a hash table with any content."""
    mask = table_mask(stop - start)
    seen[: np.int64(mask) + 1] = 0
    repeated = False
    for k in range(start, stop):
        mark = keys[k] + np.uint64(1)
        slot = first_slot(mark, seed, mask)
        while seen[slot] != 0 and seen[slot] != mark:
            slot = (slot + np.uint64(1)) & mask
        repeated |= seen[slot] == mark
        seen[slot] = mark
    return repeated


@compiled
def tokenize(
    data: Annotated[np.ndarray, "uint8[bytes]"],
    output: Output,
    longs: Longs,
    sizes: Annotated[np.ndarray, "int64[3]"],
    largest: Annotated[np.ndarray, "uint64[1]"],
    seen: Annotated[np.ndarray, "uint64[slots]"],
    seed: int,
) -> None:
    """Tokenize whole lines, whose last byte is a line end; sizes become the numbers of rows, entries, and errors."""
    place, line, n, entries, n_errors = 0, 0, 0, 0, 0
    reals, integers, errors = output.reals, output.integers, output.errors
    while place < len(data) - PADDING:
        first = place = skip_blanks(data, place)
        if byte_at(data, place) != LINE_END and byte_at(data, place) != _HASH:
            label, stop, kind = _read_label(data, place, longs)
            k = entries
            if kind == OK:
                place, kind = _skip_query(data, skip_blanks(data, stop))
            if kind == OK:
                k, place, kind = _read_entries(data, place, k, output, longs, largest[0])
            if kind == _REPEATED and not _repeats(output.keys, seen, np.uint64(seed), entries, k):
                kind = OK
            if kind == OK:
                reals[n, 0], integers[n, 0], integers[n, 1] = label, line, k
                n, entries = n + 1, k
            else:
                errors[n_errors, 0], errors[n_errors, 2] = line, kind
                errors[n_errors, 1] = first if kind == _REPEATED else place
                n_errors += 1
        place = skip_line(data, place)
        line += 1
    sizes[0], sizes[1], sizes[2] = n, entries, n_errors

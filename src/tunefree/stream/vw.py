"""Vowpal Wabbit text: ``[label [importance [base]]] ['tag]|namespace[:value] feature[:value] ... |namespace ...``.

As Vowpal Wabbit reads it: a word that touches the first bar is the tag, with or without an apostrophe; a namespace's
value multiplies its features; a feature without a value has the value 1; a bar followed by a blank opens the namespace
without a name. Two things are refused that it accepts: features of no name (``:3``) and a base (initial prediction)
other than 0. A tab is a blank everywhere (there, what stands before a tab in front of the first bar is ignored).
Names may hold any bytes but control characters, blanks, colons and bars.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pyarrow as pa

from tunefree.compiled.functions import compiled
from tunefree.core.errors import ModelError
from tunefree.core.schema import HASH_BITS, check_header
from tunefree.stream import keys as dictionary
from tunefree.stream import tokens
from tunefree.stream.arrays import bytes_of, number_array
from tunefree.stream.keys import finish, fold, load
from tunefree.stream.tokens import (
    BLANK,
    LINE_END,
    NOT_A_NUMBER,
    NOT_FINITE,
    OK,
    PADDING,
    TOO_LARGE,
    Longs,
    Output,
    byte_at,
    bytes_before,
    ends_token,
    equal,
    less,
    read_any,
    read_short,
    read_value,
    skip_blanks,
    skip_line,
)

_COLON, _BAR, _APOSTROPHE, _CARET = 58, 124, 39, 94
_NO_NAME = np.uint64(0)
_CONTROL_LIMIT = np.uint64(33)

# Kinds of errors beside those of tokens.py.
_NUMBER, _LABEL_NOT_FINITE, _NO_LABEL, _WEIGHT, _BASE, _MANY, _NO_BAR, _NAME = range(10, 18)

_MESSAGES = tokens.MESSAGES | {
    _NUMBER: ("{} before the first bar is not a number", "write [label [importance]] ['tag]| before the features"),
    _LABEL_NOT_FINITE: ("the label or importance {} is not finite", "correct the row"),
    _NO_LABEL: ("the row has no label, it starts with {}", "give it one, with a blank between label and bar"),
    _WEIGHT: ("the importance of the row that starts with {} is negative", "give it one from 0"),
    _BASE: ("the base (initial prediction) of the row that starts with {} is not 0", "leave it out"),
    _MANY: ("{} is one word too many before the first bar", "write [label [importance]] ['tag]| before the features"),
    _NO_BAR: ("the row that starts with {} has no bar", "put | before the features"),
    _NAME: ("{} does not start with a feature's name", "write name:value"),
}


def is_vw(line: str) -> bool:
    """Whether a word of a first line starts with a bar."""
    return any(word.startswith("|") for word in line.split())


class VWEncoder(tokens.LineEncoder):
    """Turns lines of Vowpal Wabbit text into batches.

    Features are known by namespace and name; the values of a feature that occurs twice in a row are summed. Their names
    are ``namespace^feature``, or ``feature`` in the namespace without a name. They are kept in an exact dictionary, or
    hashed to 2^hash_bits features: then the values of features that collide are summed, and no names are kept.
    """

    messages, unlabelled, has_duplicates = _MESSAGES, _NO_LABEL, True

    def __init__(self, hash_bits: int = 0) -> None:
        super().__init__(hash_bits)
        self._names = [_array_of(np.zeros(0, np.uint8), np.zeros(0, np.int64))]  # in the order of their ids

    def _tokenized(self, data: np.ndarray, scratch: tokens.Scratch, labelled: bool) -> Output:
        return tokens.tokenize(tokenize, data, 2, scratch, labelled, np.empty(3))

    def _ids_of(self, prepared: tokens.Prepared, learning: bool) -> np.ndarray:
        known, output = self.keys.count, prepared.output
        self.keys, ids = dictionary.lookup(self.keys, output.keys, learning)
        if self.keys.count > known:
            sizes = np.empty(self.keys.count - known, np.int64)
            names = _names_of(prepared.data, ids, output.places, self.keys.first + known, sizes)
            self._names.append(_array_of(names, sizes))
        return ids

    def _tags(self, data: np.ndarray, output: tokens.Output) -> list[str]:
        starts, stops = output.integers[:, 2], output.integers[:, 3]
        if not stops.any():
            return [""] * len(stops)
        spans = zip(starts.tolist(), stops.tolist(), strict=True)
        return [data[start:stop].tobytes().decode("utf-8", "backslashreplace") for start, stop in spans]

    def absorb(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Add the features that an encoder like this has learned from rows that follow, given by its state."""
        if self.keys.bits:
            return
        new = np.flatnonzero(dictionary.lookup(self.keys, arrays["keys"], add=False)[1] == 0)
        self.keys, _ = dictionary.lookup(self.keys, arrays["keys"][new])
        self._names.append(_array_of(arrays["names"], arrays["name_sizes"]).take(number_array(new)))

    def _known_names(self) -> list[str]:
        return [name.decode("utf-8", "backslashreplace") for name in pa.concat_arrays(self._names).to_pylist()]

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        places, text = bytes_of(pa.concat_arrays(self._names))
        names = {"names": text[places[0] : places[-1]].copy(), "name_sizes": np.diff(places).astype(np.int64)}
        return {"keys": dictionary.save(self.keys), **names}, {"hash_bits": self.keys.bits}

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> VWEncoder:
        """The encoder that was stored."""
        check_header(header, {"hash_bits": HASH_BITS}, "encoder")
        encoder = cls(header["hash_bits"])
        encoder.keys = dictionary.restore(arrays["keys"], bits=header["hash_bits"])
        sizes = arrays["name_sizes"]
        if len(sizes) != encoder.keys.count or (sizes < 0).any() or sizes.sum() != len(arrays["names"]):
            raise ModelError("the names of features do not end with their text")
        encoder._names = [_array_of(arrays["names"], sizes)]
        return encoder


def _array_of(names: np.ndarray, sizes: np.ndarray) -> Any:
    """Names that lie one after the other as an Arrow array; their bytes may be any."""
    buffers = [None, pa.py_buffer(np.append(0, np.cumsum(sizes))), pa.py_buffer(np.ascontiguousarray(names))]
    return pa.Array.from_buffers(pa.large_binary(), len(sizes), buffers)


def _names_of(data: np.ndarray, ids: np.ndarray, places: np.ndarray, first: int, sizes: np.ndarray) -> np.ndarray:
    """The names of the features from id ``first`` on, which appear in the order of their ids; fills in their sizes."""
    names = np.empty(copy_names(data, ids, places, first, sizes, np.empty(0, np.uint8)), np.uint8)
    copy_names(data, ids, places, first, sizes, names)
    return names


def _read_name(data, place, seed):
    """The key of a name that ends at a control character, blank, colon or bar: (key, place of what follows)."""
    key, start = seed, place
    while True:
        word = load(data, place)
        marks = less(word, _CONTROL_LIMIT) | equal(word, _COLON) | equal(word, _BAR)
        if marks != 0:
            break
        key = fold(key, word)
        place += 8
    count = bytes_before(marks)
    key = fold(key, word & ((np.uint64(1) << np.uint64(8) * count) - np.uint64(1)))
    place += np.int64(count)
    return finish(key, place - start), place


def _find_bar(data, place):
    while byte_at(data, place) != _BAR and byte_at(data, place) != LINE_END:
        place += 1
    return place


def _end_of_word(data, place):
    while not ends_token(byte_at(data, place), _BAR):
        place += 1
    return place


def _read_head(data, place, bar, numbers, longs):
    """Label, importance, base into ``numbers``: (how many, start and stop of the tag, place reached, kind of error)."""
    count, tag_start, tag_stop, kind = 0, 0, 0, OK
    while True:
        place = skip_blanks(data, place)
        if place >= bar or kind != OK:
            break
        stop = _end_of_word(data, place)
        if stop == bar or byte_at(data, place) == _APOSTROPHE:
            tag_start, tag_stop = place + (byte_at(data, place) == _APOSTROPHE), stop
        elif count == 3 or tag_stop > 0:
            kind = _MANY
        else:
            value, end, kind = read_any(data, place, longs)
            if kind == NOT_A_NUMBER or (kind == OK and end != stop):
                kind = _NUMBER
            numbers[count] = value
            count += 1
        place = place if kind != OK else stop
    return count, tag_start, tag_stop, place, kind


def _head_error(numbers, count, labelled):
    """The error in the numbers before the bar."""
    if count == 0 and labelled:
        return _NO_LABEL
    if count > 1 and numbers[1] < 0:
        return _WEIGHT
    return _BASE if count > 2 and numbers[2] != 0 else OK


def _read_features(data, place, k, output, longs):
    """Read from the first bar to the end of a row: (entries after it, place reached, kind of error)."""
    namespace, factor, space, kind = _NO_NAME, 1.0, place, OK
    while True:
        place = skip_blanks(data, place)
        if byte_at(data, place) == LINE_END:
            break
        opens = byte_at(data, place) == _BAR
        start = place + 1 if opens else place
        key, stop = _read_name(data, start, _NO_NAME if opens else namespace)
        value = 1.0
        if byte_at(data, stop) == _COLON and stop > start:
            begin = stop + 1
            value, stop = read_short(data, begin)
            if not ends_token(byte_at(data, stop), _BAR) or stop == begin:
                value, stop, kind = read_value(data, begin, longs, _BAR)
        elif not ends_token(byte_at(data, stop), _BAR) or (stop == start and not opens):
            kind = _NAME
        if kind != OK:
            break
        if opens:
            namespace, factor, space = key, value, start
        else:
            output.keys[k], output.values[k] = key, value * factor
            output.places[k, 0], output.places[k, 1] = place, space
            k += 1
            if not np.isfinite(value * factor):
                kind = TOO_LARGE
                break
        place = stop
    return k, place, kind


@compiled
def tokenize(
    data: Annotated[np.ndarray, "uint8[bytes]"],
    output: Output,
    longs: Longs,
    sizes: Annotated[np.ndarray, "int64[3]"],
    labelled: bool,
    numbers: Annotated[np.ndarray, "float64[3]"],
) -> None:
    """Tokenize whole lines, whose last byte is a line end; sizes become the numbers of rows, entries, and errors."""
    place, line, n, entries, n_errors = 0, 0, 0, 0, 0
    reals, integers, errors = output.reals, output.integers, output.errors
    while place < len(data) - PADDING:
        place = skip_blanks(data, place)
        bar = _find_bar(data, place)
        if byte_at(data, place) != LINE_END:
            k, kind, first = entries, _NO_BAR, place
            if byte_at(data, bar) == _BAR:
                numbers[0], numbers[1], numbers[2] = np.nan, 1.0, 0.0
                count, start, stop, place, kind = _read_head(data, place, bar, numbers, longs)
                integers[n, 2], integers[n, 3] = start, stop
                if kind == OK:
                    place, kind = first, _head_error(numbers, count, labelled)
                elif kind == NOT_FINITE:
                    kind = _LABEL_NOT_FINITE
            if kind == OK:
                k, place, kind = _read_features(data, bar, k, output, longs)
            if kind == OK:
                reals[n, 0], reals[n, 1], integers[n, 0], integers[n, 1] = numbers[0], numbers[1], line, k
                n, entries = n + 1, k
            else:
                errors[n_errors, 0], errors[n_errors, 1], errors[n_errors, 2] = line, place, kind
                n_errors += 1
        place = skip_line(data, place)
        line += 1
    sizes[0], sizes[1], sizes[2] = n, entries, n_errors


def _copy_name(data, place, names, stop):
    """Copy a name where there is capacity for it; returns the place behind its copy."""
    while byte_at(data, place) > BLANK and byte_at(data, place) != _COLON and byte_at(data, place) != _BAR:
        if stop < len(names):
            names[stop] = byte_at(data, place)
        place += 1
        stop += 1
    return stop


@compiled
def copy_names(
    data: Annotated[np.ndarray, "uint8[bytes]"],
    ids: Annotated[np.ndarray, "int32[entries]"],
    places: Annotated[np.ndarray, "int32[entries, 2]"],
    first: int,
    sizes: Annotated[np.ndarray, "int64[new]"],
    names: Annotated[np.ndarray, "uint8[names]"],
) -> int:
    """Copy the names of the features from id ``first`` on, which appear in the order of their ids.

    Fills in their sizes and returns the sum; copies the names where there is capacity for them.
    """
    total, new = 0, 0
    for k in range(len(ids)):
        if ids[k] == first + new:
            begin = total
            total = _copy_name(data, places[k, 1], names, total)
            if total > begin:
                if total < len(names):
                    names[total] = _CARET
                total += 1
            total = _copy_name(data, places[k, 0], names, total)
            sizes[new] = total - begin
            new += 1
    return total

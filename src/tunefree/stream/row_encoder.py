"""A fast encoder of rows that are dicts: rows of requests, and frames of one row.

To encode one row as a table takes most of its time in arrays of one value, so the features of values are cached. The
encoder of tables encodes each value the first time, and all rows that are not supported here: rows with texts or lists,
with unknown values, or with values that cannot be used.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import DataError
from tunefree.core.rows import Block, sparse, table
from tunefree.stream.columns import Faults, Number, family
from tunefree.stream.encoder import present_of
from tunefree.stream.frames import is_pandas
from tunefree.stream.jsonlines import read_objects
from tunefree.stream.keys import MOST_CODES
from tunefree.stream.profile import LARGEST, Seen, is_unusual, observed_of
from tunefree.stream.schema import notations_of

MOST_ROWS = 64  # more rows are encoded faster as a table
MOST_REMEMBERED = 1000  # cached values of a column
LONGEST = 200  # characters of a cached value
_WORD_KINDS = {"text", "bag", "vector"}  # kinds of columns whose values are not cached
_CACHED_TYPES = {str, bool, int, float, type(None)}  # types of JSON values except lists and objects
_WHOLE = 2**53  # float64 represents all whole numbers up to it
_NUMBER_TYPES = {int, float}
_ABSENT: Any = object()
_FIRST_ROW = np.zeros(1, np.intp)


class _Features(NamedTuple):
    """The features of a value of a column."""

    numbers: list[float]
    codes: list[tuple[int, int]]  # (source, as in a block; feature)
    entries: list[tuple[int, float]]  # (feature, value): numbers of later columns
    seen: Seen


_NO_FEATURES = _Features([], [], [], Seen(True, np.nan, np.nan))


class RowEncoder:
    """Encodes rows to be predicted, with a bounded cache of values for each column.

    Values are as in JSON. ``names`` are the names of the columns, empty if no row is supported.
    """

    def __init__(self, encoder: Any) -> None:
        self.encoder, self._types, columns = encoder, encoder.types(), encoder.columns
        self._column_states = [column.state() for column in columns]
        self._dictionary = encoder.ids.keys
        self._keys = self._dictionary.known[: self._dictionary.count].copy()
        unsupported = [notations_of(encoder), encoder.na_values, encoder.notes, encoder.hash_bits, encoder.exposure]
        unsupported += [encoder.ids.most is not None]  # features may be forgotten
        unsupported += [_WORD_KINDS & {column.kind for column in columns}]
        self.names = frozenset(column.name for column in columns if not any(unsupported))
        self._known: list[dict[Any, _Features | None]] = [{} for _ in columns]
        self._are_numbers = [type(column) is Number and not column.since for column in columns]

    def follow(self, encoder: Any) -> RowEncoder:
        """The row encoder of an encoder in its present state, with the cached values that are still valid."""
        keys = encoder.ids.keys
        is_same = keys.known is self._dictionary.known and keys.count == self._dictionary.count
        if encoder is self.encoder and is_same and len(encoder.columns) == len(self._column_states):
            return self
        new = RowEncoder(encoder)
        if new._column_states == self._column_states and np.array_equal(new._keys[: len(self._keys)], self._keys):
            for cache, earlier_cache in zip(new._known, self._known, strict=True):
                cache |= {key: features for key, features in earlier_cache.items() if features is not None}
        return new

    def encode(self, rows: Sequence[dict[str, Any]]) -> tuple[Block, list[list[Seen]]] | None:
        """The block of rows, and the values in each row; None if rows need the encoder of tables."""
        encoded = list[list[_Features]]()
        for row in rows:
            encoded.append([])
            for index, column in enumerate(self._column_states):
                if (features := self._features(index, row.get(column["name"], _ABSENT))) is None:
                    return None
                encoded[-1].append(features)
        return _block_of(encoded), [[features.seen for features in row] for row in encoded]

    def _features(self, index: int, value: Any) -> _Features | None:
        """The features of a value of a column; None if the row needs the encoder of tables."""
        cache, kind, is_number = self._known[index], type(value), self._are_numbers[index]
        largest = LARGEST if kind is float else _WHOLE
        if is_number and kind in _NUMBER_TYPES and -largest <= value <= largest:
            return _Features([float(value)], [], [], Seen(False, value, value))
        if value is _ABSENT and self.encoder.columns[index].since:
            return _NO_FEATURES
        if kind not in _CACHED_TYPES or (kind is str and len(value) > LONGEST):
            return None
        key = kind, value
        features = cache.get(key, _ABSENT)
        if features is _ABSENT:
            if len(cache) >= MOST_REMEMBERED:
                cache.clear()
            features = cache[key] = self._encode_value(index, value)
        return features

    def _encode_value(self, index: int, value: Any) -> _Features | None:
        """The features of a value, by the encoder of tables; None if the whole row needs that encoder."""
        column, faults = self.encoder.columns[index], Faults()
        try:
            chunk = read_objects([{column.name: value}], {column.name: self._types[column.name]}, "")
        except DataError:
            return None
        array = present_of(self.encoder, chunk.data.column(column.name), column.name, faults, column.kind)
        if family(array.type) not in column.families:
            return None
        values = column.convert(array, faults)
        parts = column.parts_since(values, False)
        if faults or faults.notes:
            return None
        parts_by_column = [[(index, part) for part in kind_parts] for kind_parts in (parts.codes, parts.words)]
        ids, words = self.encoder.ids.chunk_features(1, *parts_by_column, False)
        features = ids[0].tolist()
        if any(codes.places[0] >= 0 and not feature for codes, feature in zip(parts.codes, features, strict=True)):
            return None
        observed = parts.observed
        number = np.nan if observed.numbers is None else float(observed.numbers[0])
        value_compared = np.nan if observed.values_of is None else float(observed.values_of(_FIRST_ROW)[0])
        codes = [(MOST_CODES * index + k, feature) for k, feature in enumerate(features)]
        numbers = [float(array[0]) for array in parts.numbers]
        entries = list(zip(words.features.tolist(), words.values.tolist(), strict=True))
        return _Features(numbers, codes, entries, Seen(bool(observed.missing[0]), number, value_compared))


def block_of_frame(encoder: Any, X: Any, learning: bool = False) -> Block | None:
    """The block of a pandas frame of one row, None if not supported; if ``learning``, it is added to the profile."""
    if not is_pandas(X) or len(X) != 1:
        return None
    old = encoder.row_encoder
    encoder.row_encoder = row_encoder = RowEncoder(encoder) if old is None else old.follow(encoder)
    values = X.iloc[0]
    is_supported = X.columns.is_unique and type(values.dtype).__name__ != "SparseDtype"
    is_supported = is_supported and not (learning and any(column.since for column in encoder.columns))
    as_python = [value.item() if isinstance(value, np.generic) else value for value in values.tolist()]
    row = dict(zip(X.columns.tolist(), as_python, strict=True)) if is_supported else {}
    encoded = row_encoder.encode([row]) if row.keys() == row_encoder.names else None
    if encoded is None or any(seen.is_missing for seen in encoded[1][0]):
        return None
    if learning:
        encoder.has_learned(observed_of(encoded[1]), 1)
    elif is_unusual(encoded[1][0], encoder.profile):
        return None  # the encoder of tables warns
    return encoded[0]


def _block_of(encoded: Sequence[Sequence[_Features]]) -> Block:
    """The block of rows, from the features of each column in each row."""
    numbers = np.array([[number for features in row for number in features.numbers] for row in encoded])
    codes = [dict(code for features in row for code in features.codes) for row in encoded]
    sources = list(codes[0]) if len(codes) == 1 else sorted(set().union(*codes))
    ids = np.array([[row.get(source, 0) for source in sources] for row in codes], np.int32)
    words, entries = None, [[pair for features in row for pair in features.entries] for row in encoded]
    if any(entries):
        entry_features, values = zip(*(pair for row in entries for pair in row), strict=True)
        words = sparse([0, *accumulate(map(len, entries))], entry_features, values)
    return table(numbers, np.arange(1, numbers.shape[1] + 1), ids, words, sources)

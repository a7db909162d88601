"""Columns of texts and lists: texts and lists of strings are bags of words, lists of numbers are numbered columns."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tunefree.core.schema import Length
from tunefree.stream.arrays import bytes_of, is_missing, to_numpy
from tunefree.stream.columns import (
    Array,
    Bags,
    Column,
    Faults,
    Observed,
    Parts,
    Words,
    blank_to_null,
    decoded,
    one_by_one,
    prefixed_strings,
    string_keys,
)
from tunefree.stream.keys import hash_name
from tunefree.stream.words import count_words

_SAMPLE = 4096  # rows at the start of a stream from which a text column is guessed
_FEWEST, LONG, DISTINCT = 20, 40.0, 0.8
_WORD_PATTERNS = {2: r"\p{L}{2,}.*\s", 3: r"\p{L}{2,}.*\s.*\s"}


class Text(Column):
    """Texts: words and pairs of neighbouring words (:mod:`tunefree.stream.words`), with the value log(1 + count)."""

    kind: ClassVar[str] = "text"
    families: ClassVar[frozenset[str]] = frozenset({"string", "category", "null"})

    def __init__(self, name: str) -> None:
        self.name, self.seed = name, hash_name("#", hash_name(name))

    def convert(self, array: Array, faults: Faults) -> Array:
        return blank_to_null(decoded(array).cast(pa.string()))

    def parts(self, texts: Array, learning: bool) -> Parts:
        missing = is_missing(texts)
        texts = texts.fill_null("")
        sizes = np.diff(bytes_of(texts)[0]).astype(np.int64)
        bags = Bags(sizes, lambda start, stop: self._words(texts[start:stop]))
        return Parts([], self.missing_codes(missing), [bags], Observed(missing))

    def _words(self, texts: Array) -> Words:
        counted = count_words(*bytes_of(texts), self.seed)
        starts, stops = counted.places.T
        return Words(
            np.diff(counted.ends, prepend=0),
            counted.keys,
            np.log1p(counted.counts),
            lambda k: prefixed_strings(f"{self.name}=", counted.text, starts[k], stops[k]),
        )


def looks_like_text(strings: Array) -> bool:
    """Whether strings are texts: in the first 4096 rows, at least 20 of them, 40 characters or more on average,
    80 per cent of them different from each other, and with a space in most."""
    present = strings[:_SAMPLE].drop_null()
    if len(present) < _FEWEST:
        return False
    long = pc.mean(pc.utf8_length(present)).as_py() >= LONG
    different = pc.count_distinct(present).as_py() >= DISTINCT * len(present)
    return long and different and pc.mean(pc.match_substring(present, " ").cast(pa.int8())).as_py() > 0.5


def are_of_words(strings: Array, share: float, words: int) -> bool:
    """Whether strings may be texts though they are short: of the first 4096 rows, at least 20 of them, at least a share
    different from each other, and most of so many words or more, which are two or three."""
    present = strings[:_SAMPLE].drop_null()
    if len(present) < _FEWEST or pc.count_distinct(present).as_py() < share * len(present):
        return False
    return bool(pc.mean(pc.match_substring_regex(present, _WORD_PATTERNS[words]).cast(pa.int8())).as_py() > 0.5)


class Items(NamedTuple):
    """The items of the lists of a chunk, one list after the other."""

    rows: np.ndarray  # (items,) int64: the row of each, ascending
    places: np.ndarray  # (items,) int64: its place in its list
    values: Any  # (items,) pyarrow.Array
    missing: np.ndarray  # (n,) bool: rows without a list


class Bag(Column):
    """Lists of strings: each string is a feature of value log2(1 + count), which is 1 if the list holds it once."""

    kind: ClassVar[str] = "bag"
    families: ClassVar[frozenset[str]] = frozenset({"strings", "null"})

    def __init__(self, name: str) -> None:
        self.name, self.seed = name, hash_name("[]", hash_name(name))

    def arrow_type(self) -> Any:
        return pa.list_(pa.string())

    def convert(self, array: Array, faults: Faults) -> Items:
        items = items_of(array.cast(self.arrow_type()))
        strings = blank_to_null(items.values)
        here = ~is_missing(strings)
        return Items(items.rows[here], items.places[here], strings.drop_null(), items.missing)

    def parts(self, items: Items, learning: bool) -> Parts:
        encoded = items.values.dictionary_encode()
        strings, index = encoded.dictionary, to_numpy(encoded.indices, -1).astype(np.int64)
        _, first, counts = np.unique(items.rows * len(strings) + index, return_index=True, return_counts=True)
        order = np.argsort(first)  # as the lists have them: the order of the dictionary depends on the chunk
        at, n = first[order], len(items.missing)
        keys, values = string_keys(strings, self.seed)[index[at]], np.log2(1.0 + counts[order])
        in_rows = np.bincount(items.rows[at], minlength=n)
        words = Words(in_rows, keys, values, one_by_one(lambda k: f"{self.name}={strings[index[at[k]]].as_py()}"))
        return Parts([], self.missing_codes(items.missing), [Bags.of(words)], Observed(items.missing))


class Vector(Column):
    """Lists of numbers: the numbers at the same place are a column. So are the first ``width`` places; numbers at later
    ones are entries of sparse rows."""

    kind: ClassVar[str] = "vector"
    families: ClassVar[frozenset[str]] = frozenset({"numbers", "null"})

    def __init__(self, name: str, width: Length = 0) -> None:
        self.name, self.width, self.seed = name, width, hash_name("[number]", hash_name(name))

    def names(self) -> list[str]:
        return [self._at(place) for place in range(self.width)]

    def arrow_type(self) -> Any:
        return pa.list_(pa.float64())

    def options(self) -> dict[str, Any]:
        return {"width": self.width}

    def convert(self, array: Array, faults: Faults) -> Items:
        items = items_of(array.cast(self.arrow_type()))
        values = to_numpy(items.values, np.nan)
        faults.add(items.rows[np.isinf(values)], self.name, lambda row: "a number of the list is infinite")
        known = ~np.isnan(values)
        return Items(items.rows[known], items.places[known], values[known], items.missing)

    def parts(self, items: Items, learning: bool) -> Parts:
        numbers, dense = np.zeros((self.width, len(items.missing))), items.places < self.width
        numbers[items.places[dense], items.rows[dense]] = items.values[dense]
        further = ~dense & (items.values != 0.0)
        places = items.places[further]
        keys = np.array([hash_name(str(place), self.seed) for place in range(places.max(initial=-1) + 1)], np.uint64)
        in_rows = np.bincount(items.rows[further], minlength=len(items.missing))
        words = Words(in_rows, keys[places], items.values[further], one_by_one(lambda k: self._at(int(places[k]))))
        bags = [Bags.of(words)] if len(places) else []
        return Parts([*numbers], self.missing_codes(items.missing), bags, Observed(items.missing))

    def _at(self, place: int) -> str:
        return f"{self.name}[{place}]"


def items_of(lists: Array) -> Items:
    """The items of an array of lists."""
    lengths = to_numpy(pc.list_value_length(lists), 0).astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    rows = np.repeat(np.arange(len(lists)), lengths)
    return Items(rows, np.arange(len(rows)) - starts[rows], pc.list_flatten(lists), is_missing(lists))


def flattened(batch: Any) -> Any:
    """A record batch without structs: what ``a`` holds as ``b`` becomes the column ``a.b``."""
    if not any(pa.types.is_struct(field.type) for field in batch.schema):
        return batch
    names: list[str] = []
    arrays: list[Any] = []
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        is_struct = pa.types.is_struct(array.type)
        names += [f"{name}.{field.name}" for field in array.type] if is_struct else [name]
        arrays += array.flatten() if is_struct else [array]
    flat = pa.RecordBatch.from_arrays(arrays, names=names)
    return flattened(flat.replace_schema_metadata(batch.schema.metadata))

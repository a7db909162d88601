"""Text columns: words and pairs of neighbouring words, with logarithmic counts."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tunefree.stream.arrays import bytes_of, is_missing
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
    missing_codes,
)
from tunefree.stream.keys import hash_name
from tunefree.stream.names import of_slices
from tunefree.stream.words import count_words

_SAMPLE = 4096  # rows at the start of a stream from which a text column is guessed
_FEWEST, _LONG, _DISTINCT = 20, 40.0, 0.8
_OF_THREE_WORDS, _OF_TWO_WORDS = r"\p{L}{2,}.*\s.*\s", r"\p{L}{2,}.*\s"


class Text(Column):
    """Texts: words and pairs of neighbouring words (:mod:`tunefree.stream.words`), with the value log(1 + count)."""

    kind: ClassVar[str] = "text"
    families: ClassVar[frozenset[str]] = frozenset({"string", "category", "null"})

    def __init__(self, name: str) -> None:
        self.name, self.seed = name, hash_name("#", hash_name(name))

    def convert(self, array: Array, faults: Faults) -> Array:
        return blank_to_null(decoded(array).cast(pa.string()))

    def observed(self, texts: Array, parts: Parts) -> Observed:
        return Observed(is_missing(texts))

    def parts(self, texts: Array, learning: bool) -> Parts:
        missing = is_missing(texts)
        codes = [missing_codes(self.name, missing)] if missing.any() else []
        texts = texts.fill_null("")
        sizes = np.diff(bytes_of(texts)[0]).astype(np.int64)
        return Parts([], codes, [Bags(sizes, lambda start, stop: self._words(texts[start:stop]))])

    def _words(self, texts: Array) -> Words:
        counted = count_words(*bytes_of(texts), self.seed)
        starts, stops = counted.places.T
        return Words(
            np.diff(counted.ends, prepend=0),
            counted.keys,
            np.log1p(counted.counts),
            lambda k: of_slices(f"{self.name}=", counted.text, starts[k], stops[k]),
        )


def looks_like_text(strings: Array) -> bool:
    """Whether strings are texts: in the first 4096 rows, at least 20 of them, 40 characters or more on average,
    80 per cent of them different from each other, and with a space in most.

    Examples
    --------
    >>> looks_like_text(pa.array([f"the quick brown fox number {i} jumps over the dog" for i in range(30)]))
    True
    >>> looks_like_text(pa.array(["Private", "Self-emp-not-inc"] * 20))
    False
    """
    present = strings[:_SAMPLE].drop_null()
    if len(present) < _FEWEST:
        return False
    long = pc.mean(pc.utf8_length(present)).as_py() >= _LONG
    different = pc.count_distinct(present).as_py() >= _DISTINCT * len(present)
    return long and different and pc.mean(pc.match_substring(present, " ").cast(pa.int8())).as_py() > 0.5


def looks_like_short_text(strings: Array) -> bool:
    """Whether strings that are neither numbers nor dates are texts though they are short: of the first 4096 rows, at
    least 20 of them, 80 per cent different from each other, and most of three words or more.

    Examples
    --------
    >>> looks_like_short_text(pa.array([f"Mr. John {i} Smith" for i in range(30)]))
    True
    >>> looks_like_short_text(pa.array([f"row {i}" for i in range(30)]))
    False
    """
    return _differ(strings, _DISTINCT, _OF_THREE_WORDS)


def may_be_text(strings: Array) -> bool:
    """Whether strings that are taken for categories may be texts: most are different, and of two words or more.

    Examples
    --------
    >>> may_be_text(pa.array([f"James Smith {i}" for i in range(30)])), may_be_text(pa.array(["New York"] * 30))
    (True, False)
    """
    return _differ(strings, 0.5, _OF_TWO_WORDS)


def _differ(strings: Array, share: float, pattern: str) -> bool:
    present = strings[:_SAMPLE].drop_null()
    if len(present) < _FEWEST or pc.count_distinct(present).as_py() < share * len(present):
        return False
    return bool(pc.mean(pc.match_substring_regex(present, pattern).cast(pa.int8())).as_py() > 0.5)


def is_long_text(strings: Array) -> bool:
    """Whether the first of some strings, taken alone, is a text: 40 characters or more, with a space.

    Examples
    --------
    >>> is_long_text(pa.array(["the quick brown fox jumps over the lazy dog"])), is_long_text(pa.array(["New York"]))
    (True, False)
    """
    value = strings[0].as_py()
    return len(value) >= _LONG and " " in value

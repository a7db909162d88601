"""Text columns: hashed single words and pairs of words with logarithmic counts, by scikit-learn's vectoriser."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tunefree.stream.arrays import is_missing
from tunefree.stream.columns import Array, Faults, Parts, Words, blank_to_null, decoded, missing_codes, missing_name
from tunefree.stream.keys import hash_name

DEFAULT_BITS = 20
_SAMPLE = 4096  # rows at the start of a stream from which a text column is guessed
_FEWEST, _LONG, _DISTINCT = 20, 40.0, 0.8
_REPEATED_HARDLY = 0.9  # of short texts are different from each other


class Text:
    """Texts: words and pairs of neighbouring words, hashed, with the value log(1 + count).

    Parameters
    ----------
    name : str
    bits : int, default=20
        Words are hashed to 2^bits numbers.
    """

    kind: ClassVar[str] = "text"
    families: ClassVar[frozenset[str]] = frozenset({"string", "category", "null"})

    def __init__(self, name: str, bits: int = DEFAULT_BITS) -> None:
        self.name, self.bits = name, bits
        self.seed = hash_name("#", hash_name(name))

    def names(self) -> list[str]:
        return []

    def code_names(self) -> list[str]:
        return [missing_name(self.name)]

    def arrow_type(self) -> Any:
        return pa.string()

    def options(self) -> dict[str, Any]:
        return {"bits": self.bits}

    def told(self) -> str:
        return ""

    def convert(self, array: Array, faults: Faults) -> Array:
        return blank_to_null(decoded(array).cast(pa.string()))

    def parts(self, texts: Array, learning: bool) -> Parts:
        missing = is_missing(texts)
        codes = [missing_codes(self.name, missing)] if missing.any() else []
        documents = [text or "" for text in texts.to_pylist()]
        counts = self._vectorizer.transform(documents or [""])[: len(documents)]  # it refuses an empty list
        number = counts.indices
        keys = splitmix64(number.astype(np.uint64), self.seed)
        values = np.log1p(counts.data)
        words = Words(np.diff(counts.indptr).astype(np.int64), keys, values, lambda k: f"{self.name}#{number[k]}")
        return Parts([], codes, [words])

    @cached_property
    def _vectorizer(self) -> Any:
        from sklearn.feature_extraction.text import HashingVectorizer  # half a second, and memory: only where needed

        return HashingVectorizer(norm=None, alternate_sign=False, ngram_range=(1, 2), n_features=2**self.bits)


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
    given = blank_to_null(decoded(strings[:_SAMPLE])).drop_null()
    if len(given) < _FEWEST:
        return False
    long = pc.mean(pc.utf8_length(given)).as_py() >= _LONG
    different = pc.count_distinct(given).as_py() >= _DISTINCT * len(given)
    return long and different and pc.mean(pc.match_substring(given, " ").cast(pa.int8())).as_py() > 0.5


def looks_like_short_text(strings: Array) -> bool:
    """Whether strings that are neither numbers nor dates are texts though they are short: of the first 4096 rows, at
    least 20 of them, 90 per cent different from each other, and most of three words or more.

    Examples
    --------
    >>> looks_like_short_text(pa.array([f"Mr. John {i} Smith" for i in range(30)]))
    True
    >>> looks_like_short_text(pa.array([f"row {i}" for i in range(30)]))
    False
    """
    given = blank_to_null(decoded(strings[:_SAMPLE])).drop_null()
    if len(given) < _FEWEST or pc.count_distinct(given).as_py() < _REPEATED_HARDLY * len(given):
        return False
    return pc.mean(pc.match_substring_regex(given, r"[A-Za-z]{2,}.*\s.*\s").cast(pa.int8())).as_py() > 0.5


def is_long_text(strings: Array) -> bool:
    """Whether the first of some strings, taken alone, is a text: 40 characters or more, with a space.

    Examples
    --------
    >>> is_long_text(pa.array(["the quick brown fox jumps over the lazy dog"])), is_long_text(pa.array(["New York"]))
    (True, False)
    """
    value = strings[0].as_py()
    return len(value) >= _LONG and " " in value


def splitmix64(numbers: np.ndarray, seed: int) -> np.ndarray:
    """Keys of numbers: SplitMix64's bijection of number + seed."""
    keys = numbers * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))

"""Columns of booleans, and words that stand for true and false."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tunefree.stream.arrays import of_strings, to_booleans, to_numpy
from tunefree.stream.columns import Array, Category, Faults, decoded, family

_WORDS = of_strings(("false", "true", "f", "t", "no", "yes", "n", "y", "0", "1"))  # falsehoods and truths in turn
_BOTH = _WORDS[:2]
_PAIRS = ({0, 1, 2, 3}, {4, 5, 6, 7})  # places of words beside each other, and beside digits
_DIGITS = {8, 9}


class Boolean(Category):
    """Booleans: one-hot.

    Parameters
    ----------
    name : str
    words : bool, default=False
        Whether they are written as words, such as yes and no, beside which other values are categories.
    """

    kind: ClassVar[str] = "boolean"

    def __init__(self, name: str, words: bool = False) -> None:
        super().__init__(name)
        self.words = words

    def arrow_type(self) -> Any:
        return pa.string() if self.words else pa.bool_()

    def options(self) -> dict[str, Any]:
        return {"words": True} if self.words else {}

    def encoded(self, array: Array, faults: Faults) -> tuple[np.ndarray, Array]:
        if family(array.type) == "boolean":
            return to_numpy(array.cast(pa.int32()), -1), _BOTH
        index, values = super().encoded(array, faults)
        encoded = truths(values).dictionary_encode()
        index = np.append(to_numpy(encoded.indices, -1), np.int32(-1))[index]
        if not self.words:
            known = np.append(to_booleans(pc.is_in(encoded.dictionary, value_set=_BOTH)), True)  # the last is missing
            wrong = np.flatnonzero(~known[index])
            faults.add(wrong, self.name, lambda row: f"{decoded(array)[row].as_py()!r} is neither true nor false")
        return index, encoded.dictionary


def truths(strings: Array) -> Array:
    """Strings without white space around them; true and false for words that say so.

    Examples
    --------
    >>> truths(pa.array(["Yes", "F", "perhaps", None])).to_pylist()
    ['true', 'false', 'perhaps', None]
    """
    words = pc.index_in(pc.utf8_lower(strings), value_set=_WORDS)
    return pc.coalesce(_BOTH.take(pc.bit_wise_and(words, 1)), strings)


def looks_like_booleans(strings: Array) -> bool:
    """Whether strings are words for true and false, both of them.

    Examples
    --------
    >>> looks_like_booleans(pa.array(["Yes", "no", None])), looks_like_booleans(pa.array(["Y", "N", "U"]))
    (True, False)
    """
    words = pc.index_in(pc.utf8_lower(strings.slice(0, 1)), value_set=_WORDS)
    if words.null_count > strings.slice(0, 1).null_count:
        return False
    places = {*pc.index_in(pc.utf8_lower(pc.unique(strings).drop_null()), value_set=_WORDS).to_pylist()}
    words_alone = places - _DIGITS
    return any(words_alone <= pair for pair in _PAIRS) and bool(words_alone) and len({k % 2 for k in places}) == 2

"""Words that stand for a missing value: those of numbers and dates, and those of text that does not tell nulls."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tunefree.stream.arrays import of_strings, plain_numbers, to_booleans
from tunefree.stream.columns import QUANTITIES, Array, Faults, Number, WordForMissing, blank_to_null, decoded, family
from tunefree.stream.notation import DASHES, NULLS, SIGNS_OF_MISSING


def converted(column: Any, array: Array | None, faults: Faults) -> Any:
    """What a column makes of an array, in which words of numbers and dates may stand for missing ones.

    Where nothing but plain numbers or dates is expected, they are looked for only if something else is there.
    """
    if array is None:  # of a column that came later
        return None
    if column.kind not in QUANTITIES or family(array.type) != "string":
        return column.convert(array, faults)
    if not (column.na_values or getattr(column, "notation", None) or getattr(column, "format", None)):
        if column.kind == Number.kind:
            return column.convert(as_numbers(array, column.name, faults), faults)
        strict_faults = Faults()
        values = column.convert(array, strict_faults)
        if not strict_faults:
            return values
    return column.convert(without_words(array, column.name, column.na_values, faults), faults)


def as_numbers(array: Array, column: str, faults: Faults) -> Array:
    """Strings as plain numbers, if all are such; else without signs of missing ones. Other arrays as they are."""
    if family(array.type) != "string":
        return array
    numbers = plain_numbers(decoded(array))
    if numbers is None:
        array = without_words(array, column, (), faults)
        numbers = plain_numbers(array)
    return array if numbers is None else numbers


def without_words(array: Array, column: str, na_values: Sequence[str], faults: Faults) -> Array:
    """Strings of numbers or dates, null where a sign or one of the column's words says so; words and dashes are noted.

    What are no strings are as they were.
    """
    return _without(array, column, (*SIGNS_OF_MISSING, *na_values), faults, {*DASHES, *na_values})


def without_nulls(array: Array, column: str, kept: Collection[str], faults: Faults) -> Array:
    """Strings of text that does not tell them from nulls, null where a word such as NA says so, which is noted."""
    words = [word for word in NULLS if word not in kept]
    if pa.types.is_dictionary(array.type) and family(array.type) == "string":
        values = pc.utf8_trim_whitespace(array.dictionary.cast(pa.string()))
        if not pc.any(pc.is_in(values, value_set=of_strings(words))).as_py():
            return array
    return _without(array, column, words, faults)


def _without(
    array: Array, column: str, words: Sequence[str], faults: Faults, odd: Collection[str] | None = None
) -> Array:
    """Strings, null where they are one of some words; those of numbers and dates are noted if they are ``odd``."""
    if family(array.type) != "string":
        return array
    strings = blank_to_null(decoded(array))
    gone = pc.is_in(strings, value_set=of_strings(words))
    if not pc.any(gone).as_py():
        return strings
    for word in pc.unique(strings.filter(gone)).to_pylist():
        if odd is None or word in odd:
            places = np.flatnonzero(to_booleans(pc.equal(strings, word)))
            faults.missing.append(WordForMissing(word, column, odd is not None, int(places[0]), len(places)))
    return pc.if_else(gone, pa.nulls(len(strings), pa.string()), strings)

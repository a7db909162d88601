"""The mapping of features to parts of columns: a date has several parts, and all hashed features form one part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tunefree.stream.keys import MOST_CODES

NUMBERS, CODES, WORDS, HASHED = "numbers", "codes", "words", "hashed"  # kinds of parts
MISSING = "(missing)"  # label of the code of a missing value
_KINDS = {"number": NUMBERS, "text": WORDS, "bag": WORDS, "vector": WORDS}  # part kinds of columns with one part


class Part(NamedTuple):
    """A part of a column."""

    name: str
    column: str  # name of its column
    kind: str


class Layout(NamedTuple):
    """The parts of all columns."""

    parts: list[Part]
    feature_parts: np.ndarray  # (d,) int64: the part of each feature, -1 for the constant
    names: Sequence[str]  # names of the features
    columns: list[Any]  # columns of the encoder of a table; else empty

    @classmethod
    def of_array(cls, names: Sequence[str]) -> Layout:
        """Create the layout of an array: each column is a part."""
        parts = [Part(name, name, NUMBERS) for name in names]
        return cls(parts, np.arange(-1, len(parts)), ["(constant)", *names], [])

    @classmethod
    def of_encoder(cls, encoder: Any) -> Layout:
        """Create the layout of an encoder's current features; if it has no columns, each feature is a part."""
        names, columns = encoder.names(), getattr(encoder, "columns", None)
        if columns is None:
            return cls.of_array(names[1:])
        parts, column_indices = [part for column in columns for part in parts_of(column)], encoder.column_of()
        starts = np.cumsum([0, *(len(parts_of(column)) for column in columns)])
        feature_parts = np.append(starts, -1)[column_indices]
        by_name = {(part.column, part.name[:-1]): index for index, part in enumerate(parts)}
        for j in np.flatnonzero(np.isin(column_indices, np.flatnonzero(np.diff(starts) > 1))).tolist():
            stem = names[j].rpartition("=")[0]
            feature_parts[j] = by_name.get((columns[column_indices[j]].name, stem), feature_parts[j])
        if (feature_parts[1:] < 0).any():
            feature_parts[1:][feature_parts[1:] < 0] = len(parts)
            parts.append(Part("(hashed)", "(hashed)", HASHED))
        return cls(parts, feature_parts, names, list(columns))

    def label(self, feature: int) -> str:
        """Return the label of a code in its part."""
        part, name = self.parts[self.feature_parts[feature]], self.names[feature]
        if part.kind == HASHED:
            return name
        rest = name[len(part.column) :]
        if rest.startswith("="):
            return rest[1:]
        if part.kind == WORDS and rest != "[missing]":  # a word, or an index into a list of numbers
            return rest[1:-1]
        return MISSING if rest == "[missing]" else rest.partition("=")[2][:-1]

    def part_of(self, key: int) -> int:
        """Return the part of a column by its key in growing trees: a feature, or -1 - (a column of codes)."""
        return int(self.feature_parts[key]) if key > 0 else self.code_source(-1 - key)[1]

    def code_source(self, code_column: int) -> tuple[str, int]:
        """Return the name and the part of a column of codes, numbered as in :class:`tunefree.core.rows.Block`."""
        column = self.columns[code_column // MOST_CODES]
        name = column.code_names()[code_column % MOST_CODES]
        if self.parts[-1].kind == HASHED:
            return name, len(self.parts) - 1
        indices = [index for index, part in enumerate(self.parts) if part.column == column.name]
        return name, next((index for index in indices if self.parts[index].name == name), indices[0])


def parts_of(column: Any) -> list[Part]:
    """Return the parts of a column of a table; the indicator of a missing value belongs to the first."""
    names = [*column.names(), *column.code_names()]
    if column.kind in _KINDS:
        return [Part(column.name, column.name, _KINDS[column.kind])]
    numbers = len(column.names())
    part_names = names[:-1] if numbers else names
    return [Part(name, column.name, NUMBERS if k < numbers else CODES) for k, name in enumerate(part_names)]

"""The encoder of tables of plain values, without Arrow, for rows that are predicted.

It makes the blocks that :class:`tunefree.stream.encoder.TableEncoder` makes of the same numbers, categories and
booleans. What that learns, texts, lists, dates, times and hashed features are not for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import DataError, ModelError
from tunefree.core.rows import Block, sparse, table
from tunefree.stream import keys as dictionary
from tunefree.stream.keys import MOST_CODES, category_seed, hash_name, missing_key
from tunefree.stream.spellings import MISSING, NULLS, TRUTHS

KINDS = "number", "category", "boolean"


class Column(NamedTuple):
    """A column of a model."""

    name: str
    kind: str
    may_be_numbers: bool  # of categories
    may_be_others: bool  # of booleans: values beside true and false are categories
    is_late: bool  # whether nothing is known where it is missing
    gone: frozenset[str]  # texts that stand for a missing value

    def dense_names(self) -> list[str]:
        """Names of the numbers that it adds to rows."""
        return [self.name] if self.kind == "number" else []

    def numbers(self, values: Sequence[Any]) -> np.ndarray:
        """Values as numbers, NaN where one is missing."""
        numbers = np.empty(len(values))
        for row, value in enumerate(values):
            is_missing = value is None or (isinstance(value, str) and value.strip() in self.gone)
            try:
                numbers[row] = math.nan if is_missing else value
            except (TypeError, ValueError):
                numbers[row] = math.inf
        if np.isinf(numbers).any():
            row = int(np.isinf(numbers).argmax())
            remedy = "pass a number, or NaN or None for a missing one"
            raise DataError(f"{values[row]!r} is no finite number", row=row + 1, column=self.name, remedy=remedy)
        return numbers

    def text(self, value: Any, row: int) -> str | None:
        """A value as the text of a category; None where it is missing."""
        if isinstance(value, (bool, np.bool_)):
            return TRUTHS[bool(value)]
        is_number = isinstance(value, (int, float, np.number))
        if value is None or (is_number and math.isnan(value)):
            return None
        if is_number and not self.may_be_numbers:
            problem = f"{value!r} is a number, but the column was learned as {self.kind}"
            raise DataError(problem, row=row + 1, column=self.name, remedy="pass it as text")
        text = str(value).strip()
        if text in self.gone:
            return None
        if self.kind == "boolean" and text.lower() in TRUTHS:
            return TRUTHS[TRUTHS.index(text.lower()) % 2]
        if self.kind == "boolean" and not self.may_be_others:
            raise DataError(f"{value!r} is neither true nor false", row=row + 1, column=self.name)
        return text


class PlainEncoder:
    """Turns rows that are to be predicted into blocks; made by :meth:`restore` of what a model file holds.

    Examples
    --------
    >>> arrays = {"keys": np.zeros(0, np.uint64), "name_columns": np.zeros(0, np.int32)}
    >>> header = {"columns": [{"name": "age", "kind": "number"}], "hash_bits": 0}
    >>> PlainEncoder.restore(arrays, header).encode({"age": [39, 50]}).numbers.tolist()
    [[39.0], [50.0]]
    """

    def __init__(self, columns: list[Column], keys: Any, places: np.ndarray, exposure: str | None) -> None:
        self.columns, self.keys, self.exposure = columns, keys, exposure
        self.numbers = [place for place, column in enumerate(columns) if column.kind == "number"]
        self.drawn: list[np.ndarray] | None = None  # of each column, values in a sample of the rows learned
        self._places = places  # (features,) the column of each key

    @property
    def n_features(self) -> int:
        """The largest feature there may be, plus 1."""
        return dictionary.n_features(self.keys)

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> PlainEncoder:
        """The encoder of a model file; a ModelError if only that of tables encodes its rows."""
        columns = [_column(header, **column) for column in header.get("columns", ())]
        if not columns or header["hash_bits"]:
            raise ModelError("lines of text and hashed features are not for predictions without Arrow; `tunefree.load`")
        first = 1 + sum(len(column.dense_names()) for column in columns)
        keys = dictionary.restore(arrays["keys"], first, 0, arrays.get("free"))
        encoder = cls(columns, keys, arrays["name_columns"], header.get("exposure"))
        if len(encoder._places) != len(arrays["keys"]):
            raise ModelError("features of the encoder have not a column each")
        if "profile.counts" in arrays and arrays["profile.counts"][0]:
            values = arrays["profile.values"]
            drawn = [values[:, place] if place < values.shape[1] else np.zeros(0) for place in range(len(columns))]
            encoder.drawn = [column[column < np.inf] for column in drawn]
        return encoder

    def encode(self, rows: Any) -> Block:
        """The block of rows: a mapping of columns, a sequence of mappings, or a two-dimensional array.

        Raises
        ------
        DataError
            If a column is missing, or a value does not fit its column.
        """
        values = self.values(rows)
        n = len(values[0])
        numbers, codes = np.zeros((n, len(self.numbers))), dict[int, np.ndarray]()
        known, words = dict[int, np.ndarray](), list[tuple[np.ndarray, np.ndarray, np.ndarray]]()
        for place, column in enumerate(self.columns):
            if column.kind == "number":
                array = column.numbers(values[place])
                missing = np.isnan(array)
                numbers[:, self.numbers.index(place)] = np.where(missing, 0.0, array)
                codes[place] = np.where(missing, np.uint64(missing_key(column.name)), np.uint64(0))
                is_coded = missing
            else:
                codes[place], is_coded = self._codes(column, values[place])
            if not is_coded.any():
                continue
            known[place] = np.where(is_coded, dictionary.lookup(self.keys, codes[place], add=False)[1], 0)
            is_new = is_coded & (known[place] == 0)
            if self.drawn is not None and is_new.any():
                words.append(self._averages(place, np.flatnonzero(is_new)))
                if column.kind == "number" and len(self.drawn[place]):
                    numbers[is_new, self.numbers.index(place)] = np.median(self.drawn[place])
        sources, ids = [MOST_CODES * place for place in known], np.zeros((n, len(known)), np.int32)
        for k, column_ids in enumerate(known.values()):
            ids[:, k] = column_ids
        features = np.arange(1, 1 + len(self.numbers))
        return table(numbers, features, ids, _words(words, n), sources)

    def values(self, rows: Any) -> list[Sequence[Any]]:
        """The values of each column."""
        names = [column.name for column in self.columns]
        if isinstance(rows, np.ndarray):
            if rows.ndim != 2 or rows.shape[1] != len(names):
                raise DataError(f"an array of shape {rows.shape}", remedy=f"pass rows of {len(names)} columns")
            return [*rows.T]
        if not isinstance(rows, Mapping):
            rows = {name: [row.get(name, _ABSENT) for row in rows] for name in names}
        for name in names:
            if name not in rows or any(value is _ABSENT for value in rows[name]):
                raise DataError("the column is missing", column=name, remedy="pass it, with None where it is not known")
        lengths = {len(rows[name]) for name in names}
        if len(lengths) > 1:
            raise DataError(f"columns of {min(lengths)} and of {max(lengths)} values", remedy="pass equally many")
        return [rows[name] for name in names]

    def _codes(self, column: Column, values: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        """The keys (n,) of categories, and whether a row has one."""
        missing, seed = (0 if column.is_late else missing_key(column.name)), category_seed(column.name)
        texts = [column.text(value, row) for row, value in enumerate(values)]
        keys = {text: missing if text is None else hash_name(text, seed) for text in set(texts)}
        has_code = np.array([not column.is_late or text is not None for text in texts], bool)
        return np.array([keys[text] for text in texts], np.uint64), has_code

    def _averages(self, place: int, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, features and shares of a column's codes, which stand for one that is not known in each of the rows."""
        assert self.drawn is not None
        drawn = self.drawn[place]
        places = np.flatnonzero(self._places == place) if len(drawn) else np.zeros(0, np.int64)
        features, shares = dictionary.shares(self.keys, places, drawn)
        return np.repeat(rows, len(features)), np.tile(features, len(rows)), np.tile(shares, len(rows))


_ABSENT: Any = object()


def _column(header: dict[str, Any], name: str, kind: str, since: int = 0, **options: Any) -> Column:
    if kind not in KINDS or (kind == "number" and since):
        raise ModelError(f"column {name!r} is not for predictions without Arrow; read the file by `tunefree.load`")
    is_plain = header.get("typed", True) or name in header.get("kept", ())
    gone = {*MISSING, *header.get("na_values", ()), *options.get("na_values", ()), *(() if is_plain else NULLS)}
    return Column(name, kind, options.get("numbers", False), options.get("words", False), bool(since), frozenset(gone))


def _words(parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]], n: int) -> Block | None:
    """Rows, features and values as sparse rows; None if there are none."""
    if not parts:
        return None
    rows, features, values = map(np.concatenate, zip(*parts, strict=True))
    order = np.argsort(rows, kind="stable")
    pointers = np.append(0, np.cumsum(np.bincount(rows, minlength=n)))
    return sparse(pointers, features[order], values[order])

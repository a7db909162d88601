"""An encoder of tables of plain values for prediction, which does not need Arrow.

For numbers, categories and booleans it returns the same blocks as :class:`tunefree.stream.encoder.TableEncoder`. It
does not learn, and does not support texts, lists, dates, times and hashed features.
"""

from __future__ import annotations

import math
from collections import abc
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tunefree.core.errors import DataError, ModelError, listed, warn
from tunefree.core.rows import Block, table, words_of
from tunefree.core.schema import COUNT, Flag, Optional, Sequence, Text, check_header
from tunefree.stream import keys as dictionary
from tunefree.stream.keys import MOST_CODES, category_seed, hash_name, missing_key
from tunefree.stream.spellings import MISSING, NULLS, TRUTHS

KINDS = "number", "category", "boolean"
ROLES = "target", "weight", "group", "exposure"
TEXTS = Sequence(Text())
_ABSENT: Any = object()
BY_ARROW = "read the file by `tunefree.load`"
SHORTEST, MOST_DIGITS = 1e-4, 1e10  # range in which Python and Arrow format numbers alike


class Column(NamedTuple):
    """A column of a model."""

    name: str
    kind: str
    may_be_numbers: bool  # whether categories may be numbers
    may_be_others: bool  # whether a boolean may have other values than true and false, which are categories
    has_notation: bool  # whether training texts had numbers in a special notation, such as 1.234,5
    is_late: bool  # whether it appeared later in training, so that a missing value has no code
    missing_texts: frozenset[str]  # spellings of a missing value

    def dense_names(self) -> list[str]:
        """Return the names of its numeric features."""
        return [self.name] if self.kind == "number" else []

    def numbers(self, values: abc.Sequence[Any]) -> np.ndarray:
        """Convert values to numbers, NaN for a missing one."""
        array = np.asarray(values)
        if array.dtype.kind not in "biuf":
            array = np.array([self._number(value) for value in values], np.float64)
        if np.isinf(array).any():
            row = int(np.isinf(array).argmax())
            remedy = "pass a number, or NaN or None for a missing one"
            problem = f"{values[row]!r} is no finite number"
            if self.has_notation and isinstance(values[row], str):
                problem, remedy = f"{values[row]!r} is in a notation that needs Arrow", f"{remedy}; or {BY_ARROW}"
            raise DataError(problem, row=row + 1, column=self.name, remedy=remedy)
        return array.astype(np.float64)

    def _number(self, value: Any) -> float:
        """Convert a value to a number: NaN if it is missing, infinite if it is not a number.

        Texts are parsed as by :func:`tunefree.load`: Python's ``float`` accepts more, such as 1_000.
        """
        if value is None or (isinstance(value, str) and value.strip() in self.missing_texts):
            return math.nan
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            return math.inf
        if not isinstance(value, str):
            return number
        is_plain = value.isascii() and "_" not in value and not (self.has_notation or math.isnan(number))
        return number if is_plain else math.inf

    def text(self, value: Any, row: int) -> str | None:
        """Convert a value to the text of a category; None if it is missing."""
        if isinstance(value, (bool, np.bool_)):
            return TRUTHS[bool(value)]
        is_number = isinstance(value, (int, float, np.number))
        if value is None or value is _ABSENT or (is_number and math.isnan(value)):
            return None
        if is_number and not self.may_be_numbers:
            problem = f"{value!r} is a number, but the column was learned as {self.kind}"
            raise DataError(problem, row=row + 1, column=self.name, remedy="pass it as text")
        if is_number:
            value = _formatted(value)
        if not isinstance(value, str):
            raise DataError(f"{value!r} is no category", row=row + 1, column=self.name, remedy="pass it as text")
        text = value.strip()
        if text in self.missing_texts:
            return None
        if self.kind == "boolean" and text.lower() in TRUTHS:
            return TRUTHS[TRUTHS.index(text.lower()) % 2]
        if self.kind == "boolean" and not self.may_be_others:
            raise DataError(f"{value!r} is neither true nor false", row=row + 1, column=self.name)
        return text


class PlainEncoder:
    """Converts rows for prediction to blocks; restored from a model file by :meth:`restore`.

    Examples
    --------
    >>> arrays = {"keys": np.zeros(0, np.uint64), "name_columns": np.zeros(0, np.int32)}
    >>> header = {"columns": [{"name": "age", "kind": "number"}], "hash_bits": 0}
    >>> PlainEncoder.restore(arrays, header).encode({"age": [39, 50]}).numbers.tolist()
    [[39.0], [50.0]]
    """

    header: ClassVar[dict[str, Any]] = {  # schema of the fields that it reads from the header of a file
        "columns": Optional(
            Sequence(
                {"name": Text(), "kind": Text(), "since": Optional(COUNT), "na_values": Optional(TEXTS)}
                | dict.fromkeys(("numbers", "words"), Optional(Flag()))
            )
        ),
        "hash_bits": Optional(COUNT),
        "typed": Optional(Flag()),
        "further": Optional({"ignored": TEXTS}),
        **dict.fromkeys(ROLES, Optional(Text())),
        **dict.fromkeys(("na_values", "kept"), Optional(TEXTS)),
    }

    def __init__(self, columns: list[Column], keys: Any, column_of: np.ndarray) -> None:
        self.columns, self.keys = columns, keys
        self.drawn: list[np.ndarray] | None = None  # values of each column in a sample of the training rows
        self._column_of = column_of  # (keys,) column index of each key
        self._ignored: set[Any] = set()  # further columns that are ignored without a warning

    @property
    def n_features(self) -> int:
        """The largest possible feature id, plus 1."""
        return dictionary.n_features(self.keys)

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> PlainEncoder:
        """Restore the encoder of a model file; raise a DataError if it needs Arrow."""
        check_header(header, cls.header, "encoder")
        columns = [_column(header, **column) for column in header.get("columns", ())]
        if not columns or header.get("hash_bits"):
            raise DataError("lines of text and hashed features need Arrow", remedy=BY_ARROW)
        first = 1 + sum(len(column.dense_names()) for column in columns)
        keys = dictionary.restore(arrays["keys"], first, 0, arrays.get("free"))
        encoder = cls(columns, keys, arrays["name_columns"])
        encoder._ignored = {*(header.get("further") or {}).get("ignored", ()), *map(header.get, ROLES)}
        if len(encoder._column_of) != len(arrays["keys"]):
            raise ModelError("features of the encoder have not a column each")
        if "profile.counts" in arrays and arrays["profile.counts"][0]:
            values = arrays["profile.values"]
            drawn = [values[:, index] if index < values.shape[1] else np.zeros(0) for index in range(len(columns))]
            encoder.drawn = [column[column < np.inf] for column in drawn]
        return encoder

    def encode(self, rows: Any) -> Block:
        """Encode rows: a mapping of columns, a sequence of mappings, or a two-dimensional array.

        Raises
        ------
        DataError
            If a column is missing, or a value does not fit its column.
        """
        values = self.values(rows)
        n, numbers, codes = len(values[0]), list[np.ndarray](), dict[int, np.ndarray]()
        words = list[tuple[np.ndarray, np.ndarray, np.ndarray]]()
        for index, column in enumerate(self.columns):
            if column.kind == "number":
                array = column.numbers(values[index])
                numbers.append(np.nan_to_num(array))
                keys, is_coded = np.full(n, missing_key(column.name), np.uint64), np.isnan(array)
            else:
                keys, is_coded = _category_keys(column, values[index])
            if not is_coded.any():
                continue
            codes[MOST_CODES * index] = np.where(is_coded, dictionary.lookup(self.keys, keys, add=False)[1], 0)
            new = np.flatnonzero(is_coded & (codes[MOST_CODES * index] == 0))
            if self.drawn is not None and len(new):
                words.append(dictionary.averages(self.keys, self._column_of, index, new, self.drawn[index]))
                if column.kind == "number" and len(self.drawn[index]):
                    numbers[-1][new] = np.median(self.drawn[index])
        ids = np.array([*codes.values()], np.int32).reshape(len(codes), n).T
        columns = np.array(numbers).reshape(len(numbers), n).T
        return table(columns, np.arange(1, 1 + len(numbers)), ids, words_of(words, n), [*codes])

    def values(self, rows: Any) -> list[abc.Sequence[Any]]:
        """Return the values of each column."""
        names = [column.name for column in self.columns]
        if isinstance(rows, np.ndarray):
            if rows.ndim != 2 or rows.shape[1] != len(names):
                raise DataError(f"an array of shape {rows.shape}", remedy=f"pass rows of {len(names)} columns")
            return [*rows.T]
        if not isinstance(rows, abc.Mapping):
            if not isinstance(rows, (list, tuple)) or not all(isinstance(row, abc.Mapping) for row in rows):
                remedy = "pass a dict of columns, a list of dicts, or a two-dimensional array"
                raise DataError(f"rows cannot be a {type(rows).__name__} of these values", remedy=remedy)
            further = dict.fromkeys(name for row in rows for name in row)
            rows = {name: [row.get(name, _ABSENT) for row in rows] for name in [*names, *further]}
        if unknown := [name for name in rows if name not in self._ignored.union(names)]:
            warn(f"the model does not know {listed(unknown)}: left out")
        for name in [name for name in names if name in rows]:
            if isinstance(rows[name], str) or not hasattr(rows[name], "__len__"):
                raise DataError(f"{rows[name]!r} is no column", column=name, remedy="pass a list, also of one value")
        n = max((len(rows[name]) for name in names if name in rows), default=0)
        values = [rows.get(name, [_ABSENT] * n) for name in names]
        for column, column_values in zip(self.columns, values, strict=True):
            if any(value is _ABSENT for value in column_values) and not column.is_late:
                remedy = "pass it, with None where it is not known"
                raise DataError("the column is missing", column=column.name, remedy=remedy)
            if len(column_values) != n:
                raise DataError(f"columns of {n} and of {len(column_values)} values", remedy="pass equally many")
        return values


def _formatted(number: Any) -> Any:
    """Format a number as Arrow does; return it unchanged if Python may format it differently."""
    if not isinstance(number, (float, np.floating)):
        return str(number)
    size = abs(float(number))
    if size != 0.0 and not SHORTEST <= size < MOST_DIGITS:
        return number
    return f"{number:.0f}" if size.is_integer() else str(number)


def _column(header: dict[str, Any], name: str, kind: str, since: int = 0, **options: Any) -> Column:
    if kind not in KINDS or (kind == "number" and since):
        raise DataError("texts, lists, dates, times and numbers that came later need Arrow", None, None, name, BY_ARROW)
    is_plain = header.get("typed", True) or name in header.get("kept", ())
    texts = {*MISSING, *header.get("na_values", ()), *options.get("na_values", ()), *(() if is_plain else NULLS)}
    kinds = options.get("numbers", False), options.get("words", False), "notation" in options
    return Column(name, kind, *kinds, bool(since), frozenset(texts))


def _category_keys(column: Column, values: abc.Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the keys (n,) of categories, and a mask of the rows with a code."""
    missing, seed = missing_key(column.name), category_seed(column.name)
    texts = [column.text(value, row) for row, value in enumerate(values)]
    keys = {text: missing if text is None else hash_name(text, seed) for text in set(texts)}
    has_code = np.array([not (column.is_late and text is None) for text in texts], bool)
    return np.array([keys[text] for text in texts], np.uint64), has_code

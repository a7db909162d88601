"""Names of features, many at once, as Arrow arrays: they take less memory and time than Python strings."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tunefree.core.errors import ModelError
from tunefree.stream.arrays import bytes_of, of_numbers, of_strings

NamesOf = Callable[[np.ndarray], Any]  # the names of the features of some keys, by the places of the keys


def one_by_one(name: Callable[[int], str]) -> NamesOf:
    """The names of features that are made one at a time."""
    return lambda places: of_strings([name(k) for k in places.tolist()])


def of_slices(prefix: str, text: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> Any:
    """A prefix followed by parts of a text."""
    sizes = stops - starts
    ends = np.cumsum(sizes)
    places = np.repeat(starts - (ends - sizes), sizes) + np.arange(ends[-1] if len(ends) else 0)
    nothing, separator = (pa.scalar(part, pa.large_string()) for part in ("", prefix))
    return pc.binary_join_element_wise(nothing, _strings(text[places], ends), separator)


def in_order(parts: list[Any], order: np.ndarray) -> Any:
    """Several arrays of names as one; name ``order[k]`` of all, one array after the other, becomes name k."""
    return pa.concat_arrays([part.cast(pa.large_string()) for part in parts]).take(of_numbers(order))


def _strings(text: np.ndarray, ends: np.ndarray) -> Any:
    """Names that lie one after the other in UTF-8, and where each ends, as an Arrow array."""
    buffers = [None, pa.py_buffer(np.append(0, ends).astype(np.int64)), pa.py_buffer(np.ascontiguousarray(text))]
    return pa.Array.from_buffers(pa.large_string(), len(ends), buffers)


class FeatureNames:
    """Names of features in the order of their ids, and the columns they come from."""

    def __init__(self) -> None:
        self._text, self._ends, self._columns = bytearray(), array("q"), array("i")

    def __len__(self) -> int:
        return len(self._ends)

    def add(self, names: Any, columns: np.ndarray) -> None:
        """Add names at the end."""
        places, text = bytes_of(names)
        ends = places[1:] - (places[0] - len(self._text))
        self._ends.frombytes(ends.astype(np.int64).tobytes())
        self._text += text[places[0] : places[-1]].tobytes()
        self._columns.frombytes(columns.astype(np.intc).tobytes())

    def put(self, places: np.ndarray, names: Any, columns: np.ndarray) -> None:
        """Have other names at some places."""
        order, of_columns = np.arange(len(self)), self.columns()
        order[places], of_columns[places] = len(self) + np.arange(len(places)), columns
        changed = in_order([self._names(), names], order)
        self._text, self._ends, self._columns = bytearray(), array("q"), array("i")
        self.add(changed, of_columns)

    def of(self, places: np.ndarray) -> Any:
        """The names at some places."""
        return in_order([self._names()], places)

    def to_list(self) -> list[str]:
        """All names."""
        names: list[str] = self._names().to_pylist()
        return names

    def _names(self) -> Any:
        return _strings(np.frombuffer(bytes(self._text), np.uint8), np.array(self._ends, np.int64))

    def columns(self) -> np.ndarray:
        """The number of the column of each."""
        return np.array(self._columns, np.int32)

    def save(self) -> dict[str, np.ndarray]:
        """Arrays from which :meth:`restore` makes the same names."""
        text, ends = np.frombuffer(bytes(self._text), np.uint8), np.array(self._ends, np.int64)
        return {"names": text, "name_ends": ends, "name_columns": self.columns()}

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray]) -> FeatureNames:
        """The names that were saved; a ModelError if they are no texts."""
        text, ends = arrays["names"].astype(np.uint8), arrays["name_ends"].astype(np.int64)
        check_names(text, ends)
        names = cls()
        names.add(_strings(text, ends), arrays["name_columns"])
        return names


def check_names(text: np.ndarray, ends: np.ndarray) -> None:
    """Raise a ModelError unless names that lie one after the other in UTF-8 end where ``ends`` says."""
    ascend = not len(ends) or (ends[0] >= 0 and (np.diff(ends) >= 0).all())
    if not ascend or (int(ends[-1]) if len(ends) else 0) != len(text):
        raise ModelError("the names of features do not end with their text")
    cut = text[ends[ends < len(text)]] & 0xC0 == 0x80  # in the middle of a letter
    try:
        text.tobytes().decode()
    except UnicodeDecodeError:
        cut = np.ones(1, bool)
    if cut.any():
        raise ModelError("a name of a feature is not text in UTF-8")

"""Names of features, many at once: as bytes, which take less memory and time than Python strings."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Annotated, NamedTuple

import numpy as np

from tunefree.compiled.functions import compiled
from tunefree.core.errors import ModelError

AT_ONCE = 2**12  # names that are moved at a time


class Names(NamedTuple):
    """Names that lie one after the other in UTF-8."""

    text: np.ndarray  # (bytes,) uint8
    ends: np.ndarray  # (n,) int64: where each ends

    @property
    def sizes(self) -> np.ndarray:
        """How many bytes each has."""
        return np.diff(self.ends, prepend=0)

    def part(self, start: int, stop: int) -> Names:
        """Those from ``start`` up to ``stop``."""
        first, *_ = edges = np.append(self.ends[start - 1] if start else 0, self.ends[start:stop])
        return Names(self.text[first : edges[-1]], edges[1:] - first)

    def to_list(self) -> list[str]:
        data, ends = self.text.tobytes(), self.ends.tolist()
        return [data[start:end].decode() for start, end in zip([0, *ends], ends, strict=False)]


NamesOf = Callable[[np.ndarray], Names]  # the names of the features of some keys, by the places of the keys


def of_strings(names: Sequence[str]) -> Names:
    """Names from strings.

    Examples
    --------
    >>> of_strings(["colour=red", "größe=5"]).to_list()
    ['colour=red', 'größe=5']
    """
    encoded = [name.encode() for name in names]
    ends = np.cumsum([len(name) for name in encoded], dtype=np.int64)
    return Names(np.frombuffer(b"".join(encoded), np.uint8), ends)


def one_by_one(name: Callable[[int], str]) -> NamesOf:
    """The names of features that are made one at a time.

    Examples
    --------
    >>> one_by_one(lambda k: f"hour={k}")(np.array([3, 5])).to_list()
    ['hour=3', 'hour=5']
    """
    return lambda places: of_strings([name(k) for k in places.tolist()])


def of_slices(prefix: str, text: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> Names:
    """A prefix followed by parts of a text.

    Examples
    --------
    >>> text = np.frombuffer(b"new york", np.uint8)
    >>> of_slices("city=", text, np.array([0, 4]), np.array([8, 8])).to_list()
    ['city=new york', 'city=york']
    """
    front, sizes = np.frombuffer(prefix.encode(), np.uint8), stops - starts
    ends = np.cumsum(sizes + len(front))
    text_of_names = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    copy_parts(front, np.zeros_like(sizes), np.full_like(sizes, len(front)), ends - sizes - len(front), text_of_names)
    copy_parts(text, starts, sizes, ends - sizes, text_of_names)
    return Names(text_of_names, ends)


def in_order(parts: Sequence[Names], order: np.ndarray) -> Names:
    """Several parts as one; name ``order[k]`` of all parts, one after the other, becomes name k.

    Examples
    --------
    >>> in_order([of_strings(["red"]), of_strings(["one", "three"])], np.array([1, 0, 2])).to_list()
    ['one', 'red', 'three']
    """
    text = np.concatenate([np.zeros(0, np.uint8), *(part.text for part in parts)])
    sizes = np.concatenate([np.zeros(0, np.int64), *(part.sizes for part in parts)])
    starts, sizes = (np.cumsum(sizes) - sizes)[order], sizes[order]
    ends = np.cumsum(sizes)
    text_in_order = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    copy_parts(text, starts, sizes, ends - sizes, text_in_order)
    return Names(text_in_order, ends)


@compiled
def copy_parts(
    text: Annotated[np.ndarray, "uint8[bytes]"],
    starts: Annotated[np.ndarray, "int64[parts]"],
    sizes: Annotated[np.ndarray, "int64[parts]"],
    places: Annotated[np.ndarray, "int64[parts]"],
    written: Annotated[np.ndarray, "uint8[written]"],
) -> None:
    """Copy parts of a text to some places."""
    for k in range(len(starts)):
        for i in range(sizes[k]):
            written[places[k] + i] = text[starts[k] + i]


class FeatureNames:
    """Names of features in the order of their ids, and the columns they come from.

    Examples
    --------
    >>> names = FeatureNames()
    >>> names.add(of_strings(["colour=red", "colour=blue"]), np.zeros(2, np.int32))
    >>> names.to_list(), len(names)
    (['colour=red', 'colour=blue'], 2)
    """

    def __init__(self) -> None:
        self._text = bytearray()
        self._ends = array("q")
        self._columns = array("i")

    def __len__(self) -> int:
        return len(self._ends)

    def add(self, names: Names, columns: np.ndarray) -> None:
        self._ends.frombytes((names.ends + len(self._text)).astype(np.int64).tobytes())
        self._text += names.text.tobytes()
        self._columns.frombytes(columns.astype(np.intc).tobytes())

    def put(self, places: np.ndarray, names: Names, columns: np.ndarray) -> None:
        """Have other names at some places, ascending.

        Examples
        --------
        >>> names = FeatureNames()
        >>> names.add(of_strings(["colour=red", "colour=blue"]), np.zeros(2, np.int32))
        >>> names.put(np.array([0]), of_strings(["size=5"]), np.ones(1, np.int32))
        >>> names.to_list(), names.columns()
        (['size=5', 'colour=blue'], array([1, 0], dtype=int32))
        """
        before, of_columns, n = self._names(), self.columns(), len(self)
        of_columns[places] = columns
        self._text, self._ends, self._columns = bytearray(), array("q"), array("i")
        for start in range(0, n, AT_ONCE):
            stop = min(start + AT_ONCE, n)
            first, last = np.searchsorted(places, (start, stop))
            order = np.arange(stop - start)
            order[places[first:last] - start] = stop - start + np.arange(last - first)
            self.add(in_order([before.part(start, stop), names.part(first, last)], order), of_columns[start:stop])

    def of(self, places: np.ndarray) -> Names:
        """The names at some places."""
        return in_order([self._names()], places)

    def to_list(self) -> list[str]:
        return self._names().to_list()

    def _names(self) -> Names:
        return Names(np.frombuffer(bytes(self._text), np.uint8), np.array(self._ends, np.int64))

    def columns(self) -> np.ndarray:
        return np.array(self._columns, np.int32)

    def save(self) -> dict[str, np.ndarray]:
        names = self._names()
        return {"names": names.text, "name_ends": names.ends, "name_columns": self.columns()}

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray]) -> FeatureNames:
        check_names(arrays["names"], arrays["name_ends"])
        names = cls()
        of_file = Names(arrays["names"].astype(np.uint8), arrays["name_ends"].astype(np.int64))
        names.add(of_file, arrays["name_columns"])
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

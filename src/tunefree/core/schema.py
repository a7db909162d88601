"""The declared contents of a file: kinds and ranges of values, shapes and types of arrays, and their relations.

Files may be untrusted. A matching checksum only excludes accidental changes, so all contents are checked against the
declaration before any object is created from them.
"""

from __future__ import annotations

import math
from collections import abc
from collections.abc import Collection
from dataclasses import MISSING, fields
from functools import cache
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.numbers import MOST


class Number(NamedTuple):
    """A number in a header, or None if allowed."""

    low: float = -MOST
    high: float = MOST
    whole: bool = False
    may_be_none: bool = False


class Text(NamedTuple):
    """A string in a header, or None if allowed."""

    choices: Collection[str] | None = None  # any string if None
    may_be_none: bool = False


class Flag(NamedTuple):
    """True or false."""


class Anything(NamedTuple):
    """Any value; the reader checks it."""


class Label(NamedTuple):
    """A string, a number, or a truth value."""


class Sequence(NamedTuple):
    """A list of values of one kind, or None if allowed."""

    of: Any
    most: int = 2**31
    may_be_none: bool = False


class Mapping(NamedTuple):
    """A mapping from arbitrary names to values of one kind."""

    of: Any


class Optional(NamedTuple):
    """A value that may be absent from files, or None if allowed."""

    of: Any
    may_be_none: bool = False


class Record(NamedTuple):
    """The fields of a dataclass as a JSON object, or of a NamedTuple as a list; None if allowed.

    Annotations declare the fields: whole numbers from 0, finite numbers, strings, truth values, lists and records, or
    ``Annotated`` with another kind.
    """

    of: type
    may_be_none: bool = False


class Limits(NamedTuple):
    """Limits of the elements of an array."""

    low: float = -MOST
    below: float | str = math.inf  # a number, or the name of a length
    may_be_infinite: bool = False
    may_be_missing: bool = False  # NaN
    ascends_to: str | None = None  # non-decreasing numbers from 0 to this length


class Array(NamedTuple):
    """An array of a file."""

    dtype: str  # or several, separated by bars
    # Each length is a number, None for any length, or a name. Upper-case names are lengths of the whole file.
    # Lower-case names are shared by the arrays whose names are equal up to the last dot. "n+1" is one more.
    shape: tuple[int | str | None, ...] | None = None
    limits: Limits = Limits()


FLOATS = "float64|float32"
INFINITE, ANY = Limits(may_be_infinite=True), Limits(may_be_infinite=True, may_be_missing=True)
FROM_ZERO = Limits(0)
COUNT, SIZE, FINITE = Number(0, 2**62, whole=True), Number(0), Number()
Size = Annotated[float, SIZE]  # in a record
Length = Annotated[int, Number(0, 2**31 - 1, whole=True)]
HASH_BITS = Number(0, 30, whole=True)
HashBits = Annotated[int, HASH_BITS]
DecimalMark = Annotated[str, Text((".", ","))]
Moment = Annotated[int | None, Number(-(2**62), 2**62, whole=True, may_be_none=True)]
_OF_TYPES: dict[Any, Any] = {int: COUNT, float: FINITE, str: Text(), bool: Flag(), Any: Anything()}


def check_header(value: Any, kind: Any, where: str = "") -> Any:
    """A JSON value, with dicts and lists converted to records; a ModelError unless it is of the kind.

    The kind is one of the above, or a dict from names to kinds; undeclared names are dropped. ``where`` is for
    messages.

    >>> check_header([[0.0, 5.0, False, False, None]], Sequence(Record(Limits)))
    [Limits(low=0.0, below=5.0, may_be_infinite=False, may_be_missing=False, ascends_to=None)]
    >>> check_header({"rows": -1}, {"rows": Number(0, whole=True)})
    Traceback (most recent call last):
    tunefree.core.errors.ModelError: rows is -1, not a whole number from 0
    """
    if value is None and getattr(kind, "may_be_none", False):
        return None
    if isinstance(kind, Optional):
        return check_header(value, kind.of, where)
    if isinstance(kind, Record):
        kinds = fields_of(kind.of)
        if hasattr(kind.of, "_fields"):
            value = dict(zip(kinds, check_header(value, Sequence(Anything(), len(kinds)), where), strict=False))
        return kind.of(**check_header(value, kinds, where))
    if isinstance(kind, Sequence):
        if not isinstance(value, list) or len(value) > kind.most:
            raise ModelError(f"{where} is {_shown(value)}, not a list of at most {kind.most:,} as it should be")
        return [check_header(entry, kind.of, f"{where}.{index}") for index, entry in enumerate(value)]
    if isinstance(kind, Mapping | dict):
        if not isinstance(value, dict):
            raise ModelError(f"{where or 'the header'} is {_shown(value)}, not a mapping as it should be")
        kinds = kind if isinstance(kind, dict) else dict.fromkeys(value, kind.of)
        under = f"{where}." if where else ""
        for name in kinds:
            if name not in value and not isinstance(kinds[name], Optional):
                raise ModelError(f"{under}{name} is missing")
        return {name: check_header(value[name], kinds[name], under + name) for name in kinds if name in value}
    if not _fits(value, kind):
        raise ModelError(f"{where} is {_shown(value)}, not {_described(kind)}")
    return value


@cache
def fields_of(record: Any) -> dict[str, Any]:
    """The kinds of the fields of a NamedTuple or a dataclass; dataclass fields with a default are optional."""
    hints = get_type_hints(record, include_extras=True)
    if hasattr(record, "_fields"):
        return {name: _kind_of(hints[name]) for name in record._fields}
    needed = [field.name for field in fields(record) if field.default is field.default_factory is MISSING]
    kinds = {field.name: _kind_of(hints[field.name]) for field in fields(record)}
    return {name: kind if name in needed else Optional(kind) for name, kind in kinds.items()}


def _kind_of(hint: Any) -> Any:
    if hasattr(hint, "__metadata__"):
        return hint.__metadata__[0]
    if hint in _OF_TYPES:
        return _OF_TYPES[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (list, abc.Sequence):
        return Sequence(_kind_of(arguments[0]))
    if origin in (dict, abc.Mapping):
        return Mapping(_kind_of(arguments[1]))
    if not arguments:
        return Record(hint)
    return _kind_of(arguments[0])._replace(may_be_none=True)


def _fits(value: Any, kind: Any) -> bool:
    if isinstance(kind, Anything):
        return True
    if isinstance(kind, Flag):
        return isinstance(value, bool)
    if isinstance(kind, Label):
        return isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))
    if isinstance(kind, Text):
        return isinstance(value, str) and (kind.choices is None or value in kind.choices)
    is_number = isinstance(value, int if kind.whole else int | float) and not isinstance(value, bool)
    return is_number and kind.low <= value <= kind.high


def _described(kind: Any) -> str:
    if isinstance(kind, Text):
        return "a string" if kind.choices is None else f"one of {', '.join(map(str, kind.choices))}"
    if not isinstance(kind, Number):
        return {Flag: "true or false"}.get(type(kind), "a string or a number")
    ends = ("" if kind.low <= -MOST else f" from {kind.low:g}") + ("" if kind.high >= MOST else f" to {kind.high:g}")
    return ("a whole number" if kind.whole else "a finite number") + ends


def _shown(value: Any) -> str:
    text = repr(value) if not isinstance(value, list | dict) else f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:60] + "..."


def check_arrays(arrays: dict[str, np.ndarray], kinds: dict[str, Array], lengths: dict[str, int]) -> None:
    """Raise a ModelError unless all arrays are as declared by name; undeclared arrays must be finite floats.

    ``lengths`` are the lengths with upper-case names.

    >>> kinds = {"rows.ids": Array("int32", ("n",), Limits(0, "D")), "rows.values": Array("float64", ("n",))}
    >>> arrays = {"rows.ids": np.array([1, 7], np.int32), "rows.values": np.zeros(2), "undeclared": np.zeros((3, 4))}
    >>> check_arrays(arrays, kinds, {"D": 8})
    >>> check_arrays(arrays, kinds, {"D": 5})
    Traceback (most recent call last):
    tunefree.core.errors.ModelError: rows.ids has 7, where all are below 5
    """
    all_lengths: dict[str, int] = dict(lengths)
    for check in (_check_shape, _check_numbers):  # the first pass finds the lengths that limit the numbers
        for name in sorted(arrays):
            check(name, arrays[name], kinds.get(name, Array(FLOATS)), all_lengths)


def _check_shape(name: str, array: np.ndarray, kind: Array, lengths: dict[str, int]) -> None:
    if array.dtype.name not in kind.dtype.split("|"):
        raise ModelError(f"{name} is of type {array.dtype.name}, not {kind.dtype.replace('|', ' or ')}")
    if kind.shape is None:
        return
    if array.ndim != len(kind.shape):
        raise ModelError(f"{name} has {array.ndim} axes, not {len(kind.shape)}")
    for length, expected in zip(array.shape, kind.shape, strict=True):
        if isinstance(expected, str):
            added = int(expected.endswith("+1"))
            lengths.setdefault(_scoped(name, expected.removesuffix("+1")), length - added)
            expected = _length(name, expected, lengths)
        if expected is not None and length != expected:
            shape = " x ".join(map(str, array.shape))
            raise ModelError(f"{name} has the shape {shape}, where other parts ask for {expected}")


def _length(name: str, length: str, lengths: dict[str, int]) -> int:
    """The length of a named axis of an array; -1 if no array has it."""
    return lengths.get(_scoped(name, length.removesuffix("+1")), -1) + int(length.endswith("+1"))


def _scoped(name: str, length: str) -> str:
    return length if length.isupper() else f"{name.rpartition('.')[0]}:{length}"


def _check_numbers(name: str, array: np.ndarray, kind: Array, lengths: dict[str, int]) -> None:
    limits = kind.limits
    if not array.size or array.dtype.kind == "b":
        if limits.ascends_to is not None:
            raise ModelError(f"{name} is empty")
        return
    if limits.may_be_missing and array.dtype.kind == "f":
        array = np.append(array[~np.isnan(array)], 0.0)
    least, most = float(array.min()), float(array.max())  # NaN if any element is NaN
    if math.isnan(least) or (math.inf in (-least, most) and not limits.may_be_infinite):
        raise ModelError(f"{name} has a number that is not finite")
    below: Any = _length(name, limits.below, lengths) if isinstance(limits.below, str) else limits.below
    if least < limits.low and not (limits.may_be_infinite and limits.low == -MOST):
        raise ModelError(f"{name} has {least}, where all are at least {limits.low:g}")
    if below < math.inf and most >= below:
        raise ModelError(f"{name} has {most:g}, where all are below {below:g}")
    if limits.ascends_to is not None:
        end = _length(name, limits.ascends_to, lengths)
        if array[0] != 0 or array[-1] != end or (np.diff(array) < 0).any():
            raise ModelError(f"{name} does not ascend from 0 to {end}")

"""Parts of a model: state that is declared once, for files, copies and sizes.

A subclass of :class:`Part` declares its state: arrays, numbers, other parts, and lists or mappings of these. Each has a
role:

    learned   changes during learning; each copy has its own
    fixed     never changes in place; copies share it
    record    is needed for learning or evaluation, but not in a model that only predicts
    scratch   is recomputed; not in files

The declaration defines files and their checks, copies, sizes, and the reduction to a model that only predicts. A part
may hold learners (:class:`tunefree.core.fields.State`) and NamedTuples of arrays, whose fields declare dtype and axes
themselves (:func:`fields_of`).

In a file arrays have dotted names, ``growth.awake.0.model.nodes``, and the header has a mapping for each part. A file
is checked against the declarations of the class (:func:`declared_arrays`) before any object is created from it.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import asdict, is_dataclass
from functools import cache, partial
from inspect import get_annotations
from operator import itemgetter
from typing import Any, ClassVar, Self, get_type_hints

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.fields import Field, State, dtype_of
from tunefree.core.schema import Array, Flag, Limits, Mapping, Number, Sequence, check_header

LEARNED, FIXED, RECORD, SCRATCH = ROLES = ("learned", "fixed", "record", "scratch")
MOST_CHILDREN = 2**16
_SHARED = "roles of fields that copies share"  # key in the memo of a copy
Saved = tuple[dict[str, np.ndarray], dict[str, Any]]  # arrays by dotted names, and a header


class Declared:
    """A field of a part with a role; subclasses declare fields that are in files.

    ``blank`` is a function of the part that returns the value before the first row; for a record, the value in a model
    that only predicts. If the saved value is not the attribute itself, ``read`` computes it from the part, and
    ``write`` receives the part and the saved value.
    """

    def __init__(self, role: str, blank: Any = None, read: Any = None, write: Any = None) -> None:
        if role not in ROLES:
            raise TypeError(f"the role {role!r} of a field is none of {', '.join(ROLES)}")
        self.role, self.blank, self._read, self._write = role, blank, read, write

    def __set_name__(self, owner: type, name: str) -> None:
        self.name, self.key = name, name.lstrip("_")  # name of the attribute, and key in files

    def __get__(self, part: Any, owner: type) -> Any:
        if part is None:
            return self
        raise AttributeError(f"{type(part).__name__}.{self.name} has no value yet")

    def read(self, part: Any) -> Any:
        """The value to save."""
        return getattr(part, self.name) if self._read is None else self._read(part)

    def value(self, part: Any) -> Any:
        """The attribute, or the value to save if there is no attribute."""
        return vars(part)[self.name] if self.name in vars(part) else self.read(part)

    def write(self, part: Any, value: Any) -> None:
        """Restore a saved value."""
        if self._write is None:
            setattr(part, self.name, value)
        else:
            self._write(part, value)


class _Array(Declared):
    """A field whose value is an array.

    After a bar, ``dtype`` lists smaller dtypes that a file may use where they are exact. Each axis is a length, None
    for any length, or a name. Axes of the same name in a part have the same length: the attribute of this name, if it
    exists. Keywords are the :class:`tunefree.core.schema.Limits` of the values, and properties of :class:`Declared`.
    """

    def __init__(
        self, dtype: str, axes: tuple[int | str | None, ...], role: str, *, may_be_none: bool = False, **properties: Any
    ) -> None:
        limits = {name: properties.pop(name) for name in Limits._fields if name in properties}
        super().__init__(role, **properties)
        self.dtypes: list[Any] = dtype.split("|")
        self.kind, self.may_be_none = Array(dtype, axes, Limits(**limits)), may_be_none

    def save(self, part: Any, key: str, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        value = self.read(part)
        if self.may_be_none:
            header[self.key] = value is not None
        if value is not None:
            arrays[key] = packed(np.asarray(value), self.dtypes[1:])

    def declare(self, header: dict[str, Any], key: str, declared: dict[str, Array], axes: dict[str, Any]) -> None:
        if self.may_be_none:
            check_header(header, {self.key: Flag()}, key.rpartition(".")[0])
        if not self.may_be_none or header[self.key]:
            shape = self.kind.shape or ()
            declared[key] = self.kind._replace(shape=tuple(axes.get(axis, axis) for axis in shape))  # type: ignore[arg-type]

    def restored(self, owner: Any, key: str, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Any:
        if self.may_be_none and not header[self.key]:
            return None
        value = np.array(arrays[key], self.dtypes[0])
        for axis, length in zip(self.kind.shape or (), value.shape, strict=False):
            expected = getattr(owner, axis, length) if isinstance(axis, str) and isinstance(owner, Part) else length
            if length != expected:
                raise ModelError(f"{key} has the shape {value.shape}, where {axis} is {expected}")
        return value if value.ndim else value.item()


class _Number(Declared):
    """A field in the header; ``kind`` is a kind of :mod:`tunefree.core.schema`."""

    def __init__(self, role: str, kind: Any = Number(), read: Any = None, write: Any = None) -> None:  # noqa: B008
        super().__init__(role, None, read, write)
        self.kind = kind

    def save(self, part: Any, key: str, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        header[self.key] = _plain(self.read(part))

    def declare(self, header: dict[str, Any], key: str, declared: dict[str, Array], axes: dict[str, Any]) -> None:
        check_header(header, {self.key: self.kind}, key.rpartition(".")[0])

    def restored(self, owner: Any, key: str, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Any:
        value, current = check_header(_plain(header[self.key]), self.kind, key), vars(owner).get(self.name)
        return type(current)(value) if type(current) in (tuple, float) else value


class _Child(Declared):
    """A field that is a part, a learner or a NamedTuple of arrays; or a list or a dict with string keys of these.

    ``kind`` is the class, or a function of the headers of the owner and the child that returns it. ``make`` creates a
    blank child from the owner and the header of the child; the default is the child that the owner's constructor
    created, or a new instance. ``axes`` are names or lengths of axes of learners and NamedTuples.
    """

    def __init__(
        self,
        kind: Any,
        role: str,
        *,
        make: Any = None,
        axes: dict[str, Any] | None = None,
        is_many: bool = False,
        may_be_none: bool = False,
        **properties: Any,
    ) -> None:
        super().__init__(role, **properties)
        self.kind, self.make, self.axes = kind, make, axes or {}
        self.is_many, self.may_be_none = is_many, may_be_none

    def save(self, part: Any, key: str, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        header[self.key] = _saved(self.read(part), key, arrays)

    def declare(self, header: dict[str, Any], key: str, declared: dict[str, Array], axes: dict[str, Any]) -> None:
        value = header.get(self.key) if isinstance(header, dict) else None
        if value is None and self.may_be_none:
            return
        kind = Sequence({}, MOST_CHILDREN) if isinstance(value, list) else Mapping({})
        check_header(header, {self.key: kind if self.is_many else {}}, key.rpartition(".")[0])
        for position, child_header in _children_of(value, self.is_many):
            child_kind = self._kind_of(header, child_header)
            declared |= declared_arrays(child_kind, child_header, _subkey(key, position), axes | self.axes)

    def restored(self, owner: Any, key: str, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Any:
        value = header.get(self.key, {})
        if value is None:
            return None
        children = {
            position: restored(self._blank_of(owner, header, item, position), _subkey(key, position), arrays, item)
            for position, item in _children_of(value, self.is_many)
        }
        if not self.is_many:
            return children[""]
        return list(children.values()) if isinstance(value, list) else children

    def _kind_of(self, header: dict[str, Any], child_header: Any) -> Any:
        return self.kind if isinstance(self.kind, type) else self.kind(header, child_header)

    def _blank_of(self, owner: Any, header: dict[str, Any], child_header: Any, position: str) -> Any:
        """The object to fill from a file; a NamedTuple class itself, as it is instantiated later."""
        if self.make is not None:
            return self.make(owner, child_header)
        current = None if isinstance(owner, type) else getattr(owner, self.name, None)
        if self.is_many:
            current = current[int(position)] if isinstance(current, list) and int(position) < len(current) else None
        kind = self._kind_of(header, child_header)
        return current if current is not None else kind if hasattr(kind, "_fields") else kind()


array: Any = _Array
number: Any = _Number
child: Any = _Child
children: Any = partial(_Child, is_many=True)
argument: Any = partial(Declared, FIXED)  # passed in and saved by the creator of the part; copies share it
scratch: Any = partial(Declared, SCRATCH)  # recomputed, starting from the blank


class Part:
    """Base class of parts, see :mod:`tunefree.core.part`.

    A class that has an annotated field without a declaration, or a record without a blank, raises a TypeError.

    Examples
    --------
    >>> class Mean(Part):
    ...     total = array("float64", ("k",), LEARNED)
    ...     rows = number(LEARNED, Number(0, whole=True))
    ...     def __init__(self, k):
    ...         self.total, self.rows = np.zeros(k), 0
    >>> mean = Mean(2)
    >>> mean.total += 1.5
    >>> arrays, header = mean.save_state()
    >>> other = Mean(2)
    >>> _ = restored(other, "", arrays, header)
    >>> other.total, header, declared_arrays(Mean, {"rows": -1})
    Traceback (most recent call last):
    tunefree.core.errors.ModelError: rows is -1, not a whole number from 0
    """

    fields_of_part: ClassVar[dict[str, Declared]] = {}

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        declared: dict[str, Declared] = {}
        for base in reversed(cls.__mro__):
            declared |= {name: value for name, value in vars(base).items() if isinstance(value, Declared)}
            annotated = {name for name, kind in get_annotations(base).items() if "ClassVar" not in str(kind)}
            if base is not Part and (bare := sorted(annotated - declared.keys())):
                raise TypeError(f"{cls.__name__}.{bare[0]} has no role: declare it by tunefree.core.part")
        for name, field in declared.items():
            if field.role == RECORD and field.blank is None and not isinstance(field, _Number):
                raise TypeError(f"{cls.__name__}.{name} is a record without a blank")
        cls.fields_of_part = declared

    @classmethod
    def bare(cls, **arguments: Any) -> Self:
        """A part with its arguments but without state, to be filled from a file."""
        part = object.__new__(cls)
        vars(part).update(arguments)
        for name, declared in cls.fields_of_part.items():
            if declared.role == SCRATCH:
                setattr(part, name, declared.blank and declared.blank(part))
        return part

    def prepare(self) -> None:
        """Move pending values into the fields, before saving or copying."""

    def save_state(self) -> Saved:
        """The arrays and the header from which :func:`restored` recreates the part."""
        arrays: dict[str, np.ndarray] = {}
        return arrays, _saved(self, "", arrays)

    def complete(self) -> None:
        """Compute the fields that are neither saved nor copied."""

    def check(self) -> None:
        """Raise a ModelError unless the restored fields are consistent."""

    def copied(self, shared: tuple[str, ...] = (FIXED,), memo: dict[Any, Any] | None = None) -> Self:
        """An independent copy that shares the fields with ``shared`` roles.

        ``memo`` contains earlier copies, as in :func:`copy.deepcopy`.
        """
        memo = {} if memo is None else memo
        memo[_SHARED] = shared
        return copy.deepcopy(self, memo)

    def __deepcopy__(self, memo: dict[Any, Any]) -> Self:
        self.prepare()
        self.check_declared()
        shared, duplicate = memo.get(_SHARED, (FIXED,)), object.__new__(type(self))
        memo[id(self)] = duplicate
        for name, declared in self.fields_of_part.items():
            if declared.role == SCRATCH:
                setattr(duplicate, name, declared.blank and declared.blank(duplicate))
                continue
            is_attribute, value = name in vars(self), declared.value(self)
            value = memo.get(id(value), value) if declared.role in shared else copy.deepcopy(value, memo)
            (partial(setattr, duplicate, name) if is_attribute else partial(declared.write, duplicate))(value)
        duplicate.complete()
        return duplicate

    def reduce(self) -> None:
        """Keep only the state that predictions need, not the state for learning."""
        for name, declared in self.fields_of_part.items():
            if declared.role == RECORD and declared.blank is not None:
                setattr(self, name, declared.blank(self))
            elif isinstance(declared, _Child):
                for part in _parts_in(getattr(self, name)):
                    part.reduce()

    @property
    def nbytes(self) -> int:
        """The size of the arrays in bytes, including those of child parts."""
        kind: Any = type(self)
        return sum(size_of(field.value(self)) for field in fields_of(kind))

    def check_declared(self) -> None:
        """Raise a TypeError if the part has an attribute without a role."""
        if unknown := vars(self).keys() - self.fields_of_part.keys():
            raise TypeError(f"{type(self).__name__}.{min(unknown)} has no role: declare it by tunefree.core.part")


def _parts_in(value: Any) -> Iterator[Part]:
    """The parts in a value, in a mapping, or in lists."""
    if isinstance(value, Part):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _parts_in(item)


def _children_of(header: Any, is_many: bool) -> list[tuple[str, Any]]:
    """The headers of children by position; a single child has the position ''."""
    if not is_many:
        return [("", header)]
    pairs = header.items() if isinstance(header, dict) else enumerate(header)
    return [(str(position), child_header) for position, child_header in pairs]


def _subkey(key: str, name: str) -> str:
    return f"{key}.{name}" if key and name else key or name


def _plain(value: Any) -> Any:
    """The JSON form of a value."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def packed(value: np.ndarray, dtypes: list[str]) -> np.ndarray:
    """An array converted to the last of these dtypes that is exact, else unchanged."""
    for dtype in reversed(dtypes):
        with np.errstate(over="ignore", invalid="ignore"):
            smaller = value.astype(dtype)
        if ((smaller == value) | np.isnan(value)).all():
            return smaller
    return value


def _saved(value: Any, key: str, arrays: dict[str, np.ndarray]) -> Any:
    """The header of a value; its arrays are added to ``arrays``."""
    if value is None:
        return None
    if isinstance(value, list):
        return [_saved(item, _subkey(key, str(index)), arrays) for index, item in enumerate(value)]
    header: dict[str, Any] = {}
    if isinstance(value, dict):
        saved = {name: _saved(item, _subkey(key, name), arrays) for name, item in value.items()}
        return {name: saved[name] for name, item in value.items() if not isinstance(item, np.ndarray)}
    if isinstance(value, np.ndarray):
        arrays[key] = value
        return header
    if isinstance(value, Part):
        value.prepare()
        value.check_declared()
    kind: Any = type(value)
    for field in fields_of(kind):
        field.save(value, _subkey(key, field.key), arrays, header)
    return header


def restored(blank: Any, key: str, arrays: dict[str, np.ndarray], header: Any) -> Any:
    """A value filled from a file; ``blank`` is an empty value, or a NamedTuple class.

    Arrays whose shapes differ from the blank value raise a ModelError.
    """
    kind: Any = blank if isinstance(blank, type) else type(blank)
    fields = [(field, _subkey(key, field.key)) for field in fields_of(kind)]
    if issubclass(kind, State):
        return blank.restored({field.name: arrays[child_key] for field, child_key in fields})
    if issubclass(kind, Part):
        for field, child_key in fields:
            field.write(blank, field.restored(blank, child_key, arrays, header))
        blank.check()
        blank.complete()
        return blank
    values = {field.name: field.restored(blank, child_key, arrays, {}) for field, child_key in fields}
    for field, child_key in fields if blank is not kind else ():
        current, value = getattr(blank, field.name), values[field.name]
        if isinstance(current, np.ndarray) and current.shape != value.shape:
            raise ModelError(f"{child_key} has the shape {value.shape}, not {current.shape}")
    return kind(**values)


@cache
def fields_of(kind: Any) -> list[Any]:
    """The fields in files of a part, a learner, or a NamedTuple of arrays."""
    if issubclass(kind, Part):
        return [declared for declared in kind.fields_of_part.values() if type(declared) is not Declared]
    if issubclass(kind, State):
        fields = {field.name: _field_of_state(kind, field) for field in kind.fields if field.is_saved}
    else:
        hints = get_type_hints(kind, include_extras=True)
        fields = {name: _field_of_record(hints[name]) for name in kind._fields}
    for name, field in fields.items():
        field.__set_name__(kind, name)
    return list(fields.values())


def _field_of_state(kind: type[State], field: Field) -> Any:
    axes = tuple(kind.axes_of_files.get(axis, axis) for axis in field.axes) or (1,)
    limits = field.limits._asdict()
    return _Array(dtype_of(kind, field).name, axes, LEARNED, read=itemgetter(field.name), **limits)


def _field_of_record(hint: Any) -> Any:
    declared, *limits = getattr(hint, "__metadata__", (None,))
    if not isinstance(declared, str):
        return _Child(hint, LEARNED)
    dtype, *axes = re.findall(r"[\w|+]+", declared)
    lengths = tuple(int(axis) if axis.isdigit() else axis for axis in axes)
    array = _Array(dtype, lengths, LEARNED, **(limits[0]._asdict() if limits else {}))
    array.dtypes = [None]  # values keep their dtype
    return array


def declared_arrays(kind: Any, header: Any, key: str = "", axes: dict[str, Any] | None = None) -> dict[str, Array]:
    """The arrays in a file of a part, a learner or a NamedTuple, by name; an error if the header is not as declared.

    ``axes`` maps axes of learners and NamedTuples to names or lengths.
    """
    check_header(header, {}, key)
    known, declared = {} if axes is None or issubclass(kind, Part) else axes, dict[str, Array]()
    for field in fields_of(kind):
        field.declare(header, _subkey(key, field.key), declared, known)
    return declared


def zeros(kind: Any, **lengths: int) -> Any:
    """A NamedTuple of this class with arrays of zeros and these lengths of axes."""
    arrays = [field.kind for field in fields_of(kind)]
    return kind(*(np.zeros([lengths.get(axis, axis) for axis in array.shape], array.dtype) for array in arrays))


def size_of(part: Any, length: int = 0) -> int:
    """The size in bytes of the arrays in nested tuples, lists, dicts, learners and parts.

    Only arrays with at least ``length`` elements along one of their axes count.

    >>> size_of({"a": (np.zeros(3), [np.zeros(2, np.int32)]), "b": 5}), size_of([np.zeros((9, 2)), np.zeros(5)], 8)
    (32, 144)
    """
    if isinstance(part, np.ndarray):
        return part.nbytes if max(part.shape, default=0) >= length else 0
    if isinstance(part, Part):
        return part.nbytes
    if isinstance(part, State):
        return size_of(part.blocks, length)
    if isinstance(part, dict):
        return sum(size_of(value, length) for value in part.values())
    return sum(size_of(value, length) for value in part) if isinstance(part, tuple | list) else 0

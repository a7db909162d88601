"""The state of an algorithm: fields declared once with their axes, stored in a few plain NumPy arrays.

A subclass of :class:`State` declares its fields; an instance holds their values. Fields with the same axes share a
block of memory:

    features     (features, fields)             one short row for each feature
    coordinates  (features, fields, outputs)    one row for each feature, field after field
    outputs      (fields, outputs)
    numbers      (fields,)                      settings, and sums over all features

So an entry of a sparse row touches one row of two blocks, regardless of the number of fields, and loops over outputs
are contiguous in memory. Fields with other axes, such as matrices, have an array each. Several outputs are padded to a
multiple of LANES, the number of elements of a processor vector. Padding is computed like other outputs, and ignored.

Allocation, growth, additional classes, files and sizes follow from the declaration. The functions of an algorithm take
a state as their first argument and read a field by name, ``state.squares[j, k]``. In Python this is a NumPy view;
compiled code creates the same view from the blocks.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, ClassVar, Self

import numpy as np

from tunefree.core.schema import INFINITE, Limits

LANES = 4
FEATURE, OUTPUT = "feature", "output"
BLOCKS: dict[str, tuple[str, ...]] = {
    "features": (FEATURE,),
    "coordinates": (FEATURE, OUTPUT),
    "outputs": (OUTPUT,),
    "numbers": (),
}
DTYPE = np.float64  # of fields, unless a class declares another one
EVEN, ODD = 1, -1


@dataclass(eq=False)
class Field:
    """One statistic, or one setting, of a state class."""

    axes: tuple[str, ...]  # FEATURE, OUTPUT, or names of the class's further axes, see :meth:`State.lengths`
    meaning: str  # symbol in the paper, and unit
    start: float = 0.0  # value before the first row
    # Effect of negating all slopes: the field is unchanged (EVEN) or negated (ODD); 0 where neither is needed, see
    # :meth:`tunefree.learners.contract.mirror`.
    parity: int = 0
    is_halved: bool = False  # whether weights are proportional to it, other fields being equal
    is_saved: bool = True  # False for values that each round writes before reading
    is_setting: bool = False  # whether it is a constant parameter
    limits: Limits = INFINITE  # of its values in a file
    name: str = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name


# Fields with one value per feature, per feature and output, per output, and a single variable value
# ``state.rounds[0]``. Arguments: the meaning, and other properties of a field as keywords.
per_feature: Any = partial(Field, (FEATURE,))
per_coordinate: Any = partial(Field, (FEATURE, OUTPUT))
per_output: Any = partial(Field, (OUTPUT,))
single: Any = partial(Field, ())


def setting(default: float, meaning: str) -> Any:
    """A parameter of an algorithm: one constant number."""
    return Field((), meaning, default, is_setting=True)


def padded(n_outputs: int) -> int:
    """Length of the axis of outputs in memory: 1, or a multiple of LANES.

    >>> padded(1), padded(3), padded(26)
    (1, 4, 28)
    """
    return n_outputs if n_outputs == 1 else -(-n_outputs // LANES) * LANES


class State:
    """The state of one algorithm, with capacity for a number of features and outputs.

    Keywords are the settings that differ from their defaults.

    >>> class Perceptron(State):
    ...     weights = per_coordinate("w_i")
    ...     rate = setting(1.0, "step size")
    >>> state = Perceptron(3, 2, rate=0.5)
    >>> state["weights"].shape, state.weights.shape, state.rate, state.coordinates.shape
    ((3, 2), (3, 4), array([0.5]), (3, 1, 4))
    >>> state.grown(5, 3)["weights"].shape, state.grown(5, 3).settings
    ((5, 3), {'rate': 0.5})
    """

    fields: ClassVar[tuple[Field, ...]] = ()
    places: ClassVar[dict[str, tuple[str, tuple[int | slice, ...]]]] = {}  # block of a field, and its subscripts there
    alone: ClassVar[tuple[str, ...]] = ()  # names of fields with an array each
    axes_of_files: ClassVar[dict[str, str]] = {}  # names of axes that differ in files
    dtypes: ClassVar[dict[str, Any]] = {}  # of blocks
    memory: tuple[list[int], list[Any]] | None = None  # addresses and shapes of the blocks, once used

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        declared: dict[str, Field] = {}
        for base in reversed(cls.__mro__):
            declared |= {name: value for name, value in vars(base).items() if isinstance(value, Field)}
        cls.fields, cls.places, counts = tuple(declared.values()), {}, dict.fromkeys(BLOCKS, 0)
        blocks = {axes: block for block, axes in BLOCKS.items()}
        for field in [field for field in cls.fields if field.axes in blocks]:
            block, k = blocks[field.axes], counts[blocks[field.axes]]
            subscripts = (slice(None), k) if FEATURE in field.axes else (k,) if field.axes else (slice(k, k + 1),)
            cls.places[field.name], counts[block] = (block, subscripts), k + 1
        cls.alone = tuple(field.name for field in cls.fields if field.name not in cls.places)

    def __init__(self, n_features: int, n_outputs: int = 1, **settings: float) -> None:
        if unknown := [name for name in settings if name not in self.settings_of()]:
            known = ", ".join(self.settings_of()) or "none"
            raise TypeError(f"{type(self).__name__} has no setting {unknown[0]!r}; it has {known}")
        self.n_features, self.n_outputs = n_features, n_outputs
        for block, axes in BLOCKS.items():
            starts = [settings.get(field.name, field.start) for field in self.fields if field.axes == axes]
            numbers = np.array(starts, self.dtypes.get(block, DTYPE))
            setattr(self, block, _block(numbers, axes, n_features, padded(n_outputs)))
        lengths = {FEATURE: n_features, OUTPUT: n_outputs, **self.lengths(n_features, n_outputs)}
        for field in self.fields:
            if field.name in self.alone:
                setattr(self, field.name, np.full([lengths[axis] for axis in field.axes], field.start, DTYPE))
        self._set_views()

    @classmethod
    def lengths(cls, n_features: int, n_outputs: int) -> dict[str, int]:
        """The lengths of axes other than features and outputs."""
        return {}

    @classmethod
    def settings_of(cls) -> dict[str, float]:
        """The settings with their defaults."""
        return {field.name: field.start for field in cls.fields if field.is_setting}

    @property
    def settings(self) -> dict[str, float]:
        """The settings."""
        return {name: float(getattr(self, name)[0]) for name in self.settings_of()}

    def _set_views(self) -> None:
        self.blocks: tuple[np.ndarray, ...] = tuple(getattr(self, name) for name in (*BLOCKS, *self.alone))
        for name, (block, subscripts) in self.places.items():
            setattr(self, name, getattr(self, block)[subscripts])

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse to replace an array: compiled functions get the addresses once. Values change in place."""
        if name in self.__dict__:
            raise AttributeError(f"{name} of {type(self).__name__} is changed in place, not replaced")
        super().__setattr__(name, value)

    def __getitem__(self, name: str) -> np.ndarray:
        """A field without padding: (features,), (features, outputs), (outputs,), (1,), or with further axes."""
        view: np.ndarray = getattr(self, name)
        axes = next(field.axes for field in self.fields if field.name == name)
        return view[..., : self.n_outputs] if name in self.places and axes[-1:] == (OUTPUT,) else view

    def __getstate__(self) -> dict[str, Any]:
        """The blocks without their views, for copies."""
        return {"n_features": self.n_features, "n_outputs": self.n_outputs, "blocks": self.blocks}

    def __setstate__(self, contents: dict[str, Any]) -> None:
        self.n_features, self.n_outputs = contents["n_features"], contents["n_outputs"]
        for name, block in zip((*BLOCKS, *self.alone), contents["blocks"], strict=True):
            setattr(self, name, block)
        self._set_views()

    @property
    def nbytes(self) -> int:
        """The size of the memory in bytes."""
        return sum(block.nbytes for block in self.blocks)

    def blank(self, n_features: int, n_outputs: int) -> Self:
        """An untrained state with the same settings."""
        return type(self)(n_features, n_outputs, **self.settings)

    def grown(self, n_features: int, n_outputs: int, first: int = 0) -> Self:
        """A state with the same values and more capacity; the current first output becomes output ``first``.

        Further axes are truncated to the new capacity.
        """
        larger = self.blank(n_features, n_outputs)
        for field in self.fields:
            source, target = self[field.name], larger[field.name]
            source_slices = [slice(min(pair)) for pair in zip(source.shape, target.shape, strict=True)]
            target_slices = list(source_slices)
            if OUTPUT in field.axes:
                target_slices[field.axes.index(OUTPUT)] = slice(first, first + self.n_outputs)
            target[tuple(target_slices)] = source[tuple(source_slices)]
        return larger

    def forget(self, features: slice | np.ndarray) -> None:
        """Reset some features in place, as if they had never been seen; sums over features are unchanged."""
        for field in self.fields:
            if FEATURE in field.axes:
                np.moveaxis(getattr(self, field.name), field.axes.index(FEATURE), 0)[features] = field.start

    def arrays(self, n_features: int | None = None) -> dict[str, np.ndarray]:
        """Views of the saved fields, without padding, for the first features."""
        n = self.n_features if n_features is None else min(n_features, self.n_features)
        lengths = {FEATURE: n, OUTPUT: self.n_outputs, **self.lengths(n, self.n_outputs)}
        saved = [field for field in self.fields if field.is_saved]
        return {field.name: self[field.name][tuple(slice(lengths[axis]) for axis in field.axes)] for field in saved}

    def restored(self, arrays: Mapping[str, np.ndarray]) -> Self:
        """This state with the values of :meth:`arrays`, or a larger state if they have more features."""
        lengths = [len(arrays[field.name]) for field in self.fields if field.is_saved and field.axes[:1] == (FEATURE,)]
        state = self if max(lengths, default=0) <= self.n_features else self.grown(max(lengths), self.n_outputs)
        for name, values in arrays.items():
            target = state[name]
            target[tuple(map(slice, values.shape))] = values
        return state


def _block(starts: np.ndarray, axes: tuple[str, ...], n_features: int, n_outputs: int) -> np.ndarray:
    """A block of memory in which each field has its start value."""
    if OUTPUT in axes:
        starts = np.repeat(starts[:, None], n_outputs, axis=1)
    if not starts.any():  # the system allocates zeroed memory on the first write
        return np.zeros((n_features, *starts.shape) if FEATURE in axes else starts.shape, starts.dtype)
    return np.tile(starts, (n_features, *[1] * starts.ndim)) if FEATURE in axes else starts


def dtype_of(cls: type[State], field: Field) -> np.dtype[Any]:
    """The dtype of a field."""
    block, _ = cls.places.get(field.name, ("", ()))
    return np.dtype(cls.dtypes.get(block, DTYPE))


@cache
def views_type(cls: Any) -> Any:
    """The named tuple of views that replaces a state in compiled code."""
    return namedtuple(f"{cls.__name__}Views", [field.name for field in cls.fields])


def views_source(cls: type[State], prefix: str) -> Iterator[str]:
    """The Python expression of the view of each field, with a prefix before the names of blocks."""
    for field in cls.fields:
        block, subscripts = cls.places.get(field.name, (field.name, ()))
        yield f"{prefix}{block}" + f"[{', '.join(map(_expression, subscripts))}]" * bool(subscripts)


def _expression(subscript: int | slice) -> str:
    if isinstance(subscript, int):
        return str(subscript)
    return ":" if subscript.stop is None else f"{subscript.start}:{subscript.stop}"

"""The numbers of an algorithm: fields declared once with their axes, kept in a few plain NumPy arrays.

A class of :class:`State` declares its fields; an instance holds their numbers. Fields with the same axes share a block
of memory:

    features     (features, fields)             one short line for each feature
    coordinates  (features, fields, outputs)    one line for each feature, its fields behind each other
    outputs      (fields, outputs)
    numbers      (fields,)                      settings, and sums over all features

An entry of a sparse row so touches one line of two blocks, however many fields there are, and loops over outputs run
along memory. Fields with other axes, such as matrices, have an array each. Several outputs are padded to a multiple of
LANES, the numbers in a vector of the processor: padding is memory like any other, and holds what its column computes.

Allocation, growth, a class that comes late, files and sizes follow from the declaration. The
functions of an algorithm take a state as their first argument and read a field by its name, ``state.squares[j, k]``:
that is a NumPy view in Python, and in compiled code the same view, made there from the blocks.
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
DTYPE = np.float64  # of fields, where a class does not declare another one
EVEN, ODD = 1, -1


@dataclass(eq=False)
class Field:
    """One statistic, or one setting, of a class of states."""

    axes: tuple[str, ...]  # FEATURE, OUTPUT, or names of the class's further axes, see :meth:`State.lengths`
    meaning: str  # in the paper, and its unit
    start: float = 0.0  # before the first row
    # What becomes of it where all slopes have the other sign: it stays (EVEN), or has the other sign, too (ODD); 0
    # where neither is needed, see :meth:`tunefree.learners.contract.mirror`.
    parity: int = 0
    is_halved: bool = False  # whether weights are proportional to it, the other fields being equal
    is_saved: bool = True  # False for numbers that each round writes before it reads them
    is_setting: bool = False  # whether it is a parameter that nothing changes
    limits: Limits = INFINITE  # of its numbers in a file
    name: str = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name


# Fields with a number for each feature, for each feature and output, for each output, and of one number that changes,
# ``state.rounds[0]``. They take the meaning, and other properties of a field as keywords.
per_feature: Any = partial(Field, (FEATURE,))
per_coordinate: Any = partial(Field, (FEATURE, OUTPUT))
per_output: Any = partial(Field, (OUTPUT,))
single: Any = partial(Field, ())


def setting(default: float, meaning: str) -> Any:
    """A parameter of an algorithm: one number, which nothing changes."""
    return Field((), meaning, default, is_setting=True)


def padded(n_outputs: int) -> int:
    """Length of the axis of outputs in memory: 1, or a multiple of LANES.

    >>> padded(1), padded(3), padded(26)
    (1, 4, 28)
    """
    return n_outputs if n_outputs == 1 else -(-n_outputs // LANES) * LANES


class State:
    """The numbers of one algorithm, with capacity for some features and outputs.

    Keywords are fields that are settings, where they differ from their default.

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
    places: ClassVar[dict[str, tuple[str, tuple[int | slice, ...]]]] = {}  # the block of a field, and its view there
    alone: ClassVar[tuple[str, ...]] = ()  # fields that have an array each
    axes_of_files: ClassVar[dict[str, str]] = {}  # other names for axes there
    dtypes: ClassVar[dict[str, Any]] = {}  # of blocks
    memory: tuple[list[int], list[Any]] | None = None  # addresses and shapes of the blocks, once asked for

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        declared: dict[str, Field] = {}
        for base in reversed(cls.__mro__):
            declared |= {name: value for name, value in vars(base).items() if isinstance(value, Field)}
        cls.fields, cls.places, counts = tuple(declared.values()), {}, dict.fromkeys(BLOCKS, 0)
        blocks = {axes: block for block, axes in BLOCKS.items()}
        for field in [field for field in cls.fields if field.axes in blocks]:
            block, k = blocks[field.axes], counts[blocks[field.axes]]
            place = (slice(None), k) if FEATURE in field.axes else (k,) if field.axes else (slice(k, k + 1),)
            cls.places[field.name], counts[block] = (block, place), k + 1
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
        """Lengths of axes other than features and outputs."""
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
        """Refuse other arrays: compiled functions get the addresses of a state once. Numbers change in place."""
        if name in self.__dict__:
            raise AttributeError(f"{name} of {type(self).__name__} is changed in place, not replaced")
        super().__setattr__(name, value)

    def __getitem__(self, name: str) -> np.ndarray:
        """A field without padding: (features,), (features, outputs), (outputs,) or (1,), or of its further axes."""
        view: np.ndarray = getattr(self, name)
        axes = next(field.axes for field in self.fields if field.name == name)
        return view[..., : self.n_outputs] if name in self.places and axes[-1:] == (OUTPUT,) else view

    def __getstate__(self) -> dict[str, Any]:
        """The memory without its views, for copies."""
        return {"n_features": self.n_features, "n_outputs": self.n_outputs, "blocks": self.blocks}

    def __setstate__(self, known: dict[str, Any]) -> None:
        self.n_features, self.n_outputs = known["n_features"], known["n_outputs"]
        for name, block in zip((*BLOCKS, *self.alone), known["blocks"], strict=True):
            setattr(self, name, block)
        self._set_views()

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return sum(block.nbytes for block in self.blocks)

    def blank(self, n_features: int, n_outputs: int) -> Self:
        """A state of the same settings that has seen nothing."""
        return type(self)(n_features, n_outputs, **self.settings)

    def grown(self, n_features: int, n_outputs: int, first: int = 0) -> Self:
        """A state of the same numbers with capacity for more; the present first output becomes output ``first``.

        What is larger than there is room for in a further axis is cut.
        """
        other = self.blank(n_features, n_outputs)
        for field in self.fields:
            source, target = self[field.name], other[field.name]
            kept = [slice(min(pair)) for pair in zip(source.shape, target.shape, strict=True)]
            placed = list(kept)
            if OUTPUT in field.axes:
                placed[field.axes.index(OUTPUT)] = slice(first, first + self.n_outputs)
            target[tuple(placed)] = source[tuple(kept)]
        return other

    def forget(self, features: slice | np.ndarray) -> None:
        """Forget some features, in place, as if they had never been seen; sums over features stay."""
        for field in self.fields:
            if FEATURE in field.axes:
                np.moveaxis(getattr(self, field.name), field.axes.index(FEATURE), 0)[features] = field.start

    def arrays(self, n_features: int | None = None) -> dict[str, np.ndarray]:
        """Views of the saved fields, without padding, of the first features."""
        n = self.n_features if n_features is None else min(n_features, self.n_features)
        lengths = {FEATURE: n, OUTPUT: self.n_outputs, **self.lengths(n, self.n_outputs)}
        saved = [field for field in self.fields if field.is_saved]
        return {field.name: self[field.name][tuple(slice(lengths[axis]) for axis in field.axes)] for field in saved}

    def restored(self, arrays: Mapping[str, np.ndarray]) -> Self:
        """This state with the values of :meth:`arrays`, or a state of more capacity if they have more features."""
        lengths = [len(arrays[field.name]) for field in self.fields if field.is_saved and field.axes[:1] == (FEATURE,)]
        state = self if max(lengths, default=0) <= self.n_features else self.grown(max(lengths), self.n_outputs)
        for name, values in arrays.items():
            target = state[name]
            target[tuple(map(slice, values.shape))] = values
        return state


def _block(starts: np.ndarray, axes: tuple[str, ...], n_features: int, n_outputs: int) -> np.ndarray:
    """A block of memory in which each field has its start."""
    if OUTPUT in axes:
        starts = np.repeat(starts[:, None], n_outputs, axis=1)
    if not starts.any():  # memory that the system hands out once it is written to
        return np.zeros((n_features, *starts.shape) if FEATURE in axes else starts.shape, starts.dtype)
    return np.tile(starts, (n_features, *[1] * starts.ndim)) if FEATURE in axes else starts


def dtype_of(cls: type[State], field: Field) -> np.dtype[Any]:
    """The type of the numbers of a field."""
    block, _ = cls.places.get(field.name, ("", ()))
    return np.dtype(cls.dtypes.get(block, DTYPE))


@cache
def views_type(cls: Any) -> Any:
    """The named tuple of views that takes the place of a state in compiled code."""
    return namedtuple(f"{cls.__name__}Views", [field.name for field in cls.fields])


def views_source(cls: type[State], prefix: str) -> Iterator[str]:
    """For each field its view as it is written in Python, of blocks whose names have a prefix."""
    for field in cls.fields:
        block, subscripts = cls.places.get(field.name, (field.name, ()))
        yield f"{prefix}{block}" + f"[{', '.join(map(_written, subscripts))}]" * bool(subscripts)


def _written(subscript: int | slice) -> str:
    """A subscript as it is written in Python."""
    if isinstance(subscript, int):
        return str(subscript)
    return ":" if subscript.stop is None else f"{subscript.start}:{subscript.stop}"

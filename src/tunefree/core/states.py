"""Nested parts of a model as arrays and numbers by dotted name, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core.fields import State


def flatten(prefix: str, part: Any, n_features: int | None = None) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """The arrays and the numbers of nested NamedTuples and states, by dotted name.

    Parameters
    ----------
    prefix : str
        Of all names.
    part : State or NamedTuple
        Of arrays, numbers, states and NamedTuples.
    n_features : int, optional
        States are cut to the features known.
    """
    if isinstance(part, State):
        return {f"{prefix}.{name}": array for name, array in part.arrays(n_features).items()}, {}
    arrays: dict[str, np.ndarray] = {}
    scalars: dict[str, float] = {}
    for name, value in part._asdict().items():
        key = f"{prefix}.{name}"
        if isinstance(value, State) or hasattr(value, "_asdict"):
            of_value = flatten(key, value, n_features)
            arrays, scalars = arrays | of_value[0], scalars | of_value[1]
        elif isinstance(value, np.ndarray):
            arrays[key] = value
        else:
            scalars[key] = float(value)
    return arrays, scalars


def filled(prefix: str, blank: Any, arrays: dict[str, np.ndarray], scalars: dict[str, float]) -> Any:
    """A fresh part with the arrays and numbers that :func:`flatten` gave."""
    if isinstance(blank, State):
        blank.restore(under(f"{prefix}.", arrays))
        return blank
    fields = {}
    for name, value in blank._asdict().items():
        key = f"{prefix}.{name}"
        fields[name] = value
        if isinstance(value, State) or hasattr(value, "_asdict"):
            fields[name] = filled(key, value, arrays, scalars)
        elif key in arrays:
            kept = tuple(slice(min(pair)) for pair in zip(value.shape, arrays[key].shape, strict=True))
            value[kept] = arrays[key][kept]
        elif key in scalars:
            fields[name] = scalars[key]
    return type(blank)(**fields)


def under(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def size_of(part: Any, length: int = 0) -> int:
    """Bytes of the arrays in nested tuples, lists, dicts and states.

    Only arrays count that have ``length`` numbers or more along one of their axes.

    Examples
    --------
    >>> size_of({"a": (np.zeros(3), [np.zeros(2, np.int32)]), "b": 5}), size_of([np.zeros((9, 2)), np.zeros(5)], 8)
    (32, 144)
    """
    if isinstance(part, np.ndarray):
        return part.nbytes if max(part.shape, default=0) >= length else 0
    if isinstance(part, State):
        return size_of(part.blocks, length)
    if isinstance(part, dict):
        return sum(size_of(value, length) for value in part.values())
    return sum(size_of(value, length) for value in part) if isinstance(part, tuple | list) else 0

"""A learner's state as arrays and scalars by dotted name, and back."""

from __future__ import annotations

from typing import Any

import numpy as np


def flatten(prefix: str, state: Any, n_features: int) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """The arrays (those of the features cut to the features known) and the scalars of a state, by dotted name.

    What the traits of a learner call ``scratch`` is left out: its size may tell how room was made for features.
    """
    arrays: dict[str, np.ndarray] = {}
    scalars: dict[str, float] = {}
    left_out = ("outputs", *_scratch(state))
    for name, value in state._asdict().items():
        key = f"{prefix}.{name}"
        if hasattr(value, "_asdict"):
            inner = flatten(key, value, n_features)
            arrays, scalars = arrays | inner[0], scalars | inner[1]
        elif name in left_out:
            continue
        elif isinstance(value, np.ndarray):
            for field in [own for own in value.dtype.names or () if own not in left_out]:
                arrays[f"{key}.{field}"] = np.asarray(value[field][:n_features])
            if value.dtype.names is None:  # what has features behind outputs is cut too: (K, d, d), (K, m, 1, d)
                cut = (slice(None), slice(n_features), slice(n_features)) if value.ndim == 3 else ...
                arrays[key] = value[..., :n_features] if value.ndim == 4 else value[cut]
        else:
            scalars[key] = float(value)
    return arrays, scalars


def filled(prefix: str, blank: Any, arrays: dict[str, np.ndarray], scalars: dict[str, float]) -> Any:
    """A fresh state with the arrays and scalars that :func:`flatten` gave."""
    fields, may_lack = {}, _scratch(blank)
    for name, value in blank._asdict().items():
        key = f"{prefix}.{name}"
        fields[name] = value
        if hasattr(value, "_asdict"):
            fields[name] = filled(key, value, arrays, scalars)
        elif key in arrays:
            kept = tuple(slice(min(pair)) for pair in zip(value.shape, arrays[key].shape, strict=True))
            value[kept] = arrays[key][kept]
        elif isinstance(value, np.ndarray) and value.dtype.names:
            for field in value.dtype.names:
                if field in may_lack and f"{key}.{field}" not in arrays:
                    continue
                value[field][: len(arrays[f"{key}.{field}"])] = arrays[f"{key}.{field}"]
        elif key in scalars:
            fields[name] = scalars[key]
    return type(blank)(**fields)


def _scratch(state: Any) -> tuple[str, ...]:
    return getattr(getattr(state, "traits", None), "scratch", ())


def under(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def size_of(part: Any, length: int = 0) -> int:
    """Bytes of the arrays in nested tuples, lists and dicts; records may overlap, their fields do not.

    Only arrays count that have ``length`` numbers or more along one of their axes.

    Examples
    --------
    >>> size_of({"a": (np.zeros(3), [np.zeros(2, np.int32)]), "b": 5}), size_of([np.zeros((9, 2)), np.zeros(5)], 8)
    (32, 144)
    """
    if isinstance(part, np.ndarray):
        fields = [part[name] for name in part.dtype.names] if part.dtype.names else [part]
        return sum(field.size * field.itemsize for field in fields if max(field.shape, default=0) >= length)
    if isinstance(part, dict):
        return sum(size_of(own, length) for own in part.values())
    return sum(size_of(own, length) for own in part) if isinstance(part, tuple | list) else 0

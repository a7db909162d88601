"""Conversions between Arrow arrays and NumPy arrays or strings, through their buffers.

``pyarrow.array`` and ``Array.to_numpy`` import pandas if it is installed, which takes half a second and 40 MB. The
functions here do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_TYPES = {np.dtype(np.float64): pa.float64(), np.dtype(np.int32): pa.int32(), np.dtype(np.int64): pa.int64()}
DTYPES: dict[Any, Any] = {arrow_type: dtype for dtype, arrow_type in _TYPES.items()}
_TRIED = 64  # strings that are converted before all others


def boolean_array(values: np.ndarray) -> Any:
    """An Arrow array of booleans, which Arrow stores as bits."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, _bits(values)])


def number_array(values: np.ndarray, missing: np.ndarray | None = None) -> Any:
    """An Arrow array of float64, int32 or int64 that shares the memory of ``values``; null where ``missing``."""
    validity = None if missing is None or not missing.any() else _bits(~missing)
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(_TYPES[values.dtype], len(values), [validity, data])


def string_array(values: Sequence[str]) -> Any:
    """An Arrow array of strings."""
    encoded = [value.encode() for value in values]
    offsets = np.zeros(len(encoded) + 1, np.int32)
    np.cumsum([len(value) for value in encoded], out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def strings_of(text: np.ndarray, ends: np.ndarray, arrow_type: Any = pa.large_string()) -> Any:  # noqa: B008
    """An Arrow array of strings or bytes, from their concatenated bytes and their end offsets."""
    buffers = [None, pa.py_buffer(np.append(0, ends).astype(np.int64)), pa.py_buffer(np.ascontiguousarray(text))]
    return pa.Array.from_buffers(arrow_type, len(ends), buffers)


def to_batch(table: Any) -> Any:
    """A table as one record batch."""
    arrays = [column.combine_chunks() for column in table.columns]
    arrays = [array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array for array in arrays]
    return pa.record_batch(arrays, schema=table.schema)


def to_booleans(array: Any) -> np.ndarray:
    """A boolean Arrow array as a NumPy array, False where it is null."""
    return _unpacked(array.buffers()[1], array) & ~is_missing(array)


def to_numpy(array: Any, missing: float) -> np.ndarray:
    """An Arrow array of float64, int32 or int64 as a NumPy array, ``missing`` where it is null."""
    values = buffer_numbers(array.buffers()[1], DTYPES[array.type], array.offset, array.offset + len(array))
    return np.where(is_missing(array), values.dtype.type(missing), values) if array.null_count else values


def buffer_numbers(data: Any, dtype: Any, start: int, stop: int) -> np.ndarray:
    """The numbers from ``start`` to ``stop`` of a buffer, which may be unaligned and longer."""
    if start == stop:
        return np.zeros(0, dtype)
    return np.require(np.frombuffer(data, dtype, stop)[start:], requirements="A")


def bytes_of(strings: Any) -> tuple[np.ndarray, np.ndarray]:
    """The n + 1 offsets of the n strings of an Arrow array in its bytes, and the bytes."""
    _, offsets, data = strings.buffers()
    if data is None or not len(strings):
        return np.zeros(len(strings) + 1, np.int32), np.zeros(0, np.uint8)
    dtype = np.int64 if pa.types.is_large_string(strings.type) or pa.types.is_large_binary(strings.type) else np.int32
    string_offsets = buffer_numbers(offsets, dtype, strings.offset, strings.offset + len(strings) + 1)
    return string_offsets, np.frombuffer(data, np.uint8)


def text_at(strings: Any, index: int) -> str:
    """One string of an Arrow array; bytes that are not UTF-8 are replaced."""
    return bytes(strings[index].as_buffer()).decode(errors="replace")


def is_missing(array: Any) -> np.ndarray:
    """A mask of the nulls of an Arrow array."""
    if not array.null_count:
        return np.zeros(len(array), bool)
    if pa.types.is_null(array.type):
        return np.ones(len(array), bool)
    return ~_unpacked(array.buffers()[0], array)


def beyond_doubles(array: Any) -> bool:
    """Whether an Arrow array has integers beyond 2^53, which float64 does not represent exactly."""
    if not pa.types.is_integer(array.type) or array.null_count == len(array):
        return False
    ends = pc.min_max(array).as_py()
    return bool(max(-ends["min"], ends["max"]) > 2**53)


def nulled(array: Any, mask: Any) -> Any:
    """An Arrow array with nulls where a mask of NumPy or Arrow is true."""
    mask = boolean_array(mask) if isinstance(mask, np.ndarray) else mask
    return pc.if_else(mask, pa.nulls(len(array), array.type), array) if pc.any(mask).as_py() else array


def cast(array: Any, to: Any, safe: bool = False) -> tuple[Any, list[int]]:
    """Cast an array. Elements that do not fit become null, and their indices are returned."""
    try:
        return array.cast(to, safe=safe), []
    except pa.ArrowInvalid:
        if len(array) == 1:
            return pa.nulls(1, to), [0]
    half = len(array) // 2
    (first, failed), (second, others) = cast(array[:half], to, safe), cast(array[half:], to, safe)
    return pa.concat_arrays([first, second]), [*failed, *(half + index for index in others)]


def plain_numbers(strings: Any) -> Any:
    """Strings as float64; None if one is not a number. The first are tried alone, as a late failure takes long."""
    try:
        strings[:_TRIED].cast(pa.float64())
        return strings.cast(pa.float64())
    except pa.ArrowInvalid:
        return None


def _unpacked(data: Any, array: Any) -> np.ndarray:
    start, stop = array.offset, array.offset + len(array)
    if start == stop:
        return np.zeros(0, bool)
    bits = np.unpackbits(np.frombuffer(data, np.uint8), count=stop, bitorder="little")
    return bits[start:stop].view(bool)


def _bits(values: np.ndarray) -> Any:
    return pa.py_buffer(np.packbits(values, bitorder="little"))


def flattened(batch: Any) -> Any:
    """A record batch without structs: field ``b`` of column ``a`` becomes the column ``a.b``."""
    if not any(pa.types.is_struct(field.type) for field in batch.schema):
        return batch
    names: list[str] = []
    arrays: list[Any] = []
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        is_struct = pa.types.is_struct(array.type)
        names += [f"{name}.{field.name}" for field in array.type] if is_struct else [name]
        arrays += array.flatten() if is_struct else [array]
    flat = pa.RecordBatch.from_arrays(arrays, names=names)
    return flattened(flat.replace_schema_metadata(batch.schema.metadata))

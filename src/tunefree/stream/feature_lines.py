"""Encoders of svmlight and Vowpal Wabbit text: batches of sparse rows, and a dictionary of their features."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from tunefree.core import rows
from tunefree.core.errors import ModelError
from tunefree.core.schema import HASH_BITS, Flag, check_header
from tunefree.stream import keys as dictionary
from tunefree.stream.arrays import bytes_of, number_array, strings_of
from tunefree.stream.batch import UNLABELLED, BadRows, Batch, Chunk
from tunefree.stream.tokens import (
    MESSAGES,
    NO_LABEL,
    Output,
    Scratch,
    copy_names,
    merge_entries,
    terminated,
    token,
    tokenize,
)

UNKNOWN = "at least half of the features were never seen in training"
_MOST_BY_INDEX = 2**22  # ids of smaller indices are cached in an array, which is faster than the dictionary


def is_svmlight(line: str) -> bool:
    """Whether a first line is a label followed by words with a colon; words that start with ``#`` are ignored."""
    words = line.split()
    pairs = [word for word in words[1:] if not word.startswith("#")]
    return len(words) > 1 and all(":" in word for word in pairs) and "," not in words[0]


def is_vw(line: str) -> bool:
    """Whether any word of a first line starts with a bar."""
    return any(word.startswith("|") for word in line.split())


class LineEncoder:
    """Converts lines of text to rows of features, and maintains the dictionary of features.

    Features are hashed to 2^hash_bits ids, or kept in an exact dictionary if ``hash_bits`` is 0.
    """

    is_vw: ClassVar[bool] = False  # whether features have names and may be repeated in a row, and labels may be absent

    def __init__(self, hash_bits: int) -> None:
        self.keys = dictionary.create(bits=hash_bits)
        self._scratch = Scratch()  # absent while a chunk is encoded, so that other threads have a scratch of their own

    def encode(self, lines: Chunk, learning: bool, bad: BadRows, labelled: bool | None = None) -> Batch:
        """Encode a chunk of text; new features are learned or, at prediction, left out.

        If rows must be ``labelled`` (by default when learning), a row without a label is bad. Otherwise its target is
        null, and a batch without any label has no target.
        """
        data, labelled = terminated(lines.data), learning if labelled is None else labelled
        scratch = vars(self).pop("_scratch", None) or Scratch()
        output = tokenize(data, scratch, self.is_vw, labelled, is_hashed=self.keys.bits > 0)
        self._report(lines, data, output, bad)
        ids = self._ids_of(data, output, learning)
        if not learning:
            self._note_unknown(lines, output, ids, bad)
        block = to_rows(output, ids, self.is_vw or self.keys.bits > 0)
        labels, weight = output.reals.T.copy()
        missing = np.isnan(labels)
        target = None if len(labels) and missing.all() else number_array(labels, missing)
        numbers, tags = output.integers[:, 0] + lines.row, _tags(data, output) if self.is_vw else None
        self._scratch = scratch
        return Batch(block, target, weight, numbers, tags, lines.file, lines.position, n_features=self.n_features)

    def _report(self, lines: Chunk, data: np.ndarray, output: Output, bad: BadRows) -> None:
        for line, place, kind in output.errors.tolist():
            problem, remedy = MESSAGES[kind]
            is_unlabelled = kind == NO_LABEL
            if is_unlabelled and bad.skip_unlabelled:
                bad.report(UNLABELLED, lines.file, lines.row + line, is_unlabelled=True)
                continue
            shown, is_binary = token(data, place)
            if is_binary:
                is_unlabelled = False
                problem, remedy = "{} is binary, not text", "check that the file is text and not damaged"
            bad.report(problem.format(shown), lines.file, lines.row + line, None, remedy, is_unlabelled)

    def _note_unknown(self, lines: Chunk, output: Output, ids: np.ndarray, bad: BadRows) -> None:
        """Note rows for prediction with at least half of their features unknown; a few new words are normal."""
        ends = output.integers[:, 1]
        unknown = np.diff(np.append(0, np.cumsum(ids == 0))[ends], prepend=0)
        is_odd = (unknown > 0) & (2 * unknown >= np.diff(ends, prepend=0))
        if is_odd.any():
            row = lines.row + int(output.integers[is_odd.argmax(), 0])
            bad.note(UNKNOWN, lines.file, row, rows=int(is_odd.sum()))

    def _ids_of(self, data: np.ndarray, output: Output, learning: bool) -> np.ndarray:
        """Return the feature ids of the entries; 0 for unknown ones, which are added instead if learning."""
        raise NotImplementedError

    @property
    def n_features(self) -> int:
        """The largest possible feature id so far, plus 1."""
        return dictionary.n_features(self.keys)

    def names(self) -> list[str]:
        """Return names by feature id; if features are hashed, the numbers of the buckets."""
        bits = self.keys.bits
        return ["(constant)", *([f"(hash {i})" for i in range(1 << bits)] if bits else self._known_names())]

    def _known_names(self) -> list[str]:
        raise NotImplementedError

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return arrays and a JSON-compatible header, from which the class method ``restore`` creates this encoder."""
        raise NotImplementedError


class SvmlightEncoder(LineEncoder):
    """Converts lines of svmlight text to batches.

    Indices are kept in an exact dictionary, or hashed to 2^hash_bits features; the values of colliding features are
    summed. ``zero_based`` is whether indices begin at 0; it becomes true when index 0 occurs. ``has_queries`` is
    whether the first rows have query numbers (``qid:``), which are not used.
    """

    def __init__(self, hash_bits: int = 0, zero_based: bool = False) -> None:
        super().__init__(hash_bits)
        self.zero_based, self._id_by_index = zero_based, np.zeros(1, np.int32)  # the last id, 0, is for larger indices
        self.has_queries, self._is_new = False, True

    @classmethod
    def with_indices(cls, n: int) -> SvmlightEncoder:
        """Create an encoder that knows the indices 1 to n, as the features 1 to n."""
        encoder = cls()
        encoder.keys, _ = dictionary.lookup(encoder.keys, np.arange(1, n + 1, dtype=np.uint64))
        return encoder

    def ids_of(self, columns: np.ndarray, learning: bool = False) -> np.ndarray:
        """Return the feature ids of columns; column 0 is the smallest index. The id of an unknown column is 0."""
        indices = columns.astype(np.uint64) + np.uint64(not self.zero_based)
        self.keys, ids = dictionary.lookup(self.keys, indices, learning)
        return ids

    def _ids_of(self, data: np.ndarray, output: Output, learning: bool) -> np.ndarray:
        indices = output.keys
        if self._is_new:
            self._is_new, self.has_queries = False, b" qid:" in data.tobytes()
        self.zero_based = self.zero_based or (learning and not indices.all())
        if self.keys.bits:
            self.keys, ids = dictionary.lookup(self.keys, indices, learning)
            return ids
        cache, largest = self._id_by_index, min(int(indices.max(initial=0)), _MOST_BY_INDEX - 1)
        if largest >= len(cache) - 1:
            self._id_by_index = cache = np.zeros(2 * largest + 2, np.int32)  # refilled as indices occur
        ids = cache.take(indices.view(np.int64), mode="clip")
        missing = np.flatnonzero(ids == 0)
        if len(missing):
            self.keys, ids[missing] = dictionary.lookup(self.keys, indices[missing], learning)
            small = missing[indices[missing] < len(cache) - 1]
            cache[indices[small].view(np.int64)] = ids[small]
        return ids

    def absorb(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Add the features of another encoder of this kind, given by its state, which read later rows."""
        self.zero_based = self.zero_based or header["zero_based"]
        self.keys, _ = dictionary.lookup(self.keys, arrays["keys"])

    def _known_names(self) -> list[str]:
        return [str(key) for key in dictionary.save(self.keys).tolist()]

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return {"keys": dictionary.save(self.keys)}, {"hash_bits": self.keys.bits, "zero_based": self.zero_based}

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> SvmlightEncoder:
        """Restore a saved encoder."""
        check_header(header, {"hash_bits": HASH_BITS, "zero_based": Flag()}, "encoder")
        encoder = cls(header["hash_bits"], header["zero_based"])
        encoder.keys = dictionary.restore(arrays["keys"], bits=header["hash_bits"])
        return encoder


class VWEncoder(LineEncoder):
    """Converts lines of Vowpal Wabbit text to batches.

    A feature is identified by namespace and name; the values of a feature that occurs twice in a row are summed. Its
    name is ``namespace^feature``, or ``feature`` in the namespace without a name. Features are kept in an exact
    dictionary, or hashed to 2^hash_bits ids: then the values of colliding features are summed, and no names are kept.
    """

    is_vw = True

    def __init__(self, hash_bits: int = 0) -> None:
        super().__init__(hash_bits)
        self._names = [pa.nulls(0, pa.large_binary())]  # in the order of their ids

    def _ids_of(self, data: np.ndarray, output: Output, learning: bool) -> np.ndarray:
        n_known = self.keys.count
        self.keys, ids = dictionary.lookup(self.keys, output.keys, learning)
        if self.keys.count > n_known:
            sizes = np.empty(self.keys.count - n_known, np.int64)
            new = data, ids, output.places, self.keys.first + n_known, sizes
            names = np.empty(copy_names(*new, np.empty(0, np.uint8)), np.uint8)
            copy_names(*new, names)
            self._names.append(strings_of(names, np.cumsum(sizes), pa.large_binary()))
        return ids

    def absorb(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Add the features of another encoder of this kind, given by its state, which read later rows."""
        new = np.flatnonzero(dictionary.lookup(self.keys, arrays["keys"], add=False)[1] == 0)
        self.keys, _ = dictionary.lookup(self.keys, arrays["keys"][new])
        names = strings_of(arrays["names"], np.cumsum(arrays["name_sizes"]), pa.large_binary())
        self._names.append(names.take(number_array(new)))

    def _known_names(self) -> list[str]:
        return [name.decode("utf-8", "backslashreplace") for name in pa.concat_arrays(self._names).to_pylist()]

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        offsets, text = bytes_of(pa.concat_arrays(self._names))
        names = {"names": text[offsets[0] : offsets[-1]].copy(), "name_sizes": np.diff(offsets).astype(np.int64)}
        return {"keys": dictionary.save(self.keys), **names}, {"hash_bits": self.keys.bits}

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> VWEncoder:
        """Restore a saved encoder."""
        check_header(header, {"hash_bits": HASH_BITS}, "encoder")
        encoder = cls(header["hash_bits"])
        encoder.keys = dictionary.restore(arrays["keys"], bits=header["hash_bits"])
        sizes = arrays["name_sizes"]
        if len(sizes) != encoder.keys.count or (sizes < 0).any() or sizes.sum() != len(arrays["names"]):
            raise ModelError("the names of features do not end with their text")
        encoder._names = [strings_of(arrays["names"], np.cumsum(sizes), pa.large_binary())]
        return encoder


def _tags(data: np.ndarray, output: Output) -> list[str]:
    starts, stops = output.integers[:, 2], output.integers[:, 3]
    if not stops.any():
        return [""] * len(stops)
    spans = zip(starts.tolist(), stops.tolist(), strict=True)
    return [data[start:stop].tobytes().decode("utf-8", "backslashreplace") for start, stop in spans]


def to_rows(output: Output, ids: np.ndarray, merge: bool) -> rows.Block:
    """Convert an output to rows, given the ids of its keys; leave out id 0, and sum equal ids of a row if ``merge``."""
    features, values = ids, output.values
    pointers = np.concatenate([[0], output.integers[:, 1]])
    is_known = ids > 0
    if not is_known.all():
        pointers = np.concatenate([[0], np.cumsum(is_known)])[pointers]
        features, values = features[is_known], values[is_known]
    if merge:
        slots = 8 << int(np.diff(pointers).max(initial=0)).bit_length()
        n_entries = merge_entries(
            pointers, features, values, np.zeros(slots, np.uint64), np.zeros(slots, np.int64), dictionary.SEED
        )
        features, values = features[:n_entries], values[:n_entries]
    return rows.sparse(pointers, features, values.copy())

"""Lines of svmlight and Vowpal Wabbit text as batches of sparse rows, and the features that they have."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from tunefree.core import rows
from tunefree.core.errors import ModelError
from tunefree.core.schema import HASH_BITS, Flag, check_header
from tunefree.stream import keys as dictionary
from tunefree.stream.arrays import bytes_of, number_array
from tunefree.stream.batch import BadRows, Batch, Chunk
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
_MOST_BY_INDEX = 2**22  # indices below have their feature in an array, where it takes less time than in the dictionary


def is_svmlight(line: str) -> bool:
    """Whether a first line is a label followed by words with a colon; words that start with ``#`` are passed over."""
    words = line.split()
    pairs = [word for word in words[1:] if not word.startswith("#")]
    return len(words) > 1 and all(":" in word for word in pairs) and "," not in words[0]


def is_vw(line: str) -> bool:
    """Whether a word of a first line starts with a bar."""
    return any(word.startswith("|") for word in line.split())


class Prepared(NamedTuple):
    """A chunk that is tokenized, before its features are looked up."""

    lines: Chunk
    data: np.ndarray  # (bytes,) the text, terminated
    output: Output
    scratch: Scratch  # in use for as long as the output


class LineEncoder:
    """Turns lines of text into rows of features, and learns which features there are.

    Threads may :meth:`prepare` several chunks at once, and chunks are encoded one by one, in the order of the stream.
    Features are hashed to 2^hash_bits of them, or kept in an exact dictionary if that is 0.
    """

    is_vw: ClassVar[bool] = False  # whether rows may lack a label, and hold a feature twice, and features have names

    def __init__(self, hash_bits: int) -> None:
        self.keys = dictionary.create(bits=hash_bits)
        self._spare: list[Scratch] = []  # not in use; several chunks may be in work at once, each with its own

    def prepare(self, lines: Chunk, labelled: bool) -> Prepared:
        """The part of :meth:`encode` that does not depend on other chunks."""
        data = terminated(lines.data)
        try:
            scratch = self._spare.pop()
        except IndexError:  # asked beforehand, another thread may take the last one
            scratch = Scratch()
        output = tokenize(data, scratch, self.is_vw, labelled, is_hashed=self.keys.bits > 0)
        return Prepared(lines, data, output, scratch)

    def encode(self, chunk: Chunk | Prepared, learning: bool, bad: BadRows, labelled: bool | None = None) -> Batch:
        """The rows of a chunk of text; new features are learned or, at prediction, left out.

        Rows without a label, where a format has such, are bad if they must be ``labelled`` (by default when learning);
        otherwise their target is null, and a batch in which no row has a label has no target.
        """
        must = learning if labelled is None else labelled
        prepared = chunk if isinstance(chunk, Prepared) else self.prepare(chunk, must)
        lines, data, output, scratch = prepared
        self._report(prepared, bad)
        ids = self._ids_of(prepared, learning)
        if not learning:
            self._note_unknown(prepared, ids, bad)
        block = to_rows(output, ids, self.is_vw or self.keys.bits > 0)
        labels, weight = output.reals.T.copy()
        missing = np.isnan(labels)
        target = None if len(labels) and missing.all() else number_array(labels, missing)
        numbers, tags = output.integers[:, 0] + lines.row, _tags(data, output) if self.is_vw else None
        self._spare.append(scratch)
        return Batch(block, target, weight, numbers, tags, lines.file, lines.position, n_features=self.n_features)

    def _report(self, prepared: Prepared, bad: BadRows) -> None:
        """Report the bad rows."""
        lines, data, output, _ = prepared
        for line, place, kind in output.errors.tolist():
            problem, remedy = MESSAGES[kind]
            is_unlabelled = kind == NO_LABEL
            if is_unlabelled and bad.skip_unlabelled:
                bad.report_unlabelled(problem, lines.file, lines.row + line)
                continue
            shown, is_binary = token(data, place)
            if is_binary:
                is_unlabelled = False
                problem, remedy = "{} is binary, not text", "check that the file is text and not damaged"
            report = bad.report_unlabelled if is_unlabelled else bad.report
            report(problem.format(shown), lines.file, lines.row + line, None, remedy)

    def _note_unknown(self, prepared: Prepared, ids: np.ndarray, bad: BadRows) -> None:
        """Note rows to predict of whose features at most half are known; texts always have some new words."""
        lines, ends = prepared.lines, prepared.output.integers[:, 1]
        unknown = np.diff(np.append(0, np.cumsum(ids == 0))[ends], prepend=0)
        is_odd = (unknown > 0) & (2 * unknown >= np.diff(ends, prepend=0))
        if is_odd.any():
            row = lines.row + int(prepared.output.integers[is_odd.argmax(), 0])
            bad.note(UNKNOWN, lines.file, row, rows=int(is_odd.sum()))

    def _ids_of(self, prepared: Prepared, learning: bool) -> np.ndarray:
        """The features of the entries, 0 for unknown ones, unless they are learned."""
        raise NotImplementedError

    @property
    def n_features(self) -> int:
        """The largest feature id there may be so far, plus 1."""
        return dictionary.n_features(self.keys)

    def names(self) -> list[str]:
        """Names by feature id; where features are hashed, numbers of buckets."""
        hashed = [f"(hash {i})" for i in range(1 << self.keys.bits)] if self.keys.bits else None
        return ["(constant)", *(self._known_names() if hashed is None else hashed)]

    def _known_names(self) -> list[str]:
        raise NotImplementedError

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays, and a header that JSON can hold, from which the class method ``restore`` makes the same encoder."""
        raise NotImplementedError


class SvmlightEncoder(LineEncoder):
    """Turns lines of svmlight text into batches.

    An exact dictionary of indices is kept, or indices are hashed to 2^hash_bits features, and the values of features
    that collide are summed. If ``zero_based``, 0 is an index; it becomes one when it occurs. ``has_queries`` tells
    whether the first rows have query numbers (``qid:``), which are not used.
    """

    def __init__(self, hash_bits: int = 0, zero_based: bool = False) -> None:
        super().__init__(hash_bits)
        self.zero_based, self._by_index = zero_based, np.zeros(1, np.int32)  # the last is 0, for larger indices
        self.has_queries, self._is_new = False, True

    @classmethod
    def of_indices(cls, n: int) -> SvmlightEncoder:
        """The encoder that knows the indices 1 to n, as the features of these numbers."""
        encoder = cls()
        encoder.keys, _ = dictionary.lookup(encoder.keys, np.arange(1, n + 1, dtype=np.uint64))
        return encoder

    def ids_of(self, columns: np.ndarray, learning: bool = False) -> np.ndarray:
        """The features of columns from 0 on, the first having the smallest index; 0 for one never learned."""
        indices = columns.astype(np.uint64) + np.uint64(not self.zero_based)
        self.keys, ids = dictionary.lookup(self.keys, indices, learning)
        return ids

    def _ids_of(self, prepared: Prepared, learning: bool) -> np.ndarray:
        indices = prepared.output.keys
        if self._is_new:
            self._is_new, self.has_queries = False, b" qid:" in prepared.data.tobytes()
        self.zero_based = self.zero_based or (learning and not indices.all())
        if self.keys.bits:
            self.keys, ids = dictionary.lookup(self.keys, indices, learning)
            return ids
        known, largest = self._by_index, min(int(indices.max(initial=0)), _MOST_BY_INDEX - 1)
        if largest >= len(known) - 1:
            self._by_index = known = np.zeros(2 * largest + 2, np.int32)  # and filled anew as indices occur
        ids = known.take(indices.view(np.int64), mode="clip")
        missing = np.flatnonzero(ids == 0)
        if len(missing):
            self.keys, ids[missing] = dictionary.lookup(self.keys, indices[missing], learning)
            small = missing[indices[missing] < len(known) - 1]
            known[indices[small].view(np.int64)] = ids[small]
        return ids

    def absorb(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Add the features that an encoder like this has learned from rows that follow, given by its state."""
        self.zero_based = self.zero_based or header["zero_based"]
        self.keys, _ = dictionary.lookup(self.keys, arrays["keys"])

    def _known_names(self) -> list[str]:
        return [str(key) for key in dictionary.save(self.keys).tolist()]

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return {"keys": dictionary.save(self.keys)}, {"hash_bits": self.keys.bits, "zero_based": self.zero_based}

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> SvmlightEncoder:
        """The encoder that was stored."""
        check_header(header, {"hash_bits": HASH_BITS, "zero_based": Flag()}, "encoder")
        encoder = cls(header["hash_bits"], header["zero_based"])
        encoder.keys = dictionary.restore(arrays["keys"], bits=header["hash_bits"])
        return encoder


class VWEncoder(LineEncoder):
    """Turns lines of Vowpal Wabbit text into batches.

    Features are known by namespace and name; the values of a feature that occurs twice in a row are summed. Their names
    are ``namespace^feature``, or ``feature`` in the namespace without a name. They are kept in an exact dictionary, or
    hashed to 2^hash_bits features: then the values of features that collide are summed, and no names are kept.
    """

    is_vw = True

    def __init__(self, hash_bits: int = 0) -> None:
        super().__init__(hash_bits)
        self._names = [_array_of(np.zeros(0, np.uint8), np.zeros(0, np.int64))]  # in the order of their ids

    def _ids_of(self, prepared: Prepared, learning: bool) -> np.ndarray:
        known, output = self.keys.count, prepared.output
        self.keys, ids = dictionary.lookup(self.keys, output.keys, learning)
        if self.keys.count > known:
            sizes = np.empty(self.keys.count - known, np.int64)
            new = prepared.data, ids, output.places, self.keys.first + known, sizes
            names = np.empty(copy_names(*new, np.empty(0, np.uint8)), np.uint8)
            copy_names(*new, names)
            self._names.append(_array_of(names, sizes))
        return ids

    def absorb(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Add the features that an encoder like this has learned from rows that follow, given by its state."""
        if self.keys.bits:
            return
        new = np.flatnonzero(dictionary.lookup(self.keys, arrays["keys"], add=False)[1] == 0)
        self.keys, _ = dictionary.lookup(self.keys, arrays["keys"][new])
        self._names.append(_array_of(arrays["names"], arrays["name_sizes"]).take(number_array(new)))

    def _known_names(self) -> list[str]:
        return [name.decode("utf-8", "backslashreplace") for name in pa.concat_arrays(self._names).to_pylist()]

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        places, text = bytes_of(pa.concat_arrays(self._names))
        names = {"names": text[places[0] : places[-1]].copy(), "name_sizes": np.diff(places).astype(np.int64)}
        return {"keys": dictionary.save(self.keys), **names}, {"hash_bits": self.keys.bits}

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> VWEncoder:
        """The encoder that was stored."""
        check_header(header, {"hash_bits": HASH_BITS}, "encoder")
        encoder = cls(header["hash_bits"])
        encoder.keys = dictionary.restore(arrays["keys"], bits=header["hash_bits"])
        sizes = arrays["name_sizes"]
        if len(sizes) != encoder.keys.count or (sizes < 0).any() or sizes.sum() != len(arrays["names"]):
            raise ModelError("the names of features do not end with their text")
        encoder._names = [_array_of(arrays["names"], sizes)]
        return encoder


def _array_of(names: np.ndarray, sizes: np.ndarray) -> Any:
    """Names that lie one after the other as an Arrow array; their bytes may be any."""
    buffers = [None, pa.py_buffer(np.append(0, np.cumsum(sizes))), pa.py_buffer(np.ascontiguousarray(names))]
    return pa.Array.from_buffers(pa.large_binary(), len(sizes), buffers)


def _tags(data: np.ndarray, output: Output) -> list[str]:
    starts, stops = output.integers[:, 2], output.integers[:, 3]
    if not stops.any():
        return [""] * len(stops)
    spans = zip(starts.tolist(), stops.tolist(), strict=True)
    return [data[start:stop].tobytes().decode("utf-8", "backslashreplace") for start, stop in spans]


def to_rows(output: Output, ids: np.ndarray, merge: bool) -> rows.Block:
    """The rows of an output, whose keys have the ids, without id 0; same ids of a row are summed if ``merge``."""
    features, values = ids, output.values
    pointers = np.concatenate([[0], output.integers[:, 1]])
    known = ids > 0
    if not known.all():
        pointers = np.concatenate([[0], np.cumsum(known)])[pointers]
        features, values = features[known], values[known]
    if merge:
        slots = 8 << int(np.diff(pointers).max(initial=0)).bit_length()
        kept = merge_entries(
            pointers, features, values, np.zeros(slots, np.uint64), np.zeros(slots, np.int64), dictionary.SEED
        )
        features, values = features[:kept], values[:kept]
    return rows.sparse(pointers, features, values.copy())

"""Ids of the features of one-hot codes and words, in the order of first appearance by row."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, repeat
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tunefree.core.errors import DataError, ModelError
from tunefree.core.rows import Block, together, words_of
from tunefree.stream import keys as dictionary
from tunefree.stream.arrays import bytes_of, number_array, string_array, strings_of
from tunefree.stream.columns import Codes, TextWords, Words

PIECE = 2**20  # bytes of texts whose words are in memory at a time
FORGOTTEN = 8  # an eighth of the features is forgotten at a time
AGED = 0.5**0.5  # factor of all evidence each time: it halves as a quarter of the features is forgotten

Located = tuple[int, Codes]  # column index, and the codes of this column
LocatedWords = tuple[int, Words]


class _Unknown(NamedTuple):
    """Distinct keys without an id, in the order of first appearance."""

    rows: np.ndarray  # first row of each key
    keys: np.ndarray
    sources: np.ndarray  # index of its codes or words in the list of these
    members: np.ndarray  # index among the keys of these codes or words


class FeatureIds:
    """Ids and names of the features of one-hot codes and words in a table.

    Ids begin at ``first``. They are hashes of ``hash_bits`` bits, or come from an exact dictionary if that is 0. If the
    number of features is limited, the features with the least evidence are forgotten before the first row without room.
    Evidence is the number of rows with the feature, discounted each time features are forgotten, as in Einziger,
    Friedman, Manes: TinyLFU (ACM Transactions on Storage 2017, 3.3). Of equal evidence, older ids are forgotten first.
    """

    def __init__(self, first: int, hash_bits: int = 0) -> None:
        self.keys = dictionary.create(first, hash_bits)
        self.names = FeatureNames()
        self.most: int | None = None  # maximum number of known features; None for no limit
        self.n_forgotten = 0  # total number of forgotten features
        self._free = np.zeros(0, np.int64)  # free indices of the dictionary, ascending
        self._evidence = np.zeros(0)  # (features,) if their number was ever limited, else empty
        self._events: list[tuple[int, np.ndarray]] = []  # (row, ids of the features forgotten before it)

    @property
    def n_features(self) -> int:
        return dictionary.n_features(self.keys)

    def limit(self, most: int | None) -> None:
        """Limit the number of known features; None for no limit."""
        self.most = None if self.keys.bits else most
        if self.most is not None:
            self._track()

    def take_forgotten(self) -> list[tuple[int, np.ndarray]]:
        """Return the features forgotten in the latest chunk, by the row before which they were forgotten; only once."""
        taken, self._events = self._events, []
        return taken

    def chunk_features(
        self,
        n_rows: int,
        codes: Sequence[Located],
        words: Sequence[tuple[int, Words | TextWords]],
        learning: bool,
        weight: np.ndarray | None = None,
    ) -> tuple[np.ndarray, Block]:
        """Return the ids of codes (n, q), 0 if unknown and not learned, and the words; weight 0 adds no evidence."""
        ids, blocks, forgotten_at = np.zeros((n_rows, len(codes)), np.int32), list[Block](), -1
        for start, stop in _pieces(n_rows, [part.sizes for _, part in words]):
            end = stop
            while start < stop or not blocks:
                parts: list[Located | LocatedWords] = []
                parts += [(column, part._replace(places=part.places[start:end])) for column, part in codes]
                parts += [(column, part.row_words(start, end)) for column, part in words]
                key_ids = self._lookup(keys := _keys_of(parts))
                if learning and not self.keys.bits and not key_ids.all():
                    new = _unknown(key_ids, parts)
                    if (fitting := self._rows_with_room(new, end - start)) < end - start:
                        if not fitting and forgotten_at == start:
                            problem = (
                                f"a row has more new categories and words than the {self.most:,} there is room for"
                            )
                            raise DataError(problem, remedy="raise `memory_limit`, or hash them (`hash_bits`)")
                        if not fitting:
                            self._forget(start)
                            forgotten_at = start
                        end = start + (fitting or end - start)
                        continue
                    self._add(new, parts)
                    unknown = np.flatnonzero(key_ids == 0)
                    key_ids[unknown] = self._lookup(keys[unknown])
                ids[start:end], block = self._row_features(end - start, parts, key_ids)
                blocks.append(block)
                if learning and self.most is not None:
                    self._count(ids[start:end], block, None if weight is None else weight[start:end])
                start, end = end, stop
        return ids, blocks[0] if len(blocks) == 1 else together(blocks)

    def _rows_with_room(self, new: _Unknown, n_rows: int) -> int:
        """Return the number of first rows, of ``n_rows``, whose new features have room."""
        room = len(new.rows) if self.most is None else max(self.most - self.keys.count + len(self._free), 0)
        return n_rows if len(new.rows) <= room else int(new.rows[room])

    def known(self, keys: Sequence[int]) -> np.ndarray:
        """Return the ids of those keys that are known, ascending."""
        ids = self._lookup(np.array(keys, np.uint64))
        return np.unique(ids[ids > 0])

    def _track(self, evidence: float = 1.0) -> None:
        """Extend the evidence to all features; new features begin with ``evidence``."""
        self._evidence = np.append(self._evidence, np.full(self.keys.count - len(self._evidence), evidence))

    def _count(self, ids: np.ndarray, words: Block, weight: np.ndarray | None) -> None:
        """Add the rows with a weight above 0 to the evidence of their features."""
        has_weight = np.ones(len(ids), bool) if weight is None else weight > 0.0
        word_features = words.features[np.repeat(has_weight, np.diff(words.pointers))]
        features = np.concatenate([ids[has_weight].ravel(), word_features])
        self._track(0.0)
        self._evidence += np.bincount(features[features > 0] - self.keys.first, minlength=self.keys.count)

    def _forget(self, row: int) -> None:
        """Before a row, forget the features with the least evidence: 1 / FORGOTTEN of the maximum number."""
        used = np.delete(np.arange(self.keys.count), self._free)
        order = np.argsort(self._evidence[used], kind="stable")
        n_kept = (self.most or 0) - max((self.most or 0) // FORGOTTEN, 1)
        indices = np.sort(used[order[: max(len(used) - n_kept, 0)]])
        self.keys = dictionary.without(self.keys, indices)
        self.names.put(indices, string_array([""] * len(indices)), np.full(len(indices), -1, np.int32))
        self._free = np.union1d(self._free, indices)
        self._evidence[indices] = 0.0
        self._evidence *= AGED
        self.n_forgotten += len(indices)
        self._events.append((row, self.keys.first + indices))

    def _row_features(
        self, n_rows: int, parts: Sequence[Located | LocatedWords], key_ids: np.ndarray
    ) -> tuple[np.ndarray, Block]:
        """Return the ids of codes, and the words, of some rows; ``key_ids`` has the ids of their keys."""
        columns, words, start = list[np.ndarray](), [], 0
        for _, part in parts:
            ids_by_key = key_ids[start : start + len(part.keys)]
            if isinstance(part, Codes):
                columns.append(np.append(ids_by_key, np.int32(0))[part.places])  # the appended 0 is for index -1
            else:
                words.append((_rows_of(part.sizes), ids_by_key, part.values))
            start += len(part.keys)
        ids = np.array(columns, np.int32).reshape(len(columns), n_rows).T
        block = words_of(words, n_rows)
        return sum_duplicates(ids, block) if self.keys.bits else (ids, block)

    def _lookup(self, keys: np.ndarray) -> np.ndarray:
        self.keys, ids = dictionary.lookup(self.keys, keys, add=False)
        return ids

    def _add(self, unknown: _Unknown, sources: Sequence[Located | LocatedWords]) -> None:
        """Add new keys; free ids are used first."""
        columns = np.array([column for column, _ in sources], np.int32)[unknown.sources]
        by_source = np.argsort(unknown.sources, kind="stable")
        parts = [part.names(unknown.members[unknown.sources == k]) for k, (_, part) in enumerate(sources)]
        names, free = in_order(parts, np.argsort(by_source)), self._free[: len(columns)]
        n = len(free)
        if n:
            self.keys = dictionary.placed(self.keys, free, unknown.keys[:n])
            self.names.put(free, names[:n], columns[:n])
            self._free = self._free[n:]
        self.keys, _ = dictionary.lookup(self.keys, unknown.keys[n:])
        self.names.add(names[n:], columns[n:])

    def absorb(self, arrays: dict[str, np.ndarray], columns: np.ndarray) -> None:
        """Add the features of another dictionary, in its order; ``columns`` (c,) maps its column indices to these."""
        new = np.flatnonzero(self._lookup(arrays["keys"]) == 0)
        self.keys, _ = dictionary.lookup(self.keys, arrays["keys"][new])
        names = FeatureNames.restore(arrays)
        self.names.add(names.of(new), columns[names.columns()[new]])

    def unknown(self, codes: Sequence[Located], ids: np.ndarray) -> list[tuple[int, str, int, int]]:
        """Return codes without an id: column index, name, number of rows, and the first row."""
        unknown = list[tuple[int, str, int, int]]()
        for column, part, rows in () if self.keys.bits else _without_id(codes, ids):
            indices, first, counts = np.unique(part.places[rows], return_index=True, return_counts=True)
            names = part.names(indices).to_pylist()
            unknown += zip(repeat(column), names, counts.tolist(), rows[first].tolist(), strict=False)
        return unknown

    def with_averages(
        self, codes: Sequence[Located], ids: np.ndarray, words: Block, drawn: Callable[[int], np.ndarray]
    ) -> Block:
        """Return the words and, for each code without an id, the column's codes with their frequencies in ``drawn``."""
        parts = [
            dictionary.averages(self.keys, self.names.columns(), column, rows, drawn(column))
            for column, _, rows in _without_id(codes, ids)
        ]
        entries = _rows_of(np.diff(words.pointers)), words.features, words.values
        return words_of([entries, *parts], len(ids)) if parts else words

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return arrays for :meth:`load` and, if features are or were forgotten, numbers."""
        arrays = {"keys": dictionary.save(self.keys), **self.names.save()}
        if len(self._evidence):
            self._track()
            arrays |= {"evidence": self._evidence.copy(), "free": self._free}
        numbers = {"forgotten": self.n_forgotten or None, "most": self.most}
        return arrays, {name: number for name, number in numbers.items() if number is not None}

    def load(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Restore the result of :meth:`state`; raise a ModelError if keys and names are inconsistent."""
        keys, free = arrays["keys"], np.array(arrays.get("free", self._free), np.int64)
        if len(free) and not (free[0] >= 0 and (np.diff(free) > 0).all() and free[-1] < len(keys)):
            raise ModelError("the encoder has free places where there are none")
        self.keys = dictionary.restore(keys, self.keys.first, self.keys.bits, free)
        self._free, self._evidence = free, np.array(arrays.get("evidence", self._evidence), np.float64)
        self.names = FeatureNames.restore(arrays)
        if not len(self.names) == len(self.names.columns()) == self.keys.count:
            raise ModelError("the encoder has not as many names as features")
        if len(self._evidence) not in (0, self.keys.count):
            raise ModelError("the encoder has not as much evidence as features")
        self.n_forgotten = header.get("forgotten", 0)
        self.limit(header.get("most"))


def _rows_of(counts: np.ndarray) -> np.ndarray:
    """Return the row of each word, given the number of words in each row."""
    return np.repeat(np.arange(len(counts)), counts)


def _without_id(codes: Sequence[Located], ids: np.ndarray) -> Iterator[tuple[int, Codes, np.ndarray]]:
    """Yield codes that have no id in some rows: column index, codes, and these rows."""
    for k, (column, part) in enumerate([] if ids.all() else codes):
        rows = np.flatnonzero((ids[:, k] == 0) & (part.places >= 0))
        if len(rows):
            yield column, part, rows


def sum_duplicates(codes: np.ndarray, words: Block) -> tuple[np.ndarray, Block]:
    """Sum the values of the same id in a row; codes that share an id become words, sorted by id."""
    code_rows, code_columns = np.nonzero(codes)
    rows = np.concatenate([_rows_of(np.diff(words.pointers)), code_rows])
    ids = np.concatenate([words.features, codes[code_rows, code_columns]])
    values = np.concatenate([words.values, np.ones(len(code_rows))])
    pairs, inverse, counts = np.unique(rows << 32 | ids, return_inverse=True, return_counts=True)
    code_pairs = inverse[len(words.features) :]
    is_unique = counts[code_pairs] == 1
    codes, is_word = codes.copy(), np.ones(len(pairs), bool)
    codes[code_rows[~is_unique], code_columns[~is_unique]] = 0
    is_word[code_pairs[is_unique]] = False
    sums = np.bincount(inverse, values, len(pairs))
    remaining = pairs[is_word]
    return codes, words_of([(remaining >> 32, (remaining & 0xFFFFFFFF).astype(np.int32), sums[is_word])], len(codes))


def _pieces(n_rows: int, sizes: Sequence[np.ndarray]) -> Iterator[tuple[int, int]]:
    """Yield starts and stops of pieces of rows, each with about PIECE bytes of all ``sizes``."""
    ends = np.cumsum(sum(sizes, np.zeros(n_rows, np.int64)))
    starts = np.searchsorted(ends, np.arange(PIECE, ends[-1:].sum(), PIECE), side="right")
    yield from pairwise([0, *np.unique(starts[starts > 0]).tolist(), n_rows])


def _keys_of(parts: Sequence[Located | LocatedWords]) -> np.ndarray:
    return np.concatenate([np.zeros(0, np.uint64), *(part.keys for _, part in parts)])


def _unknown(key_ids: np.ndarray, sources: Sequence[Located | LocatedWords]) -> _Unknown:
    """Return the keys of rows whose id in ``key_ids`` is 0."""
    parts, start = [], 0
    for source, (_, part) in enumerate(sources):
        is_new = key_ids[start : start + len(part.keys)] == 0
        if isinstance(part, Codes):
            rows = np.flatnonzero(np.append(is_new, False)[part.places])[::-1]  # the appended False is for index -1
            first = np.full(len(is_new), -1, np.int64)
            first[part.places[rows]] = rows  # rows are descending, so the first row is written last
            members = np.flatnonzero(first >= 0)
            rows = first[members]
        else:
            members = np.flatnonzero(is_new)
            rows = _rows_of(part.sizes)[members]
        parts.append((rows, part.keys[members], np.full(len(members), source), members))
        start += len(part.keys)
    rows, keys, *_ = unknown = [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]
    order = np.argsort(rows, kind="stable")
    numbers = dictionary.lookup(dictionary.create(capacity=len(order)), keys[order])[1]  # by first appearance
    order = order[np.flatnonzero(np.diff(np.maximum.accumulate(numbers), prepend=0))]
    return _Unknown(*(array[order] for array in unknown))


def in_order(parts: list[Any], order: np.ndarray) -> Any:
    """Concatenate arrays of names and reorder them: name ``order[k]`` becomes name k."""
    return pa.concat_arrays([part.cast(pa.large_string()) for part in parts]).take(number_array(order))


class FeatureNames:
    """Names of features in the order of their ids, and the column index of each."""

    def __init__(self) -> None:
        self._text, self._ends, self._columns = bytearray(), array("q"), array("i")

    def __len__(self) -> int:
        return len(self._ends)

    def add(self, names: Any, columns: np.ndarray) -> None:
        """Add names at the end."""
        offsets, text = bytes_of(names)
        ends = offsets[1:] - (offsets[0] - len(self._text))
        self._ends.frombytes(ends.astype(np.int64).tobytes())
        self._text += text[offsets[0] : offsets[-1]].tobytes()
        self._columns.frombytes(columns.astype(np.intc).tobytes())

    def categories(self, column: int, name: str) -> list[str]:
        """Return the categories of the column with this index and name."""
        stem, names = f"{name}=", self.of(np.flatnonzero(self.columns() == column)).to_pylist()
        return [feature_name.removeprefix(stem) for feature_name in names if feature_name.startswith(stem)]

    def put(self, indices: np.ndarray, names: Any, columns: np.ndarray) -> None:
        """Replace the names and columns at some indices."""
        order, all_columns = np.arange(len(self)), self.columns()
        order[indices], all_columns[indices] = len(self) + np.arange(len(indices)), columns
        changed = in_order([self._names(), names], order)
        self._text, self._ends, self._columns = bytearray(), array("q"), array("i")
        self.add(changed, all_columns)

    def of(self, indices: np.ndarray) -> Any:
        """Return the names at some indices."""
        return self._names().take(number_array(indices))

    def to_list(self) -> list[str]:
        """Return all names."""
        return list(self._names().to_pylist())

    def _names(self) -> Any:
        return strings_of(np.frombuffer(bytes(self._text), np.uint8), np.array(self._ends, np.int64))

    def columns(self) -> np.ndarray:
        """Return the column index of each name."""
        return np.array(self._columns, np.int32)

    def save(self) -> dict[str, np.ndarray]:
        """Return arrays from which :meth:`restore` creates the same names."""
        text, ends = np.frombuffer(bytes(self._text), np.uint8), np.array(self._ends, np.int64)
        return {"names": text, "name_ends": ends, "name_columns": self.columns()}

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray]) -> FeatureNames:
        """Restore saved names; raise a ModelError if they are not valid text."""
        text, ends = arrays["names"].astype(np.uint8), arrays["name_ends"].astype(np.int64)
        if (int(ends[-1]) if len(ends) else 0) != len(text):
            raise ModelError("the names of features do not end with their text")
        try:
            strings_of(text, ends).validate(full=True)
        except pa.ArrowInvalid as error:
            raise ModelError(f"a name of a feature is not text in UTF-8 ({error})") from None
        names = cls()
        names.add(strings_of(text, ends), arrays["name_columns"])
        return names

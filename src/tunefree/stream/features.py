"""The encoder of tables: each column becomes features, according to its type.

Numbers stay numbers. Strings, categories and booleans become one-hot codes. Dates and timestamps become codes of the
calendar and elapsed days. Texts become hashed words. Lists of strings become words, lists of numbers numbers. Feature 0
is the constant, the numbers come next in the order of their columns, and codes and words get their ids in the order of
their first appearance, row by row, so that nothing depends on where a stream is cut into chunks. Columns that come
later become features from their first value on (:mod:`tunefree.stream.late`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa

from tunefree.core import rows
from tunefree.core.errors import DataError, ModelError
from tunefree.stream.arrays import beyond_doubles, is_missing, of_booleans, of_numbers
from tunefree.stream.batch import BadRows, Batch, Columns
from tunefree.stream.calendar import TimeOfDay, Timestamp
from tunefree.stream.columns import (
    UNLABELLED,
    Boolean,
    Category,
    Faults,
    Number,
    blank_to_null,
    decoded,
    family,
    row_numbers,
    to_numbers,
    valid_utf8,
    with_row_numbers,
)
from tunefree.stream.feature_ids import FeatureIds, Triplets
from tunefree.stream.inference import Inference, is_number, without
from tunefree.stream.late import Further, Late, is_among
from tunefree.stream.lists import Bag, Vector
from tunefree.stream.notation import ColumnTypes, Notation
from tunefree.stream.texts import Text

_COLUMNS: dict[str, Callable[..., Any]] = {
    kind.kind: kind for kind in (Number, Category, Boolean, Timestamp, TimeOfDay, Text, Bag, Vector)
}
MOST_CODES = 16  # of one column
_MISSPELT = 0.8  # similarity of names from which on one is taken for the other, misspelt
INTEGER = "integer"  # the family of a target of integers that float64 does not tell apart
_TARGETS = {"number": pa.float64(), INTEGER: pa.int64(), "string": pa.string(), "boolean": pa.bool_()}


class TableEncoder:
    """Turns chunks of a table into batches of rows; made by :meth:`infer` or :meth:`restore`.

    Attributes
    ----------
    columns : list
        The columns that become features, with ``name`` and ``kind``, in the order of the first chunk; then those that
        came later.
    target, weight, group : str or None
        Names of the columns that hold them.
    further : Further or None
        What is done with columns that come later; None if they are left out.

    Examples
    --------
    >>> from tunefree.stream.batch import Position
    >>> table = pa.record_batch({"age": [39, None], "job": ["clerk", "cook"], "rich": ["no", "yes"]})
    >>> chunk = Columns(table, "example", 1, Position())
    >>> encoder = TableEncoder.infer(chunk, target="rich")
    >>> batch = encoder.encode(chunk, True, BadRows())
    >>> batch.rows.numbers.tolist(), batch.rows.codes.tolist(), batch.target.to_pylist()
    ([[39.0], [0.0]], [[0, 2], [3, 4]], ['no', 'yes'])
    >>> encoder.names()
    ['(constant)', 'age', 'job=clerk', 'age[missing]', 'job=cook']
    """

    def __init__(
        self,
        columns: Sequence[Any],
        target: str | None = None,
        target_family: str | None = None,
        weight: str | None = None,
        hash_bits: int = 0,
        na_values: Sequence[str] = (),
        target_notation: Sequence[str] | None = None,
        further: Further | None = None,
        group: str | None = None,
    ) -> None:
        self.columns, self.further = list(columns), further
        self.na_values = tuple(na_values)
        self._target_notation = None if target_notation is None else Notation(*target_notation)
        self.target, self.weight, self.group, self.hash_bits = target, weight, group, hash_bits
        self._target_family = target_family
        self._number_names = [name for column in self.columns for name in column.names()]
        self._ids = FeatureIds(1 + len(self._number_names), hash_bits)

    @classmethod
    def infer(
        cls,
        chunk: Columns,
        target: str | None = None,
        weight: str | None = None,
        ignore: Iterable[str] = (),
        text: Iterable[str] = (),
        hash_bits: int = 0,
        given: ColumnTypes = ColumnTypes(),  # noqa: B008 - an immutable tuple
        grows: bool = True,
        group: str | None = None,
        typed: bool = True,
    ) -> TableEncoder:
        """An encoder for tables with the columns of a first chunk.

        Parameters
        ----------
        chunk : Columns
        target, weight : str, optional
            Columns that hold the target and the sample weights, and are not features.
        ignore : iterable of str
            Columns to leave out, which may come later, and structs, of which all columns are left out.
        text : iterable of str, optional
            Columns of texts, beside strings that are mostly different and long or of several words
            (:mod:`tunefree.stream.texts`).
        hash_bits : int, default=0
            0 for an exact dictionary of categories; else codes and words are hashed to 2^hash_bits features.
        given : ColumnTypes, optional
            What is said of columns instead of being guessed.
        grows : bool, default=True
            Whether columns that come later become features too.
        group : str, optional
            Column that names the group of a row, and is no feature.
        typed : bool, default True
            Whether the source tells strings of digits from numbers.
        """
        names = _unique_names(chunk)
        ignored, texts = list(ignore), list(text)
        for role, name in [
            *(("target", name) for name in [target] if name is not None),
            *(("weight", name) for name in [weight] if name is not None),
            *(("group", name) for name in [group] if name is not None),
            *(("ignored", name) for name in ignored if get_close_matches(name, names, 1, _MISSPELT)),
            *(("text", name) for name in texts),
            *(("numeric", name) for name in given.numeric),
            *(("categorical", name) for name in given.categorical),
            *(("date", name) for name in given.dates(names)),
        ]:
            if role != "ignored" or not any(is_among(own, [name]) for own in names):
                check_name(role, name, names, chunk.file)
        kept = [name for name in names if name not in {target, weight, group} and not is_among(name, ignored)]
        arrays = {name: _column(chunk, name, Faults()) for name in names}
        inference = Inference(arrays, chunk.file, texts, given, typed)
        columns = [inference.column(name) for name in kept]
        if not columns:
            raise DataError("there is no column left to learn from", chunk.file, remedy="ignore fewer columns")
        kind = None if target is None else _target_family(chunk, target)
        notation = inference.target_notation(target) if target is not None and kind == "string" else None
        if target is not None and target in given.categorical:
            kind, notation = "string", None
        elif kind == "number" and beyond_doubles(inference.arrays[str(target)]):
            kind = INTEGER
        further = Further(ignored, given.decimal, given.thousands) if grows else None
        return cls(columns, target, kind, weight, hash_bits, given.na_values, notation, further, group)

    def absorb(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Know the columns and features that an encoder like this has learned from rows that follow.

        Parameters
        ----------
        arrays, header
            Its state. It began with the columns of this one, and with no feature.
        """
        places = {column.name: place for place, column in enumerate(self.columns)}
        rows = 0 if self.further is None else self.further.rows
        for described in header["columns"]:
            name = described["name"]
            if name not in places:
                places[name] = len(self.columns)
                self.columns.append(_restored(**{**described, "since": rows + described["since"]}))
            elif getattr(self.columns[places[name]], "origin", 0) is None:
                self.columns[places[name]].origin = described["origin"]
        if self.further is not None:
            self.further.left_out |= header["further"]["left_out"]
            self.further.rows += header["further"]["rows"]
        self._target_family = self._target_family or header["target_family"]
        self._ids.absorb(arrays, np.array([places[own["name"]] for own in header["columns"]] or [0], np.int32))

    def ids_absorbed(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> np.ndarray | None:
        """The features of an encoder that was absorbed, by their ids there; None if its columns were others."""
        same = self.state()[1]["columns"] == header["columns"]
        return self._ids.ids_of(arrays) if same else None

    def restore_ids(self, arrays: dict[str, np.ndarray]) -> None:
        """Know the features of an encoder of the same columns, whose :meth:`state` has these arrays."""
        self._ids.load(arrays)

    @property
    def n_features(self) -> int:
        """The largest feature there may be so far, plus 1."""
        return self._ids.n_features

    def names(self) -> list[str]:
        """Names of the features by id; hashed features are ``#0``, ``#1``, ..."""
        known = ["(constant)", *self._number_names]
        if self.hash_bits:
            return known + [f"#{k}" for k in range(self.n_features - len(known))]
        return known + self._ids.names.to_list()

    def column_of(self) -> np.ndarray:
        """For each feature the number of its column in ``columns``; -1 for the constant and for hashed features."""
        numbers = [place for place, column in enumerate(self.columns) for _ in column.names()]
        places = np.full(self.n_features, -1, np.int32)
        places[1 : 1 + len(numbers)] = numbers
        if not self.hash_bits:
            places[1 + len(numbers) :] = self._ids.names.columns()
        return places

    def types(self) -> dict[str, Any]:
        """Arrow types as which a text source should read the columns, so that they are read as in training."""
        types = {column.name: column.arrow_type() for column in self.columns}
        if not all(map(is_number, self.na_values)):
            types |= {name: pa.string() for name, own in types.items() if own == pa.float64()}
        if self.target is not None and self._target_family is not None:
            types[self.target] = _TARGETS[self._target_family]
        if self.weight is not None:
            types[self.weight] = pa.float64()
        if self.group is not None:
            types[self.group] = pa.string()
        return types

    def encode(self, chunk: Columns, learning: bool, bad: BadRows, labelled: bool | None = None) -> Batch:
        """Rows, target and weights of a chunk.

        Parameters
        ----------
        chunk : Columns
            Holds the encoder's columns, in any order; those that came later may be missing.
        learning : bool
            Whether new columns, categories and words become features; otherwise they are left out.
        bad : BadRows
            What happens to rows that cannot be used.
        labelled : bool, optional
            Whether every row must have a target and a weight; as ``learning`` if None. If not, the target is None
            where its column is absent and may hold nulls, and all weights are 1.

        Returns
        -------
        Batch
            A target of strings is dictionary-encoded; the dictionary may hold labels that no row has.
        """
        before = list(self.columns)
        if learning and self.further is not None:
            known = [self.target, self.weight, self.group, *(column.name for column in before)]
            of_chunk = chunk.table, known, chunk.file, self.na_values
            self.columns += self.further.columns(*of_chunk)
        try:
            batch = self._encode(chunk, learning, bad, learning if labelled is None else labelled)
        except DataError:
            self.columns = before  # a chunk that is refused leaves no trace
            raise
        if learning and self.further is not None:
            self.further.rows += chunk.table.num_rows
        return batch

    def _encode(self, chunk: Columns, learning: bool, bad: BadRows, labelled: bool) -> Batch:
        n, faults = chunk.table.num_rows, Faults()
        converted = [column.convert(array, faults) for column, array in self._select(chunk, faults)]
        target = self._convert_target(chunk, faults, labelled)
        weight = self._convert_weight(chunk, faults, labelled)
        groups = self._convert_groups(chunk, faults) if learning and self.group is not None else None
        if faults:
            return self._encode(_drop_bad_rows(chunk, faults, bad), learning, bad, labelled)
        encoded = self._rows(converted, n, learning), target, weight, row_numbers(chunk), None, chunk.file
        return Batch(*encoded, chunk.position, groups=groups, held=chunk.held)

    def prepare(self, chunk: Columns, labelled: bool) -> tuple[Columns, bool]:
        """The part of :meth:`encode` that does not depend on other chunks, which is nothing for a table."""
        return chunk, labelled

    def finish(self, prepared: tuple[Columns, bool], learning: bool, bad: BadRows) -> Batch:
        """The rest of :meth:`encode`."""
        chunk, labelled = prepared
        return self.encode(chunk, learning, bad, labelled)

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header for JSON from which :meth:`restore` makes the same encoder."""
        header: dict[str, Any] = {
            "columns": [{"name": column.name, "kind": column.kind, **column.options()} for column in self.columns],
            "target": self.target,
            "target_family": self._target_family,
            "weight": self.weight,
            "hash_bits": self.hash_bits,
        }
        if self.group is not None:
            header["group"] = self.group
        if self.na_values:
            header["na_values"] = [*self.na_values]
        if self._target_notation is not None:
            header["target_notation"] = [*self._target_notation]
        if self.further is not None:
            header["further"] = asdict(self.further)
        return self._ids.save(), header

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> TableEncoder:
        """The encoder whose :meth:`state` was taken."""
        described = [dict(column) for column in header["columns"]]
        names = ("target", "target_family", "weight", "group", "hash_bits", "na_values", "target_notation")
        further = Further(**header["further"]) if "further" in header else None
        encoder = cls(
            [_restored(**column) for column in described],
            **{name: header[name] for name in names if name in header},
            further=further,
        )
        encoder.restore_ids(arrays)
        if encoder._ids.names.columns().max(initial=0) >= max(len(encoder.columns), 1):
            raise ModelError("features of the encoder are of columns that it does not have")
        return encoder

    def _select(self, chunk: Columns, faults: Faults) -> list[tuple[Any, Any]]:
        """The encoder's columns with their arrays in a chunk, checked."""
        names = _unique_names(chunk)
        present = set(names)
        first = [column for column in self.columns if not isinstance(column, Late)]
        absent = [repr(column.name) for column in first if column.name not in present]
        if absent:
            raise DataError(
                f"{'column' if len(absent) == 1 else 'columns'} {', '.join(absent)} missing",
                chunk.file,
                remedy=f"add what the model was trained with; the file has {_listed(names)}",
            )
        taken = [
            (column, without(_column(chunk, column.name, faults), self.na_values) if column.name in present else None)
            for column in self.columns
        ]
        for column, array in taken:
            if array is not None and family(array.type) not in column.families:
                raise DataError(
                    f"{array.type} here, but the column was learned as {column.kind}",
                    chunk.file,
                    chunk.row,
                    column.name,
                    "give the column one type in all files",
                )
        return taken

    def _convert_target(self, chunk: Columns, faults: Faults, labelled: bool) -> Any:
        if self.target is None or not _present(self.target, chunk, labelled):
            return None
        found = _target_family(chunk, self.target)
        found = INTEGER if found == "number" and self._target_family == INTEGER else found
        if labelled and found not in {self._target_family, None}:
            self._target_family = self._target_family or found
            if found != self._target_family:
                problem = f"the target is a {found} here, but was a {self._target_family}"
                remedy = "give the column one type in all files"
                raise DataError(problem, chunk.file, chunk.row, self.target, remedy)
        array = without(_column(chunk, self.target, faults), self.na_values)
        if found in ("number", INTEGER) and self._target_family != "string":
            return _numeric_target(decoded(array), self.target, faults, labelled)
        if self._target_notation is not None:
            values = to_numbers(array, self.target, faults, self._target_notation)
            return _numeric_target(of_numbers(values, np.isnan(values)), self.target, faults, labelled)
        index, values = Category(self.target).convert(array, faults)
        if labelled:
            faults.add(np.flatnonzero(index < 0), self.target, lambda row: UNLABELLED)
        labels = pa.DictionaryArray.from_arrays(of_numbers(index, index < 0), values)
        return labels.dictionary_decode().cast(pa.bool_()) if found == "boolean" else labels

    def _convert_weight(self, chunk: Columns, faults: Faults, labelled: bool) -> np.ndarray:
        if self.weight is None or not labelled:
            return np.ones(chunk.table.num_rows)
        check_name("weight", self.weight, chunk.table.schema.names, chunk.file)
        weights = to_numbers(_column(chunk, self.weight, faults), self.weight, faults)
        faults.add(np.flatnonzero(np.isnan(weights)), self.weight, lambda row: "the weight is missing")
        wrong = np.flatnonzero((weights < 0) | np.isinf(weights))
        faults.add(wrong, self.weight, lambda row: f"the weight is {weights[row]}, not a finite number from 0")
        return weights

    def _convert_groups(self, chunk: Columns, faults: Faults) -> np.ndarray:
        """The names of the rows' groups (n,)."""
        group = str(self.group)
        check_name("group", group, chunk.table.schema.names, chunk.file)
        names = names_of(without(_column(chunk, group, faults), self.na_values), group, chunk.file)
        faults.add(np.flatnonzero(is_missing(names)), group, lambda row: "the group is missing")
        return np.asarray(names.to_numpy(zero_copy_only=False), object)

    def _rows(self, converted: Sequence[Any], n: int, learning: bool) -> rows.Table:
        parts = [column.parts(values, learning) for column, values in zip(self.columns, converted, strict=True)]
        numbers = np.empty((n, len(self._number_names)))
        for place, values in enumerate(values for part in parts for values in part.numbers):
            numbers[:, place] = values
        codes = [(place, codes) for place, part in enumerate(parts) for codes in part.codes]
        sources = [MOST_CODES * place + k for place, part in enumerate(parts) for k in range(len(part.codes))]
        bags = [(place, bags) for place, part in enumerate(parts) for bags in part.bags]
        ids, entries = self._ids.of_chunk(n, codes, bags, learning)
        return rows.table(numbers, np.arange(1, numbers.shape[1] + 1), ids, _sparse(entries, n), sources)


def _restored(kind: str, since: int | None = None, **options: Any) -> Any:
    """A column, as its state was saved."""
    column = _COLUMNS[kind](**options)
    return column if since is None else Late(column, since)


def _sparse(words: Triplets, n: int) -> rows.Sparse:
    """Words as sparse rows, without unknown ones."""
    known = words.ids > 0
    pointers = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(words.rows[known], minlength=n), out=pointers[1:])
    return rows.sparse(pointers, words.ids[known], words.values[known])


def _drop_bad_rows(chunk: Columns, faults: Faults, bad: BadRows) -> Columns:
    """Report bad rows in their order; the chunk without them."""
    numbers = row_numbers(chunk)
    for row in sorted(faults):
        report = bad.report_unlabelled if faults[row].problem == UNLABELLED else bad.report
        report(faults[row].problem, chunk.file, int(numbers[row]), faults[row].column)
    keep = np.ones(len(numbers), bool)
    keep[list(faults)] = False
    return chunk._replace(table=with_row_numbers(chunk.table.filter(of_booleans(keep)), numbers[keep]))


def _target_family(chunk: Columns, target: str) -> str | None:
    """number, string or boolean; None for a column of which all values in this chunk are missing."""
    arrow_type = chunk.table.schema.field(target).type
    found = family(arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type)
    if found == "null":
        return None
    if found not in _TARGETS:
        remedy = "name a column of numbers, strings or booleans"
        raise DataError(f"a target cannot be of type {arrow_type}", chunk.file, column=target, remedy=remedy)
    return found


def _numeric_target(array: Any, name: str, faults: Faults, labelled: bool) -> Any:
    values = to_numbers(array, name, faults)
    missing = np.isnan(values)
    faults.add(np.flatnonzero(np.isinf(values)), name, lambda row: f"the target is infinite ({values[row]})")
    if labelled:
        faults.add(np.flatnonzero(missing), name, lambda row: UNLABELLED)
    return array if pa.types.is_integer(array.type) else of_numbers(values, missing)


def names_of(values: Any, column: str, file: str) -> Any:
    """A column as texts, null where a value is missing: names that are equal in all chunks.

    Raises
    ------
    DataError
        If it holds lists or structs.
    """
    plain = blank_to_null(decoded(values))
    if pa.types.is_nested(plain.type) or family(plain.type) == "nested":
        remedy = "name a column of numbers or texts"
        raise DataError(f"groups cannot be of type {plain.type}", file, column=column, remedy=remedy)
    return plain.cast(pa.string())


def _present(target: str, chunk: Columns, needed: bool) -> bool:
    if needed:
        check_name("target", target, chunk.table.schema.names, chunk.file)
    return target in chunk.table.schema.names


def _column(chunk: Columns, name: str, faults: Faults) -> Any:
    return valid_utf8(chunk.table.column(name), name, faults)


def _unique_names(chunk: Columns) -> list[str]:
    names = chunk.table.schema.names
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        raise DataError("two columns have this name", chunk.file, column=twice, remedy="rename one of them")
    return names


def check_name(role: str, name: str, names: Sequence[str], file: str) -> None:
    """Raise a DataError with the nearest names if there is no column of this name."""
    if name in names:
        return
    close = get_close_matches(name, names, 3, 0.5)
    remedy = f"did you mean {' or '.join(map(repr, close))}?" if close else f"the columns are {_listed(names)}"
    raise DataError(f"there is no {role} column {name!r}", file, remedy=remedy)


def _listed(names: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(map(repr, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"

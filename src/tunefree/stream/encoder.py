"""The encoder of tables: a column becomes features according to its type, or has a role such as target or weight.

Feature 0 is the constant. Numbers follow in the order of their columns. Codes and words get ids in the order of their
first occurrence, row by row, so that ids do not depend on how a stream is cut into chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tunefree.core import rows, schema
from tunefree.core.errors import DataError, ModelError, alike, listed, nearest
from tunefree.core.schema import COUNT, HashBits
from tunefree.stream.arrays import cast, is_missing, number_array
from tunefree.stream.batch import SEMICOLONS, UNLABELLED, BadRows, Batch, Chunk, Converted, row_numbers, unique_names
from tunefree.stream.columns import (
    COLUMN_KINDS,
    QUANTITIES,
    Boolean,
    Category,
    Faults,
    Number,
    Text,
    blank_to_null,
    decoded,
    family,
    not_a_number,
    number_key,
    to_dictionary,
    to_numbers,
    without,
    without_nulls,
    without_words,
    written_fields,
)
from tunefree.stream.feature_ids import FeatureIds
from tunefree.stream.keys import MOST_CODES
from tunefree.stream.notation import ColumnTypes, Notation, Note, is_plain_number
from tunefree.stream.plain import ROLES
from tunefree.stream.profile import Comparison, Profile
from tunefree.stream.schema import INTEGER, TARGET_TYPES, Further, Inference, is_among, target_family_of
from tunefree.stream.spellings import NULLS

_ABSENT = {
    "weight": "the column of weights is missing: rows count equally",
    "exposure": "the column of exposures is missing: predictions are for an exposure of 1",
}
_WRONG = {
    "weight": "the weight is {}, not a finite number from 0",
    "exposure": "the exposure is {:g}, not a finite number above 0",
}


def renamed(absent: Sequence[str], unknown: Sequence[str]) -> str:
    """A question whether unknown columns are absent columns under other names; empty if there are none."""
    pairs = [(alike(name, unknown), name) for name in absent]
    if len(absent) == len(unknown) == 1:
        pairs = [(unknown[0], absent[0])]
    return ", ".join(f"{other!r} is not known: did you mean {name!r}?" for other, name in pairs if other is not None)


def check_name(role: str, name: str, names: Sequence[str], file: str, hint: str = "") -> None:
    """Raise a DataError with similar names and a hint if there is no such column; ``role`` may be empty."""
    if name not in names:
        column = f"{role} column".lstrip()
        remedy = nearest(name, names, "columns") + _delimiter_hint(names) + hint
        raise DataError(f"there is no {column} {name!r}", file, remedy=remedy)


def _delimiter_hint(names: Sequence[str]) -> str:
    """A hint to check the delimiter if the only column name looks like several names; else empty."""
    return "; check `delimiter`" if len(names) == 1 and any(mark in names[0] for mark in ",;|\t") else ""


def unknown(encoder: Any, names: Iterable[str], others: Iterable[str | None] = ()) -> list[str]:
    """Names of columns that are neither known to an encoder, nor left out by it, nor among ``others``."""
    known = {*(getattr(encoder, role) for role in ROLES), *(column.name for column in encoder.columns), *others}
    left_out = [] if encoder.further is None else [*encoder.further.ignored, *encoder.further.left_out]
    return [name for name in names if name not in known and not is_among(name, left_out)]


def present_of(encoder: Any, array: Any, name: str, faults: Faults, kind: str | None = None) -> Any:
    """A column of a kind, None for roles, with nulls in place of values that mean a missing one in any column."""
    array = without(array, encoder.na_values)
    if encoder.typed or kind in QUANTITIES or name in encoder.kept:
        return array
    if family(array.type) == "string" and kind != Text.kind:
        array = to_dictionary(array)  # each different string is examined once
    return without_nulls(array, name, encoder.labels if name == encoder.target else (), faults)


def kind_of_target(encoder: Any, array: Any, file: str) -> str | None:
    """The family of a target: as in training, or for texts of an untyped source as the first value."""
    name, kind = encoder.target, target_family_of(array, encoder.target, file)
    if kind == "string" and encoder.target_family is None and not encoder.typed:
        present = blank_to_null(decoded(array), NULLS).drop_null()[:1]
        kind, notation = Inference({name: present}, file, (), ColumnTypes(), typed=False).target(name)
        return "number" if kind == INTEGER else kind if notation is None else "string"
    is_as_trained = kind == "string" or (kind == "number" and encoder.target_family == INTEGER)
    return encoder.target_family or kind if is_as_trained else kind


def target_values(encoder: Any, array: Any, kind: str | None, faults: Faults) -> Any:
    """A target of a kind as an array of numbers, booleans or labels; unusable values are errors of their rows."""
    name, is_text = encoder.target, family(array.type) == "string"
    if kind in ("number", INTEGER):
        if kind == INTEGER and is_text:
            strings = without_words(array, name, (), faults)
            array, failed = cast(strings, pa.int64())
            faults.add(failed, name, lambda row: not_a_number(strings[row].as_py()))
        elif is_text and encoder.labels and {*encoder.labels} <= {"0", "1"}:
            for word, digit in (("true", "1"), ("false", "0")):
                array = pc.replace_substring_regex(decoded(array), rf"(?i)^\s*{word}\s*$", digit)
        array = decoded(array)
        values = Number(name, encoder.notations.get(name)).convert(array, faults)
        missing = np.isnan(values)
        faults.add(np.flatnonzero(missing), name, lambda row: UNLABELLED)
        return array if pa.types.is_integer(array.type) else number_array(values, missing)

    def problem(row: int) -> str:
        text = array[row].as_py()
        is_word = isinstance(text, str) and text.strip() in NULLS
        return UNLABELLED + (f" ({text!r} stands for that unless it is among the `classes`)" if is_word else "")

    column = Boolean(name) if kind == "boolean" else Category(name)
    index, values = column.convert(present_of(encoder, array, name, Faults()), faults)
    faults.add(np.flatnonzero(index < 0), name, problem)
    index = number_array(index, index < 0)
    return pc.equal(values, "true").take(index) if kind == "boolean" else pa.DictionaryArray.from_arrays(index, values)


def _groups(encoder: Any, chunk: Chunk, faults: Faults) -> np.ndarray:
    """The names of the groups of rows (n,)."""
    group = str(encoder.group)
    check_name("group", group, chunk.data.schema.names, chunk.file)
    plain = blank_to_null(decoded(present_of(encoder, chunk.data.column(group), group, faults)))
    if pa.types.is_nested(plain.type) or family(plain.type) == "nested":
        remedy = "name a column of numbers or texts"
        raise DataError(f"groups cannot be of type {plain.type}", chunk.file, column=group, remedy=remedy)
    names = plain.cast(pa.string())
    faults.add(np.flatnonzero(is_missing(names)), group, lambda row: "the group is missing")
    return np.asarray(names.to_numpy(zero_copy_only=False), object)


def _role_numbers(
    encoder: Any, chunk: Chunk, faults: Faults, role: str, learning: bool, bad: BadRows
) -> np.ndarray | None:
    """The weights or exposures of rows (n,); None without such a column, which only rows that are learned must have."""
    n, name = chunk.data.num_rows, getattr(encoder, role)
    if name is None:
        return None
    if not learning and name not in chunk.data.schema.names:
        if n and not faults:  # a chunk with faults is converted again
            bad.note(_ABSENT[role], chunk.file, chunk.row, name, n)
        return None
    check_name(role, name, chunk.data.schema.names, chunk.file)
    array = without(chunk.data.column(name), encoder.na_values)
    numbers = to_numbers(array, name, faults, encoder.notations.get(name))
    faults.add(np.flatnonzero(np.isnan(numbers)), name, lambda row: f"the {role} is missing")
    is_wrong = (numbers < 0 if role == "weight" else numbers <= 0) | np.isinf(numbers)
    faults.add(np.flatnonzero(is_wrong), name, lambda row: _WRONG[role].format(numbers[row]))
    return numbers


@dataclass(eq=False, repr=False)
class TableEncoder:
    """Turns chunks of a table into batches of rows; made by :meth:`infer` or :meth:`restore`.

    ``columns`` become features: the columns of the first chunk, then later columns. ``notations`` has the notation of
    each target, weight or exposure that is written as text. If not ``typed``, words such as NA are missing values,
    except in the ``kept`` columns and for targets among ``labels``. Without ``further``, later columns are left out.
    ``notes`` are reported for the rows of each chunk.
    """

    columns: list[Any]
    target: str | None = None
    target_family: Annotated[str | None, schema.Text(tuple(TARGET_TYPES), may_be_none=True)] = None
    weight: str | None = None
    hash_bits: HashBits = 0
    na_values: Sequence[str] = ()
    notations: Mapping[str, Notation] = field(default_factory=dict)
    further: Further | None = None
    group: str | None = None
    exposure: str | None = None
    typed: bool = True
    kept: Sequence[str] = ()
    labels: Sequence[str] = ()
    notes: Sequence[Note] = ()

    def __post_init__(self) -> None:
        self._number_names = [name for column in self.columns for name in column.dense_names()]
        self.ids = FeatureIds(1 + len(self._number_names), self.hash_bits)
        self.row_encoder: Any = None  # for rows that are predicted one at a time
        self.profile = Profile(len(self.columns))  # of the rows learned
        self.observes = True  # whether rows learned are added to it; not in further passes

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"row_encoder": None}

    @classmethod
    def infer(
        cls,
        chunk: Chunk,
        target: str | None = None,
        weight: str | None = None,
        ignore: Iterable[str] = (),
        text: Iterable[str] = (),
        hash_bits: int = 0,
        column_types: ColumnTypes = ColumnTypes(),  # noqa: B008 - an immutable tuple
        grows: bool = True,
        group: str | None = None,
        typed: bool = True,
        exposure: str | None = None,
    ) -> TableEncoder:
        """An encoder for tables with the columns of the first chunk.

        Columns to ``ignore`` are left out; for a struct, all its columns. Columns are texts if ``text`` names them or
        they look like texts. If the table ``grows``, later columns become features. If not ``typed``, the source does
        not distinguish strings of digits from numbers.
        """
        names = unique_names(chunk)
        ignored, texts, roles = list(ignore), list(text), (target, weight, group, exposure)
        typed_names = {"text": texts, "numeric": column_types.numeric, "categorical": column_types.categorical}
        typed_names["date"] = list(column_types.dates(names))
        role_names = {role: [name] for role, name in zip(ROLES, roles, strict=True) if name is not None}
        for option, option_names in (role_names | typed_names).items():
            for name in option_names:
                check_name(option, name, names, chunk.file)
        feature_names = [name for name in names if name not in roles and not is_among(name, ignored)]
        arrays = {name: chunk.data.column(name) for name in names}
        semicolons = SEMICOLONS in (chunk.data.schema.metadata or {})
        inference = Inference(arrays, chunk.file, texts, column_types, typed, semicolons)
        named = set(chain.from_iterable(typed_names.values()))
        # Columns without values are inferred from their first value, later.
        with_values = [name for name in feature_names if name in named or not grows or not inference.is_empty(name)]
        columns = [inference.column(name) for name in with_values or feature_names]
        if not columns:
            raise DataError("there is no column left to learn from", chunk.file, remedy="ignore fewer columns")
        kind, notation = (None, None) if target is None else inference.target(target)
        by_name = {str(target): notation}
        by_name |= {name: inference.notation(name) for name in (weight, exposure) if name is not None}
        notations = {name: notation for name, notation in by_name.items() if notation is not None}
        further = Further(ignored, column_types.decimal, column_types.thousands) if grows else None
        options = hash_bits, column_types.na_values, notations, further, group, exposure, typed
        return cls(columns, target, kind, weight, *options, column_types.categorical, notes=inference.notes)

    def absorb(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Add the columns and features of another encoder, given by its state, that learned the next rows."""
        indices = {column.name: index for index, column in enumerate(self.columns)}
        rows = 0 if self.further is None else self.further.rows
        for state in header["columns"]:
            name = state["name"]
            if name not in indices:
                indices[name] = len(self.columns)
                self.columns.append(_restored(state | {"since": rows + state["since"]}, len(self.columns)))
            elif self.columns[indices[name]].kind != state["kind"]:
                problem = f"a {state['kind']} here, but a {self.columns[indices[name]].kind} in rows before"
                raise DataError(problem, column=name, remedy="declare its type by `numeric` or `categorical`")
            elif getattr(self.columns[indices[name]], "origin", 0) is None:
                self.columns[indices[name]].origin = state.get("origin")
        if self.further is not None:
            self.further.left_out |= header["further"]["left_out"]
            self.further.rows += header["further"]["rows"]
        self.target_family = self.target_family or header.get("target_family")
        new_indices = np.array([indices[column["name"]] for column in header["columns"]] or [0], np.int32)
        self.ids.absorb(arrays, new_indices)
        self.profile.absorb(arrays, new_indices)

    @property
    def n_features(self) -> int:
        """The largest possible feature id so far, plus 1."""
        return self.ids.n_features

    def names(self) -> list[str]:
        """Names of the features, by id; hashed features are ``#0``, ``#1``, ..."""
        known = ["(constant)", *self._number_names]
        if self.hash_bits:
            return known + [f"#{k}" for k in range(self.n_features - len(known))]
        return known + self.ids.names.to_list()

    def column_of(self) -> np.ndarray:
        """For each feature the index of its column; -1 for the constant and for hashed features."""
        dense_columns = [index for index, column in enumerate(self.columns) for _ in column.dense_names()]
        column_indices = np.full(self.n_features, -1, np.int32)
        column_indices[1 : 1 + len(dense_columns)] = dense_columns
        if not self.hash_bits:
            column_indices[1 + len(dense_columns) :] = self.ids.names.columns()
        return column_indices

    def types(self) -> dict[str, Any]:
        """The Arrow types in which a text source reads the columns, so that they are read as in training."""
        types = {column.name: column.arrow_type for column in self.columns}
        if not all(map(is_plain_number, self.na_values)):
            types |= {name: pa.string() for name, arrow_type in types.items() if arrow_type == pa.float64()}
        if self.target is not None and self.target_family is not None:
            types[self.target] = pa.string() if self.target in self.notations else TARGET_TYPES[self.target_family]
        for name in [name for name in (self.weight, self.exposure) if name is not None]:
            types[name] = pa.string() if name in self.notations else pa.float64()
        if self.group is not None:
            types[self.group] = pa.string()
        return types

    def encode(self, chunk: Chunk, learning: bool, bad: BadRows, labelled: bool | None = None) -> Batch:
        """Rows, targets and weights of a chunk, which has the encoder's columns in any order.

        If ``learning``, new columns, categories and words become features; otherwise they are left out. If
        ``labelled``, by default as ``learning``, every row must have a target and a weight. Otherwise the column of
        the target is not read, the target is None, and all weights are 1.
        """
        columns_before = list(self.columns)
        if learning and self.further is not None:
            na_values = self.na_values if self.typed else (*self.na_values, *NULLS)
            names = unknown(self, chunk.data.schema.names)
            self.columns += self.further.columns(chunk, names, na_values, self.typed)
        try:
            labelled = learning if labelled is None else labelled
            return self.encode_converted(self.convert(chunk, learning, bad, labelled), learning, bad)
        except DataError:
            self.columns = columns_before  # a refused chunk does not change the encoder
            raise

    def convert(self, chunk: Chunk, learning: bool, bad: BadRows, labelled: bool) -> Converted:
        """The usable rows of a chunk, for :meth:`encode_converted` of this encoder with its present columns."""
        faults = Faults(bad.options)
        arrays = self._arrays_of_columns(chunk, faults)
        values = [None if array is None else column.convert(array, faults) for column, array in arrays]
        target = self._convert_target(chunk, faults) if labelled else None
        weight = _role_numbers(self, chunk, faults, "weight", learning, bad) if labelled else None
        weight = np.ones(chunk.data.num_rows) if weight is None else weight
        # an estimator has targets, groups and exposures outside the table
        has_exposure = labelled or not learning
        exposure = _role_numbers(self, chunk, faults, "exposure", learning, bad) if has_exposure else None
        groups = _groups(self, chunk, faults) if learning and labelled and self.group is not None else None
        if faults:
            usable = self.convert(faults.without(chunk, bad), learning, bad, labelled)
            return usable._replace(n_rows=chunk.data.num_rows)
        for note, indices in faults.notes:
            first = int(row_numbers(chunk)[indices[0]])
            bad.note(note.problem, chunk.file, first, note.column, len(indices), note.remedy)
        nothing = np.empty((len(weight), 0))
        batch = Batch(rows.table(nothing, [], nothing), target, weight, row_numbers(chunk), None, chunk.file)
        batch = batch._replace(position=chunk.position, exposure=exposure, groups=groups)
        return Converted(chunk, chunk.data.num_rows, values, batch)

    def encode_converted(self, conversion: Converted, learning: bool, bad: BadRows) -> Batch:
        """The rest of :meth:`encode`."""
        chunk, n_rows, values, batch = conversion
        numbers = row_numbers(chunk)
        for note in self.notes if len(numbers) else ():
            bad.note(note.problem, chunk.file, int(numbers[0]), note.column, len(numbers), note.remedy)
        block = self._rows(values, chunk, learning, bad, batch.weight, n_rows)
        for name in self._absent(chunk):
            bad.note("absent, and counts as missing", chunk.file, chunk.row, name, n_rows)
        forgotten = self.ids.take_forgotten()
        batch = batch._replace(rows=block, numbers=numbers, file=chunk.file, forgotten=forgotten)
        return batch._replace(n_features=self.n_features)

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a JSON header from which :meth:`restore` creates the same encoder."""
        header = written_fields(self) | {"columns": [column.state() for column in self.columns]}
        if self.further is not None:
            header["further"] = asdict(self.further)
        arrays, numbers = self.ids.state()
        return arrays | self.profile.save(), header | numbers

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> TableEncoder:
        """The encoder of a :meth:`state`."""
        schema.check_header(header, {"forgotten": schema.Optional(COUNT), "most": schema.Optional(COUNT)}, "encoder")
        kind: Any = cls
        fields = schema.check_header(header, schema.fields_of(kind), "encoder")
        fields["columns"] = [_restored(column, number) for number, column in enumerate(fields["columns"])]
        encoder = cls(**fields)
        encoder.ids.load(arrays, header)
        encoder.profile = Profile.restore(arrays, len(encoder.columns))
        if encoder.ids.names.columns().max(initial=0) >= max(len(encoder.columns), 1):
            raise ModelError("features of the encoder are of columns that it does not have")
        return encoder

    def _arrays_of_columns(self, chunk: Chunk, faults: Faults) -> list[tuple[Any, Any]]:
        """The encoder's columns and their arrays in a chunk, after checks of their names and types."""
        names, absent = unique_names(chunk), self._absent(chunk)
        chunk_names = set(names)
        present = {column.name: column.kind for column in self.columns if column.name in chunk_names}
        if absent and not (chunk.optional and present):
            remedy = renamed(absent, unknown(self, names))
            remedy = remedy or f"add the columns of the training; the columns here are {listed(names)}"
            remedy += _delimiter_hint(names)
            problem = f"{'column' if len(absent) == 1 else 'columns'} {', '.join(map(repr, absent))} missing"
            raise DataError(problem, chunk.file, remedy=remedy)
        arrays = {name: present_of(self, chunk.data.column(name), name, faults, kind) for name, kind in present.items()}
        arrays |= dict.fromkeys(absent, pa.nulls(chunk.data.num_rows))  # later columns have no array
        arrays_of_columns = [(column, arrays.get(column.name)) for column in self.columns]
        for column, array in arrays_of_columns:
            if array is not None and family(array.type) not in column.families:
                problem = f"{array.type} here, but the column was learned as {column.kind}"
                raise DataError(problem, chunk.file, chunk.row, column.name, "give the column its type in training")
        return arrays_of_columns

    def _absent(self, chunk: Chunk) -> list[str]:
        """The names of the columns, without later ones, that a chunk lacks."""
        present = set(chunk.data.schema.names)
        return [column.name for column in self.columns if not (column.since or column.name in present)]

    def _convert_target(self, chunk: Chunk, faults: Faults) -> Any:
        if self.target is None:
            return None
        hint = "; estimators name it by `save(path, target=...)`" if self.target == "target" else ""
        check_name("target", self.target, chunk.data.schema.names, chunk.file, hint)
        array = without(chunk.data.column(self.target), self.na_values)
        kind = kind_of_target(self, array, chunk.file)
        self.target_family = self.target_family or kind
        if kind not in {self.target_family, None}:
            problem = f"the target is a {kind} here, but was a {self.target_family}"
            raise DataError(problem, chunk.file, chunk.row, self.target, "give the column one type in all files")
        return target_values(self, array, kind, faults)

    def _rows(
        self, converted: Sequence[Any], chunk: Chunk, learning: bool, bad: BadRows, weight: np.ndarray, n_rows: int
    ) -> rows.Block:
        n = chunk.data.num_rows
        parts = [column.parts_since(values, learning) for column, values in zip(self.columns, converted, strict=True)]
        numbers = np.empty((n, len(self._number_names)))
        for index, values in enumerate(values for part in parts for values in part.numbers):
            numbers[:, index] = values
        codes = [(index, codes) for index, part in enumerate(parts) for codes in part.codes]
        sources = [MOST_CODES * index + k for index, part in enumerate(parts) for k in range(len(part.codes))]
        column_words = [(index, words) for index, part in enumerate(parts) for words in part.words]
        ids, words = self.ids.chunk_features(n, codes, column_words, learning, weight)
        observed = [part.observed for part in parts]
        if learning:
            self.has_learned(observed, n, n_rows)
        elif self.profile.rows:
            bad.comparison = bad.comparison or Comparison(self)
            unknown = self.ids.unknown(codes, ids)
            bad.comparison.add(observed, unknown, chunk.file, row_numbers(chunk))
            if unknown:
                words = self.ids.with_averages(codes, ids, words, self.profile.drawn)
                self._fill(numbers, codes, ids)
        late = [number_key(name) for column in self.columns if column.since for name in column.names()]
        return rows.table(
            numbers, np.arange(1, numbers.shape[1] + 1), ids, words, sources, self.ids.known(late) if learning else ()
        )

    def has_learned(self, observed: Sequence[Any], n: int, n_rows: int | None = None) -> None:
        """Add n learned rows to the profile; ``n_rows`` includes rows that cannot be used."""
        if self.observes:
            self.profile.add(observed, n)
        if self.further is not None:
            self.further.rows += n if n_rows is None else n_rows

    def _fill(self, numbers: np.ndarray, codes: Sequence[Any], ids: np.ndarray) -> None:
        """Replace missing numbers by the median of training, in columns without missing numbers in training."""
        starts = np.cumsum([0, *(len(column.dense_names()) for column in self.columns)])
        for k, (index, part) in enumerate(codes):
            sample = self.profile.drawn(index)
            if self.columns[index].kind == Number.kind and starts[index + 1] > starts[index] and len(sample):
                numbers[(ids[:, k] == 0) & (part.places >= 0), starts[index]] = np.median(sample)


def _restored(state: Any, number: int) -> Any:
    """The column of a state; its number is for messages."""
    where = f"encoder.columns.{number}"
    schema.check_header(state, {"kind": schema.Text(tuple(COLUMN_KINDS))}, where)
    return schema.check_header(state, schema.Record(COLUMN_KINDS[state["kind"]]), where)

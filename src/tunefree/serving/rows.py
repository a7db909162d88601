"""Rows of requests: checks of their columns and labels, and their encoding for a model.

By default a served model refuses unknown columns and labels, which are usually mistakes. An option admits new classes;
new columns need further training.
"""

from __future__ import annotations

from itertools import compress
from typing import Any

import numpy as np

from tunefree.core.errors import DataError, listed, nearest
from tunefree.model_files.trained import Trained
from tunefree.pool.targets import MANY_CLASSES
from tunefree.serving.settings import REFUSE, Admission
from tunefree.serving.store import Row
from tunefree.stream.batch import BadRows, Batch, Chunk, Converted
from tunefree.stream.encoder import renamed
from tunefree.stream.jsonlines import flattened, read_objects, shown
from tunefree.stream.row_encoder import MOST_ROWS, RowEncoder
from tunefree.stream.schema import is_among, with_numbers_as_texts
from tunefree.training.targets import labels_of, rows_with_usable_targets

REQUEST, LEARNED = "the request", "all learned rows"  # names of the sources of rows, in messages
MAX_NAME_LENGTH = 200  # maximum length in messages of a name sent by a client
CLOSED = "its columns are closed; leave it out, or pass `unknown_columns='ignore'`"


class Reader:
    """Reads JSON rows for a trained or published model; ``id_name`` is the name of their id."""

    def __init__(self, admission: Admission) -> None:
        self._admission, self.id_name = admission, admission.id
        self.n_ignored = 0  # number of values in ignored columns
        self._row_encoder: RowEncoder | None = None

    def ids_of(self, rows: list[Row], needed: bool = False) -> list[str | None]:
        """The ids of rows as text, so that 1 and "1" are equal; a DataError for repeated, or needed but missing ids."""
        check_rows(rows)
        ids, numbers = list[str | None](), dict[str, int]()
        for number, row in enumerate(rows, 1):
            id: Any = row.get(self.id_name)
            problem, remedy = "", None
            if type(id) is int:
                id = str(id)
            if id is None and needed:
                problem, remedy = "there is no id", f"send {self.id_name!r}, too"
            elif id is not None and not isinstance(id, str):
                problem = f"an id is a string or a whole number, not {shown(id)}"
            elif id is not None and any("\ud800" <= letter <= "\udfff" for letter in id):
                problem = "half of a surrogate pair is no letter"
            elif id in numbers:
                problem, remedy = f"row {numbers[id]} has the id {shown(id)}, too", "send each row once"
            if problem:
                raise DataError(problem, REQUEST, number, self.id_name, remedy)
            if id is not None:
                numbers[id] = number
            ids.append(id)
        return ids

    def batch(self, trained: Any, rows: list[Row], odd: BadRows) -> tuple[Batch, list[list[str]]]:
        """A batch of rows to predict, and the ignored columns of each row; a DataError if a row is unusable."""
        encoder = trained.encoder
        if odd.comparison is not None and len(odd.comparison.encoder.columns) != len(encoder.columns):
            odd.comparison = None  # it has fewer columns
        if (batch := self._fast_batch(encoder, rows, odd)) is not None:
            return batch, [[] for _ in rows]
        chunk, unknown = self._chunk(trained, rows)
        self.n_ignored += sum(map(len, unknown))
        return encoder.encode(chunk, False, odd, False), unknown

    def _fast_batch(self, encoder: Any, rows: list[Row], odd: BadRows) -> Batch | None:
        """A batch by the fast path, for a few rows whose columns and values are all known; None for others."""
        if len(rows) > MOST_ROWS:
            return None
        row_encoder = RowEncoder(encoder) if self._row_encoder is None else self._row_encoder.follow(encoder)
        self._row_encoder = row_encoder
        names = row_encoder.names | {self.id_name, encoder.target, encoder.weight, encoder.group}
        if not row_encoder.names or odd.comparison is None or not all(row.keys() <= names for row in rows):
            return None
        if (encoded := row_encoder.encode(rows)) is None:
            return None
        for seen in encoded[1]:
            odd.comparison.add_seen(seen, REQUEST)
        return Batch(encoded[0], None, np.ones(len(rows)), np.arange(1, len(rows) + 1), file=REQUEST)

    def check(self, trained: Trained, rows: list[Row]) -> tuple[list[Row], Converted | None]:
        """Rows to learn in the form of the journal, without ids and ignored columns, and their converted columns.

        Raises a DataError if one of the rows cannot be learned; the model and its encoder do not change.
        """
        if not rows:
            return [], None
        chunk, unknown = self._chunk(trained, rows, learning=True)
        plan, encoder = trained.plan, trained.encoder
        refused = BadRows(options=(), classes=plan.classes, target=encoder.target, loss=plan.loss)
        converted: Converted = encoder.convert(chunk, True, refused, True)
        self._check_targets(converted.batch, trained, refused)
        self.n_ignored += sum(map(len, unknown))
        kept, no_id = [], () if self.id_name in trained.encoder.types() else (self.id_name,)
        for row, names in zip(rows, unknown, strict=True):
            row, dropped = flattened(row) if names else row, {*names, *no_id}
            kept.append({name: cell for name, cell in row.items() if name not in dropped})
        return kept, converted

    def _check_targets(self, batch: Batch, trained: Trained, refused: BadRows) -> None:
        rows_with_usable_targets(batch, refused)
        if trained.model.task == "regression":
            return
        labels, classes = labels_of(batch.target), trained.model.classes
        new = [label for label in labels.values if label not in classes]
        if new and (not self._admission.new_classes or len(classes) + len(new) > MANY_CLASSES):
            row = 1 + next(row for row, code in enumerate(labels.codes) if labels.values[code] in new)
            remedy = "correct it, or pass `new_classes=True`"
            if self._admission.new_classes:
                remedy = f"correct it; there are at most {MANY_CLASSES} classes"
            label = shown(labels.values[labels.codes[row - 1]])
            problem = f"the label {label} is not among the classes {listed(classes)}"
            raise DataError(problem, REQUEST, row, refused.target, remedy)

    def learned(self, trained: Trained, rows: list[Row], converted: Converted | None = None) -> Batch:
        """A batch of rows of the journal for the model to learn; the encoder learns their new values.

        The rows were admitted on arrival, so they are not checked again. ``converted`` saves a second conversion.
        """
        encoder, refused = trained.encoder, BadRows(options=(), target=trained.encoder.target)
        chunk = self._chunk(trained, rows, True)[0] if converted is None else converted.chunk
        chunk = chunk._replace(row=1 + trained.progress.rows, file=LEARNED)
        if converted is None:
            return encoder.encode(chunk, True, refused, True)
        return encoder.encode_converted(converted._replace(chunk=chunk), True, refused)

    def _chunk(self, trained: Any, rows: list[Row], learning: bool = False) -> tuple[Chunk, list[list[str]]]:
        """Rows as a table, and the names of ignored columns for each row."""
        encoder = trained.encoder
        rows, types = with_numbers_as_texts(encoder, rows), encoder.types()
        left_out = [*trained.plan.ignore, *(() if encoder.further is None else encoder.further.left_out)]
        known = dict.fromkeys([*types, *left_out])
        categories = [encoder.group, *(column.name for column in encoder.columns if getattr(column, "numbers", False))]
        unused = [] if learning else [name for name in (encoder.target, encoder.weight, encoder.group) if name in types]
        for name in unused:
            del types[name]
        unknown: list[list[str]] = []
        if self.id_name not in types:
            unused.append(self.id_name)
        columns = [column.name for column in encoder.columns]
        needed = list(compress(columns, encoder.profile.present == encoder.profile.rows))
        for number, row in enumerate(rows, 1):
            for name in unused:
                row.pop(name, None)
            flat = rows[number - 1] = flattened(row)
            for name in categories:
                if type(flat.get(name)) in (int, float) and flat[name] % 1 == 0:
                    flat[name] = str(int(flat[name]))  # as in files
            # An unknown column that is null counts as absent.
            names = [name for name, cell in flat.items() if name not in known and cell is not None]
            names = [name for name in names if name != self.id_name and not is_among(name, left_out)]
            if names and self._admission.unknown_columns == REFUSE:
                names = [name[:MAX_NAME_LENGTH] for name in names]
                hint = renamed([name for name in columns if name not in flat], names)
                hint = hint or nearest(names[0], list(known), "columns")
                raise DataError(f"the model does not know it ({hint})", REQUEST, number, names[0], CLOSED)
            for name in names:
                del flat[name]
            unknown.append(names)
            _check_present(columns, needed, flat, number)
        return read_objects(rows, types, REQUEST), unknown


def check_rows(rows: Any) -> None:
    """Raise a DataError unless rows are a list of dicts."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError("rows are a list of dicts", REQUEST, remedy="put a row in a list")


def _check_present(columns: list[str], needed: list[str], flat: Row, number: int) -> None:
    """Raise a DataError if a row lacks all columns, or one that every training row had."""
    looked_for = needed if any(name in flat or is_among(name, flat) for name in columns) else columns
    absent = [name for name in looked_for if name not in flat and not is_among(name, flat)]
    if absent:
        problem = f"{'column' if len(absent) == 1 else 'columns'} {', '.join(map(repr, absent))} missing"
        raise DataError(problem, REQUEST, number, remedy="send null where a value is not known")

"""Parts of what model files hold that are declared for several kinds, see :mod:`tunefree.model_files.schemas`."""

from __future__ import annotations

from types import UnionType
from typing import Any, get_args

from tunefree.core.parameters import Parameter, records_of, types_of
from tunefree.core.schema import COUNT, FINITE, SIZE, Flag, Label, Mapping, Number, Optional, Sequence, Text
from tunefree.model.targets import MANY_CLASSES
from tunefree.model.views import ALL as VIEWS
from tunefree.model_files.plan import Plan

MOST_FEATURES = 2**31 - 1
NAME, NAMES = Text(may_be_none=True), Sequence(Text())
TASK = Text(("classification", "regression"))
SEEN = ("raw", *VIEWS)
CLASSES = Sequence(Label(), MANY_CLASSES)
METRICS = {"rows": COUNT, "weight": SIZE, "loss": SIZE, "errors": SIZE}
SETTING = {"learner": Text(), "settings": Mapping(FINITE), "view": Text(SEEN)}


COLUMNS: dict[str, dict[str, Any]] = {  # what makes a column of each kind again, beside its name
    "number": {
        "decimal": Optional(Text((".", ","))),
        "thousands": Optional(Text()),
        "unit": Optional(Text()),
        "na_values": Optional(NAMES),
    },
    "category": {"numbers": Optional(Flag()), "doubt": Optional(Sequence(Text(), 2))},
    "boolean": {"numbers": Optional(Flag()), "words": Optional(Flag())},
    "moment": {
        "zone": Optional(NAME),
        "hours": Optional(Flag()),
        "origin": Optional(Number(-(2**62), 2**62, whole=True, may_be_none=True)),
        "format": Optional(Text()),
        "na_values": Optional(NAMES),
    },
    "time": {"na_values": Optional(NAMES)},
    "text": {},
    "bag": {},
    "vector": {"width": Number(0, MOST_FEATURES, whole=True)},
}
LATE = {"since": Optional(COUNT)}  # of a column of any kind that came later

ENCODERS: dict[str, Any] = {  # formats of others check what they read
    "table": {
        "columns": Sequence({"name": Text(), "kind": Text(tuple(COLUMNS))}),
        "target": NAME,
        "target_family": Text(("number", "integer", "string", "boolean"), may_be_none=True),
        "weight": NAME,
        "group": Optional(Text()),
        "exposure": Optional(Text()),
        "hash_bits": Number(0, 30, whole=True),
        "na_values": Optional(NAMES),
        "typed": Optional(Flag()),
        "kept": Optional(NAMES),
        "labels": Optional(NAMES),
        "notations": Optional(Mapping(NAMES)),
        "notes": Optional(Sequence(NAMES)),
        "forgotten": Optional(COUNT),
        "most": Optional(COUNT),
        "further": Optional(
            {
                "ignored": NAMES,
                "decimal": Text((".", ","), may_be_none=True),
                "thousands": NAME,
                "left_out": Mapping(Text()),
                "rows": COUNT,
            }
        ),
    },
    "svmlight": {"hash_bits": Number(0, 30, whole=True), "zero_based": Optional(Flag())},
    "vw": {"hash_bits": Number(0, 30, whole=True)},
}


def _of_parameter(kind: Any, record: Parameter) -> Any:
    """What a file may hold as the value of a parameter of this type."""
    alternatives = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    may_be_none = len(alternatives) > 1
    if alternatives[0] is bool:
        return Flag()
    if alternatives[0] in (int, float):
        low, high = record.low or 0, 2**62 if record.high is None else record.high
        return Number(low, high, whole=alternatives[0] is int, may_be_none=may_be_none)
    if alternatives[0] is str:
        return Text(record.choices or None, may_be_none)
    return NAMES if kind == tuple[str, ...] else Mapping(FINITE)


PLAN = {name: Optional(_of_parameter(types_of(Plan)[name], record)) for name, record in records_of(Plan).items()}

"""Parts of what model files hold that are declared for several kinds, see :mod:`tunefree.model_files.schemas`."""

from __future__ import annotations

from types import UnionType
from typing import Any, get_args

from tunefree.core.fields import FEATURE, OUTPUT, State
from tunefree.core.parameters import Parameter, records_of, types_of
from tunefree.core.schema import Anything, Array, Flag, Label, Mapping, Number, Optional, Sequence, Text
from tunefree.generations.clocks import AGES
from tunefree.generations.columns import MOST_COLUMNS
from tunefree.generations.growing import KINDS
from tunefree.generations.reservoir import MOST_ROWS
from tunefree.generations.settings import Settings
from tunefree.generations.trees import WORDS
from tunefree.intervals.adaptive import LATEST, N_STEPS
from tunefree.learners.newton import DEPTH, SIDE, Newton
from tunefree.learners.scinol import ScInOL2
from tunefree.mixing.bases import N_CANDIDATES
from tunefree.model.targets import MANY_CLASSES
from tunefree.model.views import ALL as VIEWS
from tunefree.model_files.plan import Plan
from tunefree.pool.contexts import N_CONTEXTS
from tunefree.pool.slots import TREES
from tunefree.pool.windows import LENGTHS

MOST_FEATURES = 2**31 - 1
MOST_MEMBERS = 1000
COUNT, SIZE, FINITE = Number(0, 2**62, whole=True), Number(0), Number()
NAME, NAMES = Text(may_be_none=True), Sequence(Text())
TASK = Text(("classification", "regression"))
SEEN = ("raw", *VIEWS)
CLASSES = Sequence(Label(), MANY_CLASSES)
METRICS = {"rows": COUNT, "weight": SIZE, "loss": SIZE, "errors": SIZE}
LINEAR_MEMBER = {"objective": Mapping(Number()), "rows": COUNT, "mass": SIZE}
SETTING = {"learner": Text(), "settings": Mapping(FINITE), "view": Text(SEEN)}
MEETINGS = {
    "first": Number(0, MOST_FEATURES, whole=True),
    "counts": Sequence(COUNT, 3),
    "kept": Sequence(COUNT, 2),
    "n_partial": COUNT,
    "views": Sequence(Text(("raw", *VIEWS))),
}

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

SNAPSHOT = {
    "views": Sequence(Text(tuple(VIEWS))),
    "objectives": Sequence(Mapping(Number()), MOST_MEMBERS),
    "counts": Sequence(COUNT, 2),
}

RELATIVE = {"rows": COUNT, "unit": SIZE, "mass": SIZE}  # what weights are relative to

# The pool of generations, see tunefree.pool.saving.
TIME = Number(1, 2**62, whole=True)  # a number of rows that is doubled until it lies ahead
GENERATION = {
    "kind": Text(tuple(KINDS)),
    "rows": COUNT,
    "n_classes": Number(0, MANY_CLASSES, whole=True),
    "n_late": Number(0, MANY_CLASSES, whole=True),
    "clock": COUNT,
    "inherited": {
        "settings": dict.fromkeys(Settings._fields, Number(1.0 / 64.0, 256.0)),
        "saved": FINITE,
        "turn": COUNT,
    },
    "living": Sequence(
        {"objective": Mapping(Number()), "scalars": Optional(Mapping(Number())), "largest": Optional(SIZE)}, 8
    ),
}
CONTEXT = {
    "conformal": {
        "rows": COUNT,
        "next": TIME,
        "scores": COUNT,
        "residuals": COUNT,
        "widths": Optional({"mean": SIZE, "n_columns": Number(0, MOST_FEATURES, whole=True)}, may_be_none=True),
    },
    "frozen": {"scores": COUNT},
    "relative": RELATIVE,
}
POOL = {
    "unit": Number(1),
    "n_known": COUNT,
    "relative": RELATIVE,
    "has_groups": Flag(),
    "has_finished": Flag(),
    "only_predicts": Flag(),
    "online_places": Sequence(COUNT, MOST_MEMBERS),
    "rises": Mapping(Number()),
    "contexts": Sequence(CONTEXT, N_CONTEXTS),
    "balance": Optional({"step": Number(1, 2**62, whole=True), "shifts": Sequence(FINITE, 2)}),
    "copies": {
        "next": TIME,
        "copy": Optional(
            {
                "rows": COUNT,
                "mixtures": Number(1, N_CONTEXTS, whole=True),
                "linear": SNAPSHOT,
                "generations": Sequence({**GENERATION, "age": COUNT}, MOST_MEMBERS),
            },
            may_be_none=True,
        ),
    },
    "growth": Optional(
        {
            "keys": Sequence(Number(-(2**63), MOST_FEATURES, whole=True), MOST_COLUMNS),
            "sparse": Sequence(Flag()),
            "unseen": COUNT,
            "rows": COUNT,
            "kept": COUNT,
            "latest": COUNT,
            "most": Number(1, MOST_ROWS, whole=True),
            "kinds": Sequence(Text(TREES), len(TREES)),
            "n_ages": Number(1, len(AGES), whole=True),
            # Whether each is awake, its failures and its birth.
            "windows": Sequence(Sequence(Anything(), 3), len(LENGTHS)),
            "awake": Sequence(GENERATION, MOST_MEMBERS),
            "pending": Sequence({**GENERATION, "takeover": TIME}, MOST_MEMBERS),
        }
    ),
}


def of_state(prefix: str, cls: type[State], lengths: dict[str, Any]) -> dict[str, Array]:
    """Arrays of a state, whose names begin with a prefix, from the axes of its fields.

    Parameters
    ----------
    prefix : str
    cls : class
    lengths : dict
        The names of the lengths of axes, see :class:`tunefree.core.schema.Array`.
    """
    limits: dict[str, Any] = {}
    if issubclass(cls, Newton):  # which keeps as many features as its matrices have
        lengths = lengths | {FEATURE: SIDE}
        limits = {"waiting": {"low": 0, "below": DEPTH + 1}, "used": {"low": 0, "below": "side+1"}}
    arrays = {}
    for field in [field for field in cls.fields if field.is_saved]:
        shape = tuple(lengths.get(axis, axis) for axis in field.axes) or (1,)
        arrays[f"{prefix}.{field.name}"] = Array("float64", shape, may_be_infinite=True, **limits.get(field.name, {}))
    return arrays


def of_mixture(prefix: str) -> dict[str, Array]:
    """Arrays of a mixture (:mod:`tunefree.mixing.mixture`), whose names begin with a prefix."""
    return {
        f"{prefix}.base.rounds": Array("float64", (1,), 0),
        f"{prefix}.top.rounds": Array("float64", (1,), 0),
        f"{prefix}.base.*": Array("float64", ("m",), 0),
        f"{prefix}.top.*": Array("float64", (N_CANDIDATES,), 0),
        **of_state(f"{prefix}.corrections.0", ScInOL2, {OUTPUT: 1}),
        **of_state(f"{prefix}.corrections.1", Newton, {OUTPUT: 1}),
        f"{prefix}.*": Array("float64", may_be_infinite=True),
    }


POOL_ARRAYS = {
    "model.pool.*.keys": Array("int64", (None,)),
    "model.pool.*.observations": Array("uint64", (None,)),
    "model.pool.*.levels": Array("float64|float16", may_be_missing=True),
    "model.pool.*.candidates": Array("int64", (None,), 0),
    "model.pool.*.weights": Array("float64|float32"),
    "model.pool.*.model.sets": Array("uint64", (None, WORDS)),
    "model.pool.*.model.*": Array("float64|float32|int64|int32|uint8|bool", may_be_missing=True),
    "model.pool.*.columns": Array("float64|float32", ("n", None), may_be_infinite=True, may_be_missing=True),
    "model.pool.*.digests": Array("uint64", ("n",)),
    "model.pool.waiting.predictions": Array("float64", ("n", None, None), may_be_infinite=True, may_be_missing=True),
    "model.pool.latest": Array("int64", (2, 2), 0),
    "model.pool.*.targets": Array("float64", ("n",)),
    "model.pool.copies.predicted": Array("float64", ("n", None, None), may_be_infinite=True, may_be_missing=True),
    "model.pool.copies.numbers": Array("uint64", ("n",)),
    "model.pool.copies.contexts": Array("uint8", ("n",), 0, N_CONTEXTS),
    "model.pool.*.frozen.losses": Array("float64", (3,), 0),
    "model.pool.*.frozen.squares": Array("float64", (2,), 0),
    "model.pool.*.adaptive.latest": Array("float64", (LATEST,)),
    "model.pool.*.adaptive.ordered": Array("float64", (LATEST,)),
    "model.pool.*.adaptive.rows": Array("float64", (1,), 0),
    "model.pool.*.adaptive.levels": Array("float64", ("t", N_STEPS)),
    "model.pool.*.adaptive.weights": Array("float64", ("t", N_STEPS), 0),
    "model.pool.*.adaptive.*": Array("float64", ("t",)),
    "model.pool.balance.sums": Array("float64", (4,), 0),
    "model.pool.block": Array("float64", (2,)),
    "model.pool.turns": Array("int64", (None,), 0, 2**21),
    "model.pool.limits": Array("int32", ("b",), 0),
    "model.pool.counts": Array("int64", ("b",), 0),
    **of_mixture("model.pool.*"),
    "model.pool.*.leaves.*": Array("float64|float32|int64|int32|bool", may_be_infinite=True),
    "model.pool.*": Array("float64", may_be_infinite=True),
}

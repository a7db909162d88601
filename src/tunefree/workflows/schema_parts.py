"""Parts of what model files hold that are declared for several kinds, see :mod:`tunefree.workflows.schemas`."""

from __future__ import annotations

from typing import Any

from tunefree.core.schema import Flag, Label, Mapping, Number, Optional, Sequence, Text
from tunefree.model.pool import VIEWS as VIEWS_OF_BANKS
from tunefree.model.targets import MANY_CLASSES
from tunefree.model.views import ALL as VIEWS

MOST_FEATURES = 2**31 - 1
MOST_MEMBERS = 1000
COUNT, SIZE, FINITE = Number(0, 2**62, whole=True), Number(0), Number()
NAME, NAMES = Text(may_be_none=True), Sequence(Text())
TASK = Text(("classification", "regression"))
SEEN = ("raw", *VIEWS, *VIEWS_OF_BANKS)
CLASSES = Sequence(Label(), MANY_CLASSES)
METRICS = {"rows": COUNT, "weight": SIZE, "loss": SIZE, "errors": SIZE}
MEMBER = {"objective": Mapping(Number()), "scalars": Mapping(Number())}
SETTING = {"learner": Text(), "settings": Mapping(FINITE), "view": Text(SEEN)}
MEETINGS = {
    "first": Number(0, MOST_FEATURES, whole=True),
    "counts": Sequence(COUNT, 3),
    "n_partial": COUNT,
    "views": Sequence(Text(("raw", *VIEWS))),
}
STEPS = {"eta": SIZE, "theta": SIZE, "order": Text(("batch", "cyclic", "shuffled")), "seed": COUNT}

NONE = Text((), may_be_none=True)

COLUMNS: dict[str, dict[str, Any]] = {  # what makes a column of each kind again, beside its name
    "number": {"decimal": Optional(Text((".", ","))), "thousands": Optional(Text())},
    "category": {"numbers": Optional(Flag())},
    "boolean": {"numbers": Optional(Flag())},
    "moment": {
        "zone": Optional(NAME),
        "hours": Optional(Flag()),
        "origin": Optional(Number(-(2**62), 2**62, whole=True, may_be_none=True)),
        "format": Optional(Text()),
    },
    "time": {},
    "text": {"bits": Optional(Number(1, 30, whole=True))},  # of older versions, which is refused
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
        "hash_bits": Number(0, 30, whole=True),
        "na_values": Optional(NAMES),
        "target_notation": Optional(NAMES),
        "further": Optional(
            {
                "ignored": NAMES,
                "guesses_texts": Flag(),
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

PLAN = {
    "target": NAME,
    "task": NAME,
    **{name: Optional(Text()) for name in ("learner", "view")},
    **{name: Optional(NAME) for name in ("loss", "device", "weight", "decimal", "thousands")},
    **{name: Optional(Flag()) for name in ("average", "skip_bad_rows", "skip_unlabelled")},
    **{name: Optional(Number(1, whole=True, may_be_none=True)) for name in ("max_support", "horizon")},
    "passes": Optional(Number(1, 2**31, whole=True)),
    "hash_bits": Optional(Number(0, 30, whole=True)),
    "holdout": Optional(Number(0.0, 0.5)),
    "settings": Optional(Mapping(FINITE)),
    "shuffle": Optional(Number(0, whole=True, may_be_none=True)),
    "refit": Optional(Number(0, whole=True)),
    **{name: Optional(NAMES) for name in ("ignore", "na_values", "numeric", "categorical", "date", "class_weight")},
    **{name: Optional(Sequence(Text(), may_be_none=True)) for name in ("text", "pairs")},
}

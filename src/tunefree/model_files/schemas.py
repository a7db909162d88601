"""What model files hold: one declaration for each kind of file, see :mod:`tunefree.core.schema`.

Parts of models declare what files have of them (:mod:`tunefree.core.part`). What is beside the model is declared here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.part import arrays_of, declared_arrays
from tunefree.core.registry import Registry
from tunefree.core.rows import Block
from tunefree.core.schema import (
    COUNT,
    FINITE,
    Anything,
    Array,
    Flag,
    Label,
    Mapping,
    Number,
    Optional,
    Record,
    Sequence,
    Text,
    check_arrays,
    check_header,
)
from tunefree.learners import family_of
from tunefree.model.linear_group import LinearGroup
from tunefree.model.meetings import LOGGED
from tunefree.model.options import POOL as POOLED
from tunefree.model.passes import OF_ROW
from tunefree.model.record import FirstPassRecord
from tunefree.model.targets import MANY_CLASSES
from tunefree.model.views import ALL as VIEWS
from tunefree.model_files import relations
from tunefree.model_files.column_samples import ColumnSamples
from tunefree.model_files.progress import Progress
from tunefree.pool.members import MOST_MEMBERS
from tunefree.pool.model import restored
from tunefree.pool.pool import Pool
from tunefree.pool.single import Single
from tunefree.pool.slots import MOST_KINDS
from tunefree.theory.exchangeability import TargetSample
from tunefree.theory.rises import LossRises

MOST_FEATURES = 2**31 - 1
NAME, NAMES = Text(may_be_none=True), Sequence(Text())
TASK = Text(("classification", "regression"))
SEEN = ("raw", *VIEWS)
CLASSES = Sequence(Label(), MANY_CLASSES)
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

MODEL = {
    "task": TASK,
    "learner": Text(),
    "loss": NAME,
    "average": Flag(),
    "view": Text(),
    "settings": Mapping(FINITE),
    "replays": Flag(),
    "kinds": Optional(Sequence(Text(), MOST_KINDS)),  # of generations, beside those of this package
    "classes": CLASSES,
    "n_features": Number(2, MOST_FEATURES, whole=True),
    "config": Anything(),  # as families have it
    "member_settings": Sequence(SETTING, MOST_MEMBERS),
    **dict.fromkeys(("linear", "predictor", "record"), Anything()),  # as these parts declare them
}

# Types of labels; NumPy's strings are as long as the longest.
LABELS = {"str", "object", "bool", "float16", "float32", "float64"}
LABELS |= {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}

JOBS = {"n_jobs": Optional(Number(-(2**16), 2**16, whole=True, may_be_none=True))}

# What is known of an estimator beside its model, see tunefree.estimators.model_file.
ESTIMATOR = {
    "class": Text(),
    "parameters": JOBS,  # others are checked as rows are learned
    "fitted": Optional(
        {
            "rows": Text(("array", "matrix", "encoded")),
            "as_array": Flag(),
            "of_arrays": Flag(),
            "has_names": Flag(),
            "rounds": COUNT,
            "passes": COUNT,
            "labels": Text(LABELS, may_be_none=True),
        },
        may_be_none=True,
    ),
}

FILE = {
    "source": Text(),
    "plan": Mapping(Anything()),  # as it checks its values
    "progress": Record(Progress),
    "estimator": Optional(ESTIMATOR),
    "encoder": Anything(),  # as its source has it
}

OF_STREAM = {"order": TargetSample, "rises": LossRises, "samples": ColumnSamples}  # what is kept beside the model

HEADER = FILE | {
    "model": MODEL,
    **dict.fromkeys(OF_STREAM, Optional(Anything())),  # as these parts declare them
    "held": Optional({"file": Text(), "position": Sequence(COUNT, 3)}),
}

ENCODED = {
    "encoder.keys": Array("uint64", (None,)),
    "encoder.names": Array("uint8", (None,)),
    "encoder.name_ends": Array("int64", (None,), 0),
    "encoder.name_columns": Array("int32", (None,), -1),
    "encoder.evidence": Array("float64", (None,), 0),
    "encoder.free": Array("int64", (None,), 0),
    "encoder.name_sizes": Array("int64", (None,), 0),
    "encoder.profile.counts": Array("int64", (None,), 0),
    "encoder.profile.ranges": Array("float64", (None, 2), may_be_infinite=True),
    "encoder.profile.keys": Array("uint64", (None,)),
    "encoder.profile.values": Array("float32", (None, None), may_be_infinite=True),
}

HELD = {
    "held.rows": Array("uint8", (None,)),
    "held.forgotten": Array("int64", (None,), 0, "D"),
    **arrays_of("held.X", Block, {}),
}


class Kind(NamedTuple):
    """A kind of model in files."""

    header: dict[str, Any]  # of its files
    arrays: Callable[[dict[str, Any], dict[str, np.ndarray]], dict[str, Array]]  # by a header as declared, and arrays
    lengths: Callable[[dict[str, Any]], dict[str, int]]  # those of the whole file
    restored: Callable[[dict[str, np.ndarray], dict[str, Any]], Any]  # the model of these arrays, and the file's header
    check: Callable[[Any], None]  # raises a ModelError if the parts of a Trained that was restored do not fit together


def _arrays_of_models(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, Array]:
    """Those that the parts of a model declare."""
    model, family = header["model"], family_of(header["model"]["learner"])
    if family is not None:
        check_header(model["config"], family.config_header, "model.config")
    elif model["config"] is not None:
        raise ModelError(f"model.config: {model['learner']} has none")
    predictor = Pool if model["learner"] == POOLED else Single if family is None else family.predictor_class
    parts: dict[str, Any] = {"linear": LinearGroup, "predictor": predictor, "record": FirstPassRecord}
    declared: dict[str, Array] = {}
    for name, part in parts.items():
        declared |= declared_arrays(part, model[name], f"model.{name}")
    for name, part in OF_STREAM.items():
        declared |= declared_arrays(part, header[name], name) if name in header else {}
    if missing := sorted(declared.keys() - arrays.keys()):
        raise ModelError(f"{missing[0]} is missing")
    _check_members(model)
    return declared | HELD | ENCODED


def _lengths_of_models(header: dict[str, Any]) -> dict[str, int]:
    """Features, outputs, what a row takes in a log, rows in logs, slots, those of evidence, and occurrences."""
    model = header["model"]
    n_classes = len(model["classes"]) if model["task"] == "classification" else 0
    n_outputs = n_classes if n_classes > 2 else 1
    meetings = model["linear"]["meetings"] or {"counts": (0, 0, 0), "kept": (0, 0), "first": MOST_FEATURES}
    n_slots = meetings["counts"][0] + min(model["n_features"], meetings["first"])
    return {
        "D": model["n_features"],
        "K": n_outputs,
        "W": OF_ROW + n_outputs,
        "L": min(meetings["counts"][1], LOGGED),
        "S": n_slots,
        "E": 0 if model["predictor"].get("only_predicts", False) else n_slots,
        "O": meetings["kept"][0],
    }


def _check_members(model: dict[str, Any]) -> None:
    """Each setting has a member, whose arrays are there, so that no header asks for more memory than its file takes."""
    known = len(model["linear"]["members"]), len(model["predictor"].get("bank", {"members": []})["members"])
    others = sum(family_of(setting["learner"]) is not None for setting in model["member_settings"])
    if known != (len(model["member_settings"]) - others, others):
        raise ModelError("model.member_settings and model.linear.members differ in number")


LINEAR = Kind(HEADER, _arrays_of_models, _lengths_of_models, restored, relations.check)
KINDS = Registry("kind of model", {}, "tunefree.models")
KINDS.register("linear", LINEAR)


def check(kind: Kind, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
    """Raise a ModelError unless a file holds what files of its kind do.

    Parameters
    ----------
    kind : Kind
    arrays : dict
        By their names in the file.
    header : dict

    Raises
    ------
    ModelError
    """
    check_header(header, kind.header)
    check_header(header["encoder"], ENCODERS.get(header["source"], Anything()), "encoder")
    if header["source"] == "table":
        for number, column in enumerate(header["encoder"]["columns"]):
            check_header(column, COLUMNS[column["kind"]] | LATE, f"encoder.columns.{number}")
    check_arrays(arrays, kind.arrays(header, arrays), kind.lengths(header))

"""What model files hold: one declaration for each kind of file, see :mod:`tunefree.core.schema`.

Parts of models declare what files have of them (:mod:`tunefree.core.part`). What is beside the model is declared here.
"""

from __future__ import annotations

import re
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
    SIZE,
    Anything,
    Array,
    Flag,
    Mapping,
    Number,
    Optional,
    Sequence,
    Text,
    check_arrays,
    check_header,
)
from tunefree.learners import family_of
from tunefree.model.aggregation import Leader, Mixed
from tunefree.model.linear_group import LinearGroup
from tunefree.model.meetings import LOGGED
from tunefree.model.passes import OF_ROW
from tunefree.model.pool import POOL as POOLED
from tunefree.model.record import FirstPassRecord
from tunefree.model_files.column_samples import MOST_COLUMNS
from tunefree.model_files.schema_parts import (
    CLASSES,
    COLUMNS,
    ENCODERS,
    LATE,
    METRICS,
    MOST_FEATURES,
    NAME,
    NAMES,
    PLAN,
    SETTING,
    TASK,
)
from tunefree.pool.members import MOST_MEMBERS
from tunefree.pool.pool import Pool
from tunefree.stream.tally import MOST_REASONS
from tunefree.theory.exchangeability import TargetSample
from tunefree.theory.rises import LATEST, LossRises

MODEL = {
    "task": TASK,
    "learner": Text(),
    "loss": NAME,
    "average": Flag(),
    "view": Text(),
    "settings": Mapping(FINITE),
    "replays": Flag(),
    "classes": CLASSES,
    "n_features": Number(2, MOST_FEATURES, whole=True),
    "config": Anything(),  # these two as families have them
    "banks": Sequence(Anything(), MOST_MEMBERS),
    "member_settings": Sequence(SETTING, MOST_MEMBERS),
    **dict.fromkeys(("linear", "aggregation", "record"), Anything()),  # as these parts declare them
    "pool": Optional(Anything()),
}

REASON = {"problem": Text(), "column": Text(), "rows": COUNT, "file": Text(), "row": COUNT, "remedy": Text()}

OCCURRENCES = {
    "rows": COUNT,
    "first": Sequence(Anything(), 3),
    **{name: Optional(SIZE) for name in ("weight", "predicted")},
}

OBSERVERS: dict[str, Any] = {"order": TargetSample, "rises": LossRises}  # parts of a file that it may lack
SAMPLES = {
    "columns": Sequence(Number(-MOST_FEATURES, MOST_FEATURES, whole=True), MOST_COLUMNS + 1),
    "fills": Sequence(Number(may_be_none=True), MOST_COLUMNS + 1),
    "waiting": Sequence(dict.fromkeys(("row", "start", "stop"), COUNT), LATEST + 1),
    "is_of_classes": Flag(),
    "rows": COUNT,
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
    "plan": PLAN,
    "progress": {
        "complete": Flag(),
        "number": COUNT,
        "position": Sequence(COUNT, 3),
        "rows": COUNT,
        "progressive": Sequence(METRICS),
        "held_out": Sequence(METRICS),
        # Of estimators that were saved nothing more is known.
        **{name: Optional(COUNT) for name in ("skipped", "unlabelled")},
        **{name: Optional(Sequence(COUNT)) for name in ("sizes", "read")},
        "read_digests": Optional(NAMES),
        **{name: Optional(Sequence(REASON, MOST_REASONS + 1)) for name in ("reasons", "oddities")},
        "curve": Optional(Sequence(METRICS)),
        "occurrences": Optional(Sequence(OCCURRENCES)),
    },
    "estimator": Optional(ESTIMATOR),
    "encoder": Anything(),  # as its source has it
}

LINEAR = FILE | {
    "model": MODEL,
    **dict.fromkeys(OBSERVERS, Optional({})),
    "samples": Optional(SAMPLES),
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

MODEL_ARRAYS = {
    "model.bank#.#.calibration.*": Array("float64"),
    "model.*.waiting.y": Array("float64", ("n",)),
    "model.*.waiting.weight": Array("float64", ("n",), 0),
    "model.*.waiting.evaluation_weight": Array("float64", ("n",), 0),
    "model.*.expansion.open_coefficients": Array("float64", (None, "K", None)),
    "model.*.expansion.open_lags": Array("float64", (None, "K", None)),
    "model.*.expansion.coefficients": Array("float64", ("m", "K", "n")),
    "model.*.expansion.lags": Array("float64", ("m", "K", "n")),
    "samples.numbers": Array("int64", (None,), 0),
    "samples.values": Array("float32", (None, None), may_be_infinite=True),
    "samples.sample": Array("int64", (None,), 0),
    "samples.before.#": Array("int64", (None,), 0),
    "held.rows": Array("uint8", (None,)),
    "held.forgotten": Array("int64", (None,), 0, "D"),
    **arrays_of("held.X", Block, {}),
}


class Schema(NamedTuple):
    """What a kind of file holds."""

    header: dict[str, Any]
    arrays: Callable[[dict[str, Any], dict[str, np.ndarray]], dict[str, Array]]  # by a header as declared, and arrays
    lengths: Callable[[dict[str, Any]], dict[str, int]]  # those of the whole file
    relate: Callable[[dict[str, Any], dict[str, np.ndarray]], None]  # raises a ModelError if parts do not fit together


def _arrays_of_models(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, Array]:
    """Those that the parts of a model declare, and those of banks, whose rows and points names of arrays tell."""
    model = header["model"]
    parts: dict[str, Any] = {"linear": LinearGroup, "record": FirstPassRecord}
    parts["aggregation"] = Mixed if "mixture" in model["aggregation"] else Leader
    if model["learner"] == POOLED:
        parts["pool"] = Pool
    declared: dict[str, Array] = {}
    for name, part in parts.items():
        declared |= declared_arrays(part, model.get(name), f"model.{name}")
    for name in OBSERVERS.keys() & header.keys():
        declared |= declared_arrays(OBSERVERS[name], header[name], name)
    if missing := sorted(declared.keys() - arrays.keys()):
        raise ModelError(f"{missing[0]} is missing")
    return declared | _arrays_of_banks(model, arrays) | MODEL_ARRAYS | ENCODED


def _arrays_of_banks(model: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, Array]:
    """Those of members that are not linear, whose headers are checked as their family declares them."""
    declared: dict[str, Array] = {}
    family = family_of(model["learner"])
    if family is None:
        if model["banks"] or model["config"] is not None:
            raise ModelError(f"model.banks: {model['learner']} has none")
        return declared
    check_header(model["config"], family.config_header, "model.config")
    learners = {setting["learner"] for setting in model["member_settings"]}
    others = {learner for learner in learners if family_of(learner) is not None}
    for number, bank in enumerate(model["banks"]):
        check_header(bank, family.bank_header, f"model.banks.{number}")
        declared |= family.bank_arrays(f"model.bank{number}", bank, others, arrays)
    return declared


def _linear(model: dict[str, Any]) -> list[dict[str, Any]]:
    """The settings of linear members."""
    return [setting for setting in model["member_settings"] if family_of(setting["learner"]) is None]


def _lengths_of_models(header: dict[str, Any]) -> dict[str, int]:
    """Features, outputs, what a row takes in a log, rows in logs, slots, those of evidence, occurrences and members."""
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
        "E": 0 if model.get("pool", {}).get("only_predicts", False) else n_slots,
        "O": meetings["kept"][0],
        "N": 0 if model["learner"] == POOLED else len(model["member_settings"]),
    }


def _relate_members(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Each member that is to be made has arrays, so that no header asks for more memory than its file takes."""
    model = header["model"]
    for number, bank in enumerate(model["banks"]):
        pattern = re.compile(rf"model\.bank{number}\.(\d+)\.")
        if len({place[1] for place in map(pattern.match, arrays) if place}) != len(bank["members"]):
            raise ModelError(f"model.bank{number} has not the members that the header tells")
    n_linear = len(model["linear"]["members"])
    n_members = n_linear + sum(len(bank["members"]) for bank in model["banks"])
    if n_linear != len(_linear(model)) or n_members != len(model["member_settings"]):
        raise ModelError("model.member_settings and model.linear.members differ in number")


SCHEMAS = Registry("schema of models", {}, "tunefree.schemas")
SCHEMAS.register("linear", Schema(LINEAR, _arrays_of_models, _lengths_of_models, _relate_members))


def check(kind: str, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
    """Raise a ModelError unless a file holds what files of its kind do. Kinds of others check what they read.

    Parameters
    ----------
    kind : str
    arrays : dict
        By their names in the file.
    header : dict

    Raises
    ------
    ModelError
    """
    if kind not in SCHEMAS:
        return
    schema = SCHEMAS[kind]
    check_header(header, schema.header)
    check_header(header["encoder"], ENCODERS.get(header["source"], Anything()), "encoder")
    if header["source"] == "table":
        for number, column in enumerate(header["encoder"]["columns"]):
            check_header(column, COLUMNS[column["kind"]] | LATE, f"encoder.columns.{number}")
    declared = schema.arrays(header, arrays)
    check_arrays(arrays, declared, schema.lengths(header))
    schema.relate(header, arrays)

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
from tunefree.model.linear_group import LinearGroup
from tunefree.model.meetings import LOGGED
from tunefree.model.options import POOL as POOLED
from tunefree.model.passes import OF_ROW
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
from tunefree.pool.single import Single
from tunefree.stream.tally import MOST_REASONS
from tunefree.theory.column_changes import MOST_CHANGES
from tunefree.theory.rises import BETS, CELLS, LATEST, MOST_KEPT

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
    "config": Anything(),  # as families have it
    "member_settings": Sequence(SETTING, MOST_MEMBERS),
    **dict.fromkeys(("linear", "predictor", "record"), Anything()),  # as these parts declare them
}

REASON = {"problem": Text(), "column": Text(), "rows": COUNT, "file": Text(), "row": COUNT, "remedy": Text()}

OCCURRENCES = {
    "rows": COUNT,
    "first": Sequence(Anything(), 3),
    **{name: Optional(SIZE) for name in ("weight", "predicted")},
}

CHANGE = {
    "key": Number(-MOST_FEATURES, MOST_FEATURES, whole=True),
    "is_relation": Flag(),
    **dict.fromkeys(("distance", "error"), SIZE),
    "bin": Sequence(Anything(), 3, may_be_none=True),
    **dict.fromkeys(("before", "after"), Number(0, 1, may_be_none=True)),
}

RISES = {
    "rises": Sequence(
        {
            **dict.fromkeys(("row", "row_in_file", "rows", "rows_before"), COUNT),
            **dict.fromkeys(("loss", "loss_before"), SIZE),
            "file": Text(),
            "time": Text(may_be_none=True),
            "comparison": Optional(
                {
                    **dict.fromkeys(("rows_before", "rows_after", "columns"), COUNT),
                    "changes": Sequence(CHANGE, MOST_CHANGES),
                },
                may_be_none=True,
            ),
        },
        MOST_KEPT,
    ),
    "count": COUNT,
    "place": Sequence(Anything(), 4),
}

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
    "order": Optional({"numbers": Flag(), "rows": COUNT, "stride": Number(1, 2**62, whole=True)}),
    "rises": Optional(RISES),
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
    "order.*": Array("float64|int16", (None,)),
    "rises.counts": Array("int64", (CELLS,), 0),
    "rises.capital": Array("float64", (len(BETS),), 0),
    "rises.gain": Array("float64", (1,)),
    "rises.sums": Array("float64", (3,), 0, may_be_infinite=True),
    "rises.start": Array("float64", (4,), may_be_infinite=True),
    "rises.scale": Array("float64", (2,), 0, may_be_infinite=True),
    "rises.targets": Array("float64", (2,)),
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
    if missing := sorted(declared.keys() - arrays.keys()):
        raise ModelError(f"{missing[0]} is missing")
    return declared | MODEL_ARRAYS | ENCODED


def _linear(model: dict[str, Any]) -> list[dict[str, Any]]:
    """The settings of linear members."""
    return [setting for setting in model["member_settings"] if family_of(setting["learner"]) is None]


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


def _relate_members(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Each member that is to be made is in the file, so that no header asks for more memory than its file takes."""
    model = header["model"]
    of_bank = model["predictor"].get("bank", {}).get("members", [])
    n_linear = len(model["linear"]["members"])
    if n_linear != len(_linear(model)) or n_linear + len(of_bank) != len(model["member_settings"]):
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

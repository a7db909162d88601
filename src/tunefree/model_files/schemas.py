"""What model files hold: one declaration for each kind of file, see :mod:`tunefree.core.schema`.

A part of a model that is new needs a line here if its header or arrays matter to memory or places in it; other arrays
are finite floats.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.fields import FEATURE, OUTPUT
from tunefree.core.registry import Registry
from tunefree.core.schema import (
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
from tunefree.learners import ALL, averaged, family_of
from tunefree.model.meetings import LOGGED
from tunefree.model.passes import OF_ROW
from tunefree.model.pool import POOL as POOLED
from tunefree.model.views import ALL as VIEWS
from tunefree.model_files.column_samples import MOST_COLUMNS
from tunefree.model_files.schema_parts import (
    CLASSES,
    COLUMNS,
    COUNT,
    ENCODERS,
    FINITE,
    LATE,
    LINEAR_MEMBER,
    MEETINGS,
    METRICS,
    MOST_FEATURES,
    MOST_MEMBERS,
    NAME,
    NAMES,
    PLAN,
    POOL,
    POOL_ARRAYS,
    RELATIVE,
    SETTING,
    SIZE,
    TASK,
    of_mixture,
    of_state,
)
from tunefree.pool.model import FEWEST_FEATURES
from tunefree.stream.tally import MOST_REASONS
from tunefree.theory.column_changes import MOST_CHANGES
from tunefree.theory.evidence import Evidence
from tunefree.theory.rises import BETS, CELLS, LATEST, MOST_KEPT

MODEL = {
    "pool": Optional(POOL),
    "task": TASK,
    "learner": Text(),
    "loss": NAME,
    "average": Flag(),
    "view": Text(),
    "settings": Mapping(FINITE),
    "replays": Flag(),
    "meetings": Optional(MEETINGS),
    "steepest": Optional(SIZE),
    "over": Optional(Flag()),
    "classes": CLASSES,
    "n_features": Number(2, MOST_FEATURES, whole=True),
    "config": Anything(),  # these two as families have them
    "banks": Sequence(Anything(), MOST_MEMBERS),
    "member_settings": Sequence(SETTING, MOST_MEMBERS),
    # Of a leader what is no array of its calibration, of a mixture what weights are relative to.
    "aggregation": {"scalars": Optional(Mapping(Number())), "relative": Optional(RELATIVE)},
    "members": Sequence(LINEAR_MEMBER, MOST_MEMBERS),
    "views": Sequence(Text(tuple(VIEWS))),
    "risks": Mapping({"ceiling": Number(5e-324), "rows": COUNT, "total": SIZE, "spread": SIZE}),
    "targets": Optional({"weight": SIZE, "total": FINITE}),
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

WORDS = {
    "pointers": Array("int64", ("n+1",), ascends_to="e"),
    "features": Array("int32", ("e",), 0, "D"),
    "values": Array("float64", ("e",)),
}
BLOCK = {
    "numbers": Array("float64", ("n", "p")),
    "columns": Array("int32", ("p",), 0, "D"),
    "codes": Array("int32", ("n", "q"), 0, "D"),
    "code_columns": Array("int32", ("q",), 0),
    **WORDS,
    "constant": Array("float64", ()),
    "is_table": Array("bool", ()),
    "late": Array("int32", (None,), 0, "D"),
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

_ANY = "float64|float32|int64|int32|bool"  # of the states of learners, which are numbers to all others
MODEL_ARRAYS = {
    **POOL_ARRAYS,
    "model.#.weights": Array("float32", ("w", "K")),  # of a member that only predicts
    "model.#.units": Array("float64", ("w",), 0),
    "model.#.log": Array("float64", ("L", "W")),
    "model.log": Array("float64", (None, "K")),
    "model.meetings.slot_of": Array("int32", ("m",), -1, "S"),
    "model.meetings.kept.features": Array("int32", ("O",), 0, "D"),
    "model.meetings.kept.rows": Array("int32", (None,), 0),
    "model.meetings.kept.values.*": Array("float64", ("O",)),
    "model.*.learner.*": Array(_ANY, may_be_infinite=True),
    **of_state("model.evidence", Evidence, {FEATURE: "E", OUTPUT: "K"}),
    **of_mixture("model.aggregation.mixture"),
    "model.aggregation.losses": Array("float64", ("N",), 0, may_be_infinite=True),
    "model.aggregation.calibration.*": Array("float64"),
    "model.*.waiting.y": Array("float64", ("n",)),
    "model.*.waiting.weight": Array("float64", ("n",), 0),
    "model.*.waiting.evaluation_weight": Array("float64", ("n",), 0),
    "model.*.expansion.open_coefficients": Array("float64", (None, "K", None)),
    "model.*.expansion.open_lags": Array("float64", (None, "K", None)),
    "model.*.expansion.coefficients": Array("float64", ("m", "K", "n")),
    "model.*.expansion.lags": Array("float64", ("m", "K", "n")),
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
    **{f"held.X.{name}": array for name, array in BLOCK.items()},
}


class Schema(NamedTuple):
    """What a kind of file holds."""

    header: dict[str, Any]
    arrays: Callable[[dict[str, Any], dict[str, np.ndarray]], dict[str, Array]]  # by a header as declared, and arrays
    lengths: Callable[[dict[str, Any]], dict[str, int]]  # those of the whole file
    relate: Callable[[dict[str, Any], dict[str, np.ndarray]], None]  # raises a ModelError if parts do not fit together


def _arrays_of_models(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, Array]:
    """Those of a model whose banks have the rows and points that its header, and the names of arrays, tell."""
    declared = _arrays_of_banks(header["model"], arrays)
    if "balance" in header["model"].get("pool", {}):
        declared |= {f"model.pool.balance.X.{name}": array for name, array in BLOCK.items()}
    return declared | _arrays_of_learners(header["model"]) | MODEL_ARRAYS | ENCODED


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


def _arrays_of_learners(model: dict[str, Any]) -> dict[str, Array]:
    """The fields that linear learners declare."""
    declared: dict[str, Array] = {}
    for number, setting in enumerate(_linear(model)):
        cls = averaged(ALL[setting["learner"]]) if model["average"] else ALL[setting["learner"]]
        declared |= of_state(f"model.{number}.learner", cls, {FEATURE: "S", OUTPUT: "K"})
    return declared


def _linear(model: dict[str, Any]) -> list[dict[str, Any]]:
    """The settings of linear members."""
    return [setting for setting in model["member_settings"] if family_of(setting["learner"]) is None]


def _lengths_of_models(header: dict[str, Any]) -> dict[str, int]:
    model = header["model"]
    lengths = {"D": model["n_features"]} | _lengths(model)
    lengths["S"] += min(model["n_features"], model.get("meetings", {}).get("first", MOST_FEATURES))
    only_predicts = model.get("pool", {}).get("only_predicts", False)
    lengths["E"] = FEWEST_FEATURES if only_predicts else lengths["S"]
    lengths["N"] = 0 if model["learner"] == POOLED else len(model["member_settings"])
    return lengths


def _lengths(saved: dict[str, Any]) -> dict[str, int]:
    """Outputs, what a row takes in a log, rows in logs, slots beyond the first, occurrences."""
    n_classes = len(saved["classes"]) if saved["task"] == "classification" else 0
    n_outputs = n_classes if n_classes > 2 else 1
    slots, rows, _ = saved.get("meetings", {}).get("counts", (0, 0, 0))
    n_kept = saved.get("meetings", {}).get("kept", (0, 0))[0]
    return {"K": n_outputs, "W": OF_ROW + n_outputs, "L": min(rows, LOGGED), "S": slots, "O": n_kept}


def _relate_members(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Each member that is to be made has arrays, so that no header asks for more memory than its file takes."""
    model = header["model"]
    linear = _linear(model)
    groups = [("model", model["members"])]
    groups += [(f"model.bank{number}", bank["members"]) for number, bank in enumerate(model["banks"])]
    for prefix, members in groups:
        pattern = re.compile(rf"{re.escape(prefix)}\.(\d+)\.")
        if len({place[1] for place in map(pattern.match, arrays) if place}) != len(members):
            raise ModelError(f"{prefix} has not the members that the header tells")
    if len(linear) != len(model["members"]) or sum(len(of_group) for _, of_group in groups) != len(
        model["member_settings"]
    ):
        raise ModelError("model.member_settings and model.members differ in number")
    if "model.evidence.inverse" not in arrays:
        raise ModelError("model.evidence.inverse is missing")


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
    check_arrays(arrays, schema.arrays(header, arrays), schema.lengths(header))
    schema.relate(header, arrays)

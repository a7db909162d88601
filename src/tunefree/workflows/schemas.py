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
from tunefree.core.rows import Dense, Sparse, Table
from tunefree.core.schema import (
    FLOATS,
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
from tunefree.kernel.nystroem import N_LANDMARKS
from tunefree.kernel.projection import TILE
from tunefree.learners.newton import DEPTH
from tunefree.model.decay import AGES
from tunefree.model.meetings import LOGGED
from tunefree.model.members import Setting
from tunefree.model.passes import OF_ROW
from tunefree.model.pool import waits
from tunefree.model.targets import MANY_CLASSES
from tunefree.model.views import ALL as VIEWS
from tunefree.stream.tally import MOST_REASONS
from tunefree.workflows.schema_parts import (
    CLASSES,
    COLUMNS,
    COUNT,
    ENCODERS,
    FINITE,
    LATE,
    MEETINGS,
    MEMBER,
    METRICS,
    MOST_FEATURES,
    MOST_MEMBERS,
    NAME,
    NAMES,
    NONE,
    PLAN,
    POOL,
    POOL_ARRAYS,
    SETTING,
    SIZE,
    SNAPSHOT,
    STEPS,
    TASK,
)

BANK = {
    "gamma": SIZE,
    "frozen": Flag(),
    "n_columns": Number(0, MOST_FEATURES, whole=True, may_be_none=True),
    "members": Sequence(MEMBER, MOST_MEMBERS),
    "waiting": Optional(Text(("Dense", "Sparse", "Table"))),
    "rows": Optional(COUNT),
    "switched": Optional(Number(0, whole=True, may_be_none=True)),
    "rounds": Optional(COUNT),
    "pays": Optional(Flag()),
    "screens": Optional(Flag()),
    "features": Optional(
        {
            "n_features": Number(1, MOST_FEATURES, whole=True),
            "n_outputs": Number(1, MANY_CLASSES, whole=True),
            "pair_entries": Optional(Number(1, 2**31, whole=True)),
            "sample": {"stride": Number(1, 2**62, whole=True), "seen": COUNT},
        }
    ),
}

MODEL = {
    "pool": Optional(POOL),
    "task": TASK,
    "learner": Text(),
    "loss": NAME,
    "average": Flag(),
    "view": Text(),
    "settings": Mapping(FINITE),
    "may_prune": Optional(Flag()),
    "replays": Optional(Flag()),
    "meetings": Optional(MEETINGS),
    "steepest": Optional(SIZE),
    "over": Optional(Flag()),
    "pairs": Optional(Sequence(Sequence(Number(-(2**31), 2**31, whole=True), 2), may_be_none=True)),
    "classes": CLASSES,
    "n_features": Number(2, MOST_FEATURES, whole=True),
    "history": Optional(
        Sequence({"rows": COUNT, "shares": Mapping(Number(0.0, 1.001)), "losses": Optional(Mapping(SIZE))})
    ),
    "kernel_config": {
        "name": Text(),
        "gamma": SIZE,
        "degree": Number(1, 100, whole=True),
        "constant": FINITE,
        "double": Flag(),
        "device": Optional(NAME),
        "max_support": Optional(Number(1, 2**31, whole=True, may_be_none=True)),
    },
    "metrics": METRICS,
    "member_settings": Sequence(SETTING, MOST_MEMBERS),
    "scalars": Mapping(Number()),
    "members": Sequence(MEMBER, MOST_MEMBERS),
    "views": Sequence(Text(tuple(VIEWS))),
    "banks": Optional(Sequence(BANK, MOST_MEMBERS)),
    "risks": Mapping({"ceiling": Number(5e-324), "rows": COUNT, "total": SIZE, "spread": SIZE}),
    "targets": Optional({"weight": SIZE, "total": FINITE}),
    "deployment": Optional(
        {
            **dict.fromkeys(("rows", "captured", "copied"), COUNT),
            "reach": Number(0, MOST_FEATURES, whole=True),
            "work": SIZE,
            "averages": Number(0, MOST_MEMBERS, whole=True),
            "copies": Sequence(
                {
                    "temperature": SIZE,
                    "record": COUNT,
                    "snapshot": SNAPSHOT,
                },
                8,
            ),
        }
    ),
}

REASON = {"problem": Text(), "column": Text(), "rows": COUNT, "file": Text(), "row": COUNT}

LINEAR = {
    "source": Text(),
    "plan": PLAN,
    "progress": {
        "complete": Flag(),
        "number": COUNT,
        "position": Sequence(COUNT, 3),
        "rows": COUNT,
        "skipped": Optional(COUNT),
        "unlabelled": Optional(COUNT),
        "reasons": Optional(Sequence(REASON, MOST_REASONS + 1)),
        "sizes": Optional(Sequence(COUNT)),
        "digests": Optional(NAMES),
        "times": Optional(Sequence(COUNT)),
        "read": Optional(Sequence(COUNT)),
        "read_digests": Optional(NAMES),
        "progressive": Sequence(METRICS),
        "held_out": Sequence(METRICS),
        "curve": Optional(Sequence(METRICS)),
        "refit": Optional({"rows": COUNT, "before": SIZE, "standing": SIZE}, may_be_none=True),
    },
    "model": MODEL,
    "order": Optional({"numbers": Flag(), "rows": COUNT, "stride": Number(1, 2**62, whole=True)}),
    "encoder": Anything(),  # as its source has it
}

PATH = {
    "source": Text(),
    "plan": PLAN,
    "rows": COUNT,
    "skipped": COUNT,
    "model": {"task": TASK, "classes": CLASSES, "is_dense": Optional(Flag())},
    "estimator": {
        "estimator": Text(),
        "parameters": {"transformer": Optional(NONE), "memory_limit": Optional(SIZE), "device": Optional(NAME)},
        "descent": {"schedule": STEPS, "stride": Number(1, 2**31, whole=True)},
        "kernel": Anything(),
        "plain": {
            "n_features_in_": Number(1, MOST_FEATURES, whole=True),
            "n_iter_": Number(1, 2**31, whole=True),
            "_mass": SIZE,
            "_kappa": SIZE,
        },
        "units": Mapping(FINITE),
        "classes": Anything(),
    },
    "encoder": Anything(),
}

ROWS = {  # what a block of rows of each kind is made of
    Dense: {"values": Array("float64", ("n", "d"))},
    Sparse: {
        "pointers": Array("int64", ("n+1",), ascends_to="e"),
        "features": Array("int32", ("e",), 0, "D"),
        "values": Array("float64", ("e",)),
    },
    Table: {
        "numbers": Array("float64", ("n", "p")),
        "columns": Array("int32", ("p",), 0, "D"),
        "codes": Array("int32", ("n", "q"), 0, "D"),
        "pointers": Array("int64", ("n+1",), ascends_to="e"),
        "features": Array("int32", ("e",), 0, "D"),
        "values": Array("float64", ("e",)),
        "code_columns": Array("int32", ("q",), 0),
    },
}


def _rows(prefix: str, kind: type) -> dict[str, Array]:
    return {f"{prefix}.{name}": own for name, own in ROWS[kind].items()} | {f"{prefix}.constant": Array("float64", ())}


def _points(prefix: str, are_sparse: bool) -> dict[str, Array]:
    """Points of a kernel: sparse ones are rows in single or double precision."""
    if not are_sparse:
        return {f"{prefix}.values": Array(FLOATS, ("n", "d")), f"{prefix}.norms": Array(FLOATS, ("n",))}
    of_rows = {f"{prefix}.{name}": own for name, own in ROWS[Sparse].items()}
    return of_rows | {f"{prefix}.values": Array(FLOATS, ("e",)), f"{prefix}.norms": Array(FLOATS, ("n",))}


ENCODED = {
    "encoder.keys": Array("uint64", (None,)),
    "encoder.names": Array("uint8", (None,)),
    "encoder.name_ends": Array("int64", (None,), 0),
    "encoder.name_columns": Array("int32", (None,), 0),
    "encoder.name_sizes": Array("int64", (None,), 0),
}

_ANY = "float64|float32|int64|int32|bool"  # of the states of learners, which are numbers to all others
_STATE = {
    "learner.waiting": Array(FLOATS, (), 0, DEPTH + 1),
    "learner.covariance": Array(FLOATS, ("K", "u", "u")),
    "learner.used": Array(FLOATS, (), 0, "u+1"),
}
MODEL_ARRAYS = {
    **POOL_ARRAYS,
    **{f"model.*.{name}": own for name, own in _STATE.items()},
    "model.#.learner.weights": Array("float64", ("S", "K")),
    "model.#.learner.units": Array("float64", ("S",), 0),
    "model.#.learner.features.*": Array(_ANY, ("S",), may_be_infinite=True),
    "model.#.learner.coordinates.*": Array(_ANY, ("S", "K"), may_be_infinite=True),
    "model.#.log": Array("float64", ("L", "W")),
    "model.log": Array("float64", (None, "K")),
    "model.meetings.slot_of": Array("int32", ("m",), -1, "S"),
    "model.meetings.serials": Array("int64", ("m",), 0),
    "model.meetings.values.*": Array("float64", ("m",)),
    "model.*.learner.*": Array(_ANY, may_be_infinite=True),
    "model.evidence.features.*": Array("float64", ("S",), 0),
    "model.evidence.coordinates.*": Array("float64", ("S", "K")),
    "model.evidence.inner": Array("float64", (), may_be_infinite=True),
    "model.of_curves.coordinates.*": Array("float64", (None, "K")),
    "model.of_curves.inner": Array("float64", (), may_be_infinite=True),
    "model.mixture.shares": Array("float64", ("N",), 0, 1.001),
    "model.mixture.means": Array("float64", ("N",), 0, 1.001),
    "model.mixture.losses": Array("float64", ("N",), 0, may_be_infinite=True),
    "model.mixture.rate": Array("float64", (), 0, may_be_infinite=True),
    "model.mixture.rounds": Array("float64", (), 0),
    "model.mixture.*est": Array("float64", (), may_be_infinite=True),
    "model.*.waiting.y": Array("float64", ("n",)),
    "model.*.waiting.weight": Array("float64", ("n",), 0),
    "model.*.waiting.evaluation_weight": Array("float64", ("n",), 0),
    "model.*.landmarks.landmarks": Array("float64", (N_LANDMARKS // TILE, None, TILE)),
    "model.*.landmarks.axes": Array("float64", (N_LANDMARKS // TILE, 1 + N_LANDMARKS, TILE)),
    "model.*.landmarks.squares": Array("float64", (N_LANDMARKS,), 0, may_be_infinite=True),
    "model.*.landmarks.gamma": Array("float64", (), 0),
    "model.*.landmarks.limit": Array("int64", (), 1),
    "model.*.expansion.open_coefficients": Array("float64", (None, "K", None)),
    "model.*.expansion.open_lags": Array("float64", (None, "K", None)),
    "model.*.expansion.coefficients": Array("float64", ("m", "K", "n")),
    "model.*.expansion.lags": Array("float64", ("m", "K", "n")),
    "model.*.features.place_of": Array("int32", (None,), 0),
    "model.*.features.cell_of": Array("int32", (None,), 0),
    "model.*.features.knots.counts": Array("int64", (None,), 0),
    "model.*.features.knots.levels": Array("int64", ("n",), 0),
    "model.*.features.knots.features": Array("int64", ("n",), 0),
    "model.*.features.knots.values": Array("float64", ("n",)),
    "model.*.features.sources.sizes": Array("int64", ("s",), 1, 2**31),
    "model.*.features.sources.most": Array("int64", ("s",), 1, 3),
    "model.*.features.sources.code_columns": Array("int64", ("c",), 0),
    "model.*.features.sources.n_frequent": Array("int64", ("c",), 0, 2**31),
    "model.*.features.pairs.*": Array("int64", ("n",), 0),
    "model.*.screening.first": Array("int64", ("n",), 0),
    "model.*.screening.second": Array("int64", ("n",), 0),
    "model.deployment.rule.shares": Array("float64", ("c",), 0, 1.001),
    "model.deployment.rule.means": Array("float64", ("c",), 0, 1.001),
    "model.deployment.rule.prior": Array("float64", ("c",), 0, 1.001),
    "model.deployment.rule.losses": Array("float64", ("c",), may_be_infinite=True),
    "model.deployment.rule.weights": Array("float64", ("c",), 0),
    "model.deployment.rule.rates": Array("float64", ("c",), 0),
    "model.deployment.rule.squares": Array("float64", ("c",), 0),
    "model.deployment.rule.costs": Array("float64", ("c",), 0),
    "model.deployment.rule.*": Array("float64"),
    "model.deployment.decay.copies": Array("int64", (None, 2), 0),
    "model.deployment.decay.sums": Array("float64", (None, AGES, 3)),
    "model.deployment.decay.way": Array("float64", (None, 2), 0),
    "model.deployment.averages.#.weights": Array("float64", ("n", "K")),
    "model.deployment.averages.#.units": Array("float64", ("n",), 0),
    "model.deployment.copies.#.mixture": Array("float64", ("N",), 0, 1.001),
    "model.deployment.copies.#.shares": Array("float64", (None,), 0, 1.001),
    "model.deployment.copies.#.range": Array("float64", (2,), may_be_infinite=True),
    "model.deployment.copies.*.candidates": Array("int64", (None,), 0),
    "model.deployment.copies.*.weights": Array("float64", ("n", None)),
    "model.deployment.copies.*.units": Array("float64", ("n",), 0),
    "order.*": Array("float64|int16", (None,)),
}

PATH_ARRAYS = {
    "estimator.*.indices": Array("int32|int64", ("e",), 0),
    "estimator.*.pointers": Array("int32|int64", (None,), ascends_to="e"),
    "estimator.*.data": Array(FLOATS, ("e",)),
    "estimator.*.shape": Array("int64", (2,), 0),
    "estimator.standards.unit": Array("float64", ("d",), 5e-324),
    "estimator.standards.centre": Array("float64", ("d",)),
    "estimator.standards.spread": Array("float64", ("d",), 5e-324),
    "estimator.descent.t": Array("int64", ("k",), 1),
    "estimator.descent.mass": Array("float64", ("k",), 0),
    "estimator.descent.coefficients": Array(FLOATS, ("k", "p", "o")),
    "estimator.descent.sums": Array(FLOATS, ("k", "p", "o")),
    "estimator.descent.y": Array(FLOATS, ("n",)),
    "estimator.descent.weight": Array(FLOATS, ("n",), 0),
    "estimator.descent.path.iteration": Array("int64", ("n",), 1),
    "estimator.descent.path.*": Array("float64", ("n",), may_be_infinite=True),
    "estimator.*": Array("float64|float32|int64"),
}


PREDICTION = {
    "source": Text(),
    "plan": PLAN,
    "weights": {
        "task": TASK,
        "classes": CLASSES,
        "loss": NAME,
        "temperature": SIZE,
        "range": Sequence(Number(may_be_none=True), 2),
        "views": Sequence(Text(tuple(VIEWS))),
        "meetings": Optional(MEETINGS),
        "stacks": Sequence(
            {
                "view": Text(("raw", *VIEWS)),
                "objectives": Sequence(Mapping(Number()), MOST_MEMBERS),
                "members": Optional(Sequence(SETTING, MOST_MEMBERS)),
            },
            MOST_MEMBERS,
        ),
    },
    "encoder": Anything(),  # as its source has it
}
PREDICTION_ARRAYS = {
    "weights.#.weights": Array("float32|int8", ("n", None)),
    "weights.#.units": Array("float64", ("n",), 0),
    "weights.#.shares": Array("float64", (None,), 0, 1.001),
    "weights.#.log.#": Array("float32", ("L", "W")),
    "weights.meetings.slot_of": Array("int32", ("m",), -1),
    "weights.meetings.serials": Array("int64", ("m",), 0),
    "weights.meetings.values.*": Array("float32", ("m",)),
}


class Schema(NamedTuple):
    """What a kind of file holds."""

    header: dict[str, Any]
    arrays: Callable[[dict[str, Any], dict[str, np.ndarray]], dict[str, Array]]  # by a header as declared, and arrays
    lengths: Callable[[dict[str, Any]], dict[str, int]]  # those of the whole file
    relate: Callable[[dict[str, Any], dict[str, np.ndarray]], None]  # raises a ModelError if parts do not fit together


def _arrays_of_models(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, Array]:
    """Those of a model whose banks have the rows and points that its header, and the names of arrays, tell."""
    found: dict[str, Array] = {}
    for number, bank in enumerate(header["model"].get("banks", [])):
        own = f"model.bank{number}"
        if "waiting" in bank:
            kinds = {kind.__name__: kind for kind in ROWS}
            found |= _rows(f"{own}.waiting.X", kinds[bank["waiting"]])
        if "features" in bank:
            found[f"{own}.#.learner.weights"] = Array("float64", (f"B{number}", "K"))
            found[f"{own}.#.learner.units"] = Array("float64", (f"B{number}",), 0)
            found[f"{own}.#.learner.coordinates.*"] = Array(_ANY, (f"B{number}", "K"), may_be_infinite=True)
        found |= _rows(f"{own}.features.sample.rows", Table)
        for points in (f"{own}.expansion.support", f"{own}.expansion.open"):
            found |= _points(points, f"{points}.pointers" in arrays)
    return found | MODEL_ARRAYS | ENCODED


def _lengths_of_models(header: dict[str, Any]) -> dict[str, int]:
    model = header["model"]
    lengths = {"D": model["n_features"], "N": len(model["member_settings"])} | _lengths(model)
    lengths["S"] = lengths.get("S", 0) + min(model["n_features"], model.get("meetings", {}).get("first", MOST_FEATURES))
    banks = enumerate(model.get("banks", []))
    return lengths | {f"B{number}": bank["features"]["n_features"] for number, bank in banks if "features" in bank}


def _lengths_of_weights(header: dict[str, Any]) -> dict[str, int]:
    return _lengths(header["weights"])


def _lengths(saved: dict[str, Any]) -> dict[str, int]:
    """Outputs, what a row takes in a log, rows in logs, and slots beyond the first."""
    n_classes = len(saved["classes"]) if saved["task"] == "classification" else 0
    n_outputs = n_classes if n_classes > 2 else 1
    slots, rows, _ = saved.get("meetings", {}).get("counts", (0, 0, 0))
    return {"K": n_outputs, "W": OF_ROW + n_outputs, "L": min(rows, LOGGED), "S": slots}


def _relate_members(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Each member that is to be made has arrays, so that no header asks for more memory than its file takes."""
    model = header["model"]
    linear = [own for own in model["member_settings"] if not waits(Setting(**own))]
    groups = [("model", model["members"])]
    groups += [(f"model.bank{number}", bank["members"]) for number, bank in enumerate(model.get("banks", []))]
    for prefix, members in groups:
        pattern = re.compile(rf"{re.escape(prefix)}\.(\d+)\.")
        if len({found[1] for found in map(pattern.match, arrays) if found}) != len(members):
            raise ModelError(f"{prefix} has not the members that the header tells")
    if len(linear) != len(model["members"]) or sum(len(own) for _, own in groups) != len(model["member_settings"]):
        raise ModelError("model.member_settings and model.members differ in number")
    if "model.evidence.features.inverse" not in arrays:
        raise ModelError("model.evidence.features.inverse is missing")


def _relate_path(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Sparse rows have as many columns, and pointers, as their shape tells."""
    for name in arrays:
        if name.endswith(".shape"):
            prefix, (n, d) = name.removesuffix(".shape"), arrays[name].tolist()
            indices, pointers = (arrays.get(f"{prefix}.{part}", np.zeros(0)) for part in ("indices", "pointers"))
            if len(pointers) != n + 1 or indices.max(initial=-1) >= d:
                raise ModelError(f"{name} is not that of the rows")


def _relate_weights(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Each stack has the weights of its members, which have a share, in a view that is there."""
    saved = header["weights"]
    n_outputs = len(saved["classes"]) if saved["task"] == "classification" and len(saved["classes"]) > 2 else 1
    total = 0.0
    for s, stack in enumerate(saved["stacks"]):
        own = [arrays.get(f"weights.{s}.{name}", np.zeros((0, 0))) for name in ("weights", "units", "shares")]
        n_members, total = len(stack["objectives"]), total + own[2].sum()
        if own[0].shape[1] != n_members * n_outputs or own[2].shape != (n_members,) or not n_members:
            raise ModelError(f"weights.{s} has not the weights of its members")
        if stack["view"] not in ("raw", *saved["views"]):
            raise ModelError(f"weights.{s} is on a view that is not there")
    if not total > 0.0 or len(saved["range"]) != 2:
        raise ModelError("the weights have no shares in predictions")


SCHEMAS = {
    "prediction": Schema(
        PREDICTION, lambda header, arrays: PREDICTION_ARRAYS | ENCODED, _lengths_of_weights, _relate_weights
    ),
    "linear": Schema(LINEAR, _arrays_of_models, _lengths_of_models, _relate_members),
    "path": Schema(PATH, lambda header, arrays: PATH_ARRAYS | ENCODED, lambda header: {}, _relate_path),
}


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

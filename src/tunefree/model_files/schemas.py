"""Contents of model files: one declaration for each kind of file, see :mod:`tunefree.core.schema`.

Parts of models declare their arrays (:mod:`tunefree.core.part`). This module declares all else in a file, and checks
relations between parts that compiled code or predictions rely on. Each part is checked before an object is created from
it, and the parts are checked together before a model is returned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import schema
from tunefree.core.errors import ModelError
from tunefree.core.part import declared_arrays
from tunefree.core.registry import Registry
from tunefree.core.rows import Block, n_rows
from tunefree.core.schema import COUNT, FROM_ZERO, Anything, Array, Flag, Number, Optional, Sequence, Text, check_header
from tunefree.generations.leaves import FrozenLeaves
from tunefree.learners import POOL, family_of
from tunefree.model_files.column_samples import ColumnSamples
from tunefree.model_files.progress import Progress
from tunefree.pool.contexts import N_CHOICES, N_CONTEXTS
from tunefree.pool.first_pass import FirstPassRecord
from tunefree.pool.linear_group import LinearGroup
from tunefree.pool.members import MOST_MEMBERS
from tunefree.pool.model import restored
from tunefree.pool.occurrences import LOGGED
from tunefree.pool.passes import OF_ROW
from tunefree.pool.pool import Pool
from tunefree.pool.single import Single
from tunefree.pool.slots import LINEAR as LINEAR_KIND
from tunefree.pool.slots import MOST_KINDS, TREES, WHOLE, kinds_in
from tunefree.pool.targets import MANY_CLASSES
from tunefree.pool.views import NAMES as VIEWS
from tunefree.pool.windows import LENGTHS
from tunefree.theory.exchangeability import TargetSample
from tunefree.theory.rises import LossRises

MOST_FEATURES = 2**31 - 1
NAME, NAMES = Text(may_be_none=True), Sequence(Text())
TASK = Text(("classification", "regression"))
CLASSES = Sequence(schema.Label(), MANY_CLASSES)
SETTING = {"learner": Text(), "settings": schema.Mapping(schema.FINITE), "view": Text(VIEWS)}

MODEL = {
    "task": TASK,
    "learner": Text(),
    "loss": NAME,
    "average": Flag(),
    "view": Text(),
    "settings": schema.Mapping(schema.FINITE),
    "replays": Flag(),
    "kinds": Optional(Sequence(Text(), MOST_KINDS)),  # of generations, in addition to the kinds of this package
    "monotone": Optional(
        Sequence({"name": Text(), "feature": Number(1, MOST_FEATURES, whole=True), "sign": Number(-1, 1, whole=True)})
    ),
    "classes": CLASSES,
    "n_features": Number(2, MOST_FEATURES, whole=True),
    "config": Anything(),  # declared by families
    "member_settings": Sequence(SETTING, MOST_MEMBERS),
    **dict.fromkeys(("linear", "predictor", "record"), Anything()),  # declared by these parts
}

# NumPy types of labels; the length of strings is not part of the name.
LABELS = {"str", "object", "bool", "float16", "float32", "float64"}
LABELS |= {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}

JOBS = {"n_jobs": Optional(Number(-(2**16), 2**16, whole=True, may_be_none=True))}

# State of an estimator in addition to its model, see tunefree.estimators.model_file.
ESTIMATOR = {
    "class": Text(),
    "parameters": JOBS,  # other parameters are checked when rows are learned
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
    "plan": schema.Mapping(Anything()),  # Plan checks its values
    "progress": schema.Record(Progress),
    "estimator": Optional(ESTIMATOR),
    "encoder": Anything(),  # checked by the encoder class of the source
}

OF_STREAM = {"order": TargetSample, "rises": LossRises, "samples": ColumnSamples}  # parts beside the model

HEADER = FILE | {
    "model": MODEL,
    **dict.fromkeys(OF_STREAM, Optional(Anything())),  # declared by these parts
    "held": Optional({"file": Text(), "position": Sequence(COUNT, 3)}),
}

ENCODED = {
    "encoder.keys": Array("uint64", (None,)),
    "encoder.names": Array("uint8", (None,)),
    "encoder.name_ends": Array("int64", (None,), FROM_ZERO),
    "encoder.name_columns": Array("int32", (None,), schema.Limits(-1)),
    "encoder.evidence": Array("float64", (None,), FROM_ZERO),
    "encoder.free": Array("int64", (None,), FROM_ZERO),
    "encoder.name_sizes": Array("int64", (None,), FROM_ZERO),
    "encoder.profile.counts": Array("int64", (None,), FROM_ZERO),
    "encoder.profile.ranges": Array("float64", (None, 2), schema.INFINITE),
    "encoder.profile.keys": Array("uint64", (None,)),
    "encoder.profile.values": Array("float32", (None, None), schema.INFINITE),
}

HELD = {
    "held.rows": Array("uint8", (None,)),
    "held.forgotten": Array("int64", (None,), schema.Limits(0, "D")),
    **declared_arrays(Block, {}, "held.X", {"p": "P"}),
}


class Kind(NamedTuple):
    """A kind of model file."""

    header: dict[str, Any]  # declaration of the header
    # (checked header, arrays): declarations of the arrays, and lengths of axes that are common to the file
    declared: Callable[[dict[str, Any], dict[str, np.ndarray]], tuple[dict[str, Array], dict[str, int]]]
    restored: Callable[[dict[str, np.ndarray], dict[str, Any]], Any]  # (arrays, header of the file) -> model
    check: Callable[[Any], None]  # raises a ModelError if the parts of a restored Trained do not fit together


def _declared(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> tuple[dict[str, Array], dict[str, int]]:
    """Declarations of the arrays of a model file by name, and lengths of axes.

    The axes are D features, K outputs, W numbers of a logged row, L rows in logs, S and E slots, and O occurrences. The
    arrays determine the length of P, the dense columns.
    """
    model, family = header["model"], family_of(header["model"]["learner"])
    if family is not None:
        check_header(model["config"], family.config_header, "model.config")
    elif model["config"] is not None:
        raise ModelError(f"model.config: {model['learner']} has none")
    predictor = Pool if model["learner"] == POOL else Single if family is None else family.predictor_class
    parts: dict[str, Any] = {"linear": LinearGroup, "predictor": predictor, "record": FirstPassRecord}
    declared: dict[str, Array] = {}
    for name, part in parts.items():
        declared |= declared_arrays(part, model[name], f"model.{name}")
    for name, part in OF_STREAM.items():
        declared |= declared_arrays(part, header[name], name) if name in header else {}
    if missing := sorted(declared.keys() - arrays.keys()):
        raise ModelError(f"{missing[0]} is missing")
    # Each setting must have a member with arrays in the file, so that no header allocates more memory than its file.
    known = len(model["linear"]["members"]), len(model["predictor"].get("bank", {"members": []})["members"])
    others = sum(family_of(setting["learner"]) is not None for setting in model["member_settings"])
    if known != (len(model["member_settings"]) - others, others):
        raise ModelError("model.member_settings and model.linear.members differ in number")
    n_classes = len(model["classes"]) if model["task"] == "classification" else 0
    n_outputs = n_classes if n_classes > 2 else 1
    meetings = model["linear"]["meetings"] or {"n_given": 0, "n_logged": 0, "n_kept": 0, "first": MOST_FEATURES}
    n_slots = meetings["n_given"] + min(model["n_features"], meetings["first"])
    lengths = {
        "D": model["n_features"],
        "K": n_outputs,
        "W": OF_ROW + n_outputs,
        "L": min(meetings["n_logged"], LOGGED),
        "S": n_slots,
        "E": 0 if model["predictor"].get("only_predicts", False) else n_slots,
        "O": meetings["n_kept"],
    }
    return declared | HELD | ENCODED, lengths


def check_relations(trained: Any) -> None:
    """Raise a ModelError if the parts of a model do not fit together."""
    model, encoder = trained.model, trained.encoder
    _fit(encoder.n_features <= model.n_features, "the encoder has features that the model does not have")
    _fit((trained.rises is None) == (trained.samples is None), "rises of the loss go with samples of the columns")
    n_columns = sum(len(column.dense_names()) for column in getattr(encoder, "columns", []))
    if trained.held is not None:
        _fit(trained.held.rows.numbers.shape[1] == n_columns, "rows that wait have other columns than the encoder")
    _fit((model.linear.hidden <= n_columns).all(), "a monotone column is none of the encoder's numbers")
    _fit(model.linear.n_columns in (None, n_columns), "a view has other columns than the encoder")
    bank = model.predictor.bank
    if bank is not None:
        _fit(bank.n_columns in (None, n_columns), "a bank has other columns than the encoder")
        bank.check_fit(model)
    if model.pool is not None:
        _check_pool(model.pool)
        for X, weights in model.pool.balance.parts if model.pool.balance is not None else ():
            _fit(n_rows(X) == len(weights) > 0, "rows of a sample have not a weight each")
    is_fixed = [member.fixed is not None for member in model.linear.members]
    _fit(
        is_fixed == [model.predictor.only_predicts] * len(is_fixed),
        "members learn in a model that only predicts, or the other way",
    )
    for part in [model.predictor, *(model.linear.members if bank is None else bank.members)]:
        calibration = getattr(part, "calibration", None)
        n_classes = 2 if calibration is None else calibration.n_classes
        _fit(n_classes == max(len(model.classes), 2) or calibration is None, "a calibration has other classes")


def _fit(holds: Any, problem: str) -> None:
    if not holds:
        raise ModelError(problem)


def _check_pool(pool: Any) -> None:
    """Check the indices of members in the mixture, and the columns of generations and of kept rows."""
    members = pool.members
    n_online, n_classes = len(members.names) - len(members.slots), members.width
    _fit(len(members.online_places) == len(members.linear.members), "online members have not a place each")
    _fit(all(place < n_online for place in members.online_places), "two online members have one place")
    _fit(members.loss is not None or pool.unit == 1.0, "classes have no unit")
    copy = pool.copies.copy
    shape = len(members.names), max(n_classes, 1)
    _fit(all(margins.shape == shape for margins in pool.waiting.rows.values()), "rows that wait have other members")
    for rows in pool.copies.predicted:
        n_predicted = len(members.places_as_born) + 2
        _fit(rows.predicted.shape[1:] == (n_predicted, shape[1]), "a copy predicted for other members")
        _fit(int(rows.contexts.max(initial=0)) < len(pool.contexts), "rows that judge a copy are of no context")
    _fit(copy is None or len(copy.mixtures) <= len(pool.contexts), "a copy has more contexts than the pool")
    _fit(0 < len(pool.contexts) <= N_CONTEXTS, "there are not as many contexts as there can be")
    for context in pool.contexts:
        _check_conformal(context, pool)
    if members.growth is not None:
        _check_growth(members.growth, pool, n_classes)


def _check_conformal(context: Any, pool: Any) -> None:
    """Check the columns of widths, and the scores and levels of conformal prediction."""
    growth, conformal, frozen = pool.members.growth, context.conformal, context.frozen
    n_columns = 0 if growth is None else len(growth.columns.keys)
    widths = conformal.widths
    _fit(widths is None or widths.n_columns <= n_columns + 1, "widths have other columns than the rows")
    _fit(conformal.residuals.columns.shape[1] <= n_columns + 1, "residuals kept have other columns")
    _fit(conformal.rows <= pool.rows, "there are scores of more rows than were learned")
    n_choices = frozen.scores.columns.shape[1]  # each choice with its drift and with the opposite drift
    _fit(n_choices == 2 * N_CHOICES or not len(frozen.scores.columns), "scores are not of all choices")
    adaptive = conformal.adaptive
    expected = type(conformal)(conformal.loss).adaptive.targets
    _fit(np.array_equal(adaptive.targets, expected), "levels are followed that differ from the levels of the targets")
    _fit(adaptive.rows[0] <= pool.rows, "more scores than rows")
    _fit(np.allclose(adaptive.weights.sum(axis=1), 1.0), "weights of levels do not add up to 1")
    n_columns_of_scores = conformal.scores.columns.shape[1]
    _fit(n_columns_of_scores == 1 or not len(conformal.scores.columns), "scores lack their units or classes")
    n = adaptive.n_latest
    _fit((np.diff(adaptive.ordered[:n]) >= 0.0).all(), "the latest scores are not in order")
    _fit(np.array_equal(np.sort(adaptive.latest[:n]), adaptive.ordered[:n]), "the latest scores differ in two places")


def _check_growth(growth: Any, pool: Any, n_classes: int) -> None:
    keys = set(growth.columns.keys)
    pending = [generation for birth in growth.pending for generation in birth.generations.values()]
    grown_together = kinds_in(pool.members.slots), TREES[:1]
    _fit(growth.kinds in grown_together, "trees of some kinds are grown that are not grown together")
    _fit(all(age < growth.n_ages for *_, age, _ in growth.generations()), "more generations than may be awake")
    kinds = {generation.kind for generation in growth.awake} - {LINEAR_KIND}
    lengths = {generation.clock for generation in growth.awake} - {WHOLE}
    _fit(kinds <= {*growth.kinds}, "a generation is of a kind that is not grown")
    _fit(lengths <= {window.length for window in growth.windows}, "a generation is of a window that is not there")
    for window in growth.windows:
        _fit(window.length in LENGTHS, "a window is of a length that is not there")
    _fit(growth.event() > pool.rows or pool.only_predicts, "an event that is due lies behind the rows learned")
    copied = [] if pool.copies.copy is None else pool.copies.copy.generations
    for generation in [*growth.awake, *copied, *pending]:
        _fit(keys >= set(generation.keys.tolist()), "a generation has other columns than the rows")
        _fit(generation.kind in (*grown_together[0], LINEAR_KIND), "a generation is of a kind that the pool has not")
        known, born = generation.n_classes, generation.n_classes - generation.n_late
        _fit(min(n_classes, 2) <= born <= known <= n_classes, "a generation has other classes than the model")
        _fit(generation.model.n_outputs == (born if born > 2 else 1), "a generation has not a margin of each class")
        for levels in (leaves.levels for leaves in generation.living if isinstance(leaves, FrozenLeaves)):
            is_whole = len(levels) in (0, generation.model.n_leaves)
            _fit(is_whole and levels.shape[1:] == (known if known > 2 else 1,), "leaves have not a weight each")
    for rows in (growth.whole, growth.recent):
        _fit(rows.columns.shape[1] <= len(keys), "rows kept have other columns")
        _fit(not n_classes or np.isin(rows.targets, np.arange(n_classes)).all(), "rows kept have classes that are none")


LINEAR = Kind(HEADER, _declared, lambda arrays, header: restored(arrays, header["model"]), check_relations)
KINDS = Registry("kind of model", {}, "tunefree.models")
KINDS.register("linear", LINEAR)

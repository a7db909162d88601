"""Export of a trained model to an ONNX file, which predicts new rows and does not learn.

Each input is a column (N, 1) of numbers in double precision, NaN if missing, or of texts, empty if missing. The outputs
are ``label`` and ``probabilities``, or ``prediction``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper

import tunefree
from tunefree.core.errors import ModelError
from tunefree.core.numbers import LARGEST_EXPONENT, MOST, WIDEST
from tunefree.core.storage import whole_file
from tunefree.export.columns import States, add_columns, check_columns
from tunefree.export.graph import Graph
from tunefree.export.linear import Sums, add_generation, add_members, weights_in_units
from tunefree.export.trees import Forest, check_generations
from tunefree.generations.linear import STRENGTHS, Linear
from tunefree.generations.trees import Trees
from tunefree.learners.weights import read
from tunefree.losses.contract import has_log_link
from tunefree.mixing import classes, numbers
from tunefree.mixing.bases import LEAST
from tunefree.mixing.corrections import UNIT
from tunefree.mixing.gradients import Rule
from tunefree.pool.calibration import Calibration
from tunefree.pool.contexts import KNOWN, rule_of
from tunefree.pool.slots import Slot
from tunefree.stream.formats import TABLE

INPUTS = "Inputs: numbers, NaN where missing, or texts without white space around them, empty where missing"
LABEL, PROBABILITIES, PREDICTION = "label", "probabilities", "prediction"


def export(trained: Any, path: str | os.PathLike[str], labels: Sequence[Any]) -> list[str]:
    """Write a model to an ONNX file. ``labels`` are the classes in the order of the outputs; empty for regression.

    Returns notes about rows for which the file and the model predict differently. Raises a ModelError if the model
    cannot be exported, or the file cannot be written.
    """
    _check(trained)
    model, encoder = trained.model, trained.encoder
    names = [column.name for column in encoder.columns] + ([encoder.exposure] if encoder.exposure else [])
    outputs = (LABEL, PROBABILITIES) if model.task == "classification" else (PREDICTION,)
    graph = Graph([*names, *(_unique_name(output, names) for output in outputs)])
    states = add_columns(graph, encoder)
    predicted = _linear(graph, model, states) if model.pool is None else _pool(graph, model, states)
    if model.task == "classification":
        infos = _add_classes(graph, model, list(labels), predicted, names)
    else:
        infos = [_add_numbers(graph, model, encoder, predicted, names)]
    notes = [] if model.pool is None else _notes(model.pool)
    about = {"tunefree": tunefree.__version__, **{f"note {k}": note for k, note in enumerate(notes, 1)}}
    with whole_file(Path(path)) as file:
        file.write(graph.model(infos, about, INPUTS).SerializeToString())
    return notes


def _check(trained: Any) -> None:
    model = trained.model
    if trained.kind != TABLE:
        rows = "sparse matrices or svmlight text" if trained.kind == "svmlight" else f"{trained.kind} text"
        raise ModelError(f"models of {rows} are not exported; train on a table")
    check_columns(trained.encoder)
    if model.kind != "linear" or model.predictor.bank is not None:
        name = model.options.learner if model.kind == "linear" else model.kind
        raise ModelError(f"models of the learner {name!r} are not exported; train the pool, or a linear learner")
    if model.task == "classification" and len(model.classes) < 2:
        raise ModelError("a model of one class is not exported; train with two")
    if model.pool is not None:
        check_generations([generation for *_, generation in model.pool.members.generations()], model.n_outputs)


def _notes(pool: Any) -> list[str]:
    """A note about known rows, if the model predicts them differently from new rows; monotone models do not."""
    if pool.members.growth is None or pool.members.has_groups or pool.members.signs:
        return []
    has_known = len(pool.contexts) > KNOWN and pool.context is pool.contexts[KNOWN]
    rows, others = ("known", "never seen") if has_known else ("new", "learned")
    share = pool.known_share if rows == "new" else 1.0 - pool.known_share
    others = f"predictions of the model differ for rows {others} before"
    others += "" if f"{share:.1%}" == "0.0%" else f", as {share:.1%} of the latest were"
    return [f"the file predicts all rows as {rows} ones; {others}"]


def _linear(graph: Graph, model: Any, states: States) -> str:
    """The predictions of a single linear learner: margins (N, K), or numbers (N, 1)."""
    sums = Sums(states, len(model.linear.members) * model.n_outputs)
    add_members(graph, sums, model.linear)
    return sums.tensor(graph)


def _pool(graph: Graph, model: Any, states: States) -> str:
    """The predictions of a pool: probabilities (N, classes) up to a factor, or numbers or logarithms (N, 1)."""
    pool, members, n_outputs = model.pool, model.pool.members, model.n_outputs
    awake = [(Slot(clock, kind, age, 0), generation) for clock, kind, age, generation in members.generations()]
    linear = [pair for pair in awake if isinstance(pair[1].model, Linear)]
    trees = [pair for pair in awake if isinstance(pair[1].model, Trees)]
    trees.sort(key=lambda pair: bool(pair[1].model.is_averaged))
    slots, matrix = list[Slot](), members.matrix(states.block)
    n_linear = len(members.online_places) + len(linear) * len(STRENGTHS)
    sums = Sums(states, n_linear * n_outputs)
    add_members(graph, sums, members.linear)
    for slot, generation in linear:
        start = (len(members.online_places) + len(slots)) * n_outputs
        columns = matrix[:, members.growth.columns.places(generation.keys)]
        add_generation(graph, sums, generation, columns, start)
        slots += [slot._replace(version=version) for version in range(len(STRENGTHS))]
    predictions = [graph.add("Reshape", sums.tensor(graph), np.array([0, n_linear, n_outputs]))]
    if trees:
        values = [matrix[:, members.growth.columns.places(generation.keys)] for _, generation in trees]
        versions = Forest(states, [generation for _, generation in trees], values).margins(graph)
        predictions += versions
        slots += [slot._replace(version=version) for version in range(len(versions)) for slot, _ in trees]
    context = pool.contexts.index(pool.context)
    rule = rule_of(pool, context, [*members.online_places, *map(members.slots.get, slots)])
    joined = graph.joined(predictions)
    if members.loss is None:
        joined = _class_margins(graph, joined, n_outputs, axis=2)
        return _mix_classes(graph, rule, graph.add("LogSoftmax", joined, axis=2))
    mixed = _mix_numbers(graph, rule, graph.add("Squeeze", joined, np.array([2])))
    if members.predicts_logarithms:
        return graph.add("Add", mixed, np.float64(pool.offsets[context]))
    return graph.add("Mul", mixed, np.float64(pool.unit))


def _mix_classes(graph: Graph, rule: Rule, members: str) -> str:
    """Mixed probabilities (N, classes), up to a factor, from the members' log-probabilities (N, M, classes)."""
    n_members, weights = len(rule.base), rule.base / max(rule.base.sum(), LEAST)
    base = _log(graph, graph.add("MatMul", weights[None], graph.add("Exp", members)))
    deviations = graph.add("Sub", members, base)
    deviations = graph.add("Clip", deviations, np.float64(-classes.WIDEST), np.float64(classes.WIDEST))
    features = graph.joined([deviations, graph.add("Max", base, np.float64(-classes.WIDEST_BASE))])
    # Centring features over the classes only adds a constant to each row, so it is omitted.
    sums = graph.add("MatMul", rule.corrections[:, : n_members + 1] / UNIT, features)
    biases = rule.corrections[:, n_members + 1 :]
    if biases.shape[1]:
        sums = graph.add("Add", sums, biases[None] / UNIT)
    corrected = graph.add("LogSoftmax", graph.add("Add", sums, base), axis=2)
    candidates = graph.add("Exp", graph.joined([base, corrected]))
    mixed = graph.add("MatMul", rule.top[None], candidates)
    return graph.add("Max", graph.add("Squeeze", mixed, np.array([1])), np.float64(LEAST))


def _mix_numbers(graph: Graph, rule: Rule, members: str) -> str:
    """Mixed numbers or logarithms (N, 1) from the members' predictions (N, M)."""
    statistics: Any = rule.known
    low, high = map(np.float64, numbers.ends_of(statistics, rule.is_log))
    mean, unit = (float(number(statistics, rule.is_log)) for number in (numbers.centre_of, numbers.unit_of))
    values, total = graph.add("Clip", members, low, high), rule.base.sum()
    base = _weighted_mean(graph, rule, values, rule.base / max(total, LEAST))
    scale = np.float64(1.0 / unit if unit > 0.0 and rule.has_begun else 0.0)
    features = [
        _features(graph, graph.add("Sub", values, base), scale, numbers.WIDEST),
        _features(graph, graph.add("Sub", base, np.float64(mean)), scale, numbers.WIDEST_BASE),
    ]
    steps = graph.add("MatMul", graph.joined(features), rule.corrections[:, :-1].T * (unit / UNIT))
    steps = graph.add("Add", steps, rule.corrections[None, :, -1] * (0.0 if rule.is_log else unit / UNIT))
    corrected = graph.add("Clip", graph.add("Add", steps, base), low, high)
    return _weighted_mean(graph, rule, graph.joined([base, corrected]), rule.top)


def _features(graph: Graph, deviations: str, scale: np.float64, widest: float) -> str:
    return graph.add("Clip", graph.add("Mul", deviations, scale), np.float64(-widest), np.float64(widest))


def _weighted_mean(graph: Graph, rule: Rule, predictions: str, weights: np.ndarray) -> str:
    """The mean (N, 1) of numbers (N, m), or the logarithm of the mean of their exponentials."""
    if not rule.is_log:
        return graph.add("MatMul", predictions, weights[:, None])
    peak = graph.add("ReduceMax", predictions, np.array([1]), keepdims=1)
    parts = graph.add("Exp", graph.add("Sub", predictions, peak))
    return graph.add("Add", peak, _log(graph, graph.add("MatMul", parts, weights[:, None])))


def _log(graph: Graph, tensor: str) -> str:
    return graph.add("Log", graph.add("Max", tensor, np.float64(LEAST)))


def _add_classes(graph: Graph, model: Any, labels: list[Any], predicted: str, names: list[str]) -> list[Any]:
    """Add the outputs for classes: the label, and the probabilities in the order of ``labels``."""
    if model.pool is None:
        margins = _class_margins(graph, predicted, model.n_outputs)
        shares = graph.add("Softmax", _log_odds(graph, model.predictor.calibration, margins), axis=1)
    else:
        margins = predicted
        shares = graph.add("Div", predicted, graph.add("ReduceSum", predicted, np.array([1]), keepdims=1))
    order = np.array([model.classes.index(label) for label in labels])
    probabilities = graph.add("Gather", shares, order, axis=1, name=_unique_name(PROBABILITIES, names))
    best = graph.add("ArgMax", graph.add("Gather", margins, order, axis=1), axis=1, keepdims=0)
    kind, table = _label_table(labels)
    label = graph.add("Gather", table, best, name=_unique_name(LABEL, names))
    return [
        helper.make_tensor_value_info(label, kind, ["N"]),
        helper.make_tensor_value_info(probabilities, TensorProto.DOUBLE, ["N", len(labels)]),
    ]


def _class_margins(graph: Graph, margins: str, n_outputs: int, axis: int = 1) -> str:
    """A margin for each class; with two classes, the single margin is for the second class."""
    return graph.joined([graph.add("Sub", margins, margins), margins], axis) if n_outputs == 1 else margins


def _log_odds(graph: Graph, calibration: Calibration | None, margins: str) -> str:
    """The calibrated margins of classes; see :mod:`tunefree.pool.calibration`."""
    if calibration is None:
        return margins
    view, n = calibration.view, calibration.n_classes
    factors = weights_in_units(read(calibration.learner), 2 * n)[:, 0]
    unit = np.where(view.distances > 0.0, view.distances, np.inf)
    deviations = graph.add("Div", graph.add("Sub", margins, view.centres[None]), unit[None])
    clipped = graph.add("Clip", deviations, np.float64(-WIDEST), np.float64(WIDEST))
    return graph.add("Add", graph.add("Mul", clipped, factors[None, 0::2]), (factors[1::2] + calibration.offsets)[None])


def _label_table(labels: list[Any]) -> tuple[int, np.ndarray]:
    """The ONNX type and the values of labels: integers, or else texts."""
    if all(isinstance(label, int) and abs(label) < 2**63 for label in labels) and bool not in map(type, labels):
        return TensorProto.INT64, np.array(labels, np.int64)
    return TensorProto.STRING, np.array([str(label) for label in labels], object)


def _add_numbers(graph: Graph, model: Any, encoder: Any, predicted: str, names: list[str]) -> Any:
    """Add the output for numbers, multiplied by the exposure of rows if there is one."""
    loss = model.objective.loss
    if has_log_link(loss):
        predicted = graph.add("Exp", graph.add("Min", predicted, np.float64(LARGEST_EXPONENT)))
    if encoder.exposure:
        predicted = graph.add("Mul", predicted, graph.input(encoder.exposure, TensorProto.DOUBLE))
    name = _unique_name(PREDICTION, names)
    graph.add("Clip", predicted, np.float64(-MOST), np.float64(MOST), name=name)
    return helper.make_tensor_value_info(name, TensorProto.DOUBLE, ["N", 1])


def _unique_name(name: str, names: list[str]) -> str:
    while name in names:
        name += "_"
    return name

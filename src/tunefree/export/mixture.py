"""From the predictions of members to those of a model: the rule of a mixture that stands still."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.export.graph import Graph
from tunefree.mixing import classes, numbers, rates
from tunefree.mixing.bases import LEAST
from tunefree.mixing.corrections import UNIT
from tunefree.mixing.gradients import Rule


def spread(rule: Rule, places: list[int | None]) -> Rule:
    """The rule of members that are at these places in it; those at none do not count."""
    kept = [0 if place is None else place for place in places]
    is_there = np.array([place is not None for place in places])
    others = np.arange(len(rule.base), rule.corrections.shape[1])
    corrections = np.where(is_there, rule.corrections[:, kept], 0.0)
    corrections = np.concatenate([corrections, rule.corrections[:, others]], axis=1)
    return rule._replace(base=np.where(is_there, rule.base[kept], 0.0), corrections=corrections)


def log_probabilities(graph: Graph, margins: str, n_outputs: int) -> str:
    """Log-probabilities (N, M, classes) of margins (N, M, K)."""
    if n_outputs == 1:
        margins = graph.joined([graph.add("Sub", margins, margins), margins], axis=2)
    return graph.add("LogSoftmax", margins, axis=2)


def mix_classes(graph: Graph, rule: Rule, members: str) -> str:
    """What is proportional to the probabilities (N, classes), of log-probabilities (N, M, classes)."""
    n_members, weights = len(rule.base), rule.base / max(rule.base.sum(), LEAST)
    base = _log(graph, graph.add("MatMul", weights[None], graph.add("Exp", members)))
    if rule.top[0] == rule.top.sum():
        return graph.add("Exp", graph.add("Squeeze", base, np.array([1])))
    away = graph.add("Sub", members, base)
    away = graph.add("Clip", away, np.float64(-classes.WIDEST), np.float64(classes.WIDEST))
    features = graph.joined([away, graph.add("Max", base, np.float64(-classes.WIDEST_BASE))])
    # Features are centred over the classes, which is a constant of each row, and changes no probability.
    sums = graph.add("MatMul", rule.corrections[:, : n_members + 1] / UNIT, features)
    biases = rule.corrections[:, n_members + 1 :]
    if biases.shape[1]:
        sums = graph.add("Add", sums, biases[None] / UNIT)
    corrected = graph.add("LogSoftmax", graph.add("Add", sums, base), axis=2)
    candidates = graph.add("Exp", graph.joined([base, corrected]))
    mixed = graph.add("MatMul", rule.top[None], candidates)
    return graph.add("Max", graph.add("Squeeze", mixed, np.array([1])), np.float64(LEAST))


def mix_numbers(graph: Graph, rule: Rule, members: str) -> str:
    """Numbers, or logarithms, (N, 1) of those of members (N, M)."""
    known: Any = rule.known
    link = rates.LOGARITHM if rule.is_log else numbers.IDENTITY
    low, high = (np.float64(link.within(known, end)) for end in (-np.inf, np.inf))
    mean, unit = float(link.centre_of(known)), float(link.unit_of(known))
    values, total = graph.add("Clip", members, low, high), rule.base.sum()
    base = _mean(graph, rule, values, rule.base / max(total, LEAST))
    scale = np.float64(1.0 / unit if unit > 0.0 and rule.has_begun else 0.0)
    if rule.top[0] == rule.top.sum():
        return base
    features = [
        _features(graph, graph.add("Sub", values, base), scale, numbers.WIDEST),
        _features(graph, graph.add("Sub", base, np.float64(mean)), scale, numbers.WIDEST_BASE),
    ]
    steps = graph.add("MatMul", graph.joined(features), rule.corrections[:, :-1].T * (unit / UNIT))
    steps = graph.add("Add", steps, rule.corrections[None, :, -1] * (link.constant * unit / UNIT))
    corrected = graph.add("Clip", graph.add("Add", steps, base), low, high)
    return _mean(graph, rule, graph.joined([base, corrected]), rule.top)


def _features(graph: Graph, away: str, scale: np.float64, widest: float) -> str:
    return graph.add("Clip", graph.add("Mul", away, scale), np.float64(-widest), np.float64(widest))


def _mean(graph: Graph, rule: Rule, predictions: str, weights: np.ndarray) -> str:
    """The mean (N, 1) of numbers (N, m), or the logarithm of that of their exponentials."""
    if not rule.is_log:
        return graph.add("MatMul", predictions, weights[:, None])
    peak = graph.add("ReduceMax", predictions, np.array([1]), keepdims=1)
    parts = graph.add("Exp", graph.add("Sub", predictions, peak))
    return graph.add("Add", peak, _log(graph, graph.add("MatMul", parts, weights[:, None])))


def _log(graph: Graph, tensor: str) -> str:
    return graph.add("Log", graph.add("Max", tensor, np.float64(LEAST)))

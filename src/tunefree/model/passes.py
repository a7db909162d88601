"""Compiled passes of a linear learner: learn rows, read its weights, score rows by weights, in all or term by term."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tunefree.core import compiled
from tunefree.core.coordinates import room
from tunefree.core.numbers import bounded
from tunefree.core.rows import entry, n_rows, row, size
from tunefree.learners.contract import (
    Scale,
    coordinate,
    factor,
    leave_out,
    magnitude,
    predict,
    replay,
    shared,
    update,
)
from tunefree.losses.kinds import arrays_of
from tunefree.losses.loops import Loop

OF_ROW = 4  # numbers in a log before the gradient of a row: those of its scale, and what features shared


@compiled.inline
def write_log(logged, known, past, gradient):
    """Write down what replaying an entry of a row takes."""
    logged[0], logged[1], logged[2], logged[3] = known.slope, known.margin, known.weight, past
    for k in range(len(gradient)):
        logged[OF_ROW + k] = gradient[k]


@compiled.inline
def add_offsets(x, offsets, margins):
    """Add offsets (K,), or none, which count as a part of the weights of the constant, to margins."""
    if len(offsets) > 0:
        j, x_j = entry(x, 0)
        if j == 0:
            for k in range(len(offsets)):
                margins[k] = bounded(margins[k] + offsets[k] * x_j)


@Loop
def _learn(functions):
    scale_of, respond, differentiate = functions.scale_of, functions.respond, functions.differentiate

    def learn(state, codes, numbers, X, y, weight, predictions, left_out, places, log, offsets):
        n_outputs = predictions.shape[1]
        scratch = np.zeros((3, room(n_outputs)))
        margins, gradient, curvature = scratch[0, :n_outputs], scratch[1, :n_outputs], scratch[2, :n_outputs]
        for i in range(n_rows(X)):
            x, known = row(X, i), scale_of(numbers, weight[i])
            if len(left_out) > 0 and left_out[i] > 0:
                leave_out(state, known, left_out[i])
            predict(state, x, known, margins)
            add_offsets(x, offsets, margins)
            respond(codes, numbers, n_outputs, margins, predictions[i])
            if weight[i] > 0.0:
                differentiate(codes, numbers, y[i], weight[i], n_outputs, margins, gradient, curvature)
                if len(places) > 0 and places[i] >= 0:
                    write_log(log[places[i]], known, shared(state), gradient)
                update(state, x, gradient, curvature)

    return learn


_NONE, _NO_LOG, _NO_OFFSETS = np.zeros(0, np.int64), np.zeros((0, OF_ROW)), np.zeros(0)


def learn(
    state: Any,
    objective: Any,
    X: Any,
    y: np.ndarray,
    weight: np.ndarray,
    predictions: np.ndarray,
    left_out: np.ndarray = _NONE,
    places: np.ndarray = _NONE,
    log: np.ndarray = _NO_LOG,
    offsets: np.ndarray | None = None,
) -> Any:
    """Learn rows in order; writes the prediction (n, K) of each before it was learned, returns the objective after.

    Entries that are left out, and the places of rows in the log, are those of :class:`tunefree.model.meetings.Met`.
    ``offsets`` (K,) are added to the learner's weights of the constant.
    """
    arrays = arrays_of(objective)
    added = _NO_OFFSETS if offsets is None else offsets
    _learn(state, *arrays, X, y, weight, predictions, left_out, places, log, added)
    return arrays.restored(objective)


@compiled.entry
def replay_all(state, X, sources, log):
    """Replay first meetings, rows of one entry each, by the log of the rows that they were left out of.

    A slope of an output that there was not yet may be NaN, and counts as 0.
    """
    n_outputs = log.shape[1] - OF_ROW
    numbers = np.zeros((3, room(n_outputs)))
    margins, gradient, curvature = numbers[0, :n_outputs], numbers[1, :n_outputs], numbers[2, :n_outputs]
    for i in range(n_rows(X)):
        logged = log[sources[i]]
        for k in range(n_outputs):
            gradient[k] = 0.0 if math.isnan(logged[OF_ROW + k]) else logged[OF_ROW + k]
        scale_then = Scale(logged[0], logged[1], logged[2])
        replay(state, row(X, i), scale_then, logged[3], margins, gradient, curvature)


@Loop
def _learn_apart(functions):
    scale_of, differentiate = functions.scale_of, functions.differentiate

    def learn_apart(state, codes, numbers, X, y, weight, offsets, margins):
        n_margins = margins.shape[1]
        gradient, curvature = np.empty(n_margins), np.empty(n_margins)
        for i in range(len(y)):
            for k in range(n_margins):
                predict(state, row(X, i * n_margins + k), scale_of(numbers, weight[i]), margins[i, k : k + 1])
                margins[i, k] += offsets[k]
            if weight[i] > 0.0:
                differentiate(codes, numbers, y[i], weight[i], n_margins, margins[i], gradient, curvature)
                for k in range(n_margins):
                    update(state, row(X, i * n_margins + k), gradient[k : k + 1], curvature[k : k + 1])

    return learn_apart


def learn_apart(
    state: Any, objective: Any, X: Any, y: np.ndarray, weight: np.ndarray, offsets: np.ndarray, margins: np.ndarray
) -> None:
    """Learn margins of which each has a row, and features, of its own: X holds K rows for each target.

    ``offsets`` (K,) are added to what the learner predicts.
    """
    _learn_apart(state, *arrays_of(objective), X, y, weight, offsets, margins)


@compiled.entry
def read(state, weights, units):
    for j in range(weights.shape[0]):
        units[j] = magnitude(state, j)
        for k in range(weights.shape[1]):
            weights[j, k] = bounded(coordinate(state, j, k) * factor(state, k)) if units[j] > 0.0 else 0.0


@compiled.entry
def score(weights, units, X, margins):
    """Write the margins of rows; features beyond those of the weights are not known, and count nothing."""
    for i in range(n_rows(X)):
        x = row(X, i)
        margins[i] = 0.0
        for e in range(size(x)):
            j, x_j = entry(x, e)
            if x_j != 0.0 and j < len(units) and units[j] > 0.0:
                ratio = bounded(x_j / units[j])
                for k in range(margins.shape[1]):
                    margins[i, k] += weights[j, k] * ratio


@compiled.entry
def add_terms(weights, units, factor, term_of, X, terms):
    """Add each entry's part of the margins, times a factor, to the term (n, terms, K) that its feature belongs to."""
    for i in range(n_rows(X)):
        x = row(X, i)
        for e in range(size(x)):
            j, x_j = entry(x, e)
            if x_j != 0.0 and j < len(units) and units[j] > 0.0:
                ratio, term = factor * bounded(x_j / units[j]), term_of[j]
                for k in range(terms.shape[2]):
                    terms[i, term, k] += weights[j, k] * ratio

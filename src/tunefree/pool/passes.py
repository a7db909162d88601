"""Passes of a linear learner over rows, which learn rows, or compute margins by weights, in total or term by term.

Rows are blocks of any kind, or the result of :func:`tunefree.core.rows.entries_of` for them, shared by all learners.
Each pass of a learner has two compiled functions, one for one output and one for several outputs; both are for all
objectives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import numpy as np

from tunefree.compiled.functions import Call, Compiled, compiled
from tunefree.compiled.prefetching import LARGE
from tunefree.core.fields import padded
from tunefree.core.numbers import bounded
from tunefree.core.rows import Row, Rows, entries_of
from tunefree.learners import ALL
from tunefree.learners.contract import Learner, Scale
from tunefree.learners.weights import reading, with_averages
from tunefree.losses.functions import Functions, Loop
from tunefree.losses.objectives import Objective

OF_ROW = 4  # columns of a log before the gradient of a row: three fields of its Scale, and the learner's shared value
MARGINS, GRADIENT, CURVATURE = 0, 1, 2  # rows of the scratch of learning


def row_of(rows, i):
    """The i-th of some rows."""
    start, end = rows.starts[i], rows.ends[i]
    return Row(rows.indices[start:end], rows.values[start:end])


def write_log(logged, scale, shared, gradient, n_outputs):
    """Write the log of a row, by which its entries can be replayed."""
    logged[0], logged[1], logged[2], logged[3] = scale.slope, scale.margin, scale.weight, shared
    for k in range(n_outputs):
        logged[OF_ROW + k] = gradient[k]


def add_offsets(row, offsets, margins):
    """Add offsets (K,), or none, which count as a part of the weights of the constant, to margins."""
    if len(offsets) > 0 and row.indices[0] == 0:
        for k in range(len(offsets)):
            margins[k] = bounded(margins[k] + offsets[k] * row.values[0])


def learning_of(learner: type[Learner], functions: Functions) -> Callable[..., None]:
    """The loop over rows in which a learner learns them."""
    predict, update, fetch = learner.predict, learner.update, learner.fetch
    leave_out, shared = learner.leave_out, learner.shared
    scale_of, respond, differentiate = functions.scale_of, functions.respond, functions.differentiate

    def learn(
        state: Any,
        codes: Annotated[np.ndarray, "int64[2]"],
        numbers: Annotated[np.ndarray, "float64[facts]"],
        is_large: bool,
        rows: Rows,
        targets: Annotated[np.ndarray, "float64[rows]"],
        weights: Annotated[np.ndarray, "float64[rows]"],
        predictions: Annotated[np.ndarray, "float64[rows, outputs]"],
        left_out: Annotated[np.ndarray, "int64[counted]"],
        places: Annotated[np.ndarray, "int64[placed]"],
        log: Annotated[np.ndarray, "float64[logged, log_columns]"],
        offsets: Annotated[np.ndarray, "float64[offsets]"],
        scratch: Annotated[np.ndarray, "float64[3, padded]"],
    ) -> None:
        margins, gradient, curvature = scratch[MARGINS], scratch[GRADIENT], scratch[CURVATURE]
        n_outputs = predictions.shape[1]
        for i in range(len(targets)):
            row, scale = row_of(rows, i), scale_of(numbers, weights[i])
            if is_large and i + 1 < len(targets):
                for e in range(rows.starts[i + 1], rows.ends[i + 1]):
                    fetch(state, rows.indices[e])
            if len(left_out) > 0 and left_out[i] > 0:
                leave_out(state, scale, left_out[i])
            predict(state, row, scale, margins)
            add_offsets(row, offsets, margins)
            respond(codes, numbers, n_outputs, margins, predictions[i])
            if weights[i] > 0.0:
                differentiate(codes, numbers, targets[i], weights[i], n_outputs, margins, gradient, curvature)
                if len(places) > 0 and places[i] >= 0:
                    write_log(log[places[i]], scale, shared(state), gradient, n_outputs)
                update(state, row, gradient, curvature)

    return learn


def replaying_of(learner: type[Learner], functions: Functions) -> Callable[..., None]:
    """The loop in which a learner replays first occurrences."""
    replay = learner.replay

    def replay_all(
        state: Any,
        rows: Rows,
        sources: Annotated[np.ndarray, "int64[rows]"],
        log: Annotated[np.ndarray, "float64[logged, log_columns]"],
        scratch: Annotated[np.ndarray, "float64[3, padded]"],
    ) -> None:
        margins, gradient, curvature = scratch[MARGINS], scratch[GRADIENT], scratch[CURVATURE]
        for i in range(len(sources)):
            logged = log[sources[i]]
            for k in range(len(logged) - OF_ROW):
                gradient[k] = 0.0 if math.isnan(logged[OF_ROW + k]) else logged[OF_ROW + k]
            scale = Scale(logged[0], logged[1], logged[2])
            replay(state, row_of(rows, i), scale, logged[3], margins, gradient, curvature)

    return replay_all


def learning_apart_of(learner: type[Learner], functions: Functions) -> Callable[..., None]:
    """The loop over rows in which a learner of one output learns margins that have a row each."""
    predict, update = learner.predict, learner.update
    scale_of, differentiate = functions.scale_of, functions.differentiate

    def learn_apart(
        state: Any,
        codes: Annotated[np.ndarray, "int64[2]"],
        numbers: Annotated[np.ndarray, "float64[facts]"],
        rows: Rows,
        targets: Annotated[np.ndarray, "float64[targets]"],
        weights: Annotated[np.ndarray, "float64[targets]"],
        offsets: Annotated[np.ndarray, "float64[outputs]"],
        margins: Annotated[np.ndarray, "float64[targets, outputs]"],
        scratch: Annotated[np.ndarray, "float64[2, outputs]"],
    ) -> None:
        gradient, curvature, n_outputs = scratch[0], scratch[1], len(offsets)
        for i in range(len(targets)):
            for k in range(n_outputs):
                scale = scale_of(numbers, weights[i])
                predict(state, row_of(rows, i * n_outputs + k), scale, margins[i, k : k + 1])
                margins[i, k] += offsets[k]
            if weights[i] > 0.0:
                differentiate(codes, numbers, targets[i], weights[i], n_outputs, margins[i], gradient, curvature)
                for k in range(n_outputs):
                    update(state, row_of(rows, i * n_outputs + k), gradient[k : k + 1], curvature[k : k + 1])

    return learn_apart


LOOPS = {"learn": Loop(learning_of), "replay": Loop(replaying_of), "learn apart": Loop(learning_apart_of)}


def pass_of(loop: str, learner: type[Learner], has_one_output: bool) -> Compiled:
    """The compiled function of a loop in LOOPS for a learner, for all losses that are registered by now.

    It is for one output, or for several outputs.
    """
    kind = f"{learner.__module__}.{learner.__name__}".removeprefix("tunefree.")
    name = f"{loop.replace(' ', '_')}.{kind}.{'one' if has_one_output else 'several'}"
    lengths = {"padded": 1} if has_one_output else {}
    lengths |= {"outputs": 1} if has_one_output and loop != "learn apart" else {}
    return LOOPS[loop].compiled(learner, name=name, states={"state": learner}, lengths=lengths)


def all_compiled() -> list[Compiled]:
    """The compiled functions of the learners of this package, and of the averages of their iterates."""
    return [*compiled_of(ALL[name] for name in ALL), pass_of("learn apart", ALL["scinol2"], True)]


def compiled_of(learners: Iterable[type[Learner]]) -> list[Compiled]:
    """The compiled functions of learners, and of the averages of their iterates."""
    learners = with_averages(learners)
    loops = [("learn", cls) for cls in learners] + [("replay", cls) for cls in learners if cls.traits.can_replay]
    numbers = True, False
    passes = [pass_of(loop, cls, has_one_output) for loop, cls in loops for has_one_output in numbers]
    return [*passes, *(reading(cls, has_one_output) for cls in learners for has_one_output in numbers)]


NOTHING_MET = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, OF_ROW))  # if no entries are left out
NO_OFFSETS = np.zeros(0)


def learn(
    state: Learner,
    objective: Objective,
    X: Any,
    y: np.ndarray,
    weight: np.ndarray,
    predictions: np.ndarray,
    met: tuple[np.ndarray, ...] = NOTHING_MET,
    offsets: np.ndarray | None = None,
) -> None:
    """Learn rows in order; writes the prediction (n, K) of each row before it was learned.

    ``met`` are ``left_out`` and ``places`` of a :class:`tunefree.pool.occurrences.Met`, and the log. ``offsets`` (K,)
    are added to the learner's weights of the constant.
    """
    row_arguments = entries_of(X), numbers_of(y), numbers_of(weight), predictions
    run, *arguments = call_on(state, objective, row_arguments, met, offsets)
    run(*arguments)


def call_on(
    state: Learner,
    objective: Objective,
    rows: tuple[Any, ...],
    met: tuple[np.ndarray, ...] = NOTHING_MET,
    offsets: np.ndarray | None = None,
) -> Call:
    """The call in which a learner learns ``rows``: entries, targets, weights, and the array of predictions to write."""
    scratch, added = np.zeros((3, padded(state.n_outputs))), NO_OFFSETS if offsets is None else offsets
    learn, is_large = pass_of("learn", type(state), state.n_outputs == 1), state.nbytes > LARGE
    return learn, state, *objective.arrays, is_large, *rows, *met, added, scratch


def numbers_of(array: np.ndarray) -> np.ndarray:
    """Contiguous 64-bit floats for compiled functions; copies only if necessary."""
    return np.ascontiguousarray(array, np.float64)


def replay_all(state: Learner, X: Any, sources: np.ndarray, log: np.ndarray) -> None:
    """Replay first occurrences, rows of one entry each, from the log of the rows that they were left out of.

    The slope of an output that was added later may be NaN, and counts as 0.
    """
    run = pass_of("replay", type(state), state.n_outputs == 1)
    run(state, entries_of(X), sources, log, np.zeros((3, padded(state.n_outputs))))


def ratio_of(value, units, j):
    """A value in the unit of its feature; 0 where the feature is unknown, so that it has no effect."""
    return bounded(value / units[j]) if value != 0.0 and j < len(units) and units[j] > 0.0 else 0.0


@compiled
def score_rows(
    weights: Annotated[np.ndarray, "float64[features, outputs]"],
    units: Annotated[np.ndarray, "float64[features]"],
    rows: Rows,
    margins: Annotated[np.ndarray, "float64[rows, outputs]"],
) -> None:
    """Write the margins of rows; features without weights have no effect."""
    for i in range(len(margins)):
        row = row_of(rows, i)
        margins[i] = 0.0
        for e in range(len(row.indices)):
            j = row.indices[e]
            ratio = ratio_of(row.values[e], units, j)
            if ratio != 0.0:
                for k in range(margins.shape[1]):
                    margins[i, k] += weights[j, k] * ratio


def score(weights: np.ndarray, units: np.ndarray, X: Any) -> np.ndarray:
    """Margins (n, K) of rows by weights (d, K) relative to units (d,)."""
    rows = entries_of(X)
    margins = np.empty((len(rows.starts), weights.shape[1]))
    score_rows(weights, units, rows, margins)
    return margins


@compiled
def add_terms(
    weights: Annotated[np.ndarray, "float64[features, outputs]"],
    units: Annotated[np.ndarray, "float64[features]"],
    factor: float,
    term_of: Annotated[np.ndarray, "int64[known]"],
    rows: Rows,
    terms: Annotated[np.ndarray, "float64[rows, terms, outputs]"],
) -> None:
    """Add each entry's part of the margins, times a factor, to the term (n, terms, K) that its feature belongs to."""
    for i in range(len(terms)):
        row = row_of(rows, i)
        for e in range(len(row.indices)):
            j = row.indices[e]
            ratio = ratio_of(row.values[e], units, j)
            if ratio != 0.0:
                for k in range(terms.shape[2]):
                    terms[i, term_of[j], k] += weights[j, k] * (factor * ratio)

"""A linear learner as a member of a model: its state, its objective, and the name of its view."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.fields import FEATURE, OUTPUT
from tunefree.core.numbers import CEILING
from tunefree.core.part import FIXED, LEARNED, Part, argument, array, child, number
from tunefree.core.rows import Rows, dense
from tunefree.core.schema import COUNT, SIZE, Flag, Text
from tunefree.learners import ALL
from tunefree.learners.contract import begin_outputs, mirror
from tunefree.learners.weights import Averaged, averaged, read
from tunefree.losses import loss_of
from tunefree.losses.objectives import Objective
from tunefree.pool import passes
from tunefree.pool.occurrences import Met, Past, with_outputs, with_room
from tunefree.pool.rows import Read
from tunefree.pool.targets import running_sum

MOST_ABSENT = 2**17  # rows that a class is said to have been absent from


class Setting(NamedTuple):
    """The learner of a member, its parameters, and its view of the rows."""

    learner: str  # a name in learners.ALL
    settings: dict[str, float]  # its parameters
    view: str  # one of views.NAMES


def _nothing(member: Any, value: Any) -> None:
    """Nothing: the saved setting is only read to know the class of the learner."""


class Member(Part):
    """A linear learner of a model, whose weights may be the averages of its iterates.

    Its state and objective are as :func:`tunefree.pool.passes.learn` takes and changes them.
    """

    setting, average, room = argument(), argument(), argument()
    n_known, n_logged = argument(), argument()  # features and rows in the log that files have; all without these
    learner = number(FIXED, Text(), lambda member: member.setting.learner, _nothing)
    is_averaged = number(FIXED, Flag(), lambda member: member.average, _nothing)
    fixed_weights: np.ndarray | None = array("float64|float32", ("w", "K"), FIXED, may_be_none=True)
    fixed_units: np.ndarray | None = array("float64", ("w",), FIXED, may_be_none=True, low=0)
    state: Any = child(
        lambda header, *_: averaged(ALL[header["learner"]]) if header["is_averaged"] else ALL[header["learner"]],
        LEARNED,
        may_be_none=True,
        axes={FEATURE: "S", OUTPUT: "K"},
        read=lambda member: None if member.fixed else member.state.arrays(member.n_known),
        write=lambda member, state: setattr(member, "state", state or member.state.blank(2, member.state.n_outputs)),
    )
    objective = child(Objective, LEARNED)
    rows = number(LEARNED, COUNT)
    mass = number(LEARNED, SIZE)
    log: np.ndarray | None = array(
        "float64", ("L", "W"), LEARNED, may_be_none=True, read=lambda member: member.used_log()
    )
    offsets: np.ndarray | None = array("float64", ("K",), LEARNED, may_be_none=True)

    def __init__(self, setting: Setting, average: bool, state: Any, objective: Objective, room: int) -> None:
        self.setting, self.average, self.state, self.objective = setting, average, state, objective
        self.room = room  # features there is capacity for; a learner may need less for all of them
        self.log = None  # of rows, for first occurrences that are replayed; none before the first
        self.rows, self.mass = 0, 0.0  # learned, and the weights of these
        self.offsets = None  # (K,) added to the weights of the constant, once a class came late
        self.n_known = self.n_logged = None
        self.fixed_weights = self.fixed_units = None  # of a member that learns no more; its state knows nothing

    @classmethod
    def create(cls, setting: Setting, average: bool, n_features: int, n_outputs: int, objective: Objective) -> Member:
        """A member that has seen no row."""
        try:
            state = ALL[setting.learner](n_features, n_outputs, **setting.settings)
        except TypeError as error:
            raise ModelError(f"{setting.learner}: {error}") from None
        objective = objective.copied()
        if state.traits.takes_slopes_as_they_come and objective.task == "classification":
            objective.steepest = CEILING  # slopes are not clipped at the steepest so far
        state = averaged(type(state)).of(state) if average else state  # type: ignore[arg-type]
        return cls(setting, average, state, objective, n_features)

    @property
    def fixed(self) -> Read | None:
        """Weights that predict, of a member that learns no more."""
        if self.fixed_weights is None or self.fixed_units is None:
            return None
        return self.fixed_weights, self.fixed_units

    def used_log(self) -> np.ndarray | None:
        """The rows of the log that are in use."""
        if self.log is None or self.n_logged is None:
            return self.log
        return with_room(self.log, self.n_logged)[: self.n_logged]

    @property
    def name(self) -> str:
        """Learner, parameters and view, in words."""
        return name_of(self.setting)

    def reserve(self, n_features: int, n_outputs: int, exactly: bool = False) -> None:
        """Reserve capacity for so many features; unless it has to be exactly so, it doubles, as copies cost time."""
        if n_features > self.room:
            self.room = n_features if exactly else max(n_features, 2 * self.room)
            self.state = self.state.grown(self.room, n_outputs)

    def add_outputs(self, objective: Objective, before: int, n_outputs: int) -> None:
        """Add outputs to the ``before`` so far; the margin of two classes becomes the margin of class 1.

        The steepest slope so far still bounds the slopes of the new objective. A class that comes after many rows
        begins as improbable as it was in them, and as one that was known to be absent from them.
        """
        first = 1 if before == 1 else 0
        begun, margin = self._absent(objective) if self.rows else (None, 0.0)
        offsets = np.zeros(before) if self.offsets is None else self.offsets
        self.offsets = with_outputs(offsets[None], n_outputs, first)[0]
        self.offsets[first + before :] = margin
        mirrors = first == 1 and objective.is_softmax
        self.state = self.state.with_outputs(n_outputs, first, mirrors)
        if begun is not None:
            begin_outputs(self.state, begun, range(first + before, n_outputs))
        if self.log is not None:
            self.log = with_outputs(self.log, n_outputs, first, passes.OF_ROW)
            if mirrors:  # a replay then lets output 0 take over what the state does here
                self.log[:, passes.OF_ROW] = math.nan
        steepest, self.objective = self.objective.steepest, objective.copied()
        self.objective.steepest = max(steepest, objective.steepest)

    def _absent(self, objective: Objective) -> tuple[Any, float]:
        """A learner of one output, which knows from the constant alone that a class was absent from the rows so far,
        and what its margin lacks then (:func:`late_margin`)."""
        margin = late_margin(objective, self.rows)
        if self.state is None or isinstance(self.state, Averaged):
            return None, margin
        n, learner = min(self.rows, MOST_ABSENT), self.state.blank(2, 1)
        loss = loss_of("classification", None) if objective.is_softmax else objective.loss
        against = Objective("classification", loss)
        weight = np.full(n, self.mass / self.rows)
        constants = dense(np.zeros((n, 0)))
        passes.learn(learner, against, constants, np.full(n, -1.0), weight, np.empty((n, 1)))
        weights, units = read(learner, 1)
        learned = float(weights[0, 0] / units[0]) if units[0] > 0.0 else 0.0
        return learner, margin - learned if objective.is_softmax else 0.0

    def learn(self, X: Any, y: np.ndarray, weight: np.ndarray, predictions: np.ndarray, met: Met | None = None) -> None:
        """Learn rows in order; writes the prediction (n, K) of each row before it was learned.

        ``met`` tells what was left out of them; :meth:`replay` comes before.
        """
        self.count(weight)
        met_arrays = passes.NOTHING_MET
        if met is not None:
            log = np.zeros((0, passes.OF_ROW + predictions.shape[1])) if self.log is None else self.log
            self.log = with_room(log, 1 + int(met.places.max(initial=-1)))
            met_arrays = met.left_out, met.places, self.log
        passes.learn(self.state, self.objective, X, y, weight, predictions, *met_arrays, self.offsets)

    def count(self, weight: np.ndarray) -> None:
        """Count rows that are learned."""
        self.rows += int(np.count_nonzero(weight > 0.0))
        self.mass = running_sum(self.mass, weight)

    @property
    def is_bounded(self) -> bool:
        """Whether the learner keeps nothing of features beyond the first ones, which have slots from the start."""
        return bool(self.state.n_features < self.room)

    def replay(self, X: Rows, past: Past) -> None:
        """Learn occurrences, rows of one entry each, of features that have statistics now."""
        if len(past.sources) and self.log is not None and not self.is_bounded:
            self._replay_into(self.state, X, past)

    def _replay_into(self, state: Any, X: Rows, past: Past) -> None:
        assert self.log is not None
        before = np.isnan(self.log[past.sources, passes.OF_ROW])  # one margin was that of all classes
        if not before.any():
            passes.replay_all(state, X, past.sources, self.log)
            return
        for places in (np.flatnonzero(before), np.flatnonzero(~before)):
            some = X._replace(starts=X.starts[places], ends=X.ends[places])
            passes.replay_all(state, some, past.sources[places], self.log)
            if before[places].any():
                mirror(state, np.unique(past.slots[places]))

    def weights(self, n_features: int, n_outputs: int) -> tuple[np.ndarray, np.ndarray]:
        """Weights (d, K) relative to the units (d,) of the features: margin = sum of weight * x / unit.

        The others of so many features, of which a learner keeps nothing, have none.
        """
        fixed = self.fixed
        if fixed is not None:
            return fixed
        weights, units = read(self.state, min(n_features, self.state.n_features))
        return (weights, units) if self.offsets is None else with_offsets((weights, units), self.offsets)

    def fix(self, n_features: int, n_outputs: int) -> None:
        """Keep only the state for predictions, in single precision."""
        weights, units = self.weights(n_features, n_outputs)
        self.fixed_weights, self.fixed_units = weights.astype(np.float32).astype(np.float64), units
        self.state, self.offsets = self.state.blank(2, n_outputs), None

    def past_weights(self, X: Rows, past: Past) -> tuple[np.ndarray, np.ndarray] | None:
        """The :meth:`weights` and units of features without a slot: rows of one entry each, numbered by slots."""
        if self.log is None or self.is_bounded:
            return None
        n_features, n_outputs = 1 + int(past.slots.max(initial=1)), self.log.shape[1] - passes.OF_ROW
        state = self.state.blank(n_features, n_outputs)
        self._replay_into(state, X, past)
        return read(state)

    def predict(self, X: Any, read: Read, further: Any, objective: Objective) -> np.ndarray:
        """Margins (n, K), or predicted targets (n, 1), of rows in the member's view, by its :meth:`weights`.

        ``further`` are other entries of these rows (:class:`tunefree.pool.rows.Further`), or None.
        """
        weights, units = read
        margins = passes.score(weights, units, X)
        if further is not None:
            margins += passes.score(further.read[0], further.read[1], further.X)
        return objective.predictions_of(margins)


def late_margin(objective: Objective, rows: int) -> float:
    """The margin with which a class begins that comes after so many rows: the log-odds of one row among them.

    A learner that had known the class from the start would predict about as much. Margins of other losses than the
    logistic are no log-odds, and begin at 0.

    >>> round(late_margin(Objective("classification"), 100_000), 2)
    -11.51
    """
    return -math.log(max(rows, 1)) if objective.is_softmax else 0.0


def with_offsets(read: Read, offsets: np.ndarray) -> Read:
    """Weights with offsets (K,) added to the weights of the constant.

    >>> with_offsets((np.array([[1.0, 2.0]]), np.array([0.5])), np.array([0.0, -4.0]))
    (array([[1., 0.]]), array([0.5]))
    """
    weights, units = read
    if units[0] == 0.0:  # nothing was learned of the constant
        units[0] = 1.0
    weights[0] += offsets * units[0]
    return weights, units


def name_of(setting: Setting) -> str:
    """Learner, parameters and view, in words.

    >>> name_of(Setting("nag", {"eta": 2.0}, "steady")), name_of(Setting("scinol2", {}, "raw"))
    ('nag eta=2 steady', 'scinol2')
    """
    parts = [setting.learner, *(f"{name}={value:g}" for name, value in setting.settings.items())]
    return " ".join(parts if setting.view == "raw" else [*parts, setting.view])

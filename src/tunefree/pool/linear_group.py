"""Linear learners as members of a model, the views of rows that they share, and snapshots of the members."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import threads
from tunefree.core.errors import ModelError
from tunefree.core.fields import FEATURE, OUTPUT
from tunefree.core.numbers import CEILING
from tunefree.core.part import FIXED, LEARNED, Part, argument, array, child, children, number, scratch
from tunefree.core.rows import Rows, dense, entries_of, n_rows
from tunefree.core.schema import COUNT, SIZE, Flag, Sequence, Text
from tunefree.learners import ALL
from tunefree.learners.contract import begin_outputs, mirror
from tunefree.learners.weights import Averaged, ReadWeights, averaged, read
from tunefree.losses import loss_of
from tunefree.losses.objectives import Objective
from tunefree.pool import passes
from tunefree.pool.occurrences import EVERY, LOGGED, FirstMeetings, Met, Past, with_outputs, with_room
from tunefree.pool.rows import LabelledRows, WeightedRows
from tunefree.pool.targets import running_sum
from tunefree.pool.views import Steady, hidden, transform

MOST_ABSENT = 2**17  # the largest number of rows used to learn that a new class was absent


class Setting(NamedTuple):
    """The learner of a member, its parameters, and its view of the rows.

    >>> Setting("nag", {"eta": 2.0}, "steady").name, Setting("scinol2", {}, "raw").name
    ('nag eta=2 steady', 'scinol2')
    """

    learner: str  # a name in learners.ALL
    settings: dict[str, float]  # its parameters
    view: str  # one of views.NAMES

    @property
    def name(self) -> str:
        """Learner, parameters and view, in words."""
        parts = [self.learner, *(f"{name}={value:g}" for name, value in self.settings.items())]
        return " ".join(parts if self.view == "raw" else [*parts, self.view])


def _restore_nothing(member: Any, value: Any) -> None:
    """Restore nothing: the saved setting only determines the class of the learner."""


class Member(Part):
    """A linear learner of a model, whose weights may be the averages of its iterates.

    :func:`tunefree.pool.passes.learn` takes its ``state`` and ``objective`` and updates them in place.
    """

    setting, average, room = argument(), argument(), argument()
    n_known, n_logged = argument(), argument()  # numbers of features and log rows to save; None for all
    learner = number(FIXED, Text(), lambda member: member.setting.learner, _restore_nothing)
    is_averaged = number(FIXED, Flag(), lambda member: member.average, _restore_nothing)
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

    def __init__(self, setting: Setting, average: bool, n_features: int, n_outputs: int, objective: Objective) -> None:
        learner = averaged(ALL[setting.learner]) if average else ALL[setting.learner]
        try:
            self.state = learner(n_features, n_outputs, **setting.settings)
        except TypeError as error:
            raise ModelError(f"{setting.learner}: {error}") from None
        self.setting, self.average, self.objective = setting, average, objective.copied()
        if self.state.traits.takes_slopes_as_they_come and objective.task == "classification":
            self.objective.steepest = CEILING  # slopes are not clipped at the steepest so far
        self.room = n_features  # capacity in features; the state of some learners is smaller
        self.log = None  # slopes of rows, to replay first occurrences of features; None before the first one
        self.rows, self.mass = 0, 0.0  # number of learned rows, and sum of their weights
        self.offsets = None  # (K,) added to the weights of the constant, once a class was added after the first rows
        self.n_known = self.n_logged = None
        self.fixed_weights = self.fixed_units = None  # weights of a member that only predicts; its state is blank

    @property
    def fixed(self) -> ReadWeights | None:
        """The weights and units of a member that only predicts; None of a member that learns."""
        if self.fixed_weights is None or self.fixed_units is None:
            return None
        return ReadWeights(self.fixed_weights, self.fixed_units)

    def used_log(self) -> np.ndarray | None:
        """The rows of the log that are in use."""
        if self.log is None or self.n_logged is None:
            return self.log
        return with_room(self.log, self.n_logged)[: self.n_logged]

    def reserve(self, n_features: int, exactly: bool = False) -> None:
        """Reserve capacity for so many features; it doubles to save copies, unless ``exactly`` so many are wanted."""
        if n_features > self.room:
            self.room = n_features if exactly else max(n_features, 2 * self.room)
            self.state = self.state.grown(self.room, self.state.n_outputs)

    def add_outputs(self, objective: Objective, n_outputs: int) -> None:
        """Have more outputs; the margin of two classes becomes the margin of class 1.

        The steepest slope so far still bounds the slopes of the new objective. A class that appears after many rows
        begins with a low probability: its output begins as if it had learned the class's absence from them.
        """
        before = self.state.n_outputs
        first = 1 if before == 1 else 0
        absence_learner, margin = self._absence_learner(objective) if self.rows else (None, 0.0)
        offsets = np.zeros(before) if self.offsets is None else self.offsets
        self.offsets = with_outputs(offsets[None], n_outputs, first)[0]
        self.offsets[first + before :] = margin
        mirrors = first == 1 and objective.is_softmax
        self.state = self.state.with_outputs(n_outputs, first, mirrors)
        if absence_learner is not None:
            begin_outputs(self.state, absence_learner, range(first + before, n_outputs))
        if self.log is not None:
            self.log = with_outputs(self.log, n_outputs, first, passes.OF_ROW)
            if mirrors:  # NaN marks rows whose replay has to mirror output 1 to output 0, as the state does here
                self.log[:, passes.OF_ROW] = math.nan
        steepest, self.objective = self.objective.steepest, objective.copied()
        self.objective.steepest = max(steepest, objective.steepest)

    def _absence_learner(self, objective: Objective) -> tuple[Any, float]:
        """A learner of one output that learned from the constant alone that a class was absent from the rows so far;
        and where margins are log-odds, the offset from its margin to the log-odds of one row among them."""
        margin = -math.log(max(self.rows, 1)) if objective.is_softmax else 0.0
        if isinstance(self.state, Averaged):
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

        ``met`` has the entries that were left out of the rows. :meth:`replay` has to be called before.
        """
        self.count(weight)
        met_arrays: tuple[np.ndarray, ...] = passes.NOTHING_MET
        if met is not None:
            log = np.zeros((0, passes.OF_ROW + predictions.shape[1])) if self.log is None else self.log
            self.log = with_room(log, 1 + int(met.places.max(initial=-1)))
            met_arrays = met.left_out, met.places, self.log
        passes.learn(self.state, self.objective, X, y, weight, predictions, met_arrays, self.offsets)

    def count(self, weight: np.ndarray) -> None:
        """Add learned rows to the number of rows and the sum of weights."""
        self.rows += int(np.count_nonzero(weight > 0.0))
        self.mass = running_sum(self.mass, weight)

    @property
    def is_bounded(self) -> bool:
        """Whether the learner has statistics of the first features only, which have slots from the start."""
        return bool(self.state.n_features < self.room)

    def replay(self, X: Rows, past: Past) -> None:
        """Learn earlier occurrences, rows of one entry each, of features that have just got statistics."""
        if len(past.sources) and self.log is not None and not self.is_bounded:
            self._replay_into(self.state, X, past)

    def _replay_into(self, state: Any, X: Rows, past: Past) -> None:
        assert self.log is not None
        has_one_margin = np.isnan(self.log[past.sources, passes.OF_ROW])  # rows logged with one margin for both classes
        if not has_one_margin.any():
            passes.replay_all(state, X, past.sources, self.log)
            return
        for indices in (np.flatnonzero(has_one_margin), np.flatnonzero(~has_one_margin)):
            some = X._replace(starts=X.starts[indices], ends=X.ends[indices])
            passes.replay_all(state, some, past.sources[indices], self.log)
            if has_one_margin[indices].any():
                mirror(state, np.unique(past.rows.indices[indices]))

    def weights(self, n_features: int) -> ReadWeights:
        """Weights (d, K) relative to the units (d,) of the features: margin = sum of weight * x / unit.

        d is less than ``n_features`` if the learner has statistics of the first features only.
        """
        if self.fixed is not None:
            return self.fixed
        weights = read(self.state, min(n_features, self.state.n_features))
        self.add_offsets(weights)
        return weights

    def add_offsets(self, read: ReadWeights) -> None:
        """Add the offsets to the weights of the constant, in place."""
        if self.offsets is not None:
            read.units[0] = read.units[0] or 1.0  # 0 if the constant has no weight yet
            read.weights[0] += self.offsets * read.units[0]

    def fix(self, n_features: int) -> None:
        """Keep only the state for predictions, in single precision."""
        weights, units = self.weights(n_features)
        self.fixed_weights, self.fixed_units = weights.astype(np.float32).astype(np.float64), units
        self.state, self.offsets = self.state.blank(2, self.state.n_outputs), None

    def past_weights(self, X: Rows, past: Past) -> ReadWeights | None:
        """Weights and units of features without a slot, from their occurrences: rows of one entry each."""
        if self.log is None or self.is_bounded:
            return None
        n_features, n_outputs = 1 + int(past.rows.indices.max(initial=1)), self.log.shape[1] - passes.OF_ROW
        state = self.state.blank(n_features, n_outputs)
        self._replay_into(state, X, past)
        return read(state)


class LinearGroup(Part):
    """Linear learners, each on its view of the rows; members with the same view share it. There may be none.

    Their weights may be the averages of their iterates. Arrays of weights are indexed by the slots of features, which
    ``meetings`` assigns if all members can replay; else the slot of a feature is its number. Members do not see the
    dense columns of ``monotone`` features. ``latest`` is a pair: the latest rows, indexed by slots, or None if they
    were learned again; and the occurrences met in them, or None where each slot is the number of its feature.
    """

    n_features_of_rows, n_features, n_outputs, n_changes = argument(), argument(), argument(), argument()
    has_classes, hidden = argument(), argument()
    n_known: int | None = argument()  # the number of features to save; None for all
    meetings: FirstMeetings = child(
        FirstMeetings,
        LEARNED,
        may_be_none=True,
        make=lambda *_: FirstMeetings(),
        read=lambda group: group.meetings if 0 < group.meetings.first < EVERY else None,
        write=lambda group, saved: group._restore_meetings(saved),
    )
    members: list[Member] = children(Member, LEARNED)
    views: dict[str, Steady] = children(Steady, LEARNED, axes={"columns": "P"})
    latest: tuple[Rows | None, Met | None] = scratch(lambda _: (None, None))
    _weights: list[ReadWeights] | None = scratch()

    def __init__(
        self,
        settings: list[Setting],
        objective: Any,
        n_features: int,
        n_outputs: int,
        average: bool,
        meetings: FirstMeetings,
        monotone: Iterable[int],
    ) -> None:
        self.meetings, self.hidden = meetings, np.array([*monotone], np.intp)
        self.latest = None, None
        self.n_features_of_rows, self.n_known = n_features, None  # features known from the start
        self.n_features, self.n_outputs = meetings.n_slots(n_features), n_outputs
        self.has_classes = objective.task == "classification"
        member_arguments = average, self.n_features, n_outputs, objective
        self.members = [Member(setting, *member_arguments) for setting in settings]
        self.views = {}  # by name, from the first rows on; the raw view has no state
        self._weights = None  # a cache that is valid until a member changes
        self.n_changes = 0  # number of changes of members, by which others know that their copies are stale

    @property
    def n_columns(self) -> int | None:
        """The number of dense columns; None before the first row, and where all members have the raw view."""
        return next((len(view.centres) for view in self.views.values()), None)

    def reserve(self, n_features: int, n_slots: int = 0, exactly: bool = False) -> None:
        """Reserve capacity for the slots of at least ``n_features`` features, and for at least ``n_slots`` slots.

        Capacity doubles, unless ``exactly`` so many slots are wanted.
        """
        self.n_features = max(self.n_features, self.meetings.n_slots(n_features))
        self.complete()
        for member in self.members:
            member.reserve(max(n_slots, self.n_features), exactly)

    def settle(self) -> Past | None:
        """Learn all kept occurrences, and return them; from now on features get slots at once."""
        past = self.meetings.settle()
        if past is not None:
            self.reserve(self.meetings.first)
            self._replay(past)
        return past

    def weights(self, n_features: int) -> ReadWeights:
        """The weights (d, K) of the first member, and the units (d,), by feature."""
        group = copy.deepcopy(self) if self.meetings.assigns_slots else self
        group.settle()
        return ReadWeights(*(group.meetings.by_feature(array, n_features) for array in group._reads()[0]))

    def forget(self, features: np.ndarray) -> None:
        """Forget features, whose slots must be their numbers."""
        assert not self.meetings.assigns_slots
        self.complete()
        for member in self.members:
            member.state.forget(features[features < member.state.n_features])

    def reduce(self) -> None:
        """Keep only the state for predictions.

        Features without a slot stay in the log, as the slopes of their rows: weights would take K numbers each.
        """
        for member in self.members:
            member.fix(self.n_features)
        self.complete()

    def _replay(self, past: Past) -> None:
        if len(past.sources):
            rows = {view: self.meetings.replayed(past, view) for view in self.meetings.values}
            each = [(member, rows[member.setting.view]) for member in self.members if member.setting.view in rows]
            threads.each(lambda member, X: member.replay(X, past), each, len(past.sources))

    def learn(self, rows: LabelledRows, again: bool = False) -> np.ndarray:
        """Learn rows with classes or numbers; returns predictions (M, n, K) of members before each row is learned.

        Views do not learn from rows that come ``again``.
        """
        X, y, weight = rows[:3]
        if self.has_classes and self.n_outputs == 1:
            y = np.where(y == 1.0, 1.0, -1.0)
        y = np.ascontiguousarray(y, np.float64)
        predictions = np.empty((len(self.members), len(y), self.n_outputs))
        self.complete()
        shown, learns = hidden(X, self.hidden), np.zeros(len(y)) if again else weight
        views = self.view_names - {"raw"}
        self.views |= {name: Steady.create(X.numbers.shape[1]) for name in views - self.views.keys()}
        by_view = {"raw": X} | {name: transform(self.views[name], shown, learns) for name in views}
        met = self.meetings.meet(by_view, weight, self.n_outputs)
        if met is not None:
            by_view = met.rows
            self.reserve(self.meetings.first, met.n_slots)
            self._replay(met.past)
        names = self.view_names if again else self.view_names | {"raw"}
        entries = {view: entries_of(by_view[view]) for view in names}
        self.latest = entries.get("raw"), met
        if len(self.hidden):
            entries["raw"] = entries_of(hidden(by_view["raw"], self.hidden))
        threads.each(
            lambda member, written: member.learn(entries[member.setting.view], y, weight, written, met),
            list(zip(self.members, predictions, strict=True)),
            len(y),
        )
        if met is not None and met.visited.start < met.visited.stop:
            for member in self.members:
                member.state.forget(met.visited)
        return predictions

    def present(self) -> LinearSnapshot:
        """The members as they are now, valid until they learn."""
        return LinearSnapshot(self, self._reads(), self.views)

    def snapshot(self) -> LinearSnapshot:
        """A snapshot of the members, whose predictions stay the same to the bit while the group learns."""
        reads, self._weights = self._reads(), None  # the snapshot owns these arrays from now on
        return LinearSnapshot(self, reads, copy.deepcopy(self.views))

    @property
    def view_names(self) -> set[str]:
        """The names of the views of the members."""
        return {member.setting.view for member in self.members}

    def _reads(self) -> list[ReadWeights]:
        """For each member, its weights (d, K) and the units (d,) of the features in its view."""
        if self._weights is None:
            self._weights = [member.weights(self.n_features) for member in self.members]
        return self._weights

    def keep(self, stays: list[int]) -> None:
        """Go on with some of the members."""
        self.members = [self.members[m] for m in stays]
        self.complete()

    def add_class(self, objective: Any, n_outputs: int) -> None:
        """Add a class; members then have ``n_outputs`` outputs and this objective.

        A second class needs no new margin. A third one turns one margin into three: the old one is that of class 1.
        """
        if n_outputs > self.n_outputs:
            for member in self.members:
                member.add_outputs(objective, n_outputs)
            self.n_outputs = n_outputs
            self.complete()

    def prepare(self) -> None:
        """Exclude spare capacity, which depends on the blocks in which rows came, before a file is written."""
        for member in self.members:
            member.n_known = self.n_features if self.n_known is None else self.meetings.n_slots(self.n_known)
            member.n_logged = min(self.meetings.n_logged, LOGGED)
        self.meetings.n_known = self.n_known

    def _restore_meetings(self, meetings: FirstMeetings | None) -> None:
        """Take over restored meetings and reserve capacity for their slots and for those of dense columns."""
        if meetings is not None:
            self.meetings = meetings
            self.reserve(max(self.n_features_of_rows, len(meetings.slot_of)))

    def complete(self) -> None:
        """Note that the weights of members have changed: cached weights are stale."""
        self._weights, self.n_changes = None, self.n_changes + 1


class LinearSnapshot(Part):
    """The members of a group with the weights, objectives, views and slots of one moment.

    It reads features without a slot from the group. So it is valid as long as the group keeps its members and outputs,
    and includes such a feature as long as the log of the group has its rows. ``counts`` are the number of slots, and
    the number of rows with first occurrences, at that moment: features that occurred later have no effect.
    """

    group: LinearGroup = argument()
    reads = children(ReadWeights, LEARNED)
    views: dict[str, Steady] = children(Steady, FIXED)
    objectives: list[Objective] = children(
        Objective, FIXED, make=lambda snapshot, _: snapshot.group.members[0].objective.copied()
    )
    counts: tuple[int, int] = number(FIXED, Sequence(COUNT, 2))

    def __init__(self, group: LinearGroup, reads: list[ReadWeights], views: dict[str, Steady]) -> None:
        self.group, self.reads, self.views = group, reads, views
        self.counts = (group.n_features, group.meetings.n_logged) if group.meetings.assigns_slots else (0, 0)
        self.objectives = [member.objective.copied() for member in group.members]

    def check(self) -> None:
        """Raise a ModelError unless there are weights of all members, for all outputs."""
        members, n_outputs = self.group.members, self.group.n_outputs
        if {len(self.reads), len(self.objectives)} != {len(members)} or len(self.counts) != 2:
            raise ModelError("a copy has not the members")
        if any(weights.shape[1] != n_outputs for weights, _ in self.reads):
            raise ModelError("a copy has not the weights of its members")

    def predict(self, X: Any) -> np.ndarray:
        """Predictions (M, n, K) of the members."""
        members, predictions = self.group.members, np.empty((len(self.reads), n_rows(X), self.group.n_outputs))
        weighted = self._weighting(X)

        def predict_member(member: Member, read: ReadWeights, objective: Objective, written: np.ndarray) -> None:
            margins = [passes.score(*rows.read, rows.X) for rows in weighted(member, read)]
            written[:] = objective.predictions_of(np.sum(margins, axis=0))

        threads.each(predict_member, zip(members, self.reads, self.objectives, predictions, strict=True), n_rows(X))
        return predictions

    def weighted_rows(self, X: Any) -> Iterator[list[WeightedRows]]:
        """Rows as each of the members sees them, and entries of features without a slot, if there are any."""
        return map(self._weighting(X), self.group.members, self.reads)

    def _weighting(self, X: Any) -> Callable[[Member, ReadWeights], list[WeightedRows]]:
        """A function of a member and its weights that returns its part of :meth:`weighted_rows`.

        For features without a slot see :meth:`tunefree.pool.occurrences.FirstMeetings.alone_in`.
        """
        X, meetings, nothing = hidden(X, self.group.hidden), self.group.meetings, np.zeros(n_rows(X))
        by_view = {"raw": X} | {name: transform(view, X, nothing) for name, view in self.views.items()}
        alone, in_slots = meetings.alone_in(by_view, *self.counts), meetings.in_slots(by_view)
        entries = {view: entries_of(in_slots.get(view, in_slots["raw"])) for view in self.group.view_names}

        def weighted(member: Member, read: ReadWeights) -> list[WeightedRows]:
            view = member.setting.view
            seen = [WeightedRows(entries[view], read)]
            if alone is not None and view in alone.rows:
                past_weights = member.past_weights(meetings.replayed(alone.past, view), alone.past)
                if past_weights is not None:
                    seen.append(WeightedRows(alone.rows[view], past_weights, np.append(0, alone.features)))
            return seen

        return weighted

    def forget(self, features: np.ndarray) -> None:
        """Predict as if features had never been seen; see ``LinearGroup.forget``."""
        for weights, _ in self.reads:
            weights[features[features < len(weights)]] = 0.0

"""The record of the first pass: evidence for certificates, and progressive losses, which bound risks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.fields import FEATURE as FIELD_FEATURE
from tunefree.core.fields import OUTPUT
from tunefree.core.part import LEARNED, Part, argument, array, child, number, scratch
from tunefree.core.schema import SIZE, Flag, Record
from tunefree.losses.objectives import chosen
from tunefree.pool.ledger import Ledger
from tunefree.pool.occurrences import FirstMeetings, Met, Past, with_outputs, with_room
from tunefree.pool.options import ModelOptions
from tunefree.pool.targets import RunningMean
from tunefree.theory.evidence import Certificate, Evidence, certify, record_evidence, replay_evidence, widened
from tunefree.theory.risk import Progressive

MOST_NATS = 10.0  # log-losses are clipped to it in bounds of the risk of predictions


class PredictedRows(NamedTuple):
    """Learned rows, and their predictions from before they were learned."""

    objective: Any  # of the predictions
    X: Any  # entries, ``latest`` of a :class:`tunefree.pool.linear_group.LinearGroup`
    y: np.ndarray  # (n,) targets in the form of the objective
    learned: np.ndarray  # (n,) weights, 0 for rows that all members keep back
    weight: np.ndarray  # (n,) weights, 0 for rows before the first target
    predictions: np.ndarray  # (n, K)
    losses: np.ndarray  # (n,)
    met: Met | None  # occurrences, if features have slots


class FirstPassRecord(Part):
    """Sums over the rows of the first pass, each predicted before it was learned.

    ``risks`` are bounds for classes, ``"error"`` and ``"log_loss"``. ``targets`` is the mean of the learned targets in
    regression, which is the prediction as long as no member predicts. The pass ``is_over`` once rows were learned
    again: learners then have learned more than the recorded rows.
    """

    n_known: int | None = argument()  # the number of features to save; None for all
    evidence = child(
        Evidence,
        LEARNED,
        axes={FIELD_FEATURE: "E", OUTPUT: "K"},
        read=lambda record: record.evidence.arrays(record.n_known),
    )
    log = array("float64", ("logged", "K"), LEARNED, read=lambda record: record.used_log())
    steepest = number(LEARNED, SIZE)
    risks: dict[str, Progressive] = number(LEARNED, dict.fromkeys(("error", "log_loss"), Record(Progressive)))
    targets = number(LEARNED, Record(RunningMean))
    is_over = number(LEARNED, Flag())
    _of_classes, _of_log_losses = argument(), argument()
    _ledger = scratch(lambda _: Ledger())

    def __init__(self, options: ModelOptions, n_features: int, n_outputs: int) -> None:
        self._ledger, self.n_known = Ledger(), None
        self.evidence = Evidence(n_features, n_outputs)
        self.log, self.steepest = np.zeros((0, n_outputs)), 0.0  # weighted slopes of rows with first occurrences
        self.risks = {"error": Progressive(), "log_loss": Progressive(MOST_NATS)}
        self.targets = RunningMean()
        self.is_over = False
        self._of_classes, self._of_log_losses = options.task == "classification", not options.is_calibrated

    def used_log(self) -> np.ndarray:
        """The rows of the log that are in use; its capacity depends on the blocks in which rows came."""
        return self.log[: int(np.flatnonzero(self.log.any(axis=1)).max(initial=-1)) + 1]

    def reserve(self, n_features: int, exactly: bool = False) -> None:
        """Reserve capacity for so many features; it doubles to save copies, unless ``exactly`` so many are wanted."""
        capacity = self.evidence.n_features
        if n_features > capacity:
            room = n_features if exactly else max(n_features, 2 * capacity)
            self.evidence = self.evidence.grown(room, self.evidence.n_outputs)

    def add_outputs(self, n_outputs: int, objective: Any) -> None:
        """Extend the record to more outputs; later predictions have this objective. No rows may wait."""
        split = self.log.shape[1] == 1 < n_outputs
        self.evidence = widened(self.evidence, self.evidence.n_features, n_outputs, objective)
        self.log = with_outputs(self.log, n_outputs, 1 if split else 0)
        if split and objective.is_softmax:
            self.log[:, 0] = 0.0 - self.log[:, 1]

    def add(self, rows: PredictedRows) -> None:
        """Add rows, whose arrays must not be written to, as they may wait to be recorded.

        A row that all members keep back does not count in the bounds of the risk.
        """
        if rows.met is not None:
            self.prepare()
        if self._ledger.add(rows) or rows.met is not None:
            self.prepare()

    def prepare(self) -> None:
        """Add the rows that wait."""
        self._ledger.flush(self._add)

    def _add(self, rows: PredictedRows) -> None:
        objective, X, y, learned, weight, predictions, row_losses, met = rows
        row_losses = np.where(np.isnan(row_losses), 0.0, row_losses)
        arrays = X, y, weight, predictions, row_losses
        if met is None:
            record_evidence(self.evidence, objective, *arrays)
        else:
            self.log = with_room(self.log, 1 + int(met.places.max(initial=-1)))
            self.reserve(met.n_slots)
            self.replay(met.past)
            record_evidence(self.evidence, objective, *arrays, met.places, self.log)
            self.evidence.forget(met.visited)
            steep = np.abs(self.log[met.places[met.places >= 0]]).sum(axis=1)
            self.steepest = max(self.steepest, float(steep.max(initial=0.0)))
        if self._of_classes:
            codes = np.where(y > 0, 1, 0) if predictions.shape[1] == 1 else y
            kept = (weight > 0) & (learned > 0)
            self.risks["error"].add(weight[kept], (chosen(predictions) != codes)[kept])
            if self._of_log_losses:
                self.risks["log_loss"].add(weight[kept], row_losses[kept])

    def replay(self, past: Past | None) -> None:
        """Add first occurrences that were left out of earlier rows."""
        if past is not None and len(past.sources):
            self.reserve(1 + int(past.rows.indices.max()))
            replay_evidence(self.evidence, past.rows, past.sources, with_room(self.log, 1 + int(past.sources.max())))

    def certificate(self, n_features: int, objective: Any, meetings: FirstMeetings) -> Certificate:
        """The certificate of every linear model on these rows; ``meetings`` maps features to slots.

        For features whose first occurrence has left the log, the steepest slopes of logged rows are a bound.
        """
        record = self
        if "raw" in meetings.values:  # some features may have no slot
            meetings, record = meetings.copied(), self.copied()
            record.replay(meetings.settle())
        complete = certify(record.evidence, objective)
        pulls, largest = (meetings.by_feature(array, n_features) for array in (complete.pulls, complete.largest))
        kept, values = meetings.features[: meetings.n_kept], meetings.values.get("raw", np.zeros(0))[: meetings.n_kept]
        is_known = kept < n_features
        np.maximum.at(largest, kept[is_known], np.abs(values[is_known]))
        n_partial = meetings.n_partial
        return replace(complete, pulls=pulls, largest=largest, n_partial=n_partial, steepest=self.steepest)

"""What predicts once learning has ended, and its evidence: frozen copies, judged by the rows that follow them.

The mixture that predicts the next row of a stream is judged by how well it follows. A model that is trained once and
then stands still is used otherwise, and needs evidence of its own. So the members are copied at rows that are spaced
geometrically, and a copy made after s rows predicts, without learning, rows up to 2s. These predictions tell the
shares (:mod:`tunefree.model.soft_bayes`) of the model's own mixture, of the members, and of averages of their weights
over the stream, with round t weighted like t^2; and how far margins have to be shrunk. Predictions on the way do not
depend on any of this. Of numbers the shares follow :mod:`tunefree.model.ml_prod`, and there is nothing to shrink.

Memory is bounded by seven copies of the weights a member: one average, two copies with averages, and the one that
predicts. Time is bounded too: weights are copied only if the entries learned since the last time exceed COST times
their number, and copies predict 512 rows an octave.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.rows import reach, rows_with_weight, together
from tunefree.core.states import filled, flatten, under
from tunefree.model import decay, ml_prod, schedule, snapshots, soft_bayes
from tunefree.model.decay import Decay, Expectation
from tunefree.model.ensemble import Ensemble
from tunefree.model.group import LabelledRows, MemberGroup, Read
from tunefree.model.mixture import Mixture, predictive_shares
from tunefree.model.snapshots import Snapshot
from tunefree.model.soft_bayes import Deployed
from tunefree.model.weights import moved

BETWEEN = 2  # cuts between two copies
COST = 12.0  # entries that are learned for each weight that is copied
TRUSTED = 512  # rows of copies whose losses tell a temperature
RULES: dict[str, Any] = {"classification": soft_bayes, "regression": ml_prod}  # by which shares are learned


@dataclass
class FrozenCopy:
    """The members as they were, and how they would have predicted from there on."""

    snapshot: Snapshot
    mixture: np.ndarray  # (N,) shares in the model's own mixture
    shares: np.ndarray  # (2N,) of the members and their averages in predictions
    temperature: float
    range: np.ndarray  # (2,) least and greatest target learned, where targets are numbers
    record: decay.Copy

    @property
    def last(self) -> int:
        """The last row that it is judged by."""
        return self.record.rows + self.record.span


class Waiting(NamedTuple):
    """Rows by which copies have yet to be judged."""

    rows: LabelledRows
    counts: np.ndarray  # (m,) each row's number
    places: np.ndarray  # (m,) of the rows among those that were learned with them
    mixed: Future[Any]  # predictions of these on the way, and their losses


class Predicted(NamedTuple):
    """Rows that copies predicted."""

    rows: LabelledRows
    judging: list[FrozenCopy]
    predictions: np.ndarray  # (S, 2N, m, K) of the copies


class Deployment:
    """Evidence of how members and their averages predict later rows.

    Parameters
    ----------
    task : {"classification", "regression"}
    n_members : int
    horizon : int, optional
        Rows ahead that will be predicted, if fewer than the rows learned.
    """

    def __init__(self, task: str, n_members: int, horizon: int | None = None) -> None:
        self.horizon, self._rules = horizon, RULES[task]
        self.rows, self.reach = 0, 0  # learned, and one more than their highest feature
        self.work = 0.0  # entries learned since weights were copied
        self.captured, self.copied = 0, 0  # rows when weights were last averaged, and when the last copy was made
        self.averages: list[Read] | None = None  # of each member
        self.copies: list[FrozenCopy] = []  # that are being judged
        self.rule: Any = self._rules.create(soft_bayes.prior_of(n_members))
        self.decay = Decay()
        self._waiting: list[Waiting] = []  # only while rows are learned, as
        self._predicted: Predicted | None = None  # the same rows
        self._judged: Future[None] | None = None  # until the latest rows are

    @property
    def predicts(self) -> bool:
        """Whether enough is known to predict otherwise than the model's own mixture does."""
        return self.averages is not None and bool(self.rule.rounds[()] > 0.0)

    @property
    def temperature(self) -> float:
        """The factor of margins in predictions."""
        return float(self._rules.temperature(self.rule))

    def shares(self, mixture: np.ndarray) -> np.ndarray:
        """Shares (2N,) of members and averages in predictions, from those (N,) of the model's own mixture."""
        found = self.rule.means[1:].copy()
        found[: len(mixture)] += self.rule.means[0] * mixture
        return found

    def shares_of_members(self) -> np.ndarray:
        """Shares (N,) of members in predictions, those of their averages included, the model's own mixture left out."""
        self.wait()
        own, of_averages = np.split(self.rule.means[1:], 2)
        return own + of_averages

    def cuts(self, weight: np.ndarray) -> set[int]:
        """How many of some rows to learn until each of the cuts that fall among them; rows of weight 0 do not count."""
        counts = self.rows + np.cumsum(weight > 0)
        ends = {own.last for own in self.copies}
        events = [*schedule.cuts_between(self.rows, int(counts[-1])), *(e for e in ends if self.rows < e < counts[-1])]
        return {int(np.searchsorted(counts, event)) + 1 for event in events}

    def meet(self, ensemble: Ensemble, rows: LabelledRows) -> None:
        """Take note of rows that the members are about to learn; no cut lies between these.

        Copies predict some of them, many at a time, and always before the row after which functions join.
        """
        counts = self.rows + np.cumsum(rows.evaluation_weight > 0)
        picked = np.flatnonzero((rows.evaluation_weight > 0) & (counts % schedule.stride(self.rows + 1) == 0))
        if len(picked) and any(own.last > self.rows for own in self.copies):
            self._waiting.append(Waiting(rows.at(picked), counts[picked], picked, Future()))
        if self._is_turn(int(counts[-1])):
            self._predict(ensemble)

    def _is_turn(self, rows: int) -> bool:
        """Whether copies may be made, or end, after so many rows, or an octave ends, where functions join."""
        place, next_copy = schedule.place(rows), schedule.place(max(self.copied, 1)) + BETWEEN
        may_change = schedule.is_cut(rows) and (place % len(schedule.CUTS) == 0 or place >= next_copy)
        return may_change or any(own.last == rows for own in self.copies)

    def _predict(self, ensemble: Ensemble) -> None:
        """Have the rows that wait predicted by copies."""
        if self._waiting and self._predicted is None:
            parts, first = [own.rows for own in self._waiting], int(self._waiting[0].counts[0])
            judging = [own for own in self.copies if own.last >= first]
            of_all = (np.concatenate(arrays) for arrays in list(zip(*parts, strict=True))[1:])
            rows = LabelledRows(together([own.X for own in parts]), *of_all)
            predictions = snapshots.predict([own.snapshot for own in judging], ensemble.groups, rows.X)
            self._predicted = Predicted(rows, judging, predictions)

    def follow(
        self, ensemble: Ensemble, objective: Any, rows: LabelledRows, mixed: Future[Any], later: Callable[..., Any]
    ) -> None:
        """Take note that the members have learned the rows; ``mixed`` are their predictions on the way, and losses."""
        before = self.rows
        self.rows += int(np.count_nonzero(rows.evaluation_weight > 0))
        self.reach = max(self.reach, reach(rows_with_weight(rows.X, rows.evaluation_weight)))
        self.work += ensemble.take_work()
        if self.rows > before and schedule.stride(before + 1) > schedule.stride(max(before, 1)):
            later(self._rules.halve_losses, self.rule)
        self._judged = later(self._go_on, rows.evaluation_weight, mixed, self.rows)
        if self._waiting and self._waiting[-1].counts[-1] > before:
            self._waiting[-1] = self._waiting[-1]._replace(mixed=mixed)
        if self._predicted is not None:
            self.judge(ensemble, objective, later)

    def _go_on(self, weight: np.ndarray, mixed: Future[Any], rows: int) -> None:
        """Add losses on the way."""
        _, way = mixed.result()
        counted = (weight > 0) & ~np.isnan(way)
        self.decay.go_on(rows, weight[counted], way[counted])

    def judge(self, ensemble: Ensemble, objective: Any, later: Callable[..., Any]) -> None:
        """Judge copies by all rows that were learned. Members change only after this, but by learning."""
        self._predict(ensemble)
        if self._predicted is not None:
            self._judged = later(self._judge, objective, self._predicted, self._waiting)
        self._waiting, self._predicted = [], None

    def _judge(self, objective: Any, predicted: Predicted, waiting: list[Waiting]) -> None:
        """Add rows to the evidence."""
        rows, judging, predictions = predicted
        deployed = Deployed(
            np.array([own.mixture for own in judging]),
            np.array([own.shares for own in judging]),
            np.array([own.temperature for own in judging]),
            np.array([float(own.record.rows >= TRUSTED) for own in judging]),
            *np.array([own.range for own in judging]).T.copy(),
        )
        weight, losses = rows.evaluation_weight, np.empty((len(judging), len(rows.y)))
        self._rules.judge(self.rule, objective, rows.y, weight, deployed, predictions, losses)
        counts = np.concatenate([own.counts for own in waiting])
        way = np.concatenate([own.mixed.result()[1][own.places] for own in waiting])
        for own, row_losses in zip(judging, losses, strict=True):
            decay.add_losses(own.record, counts, weight, row_losses, way)

    def wait(self) -> None:
        """Wait until all rows that were followed are judged."""
        if self._judged is not None:
            self._judged.result()
            self._judged = None

    def is_due(self, ensemble: Ensemble) -> bool:
        """Whether it is time to capture the members' weights."""
        is_cut = schedule.is_cut(self.rows) and self.captured < self.rows
        return is_cut and self.work >= COST * ensemble.n_weights(self.reach)

    def capture(self, ensemble: Ensemble, mixture: Mixture) -> None:
        """Average the members' weights, and copy them if it is time; ``mixture`` is the model's own."""
        now = ensemble.reads(self.reach)
        if now is None:
            return
        step = 1.0 - (self.captured / self.rows) ** 3
        averages = [None] * len(now) if self.averages is None else self.averages
        self.averages = [moved(own, read, step) for own, read in zip(averages, now, strict=True)]
        self.captured, self.work = self.rows, 0.0
        if schedule.place(self.rows) >= schedule.place(max(self.copied, 1)) + BETWEEN:
            self.wait()
            self.copied = self.rows
            snapshot, shares = snapshots.take(ensemble.groups, now, self.averages), predictive_shares(mixture).copy()
            limits = np.array([mixture.lowest, mixture.highest])
            record = self.decay.add(self.rows, min(self.rows, self.horizon or self.rows))
            self.copies = [own for own in self.copies if own.last > self.rows]
            self.copies.append(FrozenCopy(snapshot, shares, self.shares(shares), self.temperature, limits, record))

    def snapshot(self, ensemble: Ensemble) -> Snapshot | None:
        """Members and averages as they are now; None where there is no evidence, or members have no weights."""
        now = ensemble.reads(self.reach) if self.predicts else None
        return None if now is None or self.averages is None else snapshots.take(ensemble.groups, now, self.averages)

    def blended(self, ensemble: Ensemble, mixture: np.ndarray) -> tuple[list[MemberGroup], np.ndarray] | None:
        """The groups with the means of the weights by which each member and its average predict, and the members'
        shares. Of classes this is not what predicts, which is a mean of probabilities. None as for :meth:`snapshot`."""
        now = ensemble.reads(self.reach) if self.predicts else None
        if now is None or self.averages is None:
            return None
        own, of_averages = np.split(self.shares(mixture), 2)
        together = own + of_averages
        parts = np.divide(own, together, out=np.ones(len(own)), where=together > 0.0).tolist()
        blends = []
        for average, read, part in zip(self.averages, now, parts, strict=True):
            weights, units = moved(average, read, part)
            blends.append((self.temperature * weights, units))
        groups, start = [], 0
        for group in ensemble.groups:
            stop = start + len(group.members)
            groups.append(group.with_weights(blends[start:stop]))
            start = stop
        return groups, together

    def expectation(self) -> Expectation | None:
        """What to expect of a model that stands still from here on; None if too little is known."""
        return self.decay.expectation(self.rows, self.horizon)

    def add_outputs(self, ensemble: Ensemble) -> None:
        """Have more outputs, as the members have. Copies cannot tell the new class, and are judged no further."""
        self.wait()
        self.copies, now = [], ensemble.reads(self.reach)
        if self.averages is not None and now is not None:
            self.averages = [snapshots.with_outputs(own, read) for own, read in zip(self.averages, now, strict=True)]

    def prune(self, leaves: np.ndarray) -> None:
        """Go on without some members."""
        if not leaves.any():
            return
        self.wait()
        stays = ~leaves
        self.rule = self._rules.without(self.rule, np.concatenate([[True], stays, stays]))
        if self.averages is not None:
            self.averages = [own for own, kept in zip(self.averages, stays.tolist(), strict=True) if kept]
        both = np.concatenate([stays, stays])
        for own in self.copies:
            own.snapshot = snapshots.without(own.snapshot, stays)
            own.mixture, own.shares = _normalised(own.mixture[stays]), _normalised(own.shares[both])

    def save_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :meth:`restore` makes the same."""
        arrays, _ = flatten("rule", self.rule, 0)
        arrays |= {f"decay.{name}": array for name, array in self.decay.save_state().items()}
        header: dict[str, Any] = {name: getattr(self, name) for name in _NUMBERS}
        for m, (weights, units) in enumerate(self.averages or []):
            arrays |= {f"averages.{m}.weights": weights, f"averages.{m}.units": units}
        header |= {"averages": len(self.averages or []), "copies": []}
        for number, own in enumerate(self.copies):
            saved, of_snapshot = snapshots.save_state(own.snapshot, self.reach)
            saved |= {"mixture": own.mixture, "shares": own.shares, "range": own.range}
            arrays |= {f"copies.{number}.{name}": array for name, array in saved.items()}
            place = next(k for k, record in enumerate(self.decay.copies) if record is own.record)
            header["copies"].append({"temperature": own.temperature, "record": place, "snapshot": of_snapshot})
        return arrays, header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any], objectives: list[Any]) -> None:
        """Take over what :meth:`save_state` wrote; ``objectives`` are those of the members."""
        for name in _NUMBERS:
            setattr(self, name, header[name])
        self.rule = filled("rule", self.rule, arrays, {})
        self.decay = Decay.restored(under("decay.", arrays))
        reads = [under(f"averages.{m}.", arrays) for m in range(header["averages"])]
        self.averages = [(own["weights"], own["units"]) for own in reads] or None
        for number, saved in enumerate(header["copies"]):
            own = under(f"copies.{number}.", arrays)
            snapshot = snapshots.restored(own, saved["snapshot"], objectives)
            record = self.decay.copies[saved["record"]]
            limits = own.get("range", np.array([np.inf, -np.inf]))  # files of older versions are of classes only
            self.copies.append(
                FrozenCopy(snapshot, own["mixture"], own["shares"], saved["temperature"], limits, record)
            )


_NUMBERS = ("rows", "reach", "work", "captured", "copied")  # that JSON holds as they are


def _normalised(shares: np.ndarray) -> np.ndarray:
    return shares / shares.sum()

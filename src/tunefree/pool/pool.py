"""The loop over rows: members predict a row and learn it, the mixture learns on what they predicted.

Rows are cut at fixed numbers of them, where generations are born and take over, and nowhere else does it matter how
they come in blocks. A row of weight 0 is predicted only, and counts nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.numbers import power_below, scaled
from tunefree.core.rows import copied, n_rows, part, together
from tunefree.generations.seen import Seen
from tunefree.intervals.conformal_record import ConformalRecord, Judged
from tunefree.intervals.learning_curve import LearningCurve
from tunefree.intervals.sets import draws_of
from tunefree.losses.rates import logarithm_of_few
from tunefree.mixing.mixture import Mixture
from tunefree.model.record import TOGETHER
from tunefree.model.relative import RelativeWeights
from tunefree.pool.balance import Balance, write_before_events
from tunefree.pool.frozen import FOLLOWING, Frozen
from tunefree.pool.groups import chunks, of_one_row, starts_of_runs
from tunefree.pool.growth import Observed
from tunefree.pool.members import Ahead, Members
from tunefree.pool.single_row import SingleRows
from tunefree.pool.slots import WHOLE
from tunefree.pool.waiting import Waiting
from tunefree.pool.weights_record import Selection, WeightsRecord, running
from tunefree.pool.windows import BLOCK, Rises

PIECE = 2048  # rows that members learn at a time, but
WORDS = 2**17  # no more words than these, whose features take statistics while their rows are learned, and
NUMBERS = 2**22  # no more dense numbers than these, of which there are copies
GREAT = 1e100  # a first target beyond is a unit of the targets, whose squares would not be finite
UNGROUPED = "rows learned before had no groups; leave groups= out for these, or begin a new model with them"


class LearnedRows(NamedTuple):
    """Rows that were predicted, and then learned by members and mixture."""

    X: Any  # block of rows
    observed: Observed
    predictions: np.ndarray  # (n, M, K) of the members
    mixed: np.ndarray  # (n, K) of the mixture
    y: np.ndarray  # (n,)
    weight: np.ndarray  # (n,)
    evidence: np.ndarray  # (n,) weights of rows that judge members
    judging: np.ndarray  # (n,) those of rows that judge the mixture: one row of a group
    numbers: np.ndarray  # (n,) rows learned with each

    @classmethod
    def joined(cls, parts: list[LearnedRows]) -> LearnedRows:
        """Rows one after the other, which have the same columns."""
        X, observed, *arrays = zip(*parts, strict=True)
        of_parts = Observed(*map(np.concatenate, zip(*observed, strict=True)))
        return cls(together(list(X)), of_parts, *map(np.concatenate, arrays))


class Pool:
    """Online learners and generations, mixed.

    Parameters
    ----------
    members : Members

    Attributes
    ----------
    unit : float
        Of numbers to predict, as members and mixture see them.
    n_repeats : int
        Rows learned whose observation, or group, was learned before.
    mixture : Mixture
        Of the members as they learn.
    frozen : Frozen
        Of generations as they were born, and what is known of predicting rows to come.
    record : WeightsRecord
        Weights and losses of the members over the rows, as long as there are generations.
    conformal : ConformalRecord
        How far off the mixture was on rows that are evidence.
    balance : Balance or None
        Of a loss with a logarithmic link.
    has_finished : bool
        Whether the pass has ended, and no row was learned since.
    only_predicts : bool
        Whether all that learning needs was left out.
    only_members_learn : bool
        Whether the mixture predicts with the weights that it has, and nothing is recorded of the members.
    """

    def __init__(self, members: Members) -> None:
        self.members = members
        self.unit, self.only_members_learn = 1.0, False
        self.relative, self.n_repeats, self.has_finished, self.only_predicts = RelativeWeights(), 0, False, False
        self.mixture = self.new_mixture()
        self.frozen = self._new_frozen()
        self.waiting, self.single_rows = Waiting(), SingleRows()
        self.record = WeightsRecord(len(self.members.names))
        self.conformal = ConformalRecord(self.members.loss)
        self.balance = Balance() if members.predicts_logarithms else None
        self.rises, self.block = Rises(), np.zeros(2)  # loss of the mixture and rows in the present block
        self.unrecorded: list[LearnedRows] = []  # single rows

    @property
    def rows(self) -> int:
        """Rows learned."""
        return self.relative.rows

    def new_mixture(self) -> Mixture:
        """A mixture of all members that knows nothing."""
        return Mixture(len(self.members.names), self.members.width, self.members.loss)

    def _new_frozen(self) -> Frozen:
        born = [place for slot, place in self.members.slots.items() if slot.clock == WHOLE and slot.is_as_born]
        return Frozen(born, self.members.width, self.members.loss)

    def give_up_trees(self) -> None:
        """Go on without generations, and without what is known of them; online members predict from here on."""
        self.settle()
        self.members.growth, self.frozen = None, self._new_frozen()
        if self.balance is not None:
            self.balance.forget()
        self.conformal.give_up_trees()

    def learn(
        self, X: Any, y: np.ndarray, weight: np.ndarray, groups: np.ndarray | None = None
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Predict rows in order, and learn each after that, piece after piece.

        Parameters
        ----------
        X : block of rows
        y : (n,) array
            Numbers of classes, or numbers.
        weight : (n,) array
            Counts relative to the mean so far; a row of weight 0 is predicted only.
        groups : (n,) uint64 array, optional
            Digests of the rows' groups. A run of rows of one group is predicted before any of it is learned.

        Yields
        ------
        piece : slice
            Where these rows are among all.
        mixed : (n, K) array
            Log-probabilities of at least two classes, or numbers, each predicted before its row was learned.

        Raises
        ------
        ModelError
            If rows before had groups and these have none, or the other way round.
        """
        if self.rows == 0 and len(weight):
            self.members.begin(X, groups is not None)
            is_great = self.members.loss is not None and abs(y[0]) > GREAT
            self.unit = float(power_below(y[0])) if is_great else 1.0
        if len(weight) and (groups is not None) != self.members.has_groups:
            raise ModelError("rows learned before had groups; give groups= for these" if groups is None else UNGROUPED)
        self.has_finished = self.has_finished and not (weight > 0.0).any()
        for first, last in [(0, len(weight))] if groups is None else chunks(groups, weight, self.rows, PIECE):
            within, ahead, mixed_ahead = slice(first, last), None, None
            if groups is not None:
                ahead = self.members.ahead(part(X, first, last), weight[within], groups[within], self.rows)
                mixed_ahead = self.mixture.predict(ahead.predictions, is_over=False)
                mixed_ahead += self.offset if self.has_no_events else 0.0
            for start, stop in self._pieces(part(X, first, last), weight[within]):
                piece = slice(first + start, first + stop)
                of_rows = part(X, piece.start, piece.stop), np.asarray(y[piece], np.float64) / self.unit, weight[piece]
                mixed = self._learn_piece(*of_rows, None if ahead is None else ahead.part(start, stop))
                mixed = mixed if mixed_ahead is None else mixed_ahead[start:stop]
                yield piece, self._as_targets(mixed, math.log(self.unit))

    def predict(self, X: Any) -> np.ndarray:
        """Predict rows to come: log-probabilities (n, classes), or numbers (n, 1).

        A pool that has not finished is expected to go on learning: it predicts as it would the next row it learns, and
        remembers what it predicted of the latest rows (:mod:`tunefree.pool.waiting`).
        """
        if n_rows(X) == 1 and (of_row := self.single_rows.predict(self, X)) is not None:
            return self._as_targets(of_row, self.offset)
        mixed = [np.empty((0, max(self.members.width, 1)))]
        for start in range(0, n_rows(X), PIECE):
            rows = part(X, start, min(start + PIECE, n_rows(X)))
            matrix = self.members.matrix(rows)
            predictions = self.members.predict(rows, self.rows, matrix)
            self.wait(rows, matrix, predictions)
            mixed.append(self._mixed(predictions))
        return self._as_targets(np.concatenate(mixed), self.offset)

    def wait(self, X: Any, matrix: np.ndarray, predictions: np.ndarray) -> None:
        """Remember what members predict, (n, M, K), of rows, which generations see as ``matrix``; targets may come."""
        growth = self.members.growth
        if growth is not None and not (self.has_finished or self.members.has_groups):
            self.waiting.keep(growth.digests(X, matrix), predictions)

    def _mixed(self, predictions: np.ndarray) -> np.ndarray:
        """What is made of members' predictions (n, M, K) of rows to come, in the unit of the targets."""
        if self.has_finished and self.frozen.choice != FOLLOWING:
            return self.frozen.predict(predictions)
        return self.mixture.predict(predictions, self.has_finished)

    def quantiles(
        self, X: Any, predictions: np.ndarray, levels: np.ndarray, asked: list[str], exposure: np.ndarray | None = None
    ) -> np.ndarray:
        """Quantiles (n, L) of the targets of rows, which are numbers, about what is predicted of them, (n,).

        ``asked`` says of each level, in the message of an error, what was asked for. With the losses of counts and
        amounts logarithms are predicted, targets are at least 0, and rows may have exposures (n,).
        """
        named = zip(levels.tolist(), asked, strict=True)
        curve = self._curve() if self.has_finished else None
        scores = np.array([self.quantile(level, name, curve=curve) for level, name in named])
        exposure, loss = np.ones(len(predictions)) if exposure is None else exposure, self.members.loss
        if self.members.predicts_logarithms:
            predictions, weights, least = predictions - math.log(self.unit), exposure ** (2.0 - loss.power), 0.0
        else:
            predictions, weights, least = predictions / self.unit, exposure, -math.inf
        units = self.conformal.units.of(self.members.matrix(X), predictions, weights)
        means = np.asarray(loss.response(predictions))
        order, bounds = np.argsort(levels, kind="stable"), np.empty((len(predictions), len(levels)))
        with np.errstate(over="ignore"):
            scale = (exposure * self.unit)[:, None]
            bounds[:, order] = np.sort((means[:, None] + units[:, None] * scores) * scale, axis=1)
        return np.maximum(bounds, least)

    def _curve(self) -> LearningCurve:
        """How scores become smaller, or larger, along the rows; without trees there is nothing that lags behind."""
        curve = self.conformal.curve()
        return curve if self.members.growth is not None else curve._replace(slope=0.0, is_known=False)

    def quantile(self, level: float, asked: str, code: int | None = None, curve: LearningCurve | None = None) -> float:
        """The quantile of the scores of rows to come, of all or of one class, unless there is too little evidence.

        Scores are how far off numbers are, or those of classes (:mod:`tunefree.intervals.sets`).
        """
        if not self.has_finished:
            return self.conformal.quantile(level, False, asked, code)
        curve = self._curve() if curve is None else curve
        return self.frozen.quantile(level, self.conformal.quantile(level, True, asked, code, curve), curve, code)

    def _as_targets(self, mixed: np.ndarray, offset: float) -> np.ndarray:
        """Numbers in the unit of the targets, logarithms with an offset, or log-probabilities as they are."""
        if self.members.predicts_logarithms:
            return mixed + offset
        return mixed if self.members.width else scaled(mixed, self.unit)

    @property
    def offset(self) -> float:
        """What is added to logarithms that are predicted of rows to come."""
        if self.has_no_events:
            return float(logarithm_of_few(*self._sums_of_targets))
        shift = self.balance.shift if self.balance is not None and self.has_finished else 0.0
        return math.log(self.unit) + shift

    @property
    def _sums_of_targets(self) -> tuple[float, float]:
        """Sums of the weighted targets of logarithms, and of the weights."""
        self.settle()
        return 0.0 if self.balance is None else float(self.balance.sums[3]), self.relative.total

    @property
    def has_no_events(self) -> bool:
        """Whether logarithms are predicted, and all targets so far that are evidence were 0."""
        return self.balance is not None and not self.mixture.range.highest[0] > 0.0

    def finish(self) -> None:
        """End a pass: the last generation is grown on all rows kept, and predicts from here on."""
        self.has_finished, self.waiting = True, Waiting()
        self.frozen.learn(self.members)
        if self.members.growth is not None and not self.only_predicts:
            self.members.growth.finish(self.rows)
            if self.members.growth.has_texts:
                self.give_up_trees()
        if self.balance is not None and not (self.only_predicts or self.has_no_events):
            self.balance.finish(self.members, self.rows, self._mixed)

    def shares(self) -> dict[str, float]:
        """The weights of the members awake in the base of the mixture that predicts rows to come; their sum is 1."""
        return {self.members.names[place]: weight for place, weight in self._weights_awake().items()}

    def _weights_awake(self) -> dict[int, float]:
        """Weights by the places of the members awake."""
        weights = self.mixture.base.means if self.has_finished else self.mixture.base.weights
        if self.has_finished and self.frozen.choice != FOLLOWING:
            weights = np.zeros(len(self.members.names))
            weights[self.frozen.places] = self.frozen.mixture.base.means
        awake = [place for place in self.members.places_awake if weights[place] > 0.0]
        total = weights[awake].sum()
        return {place: float(weights[place] / total) for place in awake}

    def selection(self) -> Selection:
        """What decided how it predicts, see :class:`tunefree.pool.weights_record.Selection`."""
        weights = self._weights_awake()
        places = sorted(weights, key=lambda place: -weights[place])
        names = [self.members.names[place] for place in places]
        losses, standard_errors, rows = (array[places] for array in self.record.totals())
        of_members = names, np.array([weights[place] for place in places]), losses, standard_errors, rows
        return Selection(*of_members, self.record.rows, self.record.weights[:, places])

    def add_class(self, n_outputs: int) -> None:
        """Know one more class, of so many outputs."""
        self.members.add_class(n_outputs)
        self.waiting = Waiting()  # what it remembers does not know the class
        if self.members.n_classes > 2:
            self.mixture.add_class()
            self.frozen.add_class()

    def forget(self, features: np.ndarray) -> None:
        """Know nothing of some features, whose numbers others may have from here on."""
        self.frozen.forget_features(features)
        if self.members.growth is not None:
            self.members.growth.columns.forget(features)

    def reduce(self) -> None:
        """Keep what predicts, and leave out all that learning needs."""
        self.only_predicts, self.waiting = True, Waiting()
        self.frozen.forget()
        self.members.seen = Seen()
        self.conformal.reduce()
        if self.balance is not None:
            self.balance.forget()
        if self.members.growth is not None:
            self.members.growth.reduce()

    def _pieces(self, X: Any, weight: np.ndarray) -> Iterator[tuple[int, int]]:
        """Cut rows at events, and into pieces; an event is over when the next piece is asked for."""
        if len(weight) == 1:
            yield 0, 1
            return
        start, counts, begun = 0, np.cumsum(weight > 0.0), self.rows
        while start < len(weight):
            n_within = int(np.searchsorted(X.pointers[start + 1 :], X.pointers[start] + WORDS, "right"))
            most = start + max(min(PIECE, n_within, NUMBERS // max(X.numbers.shape[1], 1)), 1)
            stop = min(most, int(np.searchsorted(counts, self.next_event - begun)) + 1, len(weight))
            yield start, stop
            start = stop

    def _learn_piece(self, X: Any, y: np.ndarray, weight: np.ndarray, ahead: Ahead | None) -> np.ndarray:
        before, has_no_events = self.rows, self.has_no_events
        sums = self._sums_of_targets if has_no_events else (0.0, 0.0)
        relative = self.relative.of(weight)
        observed, is_known, n_repeats = self.members.observe(X, y, weight, ahead)
        evidence = np.where(is_known, 0.0, relative)
        self.n_repeats += n_repeats
        judging = evidence if ahead is None else of_one_row(ahead.groups, evidence)
        is_alone = len(y) == 1 and ahead is None and weight[0] > 0.0 and not self.only_members_learn
        learned = None
        if is_alone:
            learned = self.single_rows.learn(self, X, float(y[0]), float(relative[0]), float(evidence[0]), observed)
        if learned is None:
            predictions = self.members.learn(X, y, relative, evidence, observed.matrix, before)
            if self.only_members_learn:
                self.members.keep_rows(observed, y, weight)
                return self.mixture.predict(predictions, is_over=False)
            if ahead is None:
                self.waiting.put_back(observed.digests, predictions)
            else:
                predictions = ahead.predictions
            mixed = self.mixture.learn(predictions, y, judging)
        else:
            predictions, mixed = learned
        if has_no_events:
            write_before_events(sums, y, weight, judging, mixed)
        numbers = before + np.cumsum(weight > 0.0)
        rows = LearnedRows(X, observed, predictions, mixed, y, weight, evidence, judging, numbers)
        is_event = self.rows % BLOCK == 0 or self.rows == self.next_event
        if is_alone and self.members.ensemble.linear.meetings is None:
            self._record_later(rows)
        else:
            self.settle()
            self._record(rows, None if ahead is None else ahead.groups)
        if is_event:
            self.settle()
            self._let_happen(predictions[-1])
        return mixed

    @property
    def next_event(self) -> int:
        """Rows learned when something happens next."""
        event, growth = (self.rows // BLOCK + 1) * BLOCK, self.members.growth
        return event if growth is None else min(event, growth.event())

    def _record_later(self, rows: LearnedRows) -> None:
        """Record a row together with others."""
        if self.unrecorded and self.unrecorded[0].observed.matrix.shape != rows.observed.matrix.shape:
            self.settle()  # there are more columns
        self.unrecorded.append(rows._replace(X=copied(rows.X), weight=rows.weight.copy()))
        if len(self.unrecorded) >= TOGETHER:
            self.settle()

    def settle(self) -> None:
        """Record the rows that were learned."""
        rows, self.unrecorded = self.unrecorded, []
        if rows:
            self._record(LearnedRows.joined(rows) if len(rows) > 1 else rows[0], None)

    def _record(self, rows: LearnedRows, groups: np.ndarray | None) -> None:
        """Keep rows, and judge what was predicted of them; ``groups`` (n,) are digests of their groups."""
        X, observed, predictions, mixed, y, weight, evidence, judging, numbers = rows
        growth = self.members.growth
        self.members.keep_rows(observed, y, weight)
        columns = ([], []) if growth is None else (growth.columns.keys, growth.columns.fills)
        draws = draws_of(X) if self.members.loss is None else np.zeros(len(y))
        if self.balance is not None:
            self.balance.judge(mixed[:, 0], y, weight, judging, numbers)
            if growth is not None:
                self.balance.observe(X, weight, numbers, len(growth.columns.keys))
        units = self.conformal.units  # of these rows; after the last of them other widths may be grown
        self.conformal.observe(Judged(observed.matrix, mixed, y, judging, numbers, draws, weight), *columns)
        if growth is not None:
            self.frozen.judge(self.members, X, y, judging, numbers, weight, units)
            judged: Any = slice(None) if evidence.all() else evidence > 0.0  # all: no copy of the predictions
            of_judged = None if groups is None else groups[judged]
            self._judge(predictions[judged], mixed[judged], y[judged], evidence[judged], of_judged)

    def _let_happen(self, predictions: np.ndarray) -> None:
        """Let happen what is due after the latest row, of which members predicted this, (M, K)."""
        growth = self.members.growth
        if growth is None:
            return
        if self.rows % BLOCK == 0 and self.block[1] > 0.0:
            for window in growth.windows if self.rises.add(self.block[0] / self.block[1]) else ():
                window.wake(self.rows)
            self.block = np.zeros(2)
        weights = np.where(np.isnan(predictions[:, 0]), np.nan, self.mixture.base.weights)
        if self.rows % BLOCK == 0 or self.rows == growth.event():
            self.record.add(self.rows, weights)
        took_over = growth.advance(self.rows, weights)
        if growth.has_texts:
            self.give_up_trees()
        elif took_over and self.rows >= self.frozen.next:
            self.frozen.take(self.members, self.mixture, self.rows)

    def _judge(
        self, predictions: np.ndarray, mixed: np.ndarray, y: np.ndarray, weight: np.ndarray, groups: np.ndarray | None
    ) -> None:
        """Record how members and the mixture predicted."""
        losses = self.members.losses(mixed[:, None], y)
        starts = None if groups is None else starts_of_runs(groups)
        self.record.observe(np.column_stack([self.members.losses(predictions, y), losses]), weight, starts)
        self.block = running(self.block, np.column_stack([losses, np.ones(len(y))]))

    @property
    def nbytes(self) -> int:
        """Bytes of all but the online members."""
        growth = self.members.growth
        of_growth = growth.nbytes if growth is not None else 0
        of_balance = 0 if self.balance is None else self.balance.nbytes
        return of_growth + of_balance + self.mixture.nbytes + self.frozen.nbytes + self.conformal.nbytes

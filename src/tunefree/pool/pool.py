"""The loop over rows: members predict a row and learn it, and the mixture learns on their predictions.

Blocks of rows are cut at fixed row numbers, at which generations are born and take over. Otherwise the results do not
depend on the blocks in which rows arrive. A row of weight 0 is only predicted, and counts nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.numbers import power_below, scaled
from tunefree.core.part import LEARNED, RECORD, Part, argument, array, child, children, number, scratch, size_of
from tunefree.core.rows import copied
from tunefree.core.schema import COUNT, Flag, Number
from tunefree.losses.rates import logarithm_of_few
from tunefree.mixing.mixture import Mixture
from tunefree.pool.balance import Balance, write_before_events
from tunefree.pool.contexts import KNOWN, N_CONTEXTS, NEW, Context, RelativeWeights, by_context, mixing_of
from tunefree.pool.groups import chunks, weights_of_one_row
from tunefree.pool.ledger import TOGETHER, LearnedRows, Ledger
from tunefree.pool.members import Members, predictions_of
from tunefree.pool.rows import PIECE, LabelledRows
from tunefree.pool.single_row import SingleRow, predict_row
from tunefree.pool.snapshot import Copies
from tunefree.pool.waiting import Waiting
from tunefree.pool.weights_record import Selection
from tunefree.pool.windows import BLOCK, NEVER, Rises

WORDS = 2**17  # the largest number of words in a piece: their features take statistics while the piece is learned
NUMBERS = 2**22  # the largest number of dense numbers in a piece: members copy them
NO_OFFSETS = np.zeros(N_CONTEXTS)
GREAT = 1e100  # targets are divided by the first one if it is larger: their squares would not be finite
UNGROUPED = "rows learned before had no groups; leave groups= out for these, or begin a new model with them"


class Pool(Part):
    """Online learners and generations, mixed.

    Members and mixture see numeric targets divided by a ``unit``. The ``contexts`` are the context of new rows and,
    from the first known row on, the context of known rows. ``latest`` (2, 2) counts rows and known rows, in the last
    complete block and in the current one. ``copies`` record the predictions that a copy of the pool makes for later
    rows. A loss with a logarithmic link has a ``balance``. A pass ``has_finished`` if no row was learned since its end.
    A pool that ``only_predicts`` has no state for learning. While ``only_members_learn``, the mixture keeps its
    weights, and nothing is recorded.
    """

    bank: ClassVar[None] = None
    calibration: ClassVar[None] = None  # the pool predicts log-odds
    only_members_learn = argument()
    members = child(Members, LEARNED)
    unit = number(LEARNED, Number(1))
    relative = child(RelativeWeights, LEARNED)
    n_known = number(LEARNED, COUNT)
    has_finished = number(LEARNED, Flag())
    only_predicts = number(LEARNED, Flag())
    contexts: list[Context] = children(Context, LEARNED, make=lambda pool, _: Context(pool.members))
    latest = array("int64", (2, 2), LEARNED, low=0)
    rises = child(Rises, LEARNED)
    waiting = child(Waiting, RECORD, blank=lambda _: Waiting())
    balance: Balance | None = child(Balance, LEARNED, may_be_none=True)
    copies = child(Copies, RECORD, blank=lambda pool: Copies(pool.members))
    single_rows: list[SingleRow] = scratch(lambda _: [])  # arrays that no thread is using
    ledger = scratch(lambda _: Ledger())

    def __init__(self, members: Members) -> None:
        self.members = members
        self.unit, self.only_members_learn = 1.0, False
        self.relative, self.n_known, self.has_finished, self.only_predicts = RelativeWeights(), 0, False, False
        self.contexts, self.copies = [Context(members)], Copies(members)
        self.latest = np.zeros((2, 2), np.int64)
        self.waiting, self.single_rows = Waiting(), []
        self.balance = Balance() if members.predicts_logarithms else None
        self.rises, self.ledger = Rises(), Ledger()

    @property
    def rows(self) -> int:
        """Rows learned."""
        return self.relative.rows

    @property
    def known_share(self) -> float:
        """The fraction of known rows among the latest one or two thousand rows."""
        rows, known = self.latest.sum(axis=0).tolist()
        return known / max(rows, 1)

    @property
    def _latest_context(self) -> int:
        """The index of the context of most of the latest rows."""
        return KNOWN if self.known_share > 0.5 else NEW

    @property
    def context(self) -> Context:
        """The context of future rows: the context of most of the latest rows, or of new rows where rows have groups."""
        return self.contexts[NEW if self.members.has_groups else self._latest_context]

    def _give_up_trees(self) -> None:
        """Go on without generations and their records; online members predict from here on."""
        self.flush()
        self.members.growth, self.copies = None, Copies(self.members)
        if self.balance is not None:
            self.balance.reduce()
        for context in self.contexts:
            context.forget_trees(self.members)
            context.conformal.give_up_trees()

    def learn(self, rows: LabelledRows, again: bool = False) -> Iterator[np.ndarray]:
        """Predict each row before it is learned; yields the predictions of consecutive pieces.

        Targets are class indices or numbers. Predictions (n, K) are log-probabilities of at least two classes, or
        numbers. Weights are relative to the mean weight so far; a row of weight 0 is only predicted. Where the ``mass``
        of rows is known, it is the weight of a new row in the mixture. All rows in a run of one group are predicted
        before the first of them is learned. ``again`` is always False: a pool makes one pass.

        A ModelError is raised if rows before had groups and these have none, or the other way round.
        """
        weight, groups = rows.weight, rows.groups
        if self.rows == 0 and len(weight):
            self.members.begin(rows.X, groups is not None)
            is_great = self.members.loss is not None and abs(rows.y[0]) > GREAT
            self.unit = float(power_below(rows.y[0])) if is_great else 1.0
        if len(weight) and (groups is not None) != self.members.has_groups:
            raise ModelError("rows learned before had groups; give groups= for these" if groups is None else UNGROUPED)
        self.has_finished = self.has_finished and not (weight > 0.0).any()
        rows = rows._replace(y=np.asarray(rows.y, np.float64) / self.unit)
        for first, last in [(0, len(weight))] if groups is None else chunks(groups, weight, self.rows):
            chunk = rows.part(first, last)
            if chunk.groups is not None:
                chunk = self._predicted_ahead(chunk, chunk.groups)
            for start, stop in self._piece_bounds(chunk.X, chunk.weight):
                for mixed in self._learn_rows(chunk.part(start, stop)):
                    yield self._as_targets(mixed, math.log(self.unit))

    def _predicted_ahead(self, rows: LabelledRows, groups: np.ndarray) -> LabelledRows:
        """Rows in runs of groups with their predictions, before any of them is learned."""
        predictions, is_known = self.members.predict(rows.X), self.members.known_groups(rows.weight, groups)
        mixed = self._mixed(predictions, is_known.astype(np.uint8), is_over=False)
        mixed += self.offsets[NEW] if self.has_no_events else 0.0
        precedes = np.full(len(groups), self.rows == 0)
        return rows._replace(is_known=is_known, precedes=precedes, predictions=predictions, mixed=mixed)

    def predict(self, X: Any) -> np.ndarray:
        """Predict future rows: log-probabilities (n, classes), or numbers (n, 1).

        A pool that has not finished is expected to learn more rows. It then predicts each row like the next row to be
        learned, and keeps its predictions of the latest rows (:mod:`tunefree.pool.waiting`).
        """
        matrix, predicted = self.members.matrix(X), None
        digests, contexts = self.recognised(X, matrix)
        if len(contexts) == 1:
            predicted = predict_row(self, X, (matrix, digests), int(contexts[0]))
        if predicted is None:
            predictions = self.members.predict(X, matrix)
            predicted = predictions, self._mixed(predictions, contexts, self.has_finished)
        if digests is not None and not self.has_finished:  # their targets may come
            self.waiting.keep(digests, predicted[0])
        return self._as_targets(predicted[1], 0.0 if self.balance is None else self.offsets[contexts, None])

    def recognised(self, X: Any, matrix: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        """Digests (n,) of the observations of future rows, and their contexts (n,): 1 for known rows, 0 for new ones.

        Rows with groups, and rows of a pool without generations, have no digests and count as new. Where columns are
        monotone, one mixture predicts all rows: the mixture of future rows.
        """
        members, growth = self.members, self.members.growth
        digests, contexts = None, np.zeros(len(matrix), np.uint8)
        if growth is not None and not members.has_groups:
            digests = growth.columns.digests(X, matrix)
            contexts = members.known(digests).astype(np.uint8)
        if members.signs:
            contexts = np.full(len(contexts), self.contexts.index(self.context), np.uint8)
        return digests, contexts

    def _mixed(self, predictions: np.ndarray, contexts: np.ndarray, is_over: bool) -> np.ndarray:
        """Mixed predictions (n, K) from predictions of members (n, M, K), in the unit of the targets."""

        return by_context(contexts, lambda number, rows: self._mixed_in(number, predictions[rows], is_over))

    def _mixed_in(self, number: int, predictions: np.ndarray, is_over: bool) -> np.ndarray:
        mixture, places, is_base = mixing_of(self, number, is_over)
        return mixture.predict(predictions if places is None else predictions[:, places], is_over, is_base)

    def _as_targets(self, mixed: np.ndarray, offset: Any) -> np.ndarray:
        """Numbers times the unit of the targets, logarithms plus an offset, or unchanged log-probabilities."""
        if self.members.predicts_logarithms:
            return mixed + offset
        return mixed if self.members.width else scaled(mixed, self.unit)

    @property
    def offsets(self) -> np.ndarray:
        """The offset of each context, added to logarithms predicted for future rows."""
        if self.balance is None:
            return NO_OFFSETS
        if self.has_no_events:
            return np.full(N_CONTEXTS, float(logarithm_of_few(*self._sums_of_targets)))
        return math.log(self.unit) + (self.balance.shifts if self.has_finished else NO_OFFSETS)

    @property
    def _sums_of_targets(self) -> tuple[float, float]:
        """The weighted sum of the targets where logarithms are predicted (else 0), and the sum of the weights."""
        self.flush()
        return 0.0 if self.balance is None else float(self.balance.sums[3]), self.relative.total

    @property
    def has_no_events(self) -> bool:
        """Whether logarithms are predicted, and all targets that the mixtures learned were 0."""
        return self.balance is not None and not any(context.has_events for context in self.contexts)

    def finish(self) -> None:
        """End a pass: the last generation is grown on all rows kept, and predicts from here on."""
        self.flush()
        self.has_finished, self.waiting = True, Waiting()
        self.copies.learn(self.contexts)
        if self.members.growth is not None and not self.only_predicts:
            self.members.growth.finish(self.rows)
            if self.members.growth.has_texts:
                self._give_up_trees()
        if self.balance is not None and not (self.only_predicts or self.has_no_events):
            predict = partial(self._mixed_in, is_over=True)
            self.balance.finish(self.members, predict)

    def shares(self) -> dict[str, float]:
        """The weights of the members awake in the base of the mixture that predicts future rows; their sum is 1."""
        return {self.members.names[position]: weight for position, weight in self._weights_awake().items()}

    def _weights_awake(self) -> dict[int, float]:
        """Weights of the members awake, by their positions in the mixture."""
        weights = self.context.weights(self.has_finished)
        awake = [position for position in self.members.places_awake if weights[position] > 0.0]
        total = weights[awake].sum()
        return {position: float(weights[position] / total) for position in awake}

    def selection(self) -> Selection:
        """The weights of members, and the losses behind them: :class:`tunefree.pool.weights_record.Selection`."""
        weights = self._weights_awake()
        positions = sorted(weights, key=lambda position: -weights[position])
        names = [self.members.names[position] for position in positions]
        record = self.context.record
        losses, standard_errors, rows = (array[positions] for array in record.totals())
        member_columns = names, np.array([weights[position] for position in positions]), losses, standard_errors, rows
        return Selection(*member_columns, record.rows, record.weights[:, positions])

    def add_class(self, objective: Any, n_outputs: int, n_classes: int) -> None:
        """Add a class; online members then have ``n_outputs`` outputs and this objective."""
        self.flush()
        self.members.add_class(objective, n_outputs)
        self.waiting = Waiting()  # the kept predictions lack the class
        if self.members.n_classes > 2:
            self.copies.forget()  # the current copy lacks the class
            for context in self.contexts:
                context.add_class()

    def forget(self, features: np.ndarray) -> None:
        """Forget features; their indices may be used for other features afterwards."""
        self.flush()
        self.copies.forget_features(features)
        if self.members.growth is not None:
            self.members.growth.columns.forget(features)
        self.members.linear.forget(features)

    def reduce(self) -> None:
        """Keep only the state for predictions."""
        self.only_predicts = True
        super().reduce()

    def _piece_bounds(self, X: Any, weight: np.ndarray) -> Iterator[tuple[int, int]]:
        """Bounds of the pieces of rows, cut at events; an event is complete when the next piece is requested."""
        if len(weight) == 1:
            yield 0, 1
            return
        start, counts, rows_before = 0, np.cumsum(weight > 0.0), self.rows
        while start < len(weight):
            n_fitting = int(np.searchsorted(X.pointers[start + 1 :], X.pointers[start] + WORDS, "right"))
            most = start + max(min(PIECE, n_fitting, NUMBERS // max(X.numbers.shape[1], 1)), 1)
            due = max(int(np.searchsorted(counts, self.next_event - rows_before)), start)  # a missed one is due at once
            stop = min(most, due + 1, len(weight))
            yield start, stop
            start = stop

    def _learn_rows(self, rows: LabelledRows) -> Iterator[np.ndarray]:
        """Learn rows, cut before the first known row, at which the context of known rows begins."""
        matrix, digests, is_known = self.members.observe(rows)
        contexts, first = is_known.astype(np.uint8), 0
        if len(self.contexts) == 1:
            known = np.flatnonzero(is_known & (rows.weight > 0.0))
            first = int(known[0]) if len(known) else 0
        for start, stop in pairwise([0, first, len(contexts)] if first else [0, len(contexts)]):
            observed = matrix[start:stop], digests[start:stop]
            yield self._learn_piece(rows.part(start, stop), *observed, contexts[start:stop])

    def _learn_piece(
        self, rows: LabelledRows, matrix: np.ndarray, digests: np.ndarray, contexts: np.ndarray
    ) -> np.ndarray:
        """Learn rows; only the first of them may be the first known row."""
        X, y, weight, groups = rows[:4]
        before, has_no_events = self.rows, self.has_no_events
        sums = self._sums_of_targets if has_no_events else (0.0, 0.0)
        self._count_rows(contexts[weight > 0.0])
        relative, in_context = self.relative.of(weight), self._in_context(rows, contexts)
        if before == 0 or groups is not None:
            in_context = np.where(self._precede_targets(rows), 0.0, in_context)
        judging = in_context if groups is None else weights_of_one_row(groups, in_context)
        numbers, units = before + np.cumsum(weight > 0.0), [context.conformal.units for context in self.contexts]
        learned = None
        if len(y) == 1 and groups is None and weight[0] > 0.0 and not self.only_members_learn:
            row_weights = float(relative[0]), float(in_context[0])
            learned = predict_row(self, X, (matrix, digests), int(contexts[0]), float(y[0]), row_weights)
        if learned is not None:
            predictions, mixed = learned
        else:
            leaf_weights = np.where(contexts == KNOWN, 0.0, in_context)
            members, online = self.members, self.members.linear.learn(LabelledRows(X, y, relative))
            predictions = predictions_of(members, online, members.generations(), matrix, y, leaf_weights)
            if self.only_members_learn:
                return self._mixed(predictions, contexts, is_over=False)
            if rows.predictions is None:
                self.waiting.put_back(digests, predictions)
            else:
                predictions = rows.predictions
            mixed = self._mix(predictions, y, judging, contexts)
        if has_no_events:
            write_before_events(sums, y, weight, judging, mixed)
        arrays = matrix, digests, predictions, mixed, y, weight, in_context, judging, numbers, contexts
        self._record(LearnedRows(self.members, X, *arrays, groups, units))
        if weight[-1] > 0.0:
            self._run_events(predictions[-1])
        return mixed if rows.mixed is None else rows.mixed

    def _record(self, rows: LearnedRows) -> None:
        """Record rows, or copy them so that they can wait for others."""
        width, waits = rows.matrix.shape[1], len(rows.y) < TOGETHER
        if any(other.matrix.shape[1] != width for other in self.ledger.waiting[:1]):
            self.flush()  # the number of columns has changed
        if waits:
            rows = rows._replace(X=copied(rows.X), weight=rows.weight.copy())
        is_full = self.ledger.add(rows)
        if is_full or rows.groups is not None or self.members.linear.meetings.assigns_slots:
            self.flush()

    def _count_rows(self, contexts: np.ndarray) -> None:
        """Count the rows to be learned next, and begin the context of known rows at the first known row."""
        n_known = int(np.count_nonzero(contexts == KNOWN))
        if n_known and len(self.contexts) == 1 and not self.only_members_learn:
            self.flush()
            self.contexts.append(self.contexts[NEW].begun())
        self.n_known += n_known
        self.latest[1, 0] += len(contexts)
        self.latest[1, 1] += n_known

    def _in_context(self, rows: LabelledRows, contexts: np.ndarray) -> np.ndarray:
        """Weights (n,) relative to the mean of earlier weights in the same context; new rows have their mass."""
        weight, mass = rows.weight, rows.weight if rows.mass is None else rows.mass

        def relative_weights(number: int, some: Any) -> np.ndarray:
            if number == len(self.contexts):  # all rows have weight 0, or only members learn
                return np.zeros(len(weight[some]))
            return self.contexts[number].relative.of((weight if number == KNOWN else mass)[some])

        return by_context(contexts, relative_weights)

    def _mix(self, predictions: np.ndarray, y: np.ndarray, weight: np.ndarray, contexts: np.ndarray) -> np.ndarray:
        """Predictions (n, K) of rows by the mixtures of their contexts, which then learn the rows."""

        def learn_context(number: int, rows: Any) -> np.ndarray:
            some = np.ascontiguousarray(predictions[rows])
            if number == len(self.contexts):  # rows of weight 0 before the first known row
                return self.contexts[NEW].mixture.predict(some, is_over=False, is_base=True)
            return self.contexts[number].mixture.learn(some, y[rows], weight[rows])

        return by_context(contexts, learn_context)

    def _precede_targets(self, rows: LabelledRows) -> Any:
        """A mask (n,) of rows predicted before the first target; they do not count, as targets may be of any size.

        False for log-probabilities, and for logarithms, which start from a rate that is expected of few rows.
        """
        if self.members.loss is None or self.members.predicts_logarithms:
            return False
        learned = rows.weight > 0.0
        return np.cumsum(learned) <= learned if rows.precedes is None else rows.precedes

    @property
    def next_event(self) -> int:
        """The number of learned rows at the next event; without generations there are no events."""
        growth = self.members.growth
        return NEVER if growth is None else min((self.rows // BLOCK + 1) * BLOCK, growth.event())

    def flush(self) -> None:
        """Let all observers record the learned rows; the copy comes before observers that change units of scores."""

        def observe_contexts(rows: LearnedRows) -> None:
            for index, context in enumerate(self.contexts):
                context.observe(rows.judging_in(index))

        observers = [part.observe for part in (self.members.growth, self.balance) if part is not None]
        self.ledger.flush(*observers, self.copies.observe, observe_contexts, self.rises.observe)

    prepare = flush  # called before the pool is saved or copied

    def _run_events(self, predictions: np.ndarray) -> None:
        """Carry out the events that are due after the latest row; ``predictions`` (M, K) are the members' for it."""
        growth, is_end = self.members.growth, self.rows % BLOCK == 0
        if growth is None or not (is_end or self.rows >= growth.event()):
            return
        self.flush()
        if is_end and self.rises.end_block():
            for window in growth.windows:
                window.wake(self.rows)
        context_weights = [
            np.where(np.isnan(predictions[:, 0]), np.nan, context.mixture.base.weights) for context in self.contexts
        ]
        for context, weights in zip(self.contexts, context_weights, strict=True):
            context.record.add(self.rows, weights)
        took_over = growth.advance(self.rows, context_weights[self._latest_context])
        if growth.has_texts:
            self._give_up_trees()
        elif took_over and self.rows >= self.copies.next:
            self.copies.take(self.contexts, self.rows)
        if is_end:
            self.latest = np.stack([self.latest[1], np.zeros(2, np.int64)])

    @property
    def mixtures(self) -> list[Mixture]:
        """The mixtures that follow the stream."""
        return [context.mixture for context in self.contexts]

    @property
    def known_rows(self) -> tuple[int, int]:
        """The number of learned rows whose observation or group was known, and the number of learned rows."""
        return self.n_known, self.rows

    @property
    def kept_rows(self) -> tuple[int, int]:
        """The number of rows kept for growing trees, and the number of learned rows that they are sampled from."""
        growth = self.members.growth
        return (0, 0) if growth is None else (growth.whole.n_kept, growth.whole.rows)

    @property
    def unseen(self) -> list[str]:
        """A line of text if there are columns that trees do not see, in a list; else an empty list."""
        n = 0 if self.members.growth is None else self.members.growth.columns.n_unseen
        return [f"{n:,} columns are too many for trees, and are for linear learners only"] if n else []

    def put_to_sleep(self) -> str | None:
        """Free memory by giving up the least useful part; returns its name, None if only one linear member is left.

        The order is: half of the rows kept for growing trees, repeatedly; windows; the previous generations; the
        randomised trees; all trees; then the linear member of the smallest weight, one at a time.
        """
        growth, members = self.members.growth, self.members.linear.members
        if growth is not None:
            name = growth.put_to_sleep()
            if name is None:
                self._give_up_trees()
            return name or "all trees"
        if len(members) < 2:
            return None
        least = int(np.argmin(self.context.mixture.base.weights[self.members.online_places]))
        self.members.keep([m for m in range(len(members)) if m != least])
        return str(members[least].setting.name)

    @property
    def nbytes(self) -> int:
        """Bytes of generations, mixtures, and kept rows and scores, which a memory limit bounds."""
        context_weights = [[context.mixture, context.frozen, context.conformal] for context in self.contexts]
        copied_generations = [] if self.copies.copy is None else self.copies.copy.generations
        return size_of([self.members.growth, self.balance, self.waiting, copied_generations, *context_weights])

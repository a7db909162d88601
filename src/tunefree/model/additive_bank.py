"""Linear learners on curves of columns and on products of pairs of them: additive models, in bounded memory.

The view ``curves`` shows a learner codes, words and curves; ``pairs`` shows it products of pairs as well
(:mod:`tunefree.additive.features`). The first rows fix the first knots. More knots, and pairs, join after powers of two
of rows. Their weights begin at 0, so that they change no prediction.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tunefree.additive.features import FIRST_INTERVALS, PAIR_ENTRIES, USUAL, AdditiveFeatures, Resolution
from tunefree.additive.screening import Screening
from tunefree.core import threads
from tunefree.core.rows import Sparse, Table, as_table, n_rows, parts
from tunefree.core.states import under
from tunefree.model.group import LabelledRows, WeightedRows
from tunefree.model.linear_bank import CHUNK, LinearBank
from tunefree.model.members import Setting

VIEWS = ("curves", "pairs")
FIRST_ROWS = 256  # rows that fix the first knots
FEWEST_ROWS = 128  # at the end of a shorter stream; with fewer the members sleep, if there are others
REFINED = tuple(2**k for k in (11, 14, 18))  # rows after which each interval may be cut once more
PAIRED = tuple(2**k for k in (10, 11, 12, 13, 14))  # rows after which pairs that pay join, if not all of them do
FINER = (2**14, 2**17)  # rows from which on each of the first intervals may be cut once more
MOST_PAIR_ENTRIES = 2**26  # non-zeros of pairs in all rows, where that leaves more than the usual number to a row
MOST_COLUMNS = 128  # dense columns; of more, such as pixels, there are no curves
MOST_ENTRIES = 64.0  # codes and words of a row; beside more of them, as texts have, curves would matter little
UNSUITED = (
    f"curves and pairs are for at most {MOST_COLUMNS} columns of numbers, and not for sparse rows; choose another "
    "view, such as steady"
)


def resolution_for(n_rows_to_come: int) -> Resolution:
    """How fine the features of so many rows may be, all of which are there before any is learned.

    Examples
    --------
    >>> resolution_for(5_000), resolution_for(500_000)
    (Resolution(intervals=8, pair_entries=512), Resolution(intervals=32, pair_entries=256))
    """
    intervals = FIRST_INTERVALS * 2 ** sum(n_rows_to_come >= many for many in FINER)
    return Resolution(intervals, int(np.clip(MOST_PAIR_ENTRIES // n_rows_to_come, PAIR_ENTRIES, 2 * PAIR_ENTRIES)))


def suits(X: Any) -> bool:
    """Whether a block of rows has columns, and not too many for functions of each."""
    return not isinstance(X, Sparse) and parts(X).numbers.shape[1] <= MOST_COLUMNS


class _Shown(NamedTuple):
    """Rows to learn, as members will see them."""

    rows: LabelledRows
    seen: dict[str, Any]  # by view
    tasks: Sequence[Callable[[], None]]  # which write ``seen``


class AdditiveBank(LinearBank):
    """Linear learners on curves and pairs of the columns of a table.

    Parameters
    ----------
    settings : list of Setting
        The members; their views are among VIEWS.
    objective : objective
    n_outputs : int
    average : bool
        Whether the members' weights are the averages of their iterates.
    fewest_rows : int
        With fewer rows the members sleep.
    pairs : iterable of (int, int), optional
        The pairs to learn, as :class:`tunefree.model.model.Model` takes them; by default those that pay.
    """

    name = "additive"
    frozen_view = "raw"
    uses_threads = True
    features: AdditiveFeatures | None = None  # once the bank is frozen
    screening: Screening | None = None  # while pairs are looked for

    def __init__(
        self,
        settings: list[Setting],
        objective: Any,
        n_outputs: int,
        average: bool,
        fewest_rows: int = FEWEST_ROWS,
        pairs: Iterable[tuple[int, int]] | None = None,
    ) -> None:
        super().__init__(settings, objective, n_outputs, average)
        self.fewest_rows, self.named_pairs = fewest_rows, pairs
        self.curves: list[Sparse] = []  # the latest rows of the first pass on the first knots, until they are taken
        self.rounds = 0  # rows with weight above 0 that were learned in the first pass

    @property
    def frozen(self) -> bool:
        return self.features is not None

    @property
    def warmup_rows(self) -> int:
        return FIRST_ROWS

    @property
    def n_member_features(self) -> int:
        return 2 if self.features is None else self.features.n_features

    def suits(self, X: Any) -> bool:
        return suits(X)

    def freeze(self) -> None:
        if self.n_warmup >= self.fewest_rows:
            super().freeze()
            self.curves = []  # the model predicted the rows kept back before there were any

    def _keep_back(self, rows: LabelledRows) -> int:
        """Keep rows back until there are enough with weight above 0; others neither count nor wait."""
        usable = np.flatnonzero(rows.weight)[: FIRST_ROWS - self.n_warmup]
        stop = int(usable[-1]) + 1 if self.n_warmup + len(usable) == FIRST_ROWS else len(rows.y)
        if len(usable):
            self._keep(rows.at(usable))
        return stop

    def _freeze(self, first: LabelledRows, usable: np.ndarray, labels: np.ndarray) -> None:
        self._fix(as_table(first.X), usable, USUAL)

    def fix_knots(self, X: Any, n_rows_to_come: int) -> None:
        """Fix the first knots by a sample of all rows that will be learned, as finely as so many rows allow.

        Must be called before any row is learned; then no row waits.
        """
        self.n_columns = parts(X).numbers.shape[1]
        self._fix(as_table(X), np.arange(n_rows(X)), resolution_for(n_rows_to_come))

    def prepare(self, rows: LabelledRows, n_rows_to_come: int) -> None:
        """Fix knots, codes and pairs by a sample of all rows that will be learned; no member has learned any after.

        Knots are as many as there would be after a pass over all these rows, and before a batch phase.

        Parameters
        ----------
        rows : LabelledRows
            The pairs that pay are those that one pass over these finds.
        n_rows_to_come : int
        """
        blank = [copy.copy(member) for member in self.members]
        for member in blank:
            member.resize(member.room, self.n_outputs)
        self.fix_knots(rows.X, n_rows_to_come)
        if self.pays:
            scratch = np.empty((len(self.members), len(rows.y), self.n_outputs))
            self.learn(rows, scratch, [self._guide])
            if self.screening is not None:  # fewer rows than those after which the last pairs join
                self._features.choose_pairs(self.screening, 1.0)
                self.screening = None
        for _ in [event for event in REFINED if self.rounds < event <= n_rows_to_come]:
            self._features.refine()
        self.refine()
        self.members, self.curves, self.rounds = blank, [], 0
        self._reserve()

    def refine(self, level: int | None = None) -> int:
        """Cut each interval between knots once more where it has enough rows; returns the highest level of a knot.

        With a ``level``, only if there is no knot of it yet.
        """
        if level is None or self._features.level < level:
            self._features.refine()
            self._reserve()
            self._read = None
        return self._features.level

    def _fix(self, table: Table, usable: np.ndarray, resolution: Resolution) -> None:
        self.features = AdditiveFeatures(table, usable, self.n_outputs, resolution)
        entries = (np.count_nonzero(table.codes) + len(table.features)) / len(table.numbers)
        has_sources = self.features.n_curves + len(self.features.sources.code_columns) > 0
        self.pays = bool(entries <= MOST_ENTRIES and has_sources)
        if self.named_pairs is None:
            self.screening = self.features.screening()
        else:
            self.features.add_named_pairs(self.named_pairs)

    def learn_frozen(self, rows: LabelledRows, predictions: np.ndarray, busy: list[int], again: bool) -> None:
        """Learn chunks of rows. The features of a chunk are made while the members learn the chunk before, unless knots
        or pairs join between the two."""
        edges, joins = self._cuts(rows.weight, again)
        shown = None
        for (start, stop), after in zip(pairwise(edges), [*edges[2:], None], strict=True):
            if shown is None:
                shown = self._show(rows.part(start, stop), busy, again)
                threads.run(shown.tasks, stop - start)
            following = None
            if after is not None and stop not in joins:
                following = self._show(rows.part(stop, after), busy, again)
            written, beside = predictions[:, start:stop], () if following is None else following.tasks
            self._learn_seen(shown.seen, shown.rows, written, busy, beside)
            if not again:
                self._count(shown.rows, written)
            shown = following

    def _cuts(self, weight: np.ndarray, again: bool) -> tuple[list[int], set[int]]:
        """Between which rows chunks are cut, and at which of these knots or pairs join."""
        rounds = self.rounds + np.cumsum(weight > 0.0)
        due = [event for event in (*REFINED, *PAIRED) if self.rounds < event <= rounds[-1]]
        joins = set() if again else {int(np.searchsorted(rounds, event)) + 1 for event in due}
        return sorted({*joins, *range(0, len(weight), CHUNK), len(weight)}), joins

    def _show(self, rows: LabelledRows, busy: list[int], again: bool) -> _Shown:
        """Rows as some members will see them, once tasks are done; codes of new rows are known from here on."""
        features = self._features
        seen: dict[str, Any] = {}
        table = as_table(rows.X)
        if again:
            features.reserve(table)  # here, since tasks are done side by side
        else:
            table = features.meet(table, rows.weight)
        self._reserve()

        def in_view(view: str) -> None:
            seen[view] = self.in_view(table, view)

        views = sorted({self.members[m].setting.view for m in busy}, reverse=True)  # pairs take longest
        first = [] if again else [lambda: self.curves.append(features.first_curves(table))]
        return _Shown(rows._replace(X=table), seen, [*(partial(in_view, view) for view in views), *first])

    def _count(self, rows: LabelledRows, predictions: np.ndarray) -> None:
        """Count rows of the first pass that were learned, and let features join that are due."""
        if self.screening is not None:
            guide = self._guide
            objective = self.members[guide].objective
            self._features.screen(self.screening, objective, rows.X, rows.y, rows.weight, predictions[guide])
        before = self.rounds
        self.rounds += int(np.count_nonzero(rows.weight))
        self._grow(before)

    def take_curves(self) -> list[Sparse]:
        taken, self.curves = self.curves, []
        return taken

    @property
    def _guide(self) -> int:
        """The member whose gradients show which pairs pay: the first one on curves alone, if there is one."""
        return min(range(len(self.members)), key=lambda m: self.members[m].setting.view != "curves")

    def _grow(self, before: int) -> None:
        """Let knots and pairs join if the rounds since ``before`` reached one at which these are due."""
        refinements, choices = ([e for e in events if before < e <= self.rounds] for events in (REFINED, PAIRED))
        if refinements:
            self._features.refine()
        if choices and self.screening is not None:
            self._features.choose_pairs(self.screening, (1 + PAIRED.index(choices[-1])) / len(PAIRED))
            if choices[-1] == PAIRED[-1]:
                self.screening = None
        self._reserve()

    @property
    def _features(self) -> AdditiveFeatures:
        assert self.features is not None
        return self.features

    def _reserve(self) -> None:
        """Have room for all features."""
        for member in self.members:
            member.reserve(self.n_member_features, self.n_outputs)

    def in_view(self, X: Any, view: str) -> Any:
        self._check_kind(X)
        shown = {"curves": self._features.curves, "pairs": self._features.with_pairs}
        return shown[view](as_table(X))

    def _seen(self, X: Any, members: list[int]) -> dict[str, Any]:
        return {view: self.in_view(X, view) for view in sorted({self.members[m].setting.view for m in members})}

    def shown(self, X: Any, moving: dict[str, Any], n_features: int) -> dict[str, Any]:
        return super().shown(self._features.known_before(as_table(X), n_features), moving, n_features)

    def predict(self, X: Any) -> np.ndarray:
        self._check_kind(X)
        if self.frozen or self.n_warmup >= self.fewest_rows:
            return super().predict(X)
        return np.full((len(self.members), n_rows(X), self.n_outputs), np.nan)

    @property
    def has_weights(self) -> bool:
        return self.additive is not None

    @property
    def additive(self) -> AdditiveFeatures | None:
        return self.features if self.pays else None

    def weighted_rows(self, X: Any, members: list[int]) -> list[WeightedRows]:
        seen, weights = self._seen(X, members), self._weights()
        return [WeightedRows(seen[self.members[m].setting.view], *weights[m]) for m in members]

    def add_class(self, objective: Any, n_outputs: int, n_classes: int) -> None:
        grows = n_outputs > self.n_outputs
        super().add_class(objective, n_outputs, n_classes)
        if grows and self.features is not None:
            self.features.n_outputs = n_outputs
        if grows and self.screening is not None:  # gradients of other margins: begin again
            self.screening = Screening.create(len(self._features.sources.sizes), n_outputs)

    def save_state(self, n_features: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, header = super().save_state(n_features)
        header |= {"rounds": self.rounds, "pays": self.pays, "screens": self.screening is not None}
        if self.features is not None:
            of_features, header["features"] = self.features.save_state()
            arrays |= {f"features.{name}": array for name, array in of_features.items()}
        if self.screening is not None:
            arrays |= {f"screening.{name}": array for name, array in self.screening._asdict().items()}
        return arrays, header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self.rounds, self.pays = header["rounds"], header["pays"]
        if "features" in header:
            self.features = AdditiveFeatures.restore(under("features.", arrays), header["features"])
        if header["screens"]:
            self.screening = Screening(**{name: own.copy() for name, own in under("screening.", arrays).items()})
        self._reserve()
        super().restore(arrays, header)

"""Linear learners on curves of columns and on products of pairs of them: additive models, in bounded memory.

The view ``curves`` shows a learner codes, words and curves; ``pairs`` shows it products of pairs as well
(:mod:`tunefree.additive.features`). The first rows fix the first knots. More knots, and pairs, join after powers of two
of rows. Their weights begin at 0, so that they change no prediction.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.additive.features import AdditiveFeatures
from tunefree.additive.screening import Screening
from tunefree.core import threads
from tunefree.core.rows import Sparse, as_table, n_rows, part, parts
from tunefree.core.states import filled, flatten, under
from tunefree.model.group import LabelledRows, WeightedRows
from tunefree.model.members import Member, Setting
from tunefree.model.warmup import WarmupBank

VIEWS = ("curves", "pairs")
FIRST_ROWS = 256  # rows that fix the first knots
FEWEST_ROWS = 128  # at the end of a shorter stream; with fewer the members sleep for ever
REFINED = tuple(2**k for k in (11, 14, 18))  # rows after which each interval may be cut once more
PAIRED = tuple(2**k for k in (10, 11, 12, 13, 14))  # rows after which pairs that pay join, if not all of them do
MOST_COLUMNS = 128  # dense columns; of more, such as pixels, there are no curves
MOST_ENTRIES = 64.0  # codes and words of a row; beside more of them, as texts have, curves would matter little
CHUNK = 512  # rows whose features are known at a time


class AdditiveBank(WarmupBank):
    """Linear learners on curves and pairs of the columns of a table.

    Parameters
    ----------
    settings : list of Setting
        The members; their views are among VIEWS.
    objective : objective
    n_outputs : int
    average : bool
        Whether the members' weights are the averages of their iterates.
    """

    frozen_view = "raw"
    uses_threads = True

    def __init__(self, settings: list[Setting], objective: Any, n_outputs: int, average: bool) -> None:
        super().__init__([Member.create(own, average, 2, n_outputs, objective) for own in settings], n_outputs)
        self.features: AdditiveFeatures | None = None  # once the bank is frozen
        self.screening: Screening | None = None  # while pairs are looked for
        self.curves: list[Sparse] = []  # the latest rows of the first pass on the first knots, until they are taken
        self.rounds = 0  # rows with weight above 0 that were learned in the first pass

    @property
    def frozen(self) -> bool:
        return self.features is not None

    @property
    def warmup_rows(self) -> int:
        return FIRST_ROWS

    def suits(self, X: Any) -> bool:
        return not isinstance(X, Sparse) and parts(X).numbers.shape[1] <= MOST_COLUMNS

    def freeze(self) -> None:
        if self.n_warmup >= FEWEST_ROWS:
            super().freeze()
            self.curves = []  # the model predicted the rows kept back before there were any

    def _freeze(self, first: LabelledRows, usable: np.ndarray, labels: np.ndarray) -> None:
        table = as_table(first.X)
        self.features = AdditiveFeatures(table, self.n_outputs)
        entries = (np.count_nonzero(table.codes) + len(table.features)) / len(first.y)
        self.pays = (
            bool(entries <= MOST_ENTRIES) and self.features.n_curves + len(self.features.sources.code_columns) > 0
        )
        self.screening = self.features.screening() if self.pays else None

    def learn_frozen(self, rows: LabelledRows, predictions: np.ndarray, busy: list[int], again: bool) -> None:
        predictions[:] = np.nan
        start = 0
        while self.pays and start < len(rows.y):
            stop = min(start + CHUNK, len(rows.y))
            if not again:
                stop = start + self._until_event(rows.weight[start:stop])
            self._learn_chunk(rows.part(start, stop), predictions[:, start:stop], busy, again)
            start = stop

    def _until_event(self, weight: np.ndarray) -> int:
        """How many of some rows to learn until knots or pairs join, or all of them."""
        rounds = self.rounds + np.cumsum(weight > 0.0)
        due = [event for event in (*REFINED, *PAIRED) if self.rounds < event <= rounds[-1]]
        return int(np.searchsorted(rounds, min(due))) + 1 if due else len(weight)

    def _learn_chunk(self, rows: LabelledRows, predictions: np.ndarray, busy: list[int], again: bool) -> None:
        table, features = as_table(rows.X), self._features
        if not again:
            features.meet(table, rows.weight)
            self._reserve()
            self.curves.append(features.first_curves(table))
        seen = self._views(table, busy)

        def of_member(m: int) -> None:
            written = np.empty((len(rows.y), self.n_outputs))
            self.members[m].learn(seen[self.members[m].setting.view], rows.y, rows.weight, written)
            predictions[m] = written

        threads.each(of_member, [(m,) for m in busy], len(rows.y))
        if not again:
            if self.screening is not None:
                guide = self._guide
                features.screen(
                    self.screening, guide.objective, table, rows.y, rows.weight, predictions[self.members.index(guide)]
                )
            self.rounds += int(np.count_nonzero(rows.weight))
            self._grow()

    def take_curves(self) -> list[Sparse]:
        taken, self.curves = self.curves, []
        return taken

    @property
    def _guide(self) -> Member:
        """The member whose gradients show which pairs pay: the first one on curves alone, if there is one."""
        return min(self.members, key=lambda member: member.setting.view != "curves")

    def _grow(self) -> None:
        """Let knots and pairs join where these are due."""
        features = self._features
        if self.rounds in REFINED:
            features.refine()
        if self.screening is not None and self.rounds in PAIRED:
            features.choose_pairs(self.screening, (1 + PAIRED.index(self.rounds)) / len(PAIRED))
            if self.rounds == PAIRED[-1]:
                self.screening = None
        self._reserve()

    @property
    def _features(self) -> AdditiveFeatures:
        assert self.features is not None
        return self.features

    def _reserve(self) -> None:
        """Have room for all features; the room doubles, so that the cost of copies stays small."""
        for member in self.members:
            if self._features.n_features > member.room:
                member.resize(max(self._features.n_features, 2 * member.room), self.n_outputs)

    def _views(self, table: Any, members: list[int]) -> dict[str, Sparse]:
        """The rows in the views of some members."""
        names = {self.members[m].setting.view for m in members}
        shown = {"curves": self._features.curves, "pairs": self._features.with_pairs}
        return {name: shown[name](table) for name in sorted(names)}

    def predict(self, X: Any) -> np.ndarray:
        if self.frozen and self.pays:
            return self._predict(X)
        return np.full((len(self.members), n_rows(X), self.n_outputs), np.nan)

    def _weights(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each member its weights (d, K) relative to the units (d,) of the features."""
        if self._read is None:
            self._read = [member.weights(self._features.n_features, self.n_outputs) for member in self.members]
        weights: list[tuple[np.ndarray, np.ndarray]] = self._read
        return weights

    @property
    def has_weights(self) -> bool:
        return self.additive is not None

    @property
    def additive(self) -> AdditiveFeatures | None:
        return self.features if self.pays else None

    def weighted_rows(self, X: Any, members: list[int]) -> list[WeightedRows]:
        seen = self._views(as_table(X), members)
        return [WeightedRows(seen[self.members[m].setting.view], *self._weights()[m]) for m in members]

    def _predict(self, X: Any) -> np.ndarray:
        read = self._weights()
        predictions = np.empty((len(self.members), n_rows(X), self.n_outputs))
        for start in range(0, n_rows(X), CHUNK):
            stop = min(start + CHUNK, n_rows(X))
            seen = self._views(as_table(part(X, start, stop)), list(range(len(self.members))))
            for member, own, written in zip(self.members, read, predictions, strict=True):
                written[start:stop] = member.predict(seen[member.setting.view], own)
        return predictions

    def add_class(self, objective: Any, n_outputs: int, n_classes: int) -> None:
        before = self.n_outputs
        super().add_class(objective, n_outputs, n_classes)
        if n_outputs > before:
            for member in self.members:
                member.add_outputs(objective, before, n_outputs)
            if self.features is not None:
                self.features.n_outputs = n_outputs
            if self.screening is not None:  # gradients of other margins: begin again
                self.screening = Screening.create(len(self._features.sources.sizes), n_outputs)

    def save_state(self, n_features: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, header = super().save_state(n_features)
        header |= {"members": [], "rounds": self.rounds, "pays": self.pays, "screens": self.screening is not None}
        for m, member in enumerate(self.members):
            own, own_header = member.save_state(self.features.n_features if self.features is not None else 2)
            arrays |= {f"{m}.{name}": array for name, array in own.items()}
            header["members"].append(own_header)
        if self.features is not None:
            of_features, header["features"] = self.features.save_state()
            arrays |= {f"features.{name}": array for name, array in of_features.items()}
        if self.screening is not None:
            arrays |= flatten("screening", self.screening, 0)[0]
        return arrays, header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        super().restore(arrays, header)
        self.rounds, self.pays = header["rounds"], header["pays"]
        if "features" in header:
            self.features = AdditiveFeatures.restore(under("features.", arrays), header["features"])
            self._reserve()
        if header["screens"]:
            blank = Screening.create(len(self._features.sources.sizes), self.n_outputs)
            self.screening = filled("screening", blank, arrays, {})
        for m, (member, saved) in enumerate(zip(self.members, header["members"], strict=True)):
            member.restore(under(f"{m}.", arrays), saved)

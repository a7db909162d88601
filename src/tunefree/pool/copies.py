"""Copies of the pool, which do not learn: how they predict later rows tells how rows to come will be predicted.

A copy is taken when a generation of all rows takes over, at each doubling. It predicts some of the rows up to the next
copy. These rows judge the frozen mixture of their context (:mod:`tunefree.pool.frozen`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree.core.rows import n_rows, rows_at, together
from tunefree.core.states import under
from tunefree.generations.clocks import FIRST
from tunefree.generations.generation import Generation, restored_all, save_all
from tunefree.intervals.conformal_record import Units
from tunefree.intervals.sets import draws_of
from tunefree.mixing.mixture import Mixture
from tunefree.model.frozen_group import FrozenGroup
from tunefree.pool.contexts import Context, by_context, predict_by
from tunefree.pool.frozen import JUDGED, Predicted
from tunefree.pool.members import Members

EARLIEST = 4 * FIRST  # rows of the first copy
MOST_ROWS = 1024  # that a copy predicts, of those until the next, but
MOST_ROWS_OF_TEXTS = 256  # where there are no columns for trees: the frozen mixture then has no members
TOGETHER = 64  # rows that a copy predicts together at least, where they come one by one
State = tuple[dict[str, np.ndarray], dict[str, Any]]


class _Waiting(NamedTuple):
    """Rows that a copy will predict."""

    members: Members
    units: list[Units]  # of the scores of each context
    X: Any
    targets: np.ndarray  # (n,)
    weights: np.ndarray  # (n,)
    numbers: np.ndarray  # (n,) uint64
    contexts: np.ndarray  # (n,) uint8
    exposures: np.ndarray  # (n,)
    mixed: np.ndarray  # (n, K) predictions of the mixtures that followed the stream


class Copy(NamedTuple):
    """A pool as it was."""

    rows: int  # learned
    linear: FrozenGroup
    generations: list[tuple[int, str, int, Generation]]  # clock, kind, age, and generation
    mixtures: list[Mixture]  # of the contexts

    def predict(self, members: Members, X: Any, contexts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The predictions of its members, which are those of the pool as they were, (n, M, K), and of its mixtures."""
        predictions, nothing = members.asleep(n_rows(X)), np.zeros(n_rows(X))
        members.place_online(predictions, self.linear.predict(X), self.rows)
        assert members.growth is not None
        matrix = members.growth.columns.matrix(X)
        members.follow(self.generations, matrix, nothing, nothing, predictions)
        return predictions, predict_by(self.mixtures, predictions, contexts)

    def save_state(self, n_features: int) -> State:
        """Arrays and a header from which :meth:`restored` makes the same."""
        arrays = {
            f"mixture{number}.{name}": array
            for number, mixture in enumerate(self.mixtures)
            for name, array in mixture.save_state().items()
        }
        of_linear, header = self.linear.save_state(n_features)
        arrays |= {f"linear.{name}": array for name, array in of_linear.items()}
        generations = [(generation, {"clock": clock, "age": age}) for clock, _, age, generation in self.generations]
        of_generations, headers = save_all("", generations)
        of_copy = {"rows": self.rows, "linear": header, "generations": headers, "mixtures": len(self.mixtures)}
        return arrays | of_generations, of_copy

    @classmethod
    def restored(cls, members: Members, blank: Mixture, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Copy:
        """What :meth:`save_state` wrote down; ``blank`` is a mixture that knows nothing."""
        mixtures = [blank.copied() for _ in range(header["mixtures"])]
        for number, mixture in enumerate(mixtures):
            mixture.restore(under(f"mixture{number}.", arrays))
        linear = FrozenGroup.restored(members.ensemble.linear, under("linear.", arrays), header["linear"])
        generations = [
            (saved["clock"], generation.kind, saved["age"], generation)
            for generation, saved in restored_all("", arrays, header["generations"], members.loss)
        ]
        return cls(header["rows"], linear, generations, mixtures)


class Copies:
    """The latest copy of a pool, and the rows that it predicts.

    Attributes
    ----------
    copy : Copy or None
    next : int
        Rows learned from which on the next copy is taken.
    """

    def __init__(self) -> None:
        self.next = EARLIEST
        self.forget()

    def forget(self) -> None:
        """Have no copy."""
        self.copy: Copy | None = None
        self.waiting: list[_Waiting] = []  # rows that it will predict
        self.predicted: list[Predicted] = []

    def forget_features(self, features: np.ndarray) -> None:
        """Let the copy predict as if features had never been seen."""
        self._predict_waiting()  # which know them
        if self.copy is not None:
            self.copy.linear.forget(features)

    def judge(
        self,
        members: Members,
        X: Any,
        y: np.ndarray,
        weights: np.ndarray,
        numbers: np.ndarray,
        exposures: np.ndarray,
        mixed: np.ndarray,
        of_contexts: tuple[np.ndarray, list[Units]],
    ) -> None:
        """Let the copy predict some of the rows of a weight above 0; their numbers (n,) count those learned before.

        The copy does not change, so rows wait until it can predict many together. ``mixed`` (n, K) was predicted by
        the mixtures that follow the stream. ``of_contexts`` are the context (n,) of each row, and the units of the
        scores of each context.
        """
        if self.copy is None:
            return
        contexts, units = of_contexts
        has_trees = members.growth is not None and members.growth.columns.is_for_trees
        thinning = max(self.copy.rows // (MOST_ROWS if has_trees else MOST_ROWS_OF_TEXTS), 1)
        rows = np.flatnonzero((weights > 0.0) & (numbers % thinning == 0))
        if len(rows):
            if self.waiting and [one.widths for one in self.waiting[0].units] != [one.widths for one in units]:
                self._predict_waiting()
            of_rows = rows_at(X, rows), y[rows], weights[rows], numbers[rows].astype(np.uint64), contexts[rows]
            self.waiting.append(_Waiting(members, units, *of_rows, exposures[rows], mixed[rows]))
            logs_features = members.ensemble.linear.meetings is not None  # for some time, see FrozenGroup
            if logs_features or sum(len(of.targets) for of in self.waiting) >= TOGETHER:
                self._predict_waiting()

    def _predict_waiting(self) -> None:
        """Let the copy predict the rows that wait."""
        if not self.waiting or self.copy is None:
            return
        (members, *_), (units, *_), X, *arrays = zip(*self.waiting, strict=True)
        rows = X[0] if len(X) == 1 else together([*X])
        targets, weights, numbers, contexts, exposures, mixed = map(np.concatenate, arrays)
        predictions, following = self.copy.predict(members, rows, contexts)
        of_born = predictions[:, members.places_as_born]
        predicted = np.concatenate([of_born, following[:, None], mixed[:, None]], axis=1)
        matrix = members.matrix(rows)
        of_scores = by_context(
            contexts, lambda number, some: units[number].of(matrix[some], following[some, 0], exposures[some])
        )
        judged = targets, weights, numbers, contexts, of_scores, draws_of(rows)
        self.predicted.append(Predicted(predicted, *judged))
        self.waiting = []

    def learn(self, members: Members, contexts: list[Context]) -> None:
        """Let the rows that the copy predicted judge the frozen mixtures, which then learn them in their order."""
        self._predict_waiting()
        if self.predicted and self.copy is not None:
            rows = Predicted.joined(self.predicted)
            for number, context in enumerate(contexts):
                context.frozen.learn(members, rows.of_context(number), self.copy.rows >= JUDGED)
        self.forget()

    def take(self, members: Members, contexts: list[Context], rows: int) -> None:
        """Take a copy of a pool that has learned so many rows."""
        self.learn(members, contexts)
        assert members.growth is not None
        linear = members.ensemble.linear.frozen()
        generations = [(clock, kind, age, one.frozen()) for clock, kind, age, one in members.growth.generations()]
        self.copy = Copy(rows, linear, generations, [context.mixture.copied() for context in contexts])
        while self.next <= rows:
            self.next *= 2

    @property
    def nbytes(self) -> int:
        """Bytes of the generations of the copy."""
        return 0 if self.copy is None else sum(generation.nbytes for *_, generation in self.copy.generations)

    def save_state(self, n_features: int) -> State:
        """Arrays and a header from which :meth:`restore` makes the same."""
        self._predict_waiting()
        arrays: dict[str, np.ndarray] = {}
        header: dict[str, Any] = {"next": self.next, "copy": None}
        if self.predicted:
            arrays |= Predicted.joined(self.predicted)._asdict()
        if self.copy is not None:
            of_copy, header["copy"] = self.copy.save_state(n_features)
            arrays |= {f"copy.{name}": array for name, array in of_copy.items()}
        return arrays, header

    def restore(self, members: Members, blank: Mixture, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Take over what :meth:`save_state` gave; ``blank`` is a mixture of these members that knows nothing."""
        self.next = header["next"]
        if "predicted" in arrays:
            self.predicted = [Predicted(*(np.array(arrays[name]) for name in Predicted._fields))]
        if header["copy"] is not None:
            self.copy = Copy.restored(members, blank, under("copy.", arrays), header["copy"])

"""How the pool would predict once it no longer learns, and whether another mixture is then better.

A copy of the pool is taken when a generation of all rows takes over, at each doubling. It does not learn, and predicts
some of the rows up to the next copy, so it is judged as far ahead as it is old. A second mixture, of the same rule, has
the generations of all rows as members, as they were born: the *frozen* mixture. It stands still, too: the rows of a
copy are predicted with what was learned from those of earlier copies. Rows to come are predicted by the mixture that
follows the stream, but by the frozen one, or by its base alone, where these lose less than MUCH times as much, by more
than SURE standard errors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree.core.rows import n_rows, rows_at, together
from tunefree.core.states import under
from tunefree.generations.clocks import FIRST
from tunefree.generations.generation import Generation, restored_all, save_all
from tunefree.generations.reservoir import Reservoir
from tunefree.intervals.conformal import SURE as SURE_OF_SCORES
from tunefree.intervals.conformal import SURE_BY_CURVE, quantile, recency, wider
from tunefree.intervals.conformal_record import MOST_SCORES, Units, scores_of
from tunefree.intervals.learning_curve import LearningCurve
from tunefree.intervals.sets import draws_of
from tunefree.mixing.mixture import Mixture
from tunefree.model.frozen_group import FrozenGroup
from tunefree.pool.members import Members

EARLIEST = 4 * FIRST  # rows of the first copy
MOST_ROWS = 1024  # that a copy predicts, of those until the next, but
MOST_ROWS_OF_TEXTS = 256  # where there are no columns for trees: the frozen mixture then has no members
TOGETHER = 64  # rows that a copy predicts together at least, where they come one by one
JUDGED = 512  # rows that a copy has learned at least, if it is to count
MUCH, SURE = 0.98, 2.0
MOST_LOSS = 1e145  # of a row, so that sums of squares are finite
FOLLOWING, N_CHOICES = 2, 3  # choice of the mixture that follows the stream, the last one
State = tuple[dict[str, np.ndarray], dict[str, Any]]


class _Waiting(NamedTuple):
    """Rows that a copy will predict."""

    members: Members
    units: Units  # of their scores
    X: Any
    targets: np.ndarray  # (n,)
    weights: np.ndarray  # (n,)
    numbers: np.ndarray  # (n,) uint64
    exposures: np.ndarray  # (n,)


class _Predicted(NamedTuple):
    """Rows that a copy has predicted."""

    predicted: np.ndarray  # (n, M + 1, K) by the generations of the copy, and by its mixture
    targets: np.ndarray  # (n,)
    weights: np.ndarray  # (n,)
    numbers: np.ndarray  # (n,) uint64
    units: np.ndarray  # (n,)
    draws: np.ndarray  # (n,)


class Copy(NamedTuple):
    """A pool as it was."""

    rows: int  # learned
    linear: FrozenGroup
    generations: list[tuple[int, str, int, Generation]]  # clock, kind, age, and generation
    mixture: Mixture

    def predict(self, members: Members, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """What its members, which are those of the pool as they were, and its mixture predict, (n, M, K) and (n, K)."""
        predictions, nothing = members.asleep(n_rows(X)), np.zeros(n_rows(X))
        members.place_online(predictions, self.linear.predict(X), self.rows)
        assert members.growth is not None
        matrix = members.growth.columns.matrix(X)
        members.follow(self.generations, matrix, nothing, nothing, predictions)
        return predictions, self.mixture.predict(predictions)

    def save_state(self, n_features: int) -> State:
        """Arrays and a header from which :meth:`restored` makes the same."""
        arrays = {f"mixture.{name}": array for name, array in self.mixture.save_state().items()}
        of_linear, header = self.linear.save_state(n_features)
        arrays |= {f"linear.{name}": array for name, array in of_linear.items()}
        generations = [(generation, {"clock": clock, "age": age}) for clock, _, age, generation in self.generations]
        of_generations, headers = save_all("", generations)
        return arrays | of_generations, {"rows": self.rows, "linear": header, "generations": headers}

    @classmethod
    def restored(
        cls, members: Members, mixture: Mixture, arrays: dict[str, np.ndarray], header: dict[str, Any]
    ) -> Copy:
        """What :meth:`save_state` wrote down; ``mixture`` knows nothing yet."""
        mixture.restore(under("mixture.", arrays))
        linear = FrozenGroup.restored(members.ensemble.linear, under("linear.", arrays), header["linear"])
        generations = [
            (saved["clock"], generation.kind, saved["age"], generation)
            for generation, saved in restored_all("", arrays, header["generations"], members.loss)
        ]
        return cls(header["rows"], linear, generations, mixture)


class Frozen:
    """The frozen mixture, and the copy that it learns from.

    Parameters
    ----------
    places : list of int
        Of the generations as they were born among the members of the pool.
    n_classes : int
    loss : loss
        Of numbers; None for classes.

    Attributes
    ----------
    mixture : Mixture
        Of these generations.
    losses : (3,) array
        Total loss of the frozen mixture, of its base, and of the copies' mixtures, on the same rows.
    squares : (2,) array
        Sums of the squares of what the copies' mixtures lost more on a row than the first two.
    scores : Reservoir
        Of rows that copies predicted, a column for each of the three: how far off they are (:mod:`tunefree.intervals`).
        Numbers of rows are its digests.
    """

    def __init__(self, places: list[int], n_classes: int, loss: Any) -> None:
        self.places = places
        self.mixture = Mixture(len(places), n_classes, loss)
        self.losses, self.squares = np.zeros(3), np.zeros(2)
        self.scores = Reservoir(most=MOST_SCORES)
        self.next = EARLIEST  # rows from which on the next copy is taken
        self.forget()

    def forget_features(self, features: np.ndarray) -> None:
        """Let the copy predict as if features had never been seen."""
        self._predict_waiting()  # which know them
        if self.copy is not None:
            self.copy.linear.forget(features)

    def forget(self) -> None:
        """Have no copy."""
        self.copy: Copy | None = None
        self.waiting: list[_Waiting] = []  # rows that it will predict
        self.predicted: list[_Predicted] = []

    @property
    def choice(self) -> int:
        """What predicts rows to come: 0 the frozen mixture, 1 its base, 2 the mixture that follows the stream."""
        best = int(np.argmin(self.losses[:2]))
        is_much = self.losses[best] < MUCH * self.losses[2]
        is_sure = self.losses[2] - self.losses[best] > SURE * np.sqrt(self.squares[best])
        return best if is_much and is_sure else FOLLOWING

    def predict(self, predictions: np.ndarray) -> np.ndarray:
        """What the frozen mixture, or its base, makes of members' predictions (n, M, K)."""
        of_born = predictions[:, self.places]
        return self.mixture.predict(of_born) if self.choice == 0 else self.mixture.mean(of_born)

    def quantile(self, level: float, of_stream: float, curve: LearningCurve, code: int | None = None) -> float:
        """The quantile of the scores of rows to come.

        It is ``of_stream``, that of rows which were predicted just before they were learned, unless rows that copies
        predicted, which are as far ahead as rows to come, were further off; where another mixture was chosen than the
        one that follows the stream, it is that of these rows. By the curve their scores are those of rows to come.
        ``code`` is of a class whose rows alone count.
        """
        kept = self.scores.kept()
        counts = np.ones(len(kept["targets"]), bool) if code is None else kept["targets"] == code
        numbers = kept["digests"].astype(np.float64)
        weights = (kept["weights"] * recency(numbers, curve.rows))[counts]
        if not len(weights):
            return of_stream
        scores = kept["columns"][counts, self.choice] * curve.factors(numbers[counts])
        if self.choice == FOLLOWING:
            return wider(of_stream, scores, weights, level, SURE_BY_CURVE if curve.is_known else SURE_OF_SCORES)
        of_copies = quantile(scores, weights, level)
        return of_copies if np.isfinite(of_copies) else of_stream

    def judge(
        self,
        members: Members,
        X: Any,
        y: np.ndarray,
        evidence: np.ndarray,
        numbers: np.ndarray,
        exposures: np.ndarray,
        units: Units,
    ) -> None:
        """Let the copy predict some rows, whose numbers (n,) count those learned before, which will be evidence.

        The copy does not change, so rows wait until it can predict many together. ``units`` are those of the scores of
        these rows.
        """
        if self.copy is None:
            return
        has_trees = members.growth is not None and members.growth.columns.is_for_trees
        thinning = max(self.copy.rows // (MOST_ROWS if has_trees else MOST_ROWS_OF_TEXTS), 1)
        rows = np.flatnonzero((evidence > 0.0) & (numbers % thinning == 0))
        if len(rows):
            if self.waiting and self.waiting[0].units.widths is not units.widths:
                self._predict_waiting()
            of_rows = rows_at(X, rows), y[rows], evidence[rows], numbers[rows].astype(np.uint64), exposures[rows]
            self.waiting.append(_Waiting(members, units, *of_rows))
            logs_features = members.ensemble.linear.meetings is not None  # for some time, see FrozenGroup
            if logs_features or sum(len(of.targets) for of in self.waiting) >= TOGETHER:
                self._predict_waiting()

    def _predict_waiting(self) -> None:
        """Let the copy predict the rows that wait."""
        if not self.waiting or self.copy is None:
            return
        (members, *_), (units, *_), X, *arrays = zip(*self.waiting, strict=True)
        of_rows = X[0] if len(X) == 1 else together([*X])
        *labelled, exposures = map(np.concatenate, arrays)
        predictions, following = self.copy.predict(members, of_rows)
        predicted = np.concatenate([predictions[:, self.places], following[:, None]], axis=1)
        of_scores = units.of(members.matrix(of_rows), following[:, 0], exposures), draws_of(of_rows)
        self.predicted.append(_Predicted(*[predicted, *labelled, *of_scores]))
        self.waiting = []

    def _rows(self) -> _Predicted:
        """All rows that the copy predicted, of which there are some."""
        return _Predicted(*map(np.concatenate, zip(*self.predicted, strict=True)))

    def learn(self, members: Members) -> None:
        """Judge the frozen mixture by the rows that the copy predicted, and learn these in their order."""
        self._predict_waiting()
        if self.predicted and self.copy is not None:
            predicted, y, weights, numbers, *of_rows = self._rows()
            of_born, following = np.ascontiguousarray(predicted[:, :-1]), predicted[:, -1]
            if self.copy.rows >= JUDGED:
                candidates = np.stack([self.mixture.predict(of_born), self.mixture.mean(of_born), following], axis=1)
                losses = np.minimum(weights[:, None] * members.losses(candidates, y), MOST_LOSS)
                self.losses = self.losses + losses.sum(axis=0)
                self.squares = self.squares + ((losses[:, 2:] - losses[:, :2]) ** 2).sum(axis=0)
                scores = scores_of(members.loss, candidates, y, *of_rows)
                counted = np.ones(len(y)) if members.predicts_logarithms else weights  # which have exposures in them
                self.scores.add(scores, y, counted, numbers, [0.0] * N_CHOICES)
            self.mixture.learn(of_born, y, weights)
        self.forget()

    def take(self, members: Members, mixture: Mixture, rows: int) -> None:
        """Take a copy of a pool that has learned so many rows."""
        self.learn(members)
        assert members.growth is not None
        linear = members.ensemble.linear.frozen()
        generations = [(clock, kind, age, one.frozen()) for clock, kind, age, one in members.growth.generations()]
        self.copy = Copy(rows, linear, generations, mixture.copied())
        while self.next <= rows:
            self.next *= 2

    def add_class(self) -> None:
        """Know one more class; the next copy will know it too."""
        self.forget()
        self.mixture.add_class()

    @property
    def nbytes(self) -> int:
        """Bytes of the mixture and of the generations of the copy."""
        of_copy = 0 if self.copy is None else sum(generation.nbytes for *_, generation in self.copy.generations)
        return self.mixture.nbytes + of_copy + self.scores.nbytes

    def save_state(self, n_features: int) -> State:
        """Arrays and a header from which :meth:`restore` makes the same."""
        self._predict_waiting()
        arrays = {f"mixture.{name}": array for name, array in self.mixture.save_state().items()}
        header: dict[str, Any] = {"next": self.next, "copy": None}
        arrays |= {"losses": self.losses, "squares": self.squares}
        header["scores"] = self.scores.rows
        arrays |= {f"scores.{name}": array for name, array in self.scores.save_state().items()}
        if self.predicted:
            arrays |= self._rows()._asdict()
        if self.copy is not None:
            of_copy, header["copy"] = self.copy.save_state(n_features)
            arrays |= {f"copy.{name}": array for name, array in of_copy.items()}
        return arrays, header

    def restore(self, members: Members, blank: Mixture, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Take over what :meth:`save_state` gave; ``blank`` is a mixture of these members that knows nothing."""
        self.mixture.restore(under("mixture.", arrays))
        self.losses, self.squares = np.array(arrays["losses"]), np.array(arrays["squares"])
        self.next = header["next"]
        self.scores.restore(under("scores.", arrays), header["scores"])
        if "predicted" in arrays:
            self.predicted = [_Predicted(*(np.array(arrays[name]) for name in _Predicted._fields))]
        if header["copy"] is not None:
            self.copy = Copy.restored(members, blank, under("copy.", arrays), header["copy"])

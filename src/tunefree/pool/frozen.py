"""How the pool would predict once it no longer learns, and whether another mixture is then better.

A copy of the pool is taken when a generation of all rows takes over, at each doubling. It does not learn, and predicts
some of the rows up to the next copy, so it is judged as far ahead as it is old. A second mixture, of the same rule, has
the generations of all rows as members, as they were born: the *frozen* mixture. It stands still, too: the rows of a
copy are predicted with what was learned from those of earlier copies. Rows to come are predicted by the mixture that
follows the stream, but by the frozen one, or by its base alone, where these lose less than MUCH times as much.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from tunefree.core.rows import rows_at
from tunefree.core.states import filled, flatten, under
from tunefree.generations.clocks import FIRST
from tunefree.generations.generation import Generation
from tunefree.mixing.mixture import Mixture
from tunefree.model import views

if TYPE_CHECKING:
    from tunefree.pool.pool import Pool

EARLIEST = 4 * FIRST  # rows of the first copy
MOST_ROWS = 1024  # that a copy predicts, of those until the next
JUDGED = 512  # rows that a copy has learned at least, if it is to count
MUCH = 0.98


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
    """

    def __init__(self, places: list[int], n_classes: int, loss: Any) -> None:
        self.places = places
        self.mixture = Mixture(len(places), n_classes, loss)
        self.losses = np.zeros(3)
        self.copy: Pool | None = None
        self.predicted: list[np.ndarray] = []  # (n, M + 1, K) by the generations of the copy, and by its mixture
        self.targets: list[np.ndarray] = []  # (n,)
        self.next = EARLIEST  # rows from which on the next copy is taken

    @property
    def choice(self) -> int:
        """What predicts rows to come: 0 the frozen mixture, 1 its base, 2 the mixture that follows the stream."""
        best = int(np.argmin(self.losses[:2]))
        return best if self.losses[best] < MUCH * self.losses[2] else 2

    def predict(self, members: np.ndarray, following: np.ndarray) -> np.ndarray:
        """What is chosen of members (n, M, K) of the pool, of which ``following`` (n, K) is the mixture."""
        if self.choice == 2:
            return following
        frozen = self.mixture.predict(members[:, self.places])
        return frozen if self.choice == 0 else self.mixture.mean(members[:, self.places])

    def judge(self, X: Any, y: np.ndarray, evidence: np.ndarray, numbers: np.ndarray) -> None:
        """Let the copy predict some rows, whose numbers (n,) count those learned before, which will be evidence."""
        if self.copy is None:
            return
        thinning = max(self.copy.rows // MOST_ROWS, 1)
        rows = np.flatnonzero((evidence > 0.0) & (numbers % thinning == 0))
        if not len(rows):
            return
        members = self.copy.predictions_of_members(rows_at(X, rows))
        following = self.copy.mixture.predict(members)
        self.predicted.append(np.concatenate([members[:, self.places], following[:, None]], axis=1))
        self.targets.append(y[rows])

    def learn(self, pool: Pool) -> None:
        """Judge the frozen mixture by the rows that the copy predicted, and learn these in their order."""
        if self.predicted and self.copy is not None:
            together, y = np.concatenate(self.predicted), np.concatenate(self.targets)
            members, following = np.ascontiguousarray(together[:, :-1]), together[:, -1]
            if self.copy.rows >= JUDGED:
                candidates = np.stack([self.mixture.predict(members), self.mixture.mean(members), following], axis=1)
                self.losses = self.losses + pool.losses_of(candidates, y).sum(axis=0)
            self.mixture.learn(members, y, np.ones(len(y)))
        self.predicted, self.targets, self.copy = [], [], None

    def take(self, pool: Pool) -> None:
        """Take a copy, if one is due."""
        if pool.rows >= self.next and pool.growth is not None:
            self.learn(pool)
            self.copy = copied(pool)
            while self.next <= pool.rows:
                self.next *= 2

    def add_class(self) -> None:
        """Know one more class; the next copy will know it too."""
        self.predicted, self.targets, self.copy = [], [], None
        self.mixture.add_class()

    def save_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :meth:`restore` makes the same."""
        arrays = {f"mixture.{name}": array for name, array in self.mixture.save_state().items()}
        header: dict[str, Any] = {"next": self.next, "copy": None}
        arrays["losses"] = self.losses
        if self.predicted:
            arrays |= {"predicted": np.concatenate(self.predicted), "targets": np.concatenate(self.targets)}
        if self.copy is not None:
            of_copy, header["copy"] = _state_of_copy(self.copy)
            arrays |= {f"copy.{name}": array for name, array in of_copy.items()}
        return arrays, header

    def restore(self, pool: Pool, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Take over what :meth:`save_state` gave, of a pool that is restored."""
        self.mixture.restore(under("mixture.", arrays))
        self.losses, self.next = np.array(arrays["losses"]), header["next"]
        if "predicted" in arrays:
            self.predicted, self.targets = [np.array(arrays["predicted"])], [np.array(arrays["targets"])]
        if header["copy"] is not None:
            self.copy = _restored_copy(pool, under("copy.", arrays), header["copy"])


def copied(pool: Pool) -> Pool:
    """A pool that predicts as this one does, and does not change."""
    frozen = copy.copy(pool)
    n_features = pool.linear.n_features
    frozen.linear = pool.linear.with_weights([tuple(a.copy() for a in read) for read in pool.linear.weights()])
    frozen.linear.members = [copy.copy(member) for member in pool.linear.members]
    frozen.linear.views = {
        name: filled("view", views.ALL[name].create(len(view.centres)), *_flat(view, n_features))
        for name, view in pool.linear.views.items()
    }
    frozen.mixture = _copy_of(pool.mixture)
    frozen.growth = copy.copy(pool.growth)
    if pool.growth is not None and frozen.growth is not None:
        frozen.growth.awake = {key: [g.copied() for g in of_kind] for key, of_kind in pool.growth.awake.items()}
    return frozen


def _flat(view: Any, n_features: int) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    arrays, scalars = flatten("view", view, n_features)
    return {name: np.array(array) for name, array in arrays.items()}, scalars


def _copy_of(mixture: Mixture) -> Mixture:
    made = Mixture(mixture.n_members, mixture.n_classes, mixture.loss)
    made.restore({name: np.array(array) for name, array in mixture.save_state().items()})
    return made


def _state_of_copy(frozen: Pool) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    arrays = {f"mixture.{name}": array for name, array in frozen.mixture.save_state().items()}
    header: dict[str, Any] = {"rows": frozen.rows, "objectives": [], "views": sorted(frozen.linear.views), "awake": []}
    for number, (member, (weights, units)) in enumerate(
        zip(frozen.linear.members, frozen.linear.weights(), strict=True)
    ):
        arrays |= {f"linear{number}.weights": weights, f"linear{number}.units": units}
        objective = {name: value for name, value in member.objective._asdict().items() if name != "loss"}
        header["objectives"].append(objective)
    for name, view in frozen.linear.views.items():
        arrays |= flatten(f"views.{name}", view, frozen.linear.n_features)[0]
    if frozen.growth is not None:
        for number, (clock, _, _, generation) in enumerate(frozen.growth.generations()):
            of_generation, of_header = generation.save_state()
            arrays |= {f"awake{number}.{name}": array for name, array in of_generation.items()}
            header["awake"].append({"clock": clock} | of_header)
    return arrays, header


def _restored_copy(pool: Pool, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Pool:
    frozen = copied(pool)
    frozen.rows = header["rows"]
    frozen.mixture.restore(under("mixture.", arrays))
    reads = [
        (np.array(arrays[f"linear{number}.weights"]), np.array(arrays[f"linear{number}.units"]))
        for number in range(len(header["objectives"]))
    ]
    frozen.linear = frozen.linear.with_weights(reads)
    for member, objective in zip(frozen.linear.members, header["objectives"], strict=True):
        member.objective = member.objective._replace(**objective)
    frozen.linear.views = {name: views.restored(name, f"views.{name}", arrays) for name in header["views"]}
    if frozen.growth is not None:
        frozen.growth.awake = {}
        for number, saved in enumerate(header["awake"]):
            generation = Generation.restored(under(f"awake{number}.", arrays), saved, pool.loss)
            frozen.growth.awake.setdefault((saved["clock"], saved["kind"]), []).append(generation)
    return frozen

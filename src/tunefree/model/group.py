"""Groups of members: those that see the rows in the same way, or learn together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tunefree.additive.features import AdditiveFeatures
from tunefree.core.rows import part, rows_at

Read = tuple[np.ndarray, np.ndarray]  # weights (d, K) of a member relative to the units (d,) of the features


class LabelledRows(NamedTuple):
    """Rows to learn, with their targets."""

    X: Any  # block of rows
    y: np.ndarray  # (n,) targets as the objective takes them
    weight: np.ndarray  # (n,) sample weights; a row of weight 0 is predicted but not learned
    evaluation_weight: np.ndarray  # (n,) with which members are evaluated; 0 for rows learned before

    def part(self, start: int, stop: int) -> LabelledRows:
        """The rows from ``start`` up to ``stop``."""
        return LabelledRows(part(self.X, start, stop), *(array[start:stop] for array in self[1:]))

    def at(self, places: np.ndarray) -> LabelledRows:
        """Some of the rows."""
        return LabelledRows(rows_at(self.X, places), *(array[places] for array in self[1:]))


# Takes rows by view, as the members saw them; the rows; what was predicted of them (M, n, K); and who learned them.
Observer = Callable[[dict[str, Any], LabelledRows, np.ndarray, list[int]], None]


class WarmupPredictions(NamedTuple):
    """What members predicted of rows that were kept back, each before it was learned."""

    y: np.ndarray  # (n,) targets
    evaluation_weight: np.ndarray  # (n,) with which members are evaluated
    predictions: np.ndarray  # (M, n, K)


class Further(NamedTuple):
    """Entries of rows beside those of features that have weights of their own in a member, and their weights."""

    X: Any  # block of rows
    read: Read
    features: np.ndarray  # (d,) of these weights, as the rows were given


class WeightedRows(NamedTuple):
    """Rows as a member sees them whose margins are sums of weight * x / unit."""

    X: Any  # block of rows
    weights: np.ndarray  # (d, K)
    units: np.ndarray  # (d,) of the features; 0 for one that was never met
    further: Further | None = None  # the rest of the sums


class MemberGroup:
    """Members that learn from the rows side by side.

    Wherever some of the members are named, they are named by their places in ``members``.

    Attributes
    ----------
    name : str
        Of the group, among those of a model.
    members : list
        Each has a ``name``, a ``setting``, an ``objective`` and a ``state``.
    n_outputs : int
        Margins of a row.
    pays : bool
        Whether the rows so far are worth learning.
    """

    members: list[Any]
    n_outputs: int
    pays = True
    work = 0.0  # entries of rows learned since this was asked for, once for each member and output
    observer: Observer | None = None  # is told of rows once they are learned

    @property
    def name(self) -> str:
        """What the group is called among those of a model."""
        raise NotImplementedError

    @property
    def uses_threads(self) -> bool:
        """Whether the group itself has work for several threads."""
        raise NotImplementedError

    @property
    def is_sparse(self) -> bool | None:
        """Whether the rows so far were sparse; None if there were none, or if it makes no difference."""
        raise NotImplementedError

    def learn(
        self, rows: LabelledRows, predictions: np.ndarray, busy: list[int] | None = None, again: bool = False
    ) -> None:
        """Learn rows in order.

        Parameters
        ----------
        rows : LabelledRows
        predictions : (M, n, K) array
            Is written: what each member that learns predicted before it learned the row; NaN while it sleeps.
        busy : list of int, optional
            The members that learn; all of them if None.
        again : bool, default False
            Whether the rows were learned before; views learn nothing from them.
        """
        raise NotImplementedError

    def predict(self, X: Any) -> np.ndarray:
        """What each member predicts of new rows, (M, n, K); NaN where it has had no rows to learn from."""
        raise NotImplementedError

    def keep(self, stays: list[int]) -> None:
        """Drop all members but some."""
        raise NotImplementedError

    def add_class(self, objective: Any, n_outputs: int, n_classes: int) -> None:
        """Know one more class.

        Parameters
        ----------
        objective : objective
            From ``n_outputs`` margins.
        n_outputs, n_classes : int
            Margins and classes from now on. A second class needs no further margin. A third one turns one margin into
            three, in which the old margin is that of class 1.
        """
        raise NotImplementedError

    def save_state(self, n_features: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :meth:`restore` makes the same group."""
        raise NotImplementedError

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Take over what :meth:`save_state` wrote; the group has learned nothing and has the same members."""
        raise NotImplementedError

    @property
    def has_weights(self) -> bool:
        """Whether margins are weighted sums of entries that belong to columns, or to pairs of columns."""
        return False

    @property
    def additive(self) -> AdditiveFeatures | None:
        """The features of its own that the weights are of; None if they are of the features as given."""
        return None

    def weighted_rows(self, X: Any, members: list[int]) -> list[WeightedRows]:
        """Rows as some members see them, where they have weights."""
        raise NotImplementedError

    def in_view(self, X: Any, view: str) -> Any:
        """Rows as a member on a view sees them, where members have weights."""
        raise NotImplementedError

    def by_slot(self, of_features: np.ndarray) -> np.ndarray:
        """What belongs to features as given (d, ...), in the order of the weights of members; by default it is so."""
        return of_features

    def add(self, member: Any) -> None:
        """Let one more member join, on a view that the group has."""
        raise NotImplementedError

    def reads(self, n_features: int) -> list[Read] | None:
        """The weights of each member, of the features as given at most the first so many; None where there are none,
        or where members sleep."""
        return None

    def n_weights(self, n_features: int) -> int:
        """How many weights :meth:`reads` has."""
        return 0

    def with_weights(self, reads: list[Read]) -> MemberGroup:
        """The same members with other weights, for as long as the group does not learn; only where there are some."""
        raise NotImplementedError

    @property
    def counts(self) -> tuple[int, int]:
        """How many features have weights by now, and in how many rows some were met first, if that makes a difference
        (:mod:`tunefree.model.meetings`)."""
        return 0, 0

    def further(self, X: Any, moving: dict[str, Any], counts: tuple[int, int]) -> Callable[[Any], Further | None]:
        """For each member what rows had beside features with weights, when the group had these counts; by default
        nothing."""
        return lambda member: None

    @property
    def moving_views(self) -> dict[str, Any]:
        """The views by name whose statistics change with every row; by default none."""
        return {}

    def shown(self, X: Any, moving: dict[str, Any], n_features: int) -> dict[str, Any]:
        """Rows as members saw them when they had so many features, by the name of their view, with the statistics that
        moving views had then. Features that came later may be among the entries."""
        raise NotImplementedError

    def suits(self, X: Any) -> bool:
        """Whether rows like these may be worth learning; it depends on their kind and their dense columns only."""
        return True

    def reserve_features(self, n_features: int) -> None:
        """Have room for at least so many features; by default features need no room of their own."""

    def begin_pass(self, busy: list[int]) -> None:
        """Rows that were learned come again, for some of the members; by default this is nothing special."""

    def freeze(self) -> None:
        """Learn the rows that were kept back; by default there are none."""

    @property
    def n_unevaluated(self) -> int:
        """Rows that are kept back and have a weight in the evaluation of members; by default none is kept back."""
        return 0

    def take_curves(self) -> list[Any]:
        """The latest rows of the first pass as curves of their columns, handed out once; by default none."""
        return []

    def take_warmup_predictions(self) -> WarmupPredictions | None:
        """Predictions of rows that were kept back and have now been learned, handed out once; by default none."""
        return None

"""Groups of members: those that see the rows in the same way, or learn together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree.core.rows import part

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


class WarmupPredictions(NamedTuple):
    """What members predicted of rows that were kept back, each before it was learned."""

    y: np.ndarray  # (n,) targets
    evaluation_weight: np.ndarray  # (n,) with which members are evaluated
    predictions: np.ndarray  # (M, n, K)


class Further(NamedTuple):
    """Entries of rows whose features have no slot among the weights of a member, and the weights of these."""

    X: Any  # block of rows
    read: Read
    features: np.ndarray  # (d,) of these weights, as in the rows


class WeightedRows(NamedTuple):
    """Rows as a member sees them whose margins are sums of weight * x / unit."""

    X: Any  # block of rows
    weights: np.ndarray  # (d, K)
    units: np.ndarray  # (d,) of the features; 0 for one that was never observed
    further: Further | None = None  # the rest of the sums


class MemberGroup:
    """Members that learn from the rows side by side.

    Attributes
    ----------
    members : list
        Each has a ``name``, a ``setting``, an ``objective`` and a ``state``.
    n_outputs : int
        Margins of a row.
    has_learned : bool
        Whether members have learned, or would have if there had been rows; some keep their first rows back.
    """

    has_learned = True
    members: list[Any]
    n_outputs: int

    @property
    def uses_threads(self) -> bool:
        """Whether the group itself has work for several threads."""
        raise NotImplementedError

    @property
    def is_sparse(self) -> bool | None:
        """Whether the rows so far were sparse; None if there were none, or if it makes no difference."""
        raise NotImplementedError

    def learn(self, rows: LabelledRows, predictions: np.ndarray, again: bool = False) -> None:
        """Learn rows in order.

        Parameters
        ----------
        rows : LabelledRows
        predictions : (M, n, K) array
            Is written: what each member predicted before it learned the row; NaN while it sleeps.
        again : bool, default False
            Whether the rows were learned before; views learn nothing from them.
        """
        raise NotImplementedError

    def predict(self, X: Any) -> np.ndarray:
        """What each member predicts of new rows, (M, n, K); NaN where it has had no rows to learn from."""
        raise NotImplementedError

    def keep(self, stays: list[int]) -> None:
        """Go on with the members at these places only."""
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

    def begin_pass(self) -> None:
        """Prepare for rows that were learned and come again; by default there is nothing to do."""

    def freeze(self) -> None:
        """Learn the rows that were kept back; by default there are none."""

    def take_warmup_predictions(self) -> WarmupPredictions | None:
        """Predictions of rows that were kept back and have now been learned, handed out once; by default none."""
        return None

"""The mixture of a pool's members: base, corrections, and the weights on these.

Weights on base and corrections are those of Bayes' rule with the fixed share 1 / (t + 2). What the mixture loses by
that is bounded in :mod:`tunefree.theory.mixing`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core import states
from tunefree.core.errors import ModelError
from tunefree.learners.contract import grow
from tunefree.mixing import classes, corrections, numbers
from tunefree.mixing.bases import Account, Weights

N_CANDIDATES = 1 + len(corrections.LEARNERS)
BASE_ONLY = Weights(np.eye(N_CANDIDATES)[0], np.eye(N_CANDIDATES)[0], np.zeros(()))


class Mixture:
    """A mixture of M members, any of which may sleep.

    Parameters
    ----------
    n_members : int
    n_classes : int
        0 for numbers.
    loss : loss, optional
        Of numbers (:mod:`tunefree.losses`); classes have log-loss.

    Attributes
    ----------
    base, top : Weights
        Of the members, and of the base and the corrections.
    account : Account
        Losses of the mixture and of the base, and what a bound on their difference is computed from.

    Examples
    --------
    Two members, one of which is right:

    >>> mixture = Mixture(2, 2)
    >>> right, wrong = np.log([[0.1, 0.9]]), np.log([[0.5, 0.5]])
    >>> members = np.repeat(np.stack([right, wrong], 1), 500, axis=0)
    >>> _ = mixture.learn(members, np.ones(500), np.ones(500))
    >>> np.exp(mixture.predict(members[:1])[0, 1]) > 0.97
    np.True_
    """

    def __init__(self, n_members: int, n_classes: int, loss: Any = None) -> None:
        self.n_members, self.n_classes, self.loss = n_members, n_classes, loss
        self.base, self.top = Weights.create(n_members), Weights.create(N_CANDIDATES)
        self.account, self.range = Account.create(), numbers.Range.create()
        self.corrections = corrections.created(self.n_features)

    @property
    def n_features(self) -> int:
        """Features of the corrections."""
        if self.n_classes == 0:
            return self.n_members + 2
        return self.n_members + 1 + (self.n_classes if self.n_classes <= classes.MOST_BIASED else 0)

    def learn(self, members: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Predict rows in order, and learn each after that.

        Parameters
        ----------
        members : (n, M, K) array
            Log-probabilities of classes, or predictions (K = 1); NaN of a member that sleeps.
        y : (n,) array
            Numbers of classes, or targets.
        weight : (n,) array
            Relative to their mean; a row of weight 0 is predicted only.

        Returns
        -------
        (n, K) array
            Log-probabilities, or predictions, each made before its row was learned.
        """
        return self._mix(members, y, weight)

    def predict(self, members: np.ndarray, is_over: bool = True) -> np.ndarray:
        """Predict rows to come: with means of the weights over the rows if the stream is over, else with the last."""
        nothing = None if is_over else np.zeros(len(members))
        return self._mix(members, nothing, nothing)

    def mean(self, members: np.ndarray) -> np.ndarray:
        """Predict rows to come by the base alone."""
        return self._mix(members, top=BASE_ONLY)

    def _mix(self, members: np.ndarray, y: Any = None, weight: Any = None, top: Weights | None = None) -> np.ndarray:
        mixed, nothing = np.empty((len(members), members.shape[2])), np.zeros(len(members))
        rule = self.base, *self.corrections, self.top if top is None else top, self.account
        of_rows = members, nothing if y is None else y, nothing if weight is None else weight
        rows = *(np.ascontiguousarray(array, np.float64) for array in of_rows), y is None, mixed
        if self.n_classes == 0:
            numbers.mix(*rule, self.range, self.loss, *rows)
        else:
            classes.mix(*rule, *rows)
        return mixed

    def add_class(self) -> None:
        """Know one more class, of which corrections know nothing."""
        self.n_classes += 1
        if self.n_classes <= classes.MOST_BIASED:
            self.corrections = [grow(state, self.n_features, 1) for state in self.corrections]
        elif self.n_classes == classes.MOST_BIASED + 1:
            self.corrections = corrections.created(self.n_features)

    def copied(self) -> Mixture:
        """A mixture that knows the same, and learns apart from this."""
        other = Mixture(self.n_members, self.n_classes, self.loss)
        other.restore({name: np.array(array) for name, array in self.save_state().items()})
        return other

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return states.size_of(self._parts())

    def save_state(self) -> dict[str, np.ndarray]:
        """Arrays from which :meth:`restore` makes the same mixture."""
        parts = self._parts().items()
        return {k: v for prefix, part in parts for k, v in states.flatten(prefix, part, self.n_features)[0].items()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what :meth:`save_state` gave, of a mixture of as many members and classes."""
        for name, array in self.save_state().items():  # views of what it has
            if arrays[name].shape != array.shape:
                raise ModelError(f"the mixture: {name} has the shape {arrays[name].shape}, not {array.shape}")
            array[...] = arrays[name]

    def _parts(self) -> dict[str, Any]:
        """What it has learned, by the name under which it is saved."""
        parts: dict[str, Any] = {"base": self.base, "top": self.top, "account": self.account}
        parts |= {"range": self.range} if self.n_classes == 0 else {}
        return parts | {f"corrections.{number}": state for number, state in enumerate(self.corrections)}

"""The mixture of a pool's members: base, corrections, and the weights on these.

Weights on base and corrections are those of Bayes' rule with the fixed share 1 / (t + 2), so the mixture's total
log-loss exceeds that of the best of the three by at most ln 3 + (2 / 3) ln(T + 1).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core import states
from tunefree.mixing import bases, classes, corrections, numbers
from tunefree.mixing.bases import Weights

N_CANDIDATES = 1 + len(corrections.LEARNERS)


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
        self.range = numbers.Range.create()
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
        return self._mix(members, y, weight, False)

    def predict(self, members: np.ndarray) -> np.ndarray:
        """Predict rows to come, with means of the weights over the rows learned."""
        nothing = np.zeros(len(members))
        return self._mix(members, nothing, nothing, True)

    def mean(self, members: np.ndarray) -> np.ndarray:
        """Predict rows to come by the base alone."""
        awake = ~np.isnan(members[:, :, :1])
        weights = self.base.means[None, :, None] * awake
        total = weights.sum(axis=1)
        shares = np.divide(weights, total[:, None], out=np.zeros(weights.shape), where=total[:, None] > 0.0)
        if self.n_classes == 0:
            return np.sum(shares * np.nan_to_num(members), axis=1)
        means = np.sum(shares * np.where(awake, np.exp(np.nan_to_num(members)), 0.0), axis=1)
        return np.log(np.where(total > 0.0, np.maximum(means, bases.LEAST), 1.0 / members.shape[2]))

    def _mix(self, members: np.ndarray, y: np.ndarray, weight: np.ndarray, is_over: bool) -> np.ndarray:
        mixed = np.empty((len(members), members.shape[2]))
        rule = self.base, *self.corrections, self.top
        rows = *(np.ascontiguousarray(array, np.float64) for array in (members, y, weight)), is_over, mixed
        if self.n_classes == 0:
            numbers.mix(*rule, self.range, self.loss, *rows)
        else:
            classes.mix(*rule, *rows)
        return mixed

    def add_class(self) -> None:
        """Know one more class, of which corrections know nothing."""
        self.n_classes += 1
        if self.n_classes <= classes.MOST_BIASED:
            self.corrections = corrections.with_features(self.corrections, self.n_features)
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
        return states.size_of((self.base, self.top, self.range, tuple(self.corrections)))

    def save_state(self) -> dict[str, np.ndarray]:
        """Arrays from which :meth:`restore` makes the same mixture."""
        arrays = {**bases.arrays_of(self.base, "base"), **bases.arrays_of(self.top, "top")}
        arrays |= bases.arrays_of(self.range, "range") if self.n_classes == 0 else {}
        return arrays | corrections.arrays_of(self.corrections, self.n_features)

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what :meth:`save_state` gave, of a mixture of as many members and classes."""
        for part, prefix in ((self.base, "base"), (self.top, "top")):
            bases.restore_into(part, prefix, arrays)
        if self.n_classes == 0:
            bases.restore_into(self.range, "range", arrays)
        self.corrections = corrections.restored(self.corrections, arrays)

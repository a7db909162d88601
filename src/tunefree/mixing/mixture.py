"""The mixture of the members of a pool: a base, corrections, and weights of these candidates.

The weights of the candidates follow Bayes' rule with the fixed share 1 / (t + 2). :mod:`tunefree.theory.mixing` bounds
the loss of the mixture against the best candidate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.compiled.functions import Call
from tunefree.core.fields import OUTPUT
from tunefree.core.part import LEARNED, Part, argument, child, zeros
from tunefree.losses.numbers import LOSS
from tunefree.losses.objectives import Objective
from tunefree.mixing import classes, numbers
from tunefree.mixing.bases import N_CANDIDATES, Account, CandidateWeights, Weights
from tunefree.mixing.corrections import Corrections, Scratch, resized

BASE_ONLY = CandidateWeights(np.eye(N_CANDIDATES)[0], np.eye(N_CANDIDATES)[0], np.zeros(1))


class Mixture(Part):
    """A mixture of M members, each of which may sleep; ``n_classes`` is 0 for numbers, which have a loss.

    With ``keeps_order``, the prediction of the mixture rises with the prediction of each member. ``base`` has the
    weights of the members, and ``top`` the weights of the candidates. ``account`` has the losses of the mixture and of
    the base, and the terms of a bound on their difference. In this example one of two members is right:

    >>> mixture = Mixture(2, 2)
    >>> right, wrong = np.log([[0.1, 0.9]]), np.log([[0.5, 0.5]])
    >>> members = np.repeat(np.stack([right, wrong], 1), 500, axis=0)
    >>> _ = mixture.learn(members, np.ones(500), np.ones(500))
    >>> np.exp(mixture.predict(members[:1])[0, 1]) > 0.97
    np.True_
    """

    n_members, n_classes, loss, keeps_order = argument(), argument(), argument(), argument()
    base = child(Weights, LEARNED)
    top = child(CandidateWeights, LEARNED)
    account = child(Account, LEARNED)
    range = child(numbers.Range, LEARNED)
    corrections = child(Corrections, LEARNED, axes={OUTPUT: 1})

    def __init__(self, n_members: int, n_classes: int, loss: Any = None, keeps_order: bool = False) -> None:
        self.n_members, self.n_classes, self.loss, self.keeps_order = n_members, n_classes, loss, keeps_order
        self.base, self.top = Weights.create(n_members), CandidateWeights.create()
        self.account, self.range = zeros(Account), numbers.Range.create()
        self.corrections = Corrections.create(self.n_features)

    @property
    def n_features(self) -> int:
        """Features of the corrections."""
        if self.n_classes == 0:
            return self.n_members + 2
        return self.n_members + 1 + (self.n_classes if self.n_classes <= classes.MOST_BIASED else 0)

    def learn(self, members: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Predict rows (n, K) in order, and learn each row of positive weight after its prediction.

        ``members`` (n, M, K) are log-probabilities of classes, or predictions (K = 1), NaN for sleeping members.
        Weights are relative to their mean.
        """
        return self.predict(members, is_over=False, learned=(y, weight))

    def predict(
        self, members: np.ndarray, is_over: bool = True, is_base: bool = False, learned: Any = None
    ) -> np.ndarray:
        """Predict future rows: with the mean weights over the rows if the stream is over, else with the latest.

        With ``is_base``, the base predicts without corrections.
        """
        mixed = np.empty((len(members), members.shape[2]))
        mix, *arguments = self.call_on(np.ascontiguousarray(members, np.float64), mixed, is_over, is_base, learned)
        mix(*arguments)
        return mixed

    def call_on(
        self, members: np.ndarray, mixed: np.ndarray, is_over: bool = True, is_base: bool = False, learned: Any = None
    ) -> Call:
        """The call that predicts rows (n, M, K) into an array (n, K); valid until a class is added.

        ``learned``: targets (n,) and weights (n,), if rows are learned after their prediction.
        """
        learned = np.zeros((2, len(members))) if learned is None else learned
        arrays = (np.ascontiguousarray(numbers, np.float64) for numbers in learned)
        rows = members, *arrays, is_over, self.keeps_order, mixed
        rule = self.base, *self.corrections, BASE_ONLY if is_base else self.top, self.account
        n_members, n_classes = members.shape[1:]
        indices = np.arange(self.n_features, dtype=np.uint32)
        scratch = zeros(Scratch, features=self.n_features)._replace(indices=indices)
        losses = np.empty(n_members + N_CANDIDATES + 1)  # of the candidates, the mixture and the members
        if self.n_classes == 0:
            features, candidates = np.empty(self.n_features), np.empty(N_CANDIDATES)
            objective = Objective("regression", self.loss)
            loss = objective.codes.item(LOSS), objective.numbers
            return numbers.compiled_mixing(), *rule, self.range, scratch, features, candidates, losses, *loss, *rows
        features, candidates = np.empty((n_members + 1, n_classes)), np.empty((N_CANDIDATES, n_classes))
        losses, factors, shares = losses[:N_CANDIDATES], losses[N_CANDIDATES + 1 :], np.empty(n_classes)
        return classes.mix, *rule, scratch, features, candidates, shares, losses, factors, *rows

    def add_class(self) -> None:
        """Add a class, whose corrections start at 0; beyond MOST_BIASED classes corrections lose their biases."""
        self.n_classes += 1
        if self.n_classes <= classes.MOST_BIASED + 1:
            self.corrections = Corrections(*(resized(state, self.n_features) for state in self.corrections))

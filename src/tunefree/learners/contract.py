"""The contract of learners: a class that declares its fields, and a few plain functions.

A learner predicts the margins of a row, which are linear in the row. Then it gets the gradient of the loss with respect
to these margins. Its weight for feature j and output k is ``coordinate(state, j, k) * factor(state, k) /
magnitude(state, j)``: a number near 1 at any scale of the feature, a factor of all features, and the feature's unit.

Its functions are compiled. They read ``state.field[...]``, call plain functions by name, allocate nothing, raise
nothing, call no method of the state, and have no default arguments. In Python they are methods of the state.

Arrays of outputs (margins, gradient, curvature and the fields) have a padded length, 1 or a multiple of 4; a padded
output has the gradient 0. With several outputs, entries of value 0 are skipped. With one output, the loop is faster
without this test.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from tunefree.core.fields import FEATURE, OUTPUT, State


class Traits(NamedTuple):
    """Properties of a learner; its class sets ``traits`` where they differ from the defaults.

    Invariances are exact, and hold to the last bit for powers of two.
    """

    classifies_only: bool = False  # for classes only: it uses only the sign of a slope
    margins_are_log_odds: bool = True  # with the logistic loss; if not, probabilities are learned from the margins
    can_be_averaged: bool = True  # a coordinate does not change in rounds without its feature, so that the average of
    #   the iterates costs only the non-zeros of a row
    rate: str | None = None  # the name of the setting that is a step size, which users have to tune
    dimension: str | None = None  # the name of the setting that is the number of features, if known beforehand; without
    #   it the features seen so far are counted
    takes_slopes_as_they_come: bool = False  # for classes, where the loss has no Lipschitz constant; other learners get
    #   slopes clipped at the steepest slope so far
    invariant_to_scale_of: str = "nothing"  # "each feature", or "all features alike", may be multiplied by a constant
    #   without changing a prediction
    can_replay: bool = False  # ``replay`` learns a feature that was left out of a row exactly as the row would have
    theorem: str = ""  # the theorem that bounds its regret, see ``regret_bound``


class Scale(NamedTuple):
    """Scales of a round that are known before its target."""

    slope: float  # bound on the absolute weighted slope of the round
    margin: float  # natural size of a margin, which never shrinks: 1, or for regression the spread of the target
    weight: float  # the sample's weight


class Learner(State):
    """A learner: its fields, its traits, and the functions that follow; ``docs/extending/learner.md`` has an example.

    Parameters
    ----------
    n_features, n_outputs : int
        Capacity in features and outputs.
    **settings : float
        Values of the settings that differ from their defaults.
    """

    traits: ClassVar[Traits] = Traits()

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if "replay" not in vars(cls) and {"predict", "update"} & vars(cls).keys():
            predict, update = cls.predict, cls.update

            def replay(state, row, scale, past, margins, gradient, curvature):
                predict(state, row, scale, margins)
                update(state, row, gradient, curvature)

            cls.replay = replay  # type: ignore[method-assign]

    def predict(state, row, scale, margins):
        """Write the margins of a row; may update statistics of the features, never of the target."""
        raise NotImplementedError

    def update(state, row, gradient, curvature):
        """Learn from the gradient of the loss with respect to the margins just predicted for a row.

        ``curvature`` holds the second derivatives, which first-order learners ignore.
        """
        raise NotImplementedError

    def coordinate(state, j, k):
        """The part of a weight that depends on both its feature j and its output k.

        Only rows with feature j change it, unless the learner cannot be averaged.
        """
        raise NotImplementedError

    def factor(state, k):
        """The part of the weights for output k that all features share; by default none."""
        return 1.0

    def magnitude(state, j):
        """The unit in which feature j is measured; 0 while it has not been seen."""
        raise NotImplementedError

    def leave_out(state, scale, n_features):
        """Take into account ``n_features`` features of the next row that are left out because they are new.

        Their weights are 0, so that the margins do not change. By default no statistic of all features together
        exists that they would change.
        """

    def shared(state):
        """The number that an update takes from all features of a row together, between predicting and updating.

        By default 0: each feature is updated by itself.
        """
        return 0.0

    def fetch(state, j):
        """Prefetch the memory of a feature in a row to come; by default nothing is fetched."""

    def replay(state, row, scale, past, margins, gradient, curvature):
        """Learn one entry of a new feature, which was left out of an earlier row.

        ``scale``, ``gradient`` and ``curvature`` belong to that row; ``past`` is the value of ``shared(state)`` in its
        round. ``margins`` may be overwritten. Statistics shared by all features do not change, unless each prediction
        overwrites them. By default the entry is predicted and learned.
        """
        raise NotImplementedError

    def regret_bound(self, weights: np.ndarray) -> float:
        """The bound of the theorem in the traits on the regret of the learned rounds against weights (d, K).

        Slopes are at most 1 in absolute value.
        """
        raise TypeError(f"{type(self).__name__} has no regret bound")

    def with_outputs(self, n_outputs: int, first: int = 0, mirrors: bool = False) -> Self:
        """A copy of the learner with more outputs; the first output of the learner becomes output ``first``.

        To split one margin into margins of several classes under a softmax, set ``first`` to 1 and ``mirrors``.
        """
        wider = self.grown(self.n_features, n_outputs, first)
        wider.prepare_outputs([k for k in range(n_outputs) if not first <= k < first + self.n_outputs])
        if mirrors:
            mirror(wider)
        return wider

    def prepare_outputs(self, outputs: list[int]) -> None:
        """Prepare outputs that are added later; by default their fields keep the values of a new learner."""


def begin_outputs(state: Learner, learner: Learner, outputs: Iterable[int]) -> None:
    """Copy the statistics of the constant from a learner of one output with the same settings to outputs, in place."""
    for field in state.fields:
        for k in outputs:
            if field.axes == (FEATURE, OUTPUT):
                state[field.name][0, k] = learner[field.name][0, 0]
            elif field.axes == (OUTPUT,):
                state[field.name][k] = learner[field.name][0]


def mirror(state: Learner, features: np.ndarray | None = None) -> None:
    """Split the margin that output 1 has learned between outputs 0 and 1, in place.

    The slopes of class 0 are the negated slopes of class 1, so output 0 copies the statistics with a declared parity.
    Where weights can be halved, each output gets half of the margin, as if both had been learned from the start. With
    ``features``, only the coordinates of these features change.
    """
    for field in [field for field in state.fields if field.parity or field.is_halved]:
        is_by_feature = FEATURE in field.axes
        if features is not None and not is_by_feature:
            continue
        chosen = (slice(None) if features is None else features[features < state.n_features],) if is_by_feature else ()
        by_output = np.moveaxis(state[field.name], field.axes.index(OUTPUT), 0)
        if field.parity:  # adding 0.0 turns -0.0 into 0.0
            by_output[(0, *chosen)] = field.parity * by_output[(1, *chosen)] + 0.0
        if field.is_halved:
            by_output[(slice(2), *chosen)] *= 0.5

"""Regret bounds of the papers, computed from the state of a learner after one pass.

All theorems assume slopes (subgradients of the loss at the prediction) of at most 1 in absolute value. A loss with
Lipschitz constant L must first be divided by L. Bounds printed for the rows of a stream are for the papers' algorithms.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tunefree.losses.objectives import Objective


class Bound(NamedTuple):
    """The right-hand side of a theorem, for one stream and one comparator.

    >>> str(Bound(2.5, "Theorem 1", "||x_t|| <= 1"))
    'at most 2.5 (Theorem 1; assumes ||x_t|| <= 1)'
    >>> str(no_bound("no theorem bounds the regret of Adam"))
    'no bound: no theorem bounds the regret of Adam'
    """

    value: float | None  # None where no theorem applies
    theorem: str = ""  # the paper and the number of the statement
    assumes: str = ""  # assumptions of the statement that are not checked
    reason: str = ""  # why no theorem applies

    def __str__(self) -> str:
        if self.value is None:
            return f"no bound: {self.reason}"
        return f"at most {self.value:.6g} ({self.theorem}{'; assumes ' * bool(self.assumes)}{self.assumes})"


def no_bound(reason: str) -> Bound:
    """A missing bound, with the reason."""
    return Bound(None, reason=reason)


def paper_bound(state: Any, objective: Objective, weights: ArrayLike) -> float:
    """Bound on a learner's regret against fixed weights, from the learner's own theorem and its state
    (``regret_bound``).

    It covers all learned rounds, including all passes, in units of the loss. The weights (d, K), or (d,) for one
    output, are in the units of the data, with the constant first. The bound is infinite if no theorem covers the
    learner and the objective: for losses without a Lipschitz constant, whose slopes are clipped, and for regression,
    whose margins are relative to a running centre.

    >>> from tunefree.learners.scinol import ScInOL2
    >>> from tunefree.losses import Logistic
    >>> paper_bound(ScInOL2(2, epsilon=1.0), Objective("classification", Logistic()), [0.0, 3.0])
    0.0
    """
    lipschitz = getattr(objective.loss, "lipschitz", 1.0)  # 1 for the log-loss of a softmax
    if lipschitz == math.inf or objective.task == "regression":
        return math.inf
    u = np.asarray(weights, np.float64).reshape(state.n_features, state.n_outputs)
    with np.errstate(all="ignore"):
        bound = lipschitz * state.regret_bound(u)
    return bound if math.isfinite(bound) else math.inf

"""ScInOL and PiSTOL in scikit-learn's manner, by the compiled learners of the package."""

from __future__ import annotations

import math
from typing import Any

from tunefree.core.parameters import parameter
from tunefree.estimators.linear import LinearClassifier, LinearRegressor, SingleLearner
from tunefree.estimators.parameters import estimator
from tunefree.losses import loss_of
from tunefree.papers.pistol_risk import pistol_parameter

PRESETS = ("theory", "practice")


@estimator
class ScInOL(SingleLearner):
    """The parameters of the paper.

    References
    ----------
    .. [1] M. Kempka, W. Kotlowski, M. K. Warmuth. Adaptive scale-invariant online algorithms for learning linear
       models. ICML 2019.
    """

    variant: int = parameter(
        2,
        "Algorithm 1 or 2 of the paper. The second bets a fraction of its wealth and has the lower loss on most data.",
        low=1,
        high=2,
    )
    epsilon: float = parameter(
        1.0,
        "Initial wealth of each weight, in units of the mean absolute deviation of the target; results depend on it "
        "little.",
        above=0,
    )

    def _learner(self) -> tuple[str, dict[str, float]]:
        return f"scinol{self.variant}", {"epsilon": float(self.epsilon)}


@estimator
class ScInOLClassifier(ScInOL, LinearClassifier):
    """A linear classifier with nothing to tune: the scale-invariant online learner ScInOL.

    For losses with a Lipschitz constant (``"logistic"``, ``"hinge"``, ``"smoothed-hinge"``) its predictions of the rows
    in the first pass, each before it is learned, have a regret bound against every fixed linear model that does not
    depend on the scale of the features [1]_: :func:`tunefree.theory.bounds.paper_bound`. So it needs neither a learning
    rate nor feature scaling. The cost is a few multiplications for each nonzero value.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from tunefree import ScInOLClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = ScInOLClassifier().fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.9
    True
    """


@estimator
class ScInOLRegressor(ScInOL, LinearRegressor):
    """A linear regressor with nothing to tune: the scale-invariant online learner ScInOL.

    It is an online learner whose predictions do not depend on the scale of the features [1]_. So it needs neither a
    learning rate nor feature scaling. The cost is a few multiplications for each nonzero value. The paper's theorems
    are of targets as they are, for losses with a Lipschitz constant (``"absolute"``, ``"huber:1"``,
    ``"quantile:0.5"``). Here targets are relative to their running mean, which the theorems do not cover.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tunefree import ScInOLRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ScInOLRegressor().fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.4
    True
    """


@estimator
class PiSTOL(SingleLearner):
    """The parameters of the paper.

    References
    ----------
    .. [1] F. Orabona. Simultaneous model selection and optimization through parameter-free stochastic learning.
       NIPS 2014.
    """

    preset: str = parameter(
        "theory",
        "Values of ``a`` and ``b``. ``'theory'``: the ``a`` with the least bound of Theorem 1 of [1]_ after 10,000 "
        "rounds against a model of norm 1, 3.09 L (:func:`tunefree.papers.pistol_risk.pistol_parameter`), and b = L, "
        "L the Lipschitz constant of the loss. ``'practice'``: with one copy those of the paper's experiments, "
        "a = 0.125 L and b = sqrt(2 a L T) for the T rounds of a ``fit``, outside the theorem (where rows come in a "
        "stream, to ``partial_fit``, T is not known, and b = sqrt(2 a L t) after t rounds); with one copy for each "
        "feature, which the paper has no experiments with, a = 2.25 L and b = L. There the theorem's bound is finite "
        "in theory and beyond all numbers (exp(1652)).",
        choices=PRESETS,
    )
    coordinate: bool = parameter(
        True,
        "Whether to run one copy of the algorithm for each feature, which makes it invariant to the scale of each "
        "feature. With False one copy learns all features; it is invariant to rotations and to the scale of the data "
        "as a whole.",
    )
    a: float | None = parameter(
        None,
        "Parameter a of the paper, for the theorem at least 2.25 L; by default the preset's.",
        above=0,
    )
    b: float | None = parameter(
        None,
        "Parameter b of the paper, the initial stake; in regression in units of the target's mean absolute deviation. "
        "By default the preset's.",
        above=0,
    )

    def _learner(self) -> tuple[str, dict[str, float]]:
        if self.preset == "theory":
            settings = {"a": pistol_parameter(), "b": 1.0}
        else:
            settings = {"a": 2.25, "b": 1.0} if self.coordinate else {"a": 0.125, "b": 0.0}
        settings |= in_units_of_slopes(loss_of(self._task, self.loss), a=self.a, b=self.b)
        return "coordinate-pistol" if self.coordinate else "pistol", settings

    def _know_rounds(self, rounds: int) -> None:
        if self.preset == "practice" and self.b is None and not self.coordinate and self.t_ == 0:
            fix_stakes(self._learned.model.ensemble.linear.members, rounds)


def in_units_of_slopes(loss: Any, **parameters: float | None) -> dict[str, float]:
    """Parameters of PiSTOL over the Lipschitz constant of a loss, as learners take them; those that are given."""
    lipschitz = loss.lipschitz if loss.lipschitz < math.inf else 1.0
    return {name: value / lipschitz for name, value in parameters.items() if value is not None}


def fix_stakes(members: Any, rounds: int) -> None:
    """Let PiSTOL's states that have seen no row have b = sqrt(2 a L T) for T rounds, as in the paper's experiments."""
    for member in members:
        member.state["b"][0] = math.sqrt(2.0 * float(member.state["a"][0]) * rounds)


@estimator
class PiSTOLClassifier(PiSTOL, LinearClassifier):
    """A linear classifier with nothing to tune: PiSTOL.

    It is an online learner that adapts to the unknown norm of the best linear model [1]_, so neither a learning rate
    nor a regularisation parameter needs tuning. With the preset ``"theory"`` its predictions of the rows in the first
    pass, each before it is learned, have a finite regret bound against every fixed linear model:
    :func:`tunefree.theory.bounds.paper_bound`, for losses with a Lipschitz constant. ``"practice"`` often learns
    faster, and has no such bound.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from tunefree import PiSTOLClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PiSTOLClassifier().fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.9
    True
    """


@estimator
class PiSTOLRegressor(PiSTOL, LinearRegressor):
    """A linear regressor with nothing to tune: PiSTOL.

    It is an online learner that adapts to the unknown norm of the best linear model [1]_, so neither a learning rate
    nor a regularisation parameter needs tuning. The paper's theorem does not cover numbers whose spread is not known
    beforehand, which is what the learner's stake follows here; lower bounds on the loss of every linear model on the
    rows of the first pass are in ``certificate_``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tunefree import PiSTOLRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = PiSTOLRegressor(passes=10).fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.4
    True
    """

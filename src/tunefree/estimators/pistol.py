"""Linear PiSTOL in scikit-learn's manner."""

from __future__ import annotations

from tunefree.core.parameters import parameter
from tunefree.estimators.linear import LinearClassifier, LinearRegressor, SingleLearner
from tunefree.estimators.parameters import estimator
from tunefree.theory.bounds import pistol_parameter

PRESETS = ("theory", "practice")


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
        "rounds against a model of norm 1, :func:`tunefree.theory.bounds.pistol_parameter` (3.09), and b = 1. "
        "``'practice'``: with one copy those of the paper's experiments, a = 0.125 and b = sqrt(2 a t) after t rounds, "
        "outside the theorem; with one copy for each feature, which the paper has no experiments with, a = 2.25 and "
        "b = 1. There the theorem's bound is finite in theory and beyond all numbers (exp(1652)).",
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
        "Parameter a of the paper, in units of the Lipschitz constant of the loss; by default the preset's.",
        above=0,
    )
    b: float | None = parameter(
        None,
        "Parameter b of the paper, the initial stake, in units of the target's spread; by default the preset's.",
        above=0,
    )

    def _learner(self) -> tuple[str, dict[str, float]]:
        if self.preset == "theory":
            settings = {"a": pistol_parameter(), "b": 1.0}
        else:
            settings = {"a": 2.25, "b": 1.0} if self.coordinate else {"a": 0.125, "b": 0.0}
        settings |= {name: float(value) for name, value in (("a", self.a), ("b", self.b)) if value is not None}
        return "coordinate-pistol" if self.coordinate else "pistol", settings


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

    Incremental learning, with a class that appears later:

    >>> model = PiSTOLClassifier().partial_fit([[0.0], [1.0]], ["no", "yes"])
    >>> model.partial_fit([[2.0]], ["perhaps"]).classes_.tolist()
    ['no', 'perhaps', 'yes']
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
    >>> model = PiSTOLRegressor().fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.4
    True
    """

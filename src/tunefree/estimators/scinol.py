"""ScInOL in scikit-learn's manner."""

from __future__ import annotations

from tunefree.core.parameters import parameter
from tunefree.estimators.linear import LinearClassifier, LinearRegressor, SingleLearner
from tunefree.estimators.parameters import estimator


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

    Incremental learning, with a class that appears later:

    >>> model = ScInOLClassifier().partial_fit([[0.0], [1.0]], ["no", "yes"])
    >>> model.partial_fit([[2.0]], ["perhaps"]).classes_.tolist()
    ['no', 'perhaps', 'yes']
    """


@estimator
class ScInOLRegressor(ScInOL, LinearRegressor):
    """A linear regressor with nothing to tune: the scale-invariant online learner ScInOL.

    It is an online learner whose predictions do not depend on the scale of the features [1]_. So it needs neither a
    learning rate nor feature scaling. The cost is a few multiplications for each nonzero value. The paper's theorems
    assume that the spread of the targets is known. For losses with a Lipschitz constant (``"absolute"``, ``"huber:1"``,
    ``"quantile:0.5"``) variant 2 has a regret bound without that, :func:`tunefree.theory.bounds.paper_bound` with
    ``drift``; none is known for the others.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tunefree import ScInOLRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ScInOLRegressor().fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.4
    True
    """

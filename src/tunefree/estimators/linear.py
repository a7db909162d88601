"""What estimators with a single learner share, and those of linear learners."""

from __future__ import annotations

from tunefree.core.parameters import parameter
from tunefree.estimators.base import OnlineClassifierBase, OnlineEstimator
from tunefree.estimators.parameters import estimator, loss_of_task
from tunefree.estimators.regressor import OnlineRegressorBase

PASSES = "Number of passes over the rows in ``fit``. Several help on small data sets; on large ones one is enough."


@estimator
class SingleLearner(OnlineEstimator):
    """Estimators that pass several times over the rows."""

    passes: int = parameter(10, PASSES, low=1)
    shuffle: bool = parameter(
        True,
        "Whether ``fit`` shuffles the rows before each pass. The model then depends only on the weighted set of rows: "
        "a row of weight 3 is learned three times, like three copies of it (in fewer rounds of larger weight if there "
        "would be more than 65,536 rounds in total and four for each row). With False the rows are learned in the "
        "order in which they stand, in one round each, as by ``partial_fit``, and a weight multiplies the loss.",
    )
    average: bool = parameter(
        False, "Whether to predict with the average of the weights over the rounds instead of the last weights."
    )


@estimator
class LinearClassifier(SingleLearner, OnlineClassifierBase):
    """Classifiers with a linear learner."""

    loss: str = loss_of_task("classification", "logistic")
    fit_intercept: bool = parameter(True, "Whether to fit an intercept.")


@estimator
class LinearRegressor(SingleLearner, OnlineRegressorBase):
    """Regressors with a linear learner. Targets are learned relative to their running mean."""

    loss: str = loss_of_task("regression", "square")

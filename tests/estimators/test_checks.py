"""Every check of scikit-learn, for the estimators as they come; none is expected to fail."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from tunefree.estimators import (
    IterativeRegularizationClassifier,
    IterativeRegularizationRegressor,
    KernelPiSTOLClassifier,
    KernelPiSTOLRegressor,
    PiSTOLClassifier,
    PiSTOLRegressor,
    ScInOLClassifier,
    ScInOLRegressor,
    TuneFreeClassifier,
    TuneFreeRegressor,
)


@parametrize_with_checks(
    [
        ScInOLClassifier(),
        ScInOLRegressor(),
        PiSTOLClassifier(),
        PiSTOLRegressor(),
        TuneFreeClassifier(),
        TuneFreeRegressor(),
        TuneFreeClassifier(kernel=True),
        TuneFreeRegressor(kernel=True),
        KernelPiSTOLClassifier(),
        KernelPiSTOLRegressor(),
        KernelPiSTOLClassifier(gamma="median", loss="logistic"),
        IterativeRegularizationClassifier(),
        IterativeRegularizationRegressor(),
        IterativeRegularizationClassifier(loss="hinge", kernel="rbf", kernel_params={"precision": "float64"}),
        IterativeRegularizationRegressor(kernel="rbf", kernel_params={"precision": "float64"}),
    ]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)

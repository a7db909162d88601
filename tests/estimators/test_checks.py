"""Every check of scikit-learn, for the estimators as they come and with other settings; none is expected to fail."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from tunefree import (
    IterativeRegularizationClassifier,
    IterativeRegularizationRegressor,
    KernelPiSTOLClassifier,
    KernelPiSTOLRegressor,
    KernelSGDClassifier,
    PiSTOLClassifier,
    PiSTOLRegressor,
    ScInOLClassifier,
    ScInOLRegressor,
    TuneFreeClassifier,
    TuneFreeRegressor,
)

AS_THEY_COME = [
    ScInOLClassifier(),
    ScInOLRegressor(),
    PiSTOLClassifier(),
    PiSTOLRegressor(),
    TuneFreeClassifier(),
    TuneFreeRegressor(),
    KernelPiSTOLClassifier(),
    KernelPiSTOLRegressor(),
    KernelSGDClassifier(),
    IterativeRegularizationClassifier(),
    IterativeRegularizationRegressor(),
]
# Of these all code but the formulas of a learner is that of others above: checks of other things are slow tests.
LIKE_OTHERS = (PiSTOLClassifier, PiSTOLRegressor, KernelPiSTOLRegressor, KernelSGDClassifier)
OTHER_SETTINGS = [
    TuneFreeClassifier(kernel="rbf"),
    TuneFreeRegressor(kernel="rbf"),
    KernelPiSTOLClassifier(gamma="median", loss="logistic"),
    KernelSGDClassifier(offset="tuned", gamma="ladder", average=False),
    IterativeRegularizationClassifier(loss="hinge", kernel="rbf", precision="double"),
    IterativeRegularizationRegressor(kernel="rbf", precision="double"),
]
# Checks whose outcome depends on how rows are learned. The others ask what a class says of itself, which errors it
# raises and what it accepts, through code that its settings do not change.
OF_LEARNING = {
    "check_classifiers_train",
    "check_regressors_train",
    "check_classifiers_one_label_sample_weights",
    "check_class_weight_classifiers",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_estimator_sparse_array",
    "check_estimators_pickle",
    "check_fit_idempotent",
    "check_fit2d_1sample",
    "check_fit2d_1feature",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_fit_check_is_fitted",
}
VARIANTS_OF_INPUT = {"readonly_memmap", "X_dtype"}  # of the same check; settings do not change how rows are read

# Of these the ones that train dozens of models; they are slow tests where each model has many kernels.
OF_MANY_MODELS = {
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_class_weight_classifiers",
    "check_fit_idempotent",
}
OF_MANY_KERNELS = OTHER_SETTINGS[:4]


def checks_of_learning():
    """The estimators of other settings, each with the checks that its settings can change."""
    for estimator in OTHER_SETTINGS:
        quick = OF_LEARNING - OF_MANY_MODELS if estimator in OF_MANY_KERNELS else OF_LEARNING
        for _, check in estimator_checks_generator(estimator):
            if check.func.__name__ in quick and not VARIANTS_OF_INPUT & set(check.keywords):
                yield estimator, check


def checks_of_estimators_as_they_come():
    """All checks; the one of dozens of models is slow for a kernel learner."""
    for estimator in AS_THEY_COME:
        for _, check in estimator_checks_generator(estimator):
            if isinstance(estimator, LIKE_OTHERS):
                is_slow = check.func.__name__ not in OF_LEARNING - OF_MANY_MODELS
            else:
                is_slow = (
                    type(estimator) is KernelPiSTOLClassifier
                    and check.func.__name__ == "check_class_weight_classifiers"
                )
            yield pytest.param(estimator, check, marks=[pytest.mark.slow] if is_slow else [])


def named(part):
    """An estimator or a check, as a part of a test's name."""
    return getattr(getattr(part, "func", None), "__name__", None) or repr(part)


@pytest.mark.parametrize(("estimator", "check"), list(checks_of_estimators_as_they_come()), ids=named)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("estimator", "check"), list(checks_of_learning()), ids=named)
def test_scikit_learn_check_of_learning(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(OTHER_SETTINGS)
def test_every_scikit_learn_check_of_other_settings(estimator, check):
    check(estimator)

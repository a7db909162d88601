"""Each check of scikit-learn, for the estimators as they come and with other settings.

The pool learns a row of weight 3 once, and three copies of it three times, as random forests and boosted trees of
scikit-learn do; so it does not pass the checks that these give the same model. What both predict is compared in
``tests/pool/test_contexts.py``.
"""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

import tunefree

ESTIMATORS = [
    tunefree.ScInOLClassifier(),
    tunefree.ScInOLRegressor(),
    tunefree.TuneFreeClassifier(),
    tunefree.TuneFreeRegressor(),
    tunefree.KernelPiSTOLClassifier(),
    tunefree.IterativeRegularizationClassifier(),
    tunefree.IterativeRegularizationRegressor(),
]
# All code of these but the formulas of a learner is that of others above: their checks are slow tests.
LIKE_OTHERS = [
    tunefree.PiSTOLClassifier(),
    tunefree.KernelPiSTOLClassifier(gamma="median", loss="logistic"),
    tunefree.KernelPiSTOLClassifier(preset="theory", average=False),
    tunefree.IterativeRegularizationRegressor(kernel="rbf", precision="double"),
]
OTHER_SETTINGS = [tunefree.IterativeRegularizationClassifier(loss="hinge", kernel="rbf", precision="double")]
# Checks whose outcome depends on how rows are learned. The others ask what a class says of itself, which errors it
# raises and what it accepts, through code that its settings do not change.
OF_LEARNING = {
    "check_classifiers_one_label_sample_weights",
    "check_estimators_pickle",
    "check_fit2d_1sample",
    "check_fit2d_1feature",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_fit_check_is_fitted",
}
# Rows are read by the same code for both tasks, and for kernels as for the pool.
OF_READING = {"check_estimator_sparse_array", "check_estimator_sparse_matrix", "check_class_weight_classifiers"}
READ_ALIKE = (tunefree.TuneFreeRegressor, tunefree.KernelPiSTOLClassifier, tunefree.IterativeRegularizationRegressor)
VARIANTS_OF_INPUT = {"readonly_memmap", "X_dtype"}  # of the same check; quick are those of one estimator


def is_quick(estimator, check):
    """Whether `make test` runs a check."""
    name, is_variant = check.func.__name__, VARIANTS_OF_INPUT & set(check.keywords)
    is_second = isinstance(estimator, (tunefree.TuneFreeRegressor, tunefree.IterativeRegularizationClassifier))
    if is_second or estimator in OTHER_SETTINGS:
        return name in OF_LEARNING and not is_variant
    if is_variant:
        return isinstance(estimator, tunefree.ScInOLClassifier)
    return estimator in ESTIMATORS and not (isinstance(estimator, READ_ALIKE) and name in OF_READING)


def is_promised(estimator, check):
    """Whether an estimator promises to pass a check."""
    is_pool = isinstance(estimator, (tunefree.TuneFreeClassifier, tunefree.TuneFreeRegressor))
    return not (is_pool and check.func.__name__.startswith("check_sample_weight_equivalence"))


CHECKS = [
    pytest.param(estimator, check, marks=[] if is_quick(estimator, check) else [pytest.mark.slow])
    for estimator in [*ESTIMATORS, *LIKE_OTHERS, *OTHER_SETTINGS]
    for _, check in estimator_checks_generator(estimator)
    if is_promised(estimator, check)
]


@pytest.mark.parametrize(
    ("estimator", "check"), CHECKS, ids=lambda part: part.func.__name__ if hasattr(part, "func") else repr(part)
)
def test_scikit_learn_check(estimator, check):
    check(estimator)

"""Before anything is imported: scikit-learn then runs its array API checks too. And who runs which tests."""

import os

import pytest
from hypothesis import settings

os.environ.setdefault("SCIPY_ARRAY_API", "1")
settings.register_profile("thorough", max_examples=400)  # of `make test-all`; by itself 100

# Groups whose tests compile the same code, the longest first; the others follow by learner, estimator or file.
LONGEST = ("pool", "kernel")
OF_THE_POOL = ("cli", "model", "workflows")
OF_KERNELS = ("test_feature_bank.py", "test_kernel_bank.py", "test_kernel_model.py", "test_kernel.py")


def group_of(item):
    """The tests that one worker runs."""
    from tunefree.learners import ALL

    parameters = getattr(item, "callspec", None)
    given = parameters.params if parameters else {}
    learner = given.get("learner", given.get("name"))
    if isinstance(learner, str) and learner in ALL:
        return learner
    if "estimator" in given:
        estimator = type(given["estimator"]).__name__
        if "Kernel" in estimator or getattr(given["estimator"], "kernel", None) is True:
            return "kernel"
        return (
            "pool"
            if estimator.startswith("TuneFree")
            else estimator.removesuffix("Classifier").removesuffix("Regressor")
        )
    if item.path.parent.name == "kernel" or item.path.name in OF_KERNELS:
        return "kernel"
    return "pool" if item.path.parent.name in OF_THE_POOL or learner == "pool" else item.path.stem


@pytest.hookimpl(tryfirst=True)  # before the plugin that distributes tests reads the marks
def pytest_collection_modifyitems(items):
    """Let one worker run all tests of a group, so that no two compile the same code; the longest groups first."""
    groups = {item: group_of(item) for item in items}
    for item, group in groups.items():
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: LONGEST.index(groups[item]) if groups[item] in LONGEST else len(LONGEST))

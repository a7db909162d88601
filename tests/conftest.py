"""Before anything is imported: scikit-learn then runs its array API checks too. And who runs which tests."""

import os

import pytest

os.environ.setdefault("SCIPY_ARRAY_API", "1")

OF_THE_POOL = ("test_pool.py", "test_selection.py", "test_certification.py", "test_training.py")


def pytest_collection_modifyitems(items):
    """Let one worker run all tests of a learner, so that no two of them compile the same code at the same time."""
    from tunefree.learners import ALL

    for item in items:
        parameters = getattr(item, "callspec", None)
        given = parameters.params if parameters else {}
        learner = given.get("learner", given.get("name"))
        if isinstance(learner, str) and learner in ("pool", *ALL):
            group = learner
        elif "estimator" in given:
            group = type(given["estimator"]).__name__
        elif item.path.parent.name == "kernel":
            group = "kernel"
        elif item.path.name in OF_THE_POOL:
            group = "pool"
        else:
            group = item.path.stem
        item.add_marker(pytest.mark.xdist_group(group))

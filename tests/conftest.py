"""Before anything is imported: scikit-learn then runs its array API checks too. And which worker runs which tests."""

import faulthandler
import os
import re
import signal
import tempfile
from pathlib import Path, PurePath

import pytest
from hypothesis import settings

os.environ.setdefault("SCIPY_ARRAY_API", "1")
settings.register_profile("thorough", max_examples=400)  # of `make test-all`; by itself 100

# Groups whose tests load the same kernels, the longest first; the others follow by learner, estimator or file.
LONGEST = ("pool", "kernel")
OF_THE_POOL = ("cli", "distributed", "documentation", "explanation", "model", "report", "workflows")
OF_KERNELS = (
    "test_feature_bank.py",
    "test_kernel_bank.py",
    "test_kernel_certificates.py",
    "test_kernel_model.py",
    "test_kernel.py",
)

collect_ignore = ["distributed/learned_before.py"]  # which compiles what it imports, for workers of its own


def group_of(nodeid):
    """The tests that one worker runs, by the name of one of them."""
    from tunefree.learners import ALL

    path, _, test = nodeid.partition("::")
    path, parameters = PurePath(path), test.partition("[")[2].rstrip("]")
    estimator = re.match(r"(\w+?)(Classifier|Regressor)\(", parameters)
    if (
        path.parent.name == "kernel"
        or path.name in OF_KERNELS
        or "Kernel" in parameters
        or "(kernel='rbf')" in parameters
    ):
        return "kernel"
    if path.parent.name in OF_THE_POOL or parameters.startswith(("TuneFree", "pool")):
        return "pool"
    learners = [name for name in ALL if re.search(rf"(^|-){name}($|-)", parameters)]
    return estimator[1] if estimator else max(learners, key=len, default=path.stem)


def pytest_collection_modifyitems(items):
    """The longest groups first."""
    groups = {item: group_of(item.nodeid) for item in items}
    items.sort(key=lambda item: LONGEST.index(groups[item]) if groups[item] in LONGEST else len(LONGEST))


def pytest_xdist_make_scheduler(config, log):
    """Let one worker run all tests of a group, so that no two load the same kernels."""
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group_of(nodeid)

    return ByGroup(config, log)


STACKS = "TUNEFREE_TEST_STACKS"  # the folder for what workers were doing when they died, handed down to them


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    """Let workers that die leave their stacks in a file."""
    if not hasattr(config, "workerinput"):
        os.environ[STACKS] = tempfile.mkdtemp(prefix="tunefree-tests-")
    else:
        config.stacks = (Path(os.environ[STACKS]) / f"{config.workerinput['workerid']}.txt").open("w")
        faulthandler.enable(config.stacks)


def pytest_terminal_summary(terminalreporter, config):
    """What workers were doing that died."""
    if not hasattr(config, "workerinput"):
        folder = Path(os.environ[STACKS])
        for path in sorted(folder.iterdir()):
            terminalreporter.write(path.read_text())
            path.unlink()
        folder.rmdir()


@pytest.fixture
def heard():
    """Ctrl-C is heard, which is not so in processes that began in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)

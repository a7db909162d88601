"""Settings of other libraries, before anything is imported, and common fixtures."""

import gc
import io
import os
import signal
import sys
from contextlib import nullcontext
from functools import partial

import pytest
from hypothesis import HealthCheck, settings

from tests import overlaps, trees  # noqa: F401 - overlaps are refused from here on, where bounds are checked

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn then runs its array API checks too
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # each worker has one processor, on which others would wait
    os.environ.setdefault(threads, "1")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process of a test would compile the package anew,
sys.dont_write_bytecode = False  # and each run all tests
gc.disable()  # until all tests are collected
# How many examples a property is tried on; how long one takes decides nothing.
ANY_TIME = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=15, **ANY_TIME)
settings.register_profile("thorough", max_examples=400, **ANY_TIME)  # of `make test-all`
settings.load_profile("quick")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in jobs of the background; tests interrupt themselves
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish():
    """What was collected is no garbage: nobody looks at these half a million objects again."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Grow few trees: hardly any test asks what depends on how many there are. Slow tests have all."""
    with nullcontext() if any(map(item.get_closest_marker, ("all_trees", "slow"))) else trees.few():
        return (yield)


@pytest.fixture
def heard():
    """Ctrl-C and hanging up are heard, which is not so in processes that began in the background, or by nohup."""
    heard = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in heard.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def run(monkeypatch, capfd):
    """Run a command; returns (status, output, errors)."""
    from tunefree.cli import app

    def command(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "argv", ["tunefree", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capfd.readouterr()
        try:
            app.main()
            status = 0
        except SystemExit as end:
            status = end.code or 0
        sys.stdout.flush()
        return status, *capfd.readouterr()

    return command


@pytest.fixture
def done(run):
    """Run a command that succeeds, or ends with the status that is said; returns (output, errors)."""

    def command(*arguments, status=0, **options):
        ended, *told = run(*arguments, **options)
        assert ended == status, told[1]
        return told

    return command


@pytest.fixture
def learned_groups(monkeypatch):
    """The groups of the rows of each call of ``Model.learn``."""
    from tunefree.pool.model import Model

    blocks, learn = [], Model.learn

    def noted(model, X, y, weight, again=False, groups=None, mass=None):
        blocks.append(groups)
        return learn(model, X, y, weight, again, groups, mass)

    monkeypatch.setattr(Model, "learn", noted)
    return blocks


@pytest.fixture
def few_peers(monkeypatch):
    """Peers of few trees, whose threads wait for each other at each of them, and with few penalties to choose from."""
    from sklearn import ensemble

    from tunefree.workflows import peers

    monkeypatch.setattr(peers, "STRENGTHS", peers.STRENGTHS[::4])
    for name, size in (("HistGradientBoostingClassifier", "max_iter"), ("RandomForestClassifier", "n_estimators")):
        monkeypatch.setattr(ensemble, name, partial(getattr(ensemble, name), **{size: 2}))


@pytest.fixture
def no_pictures(monkeypatch):
    """Pages are as without matplotlib: drawing takes longer than all the rest of a page."""
    monkeypatch.setattr("tunefree.plotting.files.is_installed", lambda: False)


@pytest.fixture
def for_classes_only():
    """The name of somebody's learner that learns classes only, and whose margins are no log-odds."""
    from tunefree.learners import ALL
    from tunefree.learners.contract import Traits
    from tunefree.papers.learners.gradient import GradientDescent

    class Signs(GradientDescent):
        traits = Traits(classifies_only=True, margins_are_log_odds=False)

    ALL.register("signs", Signs)
    yield "signs"
    del ALL._entries["signs"]

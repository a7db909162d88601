"""An estimator that is interrupted while it learns goes on from whole rows, or says that it must be fitted anew."""

import copy
import inspect
import pickle
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tunefree
from tests.pool.rows import bytes_of
from tunefree.core.errors import ModelError
from tunefree.pool.growth import Growth
from tunefree.pool.pool import Pool

PACKAGE = str(Path(tunefree.__file__).parent)
rng = np.random.default_rng(0)
X = rng.normal(size=(700, 3))
y = (X[:, 1] + rng.normal(size=700) > 0).astype(int)
FRAME = pd.DataFrame(X, columns=list("abc")).assign(k=pd.Categorical(np.array(list("xyz"))[rng.integers(0, 3, 700)]))
MODELS = {
    "pool": (tunefree.TuneFreeClassifier(n_jobs=1), FRAME, y),
    "numbers": (tunefree.TuneFreeRegressor(n_jobs=1), X, X[:, 0]),
    "linear": (tunefree.ScInOLClassifier(), FRAME, y),
    "kernel": (tunefree.KernelPiSTOLClassifier(), np.tile(X, (2, 1)), np.tile(y, 2)),
}


class Broken(BaseException):
    """As it may be raised anywhere."""


def begun(name):
    model, rows, targets = MODELS[name]
    return copy.deepcopy(model).partial_fit(rows[:100], targets[:100]), rows, targets


def calls_of(model, rows, targets, most=10**9):
    """Let rows be learned, up to so many calls of functions of the package; returns how many there were."""
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        code = frame.f_code  # a generator that is thrown away raises nothing
        if event == "call" and code.co_filename.startswith(PACKAGE) and not code.co_flags & inspect.CO_GENERATOR:
            calls += 1
            if calls > most:
                sys.setprofile(None)
                raise Broken

    sys.setprofile(count)
    try:
        model.partial_fit(rows, targets)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("name", ["pool", "linear", "kernel"])
def test_after_an_error_anywhere_it_goes_on_or_must_be_fitted_anew(name):
    model, rows, targets = begun(name)
    more = slice(100, 400 if name == "pool" else None)
    calls_of(copy.deepcopy(model), rows[more], targets[more])  # which prepares kernels
    n_calls, ends = calls_of(copy.deepcopy(model), rows[more], targets[more]), set()
    places = np.append(np.geomspace(1, n_calls - 1, 5), np.linspace(1, n_calls - 1, 4))
    for most in np.unique(places.astype(int)).tolist():
        broken = copy.deepcopy(model)
        with pytest.raises(Broken):
            calls_of(broken, rows[more], targets[more], most)
        for use in (
            lambda: broken.predict(rows[:5]),  # noqa: B023
            lambda: broken.partial_fit(rows[:200], targets[:200]).predict(rows[:5]),  # noqa: B023
            lambda: pickle.loads(pickle.dumps(broken)).predict(rows[:5]),  # noqa: B023
        ):
            try:
                use()
                ends.add("goes on")
            except ModelError as error:
                ends.add(str(error))
        broken.fit(rows[:150], targets[:150]).predict(rows[:5])
    (said,) = ends - {"goes on"}
    assert "Broken was raised" in said
    assert "fit it anew" in said


@contextmanager
def interrupted(owner, name):
    """Ctrl-C comes as a function is called; what is learned here ends by it."""
    function = getattr(owner, name)

    def interrupted(*arguments, **options):
        signal.raise_signal(signal.SIGINT)
        return function(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            yield


@pytest.mark.parametrize("name", ["pool", "numbers", "kernel"])
def test_a_signal_waits_until_the_rows_are_learned(name):
    model, rows, targets = begun(name)
    whole = copy.deepcopy(model).partial_fit(rows[100:], targets[100:])
    with interrupted(type(model._learned.model), "learn"):
        model.partial_fit(rows[100:], targets[100:])
    assert model.t_ == whole.t_
    assert bytes_of(model._learned.model) == bytes_of(whole._learned.model)


def test_a_pass_that_ends_early_knows_the_classes_and_rows_that_it_met(monkeypatch):
    from tunefree.estimators import validation

    monkeypatch.setattr(validation, "BLOCK", 50)
    model = tunefree.ScInOLClassifier().partial_fit(X[:50], y[:50])
    with interrupted(type(model._learned.model), "learn"):
        model.partial_fit(X[50:200], np.array([0] * 60 + [7] * 90))
    assert model.t_ == 100
    assert model.classes_.tolist() == [0, 1]
    assert model.partial_fit(X[100:120], np.full(20, 7)).predict_proba(X[:2]).shape == (2, 3)


def test_an_interrupted_fit_can_be_saved_and_fitted_again(tmp_path):
    model, rows, targets = MODELS["pool"]
    model = copy.deepcopy(model)
    with interrupted(Growth, "finish"):
        model.fit(rows[:150], targets[:150])
    model.save(tmp_path / "model")
    assert (tunefree.load(tmp_path / "model").predict(rows) == model.predict(rows)).all()
    model.fit(rows[:150], targets[:150]).predict(rows)


@pytest.mark.parametrize("rows", [90, 200, 4100, 9000])
def test_events_that_were_missed_are_caught_up(rows):
    """As if rows had been counted, and nothing else had happened."""
    from tests.pool.rows import blank, stream

    data = stream(n=10_000)
    model = blank(data)
    pool: Pool = model.pool
    for X, labels, weight in data.pieces(60, stop=60):
        model.learn(X, labels, weight)
    pool.relative.of(np.ones(rows - 60))
    for X, labels, weight in data.pieces(100, rows, rows + 300):
        model.learn(X, labels, weight)
    growth = pool.members.growth
    assert growth.next.birth > rows and growth.event() > pool.rows == rows + 300
    newest = max(generation.rows for *_, generation in growth.generations())
    assert newest > 60


def test_threads_learn_one_after_the_other():
    model = tunefree.TuneFreeRegressor(n_jobs=1)

    def learn(first):
        for start in range(first, 700, 300):
            model.partial_fit(X[start : start + 100], X[start : start + 100, 0])
            model.predict(X[:20])

    with ThreadPoolExecutor(3) as executor:
        list(executor.map(learn, (0, 100, 200)))  # raises their errors
    assert model.t_ == 700
    assert model._learned.model.pool.rows == 700


@pytest.mark.parametrize(
    "use",
    [
        lambda model, path: model.save(path),
        lambda model, path: copy.deepcopy(model),
        lambda model, path: pickle.dumps(model),
        lambda model, path: model.explain(FRAME[:5]),
        lambda model, path: model.predict(FRAME[:5]),
    ],
    ids=["save", "deepcopy", "pickle", "explain", "predict"],
)
def test_what_reads_a_model_waits_until_others_have_learned(use, tmp_path):
    model = tunefree.ScInOLClassifier().partial_fit(FRAME[:100], y[:100])
    reader = threading.Thread(target=use, args=(model, tmp_path / "m"))
    with model._turn():
        reader.start()
        reader.join(0.05)
        assert reader.is_alive()
    reader.join(60)
    assert not reader.is_alive()


def test_a_copy_learns_by_itself():
    model = tunefree.ScInOLClassifier().partial_fit(FRAME[:100], y[:100])
    with model._turn():
        others = [copy.deepcopy(model), copy.copy(model), pickle.loads(pickle.dumps(model))]
    for other in others:
        other.partial_fit(FRAME[100:200], y[100:200])
        assert (other.t_, model.t_) == (200, 100)

"""Threads of estimators: as many as scikit-learn's rules say, and the same model whatever their number."""

import threading
from contextlib import nullcontext

import pytest
from sklearn.datasets import make_classification

from tunefree import TuneFreeClassifier
from tunefree.core import threads

X, y = make_classification(600, 6, random_state=0)


@pytest.fixture
def workers(monkeypatch):
    """The names of the threads in which functions are called for members."""
    names, each = set(), threads.each

    def noted(function, arguments, rows):
        def call(*own):
            names.add(threading.current_thread().name)
            return function(*own)

        each(call, arguments, rows)

    monkeypatch.setattr(threads, "each", noted)
    return names


def test_the_model_of_a_pool_does_not_depend_on_the_number_of_threads(workers, tmp_path):
    here, written = {threading.current_thread().name}, set()
    for n_jobs in (None, 1, 2, -1):
        workers.clear()
        model = TuneFreeClassifier(n_jobs=n_jobs).fit(X, y)
        alone = workers == here
        assert alone if n_jobs in (None, 1) else len(workers - here) <= (2 if n_jobs == 2 else threads.count())
        model.set_params(n_jobs=-1).save(tmp_path / "m")  # a file has the parameters
        written.add(((tmp_path / "m").read_bytes(), model.predict_proba(X).tobytes()))
    assert len(written) == 1


def test_a_failure_in_a_thread_is_raised_and_every_member_is_called_once():
    def call(k, failing):
        seen.append(k)
        if k in failing:
            raise IndexError(k)

    for failing in ((), (3,)):
        seen = []
        with threads.at_most(4), pytest.raises(IndexError) if failing else nullcontext():
            threads.each(call, [(k, failing) for k in range(20)], 10**6)
        assert len(seen) == len(set(seen)) and (failing or len(seen) == 20)

"""Groups of rows that belong together, and threads: in which order rows are learned, and what makes no difference."""

import threading

import numpy as np
import pytest
import sklearn
from sklearn.datasets import make_classification
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tunefree import TuneFreeClassifier, TuneFreeRegressor
from tunefree.core import threads
from tunefree.pool.groups import digests

of_both = pytest.mark.parametrize("cls", [TuneFreeClassifier, TuneFreeRegressor])
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 2))
Y = (X[:, 0] + 0.5 * RNG.normal(size=120) > 0) * 1
PEOPLE = np.array([f"person {k}" for k in RNG.integers(0, 15, 120)])


def runs(groups):
    """The first of each run of equal groups."""
    return groups[np.append(True, groups[1:] != groups[:-1])].tolist()


@of_both
def test_groups_are_passed_in_turn_in_an_order_that_is_drawn(cls, learned_groups):
    cls(random_state=1).fit(X, Y, groups=PEOPLE)
    cls(random_state=2).fit(X, Y, groups=PEOPLE)
    first, second = map(runs, learned_groups)
    assert sorted(first) == sorted(second) == sorted(set(digests(PEOPLE).tolist()))
    assert first != second


@of_both
def test_the_model_does_not_depend_on_how_rows_are_ordered(cls):
    fitted = cls().fit(X, Y, groups=PEOPLE)
    order = np.random.default_rng(1).permutation(120)
    assert cls().fit(X[order], Y[order], groups=PEOPLE[order]).predict(X).tobytes() == fitted.predict(X).tobytes()


@of_both
def test_metadata_is_routed_through_pipelines_and_cross_validation(cls, learned_groups):
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), cls().set_fit_request(groups=True))
        cross_validate(pipeline, X, Y, params={"groups": PEOPLE}, cv=GroupKFold(3), error_score="raise")
    of_folds = [set(groups.tolist()) for groups in learned_groups]
    assert len(of_folds) == 3 and all(len(known) == 10 for known in of_folds)


ROWS, LABELS = make_classification(600, 6, random_state=0)


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
        model = TuneFreeClassifier(n_jobs=n_jobs).fit(ROWS, LABELS)
        alone = workers == here
        assert alone if n_jobs in (None, 1) else len(workers - here) <= (2 if n_jobs == 2 else threads.count())
        model.set_params(n_jobs=-1).save(tmp_path / "m")  # a file has the parameters
        written.add(((tmp_path / "m").read_bytes(), model.predict_proba(ROWS).tobytes()))
    assert len(written) == 1
